//! A kubectl whose API server is a directory: `api/` of the simulated world. A Node exists once its
//! simulated host is up; applied objects are stored; their pods run at once and are ready. It
//! checks the caller: a certificate's groups decide, as RBAC would.

mod world;

use std::io::Read as _;
use std::process::ExitCode;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use world::{World, fail, say};
use x509_parser::prelude::{AttributeTypeAndValue, FromDer as _, X509Certificate};

fn main() -> ExitCode {
    let world = World::find();
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !is_global(word)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let Some(end) = world.trouble("kubectl", &words.join(" ")).and_then(|trouble| trouble.play()) {
        return end;
    }
    let Some(kubeconfig) = std::env::args().find_map(|word| word.strip_prefix("--kubeconfig=").map(str::to_owned))
    else {
        return fail("error: no kubeconfig", 1);
    };
    let text = fs_err::read_to_string(&kubeconfig);
    let (Ok(text), true) = (text, world.path("api/ready").exists()) else {
        return fail(
            "The connection to the server 10.125.0.1:6443 was refused - did you specify the right host or port?",
            1,
        );
    };
    let mut stdin = String::new();
    if words.contains(&"--filename=-") {
        drop(std::io::stdin().read_to_string(&mut stdin));
    }
    let (caller, api) = (Caller::read(&text), Api { world: &world, stdin });
    let allowed = caller.groups.iter().any(|group| api.lets_do_everything(group));
    match words.as_slice() {
        // Every user may do this much.
        ["get", "--raw=/readyz", ..] => {}
        ["create", ..] if api.stdin.contains("SelfSubjectAccessReview") => {
            say(&json!({"kind": "SelfSubjectAccessReview", "status": {"allowed": allowed}}).to_string());
            return ExitCode::SUCCESS;
        }
        _ if !allowed => {
            let user = &caller.user;
            let said =
                format!("Error from server (Forbidden): it is forbidden: User {user:?} cannot {}", words.join(" "));
            return fail(&said, 1);
        }
        _ => {}
    }
    world.write(format!("callers/{}", caller.groups.join(",")), caller.user.as_bytes());
    api.answer(&words)
}

/// The user of a kubeconfig: the subject of its certificate.
struct Caller {
    user: String,
    groups: Vec<String>,
}

impl Caller {
    fn read(kubeconfig: &str) -> Self {
        let config: Value = serde_saphyr::from_str(kubeconfig).unwrap_or_default();
        let data = config["users"][0]["user"]["client-certificate-data"].as_str().unwrap_or_default();
        let pem = STANDARD.decode(data).unwrap_or_default();
        let der = x509_parser::pem::parse_x509_pem(&pem).map(|(_, pem)| pem.contents).unwrap_or_default();
        let Ok((_, certificate)) = X509Certificate::from_der(&der) else {
            return Self { user: "system:anonymous".into(), groups: Vec::new() };
        };
        let text = |name: &AttributeTypeAndValue<'_>| name.as_str().unwrap_or_default().to_owned();
        let subject = certificate.subject();
        Self {
            user: subject.iter_common_name().map(text).collect(),
            groups: subject.iter_organization().map(text).collect(),
        }
    }
}

fn is_global(word: &str) -> bool {
    word.starts_with("--kubeconfig=") || word.starts_with("--request-timeout=")
}

struct Api<'a> {
    world: &'a World,
    stdin: String,
}

impl Api<'_> {
    /// The group above RBAC, and the group of the administrators' role binding, if that exists.
    fn lets_do_everything(&self, group: &str) -> bool {
        const ADMINISTRATORS: &str = "turnup:cluster-admins";
        let is_bound = || self.world.path(format!("api/clusterrolebinding/{ADMINISTRATORS}.json")).exists();
        group == "system:masters" || group == ADMINISTRATORS && is_bound()
    }

    fn answer(&self, words: &[&str]) -> ExitCode {
        match words {
            ["get", "--raw=/readyz", ..] => say("ok"),
            ["get", "--raw", path] => return raw(path),
            ["get", "node", name, "--output=json", "--ignore-not-found"] => {
                if let Some(node) = self.world.json(format!("api/nodes/{name}.json")) {
                    say(&node.to_string());
                }
            }
            ["get", objects @ .., "--ignore-not-found", "--output=name"] => {
                let is_there = |object: &&&str| self.world.read(format!("api/{object}.json")).is_some();
                objects.iter().filter(is_there).for_each(|object| say(&format!("{object}\n")));
            }
            ["get", "--output=json", "configmaps", "--namespace=kube-system", only]
                if only.ends_with("kube-root-ca.crt") =>
            {
                say(&json!({"items": [self.authorities()]}).to_string());
            }
            ["get", "--output=json", kinds, rest @ ..] => say(&self.list(kinds, rest).to_string()),
            ["apply" | "create", rest @ ..] => self.apply(rest),
            ["replace", raw, "--filename=-"] => self.settle(raw),
            ["taint", "node", name, rest @ ..] => self.taint(name, rest),
            ["delete", rest @ ..] => self.delete(rest),
            ["logs", ..] => say("simulated\n"),
            _ => return fail(&format!("error: the simulated kubectl does not know {words:?}"), 1),
        }
        ExitCode::SUCCESS
    }

    fn list(&self, kinds: &str, options: &[&str]) -> Value {
        let has = |word: &str| options.iter().any(|option| option.contains(word));
        let probes = options.iter().position(|option| *option == "--namespace").map(|at| options[at + 1]);
        let mut items = Vec::new();
        for kind in kinds.split(',').map(|kind| kind.split('.').next().unwrap_or_default()) {
            match kind {
                "pods" if probes.is_some() => items.extend(self.probe_pods(probes.unwrap_or_default())),
                "services" if probes.is_some() => {
                    items.push(json!({"kind": "Service", "spec": {"clusterIP": "10.96.7.7"}}));
                }
                "pods" => items.extend(self.pods()),
                "nodes" => items.extend(self.world.objects("nodes").into_iter().filter(|node| {
                    !has("turnup.dev/managed") || node["metadata"]["labels"].get("turnup.dev/managed").is_some()
                })),
                "namespaces" | "events" => {}
                "daemonsets" => items.extend(self.daemon_sets()),
                plural => items.extend(self.world.objects(plural.trim_end_matches('s'))),
            }
        }
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    }

    /// Static pods of the control plane, one pod of each `DaemonSet` on every node, and what a test
    /// has put there.
    fn pods(&self) -> Vec<Value> {
        let control_plane = self.world.read("api/ready").unwrap_or_default();
        let control_plane = String::from_utf8_lossy(&control_plane).into_owned();
        let mut pods = self.world.objects("pod");
        for name in ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
            let mut pod = pod(&format!("{name}-{control_plane}"), &control_plane);
            pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "1"});
            pods.push(pod);
        }
        let nodes = self.world.objects("nodes");
        for set in self.world.objects("daemonset") {
            let owner = set["metadata"]["name"].as_str().unwrap_or_default();
            for node in nodes.iter().filter_map(|node| node["metadata"]["name"].as_str()) {
                let mut pod = pod(&format!("{owner}-{node}"), node);
                pod["metadata"]["ownerReferences"] = json!([{"name": owner}]);
                pod["metadata"]["annotations"] = set["metadata"]["annotations"].clone();
                pods.push(pod);
            }
        }
        pods
    }

    /// What kube-controller-manager was told to write into every namespace.
    fn authorities(&self) -> Value {
        let hosts = fs_err::read_dir(self.world.path("hosts")).into_iter().flatten().flatten();
        let told = hosts
            .filter_map(|host| serde_json::from_slice(&fs_err::read(host.path().join("node-config.json")).ok()?).ok());
        let text = told.filter_map(|told: Value| {
            let files = told["files"].as_array()?.iter();
            let bundles = files.filter(|file| {
                let path = file["path"].as_str().unwrap_or_default();
                ["ca.crt", "ca-bundle.crt"]
                    .iter()
                    .any(|name| path.ends_with(&format!("/kube-controller-manager/{name}")))
            });
            // The bundle, where there is one.
            bundles.max_by_key(|file| file["path"].as_str().map(str::len))?["content"]["text"]
                .as_str()
                .map(str::to_owned)
        });
        json!({"data": {"ca.crt": text.max().unwrap_or_default()}})
    }

    fn daemon_sets(&self) -> Vec<Value> {
        let (mut sets, nodes) = (self.world.objects("daemonset"), self.world.objects("nodes").len());
        for set in &mut sets {
            set["status"]["numberReady"] = nodes.into();
            set["status"]["desiredNumberScheduled"] = nodes.into();
        }
        sets
    }

    fn probe_pods(&self, namespace: &str) -> Vec<Value> {
        self.world.objects("probe").into_iter().filter(|pod| pod["metadata"]["namespace"] == namespace).collect()
    }

    fn apply(&self, options: &[&str]) {
        for file in options.iter().filter_map(|option| option.strip_prefix("--filename=")) {
            let text = if file == "-" { self.stdin.clone() } else { fs_err::read_to_string(file).unwrap_or_default() };
            text.split("\n---\n").filter_map(parse).for_each(|object| self.keep(&object));
        }
    }

    fn keep(&self, object: &Value) {
        let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
        if kind == "node" {
            return self.mark(object);
        }
        let kind = if kind == "pod" { "probe".to_owned() } else { kind };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        self.world.write(format!("api/{kind}/{name}.json"), object.to_string().as_bytes());
    }

    /// Labels and annotations of a node, which its kubelet has made.
    fn mark(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let file = format!("api/nodes/{name}.json");
        let mut node = self.world.json(&file).unwrap_or_else(|| object.clone());
        // Fields that this manager no longer applies are removed.
        let before = node["simulated/applied"].take();
        for part in ["labels", "annotations"] {
            for key in before["metadata"][part].as_object().into_iter().flatten().map(|(key, _)| key) {
                drop(node["metadata"][part].as_object_mut().map(|pairs| pairs.remove(key)));
            }
            for (key, value) in object["metadata"][part].as_object().into_iter().flatten() {
                node["metadata"][part][key] = value.clone();
            }
        }
        node["simulated/applied"] = object.clone();
        self.world.write(&file, node.to_string().as_bytes());
    }

    /// `KEY=VALUE:EFFECT` puts a taint on a node, `KEY:EFFECT-` takes it off.
    fn taint(&self, name: &str, words: &[&str]) {
        let file = format!("api/nodes/{name}.json");
        let mut node = self.world.json(&file).unwrap_or_default();
        let mut taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        for word in words.iter().filter(|word| !word.starts_with("--")) {
            let (taint, effect) = word.trim_end_matches('-').rsplit_once(':').unwrap_or_default();
            let (key, value) = taint.split_once('=').unwrap_or((taint, ""));
            taints.retain(|one| one["key"] != key || one["effect"] != effect);
            if !word.ends_with('-') {
                taints.push(json!({"key": key, "value": value, "effect": effect}));
            }
        }
        node["spec"]["taints"] = taints.into();
        self.world.write(&file, node.to_string().as_bytes());
    }

    /// A decision about a certificate signing request.
    fn settle(&self, raw: &str) {
        let name = raw.trim_end_matches("/approval").rsplit('/').next().unwrap_or_default();
        let mut text = String::new();
        drop(std::io::stdin().read_to_string(&mut text));
        self.world.write(format!("api/certificatesigningrequest/{name}.json"), text.as_bytes());
    }

    fn delete(&self, words: &[&str]) {
        let mut names = words.iter().filter(|word| !word.starts_with("--"));
        match names.next() {
            Some(&"node") => {
                names.for_each(|name| drop(fs_err::remove_file(self.world.path(format!("api/nodes/{name}.json")))));
            }
            Some(&"certificatesigningrequests") => names.for_each(|name| {
                drop(fs_err::remove_file(self.world.path(format!("api/certificatesigningrequest/{name}.json"))));
            }),
            Some(&"namespace") => drop(fs_err::remove_dir_all(self.world.path("api/probe"))),
            _ => {}
        }
    }
}

/// The requests of probe pods to each other: all of them succeed.
fn raw(path: &str) -> ExitCode {
    if !path.contains("/dial?") {
        return fail("Error from server (NotFound): the server could not find the requested resource", 1);
    }
    say("{\"responses\":[\"probe-0\"]}");
    ExitCode::SUCCESS
}

fn pod(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"nodeName": node, "priorityClassName": "system-node-critical"},
        "status": {"phase": "Running", "podIP": "10.244.0.7",
            "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [{"restartCount": 0}]},
    })
}

/// One document, in JSON or in the block style of turnup's templates: what is looked at of it, as
/// the API server would give it back.
fn parse(document: &str) -> Option<Value> {
    if let Ok(object) = serde_json::from_str::<Value>(document) {
        return Some(object);
    }
    let top = |key: &str| document.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    let metadata: Vec<&str> = document
        .lines()
        .skip_while(|line| *line != "metadata:")
        .skip(1)
        .take_while(|line| line.starts_with(' '))
        .collect();
    let name = metadata.iter().find_map(|line| line.strip_prefix("  name: "))?;
    let mut object = json!({
        "apiVersion": top("apiVersion")?, "kind": top("kind")?,
        "metadata": {"name": unquote(name), "generation": 1, "labels": {}, "annotations": {}},
        "status": {"observedGeneration": 1},
    });
    let mut part = "";
    for line in metadata {
        match line.trim() {
            "labels:" => part = "labels",
            "annotations:" => part = "annotations",
            pair if line.starts_with("    ") => {
                if let Some((key, value)) = pair.split_once(": ") {
                    object["metadata"][part][key] = unquote(value).into();
                }
            }
            pair => {
                if let Some(namespace) = pair.strip_prefix("namespace: ") {
                    object["metadata"]["namespace"] = namespace.into();
                }
            }
        }
    }
    if object["kind"] == "Deployment" {
        let replicas: u64 =
            document.lines().find_map(|line| line.strip_prefix("  replicas: ")?.parse().ok()).unwrap_or(1);
        object["spec"] = json!({"replicas": replicas});
        object["status"]["updatedReplicas"] = replicas.into();
        object["status"]["availableReplicas"] = replicas.into();
        object["status"]["readyReplicas"] = replicas.into();
        object["status"]["replicas"] = replicas.into();
    }
    let name = "turnup.dev/kubernetes-ca";
    if let Some(mark) = document.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": ")) {
        object["spec"]["template"]["metadata"]["annotations"][name] = unquote(mark).into();
    }
    if object["kind"] == "Pod" {
        let node = document.lines().find_map(|line| line.trim().strip_prefix("values: [\"")?.strip_suffix("\"]"));
        let mut running = pod("", node.unwrap_or_default());
        running["metadata"] = object["metadata"].take();
        return Some(running);
    }
    Some(object)
}

fn unquote(text: &str) -> &str {
    text.trim_matches(['"', '\''])
}
