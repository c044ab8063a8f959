# Free addresses in a VPC that exists: one block a zone for the subnets that are made there. What was chosen once stays chosen.

locals {
  seeks_blocks = !local.own_vpc && length(local.aws.subnet_ids) == 0
  vpc_prefix   = local.seeks_blocks ? tonumber(split("/", data.aws_vpc.existing[0].cidr_block)[1]) : 16
  # Blocks of 256 addresses, or quarters of a VPC that is small itself.
  block_bits = max(24 - local.vpc_prefix, 2)
  blocks     = [for place in range(local.seeks_blocks ? pow(2, local.block_bits) : 0) : cidrsubnet(data.aws_vpc.existing[0].cidr_block, local.block_bits, place)]
  taken      = [for subnet in data.aws_subnet.existing : subnet.cidr_block if subnet.cidr_block != ""]
  # Two networks share addresses when they are the same one as far as the shorter prefix goes.
  free = [
    for block in local.blocks : block if alltrue([
      for other in local.taken :
      cidrsubnet("${cidrhost(block, 0)}/${min(split("/", block)[1], split("/", other)[1])}", 0, 0) !=
      cidrsubnet("${cidrhost(other, 0)}/${min(split("/", block)[1], split("/", other)[1])}", 0, 0)
    ])
  ]
}

data "aws_vpc" "existing" {
  count = local.own_vpc ? 0 : 1
  id    = local.aws.vpc_id
}

data "aws_subnets" "existing" {
  count = local.seeks_blocks ? 1 : 0
  filter {
    name   = "vpc-id"
    values = [local.aws.vpc_id]
  }
}

data "aws_subnet" "existing" {
  for_each = local.seeks_blocks ? toset(data.aws_subnets.existing[0].ids) : toset([])
  id       = each.key
}

resource "terraform_data" "free_block" {
  for_each = local.seeks_blocks ? { for place, zone in local.zones : zone => place } : {}
  input    = try(local.free[each.value], "")

  lifecycle {
    # The subnet itself is among the taken ones at the next look.
    ignore_changes = [input]
    postcondition {
      condition     = self.output != ""
      error_message = "${local.aws.vpc_id} has no free block of addresses for the zone ${each.key}: name subnets that exist in phase1.aws.subnet_ids."
    }
  }
}
