output "store_url" {
  description = "The store for DYNSCHED_STORE and --store: the command line, the consoles, clients and pulling workers open it."
  value       = local.store_url
}

output "table_names" {
  description = "Names of the tables, by what they hold."
  value       = { for table, made in aws_dynamodb_table.this : table => made.name }
}

output "table_arns" {
  description = "ARNs of the tables, by what they hold."
  value       = { for table, made in aws_dynamodb_table.this : table => made.arn }
}

output "message_queues" {
  description = "The SQS queues of the worker function: queue, priority, URL and ARN of each."
  value = [
    for key, queue in local.message_queues : {
      queue    = queue.queue
      priority = queue.priority
      url      = aws_sqs_queue.messages[key].url
      arn      = aws_sqs_queue.messages[key].arn
    }
  ]
}

output "dead_message_queue_urls" {
  description = "URLs of the queues with messages that were delivered too often, by queue of the scheduler."
  value       = { for queue, made in aws_sqs_queue.dead : queue => made.url }
}

output "failed_invocations_queue_url" {
  description = "URL of the queue with wake-ups that failed."
  value       = aws_sqs_queue.failed_invocations.url
}

output "function_names" {
  description = "Names of the functions: dispatcher, reaper and worker."
  value       = { for name, made in aws_lambda_function.this : name => made.function_name }
}

output "function_arns" {
  description = "ARNs of the functions."
  value       = { for name, made in aws_lambda_function.this : name => made.arn }
}

output "role_names" {
  description = "Names of the functions' roles, to attach a policy of one's own."
  value       = { for name, made in aws_iam_role.function : name => made.name }
}

output "log_group_names" {
  description = "Log groups of the functions."
  value       = { for name, made in aws_cloudwatch_log_group.this : name => made.name }
}

output "alarm_names" {
  description = "Names of the alarms with the anchors of their runbooks."
  value       = { for key, made in aws_cloudwatch_metric_alarm.this : made.alarm_name => local.alarms[key].runbook }
}

output "alarm_topic_arn" {
  description = "The topic that mails the alarms; null without alarm_emails."
  value       = one(aws_sns_topic.alarms[*].arn)
}

output "dashboard_name" {
  description = "Name of the dashboard; null without one."
  value       = one(aws_cloudwatch_dashboard.this[*].dashboard_name)
}

output "producer_policy_json" {
  description = "IAM policy for programs that make jobs and enqueue runs: the Python client, `job add`, `enqueue`."
  value       = jsonencode(local.policies.producer)
}

output "operator_policy_json" {
  description = "IAM policy for people: everything that the command line and the consoles do but making and deleting tables."
  value       = jsonencode(local.policies.operator)
}

output "pulling_worker_policy_json" {
  description = "IAM policy for long-lived workers (`dynsched worker`)."
  value       = jsonencode(local.policies.puller)
}
