# What bootstrap needs to know: turnup.provision/1, the same shape for every target.

output "inventory" {
  description = "The inventory of hosts for bootstrap: turnup.provision/1."
  value = {
    schema  = "turnup.provision/1"
    cluster = var.cluster.name
    target  = "gce"
    api = merge(
      { host = local.api_host, port = var.cluster.api.port },
      local.has_inner_place ? { internal_host = local.api_inner } : {},
      local.several ? { node_balancer = true } : {},
    )
    hosts = [
      for name, host in var.cluster.control_plane : merge(
        {
          name    = name
          role    = "control-plane"
          address = google_compute_address.control_plane[name].address
          zone    = host.zone
          # What stays when the group recreates the machine; a recreated one has another host key.
          instance = google_compute_address.control_plane[name].id
          # What the host attaches itself, with the rights of identity.tf.
          etcd_volume = {
            cloud = "gce"
            id    = google_compute_disk.etcd["main-${host.member}"].id
            name  = google_compute_disk.etcd["main-${host.member}"].name
          }
          ssh = merge(
            { user = var.cluster.ssh.user, port = var.cluster.ssh.port, host_key = "" },
            var.cluster.ssh.bastion ? { jump = { host = google_compute_address.bastion[0].address, user = var.cluster.ssh.user, port = var.cluster.ssh.port, host_key = "" } } : {},
          )
        },
        # With a bastion the public address is not used for logins.
        local.public && !var.cluster.ssh.bastion ? { external_address = name == local.first ? local.first_public : google_compute_address.control_plane_public[name].address } : {},
      )
    ]
    groups = [
      for name, group in var.cluster.groups : merge(
        { name = name, role = group.role, size = group.size },
        group.min == null ? {} : { min = group.min },
        group.max == null ? {} : { max = group.max },
      )
    ]
    volumes = [
      for key, volume in local.volumes : {
        name   = google_compute_disk.etcd[key].name
        zone   = volume.zone
        etcd   = "main"
        member = volume.member
        id     = google_compute_disk.etcd[key].id
      }
    ]
  }
}
