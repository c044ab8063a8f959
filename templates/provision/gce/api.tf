# The API server's address: that of the first control-plane host, a load balancer's, or a name.

locals {
  first = sort(keys(var.cluster.control_plane))[0]
  # A reserved address of the user's own stands in for the first host's or the load balancer's.
  given_address  = var.cluster.api.static_address == "" ? "" : data.google_compute_address.given[0].address
  balanced       = var.cluster.api.exposure == "load-balancer"
  outer_balanced = local.balanced && var.cluster.api.external
  inner_balanced = local.balanced && (var.cluster.api.internal_load_balancer || !var.cluster.api.external)
  first_address  = var.cluster.api.exposure == "static-address" ? local.given_address : ""

  first_inner  = google_compute_address.control_plane[local.first].address
  first_public = local.first_address != "" ? local.first_address : one([for host, address in google_compute_address.control_plane_public : address.address if host == local.first])

  # For clients, and for nodes.
  api_host = (
    var.cluster.api.exposure == "dns" ? var.cluster.api.host :
    local.outer_balanced ? google_compute_forwarding_rule.api[0].ip_address :
    local.inner_balanced ? google_compute_forwarding_rule.api_inner[0].ip_address :
    var.cluster.api.external && local.public ? local.first_public : local.first_inner
  )
  # The reserved address and not the rule's: the rule waits for the control-plane hosts, which are told this address.
  # A public name leads to public addresses, and what comes to those has a public source, which the firewall need not let in: where one inner
  # address is the whole control plane, nodes take that.
  by_name = var.cluster.api.exposure == "dns" && (var.cluster.dns.private || local.several)
  api_inner = (
    local.by_name ? var.cluster.api.host :
    local.inner_balanced ? google_compute_address.api_inner[0].address : local.first_inner
  )

  # Several API servers have a balancer on each node before them, which needs nothing of this file. What leads to all of them inside of the
  # network is for clients there, and for nodes that were made before nodes had a balancer; one host's address leads to one.
  several         = length(var.cluster.control_plane) > 1
  has_inner_place = !local.several || local.by_name || local.inner_balanced
  api_servers     = join(",", [for host in sort(keys(var.cluster.control_plane)) : "${host}=${google_compute_address.control_plane[host].address}:${var.cluster.api.port}"])

  # What hosts are told, and which of them are told anything.
  open_user_data = {
    for who, text in var.user_data : who => replace(replace(text, "@turnup:api@", local.api_inner), "@turnup:api-servers@", local.api_servers)
  }
  user_data = { for who, text in local.open_user_data : who => replace(text, "@turnup:token@", lookup(var.join_tokens, who, "")) if who != "control-plane" }
  told      = nonsensitive(keys(var.user_data))
  # Each of these hosts knows the volume that has what it is.
  control_plane_user_data = {
    for host, one in var.cluster.control_plane : host => replace(
      local.open_user_data["control-plane"], "@turnup:volume@",
      "${google_compute_disk.etcd["main-${one.member}"].id},${google_compute_disk.etcd["main-${one.member}"].name}"
    ) if contains(local.told, "control-plane")
  }
}

data "google_compute_address" "given" {
  count  = var.cluster.api.static_address == "" ? 0 : 1
  name   = var.cluster.api.static_address
  region = local.region
}

resource "google_compute_address" "api" {
  count        = local.outer_balanced && var.cluster.api.static_address == "" ? 1 : 0
  name         = "${local.prefix}-api"
  description  = "API server of ${var.cluster.name}"
  address_type = "EXTERNAL"
  region       = local.region
}

# The API server refuses anonymous requests: turnup-healthcheck on the host answers for it, by plain
# HTTP.
resource "google_compute_region_health_check" "api" {
  count               = local.balanced ? 1 : 0
  name                = "${local.prefix}-api"
  description         = "API server of ${var.cluster.name}"
  region              = local.region
  check_interval_sec  = 5
  timeout_sec         = 5
  healthy_threshold   = 2
  unhealthy_threshold = 3

  http_health_check {
    port         = var.cluster.api.health_port
    request_path = "/readyz"
  }
}

resource "google_compute_region_backend_service" "api" {
  count                           = local.outer_balanced ? 1 : 0
  name                            = "${local.prefix}-api"
  description                     = "API server of ${var.cluster.name}"
  region                          = local.region
  protocol                        = "TCP"
  load_balancing_scheme           = "EXTERNAL"
  health_checks                   = [google_compute_region_health_check.api[0].id]
  connection_draining_timeout_sec = 30

  dynamic "backend" {
    for_each = var.cluster.control_plane
    content {
      group          = google_compute_instance_group_manager.control_plane[backend.key].instance_group
      balancing_mode = "CONNECTION"
    }
  }
}

resource "google_compute_forwarding_rule" "api" {
  count                 = local.outer_balanced ? 1 : 0
  name                  = "${local.prefix}-api"
  description           = "API server of ${var.cluster.name}"
  region                = local.region
  load_balancing_scheme = "EXTERNAL"
  ip_protocol           = "TCP"
  ports                 = [var.cluster.api.port]
  ip_address            = local.given_address != "" ? local.given_address : google_compute_address.api[0].address
  backend_service       = google_compute_region_backend_service.api[0].id
}

resource "google_compute_address" "api_inner" {
  count        = local.inner_balanced ? 1 : 0
  name         = "${local.prefix}-api-internal"
  description  = "API server of ${var.cluster.name}, for its nodes"
  address_type = "INTERNAL"
  purpose      = "SHARED_LOADBALANCER_VIP"
  subnetwork   = local.subnetwork
  region       = local.region
}

resource "google_compute_region_backend_service" "api_inner" {
  count                           = local.inner_balanced ? 1 : 0
  name                            = "${local.prefix}-api-internal"
  description                     = "API server of ${var.cluster.name}, for its nodes"
  region                          = local.region
  protocol                        = "TCP"
  load_balancing_scheme           = "INTERNAL"
  health_checks                   = [google_compute_region_health_check.api[0].id]
  connection_draining_timeout_sec = 30

  dynamic "backend" {
    for_each = var.cluster.control_plane
    content {
      group          = google_compute_instance_group_manager.control_plane[backend.key].instance_group
      balancing_mode = "CONNECTION"
    }
  }
}

resource "google_compute_forwarding_rule" "api_inner" {
  count                 = local.inner_balanced ? 1 : 0
  name                  = "${local.prefix}-api-internal"
  description           = "API server of ${var.cluster.name}, for its nodes"
  region                = local.region
  load_balancing_scheme = "INTERNAL"
  ip_protocol           = "TCP"
  ports                 = [var.cluster.api.port]
  network               = local.network
  subnetwork            = local.subnetwork
  ip_address            = google_compute_address.api_inner[0].address
  backend_service       = google_compute_region_backend_service.api_inner[0].id
}
