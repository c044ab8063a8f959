"""moto (an emulator of Amazon's APIs) with an account that is not empty: images, and what the configurations name as existing: `aws.py PORT`, with
the Python that moto is installed in.
"""

import json, os, sys, tempfile
from unittest.mock import patch

IMAGES = {
    "ami-00000000000000a64": ("debian-12-amd64-20260101-0000", "x86_64", "136693071363"),
    "ami-00000000000000b64": ("debian-12-arm64-20260101-0000", "arm64", "136693071363"),
    "ami-0123456789abcdef0": ("custom-image", "x86_64", "123456789012"),
}
images = tempfile.NamedTemporaryFile("w", suffix=".json")
json.dump(
    [
        {
            "ami_id": id,
            "name": name,
            "description": name,
            "owner_id": owner,
            "public": True,
            "virtualization_type": "hvm",
            "architecture": architecture,
            "state": "available",
            "image_type": "machine",
            "hypervisor": "xen",
            "root_device_name": "/dev/xvda",
            "root_device_type": "ebs",
            "creation_date": "2026-01-01T00:00:00.000Z",
        }
        for id, (name, architecture, owner) in IMAGES.items()
    ],
    images,
)
images.flush()
# moto reads it when it is imported.
os.environ["MOTO_AMIS_PATH"] = images.name

from moto.autoscaling.models import AutoScalingBackend
from moto.autoscaling.responses import AutoScalingResponse
from moto.ec2 import ec2_backends
from moto.ec2.models.subnets import Subnet
from moto.ec2.models import EC2Backend
from moto.ec2.models.security_groups import SecurityGroupRule
from moto.ec2.responses.dhcp_options import DHCPOptions
from moto.elbv2.models import AvailabilityZone, ELBv2Backend, FakeLoadBalancer
from moto.iam import iam_backends
from moto.route53 import route53_backends
from moto.route53.responses import Route53
from moto.server import main

ACCOUNT = "123456789012"
ec2 = ec2_backends[ACCOUNT]["us-east-1"]


def named(where, id, make):
    """What `make` makes, under this identifier."""
    with patch(f"moto.ec2.models.{where}", lambda: id):
        return make()


vpc = named("vpcs.random_vpc_id", "vpc-0123456789abcdef0", lambda: ec2.create_vpc("10.9.0.0/16"))
for place, end in enumerate(["aaa", "bbb", "ccc", "ddd", "eee", "fff"]):
    zone = "us-east-1" + "abc"[place % 3]
    make = lambda: ec2.create_subnet(vpc.id, f"10.9.{place * 16}.0/20", availability_zone=zone)
    named("subnets.random_subnet_id", f"subnet-0{end}", make)
make = lambda: ec2.create_security_group("further", "of all hosts", vpc_id=vpc.id)
named("security_groups.random_security_group_id", "sg-0123456789abcdef0", make)
make = lambda: ec2.allocate_address("vpc")
named("elastic_ip_addresses.random_eip_allocation_id", "eipalloc-0123456789abcdef0", make)
ec2.create_key_pair("ops", "ed25519", {})
for name in ["kubernetes-masters", "kubernetes-nodes"]:
    iam_backends[ACCOUNT]["aws"].create_instance_profile(name, "/", [])
names = route53_backends[ACCOUNT]["aws"]
names.create_hosted_zone("k8s.example.com.", private_zone=False)
with patch("moto.route53.models.create_route53_zone_id", lambda **_: "Z0123456789ABCDEFGHIJ"):
    names.create_hosted_zone("k8s.example.com.", private_zone=True, vpcid=vpc.id, vpcregion="us-east-1")


# What moto does otherwise than Amazon, each in the place of what it stands for.


def keeping(act):
    """moto forgets this part of a group."""

    def call(self):
        result = act(self)
        policy = self._get_param("InstanceMaintenancePolicy")
        if policy:
            name = self._get_param("AutoScalingGroupName")
            self.autoscaling_backend.autoscaling_groups[name].instance_maintenance_policy = policy
        return result

    return call


def apart(make):
    """moto takes a template's own tags for a part of what is in it."""

    def call(self, name, description, data, tags):
        data["TagSpecifications"] = [one for one in data["TagSpecifications"] if one["ResourceType"] != "launch-template"]
        return make(self, name, description, data, tags)

    return call


def tagged(make):
    """moto forgets the first tags of these."""

    def call(self):
        result = make(self)
        result.result["DhcpOptions"].add_tags(self._parse_tag_specification().get("dhcp-options", {}))
        return result

    return call


def quick(make):
    """moto forgets how quick a machine's own volumes are to be, and then wants to know; it does not know how large an image is, either."""

    def call(self, *positional, **named):
        if "size" in named:
            named["size"] = named["size"] or 8
        if named.get("volume_type") in ("io1", "io2"):
            named["iops"] = named.get("iops") or 3000
        return make(self, *positional, **named)

    return call


def silent(make):
    """moto prints a queue and a role that no request named."""

    def call(self, *positional, **named):
        hook = make(self, *positional, **named)
        hook.notification_target_arn = hook.role_arn = None
        return hook

    return call


def private(make):
    """moto wants to be told that a zone of a VPC is a private one."""

    def call(self):
        flag = self._get_bool_param
        is_private = lambda name: name == "HostedZoneConfig.PrivateZone" and self._get_param("VPC.VPCId")
        self._get_bool_param = lambda name, default=None: bool(is_private(name)) or flag(name, default)
        return make(self)

    return call


def addressed(make):
    """moto forgets the elastic addresses of a load balancer."""

    def call(self, **named):
        balancer = make(self, **named)
        balancer.given = {one["SubnetId"]: one["AllocationId"] for one in named["subnet_mappings"] if "AllocationId" in one}
        return balancer

    return call


def places(balancer):
    zones = [AvailabilityZone(subnet) for subnet in balancer.subnets]
    for zone in zones:
        if zone.subnet_id in balancer.given:
            zone.load_balancer_addresses = [{"AllocationId": balancer.given[zone.subnet_id]}]
    return zones


def blocks(self):
    """moto writes the state of a subnet's IPv6 addresses so that no client can read it."""
    all = [one for one in self.ipv6_cidr_block_associations.values() if one["ipv6CidrBlockState"]["State"] == "associated"]
    return [dict(one, ipv6CidrBlockState={"state": "associated"}) for one in all]


for act in ["create_auto_scaling_group", "update_auto_scaling_group"]:
    setattr(AutoScalingResponse, act, keeping(getattr(AutoScalingResponse, act)))
AutoScalingBackend.create_lifecycle_hook = silent(AutoScalingBackend.create_lifecycle_hook)
DHCPOptions.create_dhcp_options = tagged(DHCPOptions.create_dhcp_options)
EC2Backend.create_launch_template = apart(EC2Backend.create_launch_template)
ELBv2Backend.create_load_balancer = addressed(ELBv2Backend.create_load_balancer)
FakeLoadBalancer.availability_zones = property(places)
EC2Backend.create_volume = quick(EC2Backend.create_volume)
Route53.create_hosted_zone = private(Route53.create_hosted_zone)
# A rule that names a group says why as well.
SecurityGroupRule.description = property(lambda self: {**self.source_group, **self.ip_range}.get("Description"))
Subnet.ipv6_cidr_block_association_set = property(blocks)

main(["-H", "127.0.0.1", "-p", sys.argv[1]])
