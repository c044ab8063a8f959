//! Reads what was rendered as the program that is given it would: YAML, JSON, TOML, units; flags
//! and fields against the tables of the Kubernetes version. Says what that program would refuse.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::path::Path;

use serde_json::Value;

use crate::addons::Object;
use crate::component::{Reference, ReferenceFile};
use crate::node::{NodeConfig, layout};

/// All that would be refused of one rendered file.
pub(super) fn mistakes(path: &str, text: &str, reference: &Reference) -> Vec<String> {
    let found = match path.split_once('/') {
        Some(("node-config", _)) => node_config(text, reference),
        Some(("addons", _)) => manifest(text, reference),
        Some(("user-data", name)) if !name.starts_with("token") => user_data(text),
        _ if Path::new(path).extension().is_some_and(|end| end == "json") => json(text),
        _ => Vec::new(),
    };
    found.into_iter().map(|mistake| format!("{path}: {mistake}")).collect()
}

fn json(text: &str) -> Vec<String> {
    serde_json::from_str::<Value>(text).err().map(|error| error.to_string()).into_iter().collect()
}

fn user_data(text: &str) -> Vec<String> {
    if text.starts_with('{') { json(text) } else { yaml(text).err().into_iter().collect() }
}

fn yaml(text: &str) -> Result<Value, String> {
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}

fn manifest(text: &str, reference: &Reference) -> Vec<String> {
    let objects = match Object::read(text) {
        Ok(objects) => objects,
        Err(why) => return vec![why],
    };
    let configs = objects.iter().filter_map(|(_, object)| object["data"]["config.yaml"].as_str());
    configs.flat_map(|text| yaml(text).map_or_else(|why| vec![why], |value| config(&value, reference))).collect()
}

fn node_config(text: &str, reference: &Reference) -> Vec<String> {
    if let Err(error) = NodeConfig::parse("", text) {
        return vec![error.render()];
    }
    let node: Value = serde_json::from_str(text).unwrap_or_default();
    let files = node["files"].as_array().into_iter().flatten();
    let of_files = files.flat_map(|file| {
        let path = file["path"].as_str().unwrap_or_default();
        let found = file_content(path, &file["content"], reference);
        found.into_iter().map(move |mistake| format!("{path}: {mistake}"))
    });
    let units = node["units"].as_array().into_iter().flatten();
    let of_units = units.flat_map(|unit| {
        let name = unit["name"].as_str().unwrap_or_default();
        let found = unit_text(name, unit["text"].as_str().unwrap_or_default(), reference);
        found.into_iter().map(move |mistake| format!("{name}: {mistake}"))
    });
    of_files.chain(of_units).collect()
}

fn file_content(path: &str, content: &Value, reference: &Reference) -> Vec<String> {
    if let Some(pod) = layout::static_pod(path) {
        return static_pod(pod, &content["yaml"], reference);
    }
    if content["yaml"].is_object() {
        return config(&content["yaml"], reference);
    }
    let Some(text) = content["text"].as_str().filter(|_| path.starts_with("/etc/containerd/")) else {
        return Vec::new();
    };
    toml::from_str::<toml::Table>(text).err().map(|error| error.to_string()).into_iter().collect()
}

fn static_pod(name: &str, pod: &Value, reference: &Reference) -> Vec<String> {
    if pod["kind"] != "Pod" || pod["apiVersion"] != "v1" || pod["metadata"]["name"] != name {
        return vec![format!("it is no pod {name}: {}", pod["kind"])];
    }
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let commands = containers.map(|container| {
        let words = container["command"].as_array().into_iter().flatten();
        words.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    });
    commands.flat_map(|command| flags(&command, reference)).collect()
}

/// A command of a component: each flag is there, and takes its value.
fn flags(command: &[String], reference: &Reference) -> Vec<String> {
    let Some((program, flags)) = command.split_first() else { return vec!["it has no command".to_owned()] };
    let program = program.rsplit('/').next().unwrap_or_default();
    let Some(component) = reference.component(program) else { return Vec::new() };
    let judge = |flag: &String| {
        let Some((name, value)) = flag.strip_prefix("--").and_then(|flag| flag.split_once('=')) else {
            return Some(format!("{program}: {flag} is no --NAME=VALUE"));
        };
        let Some(known) = component.flag(name) else { return Some(format!("{program} has no --{name}")) };
        let unknown = known.unknown_word(value).map(|word| format!("{program} {flag}: it knows no {word}"));
        unknown.or_else(|| (!known.accepts(value)).then(|| format!("{program} {flag}: it is no {}", known.type_name)))
    };
    flags.iter().filter_map(judge).collect()
}

/// A configuration file of a component of Kubernetes: each field is there, and takes its value.
fn config(value: &Value, reference: &Reference) -> Vec<String> {
    let Some(kind) = value["kind"].as_str() else { return Vec::new() };
    let Some(file) = reference.components.values().find_map(|component| component.file(kind)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if value["apiVersion"] != file.api_version.as_str() {
        found.push(format!("{kind} is of {}, not of {}", file.api_version, value["apiVersion"]));
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        if !["kind", "apiVersion"].contains(&name.as_str()) {
            field(file, name, value, &mut found);
        }
    }
    found
}

fn field(file: &ReferenceFile, path: &str, value: &Value, found: &mut Vec<String>) {
    let Some(known) = file.field(path) else { return found.push(format!("there is no field {path}")) };
    if !known.field_type.accepts(value) {
        return found.push(format!("{path}: {value} is no {}", known.field_type));
    }
    let below = |path: &str| file.fields.keys().any(|known| known.starts_with(path));
    if below(&format!("{path}[].")) {
        for member in value.as_array().into_iter().flatten().flat_map(|one| one.as_object().into_iter().flatten()) {
            field(file, &format!("{path}[].{}", member.0), member.1, found);
        }
    } else if below(&format!("{path}.")) && !below(&format!("{path}.*")) {
        for (name, value) in value.as_object().into_iter().flatten() {
            field(file, &format!("{path}.{name}"), value, found);
        }
    }
}

/// A unit as systemd reads it (systemd.syntax(7)).
fn unit_text(name: &str, text: &str, reference: &Reference) -> Vec<String> {
    let (mut section, mut found) = (String::new(), Vec::new());
    for line in joined_lines(text) {
        if let Some(inner) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            inner.clone_into(&mut section);
            continue;
        }
        match line.split_once('=') {
            _ if section.is_empty() => found.push(format!("{line} is in no section")),
            Some((key, _)) if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                found.push(format!("{line} has no key"));
            }
            Some(("ExecStart", command)) if name == "kubelet.service" => match shell_words::split(command) {
                Ok(words) => found.extend(flags(&words, reference)),
                Err(error) => found.push(format!("{command}: {error}")),
            },
            Some(_) => {}
            None => found.push(format!("{line} is neither a section nor KEY=VALUE")),
        }
    }
    found
}

/// Lines without comments, each with those that continue it.
fn joined_lines(text: &str) -> Vec<String> {
    let (mut lines, mut open) = (Vec::new(), String::new());
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        match line.strip_suffix('\\') {
            Some(start) => open.extend([start.trim_end(), " "]),
            None => lines.push(std::mem::take(&mut open) + line),
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

#[test]
fn what_a_component_would_refuse_is_found() {
    let source = crate::config::TreeSource::embedded();
    let reference = Reference::load(&source, "1.36.3").unwrap();
    let kubelet = serde_json::json!({
        "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1", "maxPods": "many", "maxPod": 1,
        "authentication": {"anonymous": {"enable": false}}, "registerWithTaints": [{"key": "a", "efect": "NoSchedule"}],
    });
    let found = config(&kubelet, &reference);
    assert_eq!(found.len(), 4, "{found:?}");
    let command = ["/bin/etcd", "--name=a", "--nam=a", "--snapshot-count=many"].map(str::to_owned);
    assert_eq!(flags(&command, &reference).len(), 2);
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-proxy}\ndata:\n  config.yaml: |\n    \
                    apiVersion: kubeproxy.config.k8s.io/v1alpha1\n    kind: KubeProxyConfiguration\n    moda: nftables\n";
    assert_eq!(mistakes("addons/kube-proxy.yaml", manifest, &reference).len(), 1);
    let unit = "Type=simple\n[Service]\nExecStart=/bin/kubelet \\\n  --v=2 \\\n  # said\n  --w=2\nnonsense\n";
    assert_eq!(unit_text("kubelet.service", unit, &reference).len(), 3);
    assert_eq!(file_content("/etc/containerd/config.toml", &serde_json::json!({"text": "a = "}), &reference).len(), 1);
}
