# Every alarm says what it means and links to its runbook: `runbook` is the anchor on the page
# `runbook_base_url`. Metrics of the namespace dynsched are those that the functions log (see
# src/dynsched/lambdas/metrics.py); a test compares the two.

locals {
  thresholds = var.alarm_thresholds
  # What AWS counts for each operation on a table.
  table_operations = ["BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "TransactWriteItems"]

  own_alarms = {
    start-delay-high = {
      runbook = "start-delay"
      text    = "Runs of high priority start more than ${local.thresholds.start_delay_high_s} s after their time (p99)."
      metrics = [{ name = "StartDelay", stat = "p99", dimensions = { Priority = "high" } }]
      above   = 1000 * local.thresholds.start_delay_high_s
      periods = 3
    }
    start-delay-default = {
      runbook = "start-delay"
      text    = "Runs of default priority start more than ${local.thresholds.start_delay_default_s} s after their time (p99)."
      metrics = [{ name = "StartDelay", stat = "p99", dimensions = { Priority = "default" } }]
      above   = 1000 * local.thresholds.start_delay_default_s
      periods = 3
    }
    oldest-due = {
      runbook = "oldest-due"
      text    = "A run that may start waits for more than ${local.thresholds.oldest_due_s} s."
      metrics = [{ name = "OldestDue", stat = "Maximum", dimensions = {} }]
      above   = local.thresholds.oldest_due_s
      periods = 3
    }
    dispatcher-lag = {
      runbook = "dispatcher-lag"
      text    = "The dispatcher's cursors are more than ${local.thresholds.dispatcher_lag_s} s behind; some three minutes are healthy."
      metrics = [{ name = "DispatcherLag", stat = "Maximum", dimensions = {} }]
      above   = local.thresholds.dispatcher_lag_s
      periods = 3
    }
    late-entries = {
      runbook = "late-entries"
      text    = "The dispatcher found jobs in minutes that it had closed: index lag or a clock beyond its bound."
      metrics = [{ name = "LateEntries", stat = "Sum", dimensions = {} }]
      above   = 0
      periods = 1
    }
    late-finds = {
      runbook = "late-finds"
      text    = "The reaper's last nets caught a row that should have been found before."
      metrics = [{ name = "LateFinds", stat = "Sum", dimensions = {} }]
      above   = 0
      periods = 1
    }
    rows-failed = {
      runbook = "rows-failed"
      text    = "The reaper could not read or settle a row; the others go on."
      metrics = [{ name = "RowsFailed", stat = "Sum", dimensions = {} }]
      above   = 0
      periods = 3
    }
    dead-runs = {
      runbook = "dead-runs"
      text    = "At least ${local.thresholds.dead_runs} runs died within an hour."
      metrics = [{ name = "DeadGrowth", stat = "Maximum", dimensions = {} }]
      above   = local.thresholds.dead_runs - 1
      periods = 1
    }
  }

  # Silence is what these tell, so a metric that is missing is the alarm.
  silence_alarms = {
    for name, metric in { dispatcher = "Ticks", reaper = "Sweeps" } : "${name}-silent" => {
      runbook                        = "${name}-silent"
      text                           = "The ${name} did nothing for three minutes, though it is woken in each."
      metrics                        = [{ name = metric, stat = "Sum", dimensions = {} }]
      below                          = 1
      periods                        = 3
      missing                        = "breaching"
    }
  }

  function_alarms = merge([
    for name, function in local.function_names : {
      "${name}-errors" = {
        runbook = "${name}-errors"
        text    = "The ${name} function failed or ran out of time."
        metrics = [{ namespace = "AWS/Lambda", name = "Errors", stat = "Sum", dimensions = { FunctionName = function } }]
        above   = 0
        periods = 3
        minutes = 2
      }
      "${name}-throttles" = {
        runbook = "${name}-throttles"
        text    = "Lambda refused to start the ${name} function: its or the account's concurrency is used up."
        metrics = [{ namespace = "AWS/Lambda", name = "Throttles", stat = "Sum", dimensions = { FunctionName = function } }]
        above   = 0
        periods = 5
        minutes = 3
      }
    }
  ]...)

  saturation_alarms = merge(
    {
      account-concurrency = {
        runbook = "account-concurrency"
        text    = "Over 80 % of the account's concurrent functions are taken; beyond 100 % every function of the region is refused."
        metrics = [{ namespace = "AWS/Lambda", name = "ClaimedAccountConcurrency", stat = "Maximum", dimensions = {} }]
        above   = 0.8 * local.thresholds.account_concurrency
        periods = 5
      }
      schedule-failures = {
        runbook = "schedule-failures"
        text    = "EventBridge Scheduler could not wake the dispatcher or the reaper."
        metrics = [
          for metric in ["TargetErrorCount", "TargetErrorThrottledCount", "InvocationThrottleCount", "InvocationDroppedCount"] :
          { namespace = "AWS/Scheduler", name = metric, stat = "Sum", dimensions = { ScheduleGroup = var.prefix } }
        ]
        above   = 0
        periods = 1
      }
      failed-invocations = {
        runbook = "failed-invocations"
        text    = "A wake-up failed and lies in the queue ${local.failed_invocations}; the next one makes up for it, the reason is to be found."
        metrics = [{ namespace = "AWS/SQS", name = "ApproximateNumberOfMessagesVisible", stat = "Maximum", dimensions = { QueueName = local.failed_invocations } }]
        above   = 0
        periods = 1
      }
    },
    !contains(keys(local.function_names), "worker") ? {} : {
      worker-concurrency = {
        runbook = "worker-concurrency"
        text    = "The worker function runs at ${floor(100 * local.thresholds.concurrency_share)} % of its concurrency or more for a quarter of an hour: more work arrives than it can take."
        metrics = [{ namespace = "AWS/Lambda", name = "ConcurrentExecutions", stat = "Maximum", dimensions = { FunctionName = local.function_names["worker"] } }]
        above   = floor(local.thresholds.concurrency_share * local.worker_concurrency_most)
        periods = 15
      }
    },
  )
  worker_concurrency_mapped = length(var.queues) * sum(values(var.worker_concurrency))
  worker_concurrency_most   = var.worker.reserved_concurrency == -1 ? local.worker_concurrency_mapped : min(local.worker_concurrency_mapped, var.worker.reserved_concurrency)

  queue_alarms = merge(
    {
      for queue in var.queues : "dead-messages-${queue}" => {
        runbook = "dead-messages"
        text    = "A message of the queue ${queue} was delivered ${var.max_receive_count} times. Its run is not lost: the reaper sends for it again."
        metrics = [{ namespace = "AWS/SQS", name = "ApproximateNumberOfMessagesVisible", stat = "Maximum", dimensions = { QueueName = aws_sqs_queue.dead[queue].name } }]
        above   = 0
        periods = 1
      }
    },
    {
      for key, queue in local.message_queues : "message-age-${key}" => {
        runbook = "message-age"
        text    = "The oldest message of ${queue.name} is more than ${local.thresholds.message_age_s} s old: its worker does not keep up, or runs wait at their cap."
        metrics = [{ namespace = "AWS/SQS", name = "ApproximateAgeOfOldestMessage", stat = "Maximum", dimensions = { QueueName = queue.name } }]
        above   = local.thresholds.message_age_s
        periods = 5
      }
    },
  )

  table_alarms = merge([
    for table, name in local.table_names : {
      "table-throttles-${table}" = {
        runbook = "table-throttles"
        text    = "DynamoDB throttled the table ${name} or its index: a hot partition, a cold table, or a bound of max_units."
        metrics = concat(
          [for metric in ["ReadThrottleEvents", "WriteThrottleEvents"] : { namespace = "AWS/DynamoDB", name = metric, stat = "Sum", dimensions = { TableName = name } }],
          flatten([
            for index in local.schema.tables[table].indexes : [
              for metric in ["ReadThrottleEvents", "WriteThrottleEvents"] :
              { namespace = "AWS/DynamoDB", name = metric, stat = "Sum", dimensions = { TableName = name, GlobalSecondaryIndexName = index.name } }
            ]
          ]),
        )
        above   = 0
        periods = 5
        minutes = 3
      }
      "table-errors-${table}" = {
        runbook = "table-errors"
        text    = "DynamoDB answered requests for the table ${name} with errors of its own."
        metrics = [for operation in local.table_operations : { namespace = "AWS/DynamoDB", name = "SystemErrors", stat = "Sum", dimensions = { TableName = name, Operation = operation } }]
        above   = 0
        periods = 5
        minutes = 3
      }
    }
  ]...)

  # All of them in one form. What one of dynsched's own metrics says is said of one store.
  alarms = {
    for key, alarm in merge(
      local.own_alarms, local.silence_alarms, local.function_alarms, local.saturation_alarms,
      local.queue_alarms, local.table_alarms,
      ) : key => {
      name        = "${var.prefix}-${key}"
      runbook     = alarm.runbook
      description = "${alarm.text} Runbook: ${var.runbook_base_url}#${alarm.runbook}"
      metrics = [
        for metric in alarm.metrics : {
          namespace  = try(metric.namespace, local.namespace)
          name       = metric.name
          stat       = metric.stat
          dimensions = can(metric.namespace) ? metric.dimensions : merge({ Store = var.prefix }, metric.dimensions)
        }
      ]
      period     = 60
      comparison = can(alarm.below) ? "LessThanThreshold" : "GreaterThanThreshold"
      threshold  = try(alarm.below, alarm.above)
      periods    = alarm.periods
      datapoints = try(alarm.minutes, alarm.periods)
      missing    = try(alarm.missing, "notBreaching")
    }
  }
  namespace = "dynsched"
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = { for key, alarm in local.alarms : key => alarm if var.alarms }

  alarm_name          = each.value.name
  alarm_description   = each.value.description
  comparison_operator = each.value.comparison
  threshold           = each.value.threshold
  evaluation_periods  = each.value.periods
  datapoints_to_alarm = each.value.datapoints
  treat_missing_data  = each.value.missing
  # A paused scheduler is silent on purpose.
  actions_enabled = !var.paused
  alarm_actions   = local.alarm_actions
  ok_actions      = local.alarm_actions
  tags            = var.tags

  # One metric stands for itself; several are added up.
  namespace          = length(each.value.metrics) == 1 ? each.value.metrics[0].namespace : null
  metric_name        = length(each.value.metrics) == 1 ? each.value.metrics[0].name : null
  dimensions         = length(each.value.metrics) == 1 ? each.value.metrics[0].dimensions : null
  period             = length(each.value.metrics) == 1 ? each.value.period : null
  statistic          = length(each.value.metrics) == 1 && !startswith(each.value.metrics[0].stat, "p") ? each.value.metrics[0].stat : null
  extended_statistic = length(each.value.metrics) == 1 && startswith(each.value.metrics[0].stat, "p") ? each.value.metrics[0].stat : null

  dynamic "metric_query" {
    for_each = length(each.value.metrics) == 1 ? [] : each.value.metrics

    content {
      id = "m${metric_query.key}"

      metric {
        namespace   = metric_query.value.namespace
        metric_name = metric_query.value.name
        dimensions  = metric_query.value.dimensions
        period      = each.value.period
        stat        = metric_query.value.stat
      }
    }
  }

  dynamic "metric_query" {
    for_each = length(each.value.metrics) == 1 ? [] : ["all"]

    content {
      id          = metric_query.value
      label       = each.key
      expression  = "SUM([${join(",", [for number in range(length(each.value.metrics)) : "FILL(m${number},0)"])}])"
      return_data = true
    }
  }
}

locals {
  alarm_actions = concat(var.alarm_actions, aws_sns_topic.alarms[*].arn)
}

# CloudWatch may not use the key that AWS keeps for SNS, so the topic is encrypted with the
# module's own or not at all; an alarm's text names resources, no payloads.
resource "aws_sns_topic" "alarms" {
  count = length(var.alarm_emails) > 0 ? 1 : 0

  name              = "${var.prefix}-alarms"
  kms_master_key_id = var.kms_key_arn
  tags              = var.tags
}

resource "aws_sns_topic_subscription" "alarms" {
  for_each = toset(var.alarm_emails)

  topic_arn = aws_sns_topic.alarms[0].arn
  protocol  = "email"
  endpoint  = each.key
}
