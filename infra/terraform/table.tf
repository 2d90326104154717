# The tables of schema.json, the file that `dynsched init` makes them from too.
#
# Whoever wants Terraform itself to refuse their destruction adds `prevent_destroy` in a copy of
# this file: it cannot be a variable. `deletion_protection` has DynamoDB refuse it.

resource "aws_dynamodb_table" "this" {
  for_each = local.schema.tables

  name                        = local.table_names[each.key]
  billing_mode                = each.value.billing_mode
  hash_key                    = each.value.partition_key
  range_key                   = each.value.sort_key
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  dynamic "attribute" {
    for_each = each.value.attributes

    content {
      name = attribute.key
      type = attribute.value
    }
  }

  dynamic "global_secondary_index" {
    for_each = each.value.indexes

    content {
      name            = global_secondary_index.value.name
      hash_key        = global_secondary_index.value.partition_key
      range_key       = global_secondary_index.value.sort_key
      projection_type = global_secondary_index.value.projection

      dynamic "on_demand_throughput" {
        for_each = var.max_units[*]

        content {
          max_read_request_units  = on_demand_throughput.value.read
          max_write_request_units = on_demand_throughput.value.write
        }
      }
    }
  }

  dynamic "on_demand_throughput" {
    for_each = var.max_units[*]

    content {
      max_read_request_units  = on_demand_throughput.value.read
      max_write_request_units = on_demand_throughput.value.write
    }
  }

  ttl {
    attribute_name = each.value.ttl_attribute
    enabled        = true
  }

  point_in_time_recovery {
    enabled                 = each.value.point_in_time_recovery && var.point_in_time_recovery
    recovery_period_in_days = each.value.point_in_time_recovery && var.point_in_time_recovery ? var.recovery_days : null
  }

  # Without a key of one's own the rows are encrypted with AWS's, which needs no block.
  dynamic "server_side_encryption" {
    for_each = var.kms_key_arn[*]

    content {
      enabled     = true
      kms_key_arn = server_side_encryption.value
    }
  }
}
