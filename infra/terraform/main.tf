# Names and ARNs. They are put together here rather than read from the resources, so that every
# policy is known when a change is planned, to its reader and to the tests.

data "aws_partition" "this" {}

data "aws_caller_identity" "this" {}

data "aws_region" "this" {}

locals {
  partition = data.aws_partition.this.partition
  account   = data.aws_caller_identity.this.account_id
  region    = data.aws_region.this.id
  scope     = "${local.region}:${local.account}"

  schema      = jsondecode(file("${path.module}/schema.json"))
  table_names = { for table in keys(local.schema.tables) : table => "${var.prefix}${local.schema.name_separator}${table}" }
  table_arns  = { for table, name in local.table_names : table => "arn:${local.partition}:dynamodb:${local.scope}:table/${name}" }

  store_options = compact([
    "region=${local.region}",
    var.endpoint_url == "" ? "" : "endpoint_url=${var.endpoint_url}",
  ])
  store_url = "dynamodb://${var.prefix}?${join("&", local.store_options)}"

  priorities = ["high", "default", "bulk"]
  message_queues = {
    for pair in setproduct(var.queues, local.priorities) : "${pair[0]}-${pair[1]}" => {
      queue    = pair[0]
      priority = pair[1]
      name     = "${var.prefix}-${pair[0]}-${pair[1]}"
    }
  }
  message_queue_arns     = [for queue in values(local.message_queues) : "arn:${local.partition}:sqs:${local.scope}:${queue.name}"]
  failed_invocations     = "${var.prefix}-failed-invocations"
  failed_invocations_arn = "arn:${local.partition}:sqs:${local.scope}:${local.failed_invocations}"

  # The worker exists only where a queue has messages for it.
  function_names = {
    for name in concat(["dispatcher", "reaper"], length(var.queues) > 0 ? ["worker"] : []) : name => "${var.prefix}-${name}"
  }
  function_arns   = { for name, function in local.function_names : name => "arn:${local.partition}:lambda:${local.scope}:function:${function}" }
  log_group_names = { for name, function in local.function_names : name => "/aws/lambda/${function}" }
  woken           = toset(["dispatcher", "reaper"])
}
