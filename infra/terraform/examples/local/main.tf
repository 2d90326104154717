# On an emulator of AWS on this machine, with invented credentials: what the project's own tests
# apply. It shows that the module can be applied there, not that it works on AWS.

terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7.0"
    }
  }
}

variable "endpoint_url" {
  description = "Where the emulator listens."
  type        = string
  default     = "http://127.0.0.1:4566"
  nullable    = false
}

variable "region" {
  description = "Region that the emulator is asked for."
  type        = string
  default     = "eu-central-1"
  nullable    = false
}

variable "prefix" {
  description = "First part of every name."
  type        = string
  default     = "local"
  nullable    = false
}

variable "package_path" {
  description = "The functions' zip, as `make zip` builds it."
  type        = string
  default     = "../../../../build/dynsched-lambda.zip"
  nullable    = false
}

variable "worker_package_path" {
  description = "Another zip for the worker, with handlers in it; empty: the same."
  type        = string
  default     = ""
  nullable    = false
}

variable "queues" {
  description = "Queues that the worker function serves."
  type        = list(string)
  default     = ["main"]
  nullable    = false
}

variable "worker" {
  description = "The worker function, as the module's variable."
  type        = any
  default     = {}
}

variable "worker_environment" {
  description = "The worker's environment, as the module's variable."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "settings" {
  description = "Settings of dynsched, as the module's variable."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "max_receive_count" {
  description = "As the module's variable."
  type        = number
  default     = 1000
  nullable    = false
}

provider "aws" {
  region                      = var.region
  access_key                  = "testing"
  secret_key                  = "testing" # pragma: allowlist secret
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_region_validation      = true

  endpoints {
    cloudwatch     = var.endpoint_url
    cloudwatchlogs = var.endpoint_url
    dynamodb       = var.endpoint_url
    iam            = var.endpoint_url
    lambda         = var.endpoint_url
    scheduler      = var.endpoint_url
    sns            = var.endpoint_url
    sqs            = var.endpoint_url
    sts            = var.endpoint_url
  }
}

module "dynsched" {
  source = "../.."

  prefix              = var.prefix
  endpoint_url        = var.endpoint_url
  deletion_protection = false
  package             = { path = var.package_path }
  worker_package      = var.worker_package_path == "" ? null : { path = var.worker_package_path }
  queues              = var.queues
  max_receive_count   = var.max_receive_count
  worker              = var.worker
  worker_environment  = var.worker_environment
  settings            = var.settings
}

output "store_url" {
  description = "What DYNSCHED_STORE is to be."
  value       = module.dynsched.store_url
}

output "message_queues" {
  description = "The queues of the worker function."
  value       = module.dynsched.message_queues
}

output "dead_message_queue_urls" {
  description = "Queues with what was delivered too often."
  value       = module.dynsched.dead_message_queue_urls
}

output "failed_invocations_queue_url" {
  description = "Queue with wake-ups that failed."
  value       = module.dynsched.failed_invocations_queue_url
}

output "function_names" {
  description = "Names of the functions."
  value       = module.dynsched.function_names
}

output "table_names" {
  description = "Names of the tables."
  value       = module.dynsched.table_names
}

output "policies" {
  description = "The policies for people and programs."
  value = {
    producer = jsondecode(module.dynsched.producer_policy_json)
    operator = jsondecode(module.dynsched.operator_policy_json)
    puller   = jsondecode(module.dynsched.pulling_worker_policy_json)
  }
}
