# One page: is it on time, does it keep up, what failed, what does it use.

locals {
  own_graphs = [
    { title = "Start delay (p99, ms)", stat = "p99", by_priority = ["StartDelay"], metrics = [] },
    { title = "Oldest due run and dispatcher's lag (s)", stat = "Maximum", by_priority = [], metrics = ["OldestDue", "DispatcherLag"] },
    { title = "Runs ready and leased", stat = "Maximum", by_priority = ["ReadyRuns"], metrics = ["LeasedRuns"] },
    { title = "Runs of the worker function", stat = "Sum", by_priority = [], metrics = ["RunsStarted", "RunsDone", "RunsFailed", "RunsDied"] },
    { title = "Dead runs", stat = "Maximum", by_priority = [], metrics = ["DeadRuns", "DeadGrowth"] },
    { title = "Dispatcher", stat = "Sum", by_priority = [], metrics = ["Ticks", "JobsServed", "RunsCreated", "RunsSkipped", "RetriesDue", "LateEntries"] },
    { title = "Reaper", stat = "Sum", by_priority = [], metrics = ["Sweeps", "SessionsClosed", "RunsReturned", "LateFinds", "RowsFailed", "MessagesResent"] },
    { title = "Messages dropped and kept", stat = "Sum", by_priority = [], metrics = ["MessagesDropped", "MessagesKept"] },
  ]
  function_graphs = [
    { title = "Invocations", metric = "Invocations", stat = "Sum" },
    { title = "Errors", metric = "Errors", stat = "Sum" },
    { title = "Throttles", metric = "Throttles", stat = "Sum" },
    { title = "Duration (p95, ms)", metric = "Duration", stat = "p95" },
    { title = "Functions at once", metric = "ConcurrentExecutions", stat = "Maximum" },
  ]
  queue_graphs = [
    { title = "Messages waiting", metric = "ApproximateNumberOfMessagesVisible" },
    { title = "Messages in flight", metric = "ApproximateNumberOfMessagesNotVisible" },
    { title = "Oldest message (s)", metric = "ApproximateAgeOfOldestMessage" },
  ]
  table_graphs = [
    { title = "Units written", metric = "ConsumedWriteCapacityUnits" },
    { title = "Units read", metric = "ConsumedReadCapacityUnits" },
  ]

  # Each graph with its lines, in one form.
  graphs = concat(
    [
      for graph in local.own_graphs : {
        title = graph.title
        lines = concat(
          [for pair in setproduct(graph.by_priority, local.priorities) : {
            namespace = local.namespace, name = pair[0], stat = graph.stat
            label     = "${pair[0]}, ${pair[1]}", dimensions = { Store = var.prefix, Priority = pair[1] }
          }],
          [for metric in graph.metrics : {
            namespace = local.namespace, name = metric, stat = graph.stat
            label     = metric, dimensions = { Store = var.prefix }
          }],
        )
      }
    ],
    [
      for graph in local.queue_graphs : {
        title = graph.title
        lines = [for queue in values(local.message_queues) : {
          namespace = "AWS/SQS", name = graph.metric, stat = "Maximum"
          label     = queue.name, dimensions = { QueueName = queue.name }
        }]
      } if length(local.message_queues) > 0
    ],
    [
      for graph in local.function_graphs : {
        title = graph.title
        lines = [for name, function in local.function_names : {
          namespace = "AWS/Lambda", name = graph.metric, stat = graph.stat
          label     = name, dimensions = { FunctionName = function }
        }]
      }
    ],
    [
      for graph in local.table_graphs : {
        title = graph.title
        lines = flatten([
          for table, name in local.table_names : concat(
            [{
              namespace = "AWS/DynamoDB", name = graph.metric, stat = "Sum"
              label     = table, dimensions = { TableName = name }
            }],
            [for index in local.schema.tables[table].indexes : {
              namespace  = "AWS/DynamoDB", name = graph.metric, stat = "Sum", label = "${table}, ${index.name}"
              dimensions = { TableName = name, GlobalSecondaryIndexName = index.name }
            }],
          )
        ])
      }
    ],
  )
}

resource "aws_cloudwatch_dashboard" "this" {
  count = var.dashboard ? 1 : 0

  dashboard_name = var.prefix
  dashboard_body = jsonencode({
    widgets = [
      for place, graph in local.graphs : {
        type   = "metric"
        x      = 8 * (place % 3)
        y      = 6 * floor(place / 3)
        width  = 8
        height = 6
        properties = {
          title  = graph.title
          region = local.region
          view   = "timeSeries"
          period = 60
          metrics = [
            for line in graph.lines : concat(
              [line.namespace, line.name],
              flatten([for name, value in line.dimensions : [name, value]]),
              [{ stat = line.stat, label = line.label }],
            )
          ]
        }
      }
    ]
  })
}
