//! kubeadm's side: the same hosts, kubeadm's own way from there to nodes, then the same addons and
//! the same probes.
//!
//! Where both cannot be treated alike, kubeadm has the advantage: its host gets binaries and images
//! by `cp` and `ctr` without any verification, all at once; its configuration, units and turnup's
//! own binary (which only watches) are there before the clock starts; its preflight checks, many of
//! which cannot pass in a container, are skipped; its own word counts for the API server. Its two
//! addons are replaced by the manifests that turnup applies, because they would need images of
//! another layout.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::artifacts::Lock;
use crate::bootstrap::{KUBECONFIG, base_config, shared_disk_thresholds};
use crate::cluster::Cluster;
use crate::error::{Context as _, Error, Result};
use crate::exec::Stream;
use crate::inventory::{Host, Inventory, Role};
use crate::node::node_config::{Content, File, Health, Unit};
use crate::node::{Facts, NodeConfig, layout};
use crate::phase::{Cx, Engine, Sink, What};
use crate::{addons, validate};

use super::milestone::{Milestone, Times, of_kubeadm};
use super::workspace::Workspace;
use super::{Sample, Start};

const CONFIG: &str = "/etc/kubernetes/kubeadm.yaml";
const PATH: &str = "PATH=/opt/turnup/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const SOCKET: &str = "unix:///run/containerd/containerd.sock";
/// What kubeadm's own packages bring along for kubelet.
const KUBELET_UNIT: &str = r#"[Unit]
Description=kubelet
After=containerd.service
StartLimitIntervalSec=0

[Service]
Environment=PATH=/opt/turnup/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=/opt/turnup/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS
Restart=always
RestartSec=10
KillMode=process

[Install]
WantedBy=multi-user.target
"#;

/// One cluster from kubeadm; the clock starts when the hosts are up.
pub(super) fn measure(place: &Workspace, start: Start) -> Result<Sample> {
    let hosts = place.provision()?;
    let silent = place.context(Sink::null());
    let cluster = place.cluster(&silent)?;
    let inventory = cluster.inventory()?;
    let token = random_token()?;
    let (mut machines, mut watched) = (Vec::new(), None);
    for host in &inventory.hosts {
        let facts = base_config::gather_facts(&cluster, host, &silent)?;
        let machine = base_config::base_config(&cluster, &inventory, host, &facts)?;
        let config = configuration(&cluster, &inventory, host, &facts, &token)?;
        let prepared = prerequisites(&machine, &config);
        base_config::apply(&cluster, host, prepared.clone(), &silent)?;
        machines.push((host, install_script(&cluster, machine)?));
        if host.role == Role::ControlPlane {
            watched = Some(prepared);
        }
    }
    let watched = watched.ok_or_else(|| Error::bug("the inventory has no control-plane host"))?;
    if start == Start::Preloaded {
        install(&cluster, &machines)?;
    }
    let (sink, events) = Sink::channel();
    let cx = place.context(sink.clone());
    if start == Start::Scratch {
        install(&cluster, &machines)?;
    }
    bring_up(&cluster, &inventory, watched, &sink, &cx)?;
    drop((sink, cx));
    let events: Vec<_> = events.try_iter().collect();
    Ok(Sample { hosts, times: Times::read(&events, 0.0) })
}

/// Everything after the hosts have binaries and images.
fn bring_up(cluster: &Arc<Cluster>, inventory: &Inventory, watched: NodeConfig, sink: &Sink, cx: &Cx) -> Result<()> {
    let control_plane = inventory.control_plane()?;
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| watch_etcd(cluster, control_plane, watched, cx));
        init(cluster, control_plane, sink)?;
        watch.join().unwrap_or_else(|_| Err(Error::bug("the thread that watches etcd panicked")))
    })?;
    let ssh = cluster.ssh(control_plane)?;
    let kubeconfig = ssh.run(&["cat", &layout::kubeconfig("admin")])?.stdout;
    cluster.store.write_file(KUBECONFIG, kubeconfig.as_bytes(), 0o600)?;
    join(cluster, inventory)?;
    let lock = cluster.store.lock("turnup bench")?;
    Engine::new(&cluster.store, &lock, sink.clone()).run(&addons::phase(cluster)?)?;
    validate::run(cluster, cx, true, cluster.settings.validation.timeout)?.into_result()
}

fn init(cluster: &Cluster, host: &Host, sink: &Sink) -> Result<()> {
    let argv = ["env", PATH, "kubeadm", "init", "--config", CONFIG];
    cluster.ssh(host)?.log(cluster.store.path("kubeadm.log")).stream(&argv, |stream, line| {
        let reached = if stream == Stream::Stdout { of_kubeadm(line) } else { None };
        if let Some(milestone) = reached {
            sink.emit(What::Milestone { step: "kubeadm".into(), name: event_name(milestone, &host.name) });
        }
    })?;
    Ok(())
}

fn event_name(milestone: Milestone, host: &str) -> String {
    if milestone == Milestone::Registered { format!("node {host} registered") } else { milestone.name().to_owned() }
}

/// turnup on the host, with nothing to do but to wait for etcd, as it does for its own. The node
/// config is the one that the host has: `node up` would remove what another one lacks.
fn watch_etcd(cluster: &Cluster, host: &Host, config: NodeConfig, cx: &Cx) -> Result<()> {
    let url = "http://127.0.0.1:2381/health".into();
    let health = vec![Health { name: Milestone::Etcd.name().into(), url, pod: "kube-system_etcd-".into() }];
    base_config::apply(cluster, host, NodeConfig { health, ..config }, cx)
}

/// Workers one after another, as kubeadm's documentation has it; their discovery trusts the
/// address, which saves them a hash.
fn join(cluster: &Cluster, inventory: &Inventory) -> Result<()> {
    for host in inventory.hosts.iter().filter(|host| host.role == Role::Worker) {
        let argv = ["env", PATH, "kubeadm", "join", "--config", CONFIG];
        cluster.ssh(host)?.log(cluster.store.path("kubeadm.log")).run(&argv)?;
    }
    Ok(())
}

/// Kernel settings, directories and files, but neither binaries nor images, and nothing started.
fn prerequisites(machine: &NodeConfig, config: &str) -> NodeConfig {
    let file = |path: &str, text: &str| File::new(path, 0o600, 0, Content::Text(text.into()));
    let mut files = machine.files.clone();
    files.extend(machine.units.iter().map(|Unit { name, text, .. }| file(&layout::unit_file(name), text)));
    files.push(file(&layout::unit_file("kubelet.service"), KUBELET_UNIT));
    files.push(file(CONFIG, config));
    NodeConfig { files, binaries: Vec::new(), images: Vec::new(), units: Vec::new(), ..machine.clone() }
}

/// Copies and imports with the plainest tools, everything at once.
fn install_script(cluster: &Cluster, machine: NodeConfig) -> Result<String> {
    let selection = Lock::load(&cluster.work_dir)?.select(&cluster.settings.kubernetes_version)?;
    let kubeadm = cluster.cache()?.ensure(
        selection.binary("kubeadm")?,
        &cluster.settings.sources,
        &crate::artifacts::NoProgress,
    )?;
    let kubeadm = kubeadm.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let blobs = machine.blobs.first().cloned().unwrap_or_default();
    let mut binaries: Vec<(String, String)> =
        machine.binaries.into_iter().map(|binary| (binary.sha256, binary.path)).collect();
    binaries.push((kubeadm, layout::program("kubeadm")));
    let copies = binaries.iter().map(|(sha256, path)| format!("install -D -m 755 {blobs}/{sha256} {path}"));
    let ctr = format!("{} --namespace k8s.io images", layout::CTR);
    let imports =
        machine.images.iter().map(|image| format!("{ctr} import --local {blobs}/{} >/dev/null", image.sha256));
    let mut script = String::from("set -eu\n");
    write_parallel(&mut script, copies);
    script.push_str("systemctl daemon-reload\nsystemctl enable --quiet --now containerd.service\n");
    write_parallel(&mut script, imports);
    Ok(script)
}

fn write_parallel(script: &mut String, commands: impl Iterator<Item = String>) {
    script.push_str("pids=\n");
    for command in commands {
        // Writing to a String cannot fail.
        let _ = writeln!(script, "{command} & pids=\"$pids $!\"");
    }
    script.push_str("for pid in $pids; do wait \"$pid\"; done\n");
}

/// All hosts at once.
fn install(cluster: &Cluster, machines: &[(&Host, String)]) -> Result<()> {
    std::thread::scope(|scope| {
        let run = |host: &Host, script: &str| cluster.ssh(host)?.run(&["sh", "-c", script]).map(drop);
        let threads: Vec<_> = machines.iter().map(|(host, script)| scope.spawn(move || run(host, script))).collect();
        let joined = |thread: std::thread::ScopedJoinHandle<'_, Result<()>>| {
            thread.join().unwrap_or_else(|_| Err(Error::bug("a thread that installs kubeadm's host panicked")))
        };
        threads.into_iter().try_for_each(joined)
    })
}

fn random_token() -> Result<String> {
    let mut bytes = [0_u8; 11];
    getrandom::fill(&mut bytes).context("the system has no random numbers")?;
    let text = hex::encode(bytes);
    Ok(format!("{}.{}", &text[..6], &text[6..]))
}

/// kubeadm's configuration of one host: YAML documents, each of which is JSON.
fn configuration(cluster: &Cluster, inventory: &Inventory, host: &Host, facts: &Facts, token: &str) -> Result<String> {
    let documents = if host.role == Role::ControlPlane {
        let (init, cluster) = init_configuration(cluster, inventory, host, token)?;
        vec![init, cluster, kubelet_configuration(facts)]
    } else {
        vec![join_configuration(inventory, host, token)]
    };
    let texts: Vec<String> = documents.iter().map(|document| format!("---\n{document:#}\n")).collect();
    Ok(texts.concat())
}

const API: &str = "kubeadm.k8s.io/v1beta4";

fn registration(host: &Host, taints: &Value) -> Value {
    json!({
        "name": host.name,
        "criSocket": SOCKET,
        "imagePullPolicy": "Never",
        "taints": taints,
        "kubeletExtraArgs": [{"name": "node-ip", "value": host.address}],
    })
}

fn init_configuration(cluster: &Cluster, inventory: &Inventory, host: &Host, token: &str) -> Result<(Value, Value)> {
    let settings = &cluster.settings;
    let resolved = cluster.resolved()?;
    let reference = |image: &str| -> Result<(String, String)> {
        let text = resolved.reference(image)?;
        let (name, tag) = text.rsplit_once(':').unwrap_or((&text, ""));
        let repository = name.rsplit_once('/').map_or("", |(repository, _)| repository);
        Ok((repository.to_owned(), tag.to_owned()))
    };
    let workers = inventory.hosts.iter().any(|host| host.role == Role::Worker);
    let taint = json!([{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]);
    let init = json!({
        "apiVersion": API,
        "kind": "InitConfiguration",
        "bootstrapTokens": [{
            "token": token,
            "ttl": "1h0m0s",
            "usages": ["signing", "authentication"],
            "groups": ["system:bootstrappers:kubeadm:default-node-token"],
        }],
        "localAPIEndpoint": {"advertiseAddress": host.address, "bindPort": settings.api_port},
        "nodeRegistration": registration(host, &if workers { taint } else { json!([]) }),
        "skipPhases": ["preflight", "addon"],
    });
    let cluster = json!({
        "apiVersion": API,
        "kind": "ClusterConfiguration",
        "clusterName": settings.name,
        "kubernetesVersion": format!("v{}", settings.kubernetes_version),
        "imageRepository": reference("kube-apiserver")?.0,
        "etcd": {"local": {"imageTag": reference("etcd")?.1}},
        "networking": {
            "podSubnet": settings.pod_cidr.to_string(),
            "serviceSubnet": settings.service_cidr.to_string(),
            "dnsDomain": settings.cluster_domain,
        },
    });
    Ok((init, cluster))
}

fn join_configuration(inventory: &Inventory, host: &Host, token: &str) -> Value {
    json!({
        "apiVersion": API,
        "kind": "JoinConfiguration",
        "discovery": {"bootstrapToken": {
            "apiServerEndpoint": format!("{}:{}", inventory.api.host, inventory.api.port),
            "token": token,
            "unsafeSkipCAVerification": true,
        }},
        "nodeRegistration": registration(host, &json!([])),
        "skipPhases": ["preflight"],
    })
}

/// Only what a kubelet in such a host cannot do without.
fn kubelet_configuration(facts: &Facts) -> Value {
    let mut config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": if facts.cgroup == 2 { "systemd" } else { "cgroupfs" },
        "failCgroupV1": false,
        "failSwapOn": false,
    });
    if facts.container
        && let (Some(config), Value::Object(thresholds)) = (config.as_object_mut(), shared_disk_thresholds())
    {
        config.extend(thresholds);
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_waits_for_every_command_and_fails_with_any() {
        let mut script = String::new();
        write_parallel(&mut script, ["one".to_owned(), "two".to_owned()].into_iter());
        let expected =
            "pids=\none & pids=\"$pids $!\"\ntwo & pids=\"$pids $!\"\nfor pid in $pids; do wait \"$pid\"; done\n";
        assert_eq!(script, expected);
    }

    #[test]
    fn a_token_has_the_form_that_kubernetes_asks_for() {
        let token = random_token().unwrap_or_default();
        let (id, secret) = token.split_once('.').unwrap_or_default();
        assert_eq!((id.len(), secret.len()), (6, 16));
        assert!(
            token.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit() || byte.is_ascii_lowercase()),
            "{token}"
        );
    }
}
