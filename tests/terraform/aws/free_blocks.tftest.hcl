# Subnets in an existing VPC get free address blocks and keep them.

override_data {
  target = data.aws_vpc.existing[0]
  values = { cidr_block = "10.50.0.0/22" }
}
override_data {
  target = data.aws_subnets.existing[0]
  values = { ids = ["subnet-1", "subnet-2"] }
}
override_data {
  target = data.aws_subnet.existing["subnet-1"]
  values = { cidr_block = "10.50.0.0/25" }
}
override_data {
  target = data.aws_subnet.existing["subnet-2"]
  values = { cidr_block = "10.50.2.64/28" }
}

run "chooses" {
  assert {
    condition     = [aws_subnet.hosts["us-east-1a"].cidr_block, aws_subnet.hosts["us-east-1b"].cidr_block] == ["10.50.1.0/24", "10.50.3.0/24"]
    error_message = "blocks: ${jsonencode({ for zone, subnet in aws_subnet.hosts : zone => subnet.cidr_block })}"
  }
  assert {
    condition     = length(aws_internet_gateway.cluster) + length(aws_nat_gateway.cluster) + length(aws_route_table.public) == 0
    error_message = "gateways and routes of a VPC that exists are its owner's"
  }
}

run "stays" {
  override_data {
    target = data.aws_subnet.existing["subnet-2"]
    values = { cidr_block = "10.50.1.0/24" }
  }
  assert {
    condition     = aws_subnet.hosts["us-east-1a"].cidr_block == "10.50.1.0/24"
    error_message = "moved to ${aws_subnet.hosts["us-east-1a"].cidr_block}"
  }
}
