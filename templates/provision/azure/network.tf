# The resource group; the network, or an existing one by its identifier; the subnet of the hosts; a way out for hosts without a public address.

locals {
  own_group   = local.azure.resource_group == ""
  group       = local.own_group ? azurerm_resource_group.cluster[0].name : data.azurerm_resource_group.existing[0].name
  group_id    = local.own_group ? azurerm_resource_group.cluster[0].id : data.azurerm_resource_group.existing[0].id
  location    = local.azure.location
  own_network = local.azure.vnet_id == ""

  # /subscriptions/S/resourceGroups/G/providers/Microsoft.Network/virtualNetworks/N
  network_parts = split("/", local.azure.vnet_id)
  network_name  = local.own_network ? azurerm_virtual_network.cluster[0].name : data.azurerm_virtual_network.existing[0].name
  network_group = local.own_network ? local.group : data.azurerm_virtual_network.existing[0].resource_group_name
  # Each host has a second address of this network.
  ipv6_cidr = var.cluster.ipv6 ? local.azure.subnet_ipv6_cidr : ""
  host_ipv6 = toset(var.cluster.ipv6 ? ["host-ipv6"] : [])

  network_id = local.own_network ? azurerm_virtual_network.cluster[0].id : data.azurerm_virtual_network.existing[0].id
}

resource "azurerm_resource_group" "cluster" {
  count    = local.own_group ? 1 : 0
  name     = local.prefix
  location = local.azure.location
  tags     = local.tags
}

data "azurerm_resource_group" "existing" {
  count = local.own_group ? 0 : 1
  name  = local.azure.resource_group
}

resource "azurerm_virtual_network" "cluster" {
  count               = local.own_network ? 1 : 0
  name                = local.prefix
  resource_group_name = local.group
  location            = local.location
  address_space       = concat([local.azure.vnet_cidr], var.cluster.ipv6 ? [local.azure.ipv6_cidr] : [])
  tags                = local.tags
}

data "azurerm_virtual_network" "existing" {
  count               = local.own_network ? 0 : 1
  name                = local.network_parts[8]
  resource_group_name = local.network_parts[4]

  lifecycle {
    postcondition {
      condition     = !var.cluster.ipv6 || anytrue([for range in self.address_space : strcontains(range, ":")])
      error_message = "The virtual network ${local.azure.vnet_id} has no IPv6 addresses: az network vnet update --address-prefixes, or set phase1.network.ipv6=n."
    }
  }
}

resource "azurerm_subnet" "hosts" {
  name                 = "${local.prefix}-hosts"
  resource_group_name  = local.network_group
  virtual_network_name = local.network_name
  address_prefixes     = concat([local.azure.subnet_cidr], compact([local.ipv6_cidr]))
  # With a NAT gateway there is no other way out.
  default_outbound_access_enabled = !local.azure.nat_gateway
}

# For the cloud provider's routes to pods, and for a default route of your own: what stands in it is not managed here.
resource "azurerm_route_table" "hosts" {
  name                = "${local.prefix}-hosts"
  resource_group_name = local.group
  location            = local.location
  tags                = local.tags
}

resource "azurerm_subnet_route_table_association" "hosts" {
  subnet_id      = azurerm_subnet.hosts.id
  route_table_id = azurerm_route_table.hosts.id
}

resource "azurerm_public_ip" "nat" {
  count               = local.azure.nat_gateway ? 1 : 0
  name                = "${local.prefix}-nat"
  resource_group_name = local.group
  location            = local.location
  allocation_method   = "Static"
  sku                 = "Standard"
  zones               = local.all_zones
  tags                = local.tags
}

resource "azurerm_nat_gateway" "nat" {
  count               = local.azure.nat_gateway ? 1 : 0
  name                = "${local.prefix}-nat"
  resource_group_name = local.group
  location            = local.location
  sku_name            = "Standard"
  tags                = local.tags
}

resource "azurerm_nat_gateway_public_ip_association" "nat" {
  count                = local.azure.nat_gateway ? 1 : 0
  nat_gateway_id       = azurerm_nat_gateway.nat[0].id
  public_ip_address_id = azurerm_public_ip.nat[0].id
}

resource "azurerm_subnet_nat_gateway_association" "nat" {
  count          = local.azure.nat_gateway ? 1 : 0
  subnet_id      = azurerm_subnet.hosts.id
  nat_gateway_id = azurerm_nat_gateway.nat[0].id
}
