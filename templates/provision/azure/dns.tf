# The name of the API server in a zone of Azure DNS. All that it names is reserved: with another control plane or another exposure, the next
# apply writes other addresses.

locals {
  in_zone = var.cluster.dns.provider == "azuredns"
  # /subscriptions/S/resourceGroups/G/providers/Microsoft.Network/dnsZones/N, or privateDnsZones
  zone_parts = split("/", var.cluster.dns.zone)
  own_zone   = local.in_zone && var.cluster.dns.zone == ""
  zone_id    = local.own_zone ? azurerm_private_dns_zone.cluster[0].id : var.cluster.dns.zone
  zone_name  = local.own_zone ? var.cluster.dns.domain : try(local.zone_parts[8], "")
  # The name without the zone's own part.
  record = local.api_name == local.zone_name ? "@" : trimsuffix(local.api_name, ".${local.zone_name}")

  seen_inside = var.cluster.dns.private || !var.cluster.api.external
  record_addresses = (
    local.balanced ? [local.seen_inside ? local.api_inner_address : local.api_host] :
    [for host in local.control_plane_names : local.seen_inside ? local.addresses[host] : local.public_addresses[host]]
  )
  api_inner_address = local.inner_balanced ? local.azure.master_private_ip : local.first_inner
}

# Only the cluster's own network resolves it. A public zone is never made: the owner of the parent
# domain has to delegate to it.
resource "azurerm_private_dns_zone" "cluster" {
  count               = local.own_zone ? 1 : 0
  name                = var.cluster.dns.domain
  resource_group_name = local.group
  tags                = local.tags

  lifecycle {
    precondition {
      condition     = var.cluster.dns.private
      error_message = "dns.zone is empty: a public zone must exist already. Give its resource ID, or set dns.private."
    }
  }
}

# An existing zone and an existing network are linked already, or are their owner's to link.
resource "azurerm_private_dns_zone_virtual_network_link" "cluster" {
  count               = local.in_zone && var.cluster.dns.private && (local.own_zone || local.own_network) ? 1 : 0
  name                = local.prefix
  private_dns_zone_id = local.zone_id
  virtual_network_id  = local.network_id
  tags                = local.tags
}

resource "azurerm_dns_a_record" "api" {
  count               = local.in_zone && !var.cluster.dns.private ? 1 : 0
  name                = local.record
  zone_name           = local.zone_name
  resource_group_name = try(local.zone_parts[4], "")
  ttl                 = var.cluster.dns.ttl
  records             = local.record_addresses
  tags                = local.tags

  lifecycle {
    precondition {
      condition     = endswith(local.api_name, local.zone_name)
      error_message = "The API server's name ${local.api_name} does not end in the zone's name ${local.zone_name}."
    }
  }
}

resource "azurerm_private_dns_a_record" "api" {
  count               = local.in_zone && var.cluster.dns.private ? 1 : 0
  name                = local.record
  private_dns_zone_id = local.zone_id
  ttl                 = var.cluster.dns.ttl
  records             = local.record_addresses
  tags                = local.tags

  lifecycle {
    precondition {
      condition     = endswith(local.api_name, local.zone_name)
      error_message = "The API server's name ${local.api_name} does not end in the zone's name ${local.zone_name}."
    }
  }
}
