//! Evaluates the rules of the CIS Kubernetes Benchmark against rendered node configs: none fails,
//! and each fails when the thing that it looks at is changed. `cluster_cis` does it on real hosts.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cis_rules::{Benchmark, Expect, Host, Look, Rule, Seen, flag};
use crate::cli_support::TestEnv;

/// The node config of a host, and the `DaemonSet` of kube-proxy.
#[derive(Clone)]
struct Rendered {
    node: Value,
    proxy: Value,
}

/// The control plane and a worker of the default configuration.
fn render() -> [Rendered; 2] {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "defaults"]);
    test_env.ok(&["render", "--to", "rendered"]);
    let addons = test_env.read("rendered/addons/kube-proxy.yaml");
    let parse = |text: &str| serde_saphyr::from_str::<Value>(text).unwrap();
    let proxy = addons.split("\n---\n").map(parse).find(|object| object["kind"] == "DaemonSet").unwrap();
    let node = |name: &str| serde_json::from_str(&test_env.read(&format!("rendered/node-config/{name}.json"))).unwrap();
    ["kubernetes-control-plane-0", "kubernetes-worker-0"]
        .map(|name| Rendered { node: node(name), proxy: proxy.clone() })
}

fn items<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value[name].as_array().into_iter().flatten()
}

fn find<'v>(node: &'v mut Value, list: &str, key: &str, name: &str) -> Option<&'v mut Value> {
    node[list].as_array_mut()?.iter_mut().find(|item| item[key] == name)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

impl Rendered {
    /// What the rules would see on a host with this node config.
    fn look(&self) -> Seen {
        let mut seen = Seen::default();
        let users = items(&self.node, "users").map(|user| (user["id"].clone(), text(&user["name"])));
        let users: Vec<(Value, String)> = users.chain([(json!(0), "root".to_owned())]).collect();
        let name_of =
            |id: &Value| users.iter().find(|(known, _)| known == id).map_or(id.to_string(), |(_, name)| name.clone());
        let mode_of = |item: &Value| u32::try_from(item["mode"].as_u64().unwrap()).unwrap();
        for item in items(&self.node, "files").chain(items(&self.node, "directories")) {
            let owner = name_of(&item["owner"]);
            seen.files.insert(text(&item["path"]), (mode_of(item), format!("{owner}:{owner}")));
        }
        for unit in items(&self.node, "units") {
            let path = format!("/etc/systemd/system/{}", text(&unit["name"]));
            seen.files.insert(path, (mode_of(unit), "root:root".to_owned()));
            let command = text(&unit["text"]).replace("\\\n", " ");
            let command = command.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap().to_owned();
            seen.add_process(command.split_whitespace().map(str::to_owned).collect());
        }
        for file in items(&self.node, "files").filter(|file| !file["content"]["yaml"].is_null()) {
            seen.settings.insert(text(&file["path"]), file["content"]["yaml"].clone());
            seen.add_containers(&file["content"]["yaml"]["spec"]);
        }
        seen.add_containers(&self.proxy["spec"]["template"]["spec"]);
        // etcd creates the directory itself, with mode 0700.
        if let Some(dir) = seen.processes.get("etcd").and_then(|command| flag(command, "data-dir")) {
            let parent = seen.files[dir.rsplit_once('/').unwrap().0].clone();
            seen.files.insert(dir, parent);
        }
        seen
    }

    fn command(&mut self, process: &str) -> &mut Vec<Value> {
        let path = format!("/etc/kubernetes/manifests/{process}.yaml");
        let pod = match find(&mut self.node, "files", "path", &path) {
            Some(file) => &mut file["content"]["yaml"]["spec"],
            None => &mut self.proxy["spec"]["template"]["spec"],
        };
        pod["containers"][0]["command"].as_array_mut().unwrap()
    }

    /// Changes what the rule looks at to something that it must refuse. False when the node config
    /// does not contain it.
    fn loosen(&mut self, rule: &Rule, benchmark: &Benchmark) -> bool {
        let seen = self.look();
        let mut set = |path: &str, field: &str, value: Value| {
            let unit = path.rsplit('/').next().unwrap();
            let node = &mut self.node;
            let list = [("files", "path", path), ("directories", "path", path), ("units", "name", unit)];
            let Some((list, key, name)) =
                list.into_iter().find(|(list, key, name)| find(node, list, key, name).is_some())
            else {
                panic!("{path} is nowhere");
            };
            let is_said = list != "units" || field == "mode";
            find(node, list, key, name).unwrap()[field] = value;
            is_said
        };
        let stranger = json!(4711);
        match &rule.look {
            Look::Mode(paths) => set(benchmark.resolve(paths, &seen)[0], "mode", json!(0o777)),
            Look::Owner(paths) => set(benchmark.resolve(paths, &seen)[0], "owner", stranger),
            Look::OwnerBelow(dir) => set(&format!("{dir}/ca.crt"), "owner", stranger),
            Look::DataMode([process, name]) | Look::DataOwner([process, name]) => {
                let dir = flag(&seen.processes[process], name).unwrap();
                let is_mode = matches!(rule.look, Look::DataMode(_));
                let (field, value) = if is_mode { ("mode", json!(0o777)) } else { ("owner", stranger) };
                set(dir.rsplit_once('/').unwrap().0, field, value)
            }
            Look::Flags(words) => {
                let (command, flag) = (self.command(&words[0]), format!("--{}", words[1]));
                command.retain(|word| word.as_str().unwrap().split('=').next() != Some(&flag));
                command.extend(rule.expect.opposite().map(|value| json!(format!("{flag}={value}"))));
                true
            }
            Look::Kubelet([_, path]) => {
                let file = find(&mut self.node, "files", "path", "/var/lib/kubelet/config.yaml").unwrap();
                let (parents, key) = path.rsplit_once('.').unwrap_or(("", path));
                let parents = parents.split('.').filter(|parent| !parent.is_empty());
                let object = parents.fold(&mut file["content"]["yaml"], |value, parent| &mut value[parent]);
                object[key] = rule.expect.opposite().map_or(Value::Null, Value::from);
                if object[key].is_null() {
                    object.as_object_mut().unwrap().remove(key);
                }
                true
            }
        }
    }
}

impl Seen {
    fn add_process(&mut self, command: Vec<String>) {
        let name = command[0].rsplit('/').next().unwrap().to_owned();
        self.processes.insert(name, command);
    }

    fn add_containers(&mut self, pod: &Value) {
        for container in items(pod, "containers") {
            self.add_process(items(container, "command").map(text).collect());
        }
    }
}

impl Expect {
    /// A value that the rule must refuse; `None` if the rule must refuse a missing value.
    fn opposite(&self) -> Option<String> {
        match self {
            Self::Within(_) | Self::Set(true) => None,
            Self::Is(_) | Self::Has(_) | Self::Set(false) => Some("loosened".to_owned()),
            Self::IsNot(value) | Self::Lacks(value) => Some(value.clone()),
            Self::AtLeast(number) => Some((number - 1).to_string()),
        }
    }
}

#[test]
fn no_rule_fails_on_what_is_rendered() {
    let benchmark = Benchmark::load();
    let [control_plane, worker] = render().map(|rendered| rendered.look());
    assert_eq!(benchmark.find_faults(Host::ControlPlane, &control_plane), [""; 0]);
    assert_eq!(benchmark.find_faults(Host::Every, &worker), [""; 0]);
}

#[test]
fn each_rule_fails_when_what_it_looks_at_is_loosened() {
    let benchmark = Benchmark::load();
    let [good, _] = render();
    let mut beyond = Vec::new();
    for rule in &benchmark.rules {
        let mut loose = good.clone();
        let is_said = loose.loosen(rule, &benchmark);
        let mut seen = loose.look();
        if !is_said {
            beyond.push(rule.id.as_str());
            let Look::Owner(paths) = &rule.look else { panic!("{}: {:?}", rule.id, rule.look) };
            let path = benchmark.resolve(paths, &seen)[0].to_owned();
            seen.files.get_mut(&path).unwrap().1 = "nobody:nogroup".to_owned();
        }
        assert!(benchmark.find_fault(rule, &seen).is_some(), "{} passes whatever it sees", rule.id);
        for other in benchmark.rules.iter().filter(|other| other.look != rule.look) {
            assert_eq!(benchmark.find_fault(other, &seen), None, "with what {} looks at", rule.id);
        }
    }
    assert_eq!(beyond, ["4.1.2"], "the node config has no owner of units: node up writes them as root");
}

#[test]
fn what_is_missing_is_a_fault() {
    let benchmark = Benchmark::load();
    let faults = benchmark.find_faults(Host::ControlPlane, &Seen::default());
    assert_eq!(faults.len(), 65, "{faults:#?}");
    let [control_plane, _] = render();
    let mut seen = control_plane.look();
    // kube-bench would take this file for the configuration of kubelet.
    seen.files.insert("/etc/kubernetes/kubelet-config.yaml".to_owned(), (0o644, "root:root".to_owned()));
    let ids: BTreeMap<String, String> =
        benchmark.find_faults(Host::ControlPlane, &seen).into_iter().map(|fault| (fault.clone(), fault)).collect();
    assert_eq!(ids.len(), 1, "{ids:#?}");
}
