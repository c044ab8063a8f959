# User data as EC2 takes it: at most 16 KiB before base64. cloud-init reads it compressed too; Ignition, which is JSON, does not.

locals {
  # Users log in with a key: the first by the key pair, all by cloud-init where there is no other
  # user data.
  bare_user_data = length(var.cluster.ssh.authorized_keys) == 0 ? "" : "#cloud-config\n${jsonencode({ ssh_authorized_keys = var.cluster.ssh.authorized_keys })}\n"
  told           = nonsensitive(keys(var.user_data))
  open_user_data = {
    for name in concat(["control-plane"], keys(var.cluster.groups)) : name => sensitive(
      contains(local.told, name) ? replace(replace(var.user_data[name], "@turnup:api@", local.api_inner), "@turnup:api-servers@", local.api_servers) : local.bare_user_data
    )
  }
  plain_user_data = merge(
    { for name, text in local.open_user_data : name => replace(text, "@turnup:token@", lookup(var.join_tokens, name, "")) if name != "control-plane" },
    # No group's name has a slash. Each of these hosts knows the volume that has what it is.
    {
      for host, one in var.cluster.control_plane : "control-plane/${host}" => replace(
        local.open_user_data["control-plane"], "@turnup:volume@",
        "${aws_ebs_volume.etcd["main-${one.member}"].id},${local.volumes["main-${one.member}"].name}"
      )
    },
    # The bastion's.
    { "" = sensitive(local.bare_user_data) },
  )
  user_data = {
    for who, text in local.plain_user_data : who => (
      text == "" ? null :
      length(base64encode(text)) <= local.longest_user_data || startswith(text, "{") ? base64encode(text) : base64gzip(text)
    )
  }
  # 16384 bytes are so many letters of base64.
  longest_user_data = 21848

  key_pair = (
    local.aws.key_pair != "" ? local.aws.key_pair :
    length(aws_key_pair.cluster) > 0 ? aws_key_pair.cluster[0].key_name : null
  )
}

resource "aws_key_pair" "cluster" {
  count      = local.aws.key_pair == "" && length(var.cluster.ssh.authorized_keys) > 0 ? 1 : 0
  key_name   = local.name
  public_key = var.cluster.ssh.authorized_keys[0]
  tags       = local.tags
}
