# Who may connect to whom. One list on the subnet; the machines' roles are application security groups. The last rule closes what Azure's own
# rules would leave open: everything from the virtual network and what is connected to it.

locals {
  every_host = [azurerm_application_security_group.control_plane.id, azurerm_application_security_group.node.id]
  only_cp    = [azurerm_application_security_group.control_plane.id]
  only_nodes = [azurerm_application_security_group.node.id]
  bastion    = var.cluster.ssh.bastion ? [azurerm_application_security_group.bastion[0].id] : []

  # A rule has networks of one family alone. By IPv6 a host is known by its address, not by its role: only the role of IPv4 addresses can be
  # said of a machine.
  ssh_networks      = [for network in var.cluster.ssh.allowed_cidrs : network if !strcontains(network, ":")]
  ssh_networks_ipv6 = [for network in var.cluster.ssh.allowed_cidrs : network if strcontains(network, ":")]
  api_networks      = [for network in var.cluster.api.allowed_cidrs : network if var.cluster.api.external && !strcontains(network, ":")]
  api_networks_ipv6 = [for network in var.cluster.api.allowed_cidrs : network if var.cluster.api.external && strcontains(network, ":")]

  # In the order in which Azure looks at them. `from` is either networks, roles, or one of Azure's own tags; to roles, or to addresses.
  rules = merge(
    length(local.ssh_networks) == 0 ? {} : {
      # SSH ingress: the bastion where there is one, else the hosts themselves.
      ssh = {
        priority = 100, protocol = "Tcp", ports = [var.cluster.ssh.port]
        from     = { networks = local.ssh_networks }
        to       = var.cluster.ssh.bastion ? local.bastion : local.every_host
      }
    },
    length(local.ssh_networks_ipv6) == 0 ? {} : {
      ssh-ipv6 = {
        priority  = 105, protocol = "Tcp", ports = [var.cluster.ssh.port]
        from      = { networks = local.ssh_networks_ipv6 }
        addresses = [var.cluster.ssh.bastion ? local.bastion_ipv6 : local.ipv6_cidr]
      }
    },
    !var.cluster.ssh.bastion ? {} : {
      ssh-from-bastion = {
        priority = 110, protocol = "Tcp", ports = [var.cluster.ssh.port], from = { roles = local.bastion }, to = local.every_host
      }
    },
    length(local.api_networks) == 0 ? {} : {
      api = {
        priority = 120, protocol = "Tcp", ports = [var.cluster.api.port], from = { networks = local.api_networks }, to = local.only_cp
      }
    },
    length(local.api_networks_ipv6) == 0 ? {} : {
      api-ipv6 = {
        priority  = 122, protocol = "Tcp", ports = [var.cluster.api.port], from = { networks = local.api_networks_ipv6 }
        addresses = values(local.ipv6_addresses)
      }
    },
    # Without a public address kubectl comes from the virtual network, or over a VPN or peering that leads into it.
    var.cluster.api.external ? {} : {
      api-from-network = {
        priority = 125, protocol = "Tcp", ports = [var.cluster.api.port], from = { tag = "VirtualNetwork" }, to = local.only_cp
      }
    },
    !local.balanced ? {} : {
      api-health = {
        priority = 130, protocol = "Tcp", ports = [var.cluster.api.health_port], from = { tag = "AzureLoadBalancer" }, to = local.only_cp
      }
    },
    {
      # Balancers of nodes ask several control-plane hosts whether they are ready.
      api-from-hosts = {
        priority = 140, protocol = "Tcp", ports = concat([var.cluster.api.port], local.alone ? [] : [var.cluster.api.health_port])
        from     = { roles = local.every_host }, to = local.only_cp
      }
      # Clients and peers of etcd.
      etcd = {
        priority = 150, protocol = "Tcp", ports = ["2379-2380"], from = { roles = local.only_cp }, to = local.only_cp
      }
      # Logs, exec and metrics. Workers too: the metrics server is a pod there and asks every kubelet, which asks who it is.
      kubelet = {
        priority = 160, protocol = "Tcp", ports = ["10250"], from = { roles = local.every_host }, to = local.every_host
      }
      # Pods to pods of other hosts, wrapped by flannel.
      vxlan = {
        priority = 170, protocol = "Udp", ports = ["8472"], from = { roles = local.every_host }, to = local.every_host
      }
      # What Azure's load balancers of Services ask: the Service's own port, or kube-proxy.
      node-port-health = {
        priority = 175, protocol = "Tcp", ports = ["10256", join("-", var.cluster.networks.node_ports)], from = { tag = "AzureLoadBalancer" }, to = local.only_nodes
      }
      node-ports = {
        priority = 180, protocol = "*", ports = [join("-", var.cluster.networks.node_ports)], from = { roles = local.every_host }, to = local.every_host
      }
    },
  )
}

resource "azurerm_application_security_group" "control_plane" {
  name                = "${local.prefix}-control-plane"
  resource_group_name = local.group
  location            = local.location
  tags                = local.tags
}

resource "azurerm_application_security_group" "node" {
  name                = "${local.prefix}-node"
  resource_group_name = local.group
  location            = local.location
  tags                = local.tags
}

resource "azurerm_application_security_group" "bastion" {
  count               = var.cluster.ssh.bastion ? 1 : 0
  name                = "${local.prefix}-bastion"
  resource_group_name = local.group
  location            = local.location
  tags                = local.tags

  # It goes when no rule names it any more.
  lifecycle { create_before_destroy = true }
}

resource "azurerm_network_security_group" "hosts" {
  name                = "${local.prefix}-hosts"
  resource_group_name = local.group
  location            = local.location
  tags                = local.tags
}

# Rules of their own, not blocks of the group: the cloud provider adds those of Services between ours and the last.
resource "azurerm_network_security_rule" "allow" {
  for_each                                   = local.rules
  name                                       = each.key
  resource_group_name                        = local.group
  network_security_group_name                = azurerm_network_security_group.hosts.name
  direction                                  = "Inbound"
  access                                     = "Allow"
  priority                                   = each.value.priority
  protocol                                   = each.value.protocol
  source_port_range                          = "*"
  destination_port_ranges                    = [for port in each.value.ports : tostring(port)]
  source_address_prefix                      = try(each.value.from.tag, null)
  source_address_prefixes                    = try(each.value.from.networks, null)
  source_application_security_group_ids      = try(each.value.from.roles, null)
  destination_application_security_group_ids = try(each.value.to, null)
  destination_address_prefixes               = try(each.value.addresses, null)
}

resource "azurerm_network_security_rule" "deny" {
  name                        = "deny-others"
  resource_group_name         = local.group
  network_security_group_name = azurerm_network_security_group.hosts.name
  direction                   = "Inbound"
  access                      = "Deny"
  priority                    = 4096
  protocol                    = "*"
  source_port_range           = "*"
  destination_port_range      = "*"
  source_address_prefix       = "*"
  destination_address_prefix  = "*"
}

# Last: the subnet is closed from its first host on, and opened as far as all rules say.
resource "azurerm_subnet_network_security_group_association" "hosts" {
  subnet_id                 = azurerm_subnet.hosts.id
  network_security_group_id = azurerm_network_security_group.hosts.id
  depends_on                = [azurerm_network_security_rule.allow, azurerm_network_security_rule.deny]
}
