//! The clouds' modules with the real providers, against emulators of the clouds' APIs on loopback:
//! `make test-clouds`.
//!
//! Providers are built from their Go modules, which takes minutes, and kept outside the checkout by
//! their versions.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "it builds providers and starts emulators, as a user would")]

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cloud_emulators_state::moto;
use crate::cloud_support::{Module, data, profiles, settings_with};
use crate::cluster_support::say;

/// Google's provider 8.0.0: the one version that can be had as a Go module.
const GOOGLE: &str = "github.com/hashicorp/terraform-provider-google@v1.20.1-0.20260828184646-f3721fb45fa3";

/// Azure's provider 5.2.0, likewise.
const AZURERM: &str = "github.com/hashicorp/terraform-provider-azurerm@v1.44.1-0.20260824201233-fae580791926";

/// Amazon's provider 6.48.0, likewise; it takes most of an hour, and nine gigabytes of memory.
const AWS: &str = "github.com/hashicorp/terraform-provider-aws@v1.60.1-0.20260602190131-5f2286d6d836";

/// This many configurations at a time, where a provider mostly waits.
const SIDE_BY_SIDE: usize = 4;

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
            assert!(start.elapsed() < Duration::from_mins(1), "{command:?} does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        emulator
    }
}

/// Accepts any certificate: the emulators answer on loopback.
fn credulous() -> ureq::Agent {
    let tls = ureq::tls::TlsConfig::builder().disable_verification(true).build();
    ureq::Agent::config_builder().tls_config(tls).build().into()
}

impl Emulator {
    /// Creates what existed before the cluster.
    fn seed(&self, path: &str, body: &Value) {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        ureq::post(&url).send(body.to_string().as_bytes()).unwrap();
    }

    /// All resources in the emulator's own database.
    fn left(&self, scheme: &str) -> Value {
        let mut answer = credulous().get(format!("{scheme}://127.0.0.1:{}/left", self.port)).call().unwrap();
        serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
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
        let before = emulator.left("http");
        let module = Module::new("gce", "google", &provider, &config, google_environment(&emulator));
        if name == "dns" {
            module.apply();
            module.configure(&settings_with(&config, &["phase1.control_plane.count=3", "phase1.api.exposure=dns"]));
            assert_eq!(module.changes()["google_dns_record_set.api[0]"], "[\"update\"]", "the record follows");
        }
        // Hosts get what a subnetwork that exists has, by templates of their own; nothing else is
        // another one.
        if name == "existing-network" {
            module.apply();
            module.configure(&settings_with(&config, &["phase1.network.ipv6=y"]));
            module.apply();
            let state = module.ok(&["show", "-json"]);
            assert!(
                state.contains(r#""stack_type":"IPV4_IPV6""#) && state.contains(r#""network_tier":"PREMIUM""#),
                "{state}"
            );
        }
        let grown =
            ["google_compute_disk.etcd[\"main-a\"]", "google_compute_region_instance_group_manager.fixed[\"workers\"]"];
        live(&name, &module, &config, grown);
        assert_eq!(emulator.left("http"), before, "{name}");
    }
}

/// From nothing to nothing. The smallest one grows in between: more workers and larger disks for
/// etcd, which are these resources, and nothing else changes or is recreated.
fn live(name: &str, module: &Module, config: &Path, grown: [&str; 2]) {
    module.ok(&["validate"]);
    module.apply();
    assert_settled(name, module);
    if name == "single" {
        module.configure(&settings_with(config, &["phase1.num_nodes=5", "phase1.etcd_volume.size_gb=40"]));
        let wanted = grown.map(|address| (address.to_owned(), "[\"update\"]".to_owned()));
        assert_eq!(module.changes(), wanted.into());
        module.apply();
        assert_settled(name, module);
    }
    module.ok(&["destroy", "-auto-approve"]);
    assert_eq!(module.ok(&["state", "list"]), "", "{name}");
}

fn assert_settled(name: &str, module: &Module) {
    let is_settled = module.changes().is_empty();
    assert!(is_settled, "{name}: the plan after an apply is not empty: {}", module.ok(&["show", "-no-color", "plan"]));
}

/// Every configuration of a target, or the one that `TURNUP_PROFILE` names while it is being worked
/// on; several at a time.
fn side_by_side(target: &str, live: impl Fn(&str, &Path) + Sync) {
    let mut all: Vec<(String, PathBuf)> = profiles(target).into_iter().collect();
    if let Ok(picked) = std::env::var("TURNUP_PROFILE") {
        all.retain(|(name, _)| *name == picked);
    }
    let next = Mutex::new(all.into_iter());
    let work = || {
        // The turn ends before the work begins.
        while let Some((name, config)) = take(&next) {
            let start = Instant::now();
            live(&name, &config);
            say(&format!("{target} {name}: {:.0} s", start.elapsed().as_secs_f64()));
        }
    };
    std::thread::scope(|scope| (0..SIDE_BY_SIDE).for_each(|_| drop(scope.spawn(work))));
}

fn take<T>(from: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    from.lock().unwrap().next()
}

fn aws_environment(emulator: &Emulator, dir: &Path) -> BTreeMap<String, String> {
    let keys = "aws_access_key_id = k\naws_secret_access_key = s\n";
    fs_err::write(dir.join("config"), format!("[default]\n{keys}[profile staging]\n{keys}")).unwrap();
    let variables = [
        ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", emulator.port)),
        ("AWS_CONFIG_FILE", dir.join("config").display().to_string()),
        ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
    ];
    variables.map(|(name, value)| (name.to_owned(), value)).into()
}

#[test]
#[ignore = "a part of make test-clouds"]
fn aws_lives_in_an_emulator() {
    let provider = build_provider(AWS);
    let dir = tempfile::tempdir().unwrap();
    side_by_side("aws", |name, config| {
        let mut moto = moto();
        moto.arg(data("emulators/aws.py"));
        let emulator = Emulator::listen(moto, &[], &[]);
        let module = Module::new("aws", "aws", &provider, config, aws_environment(&emulator, dir.path()));
        let grown = ["aws_autoscaling_group.group[\"workers\"]", "aws_ebs_volume.etcd[\"main-a\"]"];
        live(name, &module, config, grown);
    });
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
    side_by_side("azure", |name, config| {
        let emulator = Emulator::start("arm.py", &[dir.path()]);
        let module = Module::new("azure", "azurerm", &provider, config, azure_environment(&emulator, dir.path()));
        let grown = [
            "azurerm_managed_disk.etcd[\"main-a\"]",
            "azurerm_orchestrated_virtual_machine_scale_set.public_fixed[\"workers\"]",
        ];
        live(name, &module, config, grown);
        assert_eq!(emulator.left("https"), json!([]), "{name}");
    });
}

/// What a `destroy` is checked against: an emulator lists every resource that was created and not
/// deleted.
#[test]
fn emulators_list_leftover_resources() {
    let emulator = Emulator::start("gce.py", &[]);
    let url = |path: &str| format!("http://127.0.0.1:{}{path}", emulator.port);
    assert_eq!(emulator.left("http"), json!([]));
    let account = "projects/p/serviceAccounts/cp@p.iam.gserviceaccount.com";
    let policy = |member: &str| json!({"policy": {"bindings": [{"role": "r", "members": [member]}]}});
    let role = json!({"roleId": "volumes", "role": {"title": "t", "includedPermissions": ["compute.disks.use"]}});
    emulator.seed("/iam/v1/projects/p/roles", &role);
    emulator.seed("/iam/v1/projects/p/serviceAccounts", &json!({"accountId": "cp"}));
    emulator.seed(&format!("/iam/v1/{account}:setIamPolicy"), &policy("itself"));
    emulator.seed("/crm/v1/projects/p:setIamPolicy", &policy("other"));
    emulator.seed("/compute/v1/projects/p/zones/z/disks", &json!({"name": "d"}));
    emulator.seed("/dns/v1/projects/p/managedZones", &json!({"name": "zone", "dnsName": "example.com."}));
    emulator
        .seed("/dns/v1/projects/p/managedZones/zone/changes", &json!({"additions": [{"name": "api.", "type": "A"}]}));
    let all = json!([
        "/compute/v1/projects/p/zones/z/disks/d",
        "iam/projects/p/roles/volumes",
        "p r other",
        "sa/cp@p.iam.gserviceaccount.com",
        "sa/cp@p.iam.gserviceaccount.com r itself",
        "z/zone",
        "zone api. A",
    ]);
    assert_eq!(emulator.left("http"), all);
    emulator
        .seed("/dns/v1/projects/p/managedZones/zone/changes", &json!({"deletions": [{"name": "api.", "type": "A"}]}));
    emulator.seed("/crm/v1/projects/p:setIamPolicy", &json!({"policy": {}}));
    let gone = [
        "/iam/v1/projects/p/roles/volumes",
        "/compute/v1/projects/p/zones/z/disks/d",
        "/dns/v1/projects/p/managedZones/zone",
    ];
    for path in gone.into_iter().map(str::to_owned).chain([format!("/iam/v1/{account}")]) {
        ureq::delete(url(&path)).call().unwrap();
    }
    assert_eq!(emulator.left("http"), json!([]));
    // Google keeps the identifier of a role for weeks.
    let again = ureq::post(url("/iam/v1/projects/p/roles")).send(role.to_string().as_bytes());
    assert!(again.unwrap_err().to_string().contains("409"));

    let dir = tempfile::tempdir().unwrap();
    make_certificate(dir.path());
    let emulator = Emulator::start("arm.py", &[dir.path()]);
    let agent = credulous();
    let group = format!("https://127.0.0.1:{}/subscriptions/s/resourceGroups/", emulator.port);
    let network = format!("{group}net/providers/Microsoft.Network/virtualNetworks/corporate");
    agent.get(&network).call().unwrap();
    assert_eq!(emulator.left("https"), json!([]), "it existed before the cluster");
    agent.put(format!("{network}/subnets/hosts")).send("{}").unwrap();
    agent.put(format!("{group}one")).send("{}").unwrap();
    let all = json!([
        "/subscriptions/s/resourcegroups/net/providers/microsoft.network/virtualnetworks/corporate/subnets/hosts",
        "/subscriptions/s/resourcegroups/one"
    ]);
    assert_eq!(emulator.left("https"), all);
    agent.delete(format!("{network}/subnets/hosts")).call().unwrap();
    agent.delete(format!("{group}one")).call().unwrap();
    assert_eq!(emulator.left("https"), json!([]));
}

/// What the stub's rules in `driver_volumes` are taken from: what the real providers plan for a
/// volume of etcd that is to be another one.
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
