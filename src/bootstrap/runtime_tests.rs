//! containerd's files as settings make them, and what is refused in the user's own.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::json;

use super::super::usual_facts::usual_facts;
use super::*;
use crate::config::{Settings, TreeSource};

fn cluster(dir: &Path, changes: &[(&str, &str)]) -> Cluster {
    let source = TreeSource::embedded();
    let mut settings = Settings::defaults(&source).unwrap();
    settings.set_all(changes).unwrap();
    let mut cluster = Cluster::open(&settings, source, dir).unwrap();
    dir.clone_into(&mut cluster.work_dir);
    cluster
}

fn files(cluster: &Cluster) -> Result<Vec<File>> {
    ContainerRuntime { cluster, facts: &usual_facts(), pause: "turnup.local/pause:1" }.files()
}

fn text_of<'f>(files: &'f [File], path: &str) -> &'f str {
    let file = files.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("no {path}"));
    match &file.content {
        Content::Text(text) => text,
        other => panic!("{path} is {other:?}"),
    }
}

const EVERYTHING: &[(&str, &str)] = &[
    ("phase2.runtime.log_level", "debug"),
    ("phase2.runtime.data_dir", "/var/lib/containerd/data"),
    ("phase2.runtime.snapshotter", "native"),
    ("phase2.runtime.cgroup_driver", "cgroupfs"),
    ("phase2.runtime.max_concurrent_downloads", "7"),
];

#[test]
fn every_setting_is_where_containerd_reads_it() {
    let dir = tempfile::tempdir().unwrap();
    fs_err::write(dir.path().join("own.toml"), "version = 3\n[plugins.a]\nb = 1\n").unwrap();
    let own = ("phase2.runtime.config_file", "own.toml");
    let changes: Vec<_> = EVERYTHING.iter().copied().chain([own]).collect();
    let files = files(&cluster(dir.path(), &changes)).unwrap();
    let config: toml::Value = toml::from_str(text_of(&files, CONFIG)).unwrap();
    let at =
        |path: &str| path.split('/').fold(&config, |value, part| value.get(part).unwrap_or_else(|| panic!("{path}")));
    assert_eq!(at("root").as_str(), Some("/var/lib/containerd/data"));
    assert_eq!(at("debug/level").as_str(), Some("debug"));
    assert_eq!(at("imports")[0].as_str(), Some(EXTRA));
    let images = "plugins/io.containerd.cri.v1.images";
    assert_eq!(at(&format!("{images}/snapshotter")).as_str(), Some("native"));
    assert_eq!(at(&format!("{images}/registry/config_path")).as_str(), Some(REGISTRIES));
    let transfer = at("plugins/io.containerd.transfer.v1.local");
    assert_eq!(transfer["max_concurrent_downloads"].as_integer(), Some(7));
    assert_eq!(transfer["unpack_config"][0]["snapshotter"].as_str(), Some("native"));
    let runc = at("plugins/io.containerd.cri.v1.runtime/containerd/runtimes/runc/options");
    assert_eq!(runc["SystemdCgroup"].as_bool(), Some(false));
    assert!(text_of(&files, EXTRA).contains("b = 1"));
}

#[test]
fn the_directory_of_another_containerd_is_another_runtime() {
    let dir = tempfile::tempdir().unwrap();
    let decided = |changes: &[(&str, &str)]| {
        let cluster = cluster(dir.path(), changes);
        ContainerRuntime { cluster: &cluster, facts: &usual_facts(), pause: "" }.decided()
    };
    let usual = decided(&[]);
    assert_eq!(usual.find_difference(&decided(&EVERYTHING[..1])), None);
    for change in EVERYTHING[1..4].iter().copied().chain([("phase2.host.data_dir", "/data/kubelet")]) {
        assert_eq!(usual.find_difference(&decided(&[change])).unwrap().0, change.0);
    }
    assert_eq!(Runtime::default().find_difference(&usual), None, "what an older turnup did not write is unknown");
}

#[test]
fn mirrors_are_asked_in_the_order_in_which_they_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let certificate = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap().cert.pem();
    fs_err::write(dir.path().join("ca.crt"), &certificate).unwrap();
    let mirrors = json!([
        {"registry": "docker.io", "mirrors": ["https://z.example", "https://a.example/v2/hub"], "ca_file": "ca.crt", "override_path": true},
        {"registry": "*", "mirrors": ["https://all.example"], "skip_verify": true},
    ])
    .to_string();
    let files = files(&cluster(dir.path(), &[(MIRRORS, &mirrors)])).unwrap();
    insta::assert_snapshot!(text_of(&files, "/etc/containerd/certs.d/docker.io/hosts.toml"), @r#"
    # Asked in this order; then the registry itself.
    [host."https://z.example"]
    capabilities = ["pull", "resolve"]
    ca = "/etc/containerd/certs.d/docker.io/mirrors-ca.crt"
    override_path = true
    [host."https://a.example/v2/hub"]
    capabilities = ["pull", "resolve"]
    ca = "/etc/containerd/certs.d/docker.io/mirrors-ca.crt"
    override_path = true
    "#);
    assert_eq!(text_of(&files, "/etc/containerd/certs.d/docker.io/mirrors-ca.crt"), certificate);
    insta::assert_snapshot!(text_of(&files, "/etc/containerd/certs.d/_default/hosts.toml"), @r#"
    # Asked in this order; then the registry itself.
    [host."https://all.example"]
    capabilities = ["pull", "resolve"]
    skip_verify = true
    "#);
    for file in files.iter().filter(|file| Path::new(&file.path).extension().is_some_and(|end| end == "toml")) {
        toml::from_str::<toml::Table>(text_of(&files, &file.path)).unwrap();
    }
    fs_err::write(dir.path().join("ca.crt"), "no certificate").unwrap();
    let error =
        ContainerRuntime { cluster: &cluster(dir.path(), &[(MIRRORS, &mirrors)]), facts: &usual_facts(), pause: "" }
            .files();
    assert!(error.unwrap_err().message().contains("ca.crt has no certificate in PEM"));
}

#[test]
fn the_users_own_configuration_takes_nothing_back() {
    let refused = |text: &str| require_extra("own.toml", text).unwrap_err().message().to_owned();
    require_extra(
        "",
        "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.g]\nruntime_type = 'x'\n",
    )
    .unwrap();
    assert!(
        refused("version = 3\n[a\n").starts_with("phase2.runtime.config_file: own.toml:2: "),
        "{}",
        refused("version = 3\n[a\n")
    );
    assert!(refused("version = 2\n").contains("has version 2"));
    assert!(refused("[debug]\n").contains("does not say its version"));
    for text in [
        "root = '/a'",
        "imports = ['a']",
        "state = '/a'",
        "[grpc]\naddress = '/a'",
        "[debug]\nlevel = 'info'",
        "[plugins.'io.containerd.cri.v1.images']\nsnapshotter = 'a'",
        "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]\nSystemdCgroup = true",
        "[plugins.'io.containerd.cri.v1.runtime'.cni]\nbin_dirs = []",
    ] {
        assert!(refused(&format!("version = 3\n{text}\n")).contains("decides"), "{text}");
    }
}

#[test]
fn a_misspelt_key_of_containerd_is_refused_with_the_right_one() {
    for (slip, meant) in [
        ("pulgins", "plugins"),
        ("plugin", "plugins"),
        ("proxy_plugns", "proxy_plugins"),
        ("timeoutss", "timeouts"),
        ("disabled_plugims", "disabled_plugins"),
        ("oom_acore", "oom_score"),
        ("metrcs", "metrics"),
        ("stream_proecssors", "stream_processors"),
        ("debgu", "debug"),
        ("requiredd_plugins", "required_plugins"),
    ] {
        let error = require_extra("own.toml", &format!("version = 3\n[{slip}]\n")).unwrap_err();
        assert!(error.message().ends_with(&format!("did you mean `{meant}`?")), "{}", error.message());
    }
}

#[test]
fn passwords_are_read_whole_and_never_shown() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("auth.json");
    let read = |text: &str| {
        fs_err::write(&file, text).unwrap();
        read_credentials(&cluster(dir.path(), &[(AUTH_FILE, "auth.json")]))
    };
    assert_eq!(read_credentials(&cluster(dir.path(), &[])).unwrap(), None);
    let good = json!({"auths": {"a.example": {"auth": "aGlkZGVu"}}, "credsStore": "desktop"}).to_string();
    assert_eq!(read(&good).unwrap().unwrap(), "{\"auths\":{\"a.example\":{\"auth\":\"aGlkZGVu\"}}}\n");
    for (text, why) in [
        ("{\"auths\": hidden", "line 1: it is no JSON"),
        ("{\"credsStore\": \"desktop\"}", "names no registry"),
        ("{\"auths\": {\"a.example\": {}}}", "has no password for a.example"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.message().contains(why), "{}", error.message());
        assert!(!format!("{error:?}").contains("hidden"), "{error:?}");
    }
}
