//! Three control-plane hosts and three workers go from one minor version to the next under load.
//! Meanwhile every look at the cluster is held against Kubernetes' version skew policy, writes and
//! requests through a Service go on, and no budget is broken.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "asks the API while turnup runs")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster_support::{Site, say};
use crate::cluster_upgrade::{NEW, OLD, fewest_ready, none_is_cordoned, start_changed_shop, versions};
use crate::prober::{Prober, create, network_of};

const CONTROL_PLANES: [&str; 3] = ["it-control-plane-0", "it-control-plane-1", "it-control-plane-2"];
const WORKERS: [&str; 3] = ["it-worker-0", "it-worker-1", "it-worker-2"];
const REPLICAS: u32 = 6;
/// Pods of the shop that its budget wants to stay.
const BUDGET: u32 = 5;
/// How many minor versions older than the API servers a kubelet may be.
const KUBELET_SKEW: u32 = 3;

/// A minor version.
type Minor = u32;

fn minor(version: &str) -> Minor {
    version.trim_start_matches('v').split('.').nth(1).unwrap().parse().unwrap()
}

/// What one look found of the cluster, by host.
#[derive(Debug, Default)]
struct Look {
    /// API servers that answer.
    servers: BTreeMap<String, Minor>,
    /// What each host's API server was when it answered last, and it may have begun to answer while
    /// the rest was looked at.
    last: BTreeMap<String, Minor>,
    kubelets: BTreeMap<String, Minor>,
    /// Controller managers and schedulers that run: their host, too, is where their API server is.
    controllers: BTreeMap<String, Minor>,
    proxies: BTreeMap<String, Minor>,
}

impl Look {
    /// What is against the policy: <https://kubernetes.io/releases/version-skew-policy/>.
    fn violations(&self) -> Vec<String> {
        let mut found = Vec::new();
        let (Some(oldest), Some(newest)) = (self.servers.values().min(), self.servers.values().max()) else {
            return vec!["no API server answers".into()];
        };
        if newest - oldest > 1 {
            found.push(format!("API servers: {:?}", self.servers));
        }
        if self.servers.len() + 1 < CONTROL_PLANES.len() {
            found.push(format!("two API servers are away: {:?}", self.servers));
        }
        for (host, kubelet) in &self.kubelets {
            // Of a host of the control plane it asks the API server of that host.
            let limit = self.last.get(host).unwrap_or(oldest);
            if kubelet > limit || kubelet + KUBELET_SKEW < *newest {
                found.push(format!("kubelet of {host}: 1.{kubelet}, API servers: {:?}", self.servers));
            }
            if let Some(proxy) = self.proxies.get(host).filter(|proxy| *proxy > oldest || proxy.abs_diff(*kubelet) > 3)
            {
                found.push(format!("kube-proxy of {host}: 1.{proxy}, API servers: {:?}", self.servers));
            }
        }
        for (pod, controller) in &self.controllers {
            let host = CONTROL_PLANES.iter().find(|host| pod.ends_with(*host)).unwrap();
            if self.servers.get(*host).is_some_and(|server| controller > server) {
                found.push(format!("{pod}: 1.{controller}, API servers: {:?}", self.servers));
            }
        }
        found
    }
}

/// Ways to each API server, with the administrator's rights.
struct Doors(Vec<(String, u16, Child)>);

impl Drop for Doors {
    fn drop(&mut self) {
        for (_, _, proxy) in &mut self.0 {
            drop(proxy.kill());
            drop(proxy.wait());
        }
    }
}

impl Doors {
    fn open(site: &Site) -> Self {
        let kubectl = site.ok(&["artifacts", "path", "kubectl"]).out.trim().to_owned();
        let kubeconfig = format!("--kubeconfig={}", site.path("kubeconfig").display());
        let hosts = site.hosts();
        let open = |host: &&str| {
            let server = format!("--server=https://{}:6443", hosts[*host]["address"].as_str().unwrap());
            let mut proxy = Command::new(&kubectl)
                .args([&kubeconfig, &server, "proxy", "--port=0"])
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut line = String::new();
            BufReader::new(proxy.stdout.take().unwrap()).read_line(&mut line).unwrap();
            ((*host).to_owned(), line.trim().rsplit(':').next().unwrap().parse().unwrap(), proxy)
        };
        Self(CONTROL_PLANES.iter().map(open).collect())
    }

    /// `last` is what each API server was at earlier looks.
    fn look(&self, agent: &ureq::Agent, last: &mut BTreeMap<String, Minor>) -> Look {
        let get = |port: u16, path: &str| -> Option<Value> {
            let mut answer = agent.get(format!("http://127.0.0.1:{port}{path}")).call().ok()?;
            serde_json::from_str(&answer.body_mut().read_to_string().ok()?).ok()
        };
        let servers = || -> BTreeMap<String, Minor> {
            let version = |(host, port, _): &(String, u16, Child)| {
                Some((host.clone(), get(*port, "/version")?["minor"].as_str().unwrap().parse().unwrap()))
            };
            self.0.iter().filter_map(version).collect()
        };
        let mut look = Look { servers: servers(), ..Look::default() };
        let Some(port) = self.0.iter().find(|door| look.servers.contains_key(&door.0)).map(|door| door.1) else {
            return look;
        };
        let items = |path: &str| -> Vec<Value> {
            get(port, path).and_then(|list| list["items"].as_array().cloned()).unwrap_or_default()
        };
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
        for node in items("/api/v1/nodes") {
            look.kubelets.insert(name(&node), minor(node["status"]["nodeInfo"]["kubeletVersion"].as_str().unwrap()));
        }
        for pod in items("/api/v1/namespaces/kube-system/pods") {
            let container = &pod["status"]["containerStatuses"][0];
            if container["state"]["running"].is_null() {
                continue;
            }
            let image = container["image"].as_str().unwrap_or_default();
            let Some((image, tag)) = image.rsplit_once(':') else { continue };
            match image.rsplit('/').next().unwrap() {
                "kube-controller-manager" | "kube-scheduler" => drop(look.controllers.insert(name(&pod), minor(tag))),
                "kube-proxy" => {
                    look.proxies.insert(pod["spec"]["nodeName"].as_str().unwrap().to_owned(), minor(tag));
                }
                _ => {}
            }
        }
        last.extend(look.servers.clone());
        last.extend(servers());
        look.last.clone_from(last);
        look
    }
}

/// How many looks there were while `act` ran, and what they found.
fn looks_beside<R>(site: &Site, act: impl FnOnce() -> R) -> (R, usize, Vec<String>) {
    let doors = Doors::open(site);
    let is_over = Arc::new(AtomicBool::new(false));
    let looking = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(2)));
            let agent: ureq::Agent = config.build().into();
            let (mut looks, mut found, mut last) = (0, Vec::new(), BTreeMap::new());
            while !is_over.load(Ordering::SeqCst) {
                looks += 1;
                found.extend(doors.look(&agent, &mut last).violations());
                std::thread::sleep(Duration::from_millis(100));
            }
            (looks, found)
        }
    });
    let result = act();
    is_over.store(true, Ordering::SeqCst);
    let (looks, found) = looking.join().unwrap();
    (result, looks, found)
}

/// Six web servers behind a Service, of which five must stay; each serves until it is out of the
/// Service. Returns the Service's address.
fn open_shop(site: &Site) -> String {
    let stays = json!({"preStop": {"sleep": {"seconds": 5}}});
    start_changed_shop(site, REPLICAS, BUDGET, |pod| pod["containers"][0]["lifecycle"] = stays);
    site.kubectl(&["create", "service", "clusterip", "shop", "--tcp=80:8080"]);
    site.kubectl(&["get", "service", "shop", "--output=jsonpath={.spec.clusterIP}"])
}

#[test]
#[ignore = "six hosts and a second version of Kubernetes: make test-upgrade"]
fn cluster_upgrade_of_three_and_three_keeps_the_version_skew() {
    let Some(site) = Site::of_cluster("upgrade-skew", "10.125.119.0/24", 3) else { return };
    let old = format!("phase2.kubernetes_version={OLD}");
    site.ok(&["config", "set", "phase1.control_plane.count=3", &old]);
    site.warm_cache();
    site.ok(&["up"]);
    let address = open_shop(&site);
    site.ok(&["config", "set", &format!("phase2.kubernetes_version={NEW}")]);
    // What is built and fetched is no part of the time.
    site.warm_cache();

    let network = network_of(&site, WORKERS[0]);
    let visits = Prober::start(move |_| {
        let mut command = Command::new("nsenter");
        command.arg(&network).args([
            "curl",
            "--silent",
            "--fail",
            "--max-time",
            "3",
            &format!("http://{address}/readyz"),
        ]);
        command
    });
    let writes = Prober::by_balancer(&site, WORKERS[0], create(&site.dir));
    let since = Instant::now();
    let ((((), fewest), seconds), looks, found) = looks_beside(&site, || {
        let upgraded = fewest_ready(&site, || drop(site.ok(&["up"])));
        (upgraded, since.elapsed().as_secs_f64())
    });
    let (failed, twice, all) = visits.failures();
    let (pause, pauses) = (writes.longest_pause(since), writes.pauses(since, 1.5));
    say(&format!(
        "3+3 from {OLD} to {NEW}: {seconds:.0} s, no write for {pause:.1} s at most, {failed} of {all} requests to the Service \
         failed, {twice} of them twice, {fewest} of {REPLICAS} pods ready at least, {looks} looks at the versions; pauses in writes (at, seconds): {pauses:.1?}"
    ));
    for why in writes.reasons(since) {
        say(&format!("a write failed at {why}"));
    }
    assert_eq!(found, Vec::<String>::new(), "of {looks} looks");
    assert!(looks > 20 && all > 20, "{looks} looks, {all} requests");
    assert!(fewest >= i64::from(BUDGET), "only {fewest} pods were ready");
    assert_eq!(twice, 0, "of {all} requests");
    drop((visits, writes));
    assert!(versions(&site).iter().all(|(_, version)| version.ends_with(NEW)), "{:?}", versions(&site));
    none_is_cordoned(&site);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    site.ok(&["down", "--yes"]);
}
