# What this module needs. Credentials come from the places that the provider knows by itself: `az login`, ARM_CLIENT_ID with ARM_CLIENT_SECRET,
# a certificate or a federated token, or the managed identity of the machine that Terraform runs on.

terraform {
  required_version = ">= 1.5"
  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = "~> 5.2"
    }
  }
}

provider "azurerm" {
  subscription_id         = local.azure.subscription_id == "" ? null : local.azure.subscription_id
  tenant_id               = local.azure.tenant_id == "" ? null : local.azure.tenant_id
  client_id               = local.azure.client_id == "" ? null : local.azure.client_id
  client_secret_file_path = local.azure.client_secret_file == "" ? null : local.azure.client_secret_file
  environment             = local.azure.environment

  # Only what this module uses is registered with the subscription: the provider's own list is long,
  # and not every account may do that.
  resource_provider_registrations = "none"
  resource_providers_to_register  = ["Microsoft.Compute", "Microsoft.ManagedIdentity", "Microsoft.Network"]

  features {
    # What the cluster itself has made (disks and load balancers of Services) stands in the way of deleting its group, and is named.
    resource_group {
      prevent_deletion_if_contains_resources = true
    }
    virtual_machine {
      delete_os_disk_on_deletion = true
    }
    # A changed template is for the next machine, or for the scale set's own rolling upgrade:
    # Terraform restarts no machine.
    virtual_machine_scale_set {
      roll_instances_when_required  = false
      reimage_on_manual_upgrade     = false
      scale_to_zero_before_deletion = true
    }
  }
}
