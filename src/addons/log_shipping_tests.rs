//! Log shipping as it is rendered: each protocol, what its settings change, and where headers go.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::super::object::Object;
use super::super::tests::{differences, render_files, render_set};
use super::*;
use crate::cluster::ClusterSettings;
use crate::config::{Settings, TreeSource};

const ON: (&str, &str) = ("phase3.log_shipping", "y");
const SERVER: (&str, &str) = ("phase3.log_shipping_endpoint", "https://loki.example.com/otlp");

#[test]
fn log_shipping_as_it_is_applied() {
    insta::assert_snapshot!(render_set("log-shipping", &[ON, SERVER]).unwrap());
}

#[test]
fn settings_of_log_shipping_are_in_the_configuration_of_its_collectors() {
    let chosen = [
        ON,
        ("phase3.log_shipping_output", "otlp-http-json"),
        ("phase3.log_shipping_endpoint", "http://192.0.2.7:4318"),
        ("phase3.log_shipping_namespaces", "shop,billing"),
        ("phase3.log_shipping_skip_namespaces", "load-test"),
        ("phase3.log_shipping_audit", "y"),
        ("phase3.log_shipping_queue", "64Mi"),
        ("phase3.log_shipping_memory_limit", "1Gi"),
    ];
    insta::assert_snapshot!(differences("log-shipping", &[ON, SERVER], &chosen));
    let grpc =
        [ON, ("phase3.log_shipping_output", "otlp-grpc"), ("phase3.log_shipping_endpoint", "https://192.0.2.7:4317")];
    insta::assert_snapshot!(differences("log-shipping", &[ON, SERVER], &grpc));
    let syslog = [
        ON,
        ("phase3.log_shipping_output", "syslog"),
        ("phase3.log_shipping_endpoint", "tcp://192.0.2.7:514"),
        ("phase3.log_shipping_audit", "y"),
    ];
    insta::assert_snapshot!(differences("log-shipping", &[ON, SERVER], &syslog));
}

/// By its hash the pods start again when a file has changed.
#[test]
fn headers_are_in_the_secret_alone() {
    let source = TreeSource::embedded();
    let mut settings = Settings::defaults(&source).unwrap();
    settings.set_all(&[ON, SERVER]).unwrap();
    let typed = ClusterSettings::read(&settings, std::path::Path::new("/work")).unwrap();
    let render = |files: &LogShippingFiles| {
        let all = render_files(&source, &typed, "", files).unwrap();
        all.into_iter().find(|manifest| manifest.name == "log-shipping").unwrap()
    };
    let headers = STANDARD.encode(r#"{"exporters":{"otlp_http":{"headers":{"authorization":"Bearer hunter2"}}}}"#);
    let ca = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    let files = LogShippingFiles { ca: Some(ca.into()), headers: Some(headers.clone()) };
    let (plain, manifest) = (render(&LogShippingFiles::default()), render(&files));
    assert!(manifest.needs_list() && !plain.needs_list(), "a Secret that is gone is noticed");
    assert!(plain.hash != manifest.hash && !plain.text.contains("kind: Secret"));
    let objects = Object::read(&manifest.text).unwrap();
    let of = |kind: &str| &objects.iter().find(|(object, _)| object.kind == kind).unwrap().1;
    assert_eq!(of("Secret")["data"]["headers.yaml"], headers);
    assert_eq!(of("ConfigMap")["data"]["ca.crt"], ca);
    for (object, value) in objects.iter().filter(|(object, _)| object.kind != "Secret") {
        let text = value.to_string();
        assert!(!text.contains(&headers) && !text.contains("hunter2"), "{object}: {text}");
    }
    let spec = &of("DaemonSet")["spec"]["template"]["spec"];
    assert_eq!(spec["containers"][0]["args"][1], "--config=file:/etc/log-shipping-headers/headers.yaml");
    let volume = spec["volumes"].as_array().unwrap().iter().find(|volume| volume["name"] == "headers").unwrap();
    assert_eq!(volume["secret"], json!({"secretName": "log-shipping", "defaultMode": 0o400}));
    assert_ne!(files.digest(), LogShippingFiles { headers: None, ..files.clone() }.digest());
    assert_eq!(LogShippingFiles::default().digest(), None);
}

#[test]
fn headers_are_read_and_what_is_wrong_is_not_shown() {
    let headers = parse_headers("# of the tenant\n\nAuthorization: Bearer a$b\r\nX-Scope-OrgID:  one:two \n").unwrap();
    let expected = [("authorization", "Bearer a$$b"), ("x-scope-orgid", "one:two")];
    assert_eq!(headers.iter().map(|(name, value)| (&**name, &**value)).collect::<Vec<_>>(), expected);
    for (text, why) in [
        ("", "it has no header"),
        ("# nothing\n", "it has no header"),
        ("a: b\nhunter2", "line 2: it has no colon"),
        ("hunter2 hunter2: b", "line 1: what stands before the colon is no name of a header"),
        ("a:", "line 1: its value is empty or has other letters than those of ASCII"),
        ("a: hunter2\u{7}", "line 1: its value is empty or has other letters than those of ASCII"),
        ("a: b\nA: hunter2", "line 2: a is named twice"),
        ("Host: hunter2", "line 1: the collector sets host itself"),
    ] {
        assert_eq!(parse_headers(text), Err(why.to_owned()), "{text}");
    }
}
