# Which image hosts are made of. The newest Debian is looked up once and then kept, so that no run replaces hosts because Debian published
# another; `terraform apply -replace='terraform_data.debian["amd64"]'`, or an AMI of one's own, takes a newer one.

locals {
  # Amazon's own processors have a g behind the generation, as in m7g or t4g, but for the first, a1.
  architectures = {
    for type in distinct(concat(
      [for host in var.cluster.control_plane : host.machine_type],
      [for group in var.cluster.groups : group.machine_type],
      [var.cluster.ssh.bastion_machine_type],
    )) : type => length(regexall("^(a1|[a-z]+[0-9]+[a-z]*g[a-z]*)\\.", type)) > 0 ? "arm64" : "amd64"
  }
  machines = concat(
    [for host in var.cluster.control_plane : { type = host.machine_type, image = host.image }],
    [for group in var.cluster.groups : { type = group.machine_type, image = group.image }],
    # The bastion is of the hosts' image: the same user logs in.
    var.cluster.ssh.bastion ? [{ type = var.cluster.ssh.bastion_machine_type, image = local.bastion_image }] : [],
  )
  bastion_image        = var.cluster.control_plane[local.first].image
  debian_architectures = toset([for machine in local.machines : local.architectures[machine.type] if machine.image == ""])
  given_images         = toset([for machine in local.machines : machine.image if machine.image != ""])

  # By AMI, or by architecture: identifier and the name of the root disk, which differs between distributions.
  images = merge(
    { for id, image in data.aws_ami.given : id => { id = id, root = image.root_device_name } },
    { for architecture, image in terraform_data.debian : architecture => image.output },
  )
}

data "aws_ami" "given" {
  for_each           = local.given_images
  include_deprecated = true
  filter {
    name   = "image-id"
    values = [each.key]
  }
}

data "aws_ami" "debian" {
  for_each    = local.debian_architectures
  most_recent = true
  # The account of the Debian project (wiki.debian.org/Cloud/AmazonEC2Image): any account could use
  # the same name.
  owners = ["136693071363"]
  filter {
    name   = "name"
    values = ["debian-12-${each.key}-20*"]
  }
}

resource "terraform_data" "debian" {
  for_each = local.debian_architectures
  input    = { id = data.aws_ami.debian[each.key].id, root = data.aws_ami.debian[each.key].root_device_name }

  lifecycle { ignore_changes = [input] }
}
