# The API server's address: that of the first control-plane host, a load balancer's, or a name.

locals {
  balanced       = var.cluster.api.exposure == "load-balancer"
  outer_balanced = local.balanced && var.cluster.api.external
  inner_balanced = local.balanced && (var.cluster.api.internal_load_balancer || !var.cluster.api.external)
  # An address of the user's own stands in for the first host's, or for the load balancer's.
  address_is_given = var.cluster.api.static_address != ""
  first_is_given   = local.address_is_given && var.cluster.api.exposure == "static-address"

  first_inner = aws_network_interface.control_plane[local.first].private_ip
  # A public name leads to public addresses, and a host that comes to one is a stranger to the security groups: one control-plane host that is
  # alone is named to nodes by its inner address.
  by_name    = var.cluster.api.exposure == "dns" && (var.cluster.dns.private || local.several)
  public_ips = { for name, association in aws_eip_association.control_plane : name => association.public_ip }

  # For clients, and for nodes.
  api_host = (
    var.cluster.api.exposure == "dns" ? var.cluster.api.host :
    local.outer_balanced ? aws_lb.api["outer"].dns_name :
    local.inner_balanced ? aws_lb.api["inner"].dns_name :
    var.cluster.api.external && local.public ? local.public_ips[local.first] : local.first_inner
  )
  api_inner = (
    local.by_name ? var.cluster.api.host :
    local.inner_balanced ? aws_lb.api["inner"].dns_name : local.first_inner
  )

  # Several API servers have a balancer on each node before them, which needs nothing of this file. What leads to all of them inside of the
  # network is for clients there, and for nodes that were made before nodes had a balancer; one host's address leads to one.
  several         = length(var.cluster.control_plane) > 1
  has_inner_place = !local.several || local.by_name || local.inner_balanced
  api_servers     = join(",", [for host in sort(keys(var.cluster.control_plane)) : "${host}=${aws_network_interface.control_plane[host].private_ip}:${local.api_port}"])

  balancers = merge(
    local.outer_balanced ? { "outer" = { name = local.aws.names.load_balancer, role = "api", subnets = local.door_subnets } } : {},
    local.inner_balanced ? { "inner" = { name = local.aws.names.inner_load_balancer, role = "api-internal", subnets = local.host_subnets } } : {},
  )
  # An elastic address is in one zone: a load balancer that has one stands there alone.
  balancer_zones = { for which in keys(local.balancers) : which => which == "outer" && local.address_is_given ? slice(local.control_plane_zones, 0, 1) : local.control_plane_zones }
}

resource "aws_lb" "api" {
  for_each                         = local.balancers
  name                             = each.value.name
  load_balancer_type               = "network"
  internal                         = each.key == "inner"
  security_groups                  = [aws_security_group.role[each.value.role].id]
  enable_cross_zone_load_balancing = true
  enable_deletion_protection       = var.cluster.deletion_protection
  tags                             = merge(local.tags, { Name = each.value.name })

  dynamic "subnet_mapping" {
    for_each = local.balancer_zones[each.key]
    content {
      subnet_id     = each.value.subnets[subnet_mapping.value]
      allocation_id = each.key == "outer" && local.address_is_given ? var.cluster.api.static_address : null
    }
  }

  depends_on = [aws_route.public, aws_route_table_association.public, aws_route_table_association.hosts]
}

resource "aws_lb_target_group" "api" {
  for_each             = local.balancers
  name                 = each.value.name
  port                 = local.api_port
  protocol             = "TCP"
  target_type          = "ip"
  vpc_id               = local.vpc
  deregistration_delay = "60"
  # Outside, the audit log shall name who asked. Inside, a control-plane host may be sent back to itself, which only works under another
  # address than its own.
  preserve_client_ip = each.key == "outer" ? "true" : "false"
  tags               = merge(local.tags, { Name = each.value.name })

  # The API server refuses anonymous requests: turnup-healthcheck on the host answers for it, by
  # plain HTTP.
  health_check {
    protocol            = "HTTP"
    port                = tostring(var.cluster.api.health_port)
    path                = "/readyz"
    matcher             = "200"
    interval            = 10
    healthy_threshold   = 2
    unhealthy_threshold = 2
  }
}

resource "aws_lb_listener" "api" {
  for_each          = local.balancers
  load_balancer_arn = aws_lb.api[each.key].arn
  port              = local.api_port
  protocol          = "TCP"
  tags              = local.tags

  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.api[each.key].arn
  }
}

# The hosts' fixed addresses: a recreated machine is a target at once, without an update.
resource "aws_lb_target_group_attachment" "api" {
  for_each         = { for pair in setproduct(keys(local.balancers), keys(var.cluster.control_plane)) : "${pair[0]} ${pair[1]}" => { which = pair[0], host = pair[1] } }
  target_group_arn = aws_lb_target_group.api[each.value.which].arn
  target_id        = aws_network_interface.control_plane[each.value.host].private_ip
  port             = local.api_port
}
