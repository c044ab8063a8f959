"""moto (an emulator of Amazon's APIs) with the machines of one cluster, as turnup's module makes and tags them, and the metadata service of its first
machine, for the cloud controller manager: `aws_controller.py PORT METADATA_PORT CLUSTER`, with the Python that moto is installed in.

The metadata service also answers the test: GET /cluster says what there is, POST /terminate/NAME ends a machine.
"""

import json, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
from moto.core.responses import ActionResult
from moto.ec2.responses import EC2Response
from moto.elb.models import FakeHealthCheck, LoadBalancer
from moto.elbv2.models import FakeLoadBalancer
from moto.server import ThreadedMotoServer

PORT, METADATA_PORT, CLUSTER = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
REGION = "us-east-1"
TAG = {"Key": f"kubernetes.io/cluster/{CLUSTER}", "Value": "owned"}

# What moto does otherwise than Amazon. A classic load balancer has a health check from the beginning.
make_balancer = LoadBalancer.__init__


def with_health_check(self, *args, **kwargs):
    make_balancer(self, *args, **kwargs)
    port = self.listeners[0].instance_port if self.listeners else 80
    self.health_check = FakeHealthCheck("5", "10", "2", "30", f"TCP:{port}")


LoadBalancer.__init__ = with_health_check
# The controller tells a network load balancer by its name.
make_network_balancer = FakeLoadBalancer.__init__


def with_name(self, *args, **kwargs):
    make_network_balancer(self, *args, **kwargs)
    self.dns_name = f"{self.name}-1.elb.{REGION}.amazonaws.com"


FakeLoadBalancer.__init__ = with_name
# Most machines have no place in a topology.
EC2Response.describe_instance_topology = lambda self: ActionResult({"Instances": []})

server = ThreadedMotoServer(ip_address="127.0.0.1", port=PORT, verbose=False)
server.start()
client = lambda service: boto3.client(
    service, region_name=REGION, endpoint_url=f"http://127.0.0.1:{PORT}", aws_access_key_id="test", aws_secret_access_key="test"
)
ec2, elb, elbv2 = client("ec2"), client("elb"), client("elbv2")


def tags(kind, **more):
    return [{"ResourceType": kind, "Tags": [TAG] + [{"Key": key, "Value": value} for key, value in more.items()]}]


vpc = ec2.create_vpc(CidrBlock="172.20.0.0/16", TagSpecifications=tags("vpc"))["Vpc"]["VpcId"]
gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
subnets = {}
for place, zone in enumerate(["us-east-1a", "us-east-1b"]):
    kind = [{"ResourceType": "subnet", "Tags": [TAG, {"Key": "kubernetes.io/role/elb", "Value": "1"}]}]
    made = ec2.create_subnet(VpcId=vpc, CidrBlock=f"172.20.{32 * (place + 1)}.0/19", AvailabilityZone=zone, TagSpecifications=kind)
    subnets[zone] = made["Subnet"]["SubnetId"]
    ec2.modify_subnet_attribute(SubnetId=subnets[zone], MapPublicIpOnLaunch={"Value": True})
    ec2.associate_route_table(RouteTableId=table, SubnetId=subnets[zone])
groups = {
    role: ec2.create_security_group(
        GroupName=f"{CLUSTER}-{role}", Description=role, VpcId=vpc, TagSpecifications=tags("security-group", Name=f"{CLUSTER}-{role}")
    )["GroupId"]
    for role in ["control-plane", "node"]
}
image = ec2.describe_images()["Images"][0]["ImageId"]
machines = {}
for name, role, zone, kind in [
    ("main", "control-plane", "us-east-1a", "t3.large"),
    ("lives", "node", "us-east-1b", "m5.large"),
    ("ends", "node", "us-east-1a", "m5.large"),
]:
    made = ec2.run_instances(
        ImageId=image,
        MinCount=1,
        MaxCount=1,
        InstanceType=kind,
        SubnetId=subnets[zone],
        SecurityGroupIds=[groups[role]],
        TagSpecifications=tags("instance", Name=name),
    )["Instances"][0]
    machines[name] = made["InstanceId"]


def read():
    """All that the cluster's machines are, and what the controller has made."""
    found = {}
    for name, id in machines.items():
        one = ec2.describe_instances(InstanceIds=[id])["Reservations"][0]["Instances"][0]
        found[name] = {
            "id": id,
            "zone": one["Placement"]["AvailabilityZone"],
            "type": one["InstanceType"],
            "address": one.get("PrivateIpAddress"),
            "public": one.get("PublicIpAddress"),
            "dns": one.get("PrivateDnsName"),
            "state": one["State"]["Name"],
        }
    rules = lambda group: [
        {"protocol": rule["IpProtocol"], "from": [pair["GroupId"] for pair in rule["UserIdGroupPairs"]] + [it["CidrIp"] for it in rule["IpRanges"]]}
        for rule in group["IpPermissions"]
    ]
    seen = ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["SecurityGroups"]
    return {
        "machines": found,
        "balancers": {it["LoadBalancerName"]: sorted(one["InstanceId"] for one in it["Instances"]) for it in elb.describe_load_balancers()["LoadBalancerDescriptions"]},
        "network_balancers": sorted(it["LoadBalancerName"] for it in elbv2.describe_load_balancers()["LoadBalancers"]),
        "target_groups": sorted(it["TargetGroupName"] for it in elbv2.describe_target_groups()["TargetGroups"]),
        "groups": {it["GroupName"]: {"id": it["GroupId"], "owned": TAG in it.get("Tags", []), "rules": rules(it)} for it in seen},
    }


class Metadata(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, text, status=200):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        # The SDK takes the token's lifetime from here.
        self.send_header("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        self.answer("session" if self.path == "/latest/api/token" else "", 200 if self.path == "/latest/api/token" else 404)

    def do_POST(self):
        ec2.terminate_instances(InstanceIds=[machines[self.path.removeprefix("/terminate/")]])
        self.answer("")

    def do_GET(self):
        if self.path == "/cluster":
            return self.answer(json.dumps(read()))
        known = {
            "meta-data/instance-id": machines["main"],
            "meta-data/placement/availability-zone": "us-east-1a",
            "meta-data/iam/security-credentials/": "control-plane",
            "meta-data/iam/security-credentials/control-plane": json.dumps(
                {"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": "test", "SecretAccessKey": "test", "Token": "test",
                 "LastUpdated": "2026-01-01T00:00:00Z", "Expiration": "2099-01-01T00:00:00Z"}
            ),
            "dynamic/instance-identity/document": json.dumps({"region": REGION, "instanceId": machines["main"], "availabilityZone": "us-east-1a"}),
        }
        path = self.path.removeprefix("/latest/")
        # Version 2 alone answers: with a session.
        if self.headers.get("X-aws-ec2-metadata-token") != "session":
            return self.answer("", 401)
        self.answer(known.get(path, ""), 200 if path in known else 404)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", METADATA_PORT), Metadata).serve_forever()
