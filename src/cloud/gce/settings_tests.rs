//! What Google would refuse is refused here, with its setting and the way out; what it would take
//! is not.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::*;
use crate::config::TreeSource;

fn spec(changes: &[(&str, &str)]) -> Result<Spec> {
    let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
    let all = [&[("phase1.cloud_provider", "gce"), ("phase1.gce.project", "a-project")], changes].concat();
    settings.set_all(&all).unwrap();
    Spec::find(&settings).map(Option::unwrap)
}

#[test]
fn what_compute_engine_refuses_is_refused_with_its_setting() {
    let cases: [&[(&str, &str)]; 36] = [
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
        &[("phase1.gce.region", "us-centrall1")],
        &[("phase1.gce.region", "europe-wset3")],
        &[("phase1.gce.region", "us-east")],
        &[("phase1.gce.region", "frankfurt")],
        &[("phase1.gce.instance_type", "n2-standrad-4")],
        &[("phase1.gce.control_plane_instance_type", "e2-meduim")],
        &[("phase1.gce.instance_type", "n2-medium")],
        &[("phase1.gce.instance_type", "n2-standard")],
        &[("phase1.gce.instance_type", "f1-micro")],
        &[("phase1.gce.control_plane_instance_type", "e2-micro")],
        &[("phase1.gce.subnet_cidr", "10.118.0.0/29"), ("phase1.num_nodes", "4")],
        &[
            ("phase1.gce.subnet_cidr", "10.118.0.0/28"),
            ("phase1.node_groups", r#"[{"name": "web", "role": "worker", "size": 1, "max": 12}]"#),
        ],
        &[("phase1.gce.disk_kms_key", "my-key")],
        &[
            ("phase1.api.exposure", "dns"),
            ("phase1.api.external", "n"),
            ("phase1.dns.provider", "clouddns"),
            ("phase1.dns.zone", "inner"),
            ("phase1.dns.private_zone", "y"),
        ],
        &[("phase1.ssh.bastion", "create"), ("phase1.ssh.bastion_machine_type", "e3-mikro")],
        &[("phase1.ssh.bastion", "create"), ("phase1.ssh.bastion_machine_type", "t2a-standard-1")],
        &[("phase1.etcd_volume.kms_key", "arn:aws:kms:us-east-1:123456789012:key/k")],
        &[("phase1.gce.disk_kms_key", "projects/p/locations/us/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1")],
        &[
            ("phase3.cloud_controller", "y"),
            ("phase1.gce.network", "shared"),
            ("phase1.gce.network_project", "networks"),
        ],
        &[("phase3.cloud_controller", "y"), ("phase1.num_nodes", "0")],
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
    spec(&[("phase3.cloud_controller", "y")]).unwrap();
    spec(&[("phase1.gce.public_addresses", "n"), ("phase1.api.external", "n")]).unwrap();
    spec(&[("phase1.gce.public_addresses", "n"), ("phase1.api.exposure", "load-balancer")]).unwrap();
    spec(&[("phase1.dns.provider", "clouddns"), ("phase1.dns.zone", "k8s-example-com")]).unwrap();
    spec(&[("phase1.dns.provider", "clouddns"), ("phase1.dns.private_zone", "y")]).unwrap();
    let hub = [("phase1.dns.provider", "clouddns"), ("phase1.dns.zone", "hub"), ("phase1.dns.private_zone", "y")];
    spec(&hub).unwrap();
    spec(&[("phase1.api.exposure", "dns"), ("phase1.api.host", "k8s.example.com")]).unwrap();
    spec(&[("phase1.gce.instance_type", "c4-standard-4"), ("phase1.gce.disk_type", "hyperdisk-balanced")]).unwrap();
    spec(&[("phase1.gce.subnet_cidr", "10.118.0.0/29"), ("phase1.num_nodes", "0")]).unwrap();
    spec(&[("phase1.gce.disk_kms_key", "projects/p/locations/us/keyRings/r/cryptoKeys/k")]).unwrap();
    spec(&[("phase1.gce.os_image", "projects/a-project/global/images/node-1")]).unwrap();
    for region in ["europe-west10", "africa-south1", "northamerica-northeast2", "me-central1"] {
        let zone = format!("{region}-a");
        spec(&[("phase1.gce.region", region), ("phase1.gce.zone", &zone)]).unwrap();
    }
    for machine in [
        "custom-2-4096",
        "e2-custom-2-4096",
        "e2-medium",
        "e2-small",
        "c3-standard-4-lssd",
        "m1-megamem-96",
        "a2-highgpu-1g",
        "g2-standard-8",
        "z3-highmem-22-highlssd",
    ] {
        spec(&[("phase1.gce.instance_type", machine)]).unwrap();
    }
    let both = spec(&[("phase1.network.ipv6", "y"), ("phase1.ssh.allowed_cidrs", "203.0.113.0/24,2001:DB8:0::/32")]);
    assert_eq!(both.unwrap().ssh.allowed_cidrs, ["203.0.113.0/24", "2001:db8::/32"], "as Google itself writes it");
    assert!(spec(&[("phase1.num_nodes", "0")]).unwrap().groups.is_empty());
}

/// Only the machine that turnup runs on says for what its programs are made.
#[cfg(target_arch = "x86_64")]
#[test]
fn machines_with_arm_processors_are_refused() {
    let balanced =
        [("phase1.gce.disk_type", "hyperdisk-balanced"), ("phase1.gce.etcd_volume_type", "hyperdisk-balanced")];
    let refusal = |key: &str, value: &str| {
        let error = spec(&[&balanced[..], &[(key, value)]].concat()).unwrap_err();
        format!("{} | {}", error.message(), error.next().unwrap_or_default())
    };
    let of_group =
        |machine: &str| format!(r#"[{{"name": "web", "role": "worker", "size": 1, "machine_type": "{machine}"}}]"#);
    for machine in ["c4a-standard-4", "n4a-standard-4", "t2a-standard-4", "a4x-highgpu-4g"] {
        for (key, value, named) in [
            ("phase1.gce.instance_type", machine.to_owned(), "phase1.gce.instance_type"),
            ("phase1.gce.control_plane_instance_type", machine.to_owned(), "phase1.gce.control_plane_instance_type"),
            ("phase1.node_groups", of_group(machine), "phase1.node_groups: the group web"),
        ] {
            assert_eq!(
                refusal(key, &value),
                format!(
                    "{named}: {machine} has ARM processors, and turnup's programs are for x86-64: its hosts would never join | take a type with x86-64 processors, for instance n2-standard-4"
                )
            );
        }
    }
    for machine in ["c4-standard-4", "n4-standard-4", "a4-highgpu-8g"] {
        spec(&[&balanced[..], &[("phase1.gce.instance_type", machine)]].concat()).unwrap();
    }
}
