# What this module needs. Credentials come from the places that the provider knows by itself: AWS_PROFILE, AWS_ACCESS_KEY_ID and its
# relatives, ~/.aws, single sign-on, or the role of the machine that Terraform runs on. None is ever a variable here.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0, < 7.0"
    }
  }
}

provider "aws" {
  region  = local.aws.region
  profile = local.aws.profile == "" ? null : local.aws.profile

  dynamic "assume_role" {
    for_each = local.aws.assume_role_arn == "" ? [] : [local.aws.assume_role_arn]
    content {
      role_arn     = assume_role.value
      session_name = "turnup"
    }
  }
}
