# Dispatcher and reaper are woken each minute. The dispatcher makes runs further ahead than that,
# so a wake-up that is missed or comes twice harms nothing.

resource "aws_scheduler_schedule_group" "this" {
  name = var.prefix
  tags = var.tags
}

resource "aws_scheduler_schedule" "this" {
  for_each = local.woken

  name                         = "${var.prefix}-${each.key}"
  description                  = "Wakes the ${each.key} of the store ${var.prefix}"
  group_name                   = aws_scheduler_schedule_group.this.name
  state                        = var.paused ? "DISABLED" : "ENABLED"
  schedule_expression          = "rate(1 minute)"
  schedule_expression_timezone = "UTC"
  kms_key_arn                  = var.kms_key_arn

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_lambda_function.this[each.key].arn
    role_arn = aws_iam_role.scheduler.arn
    input    = jsonencode({ source = "schedule" })

    retry_policy {
      maximum_event_age_in_seconds = 60
      maximum_retry_attempts       = 1
    }

    dead_letter_config {
      arn = aws_sqs_queue.failed_invocations.arn
    }
  }

  depends_on = [aws_iam_role_policy.scheduler]
}
