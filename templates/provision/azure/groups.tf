# Groups of workers: a scale set each. Every group is an object of its own, so that changing one touches no other. Those whose hosts have public
# addresses are in public_groups.tf.

locals {
  # A group with a greatest size is sized in the cloud after it was made, by the user or an
  # autoscaler.
  fixed_groups   = { for name, group in local.groups : name => group if group.max == null && !group.public_address }
  scaling_groups = { for name, group in local.groups : name => group if group.max != null && !group.public_address }

  groups = {
    for name, group in var.cluster.groups : name => merge(group, {
      resource = local.azure.names.groups[name]
      # Without user data another tool makes the host a node, and the time until it is healthy is
      # unknown.
      judged = contains(local.told, name)
      # How many percent may be away at once; Azure takes 5 to 100.
      batch = min(100, max(5, ceil(100 * max(group.max_surge, group.max_unavailable, 1) / max(group.size, 1))))
      tags = merge(local.tags, group.tags, {
        "Name"                      = local.azure.names.groups[name]
        "k8s.io_role_node"          = "1"
        "kops.k8s.io_instancegroup" = name
        "kubernetes-version"        = var.cluster.kubernetes_version
        }, group.max == null ? {} : {
        "cluster-autoscaler-enabled" = "true"
        "cluster-autoscaler-name"    = var.cluster.name
        "min"                        = tostring(coalesce(group.min, 0))
        "max"                        = tostring(group.max)
        },
        # An autoscaler, of which turnup brings none, learns here what a host of an empty group would be. It reads _ as /, and ~2 as _.
        { for key, value in group.labels : "k8s.io_cluster-autoscaler_node-template_label_${replace(replace(key, "_", "~2"), "/", "_")}" => value },
        {
          for taint in group.taints :
          "k8s.io_cluster-autoscaler_node-template_taint_${replace(replace(split("=", split(":", taint)[0])[0], "_", "~2"), "/", "_")}" =>
          "${try(split("=", split(":", taint)[0])[1], "")}:${split(":", taint)[1]}"
        },
      )
    })
  }
}

# The two kinds differ in one line: who has the last word on the size.
resource "azurerm_linux_virtual_machine_scale_set" "fixed" {
  for_each                   = local.fixed_groups
  name                       = each.value.resource
  computer_name_prefix       = "${each.value.resource}-"
  resource_group_name        = local.group
  location                   = local.location
  zones                      = length(each.value.zones) == 0 ? null : each.value.zones
  sku                        = each.value.machine_type
  instances                  = each.value.size
  admin_username             = var.cluster.ssh.user
  encryption_at_host_enabled = local.azure.encryption_at_host
  # Not user_data: every process of the machine can read that at the metadata service. A change is for machines that are made from then on.
  custom_data     = contains(local.told, each.key) ? base64encode(local.user_data[each.key]) : null
  source_image_id = startswith(each.value.image, "/") ? each.value.image : null
  # One host too many, made and taken away again, would be a node that comes and goes.
  overprovision = false
  # More than 100 hosts.
  single_placement_group = false
  # Spread over as many racks of a zone as there are.
  platform_fault_domain_count = length(each.value.zones) == 0 ? null : 1
  upgrade_mode                = each.value.judged ? "Rolling" : "Manual"
  priority                    = each.value.spot ? "Spot" : "Regular"
  eviction_policy             = each.value.spot ? "Delete" : null
  tags                        = each.value.tags

  dynamic "source_image_reference" {
    for_each = startswith(each.value.image, "/") ? [] : [split(":", each.value.image)]
    content {
      publisher = source_image_reference.value[0]
      offer     = source_image_reference.value[1]
      sku       = source_image_reference.value[2]
      version   = source_image_reference.value[3]
    }
  }

  dynamic "admin_ssh_key" {
    for_each = toset(var.cluster.ssh.authorized_keys)
    content {
      username   = var.cluster.ssh.user
      public_key = admin_ssh_key.value
    }
  }

  os_disk {
    caching              = "ReadWrite"
    disk_size_gb         = each.value.disk_gb
    storage_account_type = each.value.disk_type
  }

  network_interface {
    name                           = "host"
    primary                        = true
    accelerated_networking_enabled = local.azure.accelerated_networking
    ip_forwarding_enabled          = true

    ip_configuration {
      name                           = "host"
      primary                        = true
      subnet_id                      = azurerm_subnet.hosts.id
      application_security_group_ids = [azurerm_application_security_group.node.id]
    }

    dynamic "ip_configuration" {
      for_each = local.host_ipv6
      content {
        name      = ip_configuration.value
        subnet_id = azurerm_subnet.hosts.id
        version   = "IPv6"
      }
    }
  }

  identity {
    type         = "UserAssigned"
    identity_ids = [local.node_identity]
  }

  boot_diagnostics {}

  # Asked on the host itself: does kubelet say that it is well?
  dynamic "extension" {
    for_each = each.value.judged ? [true] : []
    content {
      name                       = "kubelet-health"
      publisher                  = "Microsoft.ManagedServices"
      type                       = "ApplicationHealthLinux"
      type_handler_version       = "1.0"
      auto_upgrade_minor_version = true
      settings                   = jsonencode({ protocol = "http", port = 10248, requestPath = "/healthz" })
    }
  }

  # Another image or machine type: so many hosts at a time, and on only while they come up well.
  dynamic "rolling_upgrade_policy" {
    for_each = each.value.judged ? [each.value.batch] : []
    content {
      max_batch_instance_percent              = rolling_upgrade_policy.value
      max_unhealthy_instance_percent          = max(20, rolling_upgrade_policy.value)
      max_unhealthy_upgraded_instance_percent = 20
      pause_time_between_batches              = "PT1M"
      prioritize_unhealthy_instances_enabled  = true
      maximum_surge_instances_enabled         = each.value.max_surge > 0
    }
  }

  # A dead host is recreated. The time is enough to fetch everything and to join; a spot machine is
  # taken back, not dead.
  dynamic "automatic_instance_repair" {
    for_each = each.value.judged && !each.value.spot ? [true] : []
    content {
      enabled      = true
      action       = "Replace"
      grace_period = "PT30M"
    }
  }

  # Machines that were taken back come again when there is room.
  dynamic "spot_restore" {
    for_each = each.value.spot ? [true] : []
    content {
      enabled = true
      timeout = "PT1H"
    }
  }

  lifecycle {
    precondition {
      condition     = length(each.value.tags) <= 50
      error_message = "Azure takes at most 50 tags: those of the cluster and of the group ${each.key}, its labels and its taints are more."
    }
  }

  # The control plane's addresses are taken before Azure chooses any; and no host stands in the subnet before it is closed.
  depends_on = [azurerm_network_interface.control_plane, azurerm_subnet_network_security_group_association.hosts, azurerm_lb.api_inner]
}

resource "azurerm_linux_virtual_machine_scale_set" "scaling" {
  for_each                   = local.scaling_groups
  name                       = each.value.resource
  computer_name_prefix       = "${each.value.resource}-"
  resource_group_name        = local.group
  location                   = local.location
  zones                      = length(each.value.zones) == 0 ? null : each.value.zones
  sku                        = each.value.machine_type
  instances                  = each.value.size
  admin_username             = var.cluster.ssh.user
  encryption_at_host_enabled = local.azure.encryption_at_host
  # Not user_data: every process of the machine can read that at the metadata service. A change is for machines that are made from then on.
  custom_data     = contains(local.told, each.key) ? base64encode(local.user_data[each.key]) : null
  source_image_id = startswith(each.value.image, "/") ? each.value.image : null
  # One host too many, made and taken away again, would be a node that comes and goes.
  overprovision = false
  # More than 100 hosts.
  single_placement_group = false
  # Spread over as many racks of a zone as there are.
  platform_fault_domain_count = length(each.value.zones) == 0 ? null : 1
  upgrade_mode                = each.value.judged ? "Rolling" : "Manual"
  priority                    = each.value.spot ? "Spot" : "Regular"
  eviction_policy             = each.value.spot ? "Delete" : null
  tags                        = each.value.tags

  dynamic "source_image_reference" {
    for_each = startswith(each.value.image, "/") ? [] : [split(":", each.value.image)]
    content {
      publisher = source_image_reference.value[0]
      offer     = source_image_reference.value[1]
      sku       = source_image_reference.value[2]
      version   = source_image_reference.value[3]
    }
  }

  dynamic "admin_ssh_key" {
    for_each = toset(var.cluster.ssh.authorized_keys)
    content {
      username   = var.cluster.ssh.user
      public_key = admin_ssh_key.value
    }
  }

  os_disk {
    caching              = "ReadWrite"
    disk_size_gb         = each.value.disk_gb
    storage_account_type = each.value.disk_type
  }

  network_interface {
    name                           = "host"
    primary                        = true
    accelerated_networking_enabled = local.azure.accelerated_networking
    ip_forwarding_enabled          = true

    ip_configuration {
      name                           = "host"
      primary                        = true
      subnet_id                      = azurerm_subnet.hosts.id
      application_security_group_ids = [azurerm_application_security_group.node.id]
    }

    dynamic "ip_configuration" {
      for_each = local.host_ipv6
      content {
        name      = ip_configuration.value
        subnet_id = azurerm_subnet.hosts.id
        version   = "IPv6"
      }
    }
  }

  identity {
    type         = "UserAssigned"
    identity_ids = [local.node_identity]
  }

  boot_diagnostics {}

  # Asked on the host itself: does kubelet say that it is well?
  dynamic "extension" {
    for_each = each.value.judged ? [true] : []
    content {
      name                       = "kubelet-health"
      publisher                  = "Microsoft.ManagedServices"
      type                       = "ApplicationHealthLinux"
      type_handler_version       = "1.0"
      auto_upgrade_minor_version = true
      settings                   = jsonencode({ protocol = "http", port = 10248, requestPath = "/healthz" })
    }
  }

  # Another image or machine type: so many hosts at a time, and on only while they come up well.
  dynamic "rolling_upgrade_policy" {
    for_each = each.value.judged ? [each.value.batch] : []
    content {
      max_batch_instance_percent              = rolling_upgrade_policy.value
      max_unhealthy_instance_percent          = max(20, rolling_upgrade_policy.value)
      max_unhealthy_upgraded_instance_percent = 20
      pause_time_between_batches              = "PT1M"
      prioritize_unhealthy_instances_enabled  = true
      maximum_surge_instances_enabled         = each.value.max_surge > 0
    }
  }

  # A dead host is recreated. The time is enough to fetch everything and to join; a spot machine is
  # taken back, not dead.
  dynamic "automatic_instance_repair" {
    for_each = each.value.judged && !each.value.spot ? [true] : []
    content {
      enabled      = true
      action       = "Replace"
      grace_period = "PT30M"
    }
  }

  # Machines that were taken back come again when there is room.
  dynamic "spot_restore" {
    for_each = each.value.spot ? [true] : []
    content {
      enabled = true
      timeout = "PT1H"
    }
  }

  lifecycle {
    ignore_changes = [instances]

    precondition {
      condition     = length(each.value.tags) <= 50
      error_message = "Azure takes at most 50 tags: those of the cluster and of the group ${each.key}, its labels and its taints are more."
    }
  }

  # The control plane's addresses are taken before Azure chooses any; and no host stands in the subnet before it is closed.
  depends_on = [azurerm_network_interface.control_plane, azurerm_subnet_network_security_group_association.hosts, azurerm_lb.api_inner]
}
