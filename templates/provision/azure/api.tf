# The API server's address: that of the first control-plane host, a load balancer's, or a name.

locals {
  balanced       = var.cluster.api.exposure == "load-balancer"
  outer_balanced = local.balanced && var.cluster.api.external
  inner_balanced = local.balanced && (var.cluster.api.internal_load_balancer || !var.cluster.api.external)
  # The name that clients use with exposure dns, and that a zone has in any case.
  api_name = var.cluster.api.host != "" ? var.cluster.api.host : "api.${var.cluster.name}.${var.cluster.dns.domain}"

  # A public address of the user's own: /subscriptions/S/resourceGroups/G/providers/Microsoft.Network/publicIPAddresses/N
  given       = var.cluster.api.static_address != "" && var.cluster.api.external
  given_parts = split("/", var.cluster.api.static_address)

  first_inner = local.addresses[local.first]
  # Named one by one: what Terraform does not know yet must not decide which of them it is.
  api_host = (
    var.cluster.api.exposure == "dns" ? local.api_name :
    local.outer_balanced ? (local.given ? data.azurerm_public_ip.given[0].ip_address : azurerm_public_ip.api[0].ip_address) :
    local.inner_balanced ? local.azure.master_private_ip :
    var.cluster.api.external ? local.public_addresses[local.first] : local.first_inner
  )
  # Azure's inner balancer answers no host that stands behind it: a control-plane host that is alone is named itself.
  # So it is behind a public name, which leads to its public address: a host that comes to that is a stranger to the security group.
  alone   = length(var.cluster.control_plane) == 1
  by_name = var.cluster.api.exposure == "dns" && (var.cluster.dns.private || !local.alone)
  api_inner = (
    local.by_name ? local.api_name :
    local.alone ? local.first_inner :
    local.inner_balanced ? local.azure.master_private_ip : local.first_inner
  )

  # Several API servers have a balancer on each node before them, which needs nothing of this file. What leads to all of them inside of the
  # network is for clients there, and for nodes that were made before nodes had a balancer; one host's address leads to one.
  has_inner_place = local.alone || local.by_name || local.inner_balanced
  api_servers     = join(",", [for host in sort(keys(var.cluster.control_plane)) : "${host}=${local.addresses[host]}:${var.cluster.api.port}"])

  # What hosts are told, and which of them are told anything.
  open_user_data = {
    for who, text in var.user_data : who => replace(replace(text, "@turnup:api@", local.api_inner), "@turnup:api-servers@", local.api_servers)
  }
  user_data = { for who, text in local.open_user_data : who => replace(text, "@turnup:token@", lookup(var.join_tokens, who, "")) }
  told      = nonsensitive(keys(var.user_data))
  # Each of these hosts knows the volume that has what it is.
  control_plane_user_data = {
    for host, one in var.cluster.control_plane : host => replace(
      local.open_user_data["control-plane"], "@turnup:volume@",
      "${azurerm_managed_disk.etcd["main-${one.member}"].id},${azurerm_managed_disk.etcd["main-${one.member}"].name}"
    ) if contains(local.told, "control-plane")
  }
  # Whether a machine in the place of another one is the same host, with the same host key.
  keeps_identity = nonsensitive(strcontains(lookup(var.user_data, "control-plane", ""), "@turnup:volume@"))
}

data "azurerm_public_ip" "given" {
  count               = local.given ? 1 : 0
  name                = local.given_parts[8]
  resource_group_name = local.given_parts[4]
}

resource "azurerm_public_ip" "api" {
  count               = local.outer_balanced && !local.given ? 1 : 0
  name                = "${local.prefix}-api"
  resource_group_name = local.group
  location            = local.location
  allocation_method   = "Static"
  sku                 = "Standard"
  zones               = local.all_zones
  tags                = local.tags

  # Azure gives none up that a balancer still has: it takes the other one first. It stays in its zones: another one would have the same name.
  lifecycle {
    create_before_destroy = true
    ignore_changes        = [zones]
  }
}

resource "azurerm_lb" "api" {
  count               = local.outer_balanced ? 1 : 0
  name                = "${local.prefix}-api"
  resource_group_name = local.group
  location            = local.location
  sku                 = "Standard"
  tags                = local.tags

  frontend_ip_configuration {
    name                 = "api"
    public_ip_address_id = local.given ? data.azurerm_public_ip.given[0].id : azurerm_public_ip.api[0].id
  }
}

# A host cannot reach itself through this one: on a control-plane host everything asks the API server beside it.
resource "azurerm_lb" "api_inner" {
  count               = local.inner_balanced ? 1 : 0
  name                = "${local.prefix}-api-internal"
  resource_group_name = local.group
  location            = local.location
  sku                 = "Standard"
  tags                = local.tags

  frontend_ip_configuration {
    name                          = "api"
    subnet_id                     = azurerm_subnet.hosts.id
    private_ip_address_allocation = "Static"
    private_ip_address            = local.azure.master_private_ip
    zones                         = local.all_zones
  }

  # A control-plane host that was alone has this address until there are several.
  depends_on = [azurerm_network_interface.control_plane]
}

locals {
  # Outer and inner are alike but for where they listen.
  balancers = merge(
    local.outer_balanced ? { outer = azurerm_lb.api[0].id } : {},
    local.inner_balanced ? { inner = azurerm_lb.api_inner[0].id } : {},
  )
  backends = merge([for kind, id in local.balancers : { for host in local.control_plane_names : "${kind}-${host}" => { kind = kind, host = host } }]...)
}

resource "azurerm_lb_backend_address_pool" "api" {
  for_each        = local.balancers
  name            = "control-plane"
  loadbalancer_id = each.value
}

resource "azurerm_network_interface_backend_address_pool_association" "api" {
  for_each                = local.backends
  network_interface_id    = azurerm_network_interface.control_plane[each.value.host].id
  ip_configuration_name   = "host"
  backend_address_pool_id = azurerm_lb_backend_address_pool.api[each.value.kind].id
}

# The API server refuses anonymous requests: turnup-healthcheck on the host answers for it, by plain
# HTTP.
resource "azurerm_lb_probe" "api" {
  for_each            = local.balancers
  name                = "api"
  loadbalancer_id     = each.value
  protocol            = "Http"
  port                = var.cluster.api.health_port
  request_path        = "/readyz"
  interval_in_seconds = 5
  probe_threshold     = 2
}

resource "azurerm_lb_rule" "api" {
  for_each                       = local.balancers
  name                           = "api"
  loadbalancer_id                = each.value
  frontend_ip_configuration_name = "api"
  protocol                       = "Tcp"
  frontend_port                  = var.cluster.api.port
  backend_port                   = var.cluster.api.port
  backend_address_pool_ids       = [azurerm_lb_backend_address_pool.api[each.key].id]
  probe_id                       = azurerm_lb_probe.api[each.key].id
  # Watches of the API server are quiet for minutes; when a connection is dropped all the same, both ends hear of it.
  idle_timeout_in_minutes = 30
  tcp_reset_enabled       = true
  # The way out is the NAT gateway or the hosts' own addresses, not the address of the API server.
  disable_outbound_snat = true
}
