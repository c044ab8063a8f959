# Groups of workers: a template and a managed instance group each. Every group is an object of its own, so that changing one touches no other.

locals {
  # A group with a greatest size is sized in the cloud after it was made, by the user or an
  # autoscaler.
  fixed_groups   = { for name, group in var.cluster.groups : name => group if group.max == null }
  scaling_groups = { for name, group in var.cluster.groups : name => group if group.max != null }

  # Machines with GPUs, TPUs or fast networks, whole machines and those with much local storage cannot move to another when Google works on
  # theirs: they are stopped and started again ("Set the host maintenance policy", limitations).
  fixed_machines = join("|", [
    "^(a[2-9]x?|g[2-9]|h[3-9]d?|ct[0-9][a-z]*|tpu[0-9][a-z]*)-",
    "-metal$",
    "^z3-highmem-(88|88-highlssd|176|176-standardlssd)$",
  ])

  machine_types = distinct(concat(values(var.cluster.control_plane)[*].machine_type, values(var.cluster.groups)[*].machine_type))
  immovable     = { for type in local.machine_types : type => length(regexall(local.fixed_machines, type)) > 0 }
}

resource "google_compute_instance_template" "group" {
  for_each         = var.cluster.groups
  name_prefix      = "${local.gce.names.groups[each.key]}-"
  description      = "Hosts of the group ${each.key}, Kubernetes ${var.cluster.kubernetes_version}"
  machine_type     = each.value.machine_type
  min_cpu_platform = local.gce.min_cpu_platform == "" ? null : local.gce.min_cpu_platform
  can_ip_forward   = true
  tags             = concat([local.node_tag], local.gce.network_tags)
  labels           = merge(local.labels, each.value.tags, { "k8s-io-role-node" = "node", "k8s-io-group" = each.key })
  metadata         = merge(local.metadata, contains(local.told, each.key) ? { "user-data" = local.user_data[each.key] } : {})

  disk {
    source_image = each.value.image
    boot         = true
    auto_delete  = true
    disk_size_gb = each.value.disk_gb
    disk_type    = each.value.disk_type

    dynamic "disk_encryption_key" {
      for_each = local.gce.disk_kms_key == "" ? [] : [local.gce.disk_kms_key]
      content { kms_key_self_link = disk_encryption_key.value }
    }
  }

  network_interface {
    subnetwork = local.subnetwork
    stack_type = each.value.public_address ? local.public_stack : local.inner_stack

    dynamic "access_config" {
      for_each = each.value.public_address ? [true] : []
      content {}
    }
    dynamic "ipv6_access_config" {
      for_each = each.value.public_address ? local.public_ipv6 : []
      content { network_tier = ipv6_access_config.value }
    }
  }

  # Spot machines cannot move: they are stopped and recreated.
  scheduling {
    preemptible                 = each.value.spot
    provisioning_model          = each.value.spot ? "SPOT" : "STANDARD"
    instance_termination_action = each.value.spot ? "DELETE" : null
    automatic_restart           = !each.value.spot
    on_host_maintenance         = each.value.spot || local.immovable[each.value.machine_type] ? "TERMINATE" : "MIGRATE"
  }

  service_account {
    email  = local.node_account
    scopes = ["cloud-platform"]
  }

  dynamic "shielded_instance_config" {
    for_each = local.gce.shielded_vm ? [true] : []
    content {
      enable_secure_boot          = true
      enable_vtpm                 = true
      enable_integrity_monitoring = true
    }
  }

  lifecycle { create_before_destroy = true }
}

# The two kinds differ in one line: who has the last word on the size.
resource "google_compute_region_instance_group_manager" "fixed" {
  for_each                  = local.fixed_groups
  name                      = local.gce.names.groups[each.key]
  description               = "Group ${each.key}"
  base_instance_name        = local.gce.names.groups[each.key]
  region                    = local.region
  distribution_policy_zones = each.value.zones
  target_size               = each.value.size

  version { instance_template = google_compute_instance_template.group[each.key].id }

  update_policy {
    # turnup drains hosts of an older template and tells them to power off.
    type                         = "OPPORTUNISTIC"
    minimal_action               = "REPLACE"
    instance_redistribution_type = "PROACTIVE"
  }

  # What is made in the place of a machine that has ended has the latest template.
  instance_lifecycle_policy { force_update_on_repair = "YES" }

  depends_on = [terraform_data.firewall_rules]
}

resource "google_compute_region_instance_group_manager" "scaling" {
  for_each                  = local.scaling_groups
  name                      = local.gce.names.groups[each.key]
  description               = "Group ${each.key}, between ${coalesce(each.value.min, 0)} and ${each.value.max} hosts"
  base_instance_name        = local.gce.names.groups[each.key]
  region                    = local.region
  distribution_policy_zones = each.value.zones
  target_size               = each.value.size

  version { instance_template = google_compute_instance_template.group[each.key].id }

  update_policy {
    # turnup drains hosts of an older template and tells them to power off.
    type           = "OPPORTUNISTIC"
    minimal_action = "REPLACE"
    # Who makes the group smaller chooses which host goes; Compute Engine moving hosts between zones would delete busy ones.
    instance_redistribution_type = "NONE"
  }

  # What is made in the place of a machine that has ended has the latest template.
  instance_lifecycle_policy { force_update_on_repair = "YES" }

  depends_on = [terraform_data.firewall_rules]

  lifecycle { ignore_changes = [target_size] }
}
