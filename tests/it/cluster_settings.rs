//! Every setting of a component, with another value than its default, on a real cluster: what the
//! running components say of themselves is what the settings say. A setting without an effect that
//! shows fails here.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeSet;

use serde_json::{Value, json};
use turnup::artifacts::Lock;
use turnup::component::{find_flag, is_same};
use turnup::config::{Assignment, ComponentName, Destination, Settings, TreeSource, flag_text};
use turnup::exec::Run;

use crate::cluster_agent::without_agents;
use crate::cluster_reset::on_host;
use crate::cluster_support::{Site, say};
use crate::settings_flipped::{FLIPPED, FURTHER, LEFT_OUT, OWN_IMAGE, write_files};

const CONTROL_PLANE: &str = "it-control-plane-0";
const WORKER: &str = "it-worker-0";
const SUBNET: &str = "10.123.21.0/24";

/// Settings of components that this test does not know: a new one is to be shown here as well.
fn find_forgotten(settings: &Settings) -> Vec<String> {
    let known: BTreeSet<&str> = FLIPPED.iter().map(|(name, _)| *name).chain(LEFT_OUT.iter().copied()).collect();
    let schema = settings.schema();
    let set = schema.ordered().iter().copied().filter(|symbol| !schema.rule(*symbol).sets.is_empty());
    set.map(|symbol| schema.name(symbol).to_owned()).filter(|name| !known.contains(name.as_str())).collect()
}

/// What runs, as the components say it.
struct Effective {
    kubelet: Value,
    flagz: String,
    scheduler: Value,
    kube_proxy: Value,
    commands: String,
    pods: Value,
}

fn kubelet(site: &Site, node: &str) -> Value {
    let text = site.kubectl(&["get", "--raw", &format!("/api/v1/nodes/{node}/proxy/configz")]);
    serde_json::from_str::<Value>(&text).unwrap()["kubeletconfig"].clone()
}

/// What kube-proxy reads, and has read: `up` waits for pods of this configuration.
fn kube_proxy(site: &Site) -> Value {
    let args = ["get", "configmap", "kube-proxy", "--namespace=kube-system", "--output=json"];
    let map: Value = serde_json::from_str(&site.kubectl(&args)).unwrap();
    serde_saphyr::from_str(map["data"]["config.yaml"].as_str().unwrap()).unwrap()
}

impl Effective {
    fn of(site: &Site) -> Self {
        let file = on_host(site, CONTROL_PLANE, "cat /etc/kubernetes/kube-scheduler/scheduler.yaml");
        let every = "for cmdline in /proc/[0-9]*/cmdline; do tr '\\0' '\\n' <$cmdline 2>/dev/null; done";
        let pods = site.kubectl(&["get", "pods", "--namespace=kube-system", "--output=json"]);
        Self {
            kubelet: kubelet(site, WORKER),
            // Served since Kubernetes 1.36.
            flagz: site.try_kubectl(&["get", "--raw", "/flagz"]).unwrap_or_default(),
            scheduler: serde_saphyr::from_str(&file).unwrap(),
            commands: on_host(site, CONTROL_PLANE, every),
            kube_proxy: kube_proxy(site),
            pods: serde_json::from_str(&pods).unwrap(),
        }
    }

    /// What the API server says of a flag; its command line where it says nothing of any.
    fn flagz(&self, flag: &str) -> Option<&str> {
        if self.flagz.is_empty() {
            let value = |line: &'_ str| line.strip_prefix("--")?.strip_prefix(flag)?.strip_prefix('=').map(str::len);
            return self.commands.lines().find_map(|line| value(line).map(|length| &line[line.len() - length..]));
        }
        find_flag(&self.flagz, flag)
    }

    fn request(&self, component: ComponentName, resource: &str) -> Option<&Value> {
        let pods = self.pods["items"].as_array()?;
        let pod = pods.iter().find(|pod| pod["metadata"]["labels"]["component"] == component.name())?;
        pod["spec"]["containers"][0]["resources"]["requests"].get(resource)
    }

    fn has(&self, assignment: &Assignment) -> bool {
        let component = assignment.component;
        match &assignment.destination {
            Destination::Field(path) => {
                let config = match component {
                    ComponentName::Kubelet => &self.kubelet,
                    ComponentName::KubeProxy => &self.kube_proxy,
                    _ => &self.scheduler,
                };
                // kubelet leaves out what is false.
                let found = path.iter().try_fold(config, |value, part| value.get(part));
                contains(found.unwrap_or(&Value::Bool(false)), &assignment.value)
            }
            Destination::Flag(_) if component == ComponentName::Kubelet => self
                .commands
                .contains("--image-credential-provider-config=/etc/kubernetes/kubelet/image-credential-provider"),
            Destination::Flag(flag) => {
                let wanted = flag_text(&assignment.value).unwrap();
                let is_wanted = |found: &str| assignment.is_file || is_same(found, &wanted);
                if component == ComponentName::KubeApiserver && flag != "runtime-config" {
                    return self.flagz(flag).is_some_and(is_wanted);
                }
                let begin = format!("--{flag}=");
                self.commands.lines().any(|line| line.strip_prefix(&begin).is_some_and(is_wanted))
            }
            Destination::Request(resource) => self.request(component, resource) == Some(&assignment.value),
        }
    }
}

fn contains(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| found.get(key).is_some_and(|found| contains(found, value)))
        }
        (Value::String(found), Value::String(wanted)) => is_same(found, wanted),
        _ => found == wanted,
    }
}

#[test]
#[ignore = "some minutes: make test-settings"]
fn every_setting_of_a_component_shows_in_what_runs() {
    let Some(site) = Site::of_cluster("settings", SUBNET, 1) else { return };
    let effective = flip_all(&site);
    further_settings_show(&site, &effective);
    the_container_runtime_is_what_the_settings_say(&site);
    overrides_show(&site, &effective);
    settings_of_hosts_show(&site);
    a_kubelet_that_does_not_run_as_declared_is_named(&site);
    a_static_pod_that_does_not_run_as_declared_is_named(&site);
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");
    what_is_read_again_restarts_nothing_and_the_rest_restarts_its_reader(&site);
    settings_of_hosts_go(&site);
    site.ok(&["down", "--yes"]);
}

/// The same values on every other version of Kubernetes that is pinned.
#[test]
#[ignore = "builds further versions of Kubernetes: make test-settings"]
fn every_setting_of_a_component_shows_in_the_other_versions() {
    let lock = Lock::embedded().unwrap();
    for version in lock.versions().into_iter().filter(|version| **version != lock.default) {
        let Some(site) = Site::of_cluster("settings-of", SUBNET, 1) else { return };
        site.ok(&["config", "set", &format!("phase2.kubernetes_version={version}")]);
        site.warm_cache();
        let effective = flip_all(&site);
        let nodes = site.get(&["nodes"]);
        for node in &nodes {
            assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], format!("v{version}"));
        }
        further_settings_show(&site, &effective);
        the_container_runtime_is_what_the_settings_say(&site);
        overrides_show(&site, &effective);
        assert_eq!(find_drifts(&site), Vec::<Value>::new(), "{version}: all that is declared is in effect");
        assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");
        site.ok(&["down", "--yes"]);
        say(&format!("every setting of a component shows in Kubernetes {version} of {} nodes", nodes.len()));
    }
}

/// Gives every setting its other value, and brings the cluster up: what runs then is it.
fn flip_all(site: &Site) -> Effective {
    write_files(site);
    let files = json!([{"name": "pass", "path": "/usr/libexec/kubernetes/credential-providers/pass", "file": "pass.sh", "mode": "0755"}]);
    let pairs = FLIPPED.iter().chain(FURTHER).map(|(name, value)| format!("{name}={value}"));
    let pairs: Vec<String> = pairs.chain([format!("phase2.host.file_assets={files}")]).collect();
    let mut words = vec!["config", "set"];
    words.extend(pairs.iter().map(String::as_str));
    site.ok(&words);
    for name in ["webhook.conf", "registry.json"] {
        fs_err::set_permissions(site.dir.join(name), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }
    let settings = Settings::load(&site.dir.join(".config.json"), &TreeSource::embedded()).unwrap();
    assert_eq!(find_forgotten(&settings), Vec::<String>::new(), "settings of components that are not flipped here");
    assert_eq!(site.ok(&["config", "check"]).code, Some(0));
    site.ok(&["up"]);

    let effective = Effective::of(site);
    let assignments = settings.assignments().unwrap();
    let flipped = assignments.iter().filter(|assignment| !assignment.is_default);
    let (mut seen, mut missing) = (0, Vec::new());
    for assignment in flipped {
        if effective.has(assignment) {
            seen += 1;
        } else {
            let Assignment { component, destination, value, origin, .. } = assignment;
            missing.push(format!("{origin}: {component} {destination} is not {value}"));
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "of {} that show {seen}", assignments.len());
    assert!(seen > FLIPPED.len(), "{seen}");
    effective
}

/// Values in effect that differ from the node configs, as `turnup status` names them.
fn find_drifts(site: &Site) -> Vec<Value> {
    // A kubelet that restarts does not answer, which is no success.
    let status: Value = serde_json::from_str(&site.run(&["status", "--output", "json"]).out).unwrap();
    status["drifts"].as_array().cloned().unwrap_or_default()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed().as_secs() < 180, "{what} did not come");
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

fn a_kubelet_that_does_not_run_as_declared_is_named(site: &Site) {
    assert_eq!(find_drifts(site), Vec::<Value>::new(), "all that is declared is in effect");
    let drifts = without_agents(site, &[WORKER], || {
        on_host(site, WORKER, "sed --in-place 's/^podPidsLimit: .*/podPidsLimit: 4000/' /var/lib/kubelet/config.yaml");
        on_host(site, WORKER, "systemctl restart kubelet");
        wait_until("the edited value", || find_drifts(site).iter().any(|drift| drift["effective"] == "4000"));
        find_drifts(site)
    });
    assert_eq!(drifts.len(), 1, "{drifts:?}");
    assert_eq!([&drifts[0]["node"], &drifts[0]["component"], &drifts[0]["entry"]], [WORKER, "kubelet", "podPidsLimit"]);
    // The host's agent mends the file and restarts kubelet.
    let configz = format!("/api/v1/nodes/{WORKER}/proxy/configz");
    wait_until("the declared value", || {
        site.try_kubectl(&["get", "--raw", &configz]).is_ok_and(|said| said.contains("\"podPidsLimit\":2048"))
    });
    assert_eq!(find_drifts(site), Vec::<Value>::new());
}

fn a_static_pod_that_does_not_run_as_declared_is_named(site: &Site) {
    let manifest = "/etc/kubernetes/manifests/kube-controller-manager.yaml";
    let is_this = |drift: &Value| {
        drift["node"] == CONTROL_PLANE
            && drift["component"] == "kube-controller-manager"
            && drift["entry"] == "--kube-api-qps"
    };
    without_agents(site, &[CONTROL_PLANE], || {
        on_host(site, CONTROL_PLANE, &format!("sed --in-place s/--kube-api-qps=90/--kube-api-qps=91/ {manifest}"));
        let is_found = |drift: &Value| is_this(drift) && drift["effective"] == "91" && drift["declared"] == "90";
        wait_until("the edited flag", || find_drifts(site).iter().any(is_found));
    });
    wait_until("the declared flag", || find_drifts(site).is_empty() && site.run(&["status"]).code == Some(0));
}

fn further_settings_show(site: &Site, effective: &Effective) {
    let ran = |script: &str| on_host(site, CONTROL_PLANE, script);
    let told = || ran("journalctl --unit=turnup-agent --output=cat");
    wait_until("a defragmentation", || told().contains("defragmented the etcd member"));
    for (flag, wanted) in [
        ("authorization-mode", "Node,RBAC,Webhook"),
        ("enable-admission-plugins", "NodeRestriction,PodNodeSelector"),
        ("service-account-issuer", "https://oidc.example.com/it,https://kubernetes.default.svc.cluster.local"),
        ("feature-gates", "ContextualLogging=false"),
        ("service-node-port-range", "31000-31999"),
    ] {
        let listed = effective.commands.lines().filter_map(|line| line.strip_prefix(&format!("--{flag}=")));
        let listed = listed.collect::<Vec<_>>().join(",");
        let found = effective.flagz(flag);
        assert!(
            found.is_some_and(|found| is_same(found, wanted)) || listed.contains(wanted),
            "{flag}: {found:?} {listed}"
        );
    }
    assert_eq!(effective.kubelet["featureGates"]["ContextualLogging"], false);
    assert_eq!(effective.kubelet["imagePullCredentialsVerificationPolicy"], "NeverVerify");
    assert_eq!(effective.kubelet["tlsMinVersion"], "VersionTLS12");
    assert_eq!(effective.scheduler["podMaxBackoffSeconds"], 20);
    assert!(effective.scheduler.to_string().contains("MostAllocated"), "{}", effective.scheduler);
    let node = site.kubectl(&["get", "node", WORKER, "--output=jsonpath={.metadata.labels.environment}"]);
    assert_eq!(node, "staging");
    let certificate = ran("cat /etc/kubernetes/kube-apiserver/server.crt");
    let (_, pem) = x509_parser::pem::parse_x509_pem(certificate.as_bytes()).unwrap();
    let certificate = pem.parse_x509().unwrap();
    let left = certificate.validity().not_after.timestamp() - jiff::Timestamp::now().as_second();
    assert!((719 * 3600..=720 * 3600).contains(&left), "{left}");
    assert!(certificate.public_key().raw.len() > 100, "a key of P-384 is longer than one of P-256");
    assert_eq!(effective.kubelet["reservedMemory"][0]["numaNode"], 0);
    let authentication = ran("cat /etc/kubernetes/kube-apiserver/authentication.yaml");
    insta::assert_snapshot!("settings_authentication", authentication);
    let admission = ran("cat /etc/kubernetes/kube-apiserver/admission.yaml");
    insta::assert_snapshot!("settings_admission", admission);
    site.kubectl(&["create", "configmap", "kept", "--from-literal=word=hidden-at-rest"]);
    let stored = ran("ETCDCTL_API=3 /opt/turnup/bin/etcdctl --endpoints=https://127.0.0.1:2379 \
        --cacert=/etc/kubernetes/etcd/ca.crt --cert=/etc/kubernetes/etcd/server.crt --key=/etc/kubernetes/etcd/server.key \
        get /registry/configmaps/default/kept | grep --count --text hidden-at-rest || true");
    assert_eq!(stored.trim(), "0", "a ConfigMap is encrypted in etcd");
    let audited = ran("tail -n 50 /var/log/kubernetes/audit.log");
    assert!(audited.contains("\"level\":\"Metadata\"") && !audited.contains("RequestReceived"), "the own policy");
}

/// What is in force on a host of the settings of hosts.
fn host_state(site: &Site, node: &str) -> String {
    on_host(
        site,
        node,
        "cat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/ip_local_port_range | tr '\\t' ' '
         grep -h -E 'somaxconn|port_range' /etc/sysctl.d/90-turnup.conf
         getent hosts registry.example.com six.example.com
         grep 'open files' /proc/$(pidof -s containerd)/limits | tr -s ' '
         ls /etc/kubernetes/manifests/own.yaml 2>/dev/null || true",
    )
}

/// All values in files of this name in the cgroups of local hosts on this machine.
fn limits(file: &str) -> String {
    let find = format!("find /sys/fs/cgroup -maxdepth 4 -path '*/turnup-*' -name {file} -exec cat {{}} +");
    Run::new("sh").args(["-c", &find]).dir("/").output().map(|output| output.stdout).unwrap_or_default()
}

fn settings_of_hosts_show(site: &Site) {
    let common = "4097\n20000 60000\nnet.core.somaxconn = 4097\nnet.ipv4.ip_local_port_range = 20000 60000\n\
                  192.0.2.40 registry.example.com\n2001:db8::40 six.example.com\nMax open files 16384 16384 files";
    let plain = |text: String| {
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(plain(host_state(site, WORKER)), common);
    assert_eq!(plain(host_state(site, CONTROL_PLANE)), format!("{common}\n/etc/kubernetes/manifests/own.yaml"));
    let mode = on_host(site, CONTROL_PLANE, "stat --format=%a:%U /etc/kubernetes/manifests/own.yaml");
    assert_eq!(mode.trim(), "600:root");
    site.kubectl(&["get", "pod", "--namespace=kube-system", &format!("own-{CONTROL_PLANE}")]);
    let (memory, cpu) = (limits("memory.max") + &limits("memory.limit_in_bytes"), limits("cpu.max"));
    assert!(memory.contains("8388608000"), "{memory}");
    let quota = cpu + &limits("cpu.cfs_quota_us");
    assert!(quota.contains("350000"), "{quota}");
}

/// What was there before comes back, and a host that runs takes other limits.
fn settings_of_hosts_go(site: &Site) {
    site.ok(&["config", "set", "phase1.local.memory_limit=7000Mi", "phase1.local.cpu_limit="]);
    let names = ["sysctls", "extra_hosts", "open_files", "static_pods"].map(|name| format!("phase2.host.{name}"));
    let mut words = vec!["config", "unset"];
    words.extend(names.iter().map(String::as_str));
    site.ok(&words);
    site.ok(&["up"]);
    for node in [WORKER, CONTROL_PLANE] {
        let state = host_state(site, node);
        for gone in ["4097", "60000", "registry.example.com", "16384", "own.yaml"] {
            assert!(!state.contains(gone), "{node}: {gone}: {state}");
        }
        assert!(!on_host(site, node, "cat /etc/hosts").contains("turnup:"), "{node}");
    }
    let pods = site.kubectl(&["get", "pods", "--namespace=kube-system", "--output=name"]);
    assert!(!pods.contains("pod/own-"), "{pods}");
    let memory = limits("memory.max") + &limits("memory.limit_in_bytes");
    assert!(memory.contains("7340032000") && !memory.contains("8388608000"), "{memory}");
    let quota = limits("cpu.max") + &limits("cpu.cfs_quota_us");
    assert!(!quota.contains("350000"), "{quota}");
}

/// What containerd and kubelet of a worker say of themselves, and the files that they read at each
/// pull.
fn the_container_runtime_is_what_the_settings_say(site: &Site) {
    let ran = |script: &str| on_host(site, WORKER, script);
    let dump = ran("/opt/turnup/bin/containerd --config /etc/containerd/config.toml config dump 2>/dev/null");
    let config: toml::Value = toml::from_str(&dump).unwrap();
    assert_eq!(config["debug"]["level"].as_str(), Some("warn"), "{dump}");
    let plugins = &config["plugins"];
    assert_eq!(plugins["io.containerd.transfer.v1.local"]["max_concurrent_downloads"].as_integer(), Some(5));
    let images = &plugins["io.containerd.cri.v1.images"];
    assert_eq!(images["max_concurrent_downloads"].as_integer(), Some(3), "with another one it pulls in its old way");
    assert_eq!(images["registry"]["config_path"].as_str(), Some("/etc/containerd/certs.d"));
    let runtimes = &plugins["io.containerd.cri.v1.runtime"]["containerd"]["runtimes"];
    assert_eq!(runtimes["other"]["runtime_type"].as_str(), Some("io.containerd.runc.v2"), "{runtimes}");
    assert_eq!(runtimes["runc"]["options"]["BinaryName"].as_str(), Some("/opt/turnup/bin/runc"), "{runtimes}");
    let mirrors = ran("cat /etc/containerd/certs.d/docker.io/hosts.toml");
    assert!(mirrors.contains("https://mirror.example.com"), "{mirrors}");
    assert_eq!(ran("stat --format='%a %u' /var/lib/kubelet/config.json").trim(), "600 0");
    let names = ran("/opt/turnup/bin/ctr --namespace k8s.io images list --quiet");
    for name in ["docker.io/library/app:1", "registry.example.com:5000/k8s/coredns:"] {
        assert!(names.lines().any(|line| line.starts_with(name)), "{name}: {names}");
    }
    assert!(!names.contains("turnup.local/"), "{names}");
    let used =
        site.kubectl(&["get", "pods", "--all-namespaces", "--output=jsonpath={.items[*].spec.containers[*].image}"]);
    // The static pod of the user's own has an image of its own.
    let is_known = |image: &str| image == OWN_IMAGE || image.starts_with("registry.example.com:5000/k8s/");
    assert!(used.split(' ').all(is_known), "{used}");
    for program in ["containerd", "kubelet"] {
        let environment = ran(&format!("tr '\\0' '\\n' </proc/$(pidof -s {program})/environ"));
        for line in ["HTTP_PROXY=http://192.0.2.1:3128", "HTTPS_PROXY=http://192.0.2.1:3128"] {
            assert!(environment.lines().any(|found| found == line), "{program}: {environment}");
        }
        let direct = environment.lines().find_map(|line| line.strip_prefix("NO_PROXY=")).unwrap();
        for part in ["10.123.21.0/24", ".svc", ".cluster.local", ".example.com", "169.254.0.0/16"] {
            assert!(direct.split(',').any(|entry| entry == part), "{program}: {direct}");
        }
    }
    assert!(ran("cat /etc/apt/apt.conf.d/90turnup-proxy").contains("http://192.0.2.1:3128"));
    let authority = ran("cat /etc/turnup/proxy-ca.crt");
    let bundle = ran("cat /etc/ssl/certs/ca-certificates.crt");
    assert!(bundle.contains(authority.lines().nth(1).unwrap()), "every program of the host trusts the proxy's CA");
}

fn overrides_show(site: &Site, effective: &Effective) {
    assert_eq!(
        (&effective.kubelet["nodeStatusMaxImages"], &effective.kubelet["containerLogMaxWorkers"]),
        (&41.into(), &2.into())
    );
    let master = kubelet(site, CONTROL_PLANE);
    assert_eq!((&master["nodeStatusMaxImages"], &master["containerLogMaxWorkers"]), (&40.into(), &3.into()));
    assert_eq!((&effective.kubelet["syncFrequency"], &master["syncFrequency"]), (&"21s".into(), &"10s".into()));
    assert_eq!(effective.flagz("goaway-chance"), Some("0.001"));
    for flag in ["--concurrent-gc-syncs=21", "--max-txn-ops=200"] {
        assert!(effective.commands.lines().any(|line| line == flag), "{flag}");
    }
    assert_eq!(effective.scheduler["podInitialBackoffSeconds"], 2);
    assert_eq!(effective.kube_proxy["configSyncPeriod"], "10m");
    let mode = on_host(site, WORKER, "iptables-save --table=nat | grep --count KUBE-SVC");
    assert_ne!(mode.trim(), "0", "kube-proxy works by iptables");
    let planned = site.ok(&["plan", "--set", "phase2.overrides.kubelet.maxPods=90"]);
    assert!(planned.out.contains("maxPods"), "{planned}");
    let refused = site.fails(3, &["plan", "--set", "phase2.overrides.kubelet.maxPod=90"]);
    assert!(refused.err.contains("did you mean `maxPods`?"), "{refused}");
    let refused = site.fails(3, &["plan", "--set", "phase2.overrides.kube-apiserver.secure-port=90"]);
    assert!(refused.err.contains("turnup config explain phase2.api_port"), "{refused}");
}

fn what_is_read_again_restarts_nothing_and_the_rest_restarts_its_reader(site: &Site) {
    let process =
        || on_host(site, CONTROL_PLANE, "grep --files-with-matches --line-regexp kube-apiserver /proc/[0-9]*/comm");
    let before = process();
    site.ok(&["config", "set", "phase2.apiserver.oidc_client_id=another"]);
    site.ok(&["up"]);
    assert_eq!(process(), before, "the API server watches its authentication configuration");
    // A kind that is no longer encrypted stays readable, also after a start.
    site.ok(&["config", "set", "phase2.security.encryption_resources=secrets"]);
    site.ok(&["config", "set", "phase2.security.pod_security_enforce=restricted"]);
    site.ok(&["up"]);
    let kept = site.kubectl(&["get", "configmap", "kept", "--output=jsonpath={.data.word}"]);
    assert_eq!(kept, "hidden-at-rest");
    assert_ne!(process(), before, "only a start reads the admission configuration");
    let image = OWN_IMAGE;
    let refused = site.try_kubectl(&["run", "free", "--image", image]).unwrap_err();
    assert!(refused.contains("violates PodSecurity \"restricted:latest\""), "{refused}");
}
