# Hosts on this very machine. terraform_data is built into Terraform, so no provider is downloaded; each resource calls
# `turnup local …` to make and to remove its thing. TURNUP_EXE names the binary when it is not on PATH.

terraform {
  required_version = ">= 1.4"
}

variable "cluster" {
  description = "What turnup made of .config.json."
  type = object({
    name    = string
    api     = object({ host = string, port = number, node_balancer = bool })
    network = object({ spec = string, digest = string, open_ports = list(number) })
    hosts = map(object({
      role     = string # control-plane, worker, or balancer: before several API servers
      group    = string # the node group; empty for none
      address  = string
      spec     = string
      digest   = string
      limits   = string
      host_key = string
      blobs    = string
      # What the host attaches itself, of the service below: of hosts that have a volume of etcd's.
      volume = optional(object({ cloud = string, id = string, name = string }))
    }))
    # Where this machine replaces hosts that die: the groups whose hosts join by themselves, and what does it.
    groups  = list(object({ name = string, role = string, size = number }))
    service = optional(object({ spec = string, digest = string }))
  })
}

locals {
  replaces = var.cluster.service != null
}

resource "terraform_data" "network" {
  input            = { spec = var.cluster.network.spec }
  triggers_replace = var.cluster.network.digest

  provisioner "local-exec" {
    command = "\"$${TURNUP_EXE:-turnup}\" local network create --spec '${self.input.spec}'"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "\"$${TURNUP_EXE:-turnup}\" local network delete --spec '${self.input.spec}'"
  }
}

# Loads the firewall between this machine and the hosts again; it goes with the network.
resource "terraform_data" "open_ports" {
  input            = { spec = var.cluster.network.spec }
  triggers_replace = [var.cluster.network.open_ports, terraform_data.network.id]

  provisioner "local-exec" {
    command = "\"$${TURNUP_EXE:-turnup}\" local network create --spec '${self.input.spec}'"
  }
}

# Attaches volumes, serves turnup to hosts that boot, and makes another machine in the place of one that died.
resource "terraform_data" "service" {
  count            = local.replaces ? 1 : 0
  input            = { spec = var.cluster.service.spec }
  triggers_replace = [var.cluster.service.digest, terraform_data.network.id]
  depends_on       = [terraform_data.open_ports]

  provisioner "local-exec" {
    command = "\"$${TURNUP_EXE:-turnup}\" local service start --spec '${self.input.spec}'"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "\"$${TURNUP_EXE:-turnup}\" local service stop --spec '${self.input.spec}'"
  }
}

# It outlives its host, and goes when the configuration has the host no more.
resource "terraform_data" "volume" {
  for_each         = { for name, host in var.cluster.hosts : name => host if host.volume != null }
  input            = { spec = each.value.spec }
  triggers_replace = each.value.volume.name

  provisioner "local-exec" {
    command = "\"$${TURNUP_EXE:-turnup}\" local volume create --spec '${self.input.spec}'"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "\"$${TURNUP_EXE:-turnup}\" local volume delete --spec '${self.input.spec}'"
  }
}

resource "terraform_data" "host" {
  for_each         = var.cluster.hosts
  input            = { spec = each.value.spec }
  triggers_replace = [each.value.digest, terraform_data.network.id]
  depends_on       = [terraform_data.service, terraform_data.volume]

  provisioner "local-exec" {
    command = "\"$${TURNUP_EXE:-turnup}\" local host create --spec '${self.input.spec}'"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "\"$${TURNUP_EXE:-turnup}\" local host delete --spec '${self.input.spec}'"
  }
}

# Only hosts that have limits. A host gets them when it starts; this changes them while it runs, and lifts them when it goes: by
# then the description says nothing of them.
resource "terraform_data" "limits" {
  for_each         = { for name, host in var.cluster.hosts : name => host if host.limits != "" }
  input            = { spec = each.value.spec }
  triggers_replace = [each.value.limits, terraform_data.host[each.key].id]

  provisioner "local-exec" {
    command = "\"$${TURNUP_EXE:-turnup}\" local host limit --spec '${self.input.spec}'"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "\"$${TURNUP_EXE:-turnup}\" local host limit --spec '${self.input.spec}'"
  }
}

output "inventory" {
  description = "The inventory of hosts for bootstrap: turnup.provision/1."
  value = {
    schema  = "turnup.provision/1"
    cluster = var.cluster.name
    target  = "local"
    api     = var.cluster.api
    hosts = [
      for name, host in var.cluster.hosts : merge({
        name     = name
        role     = host.role
        group    = host.group
        address  = host.address
        instance = terraform_data.host[name].id
        ssh      = { user = "root", port = 22, host_key = host.host_key }
        blobs    = host.blobs
      }, host.volume == null ? {} : { etcd_volume = host.volume })
      # A load balancer becomes no node, and hosts of groups join by themselves.
      if host.role == "control-plane" || (host.role == "worker" && !local.replaces)
    ]
    groups = var.cluster.groups
  }
}
