# Control-plane hosts: each with a network interface that outlives its machine, so that a replacement is found where the old one was; and the
# volumes of etcd, made apart from the machines.

locals {
  # From the end of the subnet: what Azure chooses by itself it takes from the beginning. The last address is the subnet's own.
  addresses = {
    for host in local.control_plane_names : host => (
      var.cluster.api.exposure == "static-address" && local.azure.master_private_ip != "" ? local.azure.master_private_ip :
      cidrhost(local.azure.subnet_cidr, -2 - tonumber(regex("[0-9]+$", host)))
    )
  }

  # Fixed as well, for rules name them: the groups of the firewall hold a machine's IPv4 addresses alone.
  ipv6_addresses = { for host in local.control_plane_names : host => cidrhost(local.ipv6_cidr, -2 - tonumber(regex("[0-9]+$", host))) if var.cluster.ipv6 }

  # With a load balancer, or without clients outside, hosts need no public address to be found.
  public_hosts = local.azure.public_addresses || (var.cluster.api.external && !local.balanced) ? toset(local.control_plane_names) : toset([])
  given_host   = local.given && var.cluster.api.exposure == "static-address" ? local.first : ""
  public_ids = {
    for host in local.public_hosts : host => host == local.given_host ? data.azurerm_public_ip.given[0].id : azurerm_public_ip.control_plane[host].id
  }
  public_addresses = {
    for host in local.public_hosts : host => host == local.given_host ? data.azurerm_public_ip.given[0].ip_address : azurerm_public_ip.control_plane[host].ip_address
  }

  # One disk a member: a machine with more than one could not say which is its own.
  volumes = {
    for one in var.cluster.control_plane : "main-${one.member}" => { member = one.member, zone = one.zone }
  }
  # `a/a,b,c`: this member among all of them. The value may have a /, the name of a tag may not.
  members = join(",", var.cluster.etcd.members)

  # Scale sets hold the machines of one zone; without zones, of all racks.
  control_plane_zones = toset([for host in var.cluster.control_plane : host.zone])

  # What a machine is made from. It changes nothing on a machine that is there.
  control_plane_template = {
    for host, one in var.cluster.control_plane : host => nonsensitive(substr(sha256(jsonencode([
      one.machine_type, one.image, one.disk_gb, one.disk_type, lookup(local.user_data, "control-plane", ""), var.cluster.ssh.user, local.azure.encryption_at_host
    ])), 0, 16))
  }
}

resource "azurerm_managed_disk" "etcd" {
  for_each               = local.volumes
  name                   = "${var.cluster.name}-etcd-${each.key}"
  resource_group_name    = local.group
  location               = local.location
  zone                   = each.value.zone == "" ? null : each.value.zone
  create_option          = "Empty"
  disk_size_gb           = var.cluster.etcd.volume.size_gb
  storage_account_type   = var.cluster.etcd.volume.type
  disk_encryption_set_id = var.cluster.etcd.volume.kms_key == "" ? null : var.cluster.etcd.volume.kms_key
  # Downloads by a link are denied: it holds all data of the cluster.
  network_access_policy         = "DenyAll"
  public_network_access_enabled = false

  tags = merge(local.tags, {
    "Name"                      = "${each.value.member}.etcd-main.${var.cluster.name}"
    "k8s.io_role_master"        = "1"
    "k8s.io_role_control_plane" = "1"
    "k8s.io_etcd_main"          = "${each.value.member}/${local.members}"
  })

  # A volume stays where it is for ever: another zone would mean an empty one in its place. For another type or another key the provider
  # would turn the machines off, all of them at once, and etcd with them.
  lifecycle {
    ignore_changes = [zone, storage_account_type, disk_encryption_set_id]
    postcondition {
      condition     = self.storage_account_type == var.cluster.etcd.volume.type
      error_message = "etcd's volume ${self.name} is ${self.storage_account_type}: set phase1.azure.etcd_volume_type as it was, or change one volume after the other (az vm deallocate, az disk update --sku ${var.cluster.etcd.volume.type}, az vm start), then apply."
    }
    postcondition {
      condition     = lower(coalesce(self.disk_encryption_set_id, "-")) == lower(coalesce(var.cluster.etcd.volume.kms_key, "-"))
      error_message = "etcd's volume ${self.name} is encrypted with another key: set phase1.etcd_volume.kms_key as it was, or change one volume after the other (az vm deallocate, az disk update --disk-encryption-set, az vm start), then apply."
    }
  }
}

resource "azurerm_management_lock" "etcd" {
  for_each   = var.cluster.deletion_protection ? azurerm_managed_disk.etcd : {}
  name       = "etcd-data"
  scope      = each.value.id
  lock_level = "CanNotDelete"
  notes      = "etcd of the Kubernetes cluster ${var.cluster.name}: phase1.deletion_protection"
}

resource "azurerm_public_ip" "control_plane" {
  for_each            = toset([for host in local.public_hosts : host if host != local.given_host])
  name                = each.key
  resource_group_name = local.group
  location            = local.location
  allocation_method   = "Static"
  sku                 = "Standard"
  zones               = var.cluster.control_plane[each.key].zone == "" ? null : [var.cluster.control_plane[each.key].zone]
  tags                = local.tags

  # Azure gives none up that a host still has: the host lets go of it first. It stays in its zones: another one would have the same name.
  lifecycle {
    create_before_destroy = true
    ignore_changes        = [zones]
  }
}

resource "azurerm_public_ip" "control_plane_ipv6" {
  for_each            = var.cluster.ipv6 ? local.public_hosts : toset([])
  name                = "${each.key}-ipv6"
  resource_group_name = local.group
  location            = local.location
  allocation_method   = "Static"
  sku                 = "Standard"
  ip_version          = "IPv6"
  zones               = var.cluster.control_plane[each.key].zone == "" ? null : [var.cluster.control_plane[each.key].zone]
  tags                = local.tags

  # Azure gives none up that a host still has: the host lets go of it first. It stays in its zones: another one would have the same name.
  lifecycle {
    create_before_destroy = true
    ignore_changes        = [zones]
  }
}

resource "azurerm_network_interface" "control_plane" {
  for_each                       = var.cluster.control_plane
  name                           = each.key
  resource_group_name            = local.group
  location                       = local.location
  accelerated_networking_enabled = local.azure.accelerated_networking
  # The cloud provider's routes lead pods' packets here.
  ip_forwarding_enabled = true
  tags                  = local.tags

  ip_configuration {
    name                          = "host"
    primary                       = true
    subnet_id                     = azurerm_subnet.hosts.id
    private_ip_address_allocation = "Static"
    private_ip_address            = local.addresses[each.key]
    public_ip_address_id          = lookup(local.public_ids, each.key, null)
  }

  dynamic "ip_configuration" {
    for_each = local.host_ipv6
    content {
      name                          = ip_configuration.value
      subnet_id                     = azurerm_subnet.hosts.id
      private_ip_address_version    = "IPv6"
      private_ip_address_allocation = "Static"
      private_ip_address            = local.ipv6_addresses[each.key]
      public_ip_address_id          = contains(local.public_hosts, each.key) ? azurerm_public_ip.control_plane_ipv6[each.key].id : null
    }
  }

  # No host stands in the subnet before it is closed, nor without a way out.
  depends_on = [azurerm_subnet_network_security_group_association.hosts, azurerm_subnet_nat_gateway_association.nat]
}

resource "azurerm_network_interface_application_security_group_association" "control_plane" {
  for_each                      = var.cluster.control_plane
  network_interface_id          = azurerm_network_interface.control_plane[each.key].id
  application_security_group_id = azurerm_application_security_group.control_plane.id
}

# Spreads the machines of a zone over its racks. It has no template: an address of one's own is not for machines that a scale set makes.
resource "azurerm_orchestrated_virtual_machine_scale_set" "control_plane" {
  for_each                    = local.control_plane_zones
  name                        = each.key == "" ? "${local.prefix}-control-plane" : "${local.prefix}-control-plane-${each.key}"
  resource_group_name         = local.group
  location                    = local.location
  zones                       = each.key == "" ? null : [each.key]
  platform_fault_domain_count = 1
  tags                        = local.tags
}

resource "azurerm_linux_virtual_machine" "control_plane" {
  for_each                     = var.cluster.control_plane
  name                         = each.key
  computer_name                = each.key
  resource_group_name          = local.group
  location                     = local.location
  zone                         = each.value.zone == "" ? null : each.value.zone
  virtual_machine_scale_set_id = azurerm_orchestrated_virtual_machine_scale_set.control_plane[each.value.zone].id
  size                         = each.value.machine_type
  network_interface_ids        = [azurerm_network_interface.control_plane[each.key].id]
  admin_username               = var.cluster.ssh.user
  encryption_at_host_enabled   = local.azure.encryption_at_host
  # Not user_data: every process of the machine can read that at the metadata service.
  custom_data     = contains(local.told, "control-plane") ? base64encode(local.control_plane_user_data[each.key]) : null
  source_image_id = startswith(each.value.image, "/") ? each.value.image : null

  tags = merge(local.tags, {
    "Name"                      = each.key
    "kubernetes-version"        = var.cluster.kubernetes_version
    "k8s.io_role_master"        = "1"
    "k8s.io_role_control_plane" = "1"
    "turnup-member"             = each.value.member
    "turnup-template"           = local.control_plane_template[each.key]
  })

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

  identity {
    type         = "UserAssigned"
    identity_ids = [local.control_plane_identity]
  }

  # The console of a machine that does not come up can be read.
  boot_diagnostics {}

  # Terraform would recreate all changed hosts at the same time, and etcd would lose its majority.
  # So a changed template is for the next machine; the output `outdated` names the hosts that wait
  # for one, and `terraform apply -replace` makes one, the next only when that is a node again
  # (docs/azure.md).
  lifecycle {
    ignore_changes = [
      size, custom_data, admin_username, admin_ssh_key, os_disk, source_image_id, source_image_reference, encryption_at_host_enabled,
      tags["turnup-template"], tags["kubernetes-version"]
    ]
    precondition {
      condition = alltrue([
        for key, volume in local.volumes : coalesce(azurerm_managed_disk.etcd[key].zone, "none") == coalesce(each.value.zone, "none")
        if volume.member == each.value.member
      ])
      error_message = "The etcd volume of ${each.key} is in another zone than ${each.value.zone}, and stays there for ever: give the host its old zone."
    }
  }

  depends_on = [azurerm_network_interface_application_security_group_association.control_plane]
}
