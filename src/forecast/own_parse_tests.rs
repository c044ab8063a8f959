//! Asks the programs themselves: what was rendered for a host is given to kubelet, the programs of
//! the control plane, kube-proxy and containerd of its Kubernetes version, each alone and without a
//! network. One that takes all of it fails at the first thing that only a cluster has, or wrote its
//! configuration out; any other end is a mistake.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;

use crate::addons::Object;
use crate::artifacts::{Cache, Lock, NoProgress, Sources};
use crate::exec::Run;
use crate::node::layout;

/// What each says last when it has taken everything: etcd's certificates are none here, the API
/// server has none for etcd, and the kubeconfigs have no authority.
const ENDS: [(&str, &str); 5] = [
    ("etcd", "failed to find any PEM data"),
    ("kube-apiserver", "error creating storage factory: open "),
    ("kube-controller-manager", "error loading config file"),
    ("kube-scheduler", "error loading config file"),
    ("kubelet", "failed to run Kubelet: unable to load"),
];
/// Of the host, moved below a directory of the test.
const MOVED: [&str; 6] =
    ["/etc/kubernetes", "/etc/containerd", "/var/lib/kubelet", "/var/lib/etcd", "/var/log/kubernetes", "/opt/turnup"];
/// What only a run makes.
const UNKNOWN: &str = "(known after ";
/// Only what hangs takes as long.
const LIMIT: Duration = Duration::from_mins(2);

/// The pinned programs.
pub(super) struct Programs {
    lock: Arc<Lock>,
    cache: Cache,
    key: KeyPair,
    certificate: String,
}

impl Programs {
    pub(super) fn pinned() -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["a".to_owned()]).unwrap().self_signed(&key).unwrap().pem();
        Self { lock: Lock::embedded().unwrap(), cache: Cache::open().unwrap(), key, certificate }
    }

    /// All that are pinned, or the one that `TURNUP_TEST_KUBERNETES` names.
    pub(super) fn versions(&self) -> Vec<String> {
        let named = std::env::var("TURNUP_TEST_KUBERNETES").ok();
        let is_asked = |version: &&str| named.as_deref().is_none_or(|named| named == *version);
        self.lock.versions().into_iter().filter(is_asked).map(str::to_owned).collect()
    }

    pub(super) fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// All that the programs refuse of one rendered file.
    pub(super) fn mistakes(&self, path: &str, text: &str, version: &str) -> Vec<String> {
        let found = match path.split_once('/') {
            Some(("node-config", _)) => self.node_config(&serde_json::from_str(text).unwrap(), version),
            Some(("addons", _)) => self.kube_proxy(text, version),
            _ => Vec::new(),
        };
        found.into_iter().map(|mistake| format!("{path}: {mistake}")).collect()
    }

    pub(super) fn program(&self, name: &str, version: &str) -> PathBuf {
        let selection = self.lock.select(version).unwrap();
        let wanted = [selection.binary(name).unwrap()];
        self.cache.ensure_all(wanted, &Sources::default(), &NoProgress).unwrap().remove(0).path
    }

    fn node_config(&self, node: &Value, version: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let files = node["files"].as_array().into_iter().flatten();
        let mut commands: Vec<Vec<String>> = Vec::new();
        for file in files {
            let path = file["path"].as_str().unwrap();
            if layout::static_pod(path).is_some() {
                commands.extend(commands_of(&file["content"]["yaml"]));
            }
            self.write(dir.path(), path, &file["content"]);
        }
        let units = node["units"].as_array().into_iter().flatten();
        let kubelet = units.filter(|unit| unit["name"] == "kubelet.service");
        commands.extend(kubelet.filter_map(|unit| start_of(unit["text"].as_str()?)));
        let run = |command: &Vec<String>| {
            let name = command[0].rsplit('/').next().unwrap().to_owned();
            let flags = command[1..].iter().map(|flag| moved(dir.path(), flag)).collect::<Vec<_>>();
            let end = ENDS.iter().find(|(known, _)| *known == name)?.1;
            let said = run(&self.program(&name, version), &flags, dir.path());
            (!said.contains(end) || refuses(&said, end)).then(|| format!("{name}: {}", last_words(&said)))
        };
        let mut found: Vec<String> = std::thread::scope(|scope| {
            let running: Vec<_> = commands.iter().map(|command| scope.spawn(|| run(command))).collect();
            running.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        let config = moved(dir.path(), "--config=/etc/containerd/config.toml");
        let said = run_plainly(&self.program("containerd", version), &[config, "config".into(), "dump".into()]);
        found.extend(said.err().map(|said| format!("containerd: {said}")));
        found
    }

    /// A file of the host; in place of what is unknown stands something of the same kind.
    fn write(&self, dir: &Path, path: &str, content: &Value) {
        let is_key = Path::new(path).extension().is_some_and(|end| end == "key");
        let text = match (content["text"].as_str(), &content["yaml"]) {
            _ if path.ends_with("/etcd-client.crt") => return,
            (Some(text), _) if text.contains(UNKNOWN) && !path.contains("/etcd/") => self.certificate.clone(),
            (Some(text), _) => text.to_owned(),
            (None, Value::Object(_)) => content["yaml"].to_string(),
            _ if is_key => self.key.serialize_pem(),
            _ if path.ends_with("encryption.yaml") => ENCRYPTION.to_owned(),
            _ => return,
        };
        let to = dir.join(path.trim_start_matches('/'));
        fs_err::create_dir_all(to.parent().unwrap()).unwrap();
        fs_err::write(to, moved(dir, &text)).unwrap();
    }

    fn kube_proxy(&self, manifest: &str, version: &str) -> Vec<String> {
        let objects = Object::read(manifest).unwrap();
        let mut configs = objects.iter().filter_map(|(_, object)| object["data"]["config.yaml"].as_str());
        let Some(config) = configs.find(|config| config.contains("KubeProxyConfiguration")) else { return Vec::new() };
        let dir = tempfile::tempdir().unwrap();
        fs_err::write(dir.path().join("in"), config).unwrap();
        let file = |name: &str| dir.path().join(name).display().to_string();
        let words = ["--config".to_owned(), file("in"), "--write-config-to".to_owned(), file("out")];
        let said = run_plainly(&self.program("kube-proxy", version), &words);
        said.err().map(|said| format!("kube-proxy: {said}")).into_iter().collect()
    }
}

const ENCRYPTION: &str = r#"{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
    "resources": [{"resources": ["secrets"], "providers": [{"identity": {}}]}]}"#;

fn moved(dir: &Path, text: &str) -> String {
    let dir = dir.display();
    MOVED.iter().fold(text.to_owned(), |text, place| text.replace(place, &format!("{dir}{place}")))
}

fn commands_of(pod: &Value) -> Vec<Vec<String>> {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let words = |container: &Value| {
        let words = container["command"].as_array().into_iter().flatten();
        words.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    containers.map(words).filter(|words| !words.is_empty()).collect()
}

/// The command that a unit starts.
fn start_of(unit: &str) -> Option<Vec<String>> {
    let joined = unit.replace("\\\n", " ");
    let line = joined.lines().find_map(|line| line.strip_prefix("ExecStart="))?;
    shell_words::split(line).ok()
}

/// All that a program said that cannot come to a good end here.
pub(super) fn run(program: &Path, flags: &[String], dir: &Path) -> String {
    let run = Run::new("unshare").arg("--net").arg(program).args(flags.iter().cloned()).dir(dir).timeout(LIMIT);
    match run.output() {
        Ok(output) => output.stdout + &output.stderr,
        Err(failure) => format!("{}{}", failure.ended().stdout, failure.stderr()),
    }
}

/// Runs a program that has to succeed; what it said where it does not.
fn run_plainly(program: &Path, words: &[String]) -> Result<(), String> {
    let run = Run::new("unshare").arg("--net").arg(program).args(words.iter().cloned()).dir("/").timeout(LIMIT);
    run.output().map(drop).map_err(|failure| last_words(failure.stderr()))
}

/// Whether a program that came as far ended for another reason after all.
fn refuses(said: &str, end: &str) -> bool {
    said.lines().any(|line| line.contains("\"command failed\"") && !line.contains(end))
}

fn last_words(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(4)..].join(" / ")
}

/// Each program refuses one wrong value, so that the answers above mean something.
#[test]
#[ignore = "asks the programs themselves: make test-components"]
fn each_program_refuses_a_wrong_value() {
    let (source, dir) = (crate::config::TreeSource::embedded(), tempfile::tempdir().unwrap());
    let settings = crate::config::Settings::defaults(&source).unwrap();
    let cluster = super::Forecast::rehearse(&settings, &source, dir.path()).unwrap();
    let (programs, version) = (Programs::pinned(), cluster.settings.kubernetes_version.clone());
    let files = cluster.store.imagined_files().into_iter().map(|(path, bytes)| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (path.display().to_string(), crate::unknown::shown(&text).into_owned())
    });
    let files: Vec<(String, String)> = files.collect();
    let file = |part: &str| files.iter().find(|(path, _)| path.contains(part)).unwrap();
    let (node_path, node) = file("node-config/kubernetes-control-plane-0");
    let (proxy_path, proxy) = file("addons/kube-proxy");
    for (path, text) in [(node_path, node), (proxy_path, proxy)] {
        assert_eq!(programs.mistakes(path, text, &version), [""; 0]);
    }
    for (program, right, wrong) in [
        ("etcd", "--snapshot-count=", "--snapshot-count=a"),
        ("kube-apiserver", "--service-node-port-range=", "--service-node-port-range=9-"),
        ("kube-controller-manager", "--controllers=", "--controllers=none,"),
        ("kube-scheduler", "\"percentageOfNodesToScore\":0", "\"percentageOfNodesToScore\":101"),
        ("kubelet", "\"maxPods\":", "\"maxPods\":-"),
        ("containerd", "version = 3", "version = a"),
    ] {
        let plain = serde_json::from_str::<Value>(node).unwrap().to_string();
        assert!(plain.contains(right), "{program}: {right} is not rendered");
        let found = programs.mistakes(node_path, &plain.replace(right, wrong), &version);
        assert!(found.len() == 1 && found[0].contains(program), "{program}: {found:?}");
    }
    let found = programs.mistakes(proxy_path, &proxy.replace("mode: nftables", "mode: none"), &version);
    assert!(found.len() == 1 && found[0].contains("kube-proxy"), "{found:?}");
}
