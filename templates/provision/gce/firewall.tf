# Who may connect to whom. What no rule allows, Google's own rule at the end refuses.

locals {
  # Google's health checks and load balancers come from these networks (documented under "Health check concepts", probe IP ranges).
  google_probes = ["35.191.0.0/16", "130.211.0.0/22", "209.85.152.0/22", "209.85.204.0/22"]
  # SSH ingress: the bastion where there is one, else the hosts themselves.
  ssh_target_tags = var.cluster.ssh.bastion ? [local.bastion_tag] : local.host_tags
  # A rule has ranges of one family alone.
  ssh_ranges      = [for range in var.cluster.ssh.allowed_cidrs : range if !strcontains(range, ":")]
  ssh_ranges_ipv6 = [for range in var.cluster.ssh.allowed_cidrs : range if strcontains(range, ":")]
  api_ranges      = [for range in local.api_cidrs : range if !strcontains(range, ":")]
  api_ranges_ipv6 = [for range in local.api_cidrs : range if strcontains(range, ":")]
  # Without external access only private networks count, such as a VPN's: other clients cannot reach
  # hosts that have public addresses.
  api_cidrs = [for range in var.cluster.api.allowed_cidrs : range if var.cluster.api.external || length(regexall(local.private, range)) > 0]
  # RFC 1918 and RFC 4193, and no range that is wider.
  private = join("|", [
    "^10\\..*/([89]|[12][0-9]|3[0-2])$",
    "^172\\.(1[6-9]|2[0-9]|3[01])\\..*/(1[2-9]|2[0-9]|3[0-2])$",
    "^192\\.168\\..*/(1[6-9]|2[0-9]|3[0-2])$",
    "^f[cd][0-9a-f]{2}:.*/([7-9]|[1-9][0-9]|1[01][0-9]|12[0-8])$",
  ])
}

resource "google_compute_firewall" "ssh" {
  count         = length(local.ssh_ranges) > 0 ? 1 : 0
  name          = "${local.prefix}-ssh"
  description   = "SSH from the networks that may log in"
  project       = local.network_project
  network       = local.network
  source_ranges = local.ssh_ranges
  target_tags   = local.ssh_target_tags

  allow {
    protocol = "tcp"
    ports    = [var.cluster.ssh.port]
  }
}

resource "google_compute_firewall" "ssh_ipv6" {
  count         = length(local.ssh_ranges_ipv6) > 0 ? 1 : 0
  name          = "${local.prefix}-ssh-ipv6"
  description   = "SSH from the IPv6 networks that may log in"
  project       = local.network_project
  network       = local.network
  source_ranges = local.ssh_ranges_ipv6
  target_tags   = local.ssh_target_tags

  allow {
    protocol = "tcp"
    ports    = [var.cluster.ssh.port]
  }
}

resource "google_compute_firewall" "ssh_from_bastion" {
  count       = var.cluster.ssh.bastion ? 1 : 0
  name        = "${local.prefix}-ssh-from-bastion"
  description = "SSH that the bastion passes on"
  project     = local.network_project
  network     = local.network
  source_tags = [local.bastion_tag]
  target_tags = local.host_tags

  allow {
    protocol = "tcp"
    ports    = [var.cluster.ssh.port]
  }
}

resource "google_compute_firewall" "api" {
  count         = length(local.api_ranges) > 0 ? 1 : 0
  name          = "${local.prefix}-api"
  description   = "API server from the networks that may connect"
  project       = local.network_project
  network       = local.network
  source_ranges = local.api_ranges
  target_tags   = [local.control_plane_tag]

  allow {
    protocol = "tcp"
    ports    = [var.cluster.api.port]
  }
}

# The load balancers have IPv4 alone: these come to the hosts themselves.
resource "google_compute_firewall" "api_ipv6" {
  count         = length(local.api_ranges_ipv6) > 0 ? 1 : 0
  name          = "${local.prefix}-api-ipv6"
  description   = "API server from the IPv6 networks that may connect"
  project       = local.network_project
  network       = local.network
  source_ranges = local.api_ranges_ipv6
  target_tags   = [local.control_plane_tag]

  allow {
    protocol = "tcp"
    ports    = [var.cluster.api.port]
  }
}

resource "google_compute_firewall" "api_from_nodes" {
  name        = "${local.prefix}-api-from-nodes"
  description = "API server from the cluster's own hosts"
  project     = local.network_project
  network     = local.network
  source_tags = local.host_tags
  target_tags = [local.control_plane_tag]

  # Balancers of nodes ask several control-plane hosts whether they are ready.
  allow {
    protocol = "tcp"
    ports    = local.several ? [var.cluster.api.port, var.cluster.api.health_port] : [var.cluster.api.port]
  }
}

# kubectl inside the network. A host's public address is no way in here: what comes from there has a public source.
resource "google_compute_firewall" "api_from_network" {
  count         = var.cluster.api.external ? 0 : 1
  name          = "${local.prefix}-api-from-network"
  description   = "API server from the hosts' own network"
  project       = local.network_project
  network       = local.network
  source_ranges = [local.hosts_cidr]
  target_tags   = [local.control_plane_tag]

  allow {
    protocol = "tcp"
    ports    = [var.cluster.api.port]
  }
}

resource "google_compute_firewall" "api_from_bastion" {
  count       = var.cluster.ssh.bastion ? 1 : 0
  name        = "${local.prefix}-api-from-bastion"
  description = "kubectl through the bastion"
  project     = local.network_project
  network     = local.network
  source_tags = [local.bastion_tag]
  target_tags = [local.control_plane_tag]

  allow {
    protocol = "tcp"
    ports    = [var.cluster.api.port]
  }
}

resource "google_compute_firewall" "api_probes" {
  count         = var.cluster.api.exposure == "load-balancer" ? 1 : 0
  name          = "${local.prefix}-api-probes"
  description   = "Health checks of the load balancers"
  project       = local.network_project
  network       = local.network
  source_ranges = local.google_probes
  target_tags   = [local.control_plane_tag]

  allow {
    protocol = "tcp"
    ports    = [var.cluster.api.health_port]
  }
}

# Nodes are in no rule for these ports: a pod that leaves its container finds no etcd.
resource "google_compute_firewall" "etcd" {
  name        = "${local.prefix}-etcd"
  description = "etcd between control-plane hosts: clients and peers"
  project     = local.network_project
  network     = local.network
  source_tags = [local.control_plane_tag]
  target_tags = [local.control_plane_tag]

  allow {
    protocol = "tcp"
    ports    = ["2379-2380"]
  }
}

resource "google_compute_firewall" "kubelet" {
  name        = "${local.prefix}-kubelet"
  description = "Logs, exec and metrics from the control plane"
  project     = local.network_project
  network     = local.network
  source_tags = [local.control_plane_tag]
  target_tags = local.host_tags

  allow {
    protocol = "tcp"
    ports    = ["10250"]
  }
}

resource "google_compute_firewall" "pods" {
  name        = "${local.prefix}-pods"
  description = "Pods of different hosts: VXLAN, and node ports and kubelet's metrics among hosts"
  project     = local.network_project
  network     = local.network
  source_tags = local.host_tags
  target_tags = local.host_tags

  allow {
    protocol = "udp"
    ports    = ["8472"]
  }
  allow {
    protocol = "tcp"
    ports    = ["10250", join("-", var.cluster.networks.node_ports)]
  }
  allow {
    protocol = "udp"
    ports    = [join("-", var.cluster.networks.node_ports)]
  }
  allow {
    protocol = "icmp"
  }
  # ICMPv6, which has no name here.
  dynamic "allow" {
    for_each = var.cluster.ipv6 ? ["58"] : []
    content { protocol = allow.value }
  }
}

# Where routes lead to pods, packets keep the pod's address as their source.
resource "google_compute_firewall" "pod_addresses" {
  name          = "${local.prefix}-pod-addresses"
  description   = "Pods to pods on nodes, without a tunnel"
  project       = local.network_project
  network       = local.network
  source_ranges = [var.cluster.networks.pods]
  target_tags   = [local.node_tag]

  allow { protocol = "tcp" }
  allow { protocol = "udp" }
  allow { protocol = "icmp" }
  allow { protocol = "sctp" }
}
