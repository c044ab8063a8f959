# One object, made by turnup from .config.json, or written by hand: every field is what the help of the setting of the same name says.

variable "cluster" {
  description = "What the cluster is to be."
  type = object({
    name               = string      # phase1.cluster_name
    kubernetes_version = string      # only for the description of templates
    tags               = map(string) # phase1.tags, on everything
    networks = object({
      pods       = string                                 # CIDR of pods
      services   = string                                 # CIDR of Services
      node_ports = optional(list(number), [30000, 32767]) # the first and the last port of Services on hosts
    })
    ipv6 = optional(bool, false) # phase1.network.ipv6: hosts have IPv6 beside IPv4
    api = object({
      health_port            = optional(number, 3990) # where a control-plane host says by HTTP, at /readyz, whether its API server is ready
      port                   = number                 # of the API server and of its load balancers
      exposure               = string                 # static-address, dns or load-balancer
      host                   = string                 # the name, with exposure dns, and of the record in a zone
      external               = bool                   # whether it can be reached from outside the VPC
      allowed_cidrs          = list(string)           # who may, besides the cluster itself
      static_address         = string                 # allocation (eipalloc-…) of an elastic address; empty: make one
      internal_load_balancer = bool                   # a second, inner one, for clients in the network
    })
    ssh = object({
      user                 = string       # the image's: admin for Debian
      port                 = number       # of sshd on every host
      allowed_cidrs        = list(string) # who may log in: to the bastion, where there is one
      authorized_keys      = list(string) # lines of authorized_keys; the first becomes the key pair
      bastion              = bool         # make one
      bastion_machine_type = string       # t3.micro does
    })
    dns = object({
      provider = string # hosts for none, or route53 for a zone of this account
      domain   = string # names are <what>.<cluster>.<domain>
      zone     = string # identifier or name of the hosted zone; empty: the zone with the domain's own name, or with private one of the cluster's own
      private  = bool   # the zone is a private one
      ttl      = number # seconds
      # The zone in which hosts keep names themselves (phase2.dns), as its cloud names it; empty: none.
      hosts_zone = string
    })
    etcd = object({
      members = list(string) # a, b, c: one for each control-plane host
      volume = object({
        size_gb   = number # may grow later, never shrink
        type      = string # gp3 or io2
        encrypted = bool   # cannot be changed later
        kms_key   = string # ARN; empty: the account's default key
      })
    })
    deletion_protection = bool   # load balancers and control-plane machines refuse to be deleted
    control_plane = map(object({ # by host name
      member       = string      # which etcd member it is
      zone         = string      # where it and its volumes stay
      machine_type = string      # t3.large
      image        = string      # AMI; empty: the newest Debian 12 at the time of the first apply
      disk_gb      = number      # root disk
      disk_type    = string      # gp3, gp2 or io2
    }))
    groups = map(object({               # by group name
      role           = string           # worker
      size           = number           # how many; with max: how many at first
      min            = optional(number) # the fewest, below which nothing goes
      max            = optional(number) # set: an autoscaler or the user changes the size later
      machine_type   = string
      image          = string
      disk_gb        = number
      disk_type      = string
      zones          = list(string) # hosts are spread over them
      labels         = map(string)  # of the Nodes: told to the autoscaler here, set by user data
      taints         = list(string) # likewise, KEY=VALUE:EFFECT
      spot           = bool
      public_address = bool
      tags           = map(string)
    }))
    aws = object({
      region                         = string
      zones                          = list(string) # each gets a subnet
      profile                        = string       # of ~/.aws/config; empty: what the environment says
      assume_role_arn                = string       # role that Terraform takes; empty: none
      vpc_id                         = string       # empty: make one
      vpc_cidr                       = string       # of the VPC that is made
      subnet_ids                     = map(string)  # of the hosts, by zone, in a VPC that exists; empty: make them in free addresses
      public_subnet_ids              = map(string)  # by zone, in a VPC that exists and with private hosts: for the bastion and the outer load balancer
      topology                       = string       # public or private
      nat_gateways                   = string       # one, per-zone or none
      security_groups                = list(string) # further ones of all hosts
      disk_encrypted                 = bool         # root disks
      disk_kms_key                   = string       # ARN; empty: the account's default key
      disk_iops                      = number       # root disks of gp3 and io2
      etcd_volume_iops               = number
      control_plane_instance_profile = string # empty: make one
      node_instance_profile          = string # empty: make one
      permissions_boundary           = string # ARN of a policy; empty: none
      key_pair                       = string # empty: made of the first authorized key
      termination_queue              = bool   # events before a machine is taken back
      detailed_monitoring            = bool
      cpu_credits                    = string # standard or unlimited, for t types
      cloud_controller               = bool   # control-plane hosts may do what the cloud controller manager does
      cloud_storage                  = bool   # and make, attach and delete volumes of claims
      cloud_snapshots                = bool   # and take snapshots of these
      cloud_storage_kms_key          = string # ARN of the key of these volumes; empty: the account's default key
      cluster_autoscaler             = bool   # likewise, what the cluster autoscaler does
      backup_bucket                  = string # where control-plane hosts keep backups, by their role; empty: nowhere
      backup_prefix                  = string # how the names of these begin, with a slash, or empty
      names = object({                        # within the limits that are shorter than a cluster's name may be
        load_balancer       = string          # 32 characters, not beginning with internal-
        inner_load_balancer = string          # 32
        control_plane_role  = string          # 64; roles have no region, so their names need one
        node_role           = string          # 64
        queue               = string          # 80
        rule                = string          # 48: event rules append to it
      })
    })
  })

  validation {
    condition     = contains(["hosts", "route53"], var.cluster.dns.provider)
    error_message = "dns.provider is hosts or route53."
  }
}

locals {
  aws  = var.cluster.aws
  name = var.cluster.name

  # By these tags turnup, its agent, a cloud provider and the user find everything that belongs to
  # the cluster.
  tags = merge(var.cluster.tags, local.own_tags)
  own_tags = {
    "KubernetesCluster"                   = local.name
    "kubernetes.io/cluster/${local.name}" = "owned"
  }
  control_plane_tags = { "k8s.io/role/control-plane" = "1", "k8s.io/role/master" = "1" }
  node_tags          = { "k8s.io/role/node" = "1" }

  # Hosts, their zones, and whether they have addresses on the internet.
  first  = sort(keys(var.cluster.control_plane))[0]
  public = local.aws.topology == "public"
  zones = sort(distinct(concat(
    local.aws.zones,
    [for host in var.cluster.control_plane : host.zone],
    flatten([for group in var.cluster.groups : group.zones]),
  )))
  control_plane_zones = sort(distinct([for host in var.cluster.control_plane : host.zone]))

  # Amazon has three worlds with ARNs of their own.
  partition = startswith(local.aws.region, "cn-") ? "aws-cn" : startswith(local.aws.region, "us-gov-") ? "aws-us-gov" : "aws"
  services  = local.partition == "aws-cn" ? "amazonaws.com.cn" : "amazonaws.com"
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
