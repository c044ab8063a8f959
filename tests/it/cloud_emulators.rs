//! The clouds' modules with the real providers, against emulators of the clouds' APIs on loopback: `make test-clouds`.
//!
//! Providers are built from their Go modules, which takes minutes, and kept outside the checkout by their versions.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "it builds providers and starts emulators, as a person would")]

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::cloud_support::{Module, data, profiles, settings_with};

/// Google's provider 8.0.0: the one version that can be had as a Go module.
const GOOGLE: &str = "github.com/hashicorp/terraform-provider-google@v1.20.1-0.20260828184646-f3721fb45fa3";

/// Azure's provider 5.2.0, likewise.
const AZURERM: &str = "github.com/hashicorp/terraform-provider-azurerm@v1.44.1-0.20260824201233-fae580791926";

/// Of Azure's configurations those whose resources the emulator knows how to answer for.
const AZURE_PROFILES: [&str; 4] = ["single", "ha-private", "dual-stack", "dual-stack-private"];

/// Where things are kept outside of the checkout.
pub(crate) fn cache() -> PathBuf {
    std::env::var("XDG_CACHE_HOME")
        .map_or_else(|_| PathBuf::from(std::env::var("HOME").unwrap()).join(".cache"), PathBuf::from)
}

/// Builds a provider, or takes the one that an earlier run has built.
fn build_provider(module: &str) -> PathBuf {
    let cache = cache();
    let (path, version) = module.split_once('@').unwrap();
    let dir = cache.join("turnup-providers").join(version);
    let binary = dir.join(Path::new(path).file_name().unwrap());
    if !binary.exists() {
        let built = Command::new("go")
            .args(["install", "-trimpath", "-ldflags", "-s -w", module])
            .env("GOBIN", &dir)
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
    binary
}

/// An emulator that ends with the test.
pub(crate) struct Emulator {
    child: Child,
    pub port: u16,
}

impl Emulator {
    pub(crate) fn start(script: &str, arguments: &[&Path]) -> Self {
        let mut command = Command::new("python3");
        command.arg(data("emulators").join(script));
        Self::listen(command, &[], arguments)
    }

    /// A program that is given its port behind these words.
    pub(crate) fn listen(mut command: Command, before: &[&str], arguments: &[&Path]) -> Self {
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        command.args(before).arg(port.to_string()).args(arguments);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let emulator = Self { child, port };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(start.elapsed() < Duration::from_secs(20), "{command:?} does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        emulator
    }
}

impl Emulator {
    /// Makes what was there before the cluster.
    fn seed(&self, path: &str, body: &serde_json::Value) {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        ureq::post(&url).send(body.to_string().as_bytes()).unwrap();
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn google_environment(emulator: &Emulator) -> BTreeMap<String, String> {
    let base = format!("http://127.0.0.1:{}", emulator.port);
    let endpoint = |(name, path): (&str, &str)| (format!("GOOGLE_{name}_CUSTOM_ENDPOINT"), format!("{base}{path}"));
    let endpoints = [
        ("COMPUTE", "/compute/v1/"),
        ("IAM", "/iam/v1/"),
        ("IAM_BETA", "/iam/v1/"),
        ("STORAGE", "/storage/v1/"),
        ("DNS", "/dns/v1/"),
        ("RESOURCE_MANAGER", "/crm/v1/"),
        ("CLOUD_RESOURCE_MANAGER", "/crm/"),
        ("RESOURCE_MANAGER_V3", "/crm/v3/"),
    ];
    endpoints.map(endpoint).into_iter().chain([("GOOGLE_OAUTH_ACCESS_TOKEN".to_owned(), "fake".to_owned())]).collect()
}

#[test]
#[ignore = "a part of make test-clouds"]
fn gce_lives_in_an_emulator() {
    let provider = build_provider(GOOGLE);
    for (name, config) in profiles("gce") {
        let emulator = Emulator::start("gce.py", &[]);
        let compute = |rest: &str| format!("/compute/v1/projects/{rest}");
        match name.as_str() {
            "dns" => emulator.seed(
                "/dns/v1/projects/a-project/managedZones",
                &json!({"name": "k8s-example-com", "dnsName": "k8s.example.com."}),
            ),
            "existing-network" => {
                let network = compute("host-project/global/networks");
                emulator.seed(&network, &json!({"name": "corporate"}));
                let subnetwork = json!({"name": "kubernetes", "ipCidrRange": "10.9.0.0/20", "network": format!("{network}/corporate"),
                    "stackType": "IPV4_IPV6", "ipv6AccessType": "EXTERNAL"});
                emulator.seed(&compute("host-project/regions/us-central1/subnetworks"), &subnetwork);
                let address = json!({"name": "api-of-shared", "address": "192.0.2.77"});
                emulator.seed(&compute("a-project/regions/us-central1/addresses"), &address);
            }
            _ => {}
        }
        let module = Module::new("gce", "google", &provider, &config, google_environment(&emulator));
        module.ok(&["validate"]);
        module.apply();
        assert_eq!(module.changes(), BTreeMap::new(), "{name}: the second plan is not empty");
        // One more worker, and larger disks for etcd: nothing else changes, and nothing is made anew.
        if name == "single" {
            module.configure(&settings_with(&config, &["phase1.num_nodes=5", "phase1.etcd_volume.size_gb=40"]));
            let changes = module.changes();
            let wanted = [
                "google_compute_disk.etcd[\"main-a\"]",
                "google_compute_region_instance_group_manager.fixed[\"workers\"]",
            ];
            assert_eq!(
                changes.into_iter().collect::<Vec<_>>(),
                wanted.map(|address| (address.to_owned(), "[\"update\"]".to_owned()))
            );
            module.apply();
            assert_eq!(module.changes(), BTreeMap::new());
        }
        // Hosts get what a subnetwork that exists has, by templates of their own; nothing else is another one.
        if name == "existing-network" {
            module.configure(&settings_with(&config, &["phase1.network.ipv6=y"]));
            module.apply();
            assert_eq!(module.changes(), BTreeMap::new());
            let state = module.ok(&["show", "-json"]);
            assert!(
                state.contains(r#""stack_type":"IPV4_IPV6""#) && state.contains(r#""network_tier":"PREMIUM""#),
                "{state}"
            );
        }
        module.ok(&["destroy", "-auto-approve"]);
        assert_eq!(module.ok(&["state", "list"]), "", "{name}");
    }
}

fn azure_environment(emulator: &Emulator, dir: &Path) -> BTreeMap<String, String> {
    let system = fs_err::read_to_string("/etc/ssl/certs/ca-certificates.crt").unwrap();
    let own = fs_err::read_to_string(dir.join("cert.pem")).unwrap();
    let bundle = dir.join("bundle.pem");
    fs_err::write(&bundle, system + &own).unwrap();
    let variables = [
        ("SSL_CERT_FILE", bundle.display().to_string()),
        ("ARM_METADATA_HOSTNAME", format!("127.0.0.1:{}", emulator.port)),
        ("ARM_USE_CLI", "false".into()),
        ("ARM_TENANT_ID", "00000000-0000-0000-0000-000000000002".into()),
        ("ARM_CLIENT_ID", "00000000-0000-0000-0000-000000000003".into()),
        ("ARM_CLIENT_SECRET", "none".into()),
        ("ARM_SUBSCRIPTION_ID", "00000000-0000-0000-0000-000000000000".into()),
    ];
    variables.map(|(name, value)| (name.to_owned(), value)).into()
}

/// The certificate of the emulator, for the address on which it listens.
fn make_certificate(dir: &Path) {
    let request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"];
    let names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"];
    let made = Command::new("openssl").args(request).args(names).current_dir(dir).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[test]
#[ignore = "a part of make test-clouds"]
fn azure_lives_in_an_emulator() {
    let provider = build_provider(AZURERM);
    let dir = tempfile::tempdir().unwrap();
    make_certificate(dir.path());
    // `TURNUP_PROFILE=name` picks one while it is being worked on.
    let picked = std::env::var("TURNUP_PROFILE").unwrap_or_default();
    for name in AZURE_PROFILES.into_iter().filter(|name| picked.is_empty() || *name == picked) {
        let config = &profiles("azure")[name];
        let emulator = Emulator::start("arm.py", &[dir.path()]);
        let module = Module::new("azure", "azurerm", &provider, config, azure_environment(&emulator, dir.path()));
        module.ok(&["validate"]);
        module.apply();
        assert_eq!(module.changes(), BTreeMap::new(), "{name}: the second plan is not empty");
        module.ok(&["destroy", "-auto-approve"]);
        assert_eq!(module.ok(&["state", "list"]), "", "{name}");
    }
}

/// What the stub's rules in `driver_volumes` are taken from: what the real providers plan for a volume of etcd that is to be another one.
#[test]
#[ignore = "a part of make test-clouds"]
fn what_providers_would_do_to_a_volume_of_etcd() {
    let dir = tempfile::tempdir().unwrap();
    make_certificate(dir.path());
    let disk = |module: &Module, config: &Path, target: &str, values: &[&str]| {
        module.configure(&settings_with(config, values));
        let volume = if target == "gce" { "google_compute_disk" } else { "azurerm_managed_disk" };
        module.changes().remove(&format!("{volume}.etcd[\"main-a\"]")).unwrap_or_default()
    };
    let (replace, update) = ("[\"delete\",\"create\"]", "[\"update\"]");

    let config = &profiles("gce")["single"];
    let emulator = Emulator::start("gce.py", &[]);
    let module = Module::new("gce", "google", &build_provider(GOOGLE), config, google_environment(&emulator));
    module.apply();
    assert_eq!(disk(&module, config, "gce", &["phase1.etcd_volume.size_gb=10"]), replace);
    assert_eq!(disk(&module, config, "gce", &["phase1.gce.etcd_volume_type=pd-balanced"]), replace);
    assert_eq!(disk(&module, config, "gce", &["phase1.etcd_volume.size_gb=40"]), update);

    let config = &profiles("azure")["single"];
    let emulator = Emulator::start("arm.py", &[dir.path()]);
    let environment = azure_environment(&emulator, dir.path());
    let module = Module::new("azure", "azurerm", &build_provider(AZURERM), config, environment);
    module.apply();
    assert_eq!(disk(&module, config, "azure", &["phase1.etcd_volume.size_gb=40"]), update);
    assert_eq!(disk(&module, config, "azure", &["phase1.etcd_volume.size_gb=10"]), update);
}
