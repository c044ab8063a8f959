//! Settings whose effect shows in nothing that is rendered, each given by its name: what hosts are
//! told of the store of backups, how long the phase may take, whose authority signs, what comes
//! before a change.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::api::Kubectl;
use super::pki::{Authority, Leaf, Pki};
use super::rolling_update::RollingUpdate;
use super::{backup_store, dns, steps, token};
use crate::change::{Change, Verb};
use crate::cluster::Cluster;
use crate::config::{Settings, TreeSource};
use crate::inventory::Inventory;
use crate::state::Store;

pub(super) const INVENTORY: &str = r#"{
    "schema": "turnup.provision/1", "cluster": "kubernetes", "target": "local",
    "api": {"host": "10.117.0.10", "port": 6443},
    "hosts": [{"name": "cp", "role": "control-plane", "address": "10.117.0.10", "instance": "a",
        "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}]}"#;

pub(super) fn cluster(dir: &Path, changes: &[(&str, &str)]) -> Cluster {
    let source = TreeSource::embedded();
    let mut settings = Settings::defaults(&source).unwrap();
    settings.set_all(changes).unwrap();
    let mut cluster = Cluster::open(&settings, source, &dir.join("state")).unwrap();
    dir.clone_into(&mut cluster.work_dir);
    cluster
}

#[test]
fn hosts_are_told_of_the_store_what_the_settings_say() {
    let dir = tempfile::tempdir().unwrap();
    let key = "access_key_id = AK\nsecret_access_key = SK\n";
    fs_err::write(dir.path().join("s3.key"), key).unwrap();
    fs_err::set_permissions(dir.path().join("s3.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let authority = rcgen::generate_simple_self_signed(["minio.example.com".to_owned()]).unwrap().cert.pem();
    fs_err::write(dir.path().join("ca.crt"), &authority).unwrap();
    let base = [
        ("phase2.backup.store", "s3"),
        ("phase2.backup.s3.endpoint", "https://minio.example.com"),
        ("phase2.backup.s3.bucket", "backups"),
        ("phase2.backup.s3.region", "eu-central-1"),
        ("phase2.backup.s3.credentials_file", "s3.key"),
    ];
    let told = |changes: &[(&str, &str)]| -> Value {
        let cluster = cluster(dir.path(), &[&base, changes].concat());
        told_by(&cluster)
    };
    let usual = told(&[]);
    for (field, value) in [
        ("endpoint", json!("https://minio.example.com")),
        ("bucket", json!("backups")),
        ("region", json!("eu-central-1")),
        ("access_key", json!("AK")),
        ("secret_key", json!("SK")),
    ] {
        assert_eq!(usual[field], value, "{field}");
    }
    let cases = [
        ("phase2.backup.s3.prefix", "etcd/a", "prefix", json!("etcd/a/")),
        ("phase2.backup.s3.path_style", "y", "path_style", json!(true)),
        ("phase2.backup.s3.ca_file", "ca.crt", "authority", json!(authority)),
    ];
    each_reaches_its_field(told, &cases);
}

/// Each setting with a value, and the field that has it then; all others stay.
fn each_reaches_its_field(told: impl Fn(&[(&str, &str)]) -> Value, cases: &[(&str, &str, &str, Value)]) {
    let usual = told(&[]);
    for (setting, text, field, value) in cases {
        let mut expected = usual.clone();
        assert_ne!(&expected[*field], value, "{setting} is flipped");
        expected[*field] = value.clone();
        assert_eq!(told(&[(*setting, *text)]), expected, "{setting}");
    }
}

/// The bucket or the container, whatever kind it is.
fn told_by(cluster: &Cluster) -> Value {
    let store: Value = serde_json::from_str(&backup_store::read(cluster).unwrap().unwrap()).unwrap();
    let inner = store.as_object().unwrap().values().find(|value| value.is_object()).cloned();
    inner.unwrap_or(store)
}

#[test]
fn hosts_are_told_of_the_container_what_the_settings_say() {
    let dir = tempfile::tempdir().unwrap();
    let owner_alone: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs_err::write(dir.path().join("azure.key"), "account_key = YQ==\n").unwrap();
    fs_err::set_permissions(dir.path().join("azure.key"), owner_alone).unwrap();
    let authority = rcgen::generate_simple_self_signed(["a.example.com".to_owned()]).unwrap().cert.pem();
    fs_err::write(dir.path().join("ca.crt"), &authority).unwrap();
    let base = [
        ("phase2.backup.store", "azure"),
        ("phase2.backup.azure.account", "mybackups"),
        ("phase2.backup.azure.container", "etcd"),
        ("phase2.backup.azure.credentials_file", "azure.key"),
    ];
    let told = |changes: &[(&str, &str)]| told_by(&cluster(dir.path(), &[&base, changes].concat()));
    let usual = told(&[]);
    assert_eq!([&usual["account"], &usual["container"], &usual["account_key"]], ["mybackups", "etcd", "YQ=="]);
    let cases = [
        ("phase2.backup.azure.prefix", "prod", "prefix", json!("prod/")),
        ("phase2.backup.azure.endpoint", "https://a.example.com", "endpoint", json!("https://a.example.com")),
        ("phase2.backup.azure.ca_file", "ca.crt", "authority", json!(authority)),
    ];
    each_reaches_its_field(told, &cases);
    // On Azure without a file: the identity of the machine.
    let of_azure = [&base[..3], &[("phase1.cloud_provider", "azure")]].concat();
    let own = told_by(&cluster(dir.path(), &of_azure));
    assert_eq!((&own["machine"], own.get("account_key"), own.get("sas_token")), (&json!("azure"), None, None));
}

#[test]
fn hosts_are_told_of_the_dns_zone_what_the_settings_say() {
    let dir = tempfile::tempdir().unwrap();
    for (name, key) in [("dns.key", "YQ=="), ("other.key", "Yg==")] {
        fs_err::write(dir.path().join(name), format!("hmac-sha256:it-key:{key}\n")).unwrap();
    }
    let base =
        [("phase2.dns.server", "192.0.2.53"), ("phase2.dns.zone", "example.com"), ("phase2.dns.key_file", "dns.key")];
    let told = |changes: &[(&str, &str)]| {
        let is_cloud = changes.iter().any(|(name, _)| *name == "phase2.dns.provider");
        let others =
            base.into_iter().filter(|(name, _)| !is_cloud && changes.iter().all(|(changed, _)| changed != name));
        let cluster = cluster(dir.path(), &others.chain(changes.iter().copied()).collect::<Vec<_>>());
        cluster.store.create_dir("pki").unwrap();
        Pki::of(&cluster).ensure_authority(Authority::Etcd, "kubernetes").unwrap();
        let mut inventory = Inventory::parse("", INVENTORY).unwrap();
        inventory.hosts[0].external_address = Some([198, 51, 100, 1].into());
        serde_json::to_value(dns::config(&cluster, &inventory).unwrap().unwrap()).unwrap()
    };
    let usual = told(&[]);
    let names = |domain: &str| json!([{"name": format!("api.{domain}"), "is_external": true}, {"name": format!("api.internal.{domain}"), "is_external": false}]);
    assert_eq!(usual["names"], names("kubernetes.example.com"));
    assert_eq!(usual["external"], json!({"10.117.0.10": "198.51.100.1"}));
    assert!(usual["owner"].as_str().unwrap().starts_with("turnup cluster=kubernetes id="), "{usual}");
    let key = |secret: &str| json!({"name": "it-key", "algorithm": "hmac-sha256", "secret": secret});
    let server =
        |server: &str, port: u16, secret: &str| json!({"server": {"server": server, "port": port, "key": key(secret)}});
    assert_eq!(usual["access"], server("192.0.2.53", 53, "YQ=="));
    let cases = [
        ("phase2.dns.server", "ns1.example.com", "access", server("ns1.example.com", 53, "YQ==")),
        ("phase2.dns.port", "5353", "access", server("192.0.2.53", 5353, "YQ==")),
        ("phase2.dns.ttl", "7", "ttl", json!(7)),
        ("phase2.dns.key_file", "other.key", "access", server("192.0.2.53", 53, "Yg==")),
        ("phase2.dns.annotations", "y", "annotations", json!(true)),
    ];
    each_reaches_its_field(told, &cases);
    assert_eq!(told(&[("phase2.dns.zone", "example.org")])["zone"], "example.org");
    let of_domain = told(&[("phase2.dns.domain", "k8s.example.com")]);
    assert_eq!(of_domain["names"], names("k8s.example.com"));
    assert_eq!(of_domain["internal"], "internal.k8s.example.com");
    let of_cloud = told(&[
        ("phase1.cloud_provider", "aws"),
        ("phase2.dns.provider", "route53"),
        ("phase2.dns.zone", "example.com"),
        ("phase2.dns.zone_id", "Z0123456789"),
    ]);
    assert_eq!(of_cloud["access"], json!({"cloud": {"cloud": "aws", "id": "Z0123456789"}}));
}

#[test]
fn the_phase_takes_no_longer_and_does_no_more_at_once_than_the_settings_say() {
    let dir = tempfile::tempdir().unwrap();
    let phase = |changes: &[(&str, &str)]| {
        let cluster = cluster(dir.path(), changes);
        cluster.store.create_dir("outputs").unwrap();
        cluster.store.write_file("outputs/provision.json", INVENTORY.as_bytes(), 0o600).unwrap();
        steps::phase(&Arc::new(cluster)).unwrap()
    };
    let limits =
        phase(&[("phase2.timeout", "50m"), ("phase2.host_timeout", "11m"), ("phase2.parallel_hosts", "3")]).limits;
    assert_eq!(limits.phase, Some((Duration::from_mins(50), "phase2.timeout")));
    assert_eq!(limits.host, Some((Duration::from_mins(11), "phase2.host_timeout")));
    assert_eq!(limits.parallel, Some(3));
    let takes_backup = |value: &str| {
        let changes = [("phase2.backup.store", "host"), ("phase2.backup.before_change", value)];
        phase(&changes).manifest.steps.iter().any(|step| step.name == "backup")
    };
    assert!(takes_backup("y") && !takes_backup("n"));
}

#[test]
fn pods_leave_a_node_before_a_change_where_the_settings_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let change = || [Change::new(Verb::Restart, "service", "containerd.service")];
    let drains = |changes: &[(&str, &str)]| {
        let update = cluster(dir.path(), changes).settings.update;
        RollingUpdate::new(&update).preview("w0", &change()).is_some()
    };
    assert!(drains(&[]) && !drains(&[("phase2.update.drain", "n")]));
}

/// A host's token lives as long as the settings say, in the object that the API gets.
#[test]
fn the_token_of_a_host_ends_when_the_settings_say() {
    let dir = tempfile::tempdir().unwrap();
    let (program, object) = (dir.path().join("kubectl"), dir.path().join("object"));
    let script = format!("#!/bin/sh\ncase \"$*\" in *create*) cat >'{}' ;; esac\n", object.display());
    fs_err::write(&program, script).unwrap();
    fs_err::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let kubectl = Kubectl::new(program, dir.path().join("kubeconfig"));
    for (changes, minutes) in [(&[][..], 30), (&[("phase2.pki.token_lifetime", "45m")], 45)] {
        let life = cluster(dir.path(), changes).settings.pki.token_lifetime;
        let before = jiff::Timestamp::now();
        token::create(&kubectl, "w0", life).unwrap();
        let object: Value = serde_json::from_slice(&fs_err::read(&object).unwrap()).unwrap();
        let end: jiff::Timestamp = object["stringData"]["expiration"].as_str().unwrap().parse().unwrap();
        let left = end.as_second() - before.as_second();
        assert!((minutes * 60 - 1..=minutes * 60 + 60).contains(&left), "{minutes}: {left} s");
    }
}

#[test]
fn the_authority_of_the_settings_signs() {
    let dir = tempfile::tempdir().unwrap();
    let other = Store::open(dir.path().join("other")).unwrap();
    let own = Pki::new(&other);
    own.ensure_authority(Authority::Cluster, "corporation").unwrap();
    for ending in ["crt", "key"] {
        let file = dir.path().join(format!("own.{ending}"));
        fs_err::write(&file, own.text("ca", ending).unwrap()).unwrap();
        fs_err::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }
    let changes = [("phase2.pki.ca_cert_file", "own.crt"), ("phase2.pki.ca_key_file", "own.key")];
    let cluster = cluster(dir.path(), &changes);
    let pki = Pki::of(&cluster);
    pki.ensure_authority(Authority::Cluster, "kubernetes").unwrap();
    assert_eq!(pki.text("ca", "crt").unwrap(), own.text("ca", "crt").unwrap());
    assert!(pki.ensure_leaf(&Leaf::client("admin", Authority::Cluster, "admin", None)).unwrap());
    let (_, pem) = x509_parser::pem::parse_x509_pem(pki.text("admin", "crt").unwrap().as_bytes()).unwrap();
    assert!(pem.parse_x509().unwrap().issuer().to_string().contains("corporation"));
}
