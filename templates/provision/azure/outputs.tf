# What bootstrap needs to know: turnup.provision/1, the same shape for every target.

output "inventory" {
  description = "The inventory of hosts for bootstrap: turnup.provision/1."
  value = {
    schema  = "turnup.provision/1"
    cluster = var.cluster.name
    target  = "azure"
    api = merge(
      { host = local.api_host, port = var.cluster.api.port },
      local.has_inner_place ? { internal_host = local.api_inner } : {},
      local.alone ? {} : { node_balancer = true },
    )
    hosts = [
      for name, host in var.cluster.control_plane : merge(
        {
          name    = name
          role    = "control-plane"
          address = local.addresses[name]
          # With its identity on the volume a replaced machine is the same host: then it is what stays of one. Else it has another host key.
          instance = local.keeps_identity ? azurerm_network_interface.control_plane[name].id : azurerm_linux_virtual_machine.control_plane[name].virtual_machine_id
          # What the host attaches itself, with the rights of identity.tf.
          etcd_volume = {
            cloud = "azure"
            id    = azurerm_managed_disk.etcd["main-${host.member}"].id
            name  = azurerm_managed_disk.etcd["main-${host.member}"].name
          }
          ssh = merge(
            { user = var.cluster.ssh.user, port = var.cluster.ssh.port, host_key = "" },
            var.cluster.ssh.bastion ? {
              jump = { host = azurerm_public_ip.bastion[0].ip_address, user = var.cluster.ssh.user, port = var.cluster.ssh.port, host_key = "" }
            } : {},
          )
        },
        # As the cloud provider and the volume drivers write it in the nodes' labels.
        host.zone == "" ? {} : { zone = "${local.location}-${host.zone}" },
        # Behind a bastion SSH comes by the inner address.
        contains(local.public_hosts, name) && !var.cluster.ssh.bastion ? { external_address = local.public_addresses[name] } : {},
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
      for key, volume in local.volumes : merge(
        { name = azurerm_managed_disk.etcd[key].name, etcd = "main", member = volume.member, id = azurerm_managed_disk.etcd[key].id },
        volume.zone == "" ? {} : { zone = "${local.location}-${volume.zone}" },
      )
    ]
  }
}

output "outdated" {
  description = "Control-plane hosts that were made from an older template: terraform apply -replace='azurerm_linux_virtual_machine.control_plane[\"HOST\"]', one after the other (docs/azure.md)."
  value = [
    for host in local.control_plane_names : host
    if lookup(azurerm_linux_virtual_machine.control_plane[host].tags, "turnup-template", "") != local.control_plane_template[host]
  ]
}

# For the file azure.json of Kubernetes' cloud provider for Azure. It holds no secret: the hosts' identity is theirs.
output "cloud_config" {
  description = "What Kubernetes' cloud provider for Azure asks in azure.json."
  value = merge({
    tenantId                    = data.azurerm_client_config.current.tenant_id
    subscriptionId              = data.azurerm_client_config.current.subscription_id
    resourceGroup               = local.group
    location                    = local.location
    vnetName                    = local.network_name
    vnetResourceGroup           = local.network_group
    subnetName                  = azurerm_subnet.hosts.name
    securityGroupName           = azurerm_network_security_group.hosts.name
    routeTableName              = azurerm_route_table.hosts.name
    vmType                      = "vmss"
    loadBalancerSku             = "Standard"
    useInstanceMetadata         = true
    useManagedIdentityExtension = true
    },
    # Of an identity of your own, the client ID is yours to add.
    local.own_identity ? { userAssignedIdentityID = azurerm_user_assigned_identity.control_plane[0].client_id } : {},
  )
}
