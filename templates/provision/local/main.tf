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
    }))
  })
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

resource "terraform_data" "host" {
  for_each         = var.cluster.hosts
  input            = { spec = each.value.spec }
  triggers_replace = [each.value.digest, terraform_data.network.id]

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
      for name, host in var.cluster.hosts : {
        name     = name
        role     = host.role
        group    = host.group
        address  = host.address
        instance = terraform_data.host[name].id
        ssh      = { user = "root", port = 22, host_key = host.host_key }
        blobs    = host.blobs
      } if host.role != "balancer" # it becomes no node
    ]
  }
}
