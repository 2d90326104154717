# What somebody gets who sets nothing but the package.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  package = { path = "schema.json" }
}

run "tables" {
  command = plan

  assert {
    condition     = toset([for table in aws_dynamodb_table.this : table.name]) == toset(["dynsched-jobs", "dynsched-runs", "dynsched-control"])
    error_message = "three tables, named by prefix and separator"
  }

  assert {
    condition     = alltrue([for table in aws_dynamodb_table.this : table.billing_mode == "PAY_PER_REQUEST" && table.deletion_protection_enabled])
    error_message = "on demand, and not to be deleted by accident"
  }

  assert {
    condition     = alltrue([for table in aws_dynamodb_table.this : table.point_in_time_recovery[0].enabled && table.ttl[0].enabled])
    error_message = "back-ups and expiry"
  }

  assert {
    condition     = alltrue([for table in aws_dynamodb_table.this : length(table.server_side_encryption) == 0])
    error_message = "AWS's own key"
  }

  assert {
    condition     = alltrue([for table in aws_dynamodb_table.this : length(table.on_demand_throughput) == 0])
    error_message = "no bound"
  }
}

run "queues" {
  command = plan

  assert {
    condition     = toset([for queue in aws_sqs_queue.messages : queue.name]) == toset(["dynsched-main-high", "dynsched-main-default", "dynsched-main-bulk"])
    error_message = "a queue for each priority"
  }

  assert {
    condition     = alltrue([for queue in aws_sqs_queue.messages : queue.visibility_timeout_seconds >= 6 * aws_lambda_function.this["worker"].timeout])
    error_message = "no message is seen again while its function may run"
  }

  assert {
    condition     = alltrue([for queue in concat(values(aws_sqs_queue.messages), values(aws_sqs_queue.dead), [aws_sqs_queue.failed_invocations]) : queue.sqs_managed_sse_enabled && queue.message_retention_seconds == 1209600])
    error_message = "encrypted, and kept as long as SQS can"
  }

  assert {
    condition = alltrue([
      for queue in concat(values(aws_sqs_queue.messages), values(aws_sqs_queue.dead), [aws_sqs_queue.failed_invocations]) :
      jsondecode(queue.policy).Statement[0].Condition.Bool["aws:SecureTransport"] == "false" && endswith(jsondecode(queue.policy).Statement[0].Resource, ":${queue.name}")
    ])
    error_message = "every queue refuses what is not encrypted on the way"
  }
}

run "dead_messages" {
  command = plan

  assert {
    condition = jsondecode(aws_sqs_queue.dead["main"].redrive_allow_policy) == {
      redrivePermission = "byQueue"
      sourceQueueArns   = [for priority in ["bulk", "default", "high"] : "arn:aws:sqs:eu-central-1:111122223333:dynsched-main-${priority}"]
    }
    error_message = "only the queues of the same name may put messages aside here"
  }
}

run "functions" {
  command = plan

  assert {
    condition     = toset(keys(aws_lambda_function.this)) == toset(["dispatcher", "reaper", "worker"])
    error_message = "three functions"
  }

  assert {
    condition     = alltrue([for function in aws_lambda_function.this : function.runtime == "python3.13" && function.architectures == tolist(["arm64"]) && function.logging_config[0].log_format == "JSON"])
    error_message = "as the zip is built, and with logs that can be searched"
  }

  assert {
    condition     = aws_lambda_function.this["dispatcher"].reserved_concurrent_executions == 1 && aws_lambda_function.this["reaper"].reserved_concurrent_executions == 1 && aws_lambda_function.this["worker"].reserved_concurrent_executions == -1
    error_message = "one dispatcher and one reaper at a time"
  }

  assert {
    condition     = alltrue([for name, group in aws_cloudwatch_log_group.this : group.retention_in_days == 30 && group.name == "/aws/lambda/${aws_lambda_function.this[name].function_name}"])
    error_message = "logs end"
  }

  assert {
    condition     = alltrue([for function in aws_lambda_function.this : function.environment[0].variables.DYNSCHED_STORE == "dynamodb://dynsched?region=eu-central-1"])
    error_message = "one store for all"
  }

  assert {
    condition     = alltrue([for config in aws_lambda_function_event_invoke_config.woken : config.maximum_retry_attempts == 0 && config.maximum_event_age_in_seconds == 60])
    error_message = "an old wake-up is worth nothing"
  }

  assert {
    condition     = alltrue([for mapping in aws_lambda_event_source_mapping.worker : mapping.batch_size == 1 && mapping.enabled && mapping.function_response_types == toset(["ReportBatchItemFailures"])])
    error_message = "each message stands for itself"
  }

  assert {
    condition     = { for key, mapping in aws_lambda_event_source_mapping.worker : key => mapping.scaling_config[0].maximum_concurrency } == { main-high = 50, main-default = 30, main-bulk = 10 }
    error_message = "concurrency by priority"
  }

  assert {
    condition     = alltrue([for schedule in aws_scheduler_schedule.this : schedule.schedule_expression == "rate(1 minute)" && schedule.state == "ENABLED" && schedule.flexible_time_window[0].mode == "OFF"])
    error_message = "woken each minute"
  }
}

run "policies" {
  command = plan

  assert {
    condition = alltrue(flatten([
      for policy in concat(values(aws_iam_role_policy.calls), values(aws_iam_role_policy.platform), [aws_iam_role_policy.scheduler]) : [
        for statement in jsondecode(policy.policy).Statement : [for arn in statement.Resource : startswith(arn, "arn:aws:")]
      ]
    ]))
    error_message = "every right names what it is for"
  }

  assert {
    condition     = alltrue([for role in concat(values(aws_iam_role.function), [aws_iam_role.scheduler]) : role.path == "/" && role.permissions_boundary == null])
    error_message = "roles where roles are"
  }

  assert {
    condition     = jsondecode(aws_iam_role.scheduler.assume_role_policy).Statement[0].Condition.StringEquals["aws:SourceAccount"] == "111122223333"
    error_message = "the schedules of others wake nothing here"
  }

  assert {
    condition     = alltrue([for json in [output.producer_policy_json, output.operator_policy_json, output.pulling_worker_policy_json] : length(jsondecode(json).Statement) >= 4])
    error_message = "people's policies name the tables and the queues"
  }

  assert {
    condition     = length(aws_iam_role_policy.handlers) == 0
    error_message = "nothing for handlers that do nothing besides"
  }
}

run "alarms" {
  command = plan

  assert {
    condition     = alltrue([for key, alarm in aws_cloudwatch_metric_alarm.this : strcontains(alarm.alarm_description, "Runbook: docs/aws.md#") && alarm.alarm_name == "dynsched-${key}"])
    error_message = "every alarm says where to read on"
  }

  assert {
    condition     = alltrue([for name in ["dispatcher-silent", "reaper-silent"] : aws_cloudwatch_metric_alarm.this[name].treat_missing_data == "breaching"])
    error_message = "silence is an alarm"
  }

  assert {
    condition     = length(aws_sns_topic.alarms) == 0 && length(aws_cloudwatch_dashboard.this) == 1 && alltrue([for alarm in aws_cloudwatch_metric_alarm.this : alarm.actions_enabled])
    error_message = "a dashboard, and nobody to tell yet"
  }
}
