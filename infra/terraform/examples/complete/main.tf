# All that can be set, as a team in production might: two queues, its own handlers in the worker,
# one key for everything, a private network, mail on alarms, and policies for people and programs.

terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7.0"
    }
  }
}

variable "prefix" {
  description = "First part of every name."
  type        = string
  default     = "prod"
  nullable    = false
}

variable "kms_key_arn" {
  description = "Customer managed key for everything that is stored."
  type        = string
  nullable    = false
}

variable "subnet_ids" {
  description = "Private subnets with endpoints for DynamoDB, SQS and CloudWatch Logs."
  type        = list(string)
  nullable    = false
}

variable "security_group_ids" {
  description = "Security groups of the functions."
  type        = list(string)
  nullable    = false
}

variable "permissions_boundary_arn" {
  description = "What roles in this account may be at most."
  type        = string
  default     = null
}

variable "alarm_emails" {
  description = "Who is told."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "artifacts" {
  description = "Bucket with the zips, the keys of both, and the SHA-256 of each as `make zip` prints it after `base64`."
  type = object({
    bucket        = string
    key           = string
    sha256        = string
    worker_key    = string
    worker_sha256 = string
  })
  nullable = false
}

variable "exports_bucket" {
  description = "Bucket that the team's handlers write to."
  type        = string
  nullable    = false
}

provider "aws" {
  default_tags {
    tags = { ManagedBy = "terraform" }
  }
}

module "dynsched" {
  # In a repository of your own: "github.com/your-fork/dynsched//infra/terraform?ref=TAG".
  source = "../.."

  prefix      = var.prefix
  tags        = { Service = "dynsched" }
  kms_key_arn = var.kms_key_arn

  deletion_protection    = true
  point_in_time_recovery = true
  recovery_days          = 35
  max_units              = { read = 10000, write = 10000 }

  look_ahead_s      = 180
  shards            = 4
  lanes             = 4
  queues            = ["main", "reports"]
  max_receive_count = 1000

  package = {
    bucket        = var.artifacts.bucket
    key           = var.artifacts.key
    sha256_base64 = var.artifacts.sha256
  }
  worker_package = {
    bucket        = var.artifacts.bucket
    key           = var.artifacts.worker_key
    sha256_base64 = var.artifacts.worker_sha256
  }
  dispatcher = { memory_mb = 1024 }
  reaper     = { memory_mb = 1024 }
  worker = {
    memory_mb  = 1024
    timeout_s  = 600
    batch_size = 1
    app        = "jobs:app"
  }
  worker_concurrency = { high = 100, default = 50, bulk = 10 }
  worker_environment = { EXPORTS_BUCKET = var.exports_bucket }
  worker_policy_json = data.aws_iam_policy_document.handlers.json
  settings           = { DYNSCHED_RESEND_AFTER_S = "120" }

  vpc                      = { subnet_ids = var.subnet_ids, security_group_ids = var.security_group_ids }
  tracing                  = true
  role_path                = "/services/"
  permissions_boundary_arn = var.permissions_boundary_arn
  log_retention_days       = 365

  alarm_emails     = var.alarm_emails
  alarm_thresholds = { start_delay_high_s = 5, dead_runs = 50 }
  runbook_base_url = "https://wiki.example.com/dynsched"
}

# What the team's handlers do besides.
data "aws_iam_policy_document" "handlers" {
  statement {
    sid       = "Exports"
    actions   = ["s3:PutObject"]
    resources = ["arn:aws:s3:::${var.exports_bucket}/*"]
  }
}

# Policies to attach to whoever enqueues, operates, or runs long-lived workers.
resource "aws_iam_policy" "producer" {
  name   = "${var.prefix}-producer"
  policy = module.dynsched.producer_policy_json
}

resource "aws_iam_policy" "operator" {
  name   = "${var.prefix}-operator"
  policy = module.dynsched.operator_policy_json
}

resource "aws_iam_policy" "pulling_worker" {
  name   = "${var.prefix}-pulling-worker"
  policy = module.dynsched.pulling_worker_policy_json
}

output "store_url" {
  description = "What DYNSCHED_STORE is to be."
  value       = module.dynsched.store_url
}

output "alarm_names" {
  description = "The alarms with their runbooks' anchors."
  value       = module.dynsched.alarm_names
}
