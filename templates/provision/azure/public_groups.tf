# Groups of workers with public addresses. The scale sets of groups.tf would give their hosts addresses of the kind Basic, which Azure makes no
# more, and have no field for another one. These (orchestration mode Flexible) do; they bring no spot machine back by themselves.

locals {
  public_fixed_groups   = { for name, group in local.groups : name => group if group.max == null && group.public_address }
  public_scaling_groups = { for name, group in local.groups : name => group if group.max != null && group.public_address }
}

resource "azurerm_orchestrated_virtual_machine_scale_set" "public_fixed" {
  for_each                    = local.public_fixed_groups
  name                        = each.value.resource
  resource_group_name         = local.group
  location                    = local.location
  zones                       = length(each.value.zones) == 0 ? null : each.value.zones
  platform_fault_domain_count = 1
  sku_name                    = each.value.machine_type
  instances                   = each.value.size
  encryption_at_host_enabled  = local.azure.encryption_at_host
  source_image_id             = startswith(each.value.image, "/") ? each.value.image : null
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

  os_profile {
    custom_data = contains(local.told, each.key) ? base64encode(local.user_data[each.key]) : null

    linux_configuration {
      computer_name_prefix = "${each.value.resource}-"
      admin_username       = var.cluster.ssh.user

      dynamic "admin_ssh_key" {
        for_each = toset(var.cluster.ssh.authorized_keys)
        content {
          username   = var.cluster.ssh.user
          public_key = admin_ssh_key.value
        }
      }
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

      public_ip_address {
        name     = "host"
        sku_name = "Standard_Regional"
      }
    }

    dynamic "ip_configuration" {
      for_each = local.host_ipv6
      content {
        name      = ip_configuration.value
        subnet_id = azurerm_subnet.hosts.id
        version   = "IPv6"

        public_ip_address {
          name     = ip_configuration.value
          sku_name = "Standard_Regional"
          version  = "IPv6"
        }
      }
    }
  }

  identity {
    type         = "UserAssigned"
    identity_ids = [local.node_identity]
  }

  boot_diagnostics {}

  dynamic "extension" {
    for_each = each.value.judged ? [true] : []
    content {
      name                               = "kubelet-health"
      publisher                          = "Microsoft.ManagedServices"
      type                               = "ApplicationHealthLinux"
      type_handler_version               = "1.0"
      auto_upgrade_minor_version_enabled = true
      settings                           = jsonencode({ protocol = "http", port = 10248, requestPath = "/healthz" })
    }
  }

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

  dynamic "automatic_instance_repair" {
    for_each = each.value.judged && !each.value.spot ? [true] : []
    content {
      enabled      = true
      action       = "Replace"
      grace_period = "PT30M"
    }
  }

  lifecycle {
    precondition {
      condition     = length(each.value.tags) <= 50
      error_message = "Azure takes at most 50 tags: those of the cluster and of the group ${each.key}, its labels and its taints are more."
    }
  }

  depends_on = [azurerm_network_interface.control_plane, azurerm_subnet_network_security_group_association.hosts, azurerm_lb.api_inner]
}

resource "azurerm_orchestrated_virtual_machine_scale_set" "public_scaling" {
  for_each                    = local.public_scaling_groups
  name                        = each.value.resource
  resource_group_name         = local.group
  location                    = local.location
  zones                       = length(each.value.zones) == 0 ? null : each.value.zones
  platform_fault_domain_count = 1
  sku_name                    = each.value.machine_type
  instances                   = each.value.size
  encryption_at_host_enabled  = local.azure.encryption_at_host
  source_image_id             = startswith(each.value.image, "/") ? each.value.image : null
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

  os_profile {
    custom_data = contains(local.told, each.key) ? base64encode(local.user_data[each.key]) : null

    linux_configuration {
      computer_name_prefix = "${each.value.resource}-"
      admin_username       = var.cluster.ssh.user

      dynamic "admin_ssh_key" {
        for_each = toset(var.cluster.ssh.authorized_keys)
        content {
          username   = var.cluster.ssh.user
          public_key = admin_ssh_key.value
        }
      }
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

      public_ip_address {
        name     = "host"
        sku_name = "Standard_Regional"
      }
    }

    dynamic "ip_configuration" {
      for_each = local.host_ipv6
      content {
        name      = ip_configuration.value
        subnet_id = azurerm_subnet.hosts.id
        version   = "IPv6"

        public_ip_address {
          name     = ip_configuration.value
          sku_name = "Standard_Regional"
          version  = "IPv6"
        }
      }
    }
  }

  identity {
    type         = "UserAssigned"
    identity_ids = [local.node_identity]
  }

  boot_diagnostics {}

  dynamic "extension" {
    for_each = each.value.judged ? [true] : []
    content {
      name                               = "kubelet-health"
      publisher                          = "Microsoft.ManagedServices"
      type                               = "ApplicationHealthLinux"
      type_handler_version               = "1.0"
      auto_upgrade_minor_version_enabled = true
      settings                           = jsonencode({ protocol = "http", port = 10248, requestPath = "/healthz" })
    }
  }

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

  dynamic "automatic_instance_repair" {
    for_each = each.value.judged && !each.value.spot ? [true] : []
    content {
      enabled      = true
      action       = "Replace"
      grace_period = "PT30M"
    }
  }

  lifecycle {
    ignore_changes = [instances]

    precondition {
      condition     = length(each.value.tags) <= 50
      error_message = "Azure takes at most 50 tags: those of the cluster and of the group ${each.key}, its labels and its taints are more."
    }
  }

  depends_on = [azurerm_network_interface.control_plane, azurerm_subnet_network_security_group_association.hosts, azurerm_lb.api_inner]
}
