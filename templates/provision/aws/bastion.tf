# The only SSH ingress to hosts that are not to be reached from outside. It has no role: it holds nothing and may do nothing in the account.

locals {
  bastions = var.cluster.ssh.bastion ? { "${local.name}-bastion" = var.cluster.control_plane[local.first].zone } : {}
}

resource "aws_network_interface" "bastion" {
  for_each           = local.bastions
  description        = "Bastion of ${local.name}"
  subnet_id          = local.door_subnets[each.value]
  security_groups    = [aws_security_group.role["bastion"].id]
  ipv6_address_count = var.cluster.ipv6 ? 1 : 0
  tags               = merge(local.tags, { Name = each.key })
}

resource "aws_eip" "bastion" {
  for_each   = local.bastions
  domain     = "vpc"
  tags       = merge(local.tags, { Name = each.key })
  depends_on = [aws_internet_gateway.cluster]
}

resource "aws_eip_association" "bastion" {
  for_each             = local.bastions
  network_interface_id = aws_network_interface.bastion[each.key].id
  allocation_id        = aws_eip.bastion[each.key].id
}

resource "aws_launch_template" "bastion" {
  for_each               = local.bastions
  name                   = each.key
  description            = "Bastion of ${local.name}"
  update_default_version = true
  image_id               = local.images[local.bastion_image == "" ? local.architectures[var.cluster.ssh.bastion_machine_type] : local.bastion_image].id
  instance_type          = var.cluster.ssh.bastion_machine_type
  key_name               = local.key_pair
  user_data              = local.user_data[""]
  tags                   = merge(local.tags, { Name = each.key })

  network_interfaces {
    device_index          = 0
    network_interface_id  = aws_network_interface.bastion[each.key].id
    delete_on_termination = "false"
  }

  block_device_mappings {
    device_name = local.images[local.bastion_image == "" ? local.architectures[var.cluster.ssh.bastion_machine_type] : local.bastion_image].root
    # As large as the image.
    ebs {
      volume_type           = "gp3"
      encrypted             = tostring(local.aws.disk_encrypted)
      kms_key_id            = local.aws.disk_kms_key == "" ? null : local.aws.disk_kms_key
      delete_on_termination = "true"
    }
  }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  tag_specifications {
    resource_type = "volume"
    tags          = merge(local.tags, { Name = each.key })
  }
}

resource "aws_autoscaling_group" "bastion" {
  for_each           = local.bastions
  name               = each.key
  availability_zones = [each.value]
  min_size           = 1
  max_size           = 1
  desired_capacity   = 1
  health_check_type  = "EC2"

  launch_template {
    id      = aws_launch_template.bastion[each.key].id
    version = aws_launch_template.bastion[each.key].latest_version
  }

  instance_maintenance_policy {
    min_healthy_percentage = 0
    max_healthy_percentage = 100
  }

  dynamic "tag" {
    for_each = merge(local.tags, { Name = each.key, "k8s.io/role/bastion" = "1" })
    content {
      key                 = tag.key
      value               = tag.value
      propagate_at_launch = true
    }
  }

  depends_on = [
    aws_eip_association.bastion, aws_route.public, aws_route.public_ipv6, aws_route_table_association.public, aws_route_table_association.hosts,
    aws_vpc_security_group_egress_rule.hosts, aws_vpc_security_group_ingress_rule.allowed,
  ]
}
