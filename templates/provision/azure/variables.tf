# One object, made by turnup from .config.json, or written by hand: every field is what the help of the setting of the same name says.

variable "cluster" {
  description = "What the cluster is to be."
  type = object({
    name               = string      # phase1.cluster_name
    kubernetes_version = string      # a tag of the machines
    tags               = map(string) # phase1.tags
    networks = object({
      pods       = string                                 # CIDR of pods
      services   = string                                 # CIDR of Services
      node_ports = optional(list(number), [30000, 32767]) # the first and the last port of Services on hosts
    })
    ipv6 = optional(bool, false) # phase1.network.ipv6: hosts have IPv6 beside IPv4
    api = object({
      health_port            = optional(number, 3990) # where a control-plane host says by HTTP, at /readyz, whether its API server is ready
      port                   = number
      exposure               = string       # static-address, dns or load-balancer
      host                   = string       # the name, with exposure dns
      external               = bool         # whether there is a public address
      allowed_cidrs          = list(string) # who may connect to that
      static_address         = string       # resource ID of a public address; empty: make one
      internal_load_balancer = bool
    })
    ssh = object({
      user                 = string
      port                 = number
      allowed_cidrs        = list(string)
      authorized_keys      = list(string) # lines of authorized_keys: RSA from 2048 bits or Ed25519
      bastion              = bool
      bastion_machine_type = string
    })
    dns = object({
      provider = string # hosts for none, or azuredns for a zone of Azure DNS
      domain   = string
      zone     = string # resource ID of the zone; empty with private: make one for the domain
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
        encrypted = bool   # Azure encrypts all managed disks; false changes nothing here
        kms_key   = string # resource ID of a disk encryption set
      })
    })
    deletion_protection = bool   # a lock on each etcd volume
    control_plane = map(object({ # by host name, which ends in the host's number
      member       = string
      zone         = string # empty: the location has no zones
      machine_type = string
      image        = string # PUBLISHER:OFFER:SKU:VERSION, or a resource ID
      disk_gb      = number
      disk_type    = string
    }))
    groups = map(object({ # by group name
      role            = string
      size            = number
      min             = optional(number)
      max             = optional(number) # set: an autoscaler or the user changes the size later
      machine_type    = string
      image           = string
      disk_gb         = number
      disk_type       = string
      zones           = list(string)
      labels          = map(string)
      taints          = list(string)
      spot            = bool
      public_address  = bool
      tags            = map(string)
      max_unavailable = number
      max_surge       = number
    }))
    azure = object({
      subscription_id        = string # empty: what the login or ARM_SUBSCRIPTION_ID says
      tenant_id              = string # empty: the login's
      client_id              = string # empty: ARM_CLIENT_ID, or the login by az
      client_secret_file     = string # path of a file; empty: ARM_CLIENT_SECRET
      environment            = string # public, usgovernment or china
      location               = string
      zones                  = list(string)         # empty: the location has none
      resource_group         = string               # empty: make one
      vnet_id                = string               # empty: make one
      vnet_cidr              = string               # of the one that is made
      subnet_cidr            = string               # of the hosts; their subnet is always made
      ipv6_cidr              = optional(string, "") # IPv6 addresses of the virtual network that is made
      subnet_ipv6_cidr       = optional(string, "") # a /64 of the hosts
      master_private_ip      = string               # inner address of the API server; empty with exposure dns
      public_addresses       = bool
      nat_gateway            = bool
      accelerated_networking = bool
      encryption_at_host     = bool
      control_plane_identity = string # resource ID; empty: make one
      node_identity          = string # resource ID; empty: make one
      names = object({                # within Azure's limits
        prefix                 = string
        control_plane_identity = string
        node_identity          = string
        groups                 = map(string) # resource name, and beginning of the hosts' names, by group name
      })
    })
  })

  validation {
    condition     = length(var.cluster.ssh.authorized_keys) > 0
    error_message = "Azure makes no Linux machine without an SSH key: ssh.authorized_keys must have at least one."
  }
  validation {
    condition     = alltrue([for host in keys(var.cluster.control_plane) : can(regex("[0-9]+$", host)) && length(host) <= 63])
    error_message = "Names of control-plane hosts have at most 63 characters and end in a number: the host's inner address is made from it."
  }
  validation {
    condition     = var.cluster.api.exposure != "static-address" || length(var.cluster.control_plane) == 1
    error_message = "api.exposure static-address is for one control-plane host: take load-balancer or dns."
  }
  validation {
    condition     = contains(["hosts", "azuredns"], var.cluster.dns.provider)
    error_message = "dns.provider is hosts or azuredns."
  }
}

locals {
  azure  = var.cluster.azure
  prefix = local.azure.names.prefix

  # By these tags turnup, the cloud provider and the user find everything that belongs to the
  # cluster. Azure's tag names take no /.
  tags = merge(var.cluster.tags, {
    "KubernetesCluster"                         = var.cluster.name
    "kubernetes.io_cluster_${var.cluster.name}" = "owned"
  })

  control_plane_names = sort(keys(var.cluster.control_plane))
  first               = local.control_plane_names[0]

  # An address is there as long as any zone is when it is in all three.
  all_zones = length(local.azure.zones) == 3 ? local.azure.zones : null
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
