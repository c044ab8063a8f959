# The only SSH ingress to hosts without a public address. It holds nothing and may do nothing in the project.

resource "google_compute_instance_template" "bastion" {
  count        = var.cluster.ssh.bastion ? 1 : 0
  name_prefix  = "${local.prefix}-bastion-"
  description  = "Bastion of ${var.cluster.name}"
  machine_type = var.cluster.ssh.bastion_machine_type
  tags         = [local.bastion_tag]
  labels       = local.labels
  metadata     = local.metadata

  disk {
    source_image = var.cluster.control_plane[local.first].image
    boot         = true
    auto_delete  = true
  }

  network_interface {
    subnetwork = local.subnetwork
    stack_type = local.public_stack
    access_config { nat_ip = google_compute_address.bastion[0].address }

    dynamic "ipv6_access_config" {
      for_each = local.public_ipv6
      content { network_tier = ipv6_access_config.value }
    }
  }

  shielded_instance_config {
    enable_secure_boot          = local.gce.shielded_vm
    enable_vtpm                 = local.gce.shielded_vm
    enable_integrity_monitoring = local.gce.shielded_vm
  }

  lifecycle { create_before_destroy = true }
}

resource "google_compute_address" "bastion" {
  count        = var.cluster.ssh.bastion ? 1 : 0
  name         = local.bastion_tag
  description  = "Bastion of ${var.cluster.name}"
  address_type = "EXTERNAL"
  region       = local.region
}

resource "google_compute_instance_group_manager" "bastion" {
  count              = var.cluster.ssh.bastion ? 1 : 0
  name               = local.bastion_tag
  description        = "Bastion of ${var.cluster.name}"
  base_instance_name = local.bastion_tag
  zone               = var.cluster.control_plane[local.first].zone
  target_size        = 1
  wait_for_instances = true

  version { instance_template = google_compute_instance_template.bastion[0].id }

  update_policy {
    type                  = "PROACTIVE"
    minimal_action        = "REPLACE"
    replacement_method    = "RECREATE"
    max_surge_fixed       = 0
    max_unavailable_fixed = 1
  }
}
