//! What settings say of certificates, seen in the certificates that are made.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::net::IpAddr;

use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;

use super::Pki;
use super::tests::with_configs;

/// The names in a certificate, and for how many days it is valid.
fn read(pem: &str) -> (BTreeSet<String>, i64) {
    let (_, pem) = parse_x509_pem(pem.as_bytes()).unwrap();
    let certificate = pem.parse_x509().unwrap();
    let names = certificate.subject_alternative_name().unwrap();
    let names = names.into_iter().flat_map(|names| &names.value.general_names).map(|name| match name {
        GeneralName::DNSName(name) => (*name).to_owned(),
        GeneralName::IPAddress(bytes) => IpAddr::from(<[u8; 4]>::try_from(*bytes).unwrap()).to_string(),
        other => panic!("{other}"),
    });
    let validity = certificate.validity();
    let seconds = validity.not_after.timestamp() - validity.not_before.timestamp();
    (names.collect(), seconds / 86400)
}

/// Those of the API server's certificate.
fn api_server(changes: &[(&str, &str)]) -> (BTreeSet<String>, i64) {
    with_configs(changes, |configs| read(&Pki::of(configs.cluster).text("apiserver-cp", "crt").unwrap()))
}

#[test]
fn the_api_servers_certificate_has_the_names_of_the_settings() {
    let (usual, _) = api_server(&[]);
    for (changes, new) in [
        (
            ("phase2.apiserver.extra_sans", "api.example.com,198.51.100.7"),
            ["198.51.100.7", "api.example.com"].as_slice(),
        ),
        (("phase2.cluster_domain", "example.internal"), &["kubernetes.default.svc.example.internal"]),
        (("phase2.service_cidr", "10.32.0.0/16"), &["10.32.0.1"]),
    ] {
        let (names, _) = api_server(&[changes]);
        let found: Vec<&str> = names.difference(&usual).map(String::as_str).collect();
        assert_eq!(found, new, "{changes:?}");
    }
    let (names, _) = api_server(&[("phase2.cluster_domain", "example.internal")]);
    assert!(!names.contains("kubernetes.default.svc.cluster.local"), "{names:?}");
}

#[test]
fn certificates_and_authorities_live_as_long_as_the_settings_say() {
    let (_, days) = api_server(&[("phase2.pki.leaf_lifetime", "720h")]);
    assert_eq!(days, 30);
    let changes = [("phase2.pki.ca_lifetime", "26280h"), ("phase2.pki.leaf_lifetime", "720h")];
    let days = with_configs(&changes, |configs| {
        let pki = Pki::of(configs.cluster);
        pki.make_authority("other", "other").unwrap();
        let pem = pki.text("other", "crt").unwrap();
        let (_, pem) = parse_x509_pem(pem.as_bytes()).unwrap();
        let validity = pem.parse_x509().unwrap().validity().clone();
        (validity.not_after.timestamp() - validity.not_before.timestamp()) / 86400
    });
    assert_eq!(days, 1095);
}

/// A host whose clock is behind by less than an hour takes what was just made.
#[test]
fn a_new_certificate_is_valid_for_a_clock_that_is_behind() {
    let age = with_configs(&[], |configs| {
        let pki = Pki::of(configs.cluster);
        let since = ["ca", "apiserver-cp"].map(|file| {
            let pem = pki.text(file, "crt").unwrap();
            let (_, pem) = parse_x509_pem(pem.as_bytes()).unwrap();
            pem.parse_x509().unwrap().validity().not_before.timestamp()
        });
        since.map(|since| jiff::Timestamp::now().as_second() - since)
    });
    assert!(age.iter().all(|seconds| (3600..3900).contains(seconds)), "{age:?}");
}
