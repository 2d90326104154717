# The least that runs: three tables, three functions, three queues, alarms that tell nobody yet.

terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7.0"
    }
  }
}

provider "aws" {}

module "dynsched" {
  source = "../.."

  package = { path = "${path.module}/../../../../build/dynsched-lambda.zip" }
}

output "store_url" {
  description = "What DYNSCHED_STORE is to be: export it, then `dynsched job list`."
  value       = module.dynsched.store_url
}
