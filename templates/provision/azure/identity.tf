# What a machine may do in Azure, by its role. Every pod that reaches the metadata service can do it too, so it is as little as can be.

locals {
  own_identity           = local.azure.control_plane_identity == ""
  control_plane_identity = local.own_identity ? azurerm_user_assigned_identity.control_plane[0].id : local.azure.control_plane_identity
  node_identity          = local.azure.node_identity == "" ? azurerm_user_assigned_identity.node[0].id : local.azure.node_identity

  # Names of roles are one list for the whole directory: two clusters of one name must not share them.
  scope_digest = substr(sha256("${data.azurerm_client_config.current.subscription_id}/${local.azure.resource_group}/${local.prefix}"), 0, 8)
}

data "azurerm_client_config" "current" {}

resource "azurerm_user_assigned_identity" "control_plane" {
  count               = local.own_identity ? 1 : 0
  name                = local.azure.names.control_plane_identity
  resource_group_name = local.group
  location            = local.location
  tags                = local.tags
}

# Workers may do nothing. They have an identity to prove who they are.
resource "azurerm_user_assigned_identity" "node" {
  count               = local.azure.node_identity == "" ? 1 : 0
  name                = local.azure.names.node_identity
  resource_group_name = local.group
  location            = local.location
  tags                = local.tags
}

# Azure's own roles would let a control-plane host also delete disks and run commands on machines.
resource "azurerm_role_definition" "volumes" {
  count             = local.own_identity ? 1 : 0
  name              = "turnup ${local.prefix} volumes ${local.scope_digest}"
  description       = "Attaches the etcd volumes of the Kubernetes cluster ${var.cluster.name}"
  scope             = local.group_id
  assignable_scopes = [local.group_id]

  permissions {
    actions = [
      "Microsoft.Compute/virtualMachines/read",                         # which disks are attached where
      "Microsoft.Compute/virtualMachines/attachDetachDataDisks/action", # attach one; Azure has one right for both
      "Microsoft.Compute/disks/read",                                   # whether the volume is free
      "Microsoft.Compute/disks/write",                                  # Azure asks for it on the disk that is attached
    ]
  }
}

# Both ends of an attachment: only this cluster's volumes, and only its own control-plane machines.
resource "azurerm_role_assignment" "volumes" {
  for_each           = local.own_identity ? azurerm_managed_disk.etcd : {}
  scope              = each.value.id
  role_definition_id = azurerm_role_definition.volumes[0].role_definition_resource_id
  principal_id       = azurerm_user_assigned_identity.control_plane[0].principal_id
  principal_type     = "ServicePrincipal"
}

resource "azurerm_role_assignment" "machines" {
  for_each           = local.own_identity ? azurerm_linux_virtual_machine.control_plane : {}
  scope              = each.value.id
  role_definition_id = azurerm_role_definition.volumes[0].role_definition_resource_id
  principal_id       = azurerm_user_assigned_identity.control_plane[0].principal_id
  principal_type     = "ServicePrincipal"
}

# Keeps names in a zone, those of the API server and what annotations ask for. Azure's own role would let it delete the zone.
locals {
  keeps_names = local.own_identity && var.cluster.dns.hosts_zone != ""
  # dnsZones or privateDnsZones
  zone_kind = local.keeps_names ? split("/", var.cluster.dns.hosts_zone)[7] : ""
}

resource "azurerm_role_definition" "names" {
  count             = local.keeps_names ? 1 : 0
  name              = "turnup ${local.prefix} names ${local.scope_digest}"
  description       = "Keeps names of the Kubernetes cluster ${var.cluster.name}"
  scope             = var.cluster.dns.hosts_zone
  assignable_scopes = [var.cluster.dns.hosts_zone]

  permissions {
    actions = flatten([for kind in ["A", "AAAA", "TXT"] : [
      for right in ["read", "write", "delete"] : "Microsoft.Network/${local.zone_kind}/${kind}/${right}"
    ]])
  }
}

resource "azurerm_role_assignment" "names" {
  count              = local.keeps_names ? 1 : 0
  scope              = var.cluster.dns.hosts_zone
  role_definition_id = azurerm_role_definition.names[0].role_definition_resource_id
  principal_id       = azurerm_user_assigned_identity.control_plane[0].principal_id
  principal_type     = "ServicePrincipal"
}
