# What a machine may do in the project, by its role. Every pod that reaches the metadata server can do it too, so it is as little as can be.

locals {
  control_plane_account = local.gce.control_plane_service_account != "" ? local.gce.control_plane_service_account : google_service_account.control_plane[0].email
  node_account          = local.gce.node_service_account != "" ? local.gce.node_service_account : google_service_account.node[0].email
  # The roles are given in the project of the accounts.
  project = length(google_service_account.control_plane) > 0 ? google_service_account.control_plane[0].project : one(google_service_account.node[*].project)
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

# Google's own roles would let a control-plane host also delete disks and change machines. Google keeps the identifier of a role that was
# deleted for weeks, so a cluster that is made again has others: those of its account.
resource "google_project_iam_custom_role" "volumes" {
  count       = length(google_service_account.control_plane)
  role_id     = "turnup_volumes_${google_service_account.control_plane[0].unique_id}"
  title       = "${local.prefix} etcd volumes"
  description = "Attaches the etcd volumes of the Kubernetes cluster ${var.cluster.name}"
  permissions = [
    "compute.disks.get",            # who has the volume
    "compute.disks.use",            # Google asks for it on the disk that is attached
    "compute.instances.attachDisk", # and for this on the machine
  ]
}

# Both ends of an attachment: only this cluster's volumes, …
resource "google_project_iam_member" "volumes" {
  for_each = length(google_service_account.control_plane) == 0 ? {} : local.volumes
  project  = local.project
  role     = google_project_iam_custom_role.volumes[0].name
  member   = "serviceAccount:${local.control_plane_account}"

  condition {
    title       = google_compute_disk.etcd[each.key].name
    description = "Only this volume"
    expression  = "resource.type == 'compute.googleapis.com/Disk' && resource.name.endsWith('/zones/${each.value.zone}/disks/${google_compute_disk.etcd[each.key].name}')"
  }
}

# … and only its own control-plane machines, whose names end in something of Google's.
resource "google_project_iam_member" "machines" {
  count   = length(google_service_account.control_plane)
  project = local.project
  role    = google_project_iam_custom_role.volumes[0].name
  member  = "serviceAccount:${local.control_plane_account}"

  condition {
    title       = "${local.prefix}-control-plane"
    description = "Only the control-plane machines of this cluster"
    expression  = "resource.type == 'compute.googleapis.com/Instance' && resource.name.extract('/instances/{name}').startsWith('${local.prefix}-control-plane-')"
  }
}

# Whether an attachment that was asked for is done. Conditions know no operations, so this is apart from the others.
resource "google_project_iam_custom_role" "operations" {
  count       = length(google_service_account.control_plane)
  role_id     = "turnup_operations_${google_service_account.control_plane[0].unique_id}"
  title       = "${local.prefix} operations"
  description = "Follows what the Kubernetes cluster ${var.cluster.name} has asked for"
  permissions = ["compute.zoneOperations.get"]
}

resource "google_project_iam_member" "operations" {
  count   = length(google_service_account.control_plane)
  project = local.project
  role    = google_project_iam_custom_role.operations[0].name
  member  = "serviceAccount:${local.control_plane_account}"
}

# What the cloud controller manager does: it looks at the cluster's machines and makes load balancers of Services. Those and their rules for the
# firewall have names that begin with a or k8s-, and none of the module's own is among them; the rest no condition narrows.
locals {
  own_names = "startsWith('${local.prefix}-')"
  balancer_rights = { for name, right in {
    machines = {
      what        = "Looks at machines of the Kubernetes cluster ${var.cluster.name} and leads load balancers to them"
      type        = "Instance"
      expression  = "resource.name.extract('/instances/{name}').${local.own_names}"
      permissions = ["compute.instances.get", "compute.instances.use"]
    }
    forwarding = {
      what        = "Makes load balancers of the Kubernetes cluster ${var.cluster.name}"
      type        = "ForwardingRule"
      expression  = "resource.name.extract('/forwardingRules/{name}').startsWith('a') && !resource.name.extract('/forwardingRules/{name}').${local.own_names}"
      permissions = ["compute.forwardingRules.create", "compute.forwardingRules.delete", "compute.forwardingRules.get"]
    }
    firewall = {
      what        = "Lets load balancers in to machines of the Kubernetes cluster ${var.cluster.name}"
      type        = "Firewall"
      expression  = "resource.name.extract('/firewalls/{name}').startsWith('k8s-') || resource.name.extract('/firewalls/{name}').startsWith('a') && !resource.name.extract('/firewalls/{name}').${local.own_names}"
      permissions = ["compute.firewalls.create", "compute.firewalls.delete", "compute.firewalls.get", "compute.firewalls.update"]
    }
    balancers = {
      what       = "Makes what load balancers of the Kubernetes cluster ${var.cluster.name} consist of"
      type       = ""
      expression = ""
      permissions = [
        "compute.addresses.create", "compute.addresses.createInternal", "compute.addresses.delete", "compute.addresses.deleteInternal",
        "compute.addresses.get", "compute.addresses.list", "compute.addresses.use", "compute.addresses.useInternal",
        "compute.globalOperations.get", "compute.healthChecks.create", "compute.healthChecks.delete", "compute.healthChecks.get",
        "compute.healthChecks.update", "compute.healthChecks.use", "compute.healthChecks.useReadOnly", "compute.httpHealthChecks.create",
        "compute.httpHealthChecks.delete", "compute.httpHealthChecks.get", "compute.httpHealthChecks.update",
        "compute.httpHealthChecks.useReadOnly", "compute.instanceGroups.create", "compute.instanceGroups.delete",
        "compute.instanceGroups.get", "compute.instanceGroups.list", "compute.instanceGroups.update", "compute.instanceGroups.use",
        "compute.instances.list", "compute.networks.get", "compute.networks.updatePolicy", "compute.networks.use",
        "compute.regionBackendServices.create", "compute.regionBackendServices.delete", "compute.regionBackendServices.get",
        "compute.regionBackendServices.update", "compute.regionBackendServices.use", "compute.regionOperations.get",
        "compute.subnetworks.get", "compute.subnetworks.use", "compute.targetPools.addInstance", "compute.targetPools.create",
        "compute.targetPools.delete", "compute.targetPools.get", "compute.targetPools.removeInstance", "compute.targetPools.use",
        "compute.zoneOperations.get", "compute.zones.list",
      ]
    }
  } : name => right if length(google_service_account.control_plane) > 0 && local.gce.cloud_controller }
}

resource "google_project_iam_custom_role" "cloud_controller" {
  for_each    = local.balancer_rights
  role_id     = "turnup_controller_${each.key}_${google_service_account.control_plane[0].unique_id}"
  title       = "${local.prefix} controller ${each.key}"
  description = each.value.what
  permissions = each.value.permissions
}

resource "google_project_iam_member" "cloud_controller" {
  for_each = local.balancer_rights
  project  = local.project
  role     = google_project_iam_custom_role.cloud_controller[each.key].name
  member   = "serviceAccount:${local.control_plane_account}"

  dynamic "condition" {
    for_each = each.value.type == "" ? [] : [each.value]
    content {
      title       = "${local.prefix}-controller-${each.key}"
      description = condition.value.what
      expression  = "resource.type == 'compute.googleapis.com/${condition.value.type}' && (${condition.value.expression})"
    }
  }
}

# What the CSI driver does: disks of claims, whose names begin with pvc-, and snapshots of them. etcd's disks and those of hosts have other names.
locals {
  keeps_claims = length(google_service_account.control_plane) > 0 && local.gce.cloud_storage
}

resource "google_project_iam_custom_role" "claims" {
  count       = local.keeps_claims ? 1 : 0
  role_id     = "turnup_claims_${google_service_account.control_plane[0].unique_id}"
  title       = "${local.prefix} disks of claims"
  description = "Makes, attaches and deletes disks of claims of the Kubernetes cluster ${var.cluster.name}"
  permissions = concat([
    "compute.disks.create",
    "compute.disks.delete",
    "compute.disks.get",
    "compute.disks.resize",
    "compute.disks.setLabels",
    "compute.disks.use",
  ], local.gce.cloud_snapshots ? ["compute.disks.createSnapshot"] : [])
}

resource "google_project_iam_member" "claims" {
  count   = local.keeps_claims ? 1 : 0
  project = local.project
  role    = google_project_iam_custom_role.claims[0].name
  member  = "serviceAccount:${local.control_plane_account}"

  condition {
    title       = "${local.prefix}-claims"
    description = "Only disks of claims"
    expression  = "resource.type == 'compute.googleapis.com/Disk' && resource.name.extract('/disks/{name}').startsWith('pvc-')"
  }
}

# The other end of an attachment: machines of this cluster.
resource "google_project_iam_custom_role" "claims_machines" {
  count       = local.keeps_claims ? 1 : 0
  role_id     = "turnup_claims_machines_${google_service_account.control_plane[0].unique_id}"
  title       = "${local.prefix} machines of claims"
  description = "Attaches disks of claims to machines of the Kubernetes cluster ${var.cluster.name}"
  permissions = ["compute.instances.attachDisk", "compute.instances.detachDisk", "compute.instances.get"]
}

resource "google_project_iam_member" "claims_machines" {
  count   = local.keeps_claims ? 1 : 0
  project = local.project
  role    = google_project_iam_custom_role.claims_machines[0].name
  member  = "serviceAccount:${local.control_plane_account}"

  condition {
    title       = "${local.prefix}-machines"
    description = "Only machines of this cluster"
    expression  = "resource.type == 'compute.googleapis.com/Instance' && resource.name.extract('/instances/{name}').startsWith('${local.prefix}-')"
  }
}

# What no condition can narrow: lists of the project, and snapshots where they are wanted.
resource "google_project_iam_custom_role" "claims_lists" {
  count       = local.keeps_claims ? 1 : 0
  role_id     = "turnup_claims_lists_${google_service_account.control_plane[0].unique_id}"
  title       = "${local.prefix} lists for claims"
  description = "Looks at disks, machines and zones for the Kubernetes cluster ${var.cluster.name}"
  permissions = concat([
    "compute.disks.list",
    "compute.instances.list",
    "compute.zones.get",
    "compute.zones.list",
    ], local.gce.cloud_snapshots ? [
    "compute.globalOperations.get",
    "compute.snapshots.create",
    "compute.snapshots.delete",
    "compute.snapshots.get",
    "compute.snapshots.list",
    "compute.snapshots.setLabels",
    "compute.snapshots.useReadOnly",
  ] : [])
}

resource "google_project_iam_member" "claims_lists" {
  count   = local.keeps_claims ? 1 : 0
  project = local.project
  role    = google_project_iam_custom_role.claims_lists[0].name
  member  = "serviceAccount:${local.control_plane_account}"
}

# To attach a disk to a worker is to act as the worker's account. One of yours is yours to give.
resource "google_service_account_iam_member" "claims_workers" {
  count              = local.keeps_claims ? length(google_service_account.node) : 0
  service_account_id = google_service_account.node[0].name
  role               = "roles/iam.serviceAccountUser"
  member             = "serviceAccount:${local.control_plane_account}"
}

# Keeps names in a zone, those of the API server and what annotations ask for. Google's own role would let it delete the zone.
locals {
  keeps_names = length(google_service_account.control_plane) > 0 && var.cluster.dns.hosts_zone != ""
  # projects/P/managedZones/Z
  hosts_zone = split("/", var.cluster.dns.hosts_zone)
}

resource "google_project_iam_custom_role" "names" {
  count       = local.keeps_names ? 1 : 0
  project     = local.hosts_zone[1]
  role_id     = "turnup_names_${google_service_account.control_plane[0].unique_id}"
  title       = "${local.prefix} names"
  description = "Keeps names of the Kubernetes cluster ${var.cluster.name}"
  permissions = [
    "dns.changes.create",
    "dns.changes.get",
    "dns.resourceRecordSets.create",
    "dns.resourceRecordSets.delete",
    "dns.resourceRecordSets.list",
    "dns.resourceRecordSets.update",
  ]
}

resource "google_dns_managed_zone_iam_member" "names" {
  count        = local.keeps_names ? 1 : 0
  project      = local.hosts_zone[1]
  managed_zone = local.hosts_zone[3]
  role         = google_project_iam_custom_role.names[0].name
  member       = "serviceAccount:${local.control_plane_account}"
}

# Attaching a disk to a machine that runs as an account needs the right to act as that account,
# which nothing has by default: not even the account itself.
resource "google_service_account_iam_member" "control_plane" {
  count              = length(google_service_account.control_plane)
  service_account_id = google_service_account.control_plane[0].name
  role               = "roles/iam.serviceAccountUser"
  member             = "serviceAccount:${local.control_plane_account}"
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
