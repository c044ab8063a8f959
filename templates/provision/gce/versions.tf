# What this module needs. Credentials come from the places that the provider knows by itself: GOOGLE_APPLICATION_CREDENTIALS,
# GOOGLE_OAUTH_ACCESS_TOKEN, `gcloud auth application-default login`, or the machine that Terraform runs on.

terraform {
  required_version = ">= 1.5"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.0, < 9.0"
    }
  }
}

provider "google" {
  project        = var.cluster.gce.project == "" ? null : var.cluster.gce.project
  region         = var.cluster.gce.region
  zone           = var.cluster.gce.zone
  credentials    = var.cluster.gce.credentials_file == "" ? null : file(var.cluster.gce.credentials_file)
  default_labels = local.labels
}
