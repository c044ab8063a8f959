# Who may connect to whom. A security group refuses what no rule allows; answers to what was allowed always come back.

locals {
  masters = aws_security_group.role["control-plane"].id
  nodes   = aws_security_group.role["node"].id
  roles = merge(
    { "control-plane" = "Control-plane hosts", "node" = "Workers" },
    var.cluster.ssh.bastion ? { "bastion" = "Bastion" } : {},
    local.outer_balanced ? { "api" = "Load balancer of the API server" } : {},
    local.inner_balanced ? { "api-internal" = "Inner load balancer of the API server" } : {},
  )

  # SSH ingress: the bastion where there is one, else the hosts themselves. API ingress: its load balancer, else the hosts.
  ssh_doors  = var.cluster.ssh.bastion ? ["bastion"] : ["control-plane", "node"]
  api_target = local.outer_balanced ? "api" : local.balanced ? "api-internal" : "control-plane"
  api_cidrs  = var.cluster.api.external ? var.cluster.api.allowed_cidrs : [local.vpc_cidr]
  ssh_port   = var.cluster.ssh.port
  api_port   = var.cluster.api.port
  # Where a control-plane host tells balancers whether its API server is ready.
  health_port = var.cluster.api.health_port

  # to: a group. from: groups. ports: the first and the last.
  between_groups = merge(
    {
      "api"           = { to = ["control-plane"], from = ["control-plane", "node"], protocol = "tcp", ports = [local.api_port, local.api_port], why = "API server for hosts and their pods" }
      "etcd"          = { to = ["control-plane"], from = ["control-plane"], protocol = "tcp", ports = [2379, 2380], why = "etcd, clients and members; workers never" }
      "kubelet"       = { to = ["control-plane", "node"], from = ["control-plane", "node"], protocol = "tcp", ports = [10250, 10250], why = "kubelet: logs and exec from the API server, metrics from pods" }
      "vxlan"         = { to = ["control-plane", "node"], from = ["control-plane", "node"], protocol = "udp", ports = [8472, 8472], why = "Pods of different hosts, in the tunnel of flannel" }
      "nodeports-tcp" = { to = ["node"], from = ["control-plane", "node"], protocol = "tcp", ports = var.cluster.networks.node_ports, why = "Node ports among hosts" }
      "nodeports-udp" = { to = ["node"], from = ["control-plane", "node"], protocol = "udp", ports = var.cluster.networks.node_ports, why = "Node ports among hosts" }
      "icmp"          = { to = ["control-plane", "node"], from = ["control-plane", "node"], protocol = "icmp", ports = [-1, -1], why = "Path MTU and reachability among hosts" }
    },
    var.cluster.ipv6 ? {
      "icmpv6" = { to = ["control-plane", "node"], from = ["control-plane", "node"], protocol = "icmpv6", ports = [-1, -1], why = "Path MTU and reachability among hosts" }
    } : {},
    local.several ? {
      "health" = { to = ["control-plane"], from = ["control-plane", "node"], protocol = "tcp", ports = [local.health_port, local.health_port], why = "Health of the API servers for the balancers of nodes" }
    } : {},
    local.outer_balanced ? {
      "api-from-balancer"    = { to = ["control-plane"], from = ["api"], protocol = "tcp", ports = [local.api_port, local.api_port], why = "API server for its load balancer" }
      "health-from-balancer" = { to = ["control-plane"], from = ["api"], protocol = "tcp", ports = [local.health_port, local.health_port], why = "Health of the API server for its load balancer" }
    } : {},
    local.inner_balanced ? {
      "api-from-inner-balancer"    = { to = ["control-plane"], from = ["api-internal"], protocol = "tcp", ports = [local.api_port, local.api_port], why = "API server for its inner load balancer" }
      "health-from-inner-balancer" = { to = ["control-plane"], from = ["api-internal"], protocol = "tcp", ports = [local.health_port, local.health_port], why = "Health of the API server for its inner load balancer" }
      "inner-balancer"             = { to = ["api-internal"], from = ["control-plane", "node"], protocol = "tcp", ports = [local.api_port, local.api_port], why = "API server for hosts and their pods" }
    } : {},
    var.cluster.ssh.bastion ? {
      "ssh-from-bastion" = { to = ["control-plane", "node"], from = ["bastion"], protocol = "tcp", ports = [local.ssh_port, local.ssh_port], why = "SSH that the bastion passes on" }
      "api-from-bastion" = { to = ["control-plane"], from = ["bastion"], protocol = "tcp", ports = [local.api_port, local.api_port], why = "kubectl through the bastion" }
    } : {},
  )
  rules = merge(
    merge([
      for name, rule in local.between_groups : {
        for pair in setproduct(rule.to, rule.from) : "${name}: ${pair[1]} to ${pair[0]}" => {
          to = pair[0], group = pair[1], cidr = null, protocol = rule.protocol, ports = rule.ports, why = rule.why
        }
      }
    ]...),
    {
      for pair in setproduct(local.ssh_doors, distinct(var.cluster.ssh.allowed_cidrs)) : "ssh: ${pair[1]} to ${pair[0]}" => {
        to = pair[0], group = null, cidr = pair[1], protocol = "tcp", ports = [local.ssh_port, local.ssh_port], why = "SSH from networks that may log in"
      }
    },
    # The load balancers have IPv4 alone: by IPv6 one comes to the hosts themselves.
    {
      for cidr in distinct(local.api_cidrs) : "api: ${cidr} to ${strcontains(cidr, ":") ? "control-plane" : local.api_target}" => {
        to = strcontains(cidr, ":") ? "control-plane" : local.api_target, group = null, cidr = cidr, protocol = "tcp", ports = [local.api_port, local.api_port], why = "API server from networks that may use it"
      }
    },
  )
}

resource "aws_security_group" "role" {
  for_each    = local.roles
  name        = "${local.name}-${each.key}"
  description = each.value
  vpc_id      = local.vpc
  # Rules that the cluster's load balancers added do not keep the group from being deleted.
  revoke_rules_on_delete = true
  tags                   = merge(local.tags, { Name = "${local.name}-${each.key}" })
}

resource "aws_vpc_security_group_ingress_rule" "allowed" {
  for_each                     = local.rules
  security_group_id            = aws_security_group.role[each.value.to].id
  description                  = each.value.why
  referenced_security_group_id = each.value.group == null ? null : aws_security_group.role[each.value.group].id
  cidr_ipv4                    = strcontains(coalesce(each.value.cidr, "-"), ":") ? null : each.value.cidr
  cidr_ipv6                    = strcontains(coalesce(each.value.cidr, "-"), ":") ? each.value.cidr : null
  ip_protocol                  = each.value.protocol
  from_port                    = each.value.ports[0]
  to_port                      = each.value.ports[1]
  tags                         = merge(local.tags, { Name = each.key })
}

# Hosts fetch images, packages and updates from wherever they are; a load balancer speaks to the control plane only.
resource "aws_vpc_security_group_egress_rule" "hosts" {
  for_each          = toset([for role in ["control-plane", "node", "bastion"] : role if contains(keys(local.roles), role)])
  security_group_id = aws_security_group.role[each.key].id
  description       = "Out to anywhere"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
  tags              = local.tags
}

resource "aws_vpc_security_group_egress_rule" "hosts_ipv6" {
  for_each          = var.cluster.ipv6 ? aws_vpc_security_group_egress_rule.hosts : {}
  security_group_id = each.value.security_group_id
  description       = "Out to anywhere"
  cidr_ipv6         = "::/0"
  ip_protocol       = "-1"
  tags              = local.tags
}

resource "aws_vpc_security_group_egress_rule" "balancers" {
  for_each                     = toset([for role in ["api", "api-internal"] : role if contains(keys(local.roles), role)])
  security_group_id            = aws_security_group.role[each.key].id
  description                  = "To the API servers"
  referenced_security_group_id = local.masters
  ip_protocol                  = "tcp"
  from_port                    = local.api_port
  to_port                      = local.api_port
  tags                         = local.tags
}

resource "aws_vpc_security_group_egress_rule" "balancers_health" {
  for_each                     = aws_vpc_security_group_egress_rule.balancers
  security_group_id            = each.value.security_group_id
  description                  = "To the health of the API servers"
  referenced_security_group_id = local.masters
  ip_protocol                  = "tcp"
  from_port                    = local.health_port
  to_port                      = local.health_port
  tags                         = local.tags
}
