# Each choice changes what it says, and a switch that is off leaves nothing behind.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  package = { path = "schema.json" }
}

run "a_prefix_names_everything" {
  command = plan

  variables {
    prefix = "prod-eu"
    tags   = { Team = "batch" }
  }

  assert {
    condition     = alltrue([for name in concat([for table in aws_dynamodb_table.this : table.name], [for queue in aws_sqs_queue.messages : queue.name], [for function in aws_lambda_function.this : function.function_name], [for role in aws_iam_role.function : role.name]) : startswith(name, "prod-eu-")])
    error_message = "two schedulers live side by side"
  }

  assert {
    condition     = alltrue([for made in concat([for table in aws_dynamodb_table.this : table.tags], [for queue in aws_sqs_queue.messages : queue.tags], [for function in aws_lambda_function.this : function.tags]) : made.Team == "batch"])
    error_message = "tags are on everything"
  }
}

run "a_key_encrypts_everything" {
  command = plan

  variables {
    kms_key_arn  = "arn:aws:kms:eu-central-1:111122223333:key/00000000-0000-0000-0000-000000000000"
    alarm_emails = ["team@example.com"]
  }

  assert {
    condition     = alltrue([for table in aws_dynamodb_table.this : table.server_side_encryption[0].kms_key_arn == var.kms_key_arn])
    error_message = "tables"
  }

  assert {
    condition     = alltrue([for queue in concat(values(aws_sqs_queue.messages), values(aws_sqs_queue.dead), [aws_sqs_queue.failed_invocations]) : queue.kms_master_key_id == var.kms_key_arn])
    error_message = "queues"
  }

  assert {
    condition     = alltrue([for name in keys(aws_lambda_function.this) : aws_lambda_function.this[name].kms_key_arn == var.kms_key_arn && aws_cloudwatch_log_group.this[name].kms_key_id == var.kms_key_arn])
    error_message = "environments and logs"
  }

  assert {
    condition     = aws_sns_topic.alarms[0].kms_master_key_id == var.kms_key_arn && alltrue([for schedule in aws_scheduler_schedule.this : schedule.kms_key_arn == var.kms_key_arn])
    error_message = "topic and schedules"
  }

  assert {
    condition     = alltrue([for policy in concat(values(aws_iam_role_policy.calls), [aws_iam_role_policy.scheduler]) : contains(flatten([for statement in jsondecode(policy.policy).Statement : statement.Resource]), var.kms_key_arn)])
    error_message = "and whoever reads them may use the key"
  }
}

run "paused_stops_what_moves" {
  command = plan

  variables {
    paused = true
  }

  assert {
    condition     = alltrue([for schedule in aws_scheduler_schedule.this : schedule.state == "DISABLED"]) && alltrue([for mapping in aws_lambda_event_source_mapping.worker : !mapping.enabled])
    error_message = "no wake-up, no delivery"
  }

  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.this : !alarm.actions_enabled])
    error_message = "nobody is woken by a silence on purpose"
  }
}

run "tables_can_be_let_go" {
  command = plan

  variables {
    deletion_protection    = false
    point_in_time_recovery = false
  }

  assert {
    condition     = alltrue([for table in aws_dynamodb_table.this : !table.deletion_protection_enabled && !table.point_in_time_recovery[0].enabled])
    error_message = "neither protection nor back-ups"
  }
}

run "back_ups_of_a_week" {
  command = plan

  variables {
    recovery_days = 7
  }

  assert {
    condition     = alltrue([for table in aws_dynamodb_table.this : table.point_in_time_recovery[0].recovery_period_in_days == 7])
    error_message = "a week"
  }
}

run "units_are_bounded" {
  command = plan

  variables {
    max_units = { read = 100, write = 200 }
  }

  assert {
    condition     = alltrue([for table in aws_dynamodb_table.this : table.on_demand_throughput[0].max_read_request_units == 100 && table.on_demand_throughput[0].max_write_request_units == 200])
    error_message = "tables"
  }

  assert {
    condition     = alltrue(flatten([for table in aws_dynamodb_table.this : [for index in table.global_secondary_index : index.on_demand_throughput[0].max_write_request_units == 200]]))
    error_message = "indexes"
  }
}

run "the_map_begins_as_told" {
  command = plan

  variables {
    look_ahead_s = 300
    shards       = 4
    lanes        = 8
  }

  assert {
    condition     = local.functions.dispatcher.environment.DYNSCHED_LOOK_AHEAD_S == "300" && local.functions.dispatcher.environment.DYNSCHED_SHARDS == "4" && local.functions.dispatcher.environment.DYNSCHED_LANES == "8"
    error_message = "the dispatcher prepares the store"
  }
}

run "more_queues" {
  command = plan

  variables {
    queues            = ["main", "Reports_2"]
    max_receive_count = 10
  }

  assert {
    condition     = length(aws_sqs_queue.messages) == 6 && length(aws_sqs_queue.dead) == 2 && length(aws_lambda_event_source_mapping.worker) == 6
    error_message = "three priorities each"
  }

  assert {
    condition     = length([for key in keys(aws_cloudwatch_metric_alarm.this) : key if startswith(key, "dead-messages-")]) == 2
    error_message = "an alarm for each"
  }
}

run "no_queue_no_worker" {
  command = plan

  variables {
    queues             = []
    worker_policy_json = "{\"Version\": \"2012-10-17\", \"Statement\": []}"
  }

  assert {
    condition     = toset(keys(aws_lambda_function.this)) == toset(["dispatcher", "reaper"]) && length(aws_lambda_event_source_mapping.worker) == 0 && length(aws_iam_role_policy.handlers) == 0
    error_message = "pulling workers do all"
  }

  assert {
    condition     = length(aws_sqs_queue.messages) == 0 && alltrue([for policy in values(aws_iam_role_policy.calls) : !strcontains(policy.policy, "sqs:")])
    error_message = "no queue, and no right on one"
  }
}

run "packages_from_s3" {
  command = plan

  variables {
    package        = { bucket = "zips", key = "dynsched.zip", sha256_base64 = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=" }
    worker_package = { bucket = "zips", key = "team.zip", object_version = "7" }
  }

  assert {
    condition     = aws_lambda_function.this["reaper"].s3_key == "dynsched.zip" && aws_lambda_function.this["reaper"].source_code_hash == "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    error_message = "the functions' zip"
  }

  assert {
    condition     = aws_lambda_function.this["worker"].s3_key == "team.zip" && aws_lambda_function.this["worker"].s3_object_version == "7" && aws_lambda_function.this["worker"].filename == null
    error_message = "the worker's own"
  }
}

run "sizes_and_handlers" {
  command = plan

  variables {
    runtime            = "python3.12"
    architecture       = "x86_64"
    dispatcher         = { memory_mb = 1024, reserved_concurrency = -1 }
    reaper             = { timeout_s = 40 }
    worker             = { timeout_s = 900, app = "jobs:app", allow_commands = true, batch_size = 5, reserved_concurrency = 20 }
    worker_concurrency = { high = 4 }
    worker_layers      = ["arn:aws:lambda:eu-central-1:111122223333:layer:pandas:3"]
    worker_environment = { BUCKET = "exports" }
    settings           = { DYNSCHED_RESEND_AFTER_S = "120" }
  }

  assert {
    condition     = alltrue([for function in aws_lambda_function.this : function.runtime == "python3.12" && function.architectures == tolist(["x86_64"])])
    error_message = "another zip"
  }

  assert {
    condition     = aws_lambda_function.this["dispatcher"].memory_size == 1024 && aws_lambda_function.this["dispatcher"].reserved_concurrent_executions == -1 && aws_lambda_function.this["reaper"].timeout == 40
    error_message = "sizes"
  }

  assert {
    condition     = aws_lambda_function.this["worker"].environment[0].variables == tomap({ BUCKET = "exports", DYNSCHED_APP = "jobs:app", DYNSCHED_ALLOW_COMMANDS = "1", DYNSCHED_RESEND_AFTER_S = "120", DYNSCHED_STORE = "dynamodb://dynsched?region=eu-central-1" })
    error_message = "the worker's environment"
  }

  assert {
    condition     = aws_lambda_function.this["reaper"].environment[0].variables == tomap({ DYNSCHED_RESEND_AFTER_S = "120", DYNSCHED_STORE = "dynamodb://dynsched?region=eu-central-1" })
    error_message = "the reaper has nothing of the worker's"
  }

  assert {
    condition     = aws_sqs_queue.messages["main-high"].visibility_timeout_seconds == 5400 && aws_lambda_event_source_mapping.worker["main-high"].batch_size == 5 && length(aws_lambda_function.this["worker"].layers) == 1
    error_message = "delivery"
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.this["worker-concurrency"].threshold == 18
    error_message = "saturated at 90 % of what is reserved"
  }
}

run "handlers_reach_what_they_may" {
  command = plan

  variables {
    worker_policy_json = "{\"Version\": \"2012-10-17\", \"Statement\": [{\"Effect\": \"Allow\", \"Action\": \"s3:PutObject\", \"Resource\": \"arn:aws:s3:::exports/*\"}]}"
    worker_targets = {
      functions = ["arn:aws:lambda:eu-central-1:111122223333:function:report"]
      queues    = ["arn:aws:sqs:eu-central-1:111122223333:orders"]
    }
  }

  assert {
    condition     = aws_iam_role_policy.handlers[0].policy == var.worker_policy_json
    error_message = "the team's policy as it is"
  }

  assert {
    condition     = strcontains(aws_iam_role_policy.calls["worker"].policy, ":function:report") && strcontains(aws_iam_role_policy.calls["worker"].policy, ":orders") && !strcontains(aws_iam_role_policy.calls["reaper"].policy, ":function:report")
    error_message = "targets are the worker's alone"
  }
}

run "an_emulator" {
  command = plan

  variables {
    endpoint_url = "http://127.0.0.1:4566"
  }

  assert {
    condition     = output.store_url == "dynamodb://dynsched?region=eu-central-1&endpoint_url=http://127.0.0.1:4566"
    error_message = "the store lies there"
  }
}

run "network_and_roles" {
  command = plan

  variables {
    vpc                      = { subnet_ids = ["subnet-1"], security_group_ids = ["sg-1"] }
    tracing                  = true
    role_path                = "/services/"
    permissions_boundary_arn = "arn:aws:iam::111122223333:policy/bound"
    log_retention_days       = 365
    log_level                = "DEBUG"
  }

  assert {
    condition     = alltrue([for function in aws_lambda_function.this : function.vpc_config[0].subnet_ids == toset(["subnet-1"]) && function.tracing_config[0].mode == "Active" && function.logging_config[0].application_log_level == "DEBUG"])
    error_message = "functions"
  }

  assert {
    condition     = alltrue([for role in concat(values(aws_iam_role.function), [aws_iam_role.scheduler]) : role.path == "/services/" && role.permissions_boundary == var.permissions_boundary_arn])
    error_message = "roles"
  }

  assert {
    condition     = alltrue([for policy in aws_iam_role_policy.platform : strcontains(policy.policy, "xray:PutTraceSegments") && strcontains(policy.policy, "ec2:CreateNetworkInterface")])
    error_message = "and what they need for it"
  }

  assert {
    condition     = alltrue([for group in aws_cloudwatch_log_group.this : group.retention_in_days == 365])
    error_message = "a year of logs"
  }
}

run "alarms_tell_somebody" {
  command = plan

  variables {
    alarm_actions    = ["arn:aws:sns:eu-central-1:111122223333:pager"]
    alarm_emails     = ["team@example.com", "ops@example.com"]
    alarm_thresholds = { start_delay_high_s = 5, dead_runs = 50 }
    runbook_base_url = "https://wiki.example.com/dynsched"
  }

  assert {
    condition     = length(aws_sns_topic_subscription.alarms) == 2 && aws_sns_topic.alarms[0].name == "dynsched-alarms"
    error_message = "mail"
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.this["start-delay-high"].threshold == 5000 && aws_cloudwatch_metric_alarm.this["dead-runs"].threshold == 49
    error_message = "thresholds, in the metrics' units"
  }

  assert {
    condition     = endswith(aws_cloudwatch_metric_alarm.this["dead-runs"].alarm_description, "Runbook: https://wiki.example.com/dynsched#dead-runs")
    error_message = "the team's own runbooks"
  }
}

run "no_alarms_no_dashboard" {
  command = plan

  variables {
    alarms    = false
    dashboard = false
  }

  assert {
    condition     = length(aws_cloudwatch_metric_alarm.this) == 0 && length(aws_cloudwatch_dashboard.this) == 0 && output.dashboard_name == null
    error_message = "neither"
  }
}
