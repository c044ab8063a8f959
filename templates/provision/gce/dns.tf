# The name of the API server in a zone of Cloud DNS: in one that exists, or in a private one of the cluster's own. All that the record names is
# reserved: with another control plane or another exposure, the next apply writes other addresses.

locals {
  in_zone  = var.cluster.dns.provider == "clouddns"
  own_zone = local.in_zone && var.cluster.dns.zone == ""
}

# Of the cluster's name below the domain, for the cluster's network alone: it hides nothing else of the domain.
resource "google_dns_managed_zone" "cluster" {
  count       = local.own_zone ? 1 : 0
  name        = local.prefix
  description = "Names of the Kubernetes cluster ${var.cluster.name}"
  dns_name    = "${var.cluster.name}.${var.cluster.dns.domain}."
  visibility  = "private"
  labels      = local.labels

  private_visibility_config {
    networks { network_url = local.network }
  }
}

resource "google_dns_record_set" "api" {
  count        = local.in_zone ? 1 : 0
  name         = "${var.cluster.api.host}."
  managed_zone = local.own_zone ? google_dns_managed_zone.cluster[0].name : var.cluster.dns.zone
  type         = "A"
  ttl          = var.cluster.dns.ttl
  rrdatas = (
    local.outer_balanced && !var.cluster.dns.private ? [google_compute_forwarding_rule.api[0].ip_address] :
    local.inner_balanced ? [google_compute_forwarding_rule.api_inner[0].ip_address] :
    var.cluster.dns.private || !var.cluster.api.external || !local.public ? [for address in google_compute_address.control_plane : address.address] :
    [for host in sort(keys(var.cluster.control_plane)) : host == local.first ? local.first_public : google_compute_address.control_plane_public[host].address]
  )
}
