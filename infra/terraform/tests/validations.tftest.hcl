# Every validation refuses something, the n-th of a variable in the n-th run: one run each would take
# a second each. A test in Python counts that none is left out.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  package = { path = "schema.json" }
}

run "first_validations" {
  command = plan

  variables {
    prefix                   = "Prod"
    kms_key_arn              = "arn:aws:kms:eu-central-1:111122223333:alias/mine"
    recovery_days            = 0.5
    max_units                = { read = 0, write = 1 }
    look_ahead_s             = 60
    shards                   = 1.5
    lanes                    = 0
    queues                   = ["main.eu"]
    max_receive_count        = 1001
    package                  = { path = "schema.json", bucket = "b", key = "k" }
    worker_package           = { bucket = "b" }
    runtime                  = "python3.8"
    architecture             = "riscv64"
    dispatcher               = { memory_mb = 64 }
    reaper                   = { memory_mb = 64 }
    worker                   = { memory_mb = 20000 }
    worker_concurrency       = { bulk = 1 }
    worker_layers            = ["a", "b", "c", "d", "e", "f"]
    worker_environment       = { DYNSCHED_SLOTS = "3" }
    worker_policy_json       = "everything"
    worker_targets           = { functions = ["report"] }
    settings                 = { BUCKET = "exports" }
    endpoint_url             = "127.0.0.1:4566"
    vpc                      = { subnet_ids = [], security_group_ids = ["sg-1"] }
    role_path                = "services"
    permissions_boundary_arn = "bound"
    log_retention_days       = 10
    log_level                = "WARN"
    alarm_actions            = ["pager"]
    alarm_emails             = ["team"]
    alarm_thresholds         = { oldest_due_s = 0 }
    runbook_base_url         = "docs/aws.md#alarms"
  }

  expect_failures = [
    var.prefix,
    var.kms_key_arn,
    var.recovery_days,
    var.max_units,
    var.look_ahead_s,
    var.shards,
    var.lanes,
    var.queues,
    var.max_receive_count,
    var.package,
    var.worker_package,
    var.runtime,
    var.architecture,
    var.dispatcher,
    var.reaper,
    var.worker,
    var.worker_concurrency,
    var.worker_layers,
    var.worker_environment,
    var.worker_policy_json,
    var.worker_targets,
    var.settings,
    var.endpoint_url,
    var.vpc,
    var.role_path,
    var.permissions_boundary_arn,
    var.log_retention_days,
    var.log_level,
    var.alarm_actions,
    var.alarm_emails,
    var.alarm_thresholds,
    var.runbook_base_url,
  ]
}

run "second_validations" {
  command = plan

  variables {
    queues         = ["main", "main"]
    dispatcher     = { timeout_s = 60 }
    reaper         = { timeout_s = 60 }
    worker         = { timeout_s = 901 }
    worker_targets = { queues = ["https://sqs.eu-central-1.amazonaws.com/111122223333/orders"] }
    settings       = { DYNSCHED_STORE = "sqlite:///x.db" }
  }

  expect_failures = [
    var.queues,
    var.dispatcher,
    var.reaper,
    var.worker,
    var.worker_targets,
    var.settings,
  ]
}

run "third_validations" {
  command = plan

  variables {
    package        = { path = "not-built.zip" }
    worker_package = { path = "not-built.zip" }
    dispatcher     = { reserved_concurrency = 0 }
    reaper         = { reserved_concurrency = 0 }
    worker         = { reserved_concurrency = 0 }
  }

  expect_failures = [
    var.package,
    var.worker_package,
    var.dispatcher,
    var.reaper,
    var.worker,
  ]
}

run "fourth_validations" {
  command = plan

  variables {
    worker = { batch_size = 11 }
  }

  expect_failures = [
    var.worker,
  ]
}

run "fifth_validations" {
  command = plan

  variables {
    worker = { app = "jobs.py" }
  }

  expect_failures = [
    var.worker,
  ]
}
