# The VPC with a subnet in each zone, or those that exist. In a VPC that exists egress is its owner's: neither gateways nor routes
# are made there, and subnets made there follow its main route table.

locals {
  own_vpc  = local.aws.vpc_id == ""
  vpc      = local.own_vpc ? aws_vpc.cluster[0].id : local.aws.vpc_id
  vpc_cidr = local.own_vpc ? local.aws.vpc_cidr : data.aws_vpc.existing[0].cidr_block

  # The VPC is cut into eight. The first eighth holds small public subnets for gateways, bastion and load balancers; a zone's hosts have the
  # eighth of its letter, so that adding a zone moves no host.
  letters    = ["a", "b", "c", "d", "e", "f", "g"]
  own_zones  = local.own_vpc ? { for zone in local.zones : zone => index(local.letters, substr(zone, -1, 1)) } : {}
  door_zones = local.public ? {} : local.own_zones
  host_cidrs = merge(
    { for zone, place in local.own_zones : zone => cidrsubnet(local.aws.vpc_cidr, 3, place + 1) },
    { for zone, block in terraform_data.free_block : zone => block.output },
  )

  # By zone: where hosts stand, and where what the internet reaches stands.
  host_subnets = merge(local.aws.subnet_ids, { for zone, subnet in aws_subnet.hosts : zone => subnet.id })
  door_subnets = (
    local.public ? local.host_subnets :
    local.own_vpc ? { for zone, subnet in aws_subnet.public : zone => subnet.id } : local.aws.public_subnet_ids
  )

  # Each subnet that is made has a /64 of the VPC's /56: hosts those of the zones' letters, public ones the eight behind them. Private hosts go out
  # by IPv6 where they go out at all, and no connection comes in.
  own_ipv6 = local.own_vpc && var.cluster.ipv6
  egress   = local.own_ipv6 && !local.public && local.aws.nat_gateways != "none"

  nat_zones = (
    !local.own_vpc || local.public || local.aws.nat_gateways == "none" ? [] :
    local.aws.nat_gateways == "one" ? slice(local.zones, 0, 1) : local.zones
  )
}

resource "aws_vpc" "cluster" {
  count                            = local.own_vpc ? 1 : 0
  cidr_block                       = local.aws.vpc_cidr
  assign_generated_ipv6_cidr_block = var.cluster.ipv6
  enable_dns_support               = true
  enable_dns_hostnames             = true
  tags                             = merge(local.tags, { Name = local.name })
}

resource "aws_vpc_dhcp_options" "cluster" {
  count               = local.own_vpc ? 1 : 0
  domain_name         = local.aws.region == "us-east-1" ? "ec2.internal" : "${local.aws.region}.compute.internal"
  domain_name_servers = ["AmazonProvidedDNS"]
  tags                = merge(local.tags, { Name = local.name })
}

resource "aws_vpc_dhcp_options_association" "cluster" {
  count           = local.own_vpc ? 1 : 0
  vpc_id          = local.vpc
  dhcp_options_id = aws_vpc_dhcp_options.cluster[0].id
}

resource "aws_internet_gateway" "cluster" {
  count  = local.own_vpc ? 1 : 0
  vpc_id = local.vpc
  tags   = merge(local.tags, { Name = local.name })
}

resource "aws_egress_only_internet_gateway" "cluster" {
  count  = local.egress ? 1 : 0
  vpc_id = local.vpc
  tags   = merge(local.tags, { Name = local.name })
}

# Of subnets that exist, those in which something shall get an IPv6 address.
data "aws_subnet" "given" {
  for_each = local.own_vpc || !var.cluster.ipv6 ? {} : merge(
    { for zone, subnet in local.aws.subnet_ids : zone => subnet if contains(local.zones, zone) },
    { for name, zone in local.bastions : name => local.aws.public_subnet_ids[zone] if !local.public },
  )
  id = each.value

  lifecycle {
    postcondition {
      condition     = self.ipv6_cidr_block != ""
      error_message = "The subnet ${each.value} (${each.key}) has no IPv6 addresses: aws ec2 associate-subnet-cidr-block, or set phase1.network.ipv6=n."
    }
  }
}

resource "aws_subnet" "hosts" {
  for_each          = length(local.aws.subnet_ids) > 0 ? {} : { for zone in local.zones : zone => zone }
  vpc_id            = local.vpc
  availability_zone = each.key
  cidr_block        = local.host_cidrs[each.key]
  ipv6_cidr_block   = local.own_ipv6 ? cidrsubnet(aws_vpc.cluster[0].ipv6_cidr_block, 8, local.own_zones[each.key] + 1) : null
  # Who gets a public address is said by host and group, not by the subnet.
  map_public_ip_on_launch = false
  tags = merge(local.tags, {
    Name                                                          = "${local.name}-hosts-${each.key}"
    "kubernetes.io/role/${local.public ? "elb" : "internal-elb"}" = "1"
  })

  # A zone is taken off the groups before its subnet goes.
  lifecycle { create_before_destroy = true }
}

resource "aws_subnet" "public" {
  for_each                = local.door_zones
  vpc_id                  = local.vpc
  availability_zone       = each.key
  cidr_block              = cidrsubnet(cidrsubnet(local.aws.vpc_cidr, 3, 0), 3, each.value + 1)
  ipv6_cidr_block         = local.own_ipv6 ? cidrsubnet(aws_vpc.cluster[0].ipv6_cidr_block, 8, each.value + 9) : null
  map_public_ip_on_launch = false
  tags                    = merge(local.tags, { Name = "${local.name}-public-${each.key}", "kubernetes.io/role/elb" = "1" })

  # And off the load balancers.
  lifecycle { create_before_destroy = true }
}

# The way to the internet: straight for what has a public address, through NAT for what has none.
resource "aws_route_table" "public" {
  count  = local.own_vpc ? 1 : 0
  vpc_id = local.vpc
  tags   = merge(local.tags, { Name = "${local.name}-public" })
}

resource "aws_route" "public" {
  count                  = local.own_vpc ? 1 : 0
  route_table_id         = aws_route_table.public[0].id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.cluster[0].id
}

resource "aws_route" "public_ipv6" {
  count                       = local.own_ipv6 ? 1 : 0
  route_table_id              = aws_route_table.public[0].id
  destination_ipv6_cidr_block = "::/0"
  gateway_id                  = aws_internet_gateway.cluster[0].id
}

resource "aws_route_table" "private" {
  for_each = local.door_zones
  vpc_id   = local.vpc
  tags     = merge(local.tags, { Name = "${local.name}-private-${each.key}" })
}

resource "aws_eip" "nat" {
  for_each   = toset(local.nat_zones)
  domain     = "vpc"
  tags       = merge(local.tags, { Name = "${local.name}-nat-${each.key}" })
  depends_on = [aws_internet_gateway.cluster]
}

resource "aws_nat_gateway" "cluster" {
  for_each      = toset(local.nat_zones)
  allocation_id = aws_eip.nat[each.key].id
  subnet_id     = aws_subnet.public[each.key].id
  tags          = merge(local.tags, { Name = "${local.name}-${each.key}" })
  depends_on    = [aws_route.public]
}

resource "aws_route" "nat" {
  for_each               = length(local.nat_zones) == 0 ? {} : local.door_zones
  route_table_id         = aws_route_table.private[each.key].id
  destination_cidr_block = "0.0.0.0/0"
  nat_gateway_id         = aws_nat_gateway.cluster[local.aws.nat_gateways == "one" ? local.nat_zones[0] : each.key].id
}

# An address of IPv6 is one of the internet: this gateway lets hosts out and lets no connection in.
resource "aws_route" "egress_ipv6" {
  for_each                    = local.egress ? local.door_zones : {}
  route_table_id              = aws_route_table.private[each.key].id
  destination_ipv6_cidr_block = "::/0"
  egress_only_gateway_id      = aws_egress_only_internet_gateway.cluster[0].id
}

resource "aws_route_table_association" "hosts" {
  for_each       = local.own_zones
  subnet_id      = aws_subnet.hosts[each.key].id
  route_table_id = local.public ? aws_route_table.public[0].id : aws_route_table.private[each.key].id
}

resource "aws_route_table_association" "public" {
  for_each       = local.door_zones
  subnet_id      = aws_subnet.public[each.key].id
  route_table_id = aws_route_table.public[0].id
}
