# One queue for each queue of the scheduler and each priority, so that bulk work delays nothing
# else. Nothing has to be set for fair queues: each message names its share.

locals {
  # As AWS advises for queues that a function reads: a message is not seen again while its function
  # may still run, and is soon after that function was killed.
  visibility_s = 6 * var.worker.timeout_s
  two_weeks_s  = 14 * 24 * 3600

  # A policy of a queue that refuses whoever does not encrypt on the way.
  tls_only = {
    for name in concat(
      values(local.message_queues)[*].name,
      [for queue in var.queues : "${var.prefix}-${queue}-dead"],
      [local.failed_invocations],
      ) : name => jsonencode({
        Version = "2012-10-17"
        Statement = [{
          Sid       = "EncryptedOnly"
          Effect    = "Deny"
          Principal = "*"
          Action    = "sqs:*"
          Resource  = "arn:${local.partition}:sqs:${local.scope}:${name}"
          Condition = { Bool = { "aws:SecureTransport" = "false" } }
        }]
    })
  }
}

resource "aws_sqs_queue" "messages" {
  for_each = local.message_queues

  name                       = each.value.name
  visibility_timeout_seconds = local.visibility_s
  message_retention_seconds  = local.two_weeks_s
  sqs_managed_sse_enabled    = var.kms_key_arn == null ? true : null
  kms_master_key_id          = var.kms_key_arn
  tags                       = var.tags
  policy                     = local.tls_only[each.value.name]

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead[each.value.queue].arn
    maxReceiveCount     = var.max_receive_count
  })
}

# What was delivered too often, one for each queue of the scheduler. Nothing is lost with it: the
# run's row stays, and the reaper sends for it again. Who may put messages here is said by names: by
# reference the two queues would wait for each other, and as a resource of its own it is waited for,
# for half a minute at each change and for ever where an emulator does not forget it.
resource "aws_sqs_queue" "dead" {
  for_each = toset(var.queues)

  name                      = "${var.prefix}-${each.key}-dead"
  message_retention_seconds = local.two_weeks_s
  sqs_managed_sse_enabled   = var.kms_key_arn == null ? true : null
  kms_master_key_id         = var.kms_key_arn
  tags                      = var.tags

  policy = local.tls_only["${var.prefix}-${each.key}-dead"]

  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns = [
      for queue in values(local.message_queues) : "arn:${local.partition}:sqs:${local.scope}:${queue.name}"
      if queue.queue == each.key
    ]
  })
}

# Wake-ups that reached no function, or whose function failed.
resource "aws_sqs_queue" "failed_invocations" {
  name                      = local.failed_invocations
  message_retention_seconds = local.two_weeks_s
  sqs_managed_sse_enabled   = var.kms_key_arn == null ? true : null
  kms_master_key_id         = var.kms_key_arn
  tags                      = var.tags

  policy = local.tls_only[local.failed_invocations]
}
