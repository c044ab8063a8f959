//! Asks the programs themselves which fields their configuration files have, with every feature
//! gate, and what is in a field that a file leaves out: the tables of `templates/components` are
//! what each pinned version takes, and writes out.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::path::Path;

use serde_json::{Map, Value, json};

use super::own_parse_tests::{Programs, run};
use crate::component::{ComponentReference, FieldType, Reference, ReferenceFile, compare_fields};
use crate::config::TreeSource;

/// Each kind of file that tells of a field that it does not know, and the flag that names the file.
/// The API server reads `AdmissionConfiguration` in a lenient way, and says nothing.
const KINDS: [(&str, &str, &str); 8] = [
    ("kubelet", "KubeletConfiguration", "config"),
    ("kube-proxy", "KubeProxyConfiguration", "config"),
    ("kube-scheduler", "KubeSchedulerConfiguration", "config"),
    ("kube-apiserver", "AuthenticationConfiguration", "authentication-config"),
    ("kube-apiserver", "AuthorizationConfiguration", "authorization-config"),
    ("kube-apiserver", "EgressSelectorConfiguration", "egress-selector-config-file"),
    ("kube-apiserver", "EncryptionConfiguration", "encryption-provider-config"),
    ("kube-apiserver", "TracingConfiguration", "tracing-config-file"),
];

/// How a program says that a file is not of the form that it knows.
const REFUSALS: [&str; 5] =
    ["unknown field", "strict decoding", "cannot unmarshal", "unrecognized feature gate", "panic"];

/// Fields that the programs fill in by the machine or by other fields.
const COMPUTED: [&str; 3] = ["mode", "detectLocalMode", "clientConnection.kubeconfig"];

/// A value of this type. The text is one that base64 and Go's patterns take.
fn sample(of: &FieldType) -> Value {
    match of {
        FieldType::Bool => json!(true),
        FieldType::Int | FieldType::IntOrString => json!(1),
        FieldType::Float => json!(1.5),
        FieldType::String => json!("YWFh"),
        FieldType::Duration => json!("1s"),
        FieldType::Quantity => json!("1"),
        FieldType::Time => json!("2026-01-01T00:00:00Z"),
        FieldType::Object => json!({}),
        FieldType::List(item) => json!([sample(item)]),
        FieldType::Map(_, item) => json!({ "a": sample(item) }),
    }
}

/// A file with every field of the table and every gate, at its default where there is one.
fn whole(kind: &str, component: &ComponentReference) -> Value {
    let file = component.file(kind).unwrap();
    let mut root = json!({"apiVersion": file.api_version, "kind": kind});
    for (path, field) in &file.fields {
        let gates = || component.feature_gates.iter().map(|(name, gate)| (name.clone(), gate.default.into()));
        let value = match path.as_str() {
            "featureGates" => Value::Object(gates().collect()),
            _ => field.default.clone().unwrap_or_else(|| sample(&field.field_type)),
        };
        *place(&mut root, path) = value;
    }
    root
}

/// The place of a path; what lies on the way to it is made.
fn place<'v>(root: &'v mut Value, path: &str) -> &'v mut Value {
    path.split('.').fold(root, |around, part| {
        if !around.is_object() {
            *around = json!({});
        }
        let name = part.strip_suffix("[]").unwrap_or(if part == "*" { "a" } else { part });
        let member = around.as_object_mut().unwrap().entry(name).or_insert(Value::Null);
        if !part.ends_with("[]") {
            return member;
        }
        if member.get(0).is_none() {
            *member = json!([{}]);
        }
        &mut member[0]
    })
}

fn flags_beside(component: &str, dir: &Path) -> Vec<String> {
    let file = |name: &str| dir.join(name).display().to_string();
    match component {
        "kube-apiserver" => vec![
            "--etcd-servers=http://127.0.0.1:1".to_owned(),
            "--advertise-address=192.0.2.1".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
            "--service-account-issuer=https://a".to_owned(),
            format!("--service-account-key-file={}", file("key.pem")),
            format!("--service-account-signing-key-file={}", file("key.pem")),
            format!("--cert-dir={}", file("certs")),
        ],
        "kube-proxy" => vec![format!("--write-config-to={}", file("out"))],
        _ => Vec::new(),
    }
}

fn tables(programs: &Programs) -> impl Iterator<Item = (String, std::sync::Arc<Reference>)> {
    let source = TreeSource::embedded();
    programs.versions().into_iter().map(move |version| {
        let table = Reference::load(&source, &version).unwrap();
        (version, table)
    })
}

#[test]
#[ignore = "asks the programs themselves, of every version: make test-components"]
fn the_programs_know_every_field_and_gate_of_their_tables_and_no_other() {
    let (programs, dir) = (Programs::pinned(), tempfile::tempdir().unwrap());
    fs_err::write(dir.path().join("key.pem"), programs.key_pem()).unwrap();
    let mut wrong = Vec::new();
    for (version, table) in tables(&programs) {
        for (component, kind, flag) in KINDS {
            let right = whole(kind, table.component(component).unwrap());
            let mut other = right.clone();
            other["noSuchField"] = json!(1);
            for (file, is_known) in [(right, true), (other, false)] {
                fs_err::write(dir.path().join("in.json"), file.to_string()).unwrap();
                let mut flags = flags_beside(component, dir.path());
                flags.push(format!("--{flag}={}", dir.path().join("in.json").display()));
                let said = run(&programs.program(component, &version), &flags, dir.path());
                let refusal = said.lines().find(|line| REFUSALS.iter().any(|words| line.contains(words)));
                let is_right = match refusal {
                    None => is_known,
                    Some(line) => {
                        !is_known && line.contains("noSuchField") && line.matches("unknown field").count() == 1
                    }
                };
                if !is_right {
                    wrong.push(format!("{version} {kind}, all known: {is_known}: {refusal:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const KUBECONFIG: &str = r#"{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [], "contexts": [{"name": "a", "context": {"cluster": "a", "user": ""}}], "current-context": "a"}"#;

/// What the program of a version writes out of a file with only this in it.
fn written(programs: &Programs, version: &str, component: &str, kind: (&str, &ReferenceFile), given: &Value) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let mut file = json!({"apiVersion": kind.1.api_version, "kind": kind.0});
    file.as_object_mut().unwrap().extend(given.as_object().cloned().unwrap_or_else(Map::new));
    fs_err::write(dir.path().join("in"), file.to_string()).unwrap();
    fs_err::write(dir.path().join("kubeconfig"), KUBECONFIG).unwrap();
    let mut flags = vec![format!("--config={}", path("in")), format!("--write-config-to={}", path("out"))];
    if component == "kube-scheduler" {
        let asks = ["authentication", "authorization"];
        flags.extend(asks.map(|what| format!("--{what}-kubeconfig={}", path("kubeconfig"))));
    }
    let said = run(&programs.program(component, version), &flags, dir.path());
    let out = fs_err::read_to_string(dir.path().join("out")).unwrap_or_default();
    assert!(!out.is_empty(), "{component}: {said}");
    plain(serde_saphyr::from_str(&out).unwrap(), false)
}

/// Without members of elements of lists that are zero: the table leaves them out.
fn plain(value: Value, is_in_list: bool) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(|item| plain(item, true)).collect(),
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, member)| !is_in_list || *member != json!(0));
            Value::Object(kept.map(|(name, member)| (name, plain(member, is_in_list))).collect())
        }
        other => other,
    }
}

/// The defaults of a file as one object.
fn defaults(file: &ReferenceFile) -> Value {
    let mut root = json!({});
    let simple =
        file.fields.iter().filter(|(path, _)| !path.contains(['[', '*']) && !COMPUTED.contains(&path.as_str()));
    for (path, field) in simple {
        if let Some(default) = &field.default {
            *place(&mut root, path) = plain(default.clone(), false);
        }
    }
    root
}

#[test]
#[ignore = "asks the programs themselves, of every version: make test-components"]
fn what_the_programs_write_out_are_the_tables_defaults() {
    let programs = Programs::pinned();
    let mut wrong = Vec::new();
    for (version, table) in tables(&programs) {
        let file = |component: &str, kind: &str| table.component(component).unwrap().file(kind).unwrap().clone();
        let proxy = file("kube-proxy", "KubeProxyConfiguration");
        // Of each mode it writes out only its own part.
        let of_modes = ["iptables", "nftables", "ipvs"].map(|mode| {
            let out = written(
                &programs,
                &version,
                "kube-proxy",
                ("KubeProxyConfiguration", &proxy),
                &json!({ "mode": mode }),
            );
            compare_fields(&defaults(&proxy), &out)
        });
        let [first, others @ ..] = of_modes;
        wrong.extend(
            first
                .into_iter()
                .filter(|one| others.iter().all(|found| found.iter().any(|other| other.entry == one.entry)))
                .map(|one| format!("{version} kube-proxy: {one:?}")),
        );
        let scheduler = file("kube-scheduler", "KubeSchedulerConfiguration");
        let given = json!({"clientConnection": {"kubeconfig": "kubeconfig"}});
        let out = written(&programs, &version, "kube-scheduler", ("KubeSchedulerConfiguration", &scheduler), &given);
        let found = compare_fields(&defaults(&scheduler), &out).into_iter();
        wrong.extend(found.map(|one| format!("{version} kube-scheduler: {one:?}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
