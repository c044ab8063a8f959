//! What Google would refuse is refused here, with its setting and the way out; what it would take is not.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::*;
use crate::config::TreeSource;

fn spec(changes: &[(&str, &str)]) -> Result<Spec> {
    let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
    let all = [&[("phase1.cloud_provider", "gce"), ("phase1.gce.project", "a-project")], changes].concat();
    settings.set_all(&all).unwrap();
    Spec::read(&settings)
}

#[test]
fn what_compute_engine_refuses_is_refused_with_its_setting() {
    let cases: [&[(&str, &str)]; 21] = [
        &[("phase1.gce.instance_type", "n2d")],
        &[("phase1.gce.instance_type", "e3-standard-2")],
        &[("phase1.gce.instance_type", "c4-standard-4")],
        &[("phase1.gce.os_image", "projects/debian-cloud/global/images/family/debian-12")],
        &[("phase1.tags", "Team=a")],
        &[("phase1.node_groups", r#"[{"name": "far", "role": "worker", "size": 1, "zones": ["europe-west3-a"]}]"#)],
        &[("phase1.ssh.allowed_cidrs", "203.0.113.0/24,2001:db8::/32")],
        &[("phase1.api.allowed_cidrs", "::/0")],
        &[("phase1.node_groups", r#"[{"name": "control-plane", "role": "worker", "size": 1}]"#)],
        &[("phase1.gce.public_addresses", "n")],
        &[("phase1.api.external", "n"), ("phase1.api.static_address", "mine")],
        &[("phase1.dns.provider", "route53"), ("phase1.dns.zone", "example.com")],
        &[("phase1.dns.provider", "clouddns")],
        &[("phase1.api.exposure", "dns")],
        &[("phase1.control_plane.count", "3"), ("phase1.control_plane.zones", "us-central1-a,us-east1-b")],
        &[("phase1.gce.region", "mars-north1")],
        &[("phase1.gce.subnet_cidr", "10.118.0.0/29"), ("phase1.num_nodes", "4")],
        &[
            ("phase1.gce.subnet_cidr", "10.118.0.0/28"),
            ("phase1.node_groups", r#"[{"name": "web", "role": "worker", "size": 1, "max": 10, "max_surge": 2}]"#),
        ],
        &[("phase1.gce.disk_kms_key", "my-key")],
        &[("phase1.etcd_volume.kms_key", "arn:aws:kms:us-east-1:123456789012:key/k")],
        &[("phase1.gce.disk_kms_key", "projects/p/locations/us/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1")],
    ];
    let told = cases.map(|changes| {
        let error = spec(changes).unwrap_err();
        assert_eq!(error.class(), crate::error::Class::Config, "{changes:?}");
        error.render()
    });
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn what_is_fine_is_taken() {
    spec(&[]).unwrap();
    spec(&[("phase1.gce.public_addresses", "n"), ("phase1.api.external", "n")]).unwrap();
    spec(&[("phase1.gce.public_addresses", "n"), ("phase1.api.exposure", "load-balancer")]).unwrap();
    spec(&[("phase1.dns.provider", "clouddns"), ("phase1.dns.zone", "k8s-example-com")]).unwrap();
    spec(&[("phase1.dns.provider", "clouddns"), ("phase1.dns.private_zone", "y")]).unwrap();
    spec(&[("phase1.api.exposure", "dns"), ("phase1.api.host", "k8s.example.com")]).unwrap();
    spec(&[("phase1.gce.instance_type", "c4-standard-4"), ("phase1.gce.disk_type", "hyperdisk-balanced")]).unwrap();
    spec(&[("phase1.gce.subnet_cidr", "10.118.0.0/29"), ("phase1.num_nodes", "0")]).unwrap();
    spec(&[("phase1.gce.disk_kms_key", "projects/p/locations/us/keyRings/r/cryptoKeys/k")]).unwrap();
    spec(&[("phase1.gce.os_image", "projects/a-project/global/images/node-1")]).unwrap();
    let both = spec(&[("phase1.network.ipv6", "y"), ("phase1.ssh.allowed_cidrs", "203.0.113.0/24,2001:DB8:0::/32")]);
    assert_eq!(both.unwrap().ssh.allowed_cidrs, ["203.0.113.0/24", "2001:db8::/32"], "as Google itself writes it");
    assert!(spec(&[("phase1.num_nodes", "0")]).unwrap().groups.is_empty());
}
