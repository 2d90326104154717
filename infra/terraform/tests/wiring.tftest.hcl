# Applied to nothing: which part names which.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  package      = { path = "schema.json" }
  alarm_emails = ["team@example.com"]
}

run "wiring" {
  command = apply

  assert {
    condition     = alltrue([for key, mapping in aws_lambda_event_source_mapping.worker : mapping.event_source_arn == aws_sqs_queue.messages[key].arn && mapping.function_name == aws_lambda_function.this["worker"].arn])
    error_message = "messages go to the worker"
  }

  assert {
    condition     = alltrue([for name, schedule in aws_scheduler_schedule.this : schedule.target[0].arn == aws_lambda_function.this[name].arn && schedule.target[0].role_arn == aws_iam_role.scheduler.arn])
    error_message = "each schedule wakes its function"
  }

  assert {
    condition     = alltrue([for schedule in aws_scheduler_schedule.this : schedule.target[0].dead_letter_config[0].arn == aws_sqs_queue.failed_invocations.arn]) && alltrue([for config in aws_lambda_function_event_invoke_config.woken : config.destination_config[0].on_failure[0].destination == aws_sqs_queue.failed_invocations.arn])
    error_message = "a failed wake-up leaves a trace"
  }

  assert {
    condition     = alltrue([for key, queue in aws_sqs_queue.messages : jsondecode(queue.redrive_policy).deadLetterTargetArn == aws_sqs_queue.dead["main"].arn && jsondecode(queue.redrive_policy).maxReceiveCount == 1000])
    error_message = "what is delivered too often is put aside"
  }

  assert {
    condition     = [for queue in jsondecode(aws_lambda_function.this["dispatcher"].environment[0].variables.DYNSCHED_MESSAGE_QUEUES) : "${queue.queue} ${queue.priority} ${queue.url}"] == [for priority in ["bulk", "default", "high"] : "main ${priority} ${aws_sqs_queue.messages["main-${priority}"].url}"]
    error_message = "the dispatcher tells the store where to send"
  }

  assert {
    condition     = alltrue([for name, function in aws_lambda_function.this : function.role == aws_iam_role.function[name].arn && function.handler == "dynsched.lambdas.${name}.handler"])
    error_message = "each function has its role and its handler"
  }

  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.this : alarm.alarm_actions == toset([aws_sns_topic.alarms[0].arn]) && alarm.ok_actions == alarm.alarm_actions])
    error_message = "alarms go to the topic, their end too"
  }
}
