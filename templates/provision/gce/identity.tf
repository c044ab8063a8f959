# What a machine may do in the project, by its role. Every pod that reaches the metadata server can do it too, so it is as little as can be.

locals {
  control_plane_account = local.gce.control_plane_service_account != "" ? local.gce.control_plane_service_account : google_service_account.control_plane[0].email
  node_account          = local.gce.node_service_account != "" ? local.gce.node_service_account : google_service_account.node[0].email
  # The roles are given in the project of the accounts.
  project = length(google_service_account.control_plane) > 0 ? google_service_account.control_plane[0].project : one(google_service_account.node[*].project)

  # Both ends of an attachment: the cluster's own etcd disks, and its own control-plane machines.
  own_disks    = "resource.type == 'compute.googleapis.com/Disk' && resource.name.extract('/disks/{name}').startsWith('${local.prefix}-etcd-')"
  own_machines = "resource.type == 'compute.googleapis.com/Instance' && resource.name.extract('/instances/{name}').startsWith('${local.prefix}-control-plane-')"
}

resource "google_service_account" "control_plane" {
  count        = local.gce.control_plane_service_account == "" ? 1 : 0
  account_id   = local.gce.names.control_plane_account
  display_name = "Control plane of ${var.cluster.name}"
}

resource "google_service_account" "node" {
  count        = local.gce.node_service_account == "" ? 1 : 0
  account_id   = local.gce.names.node_account
  display_name = "Workers of ${var.cluster.name}"
}

# Finds the machines and disks of the cluster: the agent looks for its volume by labels, and for the other members.
resource "google_project_iam_member" "control_plane_viewer" {
  count   = length(google_service_account.control_plane)
  project = local.project
  role    = "roles/compute.viewer"
  member  = "serviceAccount:${local.control_plane_account}"
}

# Attaches the etcd disks of this cluster to its own control-plane machines, and nothing else to anything else.
resource "google_project_iam_member" "control_plane_disks" {
  count   = length(google_service_account.control_plane)
  project = local.project
  role    = "roles/compute.instanceAdmin.v1"
  member  = "serviceAccount:${local.control_plane_account}"

  condition {
    title       = "${local.prefix}-etcd-disks"
    description = "Only the etcd disks and control-plane machines of this cluster"
    expression  = "(${local.own_disks}) || (${local.own_machines})"
  }
}

# Keeps the names of the API server and of etcd's members where the machines are. Only with a zone: without one nothing is changed there.
resource "google_project_iam_member" "control_plane_dns" {
  count   = var.cluster.dns.provider == "clouddns" ? length(google_service_account.control_plane) : 0
  project = local.project
  role    = "roles/dns.admin"
  member  = "serviceAccount:${local.control_plane_account}"
}

# Both write their logs and metrics, and read images of the project's registry.
resource "google_project_iam_member" "common" {
  for_each = merge(
    length(google_service_account.control_plane) == 0 ? {} : { for role in local.common_roles : "control-plane ${role}" => { role = role, email = local.control_plane_account } },
    length(google_service_account.node) == 0 ? {} : { for role in local.common_roles : "node ${role}" => { role = role, email = local.node_account } },
  )
  project = local.project
  role    = each.value.role
  member  = "serviceAccount:${each.value.email}"
}

locals {
  common_roles = ["roles/logging.logWriter", "roles/monitoring.metricWriter", "roles/artifactregistry.reader"]
}
