# Groups of workers: a launch template and an Auto Scaling group each. Every group is an object of its own, so that changing one touches no
# other. A change is another version of the template, for hosts that are made from then on: turnup drains hosts of an older one and tells them to
# power off, and the group makes others.

locals {
  # In public subnets an IPv6 address would be a public one: a group that shall have none has none of IPv6 either.
  group_ipv6 = { for name, group in var.cluster.groups : name => var.cluster.ipv6 && (group.public_address || !local.public) }

  # The provider takes 125 characters, and two long names with the dot have 127 alone.
  template_names = {
    for name in keys(var.cluster.groups) : name =>
    length("${name}.${local.name}") <= 125 ? "${name}.${local.name}" : "${substr("${name}.${local.name}", 0, 118)}-${substr(sha256("${name}.${local.name}"), 0, 6)}"
  }

  # The cluster autoscaler finds its groups, and what a new host of an empty one would be like, by tags.
  autoscaler_tags = {
    for name, group in var.cluster.groups : name => group.max == null ? {} : merge(
      { "k8s.io/cluster-autoscaler/enabled" = "true", "k8s.io/cluster-autoscaler/${local.name}" = "owned" },
      { for key, value in group.labels : "k8s.io/cluster-autoscaler/node-template/label/${key}" => value },
      # KEY=VALUE:EFFECT stands there as KEY: VALUE:EFFECT.
      {
        for taint in group.taints : "k8s.io/cluster-autoscaler/node-template/taint/${regex("^[^=:]+", taint)}" =>
        strcontains(taint, "=") ? regex("=(.*)$", taint)[0] : regex("(:[^:]+)$", taint)[0]
      },
    )
  }
}

resource "aws_launch_template" "group" {
  for_each               = var.cluster.groups
  name                   = local.template_names[each.key]
  description            = "Hosts of the group ${each.key}, Kubernetes ${var.cluster.kubernetes_version}"
  update_default_version = true
  image_id               = local.images[each.value.image == "" ? local.architectures[each.value.machine_type] : each.value.image].id
  instance_type          = each.value.machine_type
  key_name               = local.key_pair
  user_data              = local.user_data[each.key]
  # A host that is told to end powers itself off.
  instance_initiated_shutdown_behavior = "terminate"
  tags                                 = merge(local.tags, each.value.tags, { Name = "${each.key}.${local.name}" })

  iam_instance_profile { name = local.node_profile }

  network_interfaces {
    device_index                = 0
    associate_public_ip_address = tostring(each.value.public_address)
    ipv6_address_count          = local.group_ipv6[each.key] ? 1 : null
    security_groups             = concat([local.nodes], local.aws.security_groups)
    delete_on_termination       = "true"
  }

  block_device_mappings {
    device_name = local.images[each.value.image == "" ? local.architectures[each.value.machine_type] : each.value.image].root
    ebs {
      volume_size           = each.value.disk_gb
      volume_type           = each.value.disk_type
      iops                  = each.value.disk_type == "gp2" ? null : local.aws.disk_iops
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

  monitoring { enabled = local.aws.detailed_monitoring }

  dynamic "credit_specification" {
    for_each = startswith(each.value.machine_type, "t") && !startswith(each.value.machine_type, "trn") ? [local.aws.cpu_credits] : []
    content { cpu_credits = credit_specification.value }
  }

  dynamic "instance_market_options" {
    for_each = each.value.spot ? [true] : []
    content { market_type = "spot" }
  }

  tag_specifications {
    resource_type = "volume"
    tags          = merge(local.tags, each.value.tags, { Name = "${each.key}.${local.name}" })
  }

  lifecycle {
    # Its group uses one until the other is there.
    create_before_destroy = true

    precondition {
      condition     = local.user_data[each.key] == null || length(coalesce(local.user_data[each.key], "-")) <= local.longest_user_data
      error_message = "The user data of the group ${each.key} is larger than EC2's 16 KiB."
    }
  }
}

resource "aws_autoscaling_group" "group" {
  for_each            = var.cluster.groups
  name                = "${each.key}.${local.name}"
  vpc_zone_identifier = [for zone in sort(each.value.zones) : local.host_subnets[zone]]
  # A group without max has the one size: Auto Scaling itself follows when both bounds move.
  min_size           = each.value.max == null ? each.value.size : coalesce(each.value.min, 0)
  max_size           = each.value.max == null ? each.value.size : each.value.max
  desired_capacity   = each.value.size
  health_check_type  = "EC2"
  capacity_rebalance = each.value.spot
  # Workers come by themselves, now or after the control plane; who waits for them is the step that needs them.
  wait_for_capacity_timeout = "0"

  launch_template {
    id      = aws_launch_template.group[each.key].id
    version = "$Latest"
  }

  dynamic "tag" {
    for_each = merge(local.tags, local.node_tags, local.autoscaler_tags[each.key], each.value.tags, { Name = "${each.key}.${local.name}", "k8s.io/group" = each.key })
    content {
      key                 = tag.key
      value               = tag.value
      propagate_at_launch = !startswith(tag.key, "k8s.io/cluster-autoscaler/")
    }
  }

  # An autoscaler or the user sizes a group with max; a group without it is sized by its bounds.
  lifecycle { ignore_changes = [desired_capacity] }

  depends_on = [
    aws_iam_role_policy.node, aws_route.public, aws_route.nat, aws_route.public_ipv6, aws_route.egress_ipv6, aws_route_table_association.hosts,
    aws_vpc_dhcp_options_association.cluster, aws_vpc_security_group_egress_rule.hosts, aws_vpc_security_group_ingress_rule.allowed,
  ]
}
