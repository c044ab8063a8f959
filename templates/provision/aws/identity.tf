# What a host may do in the account, by its role. Only the host itself is answered by the metadata service (one hop, session token), so pods
# with a network of their own do not have these rights.

locals {
  makes_control_plane_role = local.aws.control_plane_instance_profile == ""
  makes_node_role          = local.aws.node_instance_profile == ""
  control_plane_profile    = local.makes_control_plane_role ? aws_iam_instance_profile.control_plane[0].name : local.aws.control_plane_instance_profile
  node_profile             = local.makes_node_role ? aws_iam_instance_profile.node[0].name : local.aws.node_instance_profile
  account                  = data.aws_caller_identity.current.account_id
  ec2                      = "arn:${local.partition}:ec2:${local.aws.region}:${local.account}"
  balancing                = "arn:${local.partition}:elasticloadbalancing:${local.aws.region}:${local.account}"
  boundary                 = local.aws.permissions_boundary == "" ? null : local.aws.permissions_boundary

  assumed_by_machines = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "ec2.amazonaws.com" } }]
  })

  # What the CSI driver makes has both tags, and no role here may tag anything that is there already.
  drivers_tags    = { "kubernetes.io/cluster/${local.name}" = "owned", "ebs.csi.aws.com/cluster" = "true" }
  drivers_request = { for key, value in local.drivers_tags : "aws:RequestTag/${key}" => value }
  drivers_own     = { for key, value in local.drivers_tags : "aws:ResourceTag/${key}" => value }
  # Names of snapshots have no account in them.
  snapshots = local.aws.cloud_snapshots ? ["arn:${local.partition}:ec2:${local.aws.region}:*:snapshot/*"] : []

  control_plane_statements = concat(
    [
      # Where its etcd volume is, and which names of devices the machine has left; which machine asks to join, where workers do so by their
      # role. EC2 knows no narrower right to look than a region.
      {
        Sid       = "Look"
        Effect    = "Allow"
        Action    = ["ec2:DescribeInstances", "ec2:DescribeVolumes"]
        Resource  = "*"
        Condition = { StringEquals = { "aws:RequestedRegion" = local.aws.region } }
      },
      # Attaches exactly the etcd volumes of this cluster, by their identifiers, …
      {
        Sid      = "EtcdVolumes"
        Effect   = "Allow"
        Action   = "ec2:AttachVolume"
        Resource = [for key in sort(keys(local.volumes)) : "${local.ec2}:volume/${aws_ebs_volume.etcd[key].id}"]
      },
      # … to control-plane machines of this cluster only. No role here may change tags, so no
      # machine can make itself one. A volume is never detached from a machine: the operator does
      # that after checking that the machine is dead.
      {
        Sid      = "EtcdHosts"
        Effect   = "Allow"
        Action   = "ec2:AttachVolume"
        Resource = "${local.ec2}:instance/*"
        Condition = { StringEquals = {
          "aws:ResourceTag/KubernetesCluster"         = local.name
          "aws:ResourceTag/k8s.io/role/control-plane" = "1"
        } }
      },
    ],
    # A volume with a key of one's own: EC2 asks for a grant in the host's name when it attaches, and for nothing else.
    [for statement in [
      {
        Sid       = "EtcdKeyGrant"
        Effect    = "Allow"
        Action    = "kms:CreateGrant"
        Resource  = var.cluster.etcd.volume.kms_key
        Condition = { Bool = { "kms:GrantIsForAWSResource" = "true" }, StringEquals = { "kms:ViaService" = "ec2.${local.aws.region}.${local.services}" } }
      },
      {
        Sid       = "EtcdKey"
        Effect    = "Allow"
        Action    = ["kms:Decrypt", "kms:DescribeKey"]
        Resource  = var.cluster.etcd.volume.kms_key
        Condition = { StringEquals = { "kms:ViaService" = "ec2.${local.aws.region}.${local.services}" } }
      },
    ] : statement if var.cluster.etcd.volume.kms_key != ""],
    # The cloud controller manager looks at machines, networks and load balancers: for that there is no narrower right than a region. …
    [for statement in [
      {
        Sid    = "CloudLook"
        Effect = "Allow"
        Action = [
          "ec2:DescribeAvailabilityZones", "ec2:DescribeInstanceTopology", "ec2:DescribeRouteTables", "ec2:DescribeSecurityGroups",
          "ec2:DescribeSubnets", "ec2:DescribeVpcs", "elasticloadbalancing:DescribeListeners",
          "elasticloadbalancing:DescribeLoadBalancerAttributes", "elasticloadbalancing:DescribeLoadBalancerPolicies",
          "elasticloadbalancing:DescribeLoadBalancers", "elasticloadbalancing:DescribeTags",
          "elasticloadbalancing:DescribeTargetGroupAttributes", "elasticloadbalancing:DescribeTargetGroups",
          "elasticloadbalancing:DescribeTargetHealth",
        ]
        Resource  = "*"
        Condition = { StringEquals = { "aws:RequestedRegion" = local.aws.region } }
      },
      # … It makes load balancers and their security groups with the tag of this cluster, …
      {
        Sid       = "CloudMake"
        Effect    = "Allow"
        Action    = ["ec2:CreateSecurityGroup", "elasticloadbalancing:CreateLoadBalancer", "elasticloadbalancing:CreateTargetGroup"]
        Resource  = ["${local.ec2}:security-group/*", "${local.balancing}:loadbalancer/*", "${local.balancing}:targetgroup/*"]
        Condition = { StringEquals = { "aws:RequestTag/kubernetes.io/cluster/${local.name}" = "owned" } }
      },
      { Sid = "CloudMakeInNetwork", Effect = "Allow", Action = "ec2:CreateSecurityGroup", Resource = "${local.ec2}:vpc/${local.vpc}" },
      # … tags what it just makes and nothing else, so that no machine makes itself another one, …
      {
        Sid       = "CloudTagGroups"
        Effect    = "Allow"
        Action    = "ec2:CreateTags"
        Resource  = "${local.ec2}:security-group/*"
        Condition = { StringEquals = { "ec2:CreateAction" = "CreateSecurityGroup" } }
      },
      {
        Sid       = "CloudTagBalancers"
        Effect    = "Allow"
        Action    = "elasticloadbalancing:AddTags"
        Resource  = ["${local.balancing}:loadbalancer/*", "${local.balancing}:targetgroup/*"]
        Condition = { StringEquals = { "elasticloadbalancing:CreateAction" = ["CreateLoadBalancer", "CreateTargetGroup"] } }
      },
      # … and changes what has that tag, workers' security groups included: they let its load balancers in.
      {
        Sid       = "CloudGroups"
        Effect    = "Allow"
        Action    = ["ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress", "ec2:DeleteSecurityGroup"]
        Resource  = "${local.ec2}:security-group/*"
        Condition = { StringEquals = { "aws:ResourceTag/kubernetes.io/cluster/${local.name}" = "owned" } }
      },
      {
        Sid    = "CloudBalancers"
        Effect = "Allow"
        Action = [
          "elasticloadbalancing:AddTags", "elasticloadbalancing:ApplySecurityGroupsToLoadBalancer",
          "elasticloadbalancing:AttachLoadBalancerToSubnets", "elasticloadbalancing:ConfigureHealthCheck",
          "elasticloadbalancing:CreateListener", "elasticloadbalancing:CreateLoadBalancerListeners",
          "elasticloadbalancing:CreateLoadBalancerPolicy", "elasticloadbalancing:DeleteListener",
          "elasticloadbalancing:DeleteLoadBalancer", "elasticloadbalancing:DeleteLoadBalancerListeners",
          "elasticloadbalancing:DeleteTargetGroup", "elasticloadbalancing:DeregisterInstancesFromLoadBalancer",
          "elasticloadbalancing:DeregisterTargets", "elasticloadbalancing:DetachLoadBalancerFromSubnets",
          "elasticloadbalancing:ModifyListener", "elasticloadbalancing:ModifyLoadBalancerAttributes",
          "elasticloadbalancing:ModifyTargetGroup", "elasticloadbalancing:ModifyTargetGroupAttributes",
          "elasticloadbalancing:RegisterInstancesWithLoadBalancer", "elasticloadbalancing:RegisterTargets",
          "elasticloadbalancing:SetLoadBalancerPoliciesForBackendServer", "elasticloadbalancing:SetLoadBalancerPoliciesOfListener",
          "elasticloadbalancing:SetSecurityGroups",
        ]
        Resource  = "${local.balancing}:*"
        Condition = { StringEquals = { "aws:ResourceTag/kubernetes.io/cluster/${local.name}" = "owned" } }
      },
      # The first load balancer of an account needs a role of Amazon's own.
      {
        Sid       = "CloudBalancersRole"
        Effect    = "Allow"
        Action    = "iam:CreateServiceLinkedRole"
        Resource  = "arn:${local.partition}:iam::${local.account}:role/aws-service-role/elasticloadbalancing.amazonaws.com/AWSServiceRoleForElasticLoadBalancing"
        Condition = { StringEquals = { "iam:AWSServiceName" = "elasticloadbalancing.amazonaws.com" } }
      },
    ] : statement if local.aws.cloud_controller],
    # The CSI driver makes volumes of claims, and snapshots of them, with the tags of this cluster and of the driver, …
    [for statement in [
      {
        Sid    = "VolumesLook"
        Effect = "Allow"
        Action = concat([
          "ec2:DescribeAvailabilityZones", "ec2:DescribeInstanceTypes", "ec2:DescribeTags", "ec2:DescribeVolumeStatus",
          "ec2:DescribeVolumesModifications",
        ], local.aws.cloud_snapshots ? ["ec2:DescribeSnapshots"] : [])
        Resource  = "*"
        Condition = { StringEquals = { "aws:RequestedRegion" = local.aws.region } }
      },
      {
        Sid       = "VolumesMake"
        Effect    = "Allow"
        Action    = "ec2:CreateVolume"
        Resource  = "${local.ec2}:volume/*"
        Condition = { StringEquals = local.drivers_request }
      },
      # … tags what it just makes and nothing else, …
      {
        Sid       = "VolumesTag"
        Effect    = "Allow"
        Action    = "ec2:CreateTags"
        Resource  = concat(["${local.ec2}:volume/*"], local.snapshots)
        Condition = { StringEquals = { "ec2:CreateAction" = concat(["CreateVolume"], local.aws.cloud_snapshots ? ["CreateSnapshot"] : []) } }
      },
      # … and attaches, changes and deletes what has both tags, which etcd's volumes have not, …
      {
        Sid    = "Volumes"
        Effect = "Allow"
        Action = concat(
          ["ec2:AttachVolume", "ec2:DetachVolume", "ec2:DeleteVolume", "ec2:ModifyVolume"],
          local.aws.cloud_snapshots ? ["ec2:CreateSnapshot"] : [],
        )
        Resource  = "${local.ec2}:volume/*"
        Condition = { StringEquals = local.drivers_own }
      },
      # … at machines of this cluster.
      {
        Sid       = "VolumesHosts"
        Effect    = "Allow"
        Action    = ["ec2:AttachVolume", "ec2:DetachVolume"]
        Resource  = "${local.ec2}:instance/*"
        Condition = { StringEquals = { "aws:ResourceTag/kubernetes.io/cluster/${local.name}" = "owned" } }
      },
    ] : statement if local.aws.cloud_storage],
    # A snapshot is made with both tags; one that has them becomes a volume, or is deleted.
    [for statement in [
      {
        Sid       = "SnapshotsMake"
        Effect    = "Allow"
        Action    = "ec2:CreateSnapshot"
        Resource  = local.snapshots
        Condition = { StringEquals = local.drivers_request }
      },
      {
        Sid       = "Snapshots"
        Effect    = "Allow"
        Action    = ["ec2:CreateVolume", "ec2:DeleteSnapshot"]
        Resource  = local.snapshots
        Condition = { StringEquals = local.drivers_own }
      },
    ] : statement if local.aws.cloud_snapshots],
    # Volumes with a key of one's own: EC2 uses it in the driver's name, when it makes one and when it attaches one.
    [for statement in [
      {
        Sid       = "VolumesKeyGrant"
        Effect    = "Allow"
        Action    = "kms:CreateGrant"
        Resource  = local.aws.cloud_storage_kms_key
        Condition = { Bool = { "kms:GrantIsForAWSResource" = "true" }, StringEquals = { "kms:ViaService" = "ec2.${local.aws.region}.${local.services}" } }
      },
      {
        Sid       = "VolumesKey"
        Effect    = "Allow"
        Action    = ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext"]
        Resource  = local.aws.cloud_storage_kms_key
        Condition = { StringEquals = { "kms:ViaService" = "ec2.${local.aws.region}.${local.services}" } }
      },
    ] : statement if local.aws.cloud_storage_kms_key != ""],
    # The cluster autoscaler looks at groups and what their next machine would be, which Amazon lets none look at more narrowly, …
    [for statement in [
      {
        Sid    = "ScaleLook"
        Effect = "Allow"
        Action = [
          "autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeAutoScalingInstances", "autoscaling:DescribeScalingActivities",
          "ec2:DescribeImages", "ec2:DescribeInstanceTypes", "ec2:DescribeLaunchTemplateVersions",
        ]
        Resource  = "*"
        Condition = { StringEquals = { "aws:RequestedRegion" = local.aws.region } }
      },
      # … and sizes the groups of this cluster that have a max: their tag, which no role here may change, says so.
      {
        Sid       = "Scale"
        Effect    = "Allow"
        Action    = ["autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"]
        Resource  = "arn:${local.partition}:autoscaling:${local.aws.region}:${local.account}:autoScalingGroup:*:autoScalingGroupName/*.${local.name}"
        Condition = { StringEquals = { "aws:ResourceTag/k8s.io/cluster-autoscaler/${local.name}" = "owned" } }
      },
    ] : statement if local.aws.cluster_autoscaler],
    # Keeps its backups in the bucket, and sees nothing else there.
    [for statement in [
      {
        Sid       = "BackupList"
        Effect    = "Allow"
        Action    = "s3:ListBucket"
        Resource  = "arn:${local.partition}:s3:::${local.aws.backup_bucket}"
        Condition = { StringLike = { "s3:prefix" = "${local.aws.backup_prefix}*" } }
      },
      {
        Sid      = "Backups"
        Effect   = "Allow"
        Action   = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
        Resource = "arn:${local.partition}:s3:::${local.aws.backup_bucket}/${local.aws.backup_prefix}*"
      },
    ] : statement if local.aws.backup_bucket != ""],
    # Keeps names in a zone, those of the API server and what annotations ask for.
    [for statement in [
      {
        Sid      = "Names"
        Effect   = "Allow"
        Action   = ["route53:ListResourceRecordSets", "route53:ChangeResourceRecordSets"]
        Resource = "arn:${local.partition}:route53:::hostedzone/${var.cluster.dns.hosts_zone}"
      },
    ] : statement if var.cluster.dns.hosts_zone != ""],
    # Reads which machines Amazon takes back, and says when their pods have moved.
    [for statement in [
      { Sid = "TerminationQueue", Effect = "Allow", Action = ["sqs:ReceiveMessage", "sqs:DeleteMessage"], Resource = one(aws_sqs_queue.termination[*].arn) },
      {
        Sid      = "TerminationHooks"
        Effect   = "Allow"
        Action   = "autoscaling:CompleteLifecycleAction"
        Resource = [for name in sort(keys(var.cluster.groups)) : "arn:${local.partition}:autoscaling:${local.aws.region}:${local.account}:autoScalingGroup:*:autoScalingGroupName/${name}.${local.name}"]
      },
    ] : statement if local.aws.termination_queue],
  )

  # Workers need nothing of the account but images from its registry. Who they are they read from their own metadata, and to prove it by their
  # role (sts:GetCallerIdentity) needs no right.
  node_statements = [
    { Sid = "RegistryLogin", Effect = "Allow", Action = "ecr:GetAuthorizationToken", Resource = "*" },
    {
      Sid      = "RegistryImages"
      Effect   = "Allow"
      Action   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
      Resource = "arn:${local.partition}:ecr:${local.aws.region}:${local.account}:repository/*"
    },
  ]
}

data "aws_caller_identity" "current" {}

resource "aws_iam_role" "control_plane" {
  count                = local.makes_control_plane_role ? 1 : 0
  name                 = local.aws.names.control_plane_role
  description          = "Control-plane hosts of ${local.name}"
  assume_role_policy   = local.assumed_by_machines
  permissions_boundary = local.boundary
  tags                 = local.tags
}

resource "aws_iam_role_policy" "control_plane" {
  count  = local.makes_control_plane_role ? 1 : 0
  name   = "control-plane"
  role   = aws_iam_role.control_plane[0].name
  policy = jsonencode({ Version = "2012-10-17", Statement = concat(local.control_plane_statements, local.node_statements) })
}

resource "aws_iam_instance_profile" "control_plane" {
  count = local.makes_control_plane_role ? 1 : 0
  name  = local.aws.names.control_plane_role
  role  = aws_iam_role.control_plane[0].name
  tags  = local.tags
}

resource "aws_iam_role" "node" {
  count                = local.makes_node_role ? 1 : 0
  name                 = local.aws.names.node_role
  description          = "Workers of ${local.name}"
  assume_role_policy   = local.assumed_by_machines
  permissions_boundary = local.boundary
  tags                 = local.tags
}

resource "aws_iam_role_policy" "node" {
  count  = local.makes_node_role ? 1 : 0
  name   = "node"
  role   = aws_iam_role.node[0].name
  policy = jsonencode({ Version = "2012-10-17", Statement = local.node_statements })
}

resource "aws_iam_instance_profile" "node" {
  count = local.makes_node_role ? 1 : 0
  name  = local.aws.names.node_role
  role  = aws_iam_role.node[0].name
  tags  = local.tags
}
