# What bootstrap needs to know: turnup.provision/1, the same shape for every target.

output "inventory" {
  description = "The inventory of hosts for bootstrap: turnup.provision/1."
  value = {
    schema  = "turnup.provision/1"
    cluster = local.name
    target  = "aws"
    api = merge(
      { host = local.api_host, port = local.api_port },
      local.has_inner_place ? { internal_host = local.api_inner } : {},
      local.several ? { node_balancer = true } : {},
    )
    hosts = [
      for name, host in var.cluster.control_plane : merge(
        {
          name    = name
          role    = "control-plane"
          address = aws_network_interface.control_plane[name].private_ip
          zone    = host.zone
          # What stays when the group recreates the machine; a recreated one has another host key.
          instance = aws_network_interface.control_plane[name].id
          # What the host attaches itself, with the rights of identity.tf.
          etcd_volume = { cloud = "aws", id = aws_ebs_volume.etcd["main-${host.member}"].id, name = local.volumes["main-${host.member}"].name }
          ssh = merge(
            { user = var.cluster.ssh.user, port = local.ssh_port, host_key = "" },
            var.cluster.ssh.bastion ? { jump = { host = one([for bastion in aws_eip_association.bastion : bastion.public_ip]), user = var.cluster.ssh.user, port = local.ssh_port, host_key = "" } } : {},
          )
        },
        # With a bastion the public address is not used for logins.
        local.public && !var.cluster.ssh.bastion ? { external_address = local.public_ips[name] } : {},
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
        name   = volume.name
        zone   = volume.zone
        etcd   = "main"
        member = volume.member
        id     = aws_ebs_volume.etcd[key].id
      }
    ]
  }
}
