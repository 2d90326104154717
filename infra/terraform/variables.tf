# What the scheduler is called, and what all of it shares.

variable "prefix" {
  description = "First part of every name that is made here, and the PREFIX of the store's URL. One scheduler for each prefix, account and region."
  type        = string
  default     = "dynsched"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,29}[a-z0-9]$", var.prefix))
    error_message = "prefix: 2 to 31 lower-case letters, digits and hyphens; a letter first, no hyphen last."
  }
}

variable "tags" {
  description = "Tags of everything that can have some, besides the provider's default tags."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "kms_key_arn" {
  description = "Customer managed key for tables, queues, logs and the functions' environments. Its policy must admit the services CloudWatch Logs, SQS and EventBridge Scheduler. null: keys that AWS owns."
  type        = string
  default     = null
  nullable    = true

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:[a-z0-9-]+:kms:[a-z0-9-]+:[0-9]{12}:key/.+$", var.kms_key_arn))
    error_message = "kms_key_arn: the ARN of a key (not of an alias), or null."
  }
}

variable "paused" {
  description = "true stops the schedules and the delivery of messages and leaves everything else as it is: for a restore, or an upgrade that must not run beside the old version."
  type        = bool
  default     = false
  nullable    = false
}

# Tables.

variable "deletion_protection" {
  description = "Whether DynamoDB refuses to delete the tables. Turn it off, apply, and only then destroy."
  type        = bool
  default     = true
  nullable    = false
}

variable "point_in_time_recovery" {
  description = "Whether the tables keep continuous back-ups (about 0.20 USD for each GB and month)."
  type        = bool
  default     = true
  nullable    = false
}

variable "recovery_days" {
  description = "For how many days back a table can be restored, 1 to 35. null: 35, as AWS has it."
  type        = number
  default     = null
  nullable    = true

  validation {
    condition     = var.recovery_days == null || try(var.recovery_days >= 1 && var.recovery_days <= 35 && floor(var.recovery_days) == var.recovery_days, false)
    error_message = "recovery_days: a whole number from 1 to 35, or null."
  }
}

variable "max_units" {
  description = "Bounds of what a second of on-demand use may cost, for each table and each index: read and write request units. null: no bound but the account's quota. What is over a bound is throttled: runs are late, none is lost."
  type = object({
    read  = number
    write = number
  })
  default  = null
  nullable = true

  validation {
    condition     = var.max_units == null || try(var.max_units.read >= 1 && var.max_units.write >= 1, false)
    error_message = "max_units: at least 1 unit each, or null."
  }
}

# Where the store's map begins; see docs/capacity.md for how many.

variable "look_ahead_s" {
  description = "How far ahead the dispatcher makes runs, in seconds. It is woken each minute, so two minutes at least let one missed wake-up harm nothing."
  type        = number
  default     = 180
  nullable    = false

  validation {
    condition     = var.look_ahead_s >= 120 && var.look_ahead_s <= 900
    error_message = "look_ahead_s: 120 to 900 seconds; beyond 900 SQS cannot delay a message."
  }
}

variable "shards" {
  description = "Shards of the due and retry indexes of a new store. Later on an operator changes them; this value is then ignored."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.shards >= 1 && var.shards <= 1000 && floor(var.shards) == var.shards
    error_message = "shards: a whole number from 1 to 1000."
  }
}

variable "lanes" {
  description = "Lanes of each queue and priority of a new store. Later on an operator changes them; this value is then ignored."
  type        = number
  default     = 2
  nullable    = false

  validation {
    condition     = var.lanes >= 1 && var.lanes <= 1000 && floor(var.lanes) == var.lanes
    error_message = "lanes: a whole number from 1 to 1000."
  }
}

# Queues.

variable "queues" {
  description = "Queues of the scheduler whose runs the worker function takes; each becomes an SQS queue for each priority and one for what was delivered too often. Queues that only pulling workers serve are not named here. An empty list: no worker function at all."
  type        = list(string)
  default     = ["main"]
  nullable    = false

  validation {
    condition     = alltrue([for name in var.queues : can(regex("^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$", name))])
    error_message = "queues: 1 to 32 letters, digits, hyphens and underscores each, a letter or digit first."
  }

  validation {
    condition     = length(distinct(var.queues)) == length(var.queues) && length(var.queues) <= 20
    error_message = "queues: at most 20, none of them twice."
  }
}

variable "max_receive_count" {
  description = "Deliveries of one message before SQS puts it aside. High, since a run that waits at its cap comes back many times, and the run's row decides about it: a message put aside is made anew by the reaper."
  type        = number
  default     = 1000
  nullable    = false

  validation {
    condition     = var.max_receive_count >= 10 && var.max_receive_count <= 1000
    error_message = "max_receive_count: 10 to 1000."
  }
}

# Functions.

variable "package" {
  description = "The functions' zip as `make zip` builds it: a path, or an object in S3 (bucket, key, and object_version or sha256_base64, by which a new one is noticed)."
  type = object({
    path           = optional(string)
    bucket         = optional(string)
    key            = optional(string)
    object_version = optional(string)
    sha256_base64  = optional(string)
  })
  nullable = false

  validation {
    condition     = (var.package.path != null) != (var.package.bucket != null && var.package.key != null)
    error_message = "package: either path, or bucket and key."
  }

  validation {
    condition     = var.package.path == null || try(fileexists(var.package.path), false)
    error_message = "package: there is no file at its path; `make zip` builds it: build/dynsched-lambda.zip."
  }
}

variable "worker_package" {
  description = "Another zip for the worker alone, with a team's handlers in it (`make zip` with --with and --requirements). null: the same one."
  type = object({
    path           = optional(string)
    bucket         = optional(string)
    key            = optional(string)
    object_version = optional(string)
    sha256_base64  = optional(string)
  })
  default  = null
  nullable = true

  validation {
    condition     = try((var.worker_package.path != null) != (var.worker_package.bucket != null && var.worker_package.key != null), true)
    error_message = "worker_package: either path, or bucket and key; or null."
  }

  validation {
    condition     = try(var.worker_package.path, null) == null || try(fileexists(var.worker_package.path), false)
    error_message = "worker_package: there is no file at its path; `make zip` builds it, with --with, --requirements and --output."
  }
}

variable "runtime" {
  description = "Runtime of the functions; the zip is built for it."
  type        = string
  default     = "python3.13"
  nullable    = false

  validation {
    condition     = contains(["python3.11", "python3.12", "python3.13"], var.runtime)
    error_message = "runtime: python3.11, python3.12 or python3.13."
  }
}

variable "architecture" {
  description = "Processor of the functions; the zip is built for it."
  type        = string
  default     = "arm64"
  nullable    = false

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "architecture: arm64 or x86_64."
  }
}

variable "dispatcher" {
  description = "Size of the dispatcher: memory in MB, time limit in seconds (below a minute, as it is woken each minute), reserved concurrency (-1: none, for accounts whose quota leaves nothing to reserve; two at a time are harmless)."
  type = object({
    memory_mb            = optional(number, 512)
    timeout_s            = optional(number, 55)
    reserved_concurrency = optional(number, 1)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.dispatcher.memory_mb >= 128 && var.dispatcher.memory_mb <= 10240
    error_message = "dispatcher: memory_mb is 128 to 10240."
  }

  validation {
    condition     = var.dispatcher.timeout_s >= 10 && var.dispatcher.timeout_s <= 59
    error_message = "dispatcher: timeout_s is 10 to 59 seconds."
  }

  validation {
    condition     = contains([-1, 1, 2, 3, 4], var.dispatcher.reserved_concurrency)
    error_message = "dispatcher: reserved_concurrency is 1 to 4, or -1 for none; `paused` is what stops it."
  }
}

variable "reaper" {
  description = "Size of the reaper, as `dispatcher`."
  type = object({
    memory_mb            = optional(number, 512)
    timeout_s            = optional(number, 55)
    reserved_concurrency = optional(number, 1)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.reaper.memory_mb >= 128 && var.reaper.memory_mb <= 10240
    error_message = "reaper: memory_mb is 128 to 10240."
  }

  validation {
    condition     = var.reaper.timeout_s >= 20 && var.reaper.timeout_s <= 59
    error_message = "reaper: timeout_s is 20 to 59 seconds."
  }

  validation {
    condition     = contains([-1, 1, 2, 3, 4], var.reaper.reserved_concurrency)
    error_message = "reaper: reserved_concurrency is 1 to 4, or -1 for none; `paused` is what stops it."
  }
}

variable "worker" {
  description = "The worker function: memory in MB, time limit in seconds (no handler runs longer; long ones belong to pulling workers), reserved concurrency (-1: none), messages for one invocation, the app with the handlers as module:attribute, and whether commands may be run."
  type = object({
    memory_mb            = optional(number, 512)
    timeout_s            = optional(number, 300)
    reserved_concurrency = optional(number, -1)
    batch_size           = optional(number, 1)
    app                  = optional(string, "")
    allow_commands       = optional(bool, false)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.worker.memory_mb >= 128 && var.worker.memory_mb <= 10240
    error_message = "worker: memory_mb is 128 to 10240."
  }

  validation {
    condition     = var.worker.timeout_s >= 30 && var.worker.timeout_s <= 900
    error_message = "worker: timeout_s is 30 to 900 seconds."
  }

  validation {
    condition     = var.worker.reserved_concurrency == -1 || var.worker.reserved_concurrency >= 1
    error_message = "worker: reserved_concurrency is at least 1, or -1 for none; `paused` is what stops it."
  }

  validation {
    condition     = var.worker.batch_size >= 1 && var.worker.batch_size <= 10
    error_message = "worker: batch_size is 1 to 10."
  }

  validation {
    condition     = var.worker.app == "" || can(regex("^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$", var.worker.app))
    error_message = "worker: app is module:attribute, such as jobs:app."
  }
}

variable "worker_concurrency" {
  description = "How many worker functions run at once for each queue, by priority. Together over all queues they should stay below the account's concurrency."
  type = object({
    high    = optional(number, 50)
    default = optional(number, 30)
    bulk    = optional(number, 10)
  })
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for most in values(var.worker_concurrency) : most >= 2 && most <= 1000])
    error_message = "worker_concurrency: 2 to 1000 for each priority, as SQS asks."
  }
}

variable "worker_layers" {
  description = "ARNs of layer versions of the worker function."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = length(var.worker_layers) <= 5
    error_message = "worker_layers: at most 5."
  }
}

variable "worker_environment" {
  description = "Environment of the worker function, for a team's handlers. No secrets: those belong to a store of secrets that the handler reads."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for name in keys(var.worker_environment) : can(regex("^[A-Za-z][A-Za-z0-9_]*$", name)) && !startswith(name, "DYNSCHED_") && !startswith(name, "AWS_LAMBDA_")])
    error_message = "worker_environment: names of letters, digits and underscores, none that begins with DYNSCHED_ (see `settings`) or AWS_LAMBDA_."
  }
}

variable "worker_policy_json" {
  description = "What a team's handlers may do, as an IAM policy; it becomes an inline policy of the worker's role. null: nothing."
  type        = string
  default     = null
  nullable    = true

  validation {
    condition     = var.worker_policy_json == null || can(jsondecode(var.worker_policy_json).Statement)
    error_message = "worker_policy_json: a policy document in JSON, or null."
  }
}

variable "worker_targets" {
  description = "What runs with a Lambda or SQS target may reach: ARNs of functions (with :* for their versions) and of queues."
  type = object({
    functions = optional(list(string), [])
    queues    = optional(list(string), [])
  })
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for arn in var.worker_targets.functions : can(regex("^arn:[a-z0-9-]+:lambda:[a-z0-9-]+:[0-9]{12}:function:.+$", arn))])
    error_message = "worker_targets: functions are ARNs of Lambda functions."
  }

  validation {
    condition     = alltrue([for arn in var.worker_targets.queues : can(regex("^arn:[a-z0-9-]+:sqs:[a-z0-9-]+:[0-9]{12}:.+$", arn))])
    error_message = "worker_targets: queues are ARNs of SQS queues."
  }
}

variable "settings" {
  description = "Settings of dynsched for all functions, as in docs/settings.md: { DYNSCHED_RESEND_AFTER_S = \"120\" }."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for name in keys(var.settings) : startswith(name, "DYNSCHED_")])
    error_message = "settings: every name begins with DYNSCHED_ (see `worker_environment` for others)."
  }

  validation {
    condition = length(setintersection(keys(var.settings), [
      "DYNSCHED_STORE", "DYNSCHED_MESSAGE_QUEUES", "DYNSCHED_LOOK_AHEAD_S", "DYNSCHED_SHARDS",
      "DYNSCHED_LANES", "DYNSCHED_APP", "DYNSCHED_ALLOW_COMMANDS",
    ])) == 0
    error_message = "settings: store, queues, look-ahead, shards, lanes, app and commands have variables of their own."
  }
}

variable "endpoint_url" {
  description = "Another endpoint than AWS's own, for emulators. Empty: AWS."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.endpoint_url == "" || can(regex("^https?://[^/?#]+/?$", var.endpoint_url))
    error_message = "endpoint_url: http(s)://host:port, or empty."
  }
}

# Network, roles, logs.

variable "vpc" {
  description = "Subnets and security groups of the functions. They then need endpoints or a way out for DynamoDB, SQS and CloudWatch Logs. null: no VPC, which is enough for AWS services."
  type = object({
    subnet_ids         = list(string)
    security_group_ids = list(string)
  })
  default  = null
  nullable = true

  validation {
    condition     = try(length(var.vpc.subnet_ids) > 0 && length(var.vpc.security_group_ids) > 0, var.vpc == null)
    error_message = "vpc: at least one subnet and one security group, or null."
  }
}

variable "tracing" {
  description = "Whether the functions are sampled by X-Ray."
  type        = bool
  default     = false
  nullable    = false
}

variable "role_path" {
  description = "Path of the roles."
  type        = string
  default     = "/"
  nullable    = false

  validation {
    condition     = can(regex("^/([A-Za-z0-9_+=,.@-]+/)*$", var.role_path))
    error_message = "role_path: begins and ends with a slash."
  }
}

variable "permissions_boundary_arn" {
  description = "Policy that bounds what the roles may do. null: none."
  type        = string
  default     = null
  nullable    = true

  validation {
    condition     = var.permissions_boundary_arn == null || can(regex("^arn:[a-z0-9-]+:iam::([0-9]{12}|aws):policy/.+$", var.permissions_boundary_arn))
    error_message = "permissions_boundary_arn: the ARN of a policy, or null."
  }
}

variable "log_retention_days" {
  description = "How long the functions' logs are kept."
  type        = number
  default     = 30
  nullable    = false

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days: a number of days that CloudWatch Logs knows, such as 7, 30, 90 or 365."
  }
}

variable "log_level" {
  description = "Least level of what the functions log: DEBUG or INFO. A higher one would hold back their metrics too, which are lines of the log without a level."
  type        = string
  default     = "INFO"
  nullable    = false

  validation {
    condition     = contains(["DEBUG", "INFO"], var.log_level)
    error_message = "log_level: DEBUG or INFO."
  }
}

# Alarms and dashboard.

variable "alarms" {
  description = "Whether there are alarms."
  type        = bool
  default     = true
  nullable    = false
}

variable "alarm_actions" {
  description = "ARNs that are told when an alarm begins and when it ends, such as SNS topics."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for arn in var.alarm_actions : startswith(arn, "arn:")]) && length(var.alarm_actions) <= 4
    error_message = "alarm_actions: at most 4 ARNs; CloudWatch takes 5, and one may be the topic for alarm_emails."
  }
}

variable "alarm_emails" {
  description = "Addresses that a topic of their own sends the alarms to; each has to be confirmed by whoever reads it. Empty: no topic."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for address in var.alarm_emails : can(regex("^[^@[:space:]]+@[^@[:space:]]+$", address))])
    error_message = "alarm_emails: addresses such as team@example.com."
  }
}

variable "alarm_thresholds" {
  description = "When the alarms go off: start delays (p99, seconds) by priority, age of the oldest due run, age of the oldest message and the dispatcher's lag in seconds, runs that died within an hour, share of the worker's concurrency, and the account's quota of concurrent functions."
  type = object({
    start_delay_high_s    = optional(number, 30)
    start_delay_default_s = optional(number, 120)
    oldest_due_s          = optional(number, 300)
    message_age_s         = optional(number, 3600)
    dispatcher_lag_s      = optional(number, 300)
    dead_runs             = optional(number, 10)
    concurrency_share     = optional(number, 0.9)
    account_concurrency   = optional(number, 1000)
  })
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for bound in values(var.alarm_thresholds) : bound > 0]) && var.alarm_thresholds.concurrency_share <= 1
    error_message = "alarm_thresholds: above 0 each, and concurrency_share at most 1."
  }
}

variable "runbook_base_url" {
  description = "Page whose anchors are the alarms' runbooks; each alarm's description links to it. Name your own copy of docs/aws.md."
  type        = string
  default     = "docs/aws.md"
  nullable    = false

  validation {
    condition     = can(regex("^[^#[:space:]]+$", var.runbook_base_url))
    error_message = "runbook_base_url: a link without spaces and without #."
  }
}

variable "dashboard" {
  description = "Whether there is a dashboard (3 USD a month beyond the account's first three)."
  type        = bool
  default     = true
  nullable    = false
}
