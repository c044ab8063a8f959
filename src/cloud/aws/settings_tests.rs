//! What Amazon would refuse is refused here, with its setting and the way out; what it would take
//! is not.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::*;
use crate::config::{Settings, TreeSource};

fn spec(changes: &[(&str, &str)]) -> Result<Spec> {
    let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
    let all = [&[("phase1.cloud_provider", "aws")], changes].concat();
    settings.set_all(&all).unwrap();
    Spec::find(&settings).map(Option::unwrap)
}

fn wrong(changes: &[(&str, &str)]) -> String {
    let error = spec(changes).unwrap_err();
    assert_eq!(error.class(), crate::error::Class::Config);
    format!("{} | {}", error.message(), error.next().unwrap_or_default())
}

fn names(cluster: &str, region: &str) -> AwsNames {
    let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
    settings.set_all(&[("phase1.cloud_provider", "aws"), ("phase1.aws.region", region)]).unwrap();
    let (_, mut aws) = read(&settings).unwrap();
    aws.name_all(cluster, &BTreeMap::new(), &BTreeMap::new());
    aws.names
}

#[test]
fn what_amazon_would_refuse_is_refused_with_its_setting() {
    let private = ("phase1.aws.topology", "private");
    let three = ("phase1.control_plane.count", "3");
    let own = ("phase1.aws.vpc_id", "vpc-0123456789abcdef0");
    let group = |rest: &str| format!(r#"[{{"name": "web", "role": "worker", "size": 2, {rest}}}]"#);
    let groups = |rest: &str| [("phase1.node_groups".to_owned(), group(rest))];
    let one = |rest: &str| {
        let changes = groups(rest);
        wrong(&changes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect::<Vec<_>>())
    };
    let cases = [
        wrong(&[("phase1.aws.region", "us-eest-1")]),
        wrong(&[("phase1.aws.region", "frankfurt")]),
        wrong(&[("phase1.aws.region", "ca-central-1")]),
        one(r#""zones": ["us-east-2a"]"#),
        one(r#""zones": ["us-east-1-bos-1a"]"#),
        wrong(&[own, ("phase1.aws.subnet_ids", "us-east-1a=subnet-0aaa")]),
        wrong(&[own, ("phase1.aws.subnet_ids", "us-east-1a=0aaa,us-east-1b=subnet-0bbb,us-east-1c=subnet-0ccc")]),
        wrong(&[("phase1.aws.vpc_id", "my-network")]),
        wrong(&[("phase1.aws.ami", "debian-12")]),
        wrong(&[("phase1.aws.region", "us-gov-west-1"), ("phase1.aws.zones", "us-gov-west-1a")]),
        wrong(&[("phase1.aws.node_instance_profile", "arn:aws:iam::123456789012:instance-profile/nodes")]),
        wrong(&[("phase1.aws.permissions_boundary", "boundary")]),
        wrong(&[("phase1.etcd_volume.kms_key", "arn:aws:kms:us-east-1:123456789012:alias/etcd")]),
        wrong(&[("phase1.api.static_address", "203.0.113.7")]),
        wrong(&[("phase1.aws.vpc_cidr", "172.20.0.0/24"), ("phase1.num_nodes", "100")]),
        wrong(&[three, private, ("phase1.aws.vpc_cidr", "172.20.0.0/24")]),
        wrong(&[private]),
        wrong(&[three, private, own]),
        wrong(&[private, own, ("phase1.api.external", "n"), ("phase1.ssh.bastion", "create")]),
        wrong(&[own, ("phase1.network.ipv6", "y")]),
        wrong(&[three, ("phase1.api.external", "n"), ("phase1.api.static_address", "eipalloc-0123456789abcdef0")]),
        wrong(&[("phase1.dns.provider", "azuredns")]),
        wrong(&[("phase1.aws.instance_type", "mm7i.large")]),
        wrong(&[("phase1.aws.instance_type", "m7i.larg")]),
        wrong(&[("phase1.aws.instance_type", "m7i")]),
        wrong(&[("phase1.aws.control_plane_instance_type", "t3.micro")]),
        one(r#""machine_type": "e2-standard-4""#),
        one(r#""disk_type": "pd-ssd""#),
        wrong(&[("phase1.aws.etcd_volume_iops", "12000")]),
        wrong(&[("phase1.aws.etcd_volume_iops", "200")]),
        wrong(&[("phase1.aws.etcd_volume_type", "io2"), ("phase1.etcd_volume.size_gb", "2")]),
        wrong(&[("phase1.tags", "kubernetes.io/role=mine")]),
        one(r#""tags": {"owner": "a|b"}"#),
        wrong(&[
            ("phase1.ssh.bastion", "create"),
            ("phase1.aws.ami", "ami-0123456789abcdef0"),
            ("phase1.ssh.bastion_machine_type", "t4g.micro"),
        ]),
        wrong(&[("phase1.aws.control_plane_instance_type", "c7gn.xlarge")]),
        wrong(&[("phase1.aws.instance_type", "t4g.large")]),
        one(r#""machine_type": "m7g.large""#),
        one(r#""public_address": false"#),
        wrong(&[("phase1.dns.provider", "route53")]),
        wrong(&[("phase1.dns.provider", "route53"), ("phase1.dns.domain", "k8s.internal")]),
    ];
    insta::assert_snapshot!(cases.join("\n"));
}

#[test]
fn only_a_key_that_amazon_imports_becomes_a_key_pair() {
    let with = |changes: &[(&str, &str)], keys: &[&str]| {
        spec(changes).unwrap().variables(keys.iter().map(|key| (*key).to_owned()).collect())
    };
    let (good, own, bad) = ("ssh-ed25519 AAAA turnup", "ssh-rsa AAAA alice", "ecdsa-sha2-nistp256 AAAA alice");
    let error = with(&[], &[bad, good]).unwrap_err();
    assert!(error.message().starts_with("phase1.ssh.private_key_file: "), "{error:?}");
    assert!(error.message().contains("ecdsa-sha2-nistp256"), "{error:?}");
    let unknown = crate::unknown::after_apply();
    for keys in [&[good, bad][..], &[own], &[], &[&unknown]] {
        with(&[], keys).unwrap();
    }
    with(&[("phase1.aws.key_pair", "ops")], &[bad]).unwrap();
}

#[test]
fn what_amazon_would_take_is_taken() {
    const OWN: (&str, &str) = ("phase1.aws.vpc_id", "vpc-0123456789abcdef0");
    const PRIVATE: (&str, &str) = ("phase1.aws.topology", "private");
    const INSIDE: (&str, &str) = ("phase1.api.external", "n");
    const INNER: (&str, &str) =
        ("phase1.node_groups", r#"[{"name": "web", "role": "worker", "size": 2, "public_address": false}]"#);
    const ROUTE53: (&str, &str) = ("phase1.dns.provider", "route53");
    for changes in [
        vec![PRIVATE, INSIDE, ("phase1.aws.nat_gateways", "per-zone")],
        vec![OWN, PRIVATE, INSIDE],
        vec![PRIVATE, INSIDE, INNER],
        vec![OWN, INNER],
        vec![ROUTE53, ("phase1.dns.domain", "k8s.example.com")],
        vec![ROUTE53, ("phase1.dns.private_zone", "y")],
        vec![ROUTE53, ("phase1.dns.zone", "Z0123456789ABCDEFGHIJ")],
        vec![("phase1.ssh.bastion", "create"), ("phase1.ssh.bastion_machine_type", "t4g.micro")],
        vec![("phase1.aws.region", "ca-central-1"), ("phase1.aws.zones", "ca-central-1a,ca-central-1d")],
        vec![
            ("phase1.aws.region", "us-gov-west-1"),
            ("phase1.aws.zones", "us-gov-west-1a"),
            ("phase1.aws.ami", "ami-0a"),
        ],
        vec![("phase1.aws.vpc_cidr", "172.20.0.0/20"), ("phase1.num_nodes", "100")],
        vec![("phase1.aws.topology", "private"), ("phase1.api.external", "n")],
        vec![("phase1.aws.etcd_volume_iops", "10000")],
        vec![("phase1.aws.etcd_volume_type", "io2"), ("phase1.aws.etcd_volume_iops", "100")],
        vec![("phase1.tags", "CostCenter=4711,team=plattform/süd")],
    ] {
        spec(&changes).map_err(|error| format!("{changes:?}: {}", error.message())).unwrap();
    }
    // Families and sizes that are spelled unlike the others.
    for machine in [
        "t3.small",
        "a1.large",
        "m7i-flex.8xlarge",
        "c7gn.metal",
        "m7i.metal-24xl",
        "u7i-12tb.224xlarge",
        "u-6tb1.112xlarge",
        "im4gn.xlarge",
        "is4gen.large",
        "hpc7g.16xlarge",
        "trn1n.32xlarge",
        "g4dn.xlarge",
        "x2iezn.2xlarge",
        "z1d.large",
    ] {
        check_machine("key", machine).map_err(|error| error.message().to_owned()).unwrap();
    }
}

#[test]
fn processors_of_amazon_are_told_from_others() {
    for machine in [
        "a1.large",
        "t4g.small",
        "m7g.large",
        "c7gn.xlarge",
        "r8gd.large",
        "im4gn.xlarge",
        "is4gen.large",
        "g5g.xlarge",
        "x2gd.large",
    ] {
        assert!(is_arm(machine), "{machine}");
    }
    for machine in [
        "t3.large",
        "m7i.large",
        "g5.xlarge",
        "g4dn.xlarge",
        "gr6.4xlarge",
        "g6e.xlarge",
        "m7i-flex.large",
        "trn1.2xlarge",
    ] {
        assert!(!is_arm(machine), "{machine}");
    }
}

#[test]
fn names_are_as_short_as_amazon_wants_them_and_stay_different() {
    let long = |end: &str| format!("{}-{end}", "a".repeat(60 - end.len()));
    let (one, two) = (names(&long("one"), "us-east-1"), names(&long("two"), "us-east-1"));
    assert_eq!(names(&long("one"), "us-east-1"), one);
    for (longest, of_one, of_two) in [
        (32, &one.load_balancer, &two.load_balancer),
        (32, &one.inner_load_balancer, &two.inner_load_balancer),
        (64, &one.control_plane_role, &two.control_plane_role),
        (64, &one.node_role, &two.node_role),
        (80, &one.queue, &two.queue),
        // The longest end of a rule is `-rebalance`.
        (54, &one.rule, &two.rule),
    ] {
        assert!(of_one.len() <= longest && of_two.len() <= longest && of_one != of_two, "{of_one} {of_two}");
    }
    assert_ne!(names("prod", "us-east-1").node_role, names("prod", "us-east-2").node_role);
    assert_eq!(names("internal-x", "us-east-1").load_balancer, "kinternal-x-api");
}
