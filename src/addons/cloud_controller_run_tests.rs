//! The cloud controller manager itself, as the addon is applied, between a real API server and an
//! emulator of Amazon: what becomes of Nodes, of load balancers, and of nothing else.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "programs that run until the test ends")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cloud_controller_tests::{ADDON, ON};
use super::object::Object;
use super::tests::render_set;
use crate::artifacts::{Cache, Lock, NoProgress, Sources};
use crate::bootstrap::Kubectl;
use crate::bootstrap::api_server::{ApiServer, free_port};

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const MACHINE: &str = "turnup.dev/machine";

/// Programs that end with the test.
struct Running(Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for child in self.0.iter_mut().rev() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// Amazon with the machines of a cluster, and the metadata service of the first of them.
struct Amazon {
    api: u16,
    metadata: u16,
}

impl Amazon {
    fn start(running: &mut Running) -> Self {
        let amazon = Self { api: free_port(), metadata: free_port() };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/terraform/emulators/aws_controller.py");
        let ports = [amazon.api, amazon.metadata].map(|port| port.to_string());
        let mut command = Command::new("python3");
        command.arg(script).args(ports).arg("shop").stdout(Stdio::null()).stderr(Stdio::null());
        running.0.push(command.spawn().unwrap());
        until("the emulator answers", Duration::from_mins(3), || amazon.ask("GET", "/cluster").is_some());
        amazon
    }

    fn ask(&self, method: &str, path: &str) -> Option<Value> {
        let url = format!("http://127.0.0.1:{}{path}", self.metadata);
        let answer = if method == "GET" { ureq::get(&url).call() } else { ureq::post(&url).send_empty() };
        serde_json::from_str(&answer.ok()?.body_mut().read_to_string().ok()?).ok()
    }

    /// All that there is.
    fn all(&self) -> Value {
        self.ask("GET", "/cluster").unwrap()
    }

    fn provider_id(&self, machine: &str) -> String {
        let machine = &self.all()["machines"][machine];
        format!("aws:///{}/{}", machine["zone"].as_str().unwrap(), machine["id"].as_str().unwrap())
    }
}

#[track_caller]
fn until(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// A Node as a kubelet of turnup's registers it on this machine; `provider_id` is another one's, or
/// none, where a kubelet said so.
struct Registered<'a> {
    name: &'a str,
    machine: &'a str,
    provider_id: Option<String>,
    is_new: bool,
    labels: Value,
    annotations: Value,
}

impl Registered<'_> {
    fn create(&self, admin: &Kubectl, amazon: &Amazon) {
        let address = amazon.all()["machines"][self.machine]["address"].clone();
        let taints = if self.is_new {
            json!([{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}])
        } else {
            json!([])
        };
        let mut annotations = self.annotations.clone();
        annotations["alpha.kubernetes.io/provided-node-ip"] = address.clone();
        let node = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": self.name, "labels": self.labels, "annotations": annotations},
            "spec": {"providerID": self.provider_id.clone().unwrap_or_default(), "taints": taints}});
        admin.run_with(&["create", "--filename=-"], &node.to_string()).unwrap();
        let addresses = json!([{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": self.name}]);
        say(admin, self.name, &json!({"addresses": addresses}));
        is_ready(admin, self.name, true);
    }
}

fn say(admin: &Kubectl, node: &str, status: &Value) {
    let patch = json!({"status": status}).to_string();
    admin.run(&["patch", "node", node, "--subresource=status", "--type=merge", "--patch", &patch]).unwrap();
}

fn is_ready(admin: &Kubectl, node: &str, ready: bool) {
    let status = if ready { "True" } else { "Unknown" };
    let now = jiff::Timestamp::now().strftime("%FT%TZ").to_string();
    let condition = json!({"type": "Ready", "status": status, "reason": "Test", "message": "", "lastHeartbeatTime": now, "lastTransitionTime": now});
    say(admin, node, &json!({"conditions": [condition]}));
}

fn nodes(admin: &Kubectl) -> Vec<String> {
    let list = admin.get(&["nodes"]).unwrap();
    list["items"].as_array().unwrap().iter().map(|node| node["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// The controller with the arguments and the cloud config of the manifest; only where its files are
/// and who it is to the API come from the test, in the place of what a pod is given.
fn start_controller(running: &mut Running, api: &ApiServer, amazon: &Amazon, manifest: &str) {
    let objects = Object::read(manifest).unwrap();
    let of_kind = |kind: &str| &objects.iter().find(|(object, _)| object.kind == kind).unwrap().1;
    let config = api.dir.path().join("cloud.conf");
    fs_err::write(&config, of_kind("ConfigMap")["data"]["cloud.conf"].as_str().unwrap()).unwrap();
    let args = of_kind("DaemonSet")["spec"]["template"]["spec"]["containers"][0]["args"].clone();
    let args = args.as_array().unwrap().iter().map(|arg| arg.as_str().unwrap().to_owned());
    let args = args.map(|arg| match arg.as_str() {
        "--cloud-config=/etc/cloud/cloud.conf" => format!("--cloud-config={}", config.display()),
        _ => arg,
    });
    let selection = Lock::embedded().unwrap().select(&Lock::embedded().unwrap().default).unwrap();
    let program = Cache::open()
        .unwrap()
        .ensure_all([selection.binary(ADDON).unwrap()], &Sources::default(), &NoProgress)
        .unwrap();
    let log = fs_err::File::create(api.dir.path().join("controller.log")).unwrap().into_file();
    let mut command = Command::new(&program[0].path);
    command
        .args(args)
        .arg(format!("--kubeconfig={}", api.service_account(ADDON).display()))
        .env_clear()
        .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", format!("http://127.0.0.1:{}", amazon.metadata))
        .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", amazon.api))
        .stdin(Stdio::null())
        .stdout(Stdio::from(log.try_clone().unwrap()))
        .stderr(log);
    running.0.push(command.spawn().unwrap());
}

fn service(name: &str, annotations: &Value) -> String {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}})
    .to_string()
}

#[test]
#[ignore = "builds the controller, starts an API server and moto: make test-clouds"]
fn nodes_and_services_become_what_amazon_has_and_no_healthy_node_goes() {
    let mut running = Running(Vec::new());
    let amazon = Amazon::start(&mut running);
    let manifest = render_set(ADDON, &[&ON[..], &[("phase1.cluster_name", "shop")]].concat()).unwrap();
    let api = ApiServer::start(&Lock::embedded().unwrap().default, &[], &[]);
    let admin = api.admin();
    admin.apply(&manifest).unwrap();
    let control_plane = json!({"node-role.kubernetes.io/control-plane": "",
        "node.kubernetes.io/exclude-from-external-load-balancers": ""});
    let node = |name, machine| Registered {
        name,
        machine,
        provider_id: Some(amazon.provider_id(machine)),
        is_new: true,
        labels: json!({}),
        annotations: json!({MACHINE: amazon.provider_id(machine)}),
    };
    let all = [
        Registered { labels: control_plane.clone(), ..node("shop-control-plane-0", "main") },
        node("web-lives", "lives"),
        node("web-ends", "ends"),
        // From before the controller, whose agents have not told them their machine yet.
        Registered { provider_id: None, is_new: false, annotations: json!({}), ..node("web-old", "lives") },
        // Registered by machines that are gone, and another one's by now.
        Registered { is_new: false, labels: control_plane, ..node("shop-control-plane-1", "ends") },
        Registered {
            is_new: false,
            annotations: json!({MACHINE: amazon.provider_id("lives")}),
            ..node("web-heir", "ends")
        },
    ];
    for node in &all {
        node.create(&admin, &amazon);
    }
    let before = amazon.all();
    start_controller(&mut running, &api, &amazon, &manifest);
    let log = || fs_err::read_to_string(api.dir.path().join("controller.log")).unwrap();

    // New nodes are let in with all that Amazon knows of them.
    let limit = Duration::from_mins(3);
    for (name, machine) in [("shop-control-plane-0", "main"), ("web-lives", "lives"), ("web-ends", "ends")] {
        let known = &before["machines"][machine];
        let since = Instant::now();
        let node = loop {
            let node = admin.get(&["node", name]).unwrap();
            let waits =
                node["spec"]["taints"].as_array().into_iter().flatten().any(|taint| taint["key"] == UNINITIALIZED);
            let has_dns = node["status"]["addresses"].to_string().contains("InternalDNS");
            if !waits && has_dns {
                break node;
            }
            assert!(since.elapsed() < limit, "{node:#}\n{}", log());
            std::thread::sleep(Duration::from_millis(500));
        };
        let labels = &node["metadata"]["labels"];
        assert_eq!(labels["topology.kubernetes.io/zone"], known["zone"], "{name}");
        assert_eq!(labels["topology.kubernetes.io/region"], "us-east-1", "{name}");
        assert_eq!(labels["node.kubernetes.io/instance-type"], known["type"], "{name}");
        let address = |kind: &str| {
            let all = node["status"]["addresses"].as_array().unwrap().iter();
            all.filter(|it| it["type"] == kind).map(|it| it["address"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(address("InternalIP"), [known["address"].clone()], "{name}");
        assert_eq!(address("ExternalIP"), [known["public"].clone()], "{name}");
        assert_eq!(address("InternalDNS"), [known["dns"].clone()], "{name}");
    }

    // Services get load balancers of the workers alone, and what these may reach.
    let network = json!({"service.beta.kubernetes.io/aws-load-balancer-type": "nlb"});
    for (name, annotations) in [("front", json!({})), ("network", network)] {
        admin.run_with(&["create", "--filename=-"], &service(name, &annotations)).unwrap();
        let address = || {
            let service = admin.get(&["service", name, "--namespace=default"]).unwrap();
            service["status"]["loadBalancer"]["ingress"][0]["hostname"].is_string()
        };
        until(&format!("{name} has an address\n{}", log()), limit, address);
    }
    let made = amazon.all();
    let registered = made["balancers"].as_object().unwrap().values().next().unwrap();
    let machine = |name: &str| made["machines"][name]["id"].clone();
    assert!(registered.as_array().unwrap().contains(&machine("lives")), "{made:#}");
    assert!(!registered.as_array().unwrap().contains(&machine("main")), "{made:#}");
    assert_eq!(made["network_balancers"].as_array().unwrap().len(), 1, "{made:#}");
    let groups = made["groups"].as_object().unwrap();
    let new = groups.iter().filter(|(name, _)| before["groups"].get(name.as_str()).is_none());
    assert!(new.clone().count() == 2 && new.clone().all(|(_, group)| group["owned"] == true), "{made:#}");
    assert_ne!(groups["shop-node"]["rules"], json!([]), "load balancers reach workers");
    assert_eq!(groups["shop-control-plane"]["rules"], json!([]), "and no control-plane host");

    // The Node of a machine that is gone goes; all others stay, whatever their kubelets say.
    amazon.ask("POST", "/terminate/ends");
    for node in &all {
        is_ready(&admin, node.name, false);
    }
    until(&format!("the Node web-ends goes\n{}", log()), limit, || !nodes(&admin).contains(&"web-ends".to_owned()));
    // Several rounds of the controller, which looks every five seconds.
    std::thread::sleep(Duration::from_secs(20));
    let stay = ["shop-control-plane-0", "shop-control-plane-1", "web-heir", "web-lives", "web-old"];
    assert_eq!(nodes(&admin), stay, "{}", log());
    for node in ["shop-control-plane-1", "web-heir", "web-old"] {
        let told = format!("unable to delete node \"{node}\"");
        assert!(log().contains(&told), "it was tried: {told}\n{}", log());
    }

    // Nothing is left of what it made, as `turnup down` waits for.
    admin.run(&["delete", "services", "front", "network", "--namespace=default", "--timeout=180s"]).unwrap();
    until(&format!("Amazon is as before\n{}", log()), limit, || {
        let now = amazon.all();
        let same = |field: &str| now[field] == before[field];
        same("balancers") && same("network_balancers") && same("target_groups") && same("groups")
    });
}
