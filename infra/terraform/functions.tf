# Three functions from one zip.

locals {
  environment = merge(var.settings, { DYNSCHED_STORE = local.store_url })
  functions = {
    for name, settings in {
      dispatcher = {
        size    = var.dispatcher
        package = var.package
        layers  = []
        environment = {
          DYNSCHED_LOOK_AHEAD_S = tostring(var.look_ahead_s)
          DYNSCHED_SHARDS       = tostring(var.shards)
          DYNSCHED_LANES        = tostring(var.lanes)
          # It writes them into the store's map, where every process that sends finds them.
          DYNSCHED_MESSAGE_QUEUES = jsonencode([
            for key, queue in local.message_queues : {
              queue    = queue.queue
              priority = queue.priority
              url      = aws_sqs_queue.messages[key].url
            }
          ])
        }
      }
      reaper = {
        size        = var.reaper
        package     = var.package
        layers      = []
        environment = {}
      }
      worker = {
        size = {
          memory_mb            = var.worker.memory_mb
          timeout_s            = var.worker.timeout_s
          reserved_concurrency = var.worker.reserved_concurrency
        }
        package = var.worker_package == null ? var.package : var.worker_package
        layers  = var.worker_layers
        environment = merge(
          var.worker_environment,
          var.worker.app == "" ? {} : { DYNSCHED_APP = var.worker.app },
          var.worker.allow_commands ? { DYNSCHED_ALLOW_COMMANDS = "1" } : {},
        )
      }
    } : name => settings if contains(keys(local.function_names), name)
  }
}

# Made before the functions: a log group that Lambda makes by itself keeps its logs for ever.
resource "aws_cloudwatch_log_group" "this" {
  for_each = local.functions

  name              = local.log_group_names[each.key]
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}

resource "aws_lambda_function" "this" {
  for_each = local.functions

  function_name                  = local.function_names[each.key]
  description                    = "dynsched ${each.key} of the store ${var.prefix}"
  role                           = aws_iam_role.function[each.key].arn
  runtime                        = var.runtime
  architectures                  = [var.architecture]
  handler                        = "dynsched.lambdas.${each.key}.handler"
  filename                       = each.value.package.path
  s3_bucket                      = each.value.package.bucket
  s3_key                         = each.value.package.key
  s3_object_version              = each.value.package.object_version
  source_code_hash               = each.value.package.path == null ? each.value.package.sha256_base64 : filebase64sha256(each.value.package.path)
  layers                         = each.value.layers
  memory_size                    = each.value.size.memory_mb
  timeout                        = each.value.size.timeout_s
  reserved_concurrent_executions = each.value.size.reserved_concurrency
  kms_key_arn                    = var.kms_key_arn
  tags                           = var.tags

  environment {
    variables = merge(local.environment, each.value.environment)
  }

  logging_config {
    log_format            = "JSON"
    log_group             = aws_cloudwatch_log_group.this[each.key].name
    application_log_level = var.log_level
    system_log_level      = "INFO"
  }

  tracing_config {
    mode = var.tracing ? "Active" : "PassThrough"
  }

  dynamic "vpc_config" {
    for_each = var.vpc[*]

    content {
      subnet_ids         = vpc_config.value.subnet_ids
      security_group_ids = vpc_config.value.security_group_ids
    }
  }

  # A function that is invoked before it may write fails for no reason that anybody could see.
  depends_on = [aws_iam_role_policy.calls, aws_iam_role_policy.platform]
}

# A wake-up is worth nothing a minute later, when the next one comes.
resource "aws_lambda_function_event_invoke_config" "woken" {
  for_each = local.woken

  function_name                = aws_lambda_function.this[each.key].function_name
  maximum_retry_attempts       = 0
  maximum_event_age_in_seconds = 60

  destination_config {
    on_failure {
      destination = aws_sqs_queue.failed_invocations.arn
    }
  }
}

resource "aws_lambda_event_source_mapping" "worker" {
  for_each = local.message_queues

  event_source_arn        = aws_sqs_queue.messages[each.key].arn
  function_name           = aws_lambda_function.this["worker"].arn
  enabled                 = !var.paused
  batch_size              = var.worker.batch_size
  function_response_types = ["ReportBatchItemFailures"]
  tags                    = var.tags

  scaling_config {
    maximum_concurrency = var.worker_concurrency[each.value.priority]
  }
}
