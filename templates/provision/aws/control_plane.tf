# Control-plane hosts: each an Auto Scaling group of size 1 in its zone, which replaces a dead
# machine behind the same network interface; and the volumes of etcd, made apart from the machines.
# `turnup up` attaches them, also to a recreated machine.

locals {
  # One volume a member: a machine with more than one could not say which is its own.
  volumes = {
    for one in var.cluster.control_plane : "main-${one.member}" => {
      member = one.member, zone = one.zone, name = "${one.member}.etcd-main.${local.name}"
    }
  }
  members = join(",", sort(var.cluster.etcd.members))
}

resource "aws_ebs_volume" "etcd" {
  for_each          = local.volumes
  availability_zone = each.value.zone
  size              = var.cluster.etcd.volume.size_gb
  type              = var.cluster.etcd.volume.type
  iops              = local.aws.etcd_volume_iops
  encrypted         = var.cluster.etcd.volume.encrypted
  kms_key_id        = var.cluster.etcd.volume.kms_key == "" ? null : var.cluster.etcd.volume.kms_key
  tags = merge(local.tags, local.control_plane_tags, {
    Name               = each.value.name
    "k8s.io/etcd/main" = "${each.value.member}/${local.members}"
  })

  # What EBS could change only by making another, empty volume is never changed here: etcd's data is on this one.
  lifecycle {
    ignore_changes = [availability_zone, encrypted, kms_key_id, snapshot_id]
    postcondition {
      condition     = self.availability_zone == each.value.zone
      error_message = "etcd's volume ${self.id} stays in its zone ${self.availability_zone}: give the zones of the control plane (phase1.control_plane.zones, phase1.aws.zones) in the order they had."
    }
    postcondition {
      condition     = self.encrypted == var.cluster.etcd.volume.encrypted
      error_message = "etcd's volume ${self.id} cannot change whether it is encrypted: set phase1.etcd_volume.encrypted as it was."
    }
    postcondition {
      condition     = var.cluster.etcd.volume.kms_key == "" || self.kms_key_id == var.cluster.etcd.volume.kms_key
      error_message = "etcd's volume ${self.id} stays encrypted with ${self.kms_key_id}: set phase1.etcd_volume.kms_key as it was."
    }
  }
}

# The host's fixed inner address. It outlives the machine, so a replacement is found where the dead one was.
resource "aws_network_interface" "control_plane" {
  for_each        = var.cluster.control_plane
  description     = "Control-plane host ${each.key}"
  subnet_id       = local.host_subnets[each.value.zone]
  security_groups = concat([local.masters], local.aws.security_groups)
  # It stays with the interface, as the inner address does.
  ipv6_address_count = var.cluster.ipv6 ? 1 : 0
  tags               = merge(local.tags, local.control_plane_tags, { Name = each.key })
}

# And its public one, where hosts have such.
resource "aws_eip" "control_plane" {
  for_each   = { for name, host in var.cluster.control_plane : name => host if local.public && !(name == local.first && local.first_is_given) }
  domain     = "vpc"
  tags       = merge(local.tags, { Name = each.key })
  depends_on = [aws_internet_gateway.cluster]
}

resource "aws_eip_association" "control_plane" {
  for_each             = local.public ? var.cluster.control_plane : {}
  network_interface_id = aws_network_interface.control_plane[each.key].id
  allocation_id        = each.key == local.first && local.first_is_given ? var.cluster.api.static_address : aws_eip.control_plane[each.key].id
}

resource "aws_launch_template" "control_plane" {
  for_each                = var.cluster.control_plane
  name                    = each.key
  description             = "Control-plane host ${each.key}, Kubernetes ${var.cluster.kubernetes_version}"
  update_default_version  = true
  image_id                = local.images[each.value.image == "" ? local.architectures[each.value.machine_type] : each.value.image].id
  instance_type           = each.value.machine_type
  key_name                = local.key_pair
  user_data               = local.user_data["control-plane/${each.key}"]
  disable_api_termination = var.cluster.deletion_protection
  tags                    = merge(local.tags, { Name = each.key })

  iam_instance_profile { name = local.control_plane_profile }

  # Security groups and addresses are the interface's.
  network_interfaces {
    device_index          = 0
    network_interface_id  = aws_network_interface.control_plane[each.key].id
    delete_on_termination = "false"
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

  # Requests to the metadata service need a session, whose answer reaches the host and nothing behind it.
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

  tag_specifications {
    resource_type = "volume"
    tags          = merge(local.tags, { Name = "${each.key}-root" })
  }

  lifecycle {
    precondition {
      condition     = local.user_data["control-plane/${each.key}"] == null || length(coalesce(local.user_data["control-plane/${each.key}"], "-")) <= local.longest_user_data
      error_message = "The user data of ${each.key} is larger than EC2's 16 KiB."
    }
  }
}

# By zone and not by subnet: that is how Auto Scaling takes an interface that exists. A new template is for the next machine: nothing takes
# a control-plane host down by itself. Who wants it sooner ends one machine, and the next one only when this one is a node again
# (docs/aws.md). And never two at once: both would have the one interface.
resource "aws_autoscaling_group" "control_plane" {
  for_each           = var.cluster.control_plane
  name               = each.key
  availability_zones = [each.value.zone]
  min_size           = 1
  max_size           = 1
  desired_capacity   = 1
  health_check_type  = "EC2"

  launch_template {
    id      = aws_launch_template.control_plane[each.key].id
    version = aws_launch_template.control_plane[each.key].latest_version
  }

  instance_maintenance_policy {
    min_healthy_percentage = 0
    max_healthy_percentage = 100
  }

  dynamic "tag" {
    for_each = merge(local.tags, local.control_plane_tags, { Name = each.key, "k8s.io/member" = each.value.member })
    content {
      key                 = tag.key
      value               = tag.value
      propagate_at_launch = true
    }
  }

  # A machine finds its way out, its rights, its volume and its address when it starts.
  depends_on = [
    aws_iam_role_policy.control_plane, aws_ebs_volume.etcd, aws_eip_association.control_plane, aws_route.public, aws_route.nat,
    aws_route.public_ipv6, aws_route.egress_ipv6, aws_route_table_association.hosts, aws_vpc_dhcp_options_association.cluster,
    aws_vpc_security_group_egress_rule.hosts, aws_vpc_security_group_ingress_rule.allowed,
  ]
}
