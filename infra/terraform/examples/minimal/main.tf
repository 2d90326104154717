# The least that runs: tables, functions, queues for three priorities, alarms that tell nobody yet.

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
  # In a repository of your own: "github.com/your-fork/dynsched//infra/terraform?ref=TAG", and the
  # path of the zip from there.
  source = "../.."

  # worker = { app = "jobs:app" }  # handlers of your own, in the zip by `make zip` with --with
  # deletion_protection = false    # to be applied before a `terraform destroy`

  package = { path = "${path.module}/../../../../build/dynsched-lambda.zip" }
}

output "store_url" {
  description = "What DYNSCHED_STORE is to be: export it, then `dynsched job list`."
  value       = module.dynsched.store_url
}

output "producer_policy_json" {
  description = "Policy for programs that enqueue."
  value       = module.dynsched.producer_policy_json
}

output "operator_policy_json" {
  description = "Policy for people."
  value       = module.dynsched.operator_policy_json
}

output "failed_invocations_queue_url" {
  description = "Queue with wake-ups that failed."
  value       = module.dynsched.failed_invocations_queue_url
}

output "dead_message_queue_urls" {
  description = "Queues with messages that were delivered too often."
  value       = module.dynsched.dead_message_queue_urls
}
