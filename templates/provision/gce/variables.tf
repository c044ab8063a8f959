# One object, made by turnup from .config.json, or written by hand: every field is what the help of the setting of the same name says.

variable "cluster" {
  description = "What the cluster is to be."
  type = object({
    name               = string      # phase1.cluster_name
    kubernetes_version = string      # only for the description of machines
    tags               = map(string) # phase1.tags, as labels
    networks = object({
      pods       = string                                 # CIDR of pods
      services   = string                                 # CIDR of Services
      node_ports = optional(list(number), [30000, 32767]) # the first and the last port of Services on hosts
    })
    ipv6 = optional(bool, false) # phase1.network.ipv6: hosts have IPv6 beside IPv4
    api = object({
      health_port            = optional(number, 3990) # where a control-plane host says by HTTP, at /readyz, whether its API server is ready
      port                   = number
      exposure               = string # static-address, dns or load-balancer
      host                   = string # the name, with exposure dns
      external               = bool
      allowed_cidrs          = list(string)
      static_address         = string # name of a reserved address; empty: make one
      internal_load_balancer = bool
    })
    ssh = object({
      user                 = string
      port                 = number
      allowed_cidrs        = list(string)
      authorized_keys      = list(string) # lines of authorized_keys
      bastion              = bool
      bastion_machine_type = string
    })
    dns = object({
      provider = string # hosts for none, or clouddns for a zone in this project
      domain   = string
      zone     = string # name of the managed zone
      private  = bool
      ttl      = number # seconds
      # The zone in which hosts keep names themselves (phase2.dns), as its cloud names it; empty: none.
      hosts_zone = string
    })
    etcd = object({
      members = list(string) # a, b, c: one for each control-plane host
      volume = object({
        size_gb   = number
        type      = string
        encrypted = bool # Google encrypts all disks; false changes nothing here
        kms_key   = string
      })
    })
    deletion_protection = bool
    control_plane = map(object({ # by host name
      member       = string
      zone         = string
      machine_type = string
      image        = string
      disk_gb      = number
      disk_type    = string
    }))
    groups = map(object({ # by group name
      role           = string
      size           = number
      min            = optional(number)
      max            = optional(number) # set: an autoscaler or the user changes the size later
      machine_type   = string
      image          = string
      disk_gb        = number
      disk_type      = string
      zones          = list(string)
      labels         = map(string)
      taints         = list(string)
      spot           = bool
      public_address = bool
      tags           = map(string)
    }))
    gce = object({
      project                       = string # empty: what the credentials or the environment say
      region                        = string
      zone                          = string
      network                       = string # empty: make one
      subnetwork                    = string # empty: make one
      network_project               = string # empty: the project
      subnet_cidr                   = string
      public_addresses              = bool
      nat                           = bool
      network_tags                  = list(string)
      disk_kms_key                  = string
      credentials_file              = string
      control_plane_service_account = string # empty: make one
      node_service_account          = string # empty: make one
      cloud_controller              = bool   # the control plane may do what the cloud controller manager does
      cloud_storage                 = bool   # the control plane may make, attach and delete disks of claims
      cloud_snapshots               = bool   # and take snapshots of them
      os_login                      = bool
      shielded_vm                   = bool
      min_cpu_platform              = string
      names = object({ # within Compute Engine's limits
        prefix                = string
        control_plane_account = string
        node_account          = string
        control_plane         = map(string) # resource name by host name
        groups                = map(string) # resource name by group name
      })
    })
  })

  validation {
    condition     = var.cluster.dns.provider == "hosts" || var.cluster.dns.provider == "clouddns" && (var.cluster.dns.zone != "" || var.cluster.dns.private)
    error_message = "dns.provider is hosts, or clouddns with the name of its zone in dns.zone, or with dns.private for one of the cluster's own."
  }
}

locals {
  gce    = var.cluster.gce
  prefix = local.gce.names.prefix

  # By these labels turnup, and the user, find everything that belongs to the cluster.
  labels = merge(var.cluster.tags, { "turnup-cluster" = local.prefix })

  # One tag a role: firewall rules name them.
  control_plane_tag = "${local.prefix}-control-plane"
  node_tag          = "${local.prefix}-node"
  bastion_tag       = "${local.prefix}-bastion"
  host_tags         = [local.control_plane_tag, local.node_tag]

  # Whether a host has an address of its own on the internet.
  public = local.gce.public_addresses
  region = local.gce.region

  keys = { "ssh-keys" = join("\n", [for key in var.cluster.ssh.authorized_keys : "${var.cluster.ssh.user}:${key}"]) }
  metadata = merge(
    local.gce.os_login ? { "enable-oslogin" = "TRUE" } : local.keys,
    # Keys of the whole project open none of these hosts, and a host's console takes no input.
    { "block-project-ssh-keys" = "true", "serial-port-enable" = "false" },
  )
}

# Apart from all others: Terraform shows nothing of it.
variable "user_data" {
  description = "What hosts are told at their first boot, as plain text: of each group by its name, of the control plane by control-plane. @turnup:api@ stands in it for the API server's host, @turnup:api-servers@ for all API servers, @turnup:token@ for the group's join token."
  type        = map(string)
  default     = {}
  sensitive   = true
}

# Apart from user data: another token is for the hosts that are made from then on, and replaces
# none.
variable "join_tokens" {
  description = "The token with which new hosts of a group join the cluster, by the group's name. It is another one before it ends."
  type        = map(string)
  default     = {}
  sensitive   = true
}
