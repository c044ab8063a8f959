//! An ssh whose hosts are directories: `hosts/<address>/` of the simulated world. It answers
//! turnup's requests to a host, and stores what it is sent.
//!
//! A multiplexing master creates its socket's file and waits to be ended; a command works at once.
//! The network, host keys and users are not checked; the script has their faults.

mod world;

use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use world::{World, fail, say};

const TURNUP: &str = "/opt/turnup/bin/turnup";
const BLOBS: &str = "/var/lib/turnup/blobs/";

/// A command line of ssh, as far as turnup uses it.
#[derive(Default)]
struct Call {
    master: bool,
    socket: String,
    address: String,
    command: Vec<String>,
}

impl Call {
    fn parse() -> Self {
        let mut call = Self::default();
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "-M" => call.master = true,
                "-S" => call.socket = words.next().unwrap_or_default(),
                "-F" | "-p" | "-i" | "-o" => drop(words.next()),
                "--" => {
                    let target = words.next().unwrap_or_default();
                    call.address = target.rsplit('@').next().map(str::to_owned).unwrap_or_default();
                    call.command = shell_words::split(&words.next().unwrap_or_default()).unwrap_or_default();
                }
                _option => {}
            }
        }
        call.command.drain(..call.command.iter().position(|word| word == "sudo").map_or(0, |at| at + 3));
        call
    }
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("-V") {
        return fail("OpenSSH_9.9p1 (simulated)", 0);
    }
    let (world, call) = (World::find(), Call::parse());
    let name = if call.master { "connect".to_owned() } else { call.command.join(" ") };
    if let Some(end) = world.trouble("ssh", &format!("{} {name}", call.address)).and_then(|trouble| trouble.play()) {
        return end;
    }
    if call.master {
        drop(fs_err::write(&call.socket, b""));
        loop {
            std::thread::sleep(Duration::from_hours(1));
        }
    }
    let words: Vec<&str> = call.command.iter().map(String::as_str).collect();
    Host { world: &world, address: &call.address }.answer(&words)
}

struct Host<'a> {
    world: &'a World,
    address: &'a str,
}

impl Host<'_> {
    fn answer(&self, words: &[&str]) -> ExitCode {
        match words {
            ["sha256sum", TURNUP] => match self.world.read(self.file("turnup")) {
                Some(digest) => {
                    say(&format!("{}  {TURNUP}\n", String::from_utf8_lossy(&digest)));
                    ExitCode::SUCCESS
                }
                None => fail(&format!("sha256sum: {TURNUP}: No such file or directory"), 1),
            },
            ["sh", "-c", _, "receive", path, _mode, size] => self.receive(path, size),
            ["sh", "-c", _, "look", _] => self.look(),
            // kubelet's client certificate, where a test has put one.
            ["sed", "-n", _, path] => match self.world.read(self.file("kubelet-client.pem")) {
                Some(pem) => {
                    say(&String::from_utf8_lossy(&pem));
                    ExitCode::SUCCESS
                }
                None => fail(&format!("sed: can't read {path}: No such file or directory"), 2),
            },
            ["rm", "--force", _] | ["ln", ..] => ExitCode::SUCCESS,
            [TURNUP, ..] if self.world.read(self.file("turnup")).is_none() => {
                fail(&format!("bash: line 1: {TURNUP}: No such file or directory"), 127)
            }
            [TURNUP, "node", "facts"] => tell(&self.facts()),
            [TURNUP, "node", "missing"] => tell(&self.missing(&read_json())),
            [TURNUP, "node", "diff"] => tell(&self.differences()),
            [TURNUP, "node", "up"] => self.come_up(&read_json()),
            // An object of the store, where a test has put one.
            [TURNUP, "node", "backup", .., "part", name, offset] => {
                let bytes = self.world.read(format!("store/{name}")).unwrap_or_default();
                let offset = offset.trim_start_matches("--offset=").parse().unwrap_or(usize::MAX);
                say(&STANDARD.encode(bytes.get(offset..).unwrap_or_default()));
                ExitCode::SUCCESS
            }
            [TURNUP, "node", "backup", words @ ..] => tell(&self.backup(words)),
            [TURNUP, "node", "restore", "look"] => tell(&self.world.json(self.file("etcd.json")).unwrap_or_default()),
            // Whether etcd ever wrote here: once the host has become a node.
            ["sh", "-c", question] if question.starts_with("ls -d ") && question.contains("/data/member") => {
                if self.world.read(self.file("node-config.json")).is_some() {
                    say("/var/lib/etcd/data/member/wal\n");
                }
                ExitCode::SUCCESS
            }
            // Only a host whose node config has a binary there.
            ["test", "-e", path] => {
                let told = self.world.read(self.file("node-config.json")).unwrap_or_default();
                if String::from_utf8_lossy(&told).contains(path) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
            }
            [TURNUP, "node", "finish-join", ..] | ["systemctl", ..] => ExitCode::SUCCESS,
            _ => fail(&format!("bash: line 1: {}: command not found", words.first().unwrap_or(&"")), 127),
        }
    }

    fn file(&self, name: &str) -> String {
        format!("hosts/{}/{name}", self.address)
    }

    /// The facts of an untouched host; `look.json` replaces single lines, and null removes one.
    fn look(&self) -> ExitCode {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let address = self.address;
        let change = self.world.json(self.file("look.json")).unwrap_or_default();
        let clock = now.as_secs_f64() + change["clock_ahead"].as_f64().unwrap_or(0.0);
        let id = address.replace('.', "");
        let taken = self.world.path(self.file("node-config.json")).exists();
        let lines = [
            ("clock", format!("{clock:.9}")),
            ("kernel", format!("Linux 6.12.0 {}", std::env::consts::ARCH)),
            ("release", "ID=debian".to_owned()),
            ("systemd", "257 (257.9-1)".to_owned()),
            ("cgroup", "2".to_owned()),
            ("machine-id", format!("{id:0>32}")),
            ("product-uuid", format!("00000000-0000-0000-0001-{id:0>12}")),
            ("disk", "/dev/vda1 41152736 9262108 29977396 24% /".to_owned()),
            ("memory", "MemTotal: 4032124 kB".to_owned()),
            ("mac", format!("eth0 52:54:{id}")),
            ("address", format!("2: eth0    inet {address}/16 brd 10.125.255.255 scope global eth0")),
        ];
        let changed = change.as_object().cloned().unwrap_or_default();
        for (name, text) in lines.iter().filter(|(name, _)| !changed.contains_key(*name)) {
            say(&format!("{name} {text}\n"));
        }
        for (name, text) in changed.iter().filter_map(|(name, value)| Some((name, value.as_str()?))) {
            say(&format!("{name} {text}\n"));
        }
        if taken {
            say("taken yes\n");
        }
        say("end\n");
        ExitCode::SUCCESS
    }

    fn receive(&self, path: &str, size: &str) -> ExitCode {
        let (got, digest) = self.take_stdin();
        if got.to_string() != size {
            return fail(&format!("the transfer of {path} broke off"), 75);
        }
        if path == TURNUP {
            self.world.write(self.file("turnup"), digest.as_bytes());
        } else if let Some(sha256) = path.strip_prefix(BLOBS) {
            self.world.write(self.file(&format!("blobs/{sha256}")), digest.as_bytes());
        }
        ExitCode::SUCCESS
    }

    /// Size and digest of what is on standard input. A file that another fake has read already is
    /// not read again: hundreds of hosts are sent the same bytes.
    fn take_stdin(&self) -> (u64, String) {
        let file = fs_err::metadata("/proc/self/fd/0").ok().filter(std::fs::Metadata::is_file);
        let known = file.map(|file| format!("digests/{}-{}-{}", file.ino(), file.mtime_nsec(), file.size()));
        if let (Some(known), Ok(file)) = (&known, fs_err::metadata("/proc/self/fd/0"))
            && let Some(digest) = self.world.read(known)
        {
            return (file.size(), String::from_utf8_lossy(&digest).into_owned());
        }
        let (mut hash, mut size) = (Sha256::new(), 0);
        let mut bytes = vec![0; 1 << 16];
        while let Ok(count) = io::stdin().read(&mut bytes)
            && count > 0
        {
            hash.update(&bytes[..count]);
            size += count as u64;
        }
        let digest = hash.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        if let Some(known) = known {
            self.world.write(known, digest.as_bytes());
        }
        (size, digest)
    }

    /// Takes a backup of an etcd that is not there, or tells of those that were taken.
    fn backup(&self, words: &[&str]) -> Value {
        let list = self.file("backups.json");
        let mut all = self.world.json(&list).and_then(|all| all.as_array().cloned()).unwrap_or_default();
        let flag = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)).unwrap_or_default().to_owned();
        if words.contains(&"list") {
            let stored = self.world.json("store.json");
            return json!({"backups": all, "others": [".part-7-killed"], "failed": false, "stored": stored});
        }
        let told = self.world.json(self.file("node-config.json")).unwrap_or_default();
        let (host, cluster) = (told["node"].as_str().unwrap_or_default(), flag("--cluster="));
        let day = all.len() + 1;
        let (name, time) =
            (format!("{cluster}-202601{day:02}T000000Z-{host}.tar"), format!("2026-01-{day:02}T00:00:00Z"));
        let backup = json!({"name": name, "host": host, "time": time, "bytes": 2_000_000, "damage": null, "manifest": {
            "schema": "turnup.backup/1", "cluster": cluster, "cluster_id": flag("--cluster-id="), "host": host,
            "time": time, "reason": flag("--reason="), "kubernetes_version": told["kubernetes_version"],
            "etcd_version": "3.6.16", "etcd_cluster_id": "1", "revision": 1000 + day, "hash": "1a2b", "keys": 7,
            "sha256": "0".repeat(64), "size": 1_999_000,
        }});
        all.push(backup.clone());
        self.world.write(list, json!(all).to_string().as_bytes());
        json!({"backup": backup, "deleted": [], "others": []})
    }

    fn facts(&self) -> Value {
        let mut facts = json!({
            "schema": "turnup.facts/1", "os": "Debian GNU/Linux 13 (simulated)", "kernel": "6.12.0", "arch": "x86_64", "cgroup": 2,
            "container": false, "lowers_oom_score": true, "joined": self.world.path(self.file("node-config.json")).exists(),
            "resolv_conf": "/etc/resolv.conf", "memory_mib": 4096, "cpus": 2,
        });
        for (name, value) in self.world.json(self.file("facts.json")).iter().filter_map(Value::as_object).flatten() {
            facts[name] = value.clone();
        }
        facts
    }

    fn missing(&self, node_config: &Value) -> Value {
        let list = |name: &str| node_config[name].as_array().cloned().unwrap_or_default();
        let lies_in = |dir: &Value, sha256: &str| match dir.as_str().unwrap_or_default() {
            dir if BLOBS.trim_end_matches('/') == dir => self.world.path(self.file("blobs")).join(sha256).exists(),
            dir => Path::new(dir).join(sha256).exists(),
        };
        let wanted = list("binaries").into_iter().chain(list("images")).map(|item| item["sha256"].clone());
        let dirs = list("blobs");
        wanted
            .filter(|sha256| !dirs.iter().any(|dir| lies_in(dir, sha256.as_str().unwrap_or_default())))
            .collect::<Vec<_>>()
            .into()
    }

    fn differences(&self) -> Value {
        let mut wanted = Vec::new();
        drop(io::stdin().read_to_end(&mut wanted));
        match self.world.read(self.file("node-config.json")) {
            Some(there) if there == wanted => json!([]),
            Some(_) => json!([{"verb": "update", "kind": "file", "name": "/var/lib/kubelet/config.yaml"}]),
            None => json!([{"verb": "create", "kind": "binary", "name": "/opt/turnup/bin/kubelet"}]),
        }
    }

    fn come_up(&self, delivery: &Value) -> ExitCode {
        let node_config = &delivery["node_config"];
        if let Some(sha256) = self.missing(node_config)[0].as_str() {
            return fail(&format!("error: the artifact {sha256} is not on this host"), 1);
        }
        let (name, role) = (node_config["node"].as_str().unwrap_or_default(), &node_config["role"]);
        if *role == "worker" && !self.world.path("api/ready").exists() {
            return fail("error: the API server does not answer", 5);
        }
        say("{\"changed\":\"/opt/turnup/bin/kubelet\"}\n{\"milestone\":\"kubelet started\"}\n");
        self.world.write(self.file("node-config.json"), &serde_json::to_vec(node_config).unwrap_or_default());
        if *role == "control-plane" {
            self.world.write("api/ready", name.as_bytes());
        }
        let node = format!("api/nodes/{name}.json");
        if self.world.read(&node).is_none() {
            self.world.write(&node, self.node(name).to_string().as_bytes());
        }
        if let Some(kubeconfig) = delivery["bootstrap_kubeconfig"].as_str() {
            self.ask_to_join(name, kubeconfig);
        }
        say("{\"done\":2}\n");
        ExitCode::SUCCESS
    }

    /// As its kubelet does with a join token.
    fn ask_to_join(&self, name: &str, kubeconfig: &str) {
        let kubeconfig: Value = serde_saphyr::from_str(kubeconfig).unwrap_or_default();
        let token = kubeconfig["users"][0]["user"]["token"].as_str().unwrap_or_default();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        // Where a test says so, an attacker has the token.
        let asked = self.world.read(self.file("asks-as")).map(|name| String::from_utf8_lossy(&name).into_owned());
        let asked = format!("system:node:{}", asked.as_deref().unwrap_or(name));
        params.distinguished_name.push(DnType::CommonName, asked);
        let pem = KeyPair::generate().and_then(|key| params.serialize_request(&key)).and_then(|request| request.pem());
        let pem = pem.unwrap_or_default().replace("\r\n", "\n");
        let request = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": format!("node-csr-{name}"), "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
                "username": format!("system:bootstrap:{}", token.split('.').next().unwrap_or_default()),
                "groups": ["system:bootstrappers", "system:bootstrappers:turnup", "system:authenticated"],
                "usages": ["digital signature", "client auth"], "request": STANDARD.encode(pem),
            },
        });
        self.world.write(format!("api/certificatesigningrequest/node-csr-{name}.json"), request.to_string().as_bytes());
    }

    /// A Node as its kubelet registers it, with as many images as a real one reports.
    fn node(&self, name: &str) -> Value {
        let image = |number: usize| {
            let digest = format!("{number:064x}");
            json!({"names": [format!("registry.local/image-{number}@sha256:{digest}")], "sizeBytes": 20_000_000 + number})
        };
        let condition = |kind: &str, status: &str| {
            json!({"type": kind, "status": status, "reason": "Simulated", "message": "told by the kubelet",
                "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
            "status": {
                "addresses": [{"type": "InternalIP", "address": self.address}, {"type": "Hostname", "address": name}],
                "conditions": [condition("MemoryPressure", "False"), condition("DiskPressure", "False"),
                    condition("PIDPressure", "False"), condition("Ready", "True")],
                "nodeInfo": {"kubeletVersion": "v1.36.3", "osImage": "Debian GNU/Linux 13 (simulated)"},
                "images": (0..10).map(image).collect::<Vec<_>>(),
            },
        })
    }
}

fn tell(value: &Value) -> ExitCode {
    say(&format!("{value}\n"));
    ExitCode::SUCCESS
}

fn read_json() -> Value {
    let mut text = String::new();
    drop(io::stdin().read_to_string(&mut text));
    serde_json::from_str(&text).unwrap_or_default()
}
