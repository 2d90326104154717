# One role for each function, with the very calls that its code makes and the ARNs that it makes
# them on. The tests record those calls and compare them with these lists, both ways.
#
# A role has two policies: `calls` is what the code of dynsched does, `platform` what Lambda itself
# does under the role. The worker may have a third, `handlers`, which is the team's own.

locals {
  # Actions on each table and, as its ARN is another one, on its index.
  table_calls = {
    dispatcher = {
      jobs    = { table = ["BatchGetItem", "GetItem", "PutItem"], index = ["Query"] }
      runs    = { table = ["BatchGetItem", "DeleteItem", "GetItem", "PutItem"], index = ["Query"] }
      control = { table = ["BatchGetItem", "GetItem", "PutItem"], index = [] }
    }
    reaper = {
      jobs    = { table = ["BatchGetItem", "GetItem", "PutItem", "Scan"], index = [] }
      runs    = { table = ["BatchGetItem", "GetItem", "PutItem", "Scan"], index = ["Query"] }
      control = { table = ["BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query"], index = [] }
    }
    worker = {
      jobs    = { table = ["BatchGetItem", "GetItem", "Query"], index = [] }
      runs    = { table = ["BatchGetItem", "GetItem", "PutItem"], index = [] }
      control = { table = ["BatchGetItem", "GetItem", "PutItem"], index = [] }
    }
  }
  queue_calls = {
    dispatcher = ["sqs:SendMessage"]
    reaper     = ["sqs:GetQueueAttributes", "sqs:SendMessage"]
    worker     = ["sqs:ChangeMessageVisibility", "sqs:SendMessage"]
  }
  # What people and their programs may do, for the outputs.
  people_table_calls = {
    producer = {
      jobs    = { table = ["BatchGetItem", "GetItem", "PutItem"], index = [] }
      runs    = { table = ["BatchGetItem", "GetItem", "PutItem"], index = [] }
      control = { table = ["BatchGetItem", "GetItem", "PutItem"], index = [] }
    }
    operator = {
      jobs    = { table = ["BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "Scan"], index = [] }
      runs    = { table = ["BatchGetItem", "GetItem", "PutItem", "Query", "Scan"], index = ["Query"] }
      control = { table = ["BatchGetItem", "GetItem", "PutItem", "Query"], index = [] }
    }
    puller = {
      jobs    = { table = ["BatchGetItem", "GetItem", "Query"], index = [] }
      runs    = { table = ["BatchGetItem", "GetItem", "PutItem"], index = ["Query"] }
      control = { table = ["BatchGetItem", "GetItem", "PutItem", "Query"], index = [] }
    }
  }
  people_queue_calls = {
    producer = ["sqs:SendMessage"]
    operator = ["sqs:GetQueueAttributes", "sqs:SendMessage"]
    puller   = ["sqs:SendMessage"]
  }

  policies = {
    for who, calls in merge(local.table_calls, local.people_table_calls) : who => {
      Version = "2012-10-17"
      Statement = concat(
        flatten([
          for table, actions in calls : concat(
            [{
              Sid      = "${title(table)}Table"
              Effect   = "Allow"
              Action   = [for action in actions.table : "dynamodb:${action}"]
              Resource = [local.table_arns[table]]
            }],
            [
              for index in local.schema.tables[table].indexes : {
                Sid      = "${title(table)}Index"
                Effect   = "Allow"
                Action   = [for action in actions.index : "dynamodb:${action}"]
                Resource = ["${local.table_arns[table]}/index/${index.name}"]
              } if length(actions.index) > 0
            ],
          )
        ]),
        length(local.message_queue_arns) == 0 ? [] : [{
          Sid      = "Messages"
          Effect   = "Allow"
          Action   = merge(local.queue_calls, local.people_queue_calls)[who]
          Resource = local.message_queue_arns
        }],
        who != "worker" || length(var.worker_targets.functions) == 0 ? [] : [{
          Sid      = "TargetFunctions"
          Effect   = "Allow"
          Action   = ["lambda:InvokeFunction"]
          Resource = var.worker_targets.functions
        }],
        who != "worker" || length(var.worker_targets.queues) == 0 ? [] : [{
          Sid      = "TargetQueues"
          Effect   = "Allow"
          Action   = ["sqs:SendMessage"]
          Resource = var.worker_targets.queues
        }],
        local.key_statements,
      )
    }
  }

  # DynamoDB and SQS use the key on behalf of the caller, who therefore needs it too.
  key_statements = [
    for arn in var.kms_key_arn[*] : {
      Sid      = "Key"
      Effect   = "Allow"
      Action   = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo"]
      Resource = [arn]
    }
  ]

  platform_policies = {
    for name, function in local.function_names : name => {
      Version = "2012-10-17"
      Statement = concat(
        [{
          Sid      = "Logs"
          Effect   = "Allow"
          Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
          Resource = ["arn:${local.partition}:logs:${local.scope}:log-group:${local.log_group_names[name]}:*"]
        }],
        name != "worker" ? [] : [{
          Sid      = "Delivery"
          Effect   = "Allow"
          Action   = ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
          Resource = local.message_queue_arns
        }],
        !contains(local.woken, name) ? [] : [{
          Sid      = "FailedInvocations"
          Effect   = "Allow"
          Action   = ["sqs:SendMessage"]
          Resource = [local.failed_invocations_arn]
        }],
        # Neither X-Ray nor network interfaces can be named before they exist.
        !var.tracing ? [] : [{
          Sid      = "Traces"
          Effect   = "Allow"
          Action   = ["xray:PutTelemetryRecords", "xray:PutTraceSegments"]
          Resource = ["*"]
        }],
        var.vpc == null ? [] : [{
          Sid      = "Network"
          Effect   = "Allow"
          Action   = ["ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses"]
          Resource = ["*"]
        }],
      )
    }
  }
}

resource "aws_iam_role" "function" {
  for_each = local.function_names

  name                 = each.value
  description          = "What the ${each.key} of the store ${var.prefix} may do"
  path                 = var.role_path
  permissions_boundary = var.permissions_boundary_arn
  tags                 = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "lambda.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "calls" {
  for_each = local.function_names

  name   = "calls"
  role   = aws_iam_role.function[each.key].id
  policy = jsonencode(local.policies[each.key])
}

resource "aws_iam_role_policy" "platform" {
  for_each = local.function_names

  name   = "platform"
  role   = aws_iam_role.function[each.key].id
  policy = jsonencode(local.platform_policies[each.key])
}

resource "aws_iam_role_policy" "handlers" {
  count = var.worker_policy_json != null && length(var.queues) > 0 ? 1 : 0

  name   = "handlers"
  role   = aws_iam_role.function["worker"].id
  policy = var.worker_policy_json
}

resource "aws_iam_role" "scheduler" {
  name                 = "${var.prefix}-scheduler"
  description          = "Lets EventBridge Scheduler wake the functions of the store ${var.prefix}"
  path                 = var.role_path
  permissions_boundary = var.permissions_boundary_arn
  tags                 = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "scheduler.amazonaws.com" }
      # Nobody else's schedule may borrow it.
      Condition = {
        StringEquals = {
          "aws:SourceAccount" = local.account
          "aws:SourceArn"     = "arn:${local.partition}:scheduler:${local.scope}:schedule-group/${var.prefix}"
        }
      }
    }]
  })
}

resource "aws_iam_role_policy" "scheduler" {
  name = "wake"
  role = aws_iam_role.scheduler.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "Wake"
          Effect   = "Allow"
          Action   = ["lambda:InvokeFunction"]
          Resource = [for name in local.woken : local.function_arns[name]]
        },
        {
          Sid      = "FailedInvocations"
          Effect   = "Allow"
          Action   = ["sqs:SendMessage"]
          Resource = [local.failed_invocations_arn]
        },
      ],
      local.key_statements,
    )
  })
}
