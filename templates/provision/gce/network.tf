# The network, or an existing one by its name; the subnetwork of the hosts; a way out for hosts without a public address.

locals {
  own_network     = local.gce.network == ""
  own_subnetwork  = local.gce.subnetwork == ""
  network_project = local.gce.network_project == "" ? null : local.gce.network_project

  network    = local.own_network ? google_compute_network.cluster[0].id : data.google_compute_network.existing[0].id
  subnetwork = local.own_subnetwork ? google_compute_subnetwork.hosts[0].id : data.google_compute_subnetwork.existing[0].id
  # Where the hosts' own addresses come from.
  hosts_cidr = local.own_subnetwork ? local.gce.subnet_cidr : data.google_compute_subnetwork.existing[0].ip_cidr_range

  # Which IPv6 addresses the subnetwork has: those of the internet (EXTERNAL), of the network alone (INTERNAL), or none.
  ipv6_access = (
    !var.cluster.ipv6 ? "" :
    local.own_subnetwork ? (local.public ? "EXTERNAL" : "INTERNAL") : data.google_compute_subnetwork.existing[0].ipv6_access_type
  )
  # What hosts have of them. A host that shall not be reached from the internet gets no address of the internet.
  public_stack = local.ipv6_access == "" ? "IPV4_ONLY" : "IPV4_IPV6"
  inner_stack  = contains(["", "EXTERNAL"], local.ipv6_access) ? "IPV4_ONLY" : "IPV4_IPV6"
  public_ipv6  = local.ipv6_access == "EXTERNAL" ? ["PREMIUM"] : []
  # Whether any host has no public address, and so no way out of its own.
  inner_hosts = !local.public || anytrue([for group in values(var.cluster.groups) : !group.public_address])
}

resource "google_compute_network" "cluster" {
  count                   = local.own_network ? 1 : 0
  name                    = local.prefix
  description             = "Kubernetes cluster ${var.cluster.name}"
  auto_create_subnetworks = false
  routing_mode            = "REGIONAL"
  # IPv6 addresses that only this network knows.
  enable_ula_internal_ipv6 = local.ipv6_access == "INTERNAL"
}

data "google_compute_network" "existing" {
  count   = local.own_network ? 0 : 1
  name    = local.gce.network
  project = local.network_project

  lifecycle {
    postcondition {
      condition     = !local.own_subnetwork || local.ipv6_access != "INTERNAL" || self.internal_ipv6_range != ""
      error_message = "The network ${local.gce.network} has no inner IPv6 addresses: gcloud compute networks update ${local.gce.network} --enable-ula-internal-ipv6, or set phase1.network.ipv6=n."
    }
  }
}

resource "google_compute_subnetwork" "hosts" {
  count            = local.own_subnetwork ? 1 : 0
  name             = "${local.prefix}-hosts"
  description      = "Hosts of the Kubernetes cluster ${var.cluster.name}"
  project          = local.network_project
  network          = local.network
  region           = local.region
  ip_cidr_range    = local.gce.subnet_cidr
  stack_type       = local.public_stack
  ipv6_access_type = local.ipv6_access == "" ? null : local.ipv6_access
  # Google's own services are reached without a public address.
  private_ip_google_access = true
}

data "google_compute_subnetwork" "existing" {
  count   = local.own_subnetwork ? 0 : 1
  name    = local.gce.subnetwork
  region  = local.region
  project = local.network_project

  lifecycle {
    postcondition {
      condition     = !var.cluster.ipv6 || self.stack_type == "IPV4_IPV6"
      error_message = "The subnetwork ${local.gce.subnetwork} has no IPv6 addresses: gcloud compute networks subnets update ${local.gce.subnetwork} --stack-type=IPV4_IPV6 --ipv6-access-type=…, or set phase1.network.ipv6=n."
    }
  }
}

resource "google_compute_router" "nat" {
  count   = local.gce.nat && local.inner_hosts ? 1 : 0
  name    = "${local.prefix}-nat"
  project = local.network_project
  network = local.network
  region  = local.region
}

resource "google_compute_router_nat" "nat" {
  count                              = length(google_compute_router.nat)
  name                               = "${local.prefix}-nat"
  project                            = local.network_project
  router                             = google_compute_router.nat[0].name
  region                             = local.region
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "LIST_OF_SUBNETWORKS"

  # Of an existing network only the cluster's hosts go this way.
  subnetwork {
    name                    = local.subnetwork
    source_ip_ranges_to_nat = ["ALL_IP_RANGES"]
  }
}

# Hosts fetch what they are made of at their first boot, so the egress and ingress rules are there before any of them, and go after them.
resource "terraform_data" "firewall_rules" {
  depends_on = [
    google_project_iam_member.common,
    google_compute_router_nat.nat,
    google_compute_firewall.ssh,
    google_compute_firewall.ssh_ipv6,
    google_compute_firewall.ssh_from_bastion,
    google_compute_firewall.api,
    google_compute_firewall.api_ipv6,
    google_compute_firewall.api_from_nodes,
    google_compute_firewall.api_from_network,
    google_compute_firewall.api_from_bastion,
    google_compute_firewall.api_probes,
    google_compute_firewall.etcd,
    google_compute_firewall.kubelet,
    google_compute_firewall.pods,
    google_compute_firewall.pod_addresses,
  ]
}
