# The only SSH ingress to hosts without a public address. It holds nothing and may do nothing in Azure.

resource "azurerm_public_ip" "bastion" {
  count               = var.cluster.ssh.bastion ? 1 : 0
  name                = "${local.prefix}-bastion"
  resource_group_name = local.group
  location            = local.location
  allocation_method   = "Static"
  sku                 = "Standard"
  zones               = local.all_zones
  tags                = local.tags
}

resource "azurerm_public_ip" "bastion_ipv6" {
  count               = var.cluster.ssh.bastion && var.cluster.ipv6 ? 1 : 0
  name                = "${local.prefix}-bastion-ipv6"
  resource_group_name = local.group
  location            = local.location
  allocation_method   = "Static"
  sku                 = "Standard"
  ip_version          = "IPv6"
  zones               = local.all_zones
  tags                = local.tags
}

resource "azurerm_network_interface" "bastion" {
  count               = var.cluster.ssh.bastion ? 1 : 0
  name                = "${local.prefix}-bastion"
  resource_group_name = local.group
  location            = local.location
  tags                = local.tags

  ip_configuration {
    name                          = "host"
    primary                       = true
    subnet_id                     = azurerm_subnet.hosts.id
    private_ip_address_allocation = "Dynamic"
    public_ip_address_id          = azurerm_public_ip.bastion[0].id
  }

  dynamic "ip_configuration" {
    for_each = local.host_ipv6
    content {
      name                          = ip_configuration.value
      subnet_id                     = azurerm_subnet.hosts.id
      private_ip_address_version    = "IPv6"
      private_ip_address_allocation = "Static"
      private_ip_address            = local.bastion_ipv6
      public_ip_address_id          = azurerm_public_ip.bastion_ipv6[0].id
    }
  }

  depends_on = [azurerm_network_interface.control_plane, azurerm_subnet_network_security_group_association.hosts, azurerm_lb.api_inner]
}

resource "azurerm_network_interface_application_security_group_association" "bastion" {
  count                         = var.cluster.ssh.bastion ? 1 : 0
  network_interface_id          = azurerm_network_interface.bastion[0].id
  application_security_group_id = azurerm_application_security_group.bastion[0].id
}

resource "azurerm_linux_virtual_machine" "bastion" {
  count                 = var.cluster.ssh.bastion ? 1 : 0
  name                  = "${local.prefix}-bastion"
  computer_name         = "bastion"
  resource_group_name   = local.group
  location              = local.location
  size                  = var.cluster.ssh.bastion_machine_type
  network_interface_ids = [azurerm_network_interface.bastion[0].id]
  admin_username        = var.cluster.ssh.user
  source_image_id       = startswith(local.bastion_image, "/") ? local.bastion_image : null
  tags                  = merge(local.tags, { "Name" = "${local.prefix}-bastion" })

  dynamic "source_image_reference" {
    for_each = startswith(local.bastion_image, "/") ? [] : [split(":", local.bastion_image)]
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
    storage_account_type = "StandardSSD_LRS"
  }

  boot_diagnostics {}
}

locals {
  # Before those of control-plane hosts, of which there are never so many.
  bastion_ipv6 = var.cluster.ipv6 ? cidrhost(local.ipv6_cidr, -100) : ""
  # The image of the first control-plane host.
  bastion_image = var.cluster.control_plane[local.first].image
}
