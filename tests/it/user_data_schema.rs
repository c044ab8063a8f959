//! Every rendered user data is what its reader takes: cloud-init's own schema and merging, in a
//! root that has cloud-init, and Ignition's own validator, built from its Go module.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "the test runs the readers of user data")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use turnup::artifacts::{Cache, Lock, NoProgress, ResolvedArtifacts};
use turnup::bootstrap::Group;
use turnup::bootstrap::user_data::{self, ApiPlace, JoinParams};
use turnup::cluster::Cluster;
use turnup::cluster::user_data::{UserDataFormat, UserDataKind, UserDataPart};
use turnup::config::{Settings, TreeSource};
use turnup::inventory::Role;

use crate::cluster_support::can_make_hosts;
use crate::skip::skip;

/// The validator and its version; the Go proxy has it, and the build is kept in the target
/// directory.
const VALIDATOR: &str = "github.com/coreos/ignition/v2/validate@v2.24.0";
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAbcdefghijklmnopqrstuvwxyz0123456789ABCDEF o'neill \"ü\" 100% 𝒶\n";
/// Parts that try to replace turnup's own.
const CONFIG: &str = "#cloud-config\nruncmd:\n  - [echo, mine]\nwrite_files:\n  - {path: /etc/mine, content: mine}\nusers: [default]\nssh_pwauth: true\n";
const SCRIPT: &str = "#!/bin/sh\necho \"it's 100% ünicode\"\n";
const PLAIN: &str = "#!/bin/sh\necho plain\n";
const MERGED: &str = "{\"ignition\": {\"version\": \"3.0.0\"}, \"systemd\": {\"units\": [{\"name\": \"mine.service\", \"enabled\": false, \"contents\": \"[Service]\\nExecStart=/bin/true\\n\"}]}}";

/// Renders every combination of role, user, parts and limits into the directory.
fn render_all(form: UserDataFormat, dir: &Path) -> Vec<PathBuf> {
    let source = TreeSource::embedded();
    let mut cluster = Cluster::open(&Settings::defaults(&source).unwrap(), source, dir).unwrap();
    cluster.store.create_dir("ssh").unwrap();
    cluster.store.write_file("ssh/id_ed25519.pub", KEY.as_bytes(), 0o644).unwrap();
    dir.clone_into(&mut cluster.work_dir);
    let settings = &mut cluster.settings.user_data;
    settings.pull = true;
    settings.form = form;
    settings.artifacts_url = "https://example.com/a b/'quoted'/100%".into();
    settings.token_lifetime = Duration::from_hours(2160);
    let part = |name: &str, kind, text: &str| {
        fs_err::write(dir.join(name), text).unwrap();
        UserDataPart { name: name.into(), file: name.into(), kind, roles: Vec::new(), groups: Vec::new() }
    };
    let parts = match form {
        UserDataFormat::CloudInit => {
            vec![
                part("script", UserDataKind::ShellScript, SCRIPT),
                part("plain", UserDataKind::ShellScript, PLAIN),
                part("config", UserDataKind::CloudConfig, CONFIG),
            ]
        }
        UserDataFormat::Ignition => vec![part("merged", UserDataKind::Ignition, MERGED)],
    };
    let selection = Lock::embedded().unwrap().select("1.36.3").unwrap();
    let artifacts = ResolvedArtifacts::expected(&selection, &cluster.settings.sources, None, None);
    let out = dir.join("documents");
    fs_err::create_dir_all(&out).unwrap();
    let mut all = Vec::new();
    // Files of every kind are in what each host gets.
    cluster.settings.assets.files = serde_json::from_value(json!([
        {"name": "link", "path": "/etc/own", "link": "/srv/own/bytes"},
        {"name": "bytes", "path": "/srv/own/bytes", "base64": "/wA="},
        {"name": "directory", "path": "/srv/own", "directory": true, "owner": "daemon", "owner_group": "adm"},
    ]))
    .unwrap();
    cluster.settings.host_system.packages = vec!["jq".into()];
    for (system, resolv_conf) in systems(form) {
        let mut facts = user_data::image_facts();
        (facts.os, facts.resolv_conf) = (system.to_owned(), resolv_conf.to_owned());
        let name = system.split(' ').next().unwrap().to_lowercase();
        let name_prefix = format!("{name}-");
        let (labels, taints, kube_reserved) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        let role = Role::Worker;
        let group = Group { name, role, name_prefix, labels, taints, max_pods: None, kube_reserved };
        let join = JoinParams { api: ApiPlace::Host("10.0.0.1"), token: "abcdef.0123456789abcdef" };
        let text = user_data::render(&cluster, &artifacts, &facts, &group, join).unwrap();
        let file = out.join(format!("{}-system", group.name));
        fs_err::write(&file, text.as_bytes()).unwrap();
        all.push(file);
    }
    for (role, user, with_parts) in [
        (Role::Worker, "root", false),
        (Role::Worker, "turnup", false),
        (Role::Worker, "turnup", true),
        (Role::ControlPlane, "root", true),
        (Role::ControlPlane, "admin", false),
    ] {
        cluster.settings.access.user = user.into();
        cluster.settings.user_data.parts = if with_parts { parts.clone() } else { Vec::new() };
        let labels = BTreeMap::from([("example.com/disk".to_owned(), "fast".to_owned())]);
        let name = format!("{}-{user}-{with_parts}", role.name());
        let taints = vec!["gpu=yes:NoSchedule".parse().unwrap()];
        let name_prefix = format!("{name}-");
        let kube_reserved = BTreeMap::new();
        let group = Group { name, role, name_prefix, labels, taints, max_pods: Some(30), kube_reserved };
        let facts = user_data::image_facts();
        let token = "abcdef.0123456789abcdef";
        for (end, join) in [
            ("mark", JoinParams { api: ApiPlace::Host(user_data::API_HOST), token: user_data::JOIN_TOKEN }),
            ("address", JoinParams { api: ApiPlace::Host("10.0.0.1"), token }),
            ("servers", JoinParams { api: ApiPlace::Balancer(user_data::API_SERVERS), token }),
        ] {
            let text = user_data::render(&cluster, &artifacts, &facts, &group, join).unwrap();
            // As Terraform does it.
            let text = text.replace(user_data::API_SERVERS, "cp-0=10.0.0.1:6443,cp-1=10.0.0.2:6443");
            let file = out.join(format!("{}-{end}", group.name));
            fs_err::write(&file, text.as_bytes()).unwrap();
            all.push(file);
        }
    }
    all
}

/// Systems that read this form, and where their name servers stand.
fn systems(form: UserDataFormat) -> Vec<(&'static str, &'static str)> {
    let (plain, resolved) = ("/etc/resolv.conf", "/run/systemd/resolve/resolv.conf");
    match form {
        UserDataFormat::CloudInit => {
            vec![("Rocky Linux 9.4 (Blue Onyx)", plain), ("Fedora Linux 42 (Server Edition)", resolved)]
        }
        UserDataFormat::Ignition => {
            vec![("Flatcar Container Linux by Kinvolk 4152.2.3 (Oklo)", resolved), ("CoreOS of Fedora 42", resolved)]
        }
    }
}

/// Takes a document apart as cloud-init does, holds the whole against its schema, and prints the
/// merged cloud-config as JSON.
const TAKE_APART: &str = r#"
import json, sys
from cloudinit import helpers, user_data, util
from cloudinit.config.schema import get_schema, validate_cloudconfig_schema
from cloudinit.handlers.cloud_config import CloudConfigPartHandler
merged = {}
for path in sys.argv[1:]:
    paths = helpers.Paths({"cloud_dir": "/tmp", "run_dir": "/tmp"})
    message = user_data.UserDataProcessor(paths).process(open(path, "rb").read())
    handler, scripts = CloudConfigPartHandler(paths), []
    handler.cloud_buf = {}
    for part in message.walk():
        kind = part.get_content_type()
        if kind == "text/cloud-config":
            handler._merge_part(util.fully_decoded_payload(part), part)
        elif kind == "text/x-shellscript":
            scripts.append([part.get_filename(), util.fully_decoded_payload(part)])
        elif not kind.startswith("multipart/"):
            sys.exit(f"{path}: cloud-init takes a part for {kind}")
    validate_cloudconfig_schema(handler.cloud_buf, get_schema(), strict=True)
    merged[path.rsplit("/", 1)[1]] = {"config": handler.cloud_buf, "scripts": scripts}
json.dump(merged, sys.stdout)
"#;

#[test]
fn cloud_init_takes_every_document() {
    if !can_make_hosts() {
        return;
    }
    let further = ["cloud-init", "python3-cffi-backend"].map(str::to_owned);
    let root = Cache::open().unwrap().rootfs_with("bookworm", &further, false, &NoProgress).unwrap();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let documents = render_all(UserDataFormat::CloudInit, dir.path());
    let inside = |path: &PathBuf| format!("/mnt/{}", path.file_name().unwrap().to_str().unwrap());
    let output = Command::new("systemd-nspawn")
        .args(["--quiet", "--register=no", "--keep-unit", "--volatile=overlay", "--pipe", "--directory"])
        .arg(&root)
        .arg(format!("--bind-ro={}:/mnt", dir.path().join("documents").display()))
        .args(["python3", "-c", TAKE_APART])
        .args(documents.iter().map(inside))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let merged: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(merged.as_object().unwrap().len(), documents.len());
    let plain = &merged["worker-root-false-address"]["config"];
    assert_eq!(plain["users"][0]["ssh_authorized_keys"][0], KEY.trim(), "every letter of a key survives");
    assert_eq!(plain["disable_root"], false);
    let both = &merged["worker-turnup-true-mark"];
    assert_eq!(both["scripts"], json!([["part-001-script.sh", SCRIPT], ["part-002-plain.sh", PLAIN]]));
    let config = &both["config"];
    let commands = config["runcmd"].as_array().unwrap();
    assert_eq!((commands.len(), &commands[0]), (3, &json!(["echo", "mine"])), "the user's come first, ours stay");
    assert_eq!(commands[2], json!(["systemctl", "enable", "--now", "--no-block", "turnup-node.service"]));
    assert_eq!(config["users"].as_array().unwrap().len(), 2);
    let files: Vec<&str> =
        config["write_files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!((files[0], files[1]), ("/etc/mine", "/var/lib/turnup/boot-config.json"));
}

#[test]
fn ignition_takes_every_document() {
    let Ok(go) = which::which("go") else {
        return skip("go is not installed");
    };
    let bin = Path::new(env!("CARGO_TARGET_TMPDIR")).join(VALIDATOR.rsplit('@').next().unwrap());
    let validator = bin.join("validate");
    if !validator.exists() {
        let made =
            Command::new(go).args(["install", VALIDATOR]).env("GOBIN", &bin).env("CGO_ENABLED", "0").output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    let validate = |path: &Path| {
        let output = Command::new(&validator).arg(path).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for document in render_all(UserDataFormat::Ignition, dir.path()) {
        let (good, said) = validate(&document);
        assert!(good && said.trim().is_empty(), "{}: {said}", document.display());
        // The operator replaces the placeholder with the address, and the document stays valid.
        let text = fs_err::read_to_string(&document).unwrap().replace(user_data::API_HOST, "api.example.com");
        fs_err::write(&document, text).unwrap();
        assert!(validate(&document).0);
    }
    let broken = dir.path().join("broken");
    fs_err::write(
        &broken,
        "{\"ignition\": {\"version\": \"3.1.0\"}, \"storage\": {\"files\": [{\"path\": \"relative\"}]}}",
    )
    .unwrap();
    assert!(!validate(&broken).0, "the validator sees nothing");
    // What Terraform puts in the place of the volume, as the modules write it and as none may.
    let azure = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d,d";
    for (volume, is_taken) in
        [("projects/p/zones/z/disks/d,d", true), (azure, true), ("vol-0a,d", true), ("vol-0a d", false)]
    {
        let file = json!({"path": "/var/lib/turnup/etcd-volume", "contents": {"source": format!("data:,{volume}%0A")}});
        let text = json!({"ignition": {"version": "3.1.0"}, "storage": {"files": [file]}}).to_string();
        fs_err::write(&broken, text).unwrap();
        assert_eq!(validate(&broken).0, is_taken, "{volume}");
    }
}
