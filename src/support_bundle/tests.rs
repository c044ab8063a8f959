//! Every secret of a cluster, planted in its logs in many forms: none of them reaches the archive,
//! and what is public does.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::fmt::Write as _;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use flate2::read::GzDecoder;

use super::gathered::FILE;
use super::*;
use crate::Class;
use crate::bootstrap::kubeconfig::{Identity, render};
use crate::bootstrap::pki::{Authority, Leaf, Pki};
use crate::state::Store;

/// A cluster's directory with keys of every kind.
fn cluster(dir: &Path) -> Store {
    let store = Store::open(dir.join("demo")).unwrap();
    let pki = Pki::new(&store);
    for authority in Authority::ALL {
        pki.ensure_authority(authority, "demo").unwrap();
    }
    pki.ensure_service_account_key().unwrap();
    pki.ensure_encryption_key().unwrap();
    pki.ensure_leaf(&Leaf::client("admin", Authority::Cluster, "admin", Some("system:masters"))).unwrap();
    let (certificate, key) = (pki.text("admin", "crt").unwrap(), pki.text("admin", "key").unwrap());
    let identity = Identity::Embedded { certificate: &certificate, key: &key };
    let kubeconfig = render("demo", "https://10.0.0.1:6443", &pki.text("ca", "crt").unwrap(), "admin", &identity);
    store.write_file("kubeconfig", kubeconfig.as_bytes(), 0o600).unwrap();
    store.write_file("ssh/id_ed25519", openssh_key().as_bytes(), 0o600).unwrap();
    store
        .write_file("provision/secrets.tfvars.json", br#"{"db": {"password": "correct horse/battery"}}"#, 0o600)
        .unwrap();
    store
}

/// The form of ssh-keygen: lines of 70 letters.
fn openssh_key() -> String {
    let mut bytes = b"openssh-key-v1\0".to_vec();
    bytes.extend((0..200_u32).map(|number| u8::try_from(number * number * 7 % 251).unwrap()));
    format!(
        "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
        lines_of(&STANDARD.encode(bytes), 70)
    )
}

fn lines_of(text: &str, width: usize) -> String {
    let lines: Vec<&str> = text.as_bytes().chunks(width).map(|line| str::from_utf8(line).unwrap()).collect();
    lines.join("\n")
}

/// With every byte that is no letter or digit as `%XX`.
fn percent(bytes: &[u8]) -> String {
    let part =
        |byte: &u8| if byte.is_ascii_alphanumeric() { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    bytes.iter().map(part).collect()
}

/// The forms of some bytes in logs, by name.
fn planted(bytes: &[u8]) -> Vec<(&'static str, String)> {
    let base64 = STANDARD.encode(bytes);
    let inside = STANDARD.encode([b"{\"data\": \"".as_slice(), bytes, b"\"}"].concat());
    let mut forms = vec![
        ("base64", base64.clone()),
        ("base64 in lines", lines_of(&base64, 76)),
        ("base64 for addresses", URL_SAFE_NO_PAD.encode(bytes)),
        ("base64 of base64", STANDARD.encode(&base64)),
        ("base64 with something around it", inside),
        ("digits", hex::encode(bytes)),
        ("large digits", hex::encode_upper(bytes)),
        ("digits of base64", hex::encode(&base64)),
    ];
    if let Ok(text) = str::from_utf8(bytes) {
        forms.push(("as it is", text.to_owned()));
        forms.push(("in JSON", serde_json::Value::from(text).to_string()));
        forms.push(("in an address", format!("?key={}&x=1", percent(bytes))));
        forms.push(("behind times", text.replace('\n', "\n12:00:00.000 | ")));
    }
    forms
}

/// What the archive must not contain: windows of what is secret in it, in the plain and the usual
/// two forms.
fn traces(bytes: &[u8]) -> Vec<String> {
    let mut traces: Vec<String> = bytes.chunks_exact(12).map(|part| STANDARD.encode(part)).collect();
    traces.extend(bytes.chunks_exact(12).map(hex::encode));
    traces.extend(str::from_utf8(bytes).map(str::to_owned));
    traces
}

fn contents(archive: &Path) -> Vec<(String, Vec<u8>)> {
    let mut tar = tar::Archive::new(GzDecoder::new(fs_err::File::open(archive).unwrap()));
    let entries = tar.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.path().unwrap().display().to_string(), bytes)
    });
    entries.collect()
}

fn subject(store: &Store) -> BundleSubject {
    let trouble = Some("error: .config.json is damaged".to_owned());
    BundleSubject { name: "demo".into(), store: store.clone(), settings: None, cluster: None, trouble }
}

#[test]
fn no_secret_in_any_form_reaches_the_archive() {
    let dir = tempfile::tempdir().unwrap();
    let store = cluster(dir.path());
    let mut secrets: Vec<(String, Vec<u8>)> = Vec::new();
    for name in ["ca", "etcd-ca", "front-proxy-ca", "sa", "admin"] {
        let pem = store.read(format!("pki/{name}.key")).unwrap().unwrap();
        let der = x509_parser::pem::parse_x509_pem(&pem).unwrap().1.contents;
        secrets.push((format!("{name}.key"), pem));
        // The number that is the key: what is around it is the same in all keys, and in
        // certificates.
        secrets.push((format!("{name} itself"), der[36..68].to_vec()));
    }
    secrets.push(("encryption.key".into(), store.read("pki/encryption.key").unwrap().unwrap()));
    secrets.push(("ssh".into(), openssh_key().into_bytes()));
    secrets.push(("password".into(), b"correct horse/battery".to_vec()));
    let mut log = String::new();
    for (name, bytes) in &secrets {
        for (form, text) in planted(bytes) {
            writeln!(log, "12:00:00.000 | {name} {form}: {text}").unwrap();
        }
    }
    // And one that is not known here.
    writeln!(log, "12:00:00.000 | pulling https://robot:unknown-0815@registry.example.com/v2/x").unwrap();
    secrets.push(("unknown".into(), b"unknown-0815".to_vec()));
    store.write_file("logs/bootstrap-pki.log", log.as_bytes(), 0o600).unwrap();
    let certificate = String::from_utf8(store.read("pki/admin.crt").unwrap().unwrap()).unwrap();
    store.write_file("logs/public.log", certificate.as_bytes(), 0o600).unwrap();

    let to = dir.path().join("bundle.tar.gz");
    let manifest = write(&subject(&store), &to).unwrap();
    let all = contents(&to);
    for (path, bytes) in &all {
        let text = String::from_utf8_lossy(bytes);
        for (name, secret) in &secrets {
            // Of a PEM file the number alone is the secret, and that is in the list as well.
            if name.ends_with("key") && name != "encryption.key" {
                continue;
            }
            for trace in traces(secret) {
                assert!(!text.contains(&trace), "{path} has {name}: {trace}\n{text}");
            }
        }
        assert!(!text.contains("PRIVATE KEY"), "{path}");
    }
    let public = all.iter().find(|(path, _)| path.ends_with("logs/public.log")).unwrap();
    assert_eq!(String::from_utf8_lossy(&public.1), certificate, "what is public stays");
    assert!(manifest.removed() > secrets.len() * 5, "{}", manifest.removed());
    assert_eq!(all.len(), manifest.files.len() + 1);
    assert_eq!(all[0].0, "support-bundle/MANIFEST.json");
    assert!(all.iter().all(|(path, _)| !path.contains("pki/")), "{all:?}");
}

#[test]
fn a_kubeconfig_is_read_as_json_and_as_yaml() {
    let yaml =
        render("demo", "https://10.0.0.1:6443", "authority", "worker", &Identity::Token("abcdef.0123456789abcdef"));
    assert!(yaml.contains("\n    token: abcdef.0123456789abcdef\n"), "{yaml}");
    for text in [yaml.as_str(), r#"{"users": [{"user": {"token": "abcdef.0123456789abcdef"}}]}"#] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        store.write_file("kubeconfig", text.as_bytes(), 0o600).unwrap();
        let known = secrets::gather(&store, None).unwrap();
        let secrets: Vec<&[u8]> = known.secrets.iter().map(|secret| secret.bytes.as_slice()).collect();
        let halves: [&[u8]; 2] = [b"abcdef.0123456789abcdef", b"0123456789abcdef"];
        assert_eq!(secrets, halves, "{text}");
    }
}

#[test]
fn an_archive_with_a_secret_in_it_does_not_come_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let store = cluster(dir.path());
    let redactor = Redactor::new(&secrets::gather(&store, None).unwrap()).unwrap();
    let to = dir.path().join("to/bundle.tar.gz");
    fs_err::create_dir(dir.path().join("to")).unwrap();
    let key = String::from_utf8(store.read("pki/encryption.key").unwrap().unwrap()).unwrap();
    let names =
        [("hosts/x.log", format!("x {key} y")), ("hosts/y.log", hex::encode(&key)), (key.as_str(), "innocent".into())];
    for (path, text) in names.iter().filter(|(path, _)| !path.contains('+') && !path.starts_with('/')) {
        let error = archive::write(&[Item::new(*path, text.clone().into_bytes())], &redactor, &to).unwrap_err();
        assert_eq!(error.class(), Class::Bug);
        assert!(error.render().contains("encryption.key in the"), "{}", error.render());
        assert!(!error.render().contains(&key), "{}", error.render());
        assert_eq!(fs_err::read_dir(dir.path().join("to")).unwrap().count(), 0, "something was left");
    }
    archive::write(&[Item::new("hosts/x.log", b"innocent".to_vec())], &redactor, &to).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs_err::metadata(&to).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn of_a_long_log_the_end_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let store = cluster(dir.path());
    let long = "a line of a log\n".repeat(FILE / 16 + 1000) + "the last one";
    store.write_file("logs/long.log", long.as_bytes(), 0o600).unwrap();
    let mut gathered = Gathered::default();
    local::gather(&subject(&store), &mut gathered);
    let taken = gathered.items.iter().find(|item| item.path == "cluster/logs/long.log").unwrap();
    assert!(taken.cut && taken.bytes.len() == FILE && taken.bytes.ends_with(b"the last one"));
    assert!(gathered.missing.iter().any(|(what, _)| what == "hosts and the API"), "{:?}", gathered.missing);
}
