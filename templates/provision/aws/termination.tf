# Word before a machine goes: spot machines that Amazon takes back, hosts whose hardware is retired, hosts that a group lets go. Something in
# the cluster reads the queue, moves the pods and says when it is done.

locals {
  watches = local.aws.termination_queue
  events = { for name, pattern in {
    spot      = { source = ["aws.ec2"], detail-type = ["EC2 Spot Instance Interruption Warning"] }
    rebalance = { source = ["aws.ec2"], detail-type = ["EC2 Instance Rebalance Recommendation"] }
    stopped   = { source = ["aws.ec2"], detail-type = ["EC2 Instance State-change Notification"] }
    retired   = { source = ["aws.health"], detail-type = ["AWS Health Event"], detail = { service = ["EC2"], eventTypeCategory = ["scheduledChange"] } }
    scaled    = { source = ["aws.autoscaling"], detail-type = ["EC2 Instance-terminate Lifecycle Action"], detail = { AutoScalingGroupName = [for group in sort(keys(var.cluster.groups)) : "${group}.${local.name}"] } }
  } : name => jsonencode(pattern) if local.watches }
}

resource "aws_sqs_queue" "termination" {
  count                     = local.watches ? 1 : 0
  name                      = local.aws.names.queue
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = true
  tags                      = merge(local.tags, { Name = local.aws.names.queue })

  # Only these rules write into it.
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sqs:SendMessage"
      Principal = { Service = "events.amazonaws.com" }
      Resource  = "arn:${local.partition}:sqs:${local.aws.region}:${local.account}:${local.aws.names.queue}"
      Condition = { ArnEquals = { "aws:SourceArn" = [for name in sort(keys(local.events)) : "arn:${local.partition}:events:${local.aws.region}:${local.account}:rule/${local.aws.names.rule}-${name}"] } }
    }]
  })
}

resource "aws_cloudwatch_event_rule" "termination" {
  for_each      = local.events
  name          = "${local.aws.names.rule}-${each.key}"
  description   = "Machines that go, for the Kubernetes cluster ${local.name}"
  event_pattern = each.value
  tags          = local.tags
}

resource "aws_cloudwatch_event_target" "termination" {
  for_each  = local.events
  rule      = aws_cloudwatch_event_rule.termination[each.key].name
  target_id = "queue"
  arn       = aws_sqs_queue.termination[0].arn
}

# A host that a group lets go waits until its pods have moved, or five minutes.
resource "aws_autoscaling_lifecycle_hook" "termination" {
  for_each               = local.watches ? var.cluster.groups : {}
  name                   = "drain"
  autoscaling_group_name = aws_autoscaling_group.group[each.key].name
  lifecycle_transition   = "autoscaling:EC2_INSTANCE_TERMINATING"
  heartbeat_timeout      = 300
  default_result         = "CONTINUE"
}
