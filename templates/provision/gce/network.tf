# The network, or an existing one by its name; the subnetwork of the hosts; a way out for hosts without a public address.

locals {
  own_network     = local.gce.network == ""
  own_subnetwork  = local.gce.subnetwork == ""
  network_project = local.gce.network_project == "" ? null : local.gce.network_project

  network    = local.own_network ? google_compute_network.cluster[0].id : data.google_compute_network.existing[0].id
  subnetwork = local.own_subnetwork ? google_compute_subnetwork.hosts[0].id : data.google_compute_subnetwork.existing[0].id
  # Where the hosts' own addresses come from.
  hosts_cidr = local.own_subnetwork ? local.gce.subnet_cidr : data.google_compute_subnetwork.existing[0].ip_cidr_range
}

resource "google_compute_network" "cluster" {
  count                   = local.own_network ? 1 : 0
  name                    = local.prefix
  description             = "Kubernetes cluster ${var.cluster.name}"
  auto_create_subnetworks = false
  routing_mode            = "REGIONAL"
}

data "google_compute_network" "existing" {
  count   = local.own_network ? 0 : 1
  name    = local.gce.network
  project = local.network_project
}

resource "google_compute_subnetwork" "hosts" {
  count         = local.own_subnetwork ? 1 : 0
  name          = "${local.prefix}-hosts"
  description   = "Hosts of the Kubernetes cluster ${var.cluster.name}"
  project       = local.network_project
  network       = local.network
  region        = local.region
  ip_cidr_range = local.gce.subnet_cidr
  # Google's own services are reached without a public address.
  private_ip_google_access = true
}

data "google_compute_subnetwork" "existing" {
  count   = local.own_subnetwork ? 0 : 1
  name    = local.gce.subnetwork
  region  = local.region
  project = local.network_project
}

resource "google_compute_router" "nat" {
  count   = !local.public && local.gce.nat ? 1 : 0
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
