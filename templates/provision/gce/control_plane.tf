# Control-plane hosts: each an instance group of size 1 in its zone, which replaces a dead machine
# at the same addresses; and the volumes of etcd, made apart from the machines. A recreated machine
# is no node yet: it waits, with its volume, for `turnup up`.

locals {
  # Reserved with the cluster, so that a replacement is found where the dead one was.
  control_plane_public = local.public ? var.cluster.control_plane : {}
  # One disk a member: a machine with more than one could not say which is its own.
  volumes = {
    for one in var.cluster.control_plane : "main-${one.member}" => { member = one.member, zone = one.zone }
  }
  # `a/a,b,c`: this member among all of them. Compute Engine's labels take neither / nor ,: kops writes such bytes in hex, and so do we.
  members = join("-2c", var.cluster.etcd.members)
}

resource "google_compute_disk" "etcd" {
  for_each    = local.volumes
  name        = "${local.prefix}-etcd-${each.key}"
  description = "etcd main, member ${each.value.member}, of the Kubernetes cluster ${var.cluster.name}"
  zone        = each.value.zone
  size        = var.cluster.etcd.volume.size_gb
  type        = var.cluster.etcd.volume.type
  labels = merge(local.labels, {
    "k8s-io-cluster-name"                   = local.prefix
    "k8s-io-role-master"                    = "master"
    "k8s-io-role-control-plane"             = "control-plane"
    "k8s-io-etcd-main"                      = "${each.value.member}-2f${local.members}"
    "kubernetes-io-cluster-${local.prefix}" = "owned"
  })

  dynamic "disk_encryption_key" {
    for_each = var.cluster.etcd.volume.kms_key == "" ? [] : [var.cluster.etcd.volume.kms_key]
    content { kms_key_self_link = disk_encryption_key.value }
  }
}

resource "google_compute_address" "control_plane" {
  for_each     = var.cluster.control_plane
  name         = "${local.gce.names.control_plane[each.key]}-inner"
  description  = "Inner address of ${each.key}"
  address_type = "INTERNAL"
  subnetwork   = local.subnetwork
  region       = local.region
}

resource "google_compute_address" "control_plane_public" {
  for_each     = local.control_plane_public
  name         = local.gce.names.control_plane[each.key]
  description  = "Public address of ${each.key}"
  address_type = "EXTERNAL"
  region       = local.region
}

resource "google_compute_instance_template" "control_plane" {
  for_each         = var.cluster.control_plane
  name_prefix      = "${local.gce.names.control_plane[each.key]}-"
  description      = "Control-plane host ${each.key}, Kubernetes ${var.cluster.kubernetes_version}"
  machine_type     = each.value.machine_type
  min_cpu_platform = local.gce.min_cpu_platform == "" ? null : local.gce.min_cpu_platform
  # Pods' packets carry addresses that are not the machine's.
  can_ip_forward = true
  tags           = concat([local.control_plane_tag], local.gce.network_tags)
  labels         = merge(local.labels, { "k8s-io-role-control-plane" = "control-plane", "k8s-io-member" = each.value.member })
  metadata       = merge(local.metadata, contains(local.told, "control-plane") ? { "user-data" = local.control_plane_user_data[each.key] } : {})

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
    network_ip = google_compute_address.control_plane[each.key].address
    stack_type = local.public ? local.public_stack : local.inner_stack

    dynamic "access_config" {
      for_each = local.public ? [google_compute_address.control_plane_public[each.key].address] : []
      content { nat_ip = local.first == each.key && local.first_address != "" ? local.first_address : access_config.value }
    }
    dynamic "ipv6_access_config" {
      for_each = local.public ? local.public_ipv6 : []
      content { network_tier = ipv6_access_config.value }
    }
  }

  scheduling {
    automatic_restart   = true
    on_host_maintenance = local.immovable[each.value.machine_type] ? "TERMINATE" : "MIGRATE"
  }

  service_account {
    email = local.control_plane_account
    # What the account may do is in its roles alone.
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

resource "google_compute_instance_group_manager" "control_plane" {
  for_each           = var.cluster.control_plane
  name               = local.gce.names.control_plane[each.key]
  description        = "Control-plane host ${each.key}"
  base_instance_name = local.gce.names.control_plane[each.key]
  zone               = each.value.zone
  target_size        = 1
  wait_for_instances = true

  version { instance_template = google_compute_instance_template.control_plane[each.key].id }

  # A new template is for the next machine: nothing takes a control-plane host down by itself. Who wants it sooner deletes one machine, and
  # the next one only when this one is a node again (docs/gce.md). And never two at once: both would have the one address.
  update_policy {
    type                  = "OPPORTUNISTIC"
    minimal_action        = "REPLACE"
    replacement_method    = "RECREATE"
    max_surge_fixed       = 0
    max_unavailable_fixed = 1
  }

  # A host works from its first boot on: its disk is there and may be attached, and so is the way out and in. And it goes before them.
  depends_on = [
    google_compute_disk.etcd,
    google_project_iam_member.volumes,
    google_project_iam_member.machines,
    google_project_iam_member.operations,
    google_service_account_iam_member.control_plane,
    terraform_data.firewall_rules,
  ]
}
