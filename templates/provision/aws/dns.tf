# Names in a zone of Route 53, one that exists or a private one of the cluster's own: the API server's and those of etcd's members. All that
# they name is reserved: with another control plane or another exposure, the next apply writes other addresses. They go with the cluster.

locals {
  has_zone   = var.cluster.dns.provider == "route53"
  zone_is_id = length(regexall("^Z[0-9A-Z]{7,31}$", var.cluster.dns.zone)) > 0
  own_zone   = local.has_zone && var.cluster.dns.zone == "" && var.cluster.dns.private
  zone_id = (
    !local.has_zone ? "" :
    local.own_zone ? aws_route53_zone.cluster[0].zone_id :
    local.zone_is_id ? var.cluster.dns.zone : data.aws_route53_zone.named[0].zone_id
  )
  member_names  = { for name, host in var.cluster.control_plane : name => "etcd-${host.member}.${local.name}.${var.cluster.dns.domain}" }
  shows_inner   = var.cluster.dns.private || !var.cluster.api.external || !local.public
  api_addresses = local.shows_inner ? [for interface in aws_network_interface.control_plane : interface.private_ip] : values(local.public_ips)
  named         = local.outer_balanced && !var.cluster.dns.private ? ["outer"] : local.inner_balanced ? ["inner"] : []
}

# Of the cluster's name below the domain, for the cluster's VPC alone: it hides nothing else of the domain.
resource "aws_route53_zone" "cluster" {
  count   = local.own_zone ? 1 : 0
  name    = "${local.name}.${var.cluster.dns.domain}"
  comment = "Names of the Kubernetes cluster ${local.name}"
  tags    = local.tags

  vpc { vpc_id = local.vpc }
}

data "aws_route53_zone" "named" {
  count        = local.has_zone && !local.own_zone && !local.zone_is_id ? 1 : 0
  name         = var.cluster.dns.zone == "" ? var.cluster.dns.domain : var.cluster.dns.zone
  private_zone = var.cluster.dns.private
}

# A private zone that exists belongs to some other VPC so far.
resource "aws_route53_zone_association" "cluster" {
  count   = local.has_zone && !local.own_zone && var.cluster.dns.private && local.own_vpc ? 1 : 0
  zone_id = local.zone_id
  vpc_id  = local.vpc
}

resource "aws_route53_record" "api" {
  count   = local.has_zone ? 1 : 0
  zone_id = local.zone_id
  name    = var.cluster.api.host
  type    = "A"
  ttl     = length(local.named) > 0 ? null : var.cluster.dns.ttl
  records = length(local.named) > 0 ? null : local.api_addresses

  dynamic "alias" {
    for_each = local.named
    content {
      name                   = aws_lb.api[alias.value].dns_name
      zone_id                = aws_lb.api[alias.value].zone_id
      evaluate_target_health = false
    }
  }
}

resource "aws_route53_record" "member" {
  for_each = local.has_zone ? local.member_names : {}
  zone_id  = local.zone_id
  name     = each.value
  type     = "A"
  ttl      = var.cluster.dns.ttl
  records  = [aws_network_interface.control_plane[each.key].private_ip]
}
