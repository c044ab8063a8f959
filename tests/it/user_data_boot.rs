//! A host that boots with exactly the user data that turnup writes, run by the real cloud-init,
//! joins a real cluster unattended: through a server that breaks off and one with wrong bytes,
//! again after a loss of power, and again when it is recreated.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeSet;
use std::io::{Read as _, Seek as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::{Value, json};
use turnup::artifacts::Distribution;

use crate::cluster_identity;
use crate::cluster_support::{Site, say};
use crate::cluster_systems;
use crate::http_server::{self, Request, send, send_head};

const HOST: &str = "it-pool-0";
/// What cloud-init is told that the host is called.
const NODE: &str = "pool-seven";
/// debootstrap does not see which package has what python3-cryptography asks for.
pub(crate) const PACKAGES: &str = "cloud-init,python3-cffi-backend";
/// Files of the user's own for workers: a directory, in it bytes that are no text, a link to them.
const ASSETS: &str = r#"[
    {"name": "link", "path": "/etc/own.bytes", "link": "/srv/own/bytes", "roles": ["worker"]},
    {"name": "bytes", "path": "/srv/own/bytes", "base64": "/wA=", "mode": "0640", "owner_group": "adm", "roles": ["worker"]},
    {"name": "own", "path": "/srv/own", "directory": true, "mode": "2750", "owner": "daemon", "roles": ["worker"]}
]"#;
pub(crate) const COLD_CACHE: Duration = Duration::from_mins(30);
/// From the boot to a Node that is Ready, on a machine with other work.
const JOIN: Duration = Duration::from_mins(5);

/// Serves the directory of `turnup artifacts export` on the bridge of the hosts.
pub(crate) struct Mirror {
    pub(crate) url: String,
    /// The files already requested: the first answer for each file ends in the middle.
    seen: Arc<Mutex<BTreeSet<String>>>,
    /// Whether every answer has wrong bytes.
    lies: Arc<AtomicBool>,
    /// How many answers continued a partial download.
    resumed: Arc<AtomicUsize>,
}

impl Mirror {
    pub(crate) fn serve(dir: PathBuf, address: &str, port: u16) -> Self {
        let (seen, lies, resumed) = (Arc::default(), Arc::default(), Arc::default());
        let shared = (Arc::clone(&seen), Arc::clone(&lies), Arc::clone(&resumed));
        let url = http_server::serve((address, port), move |request, stream| {
            answer(&request, stream, &dir, &shared.0, &shared.1, &shared.2)
        });
        Self { url, seen, lies, resumed }
    }
}

fn answer(
    request: &Request,
    stream: &mut TcpStream,
    dir: &Path,
    seen: &Mutex<BTreeSet<String>>,
    lies: &AtomicBool,
    resumed: &AtomicUsize,
) -> std::io::Result<()> {
    let path = request.path.trim_start_matches('/').to_owned();
    let Ok(mut file) = fs_err::File::open(dir.join(&path)) else { return send(stream, "404 no", b"") };
    let from = request.first_byte() as u64;
    let size = file.metadata()?.len();
    file.seek(std::io::SeekFrom::Start(from))?;
    resumed.fetch_add(usize::from(from > 0), Ordering::SeqCst);
    send_head(stream, if from > 0 { "206 OK" } else { "200 OK" }, Some(size - from))?;
    let cut = seen.lock().unwrap().insert(path);
    let mut bytes = Vec::new();
    let wanted = if cut { (size - from) / 2 } else { size - from };
    file.take(wanted).read_to_end(&mut bytes)?;
    if lies.load(Ordering::SeqCst) {
        bytes.iter_mut().step_by(4096).for_each(|byte| *byte ^= 1);
    }
    stream.write_all(&bytes)
}

/// The description of one more host, on a root that has cloud-init, with no artifact of this
/// machine in sight.
fn describe_host(site: &Site, root: &str) -> PathBuf {
    let mut spec = site.spec("it-control-plane-0");
    let dir = site.path("hosts").join(HOST);
    let nothing = site.dir.join("no-blobs");
    fs_err::create_dir_all(&nothing).unwrap();
    spec["name"] = json!(HOST);
    spec["machine"] = json!(format!("tu-{}-pool0", site.id()));
    spec["interface"] = json!(format!("tu{}p0", site.id()));
    spec["address"] = json!("10.123.18.77");
    spec["dir"] = json!(dir);
    spec["root"] = json!(root);
    spec["blobs"] = json!(nothing);
    let path = site.path(&format!("provision/hosts/{HOST}.json"));
    fs_err::write(&path, serde_json::to_vec_pretty(&spec).unwrap()).unwrap();
    path
}

/// What a cloud's metadata service would answer of the machine and its name, where cloud-init looks
/// when there is none.
pub(crate) fn seed(site: &Site, host: &str, user_data: &Path, (instance, name): (&str, &str)) {
    let upper = site.path("hosts").join(host).join("upper");
    let nocloud = upper.join("var/lib/cloud/seed/nocloud");
    fs_err::create_dir_all(&nocloud).unwrap();
    fs_err::create_dir_all(upper.join("etc/cloud/cloud.cfg.d")).unwrap();
    fs_err::copy(user_data, nocloud.join("user-data")).unwrap();
    let meta_data = format!("instance-id: {instance}\nlocal-hostname: {name}\n");
    fs_err::write(nocloud.join("meta-data"), meta_data).unwrap();
    // The network is there already, as from a cloud's DHCP; the root has no package of locales.
    let here = "datasource_list: [NoCloud]\nnetwork: {config: disabled}\nlocale: false\n";
    fs_err::write(upper.join("etc/cloud/cloud.cfg.d/99-here.cfg"), here).unwrap();
}

fn node(site: &Site) -> Option<Value> {
    site.get(&["nodes"]).into_iter().find(|node| node["metadata"]["name"] == NODE)
}

fn boot_id(node: &Value) -> String {
    node["status"]["nodeInfo"]["machineID"].as_str().unwrap().to_owned()
}

fn condition<'n>(node: &'n Value, name: &str) -> &'n Value {
    let conditions = node["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|condition| condition["type"] == name).unwrap()
}

/// No kubelet may give itself this label.
fn its_role_comes_from_the_control_plane(site: &Site) {
    let start = Instant::now();
    while node(site).unwrap()["metadata"]["labels"]["node-role.kubernetes.io/worker"] != "" {
        assert!(start.elapsed() < JOIN, "{:#?}", node(site));
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Waits until the Node is Ready and has said so since.
fn wait_until_ready(site: &Site, since: &str) -> Value {
    let start = Instant::now();
    loop {
        let node = node(site);
        let ready = node.as_ref().is_some_and(|node| {
            let ready = condition(node, "Ready");
            ready["status"] == "True" && ready["lastHeartbeatTime"].as_str().unwrap() >= since
        });
        if ready {
            return node.unwrap();
        }
        if start.elapsed() > JOIN {
            site.in_host(
                HOST,
                "cat /var/log/cloud-init-output.log; journalctl --no-pager -u turnup-node -u kubelet | tail -60",
            );
        }
        assert!(start.elapsed() < JOIN, "{NODE} is not ready: {node:#?}");
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn local(site: &Site, verb: &str, spec: &Path) {
    site.ok(&["local", "host", verb, "--spec", &spec.display().to_string()]);
}

#[test]
#[ignore = "some minutes: make test-settings"]
fn a_host_joins_by_its_user_data_alone() {
    joins_by_its_user_data_alone("bookworm", 8098);
}

/// The cloud-init of Ubuntu, which is what the machines of gce run by default.
#[test]
#[ignore = "make test-settings: the same on Ubuntu 24.04"]
fn a_host_of_ubuntu_joins_by_its_user_data_alone() {
    joins_by_its_user_data_alone("noble", 8097);
}

/// What the settings name as the mirror of a release.
fn mirror_of(release: &str) -> &'static str {
    match Distribution::of(release) {
        Distribution::Debian => "",
        Distribution::Ubuntu => "http://archive.ubuntu.com/ubuntu",
    }
}

/// Each with a port of its own: a server lives as long as the process with all tests.
fn joins_by_its_user_data_alone(release: &str, port: u16) {
    let Some(site) = Site::of_cluster("userdata", "10.123.18.0/24", 0) else { return };
    if Distribution::of(release) == Distribution::Ubuntu {
        cluster_systems::install_keyring(&site);
    }
    let assets = format!("phase2.host.file_assets={ASSETS}");
    site.ok(&["config", "set", &format!("phase1.local.open_ports={port}"), &assets]);
    let made = site
        .start(&["artifacts", "rootfs", release, "--with", PACKAGES, "--mirror", mirror_of(release)])
        .wait(COLD_CACHE);
    assert_eq!(made.code, Some(0), "{made}");
    site.up();
    site.ok(&["artifacts", "export", "mirror"]);
    let mirror = Mirror::serve(site.dir.join("mirror"), "10.123.18.1", port);
    let ask = || {
        let like = ["--like", "it-control-plane-0", "--labels", "disk=fast"];
        let args = [&["user-data", "pool", "--artifacts-url", &mirror.url][..], &like].concat();
        PathBuf::from(site.ok(&args).out.trim())
    };
    let user_data = ask();
    let text = fs_err::read_to_string(&user_data).unwrap();
    assert_eq!(fs_err::read_to_string(ask()).unwrap(), text, "a token that is fresh is kept");
    // From here on turnup is not run: hosts join at any time.
    site.ok(&["up"]);

    let spec = describe_host(&site, made.out.trim());
    seed(&site, HOST, &user_data, ("i-1", NODE));
    let start = Instant::now();
    local(&site, "create", &spec);
    let first = wait_until_ready(&site, "");
    say(&format!("from nothing to Ready by user data: {:.1} s", start.elapsed().as_secs_f64()));
    let files = mirror.seen.lock().unwrap().len();
    assert!(files > 10, "turnup, binaries, images: {files}");
    assert_eq!(mirror.resumed.load(Ordering::SeqCst), files, "each was cut once and gone on with");
    assert_eq!(first["metadata"]["labels"]["disk"], "fast");
    its_role_comes_from_the_control_plane(&site);
    looks_as_it_should(&site);

    its_kubelet_serves(&site);
    a_stolen_token_becomes_no_other_node(&site);

    // A loss of power, and of kubelet's certificate: it joins again by what it was told at its
    // first boot. Its name is free.
    let (before, since) = (boot_id(&first), now());
    site.in_host(HOST, "rm -r /var/lib/kubelet/pki");
    site.in_host(HOST, &format!("systemctl stop turnup-agent; {BREAK_ASSETS} && sync"));
    site.cut_power(HOST);
    site.kubectl(&["delete", "node", NODE]);
    local(&site, "start", &spec);
    let again = wait_until_ready(&site, &since);
    assert_eq!(boot_id(&again), before);
    site.in_host(HOST, "timeout 120 sh -c 'until systemctl is-active turnup-node; do sleep 1; done'");
    site.in_host(
        HOST,
        "journalctl --no-pager -b -u turnup-node -o cat | tee --append /dev/stderr | grep -q '{\"done\":[0-9]*}'",
    );
    its_own_files_are_there(&site);
    for broken in ["/etc/own.bytes", "/srv/own/bytes"] {
        site.in_host(HOST, &format!("journalctl --no-pager -b -u turnup-node -o cat | grep -q {broken}"));
    }

    site.in_host(HOST, TOKEN_IS_GONE);

    local(&site, "delete", &spec);
    site.kubectl(&["delete", "node", NODE]);
    seed(&site, HOST, &user_data, ("i-2", NODE));
    mirror.lies.store(true, Ordering::SeqCst);
    let since = now();
    local(&site, "create", &spec);
    site.in_host(HOST, "timeout 180 sh -c 'until journalctl -u turnup-node | grep -q \"other bytes than those with\"; do sleep 1; done'");
    site.in_host(HOST, "test ! -e /opt/turnup/bin/turnup -a ! -e /etc/kubernetes -a ! -e /opt/cni");
    mirror.lies.store(false, Ordering::SeqCst);
    let recreated = wait_until_ready(&site, &since);
    assert_ne!(boot_id(&recreated), before, "another machine of the same name");
    looks_as_it_should(&site);
    its_kubelet_serves(&site);
    a_forged_request_stays_pending(&site);
    site.kubectl(&["delete", "clusterrolebinding", "turnup:csr-approver"]);
    assert!(site.ok(&["bootstrap"]).err.contains("the role bindings are missing"));
    site.ok(&["down", "--yes"]);
}

/// Another link, other bytes, another mode: what the next boot puts right.
const BREAK_ASSETS: &str = "ln -sfn /etc/passwd /etc/own.bytes && echo a >/srv/own/bytes && chmod 777 /srv/own";

/// The user's own directory, bytes and link, which came with the user data alone.
fn its_own_files_are_there(site: &Site) {
    site.in_host(
        HOST,
        "test \"$(stat --format='%a %U:%G' /srv/own /srv/own/bytes; readlink /etc/own.bytes; od -An -tx1 /etc/own.bytes)\" = \
        \"2750 daemon:daemon\n640 root:adm\n/srv/own/bytes\n ff 00\"",
    );
    site.in_host("it-control-plane-0", "test ! -e /srv/own -a ! -e /etc/own.bytes");
}

/// The token file of kubelet has been removed.
const TOKEN_IS_GONE: &str = "test -z \"$(ls /etc/kubernetes | grep bootstrap)\"";

/// What the bearer of the group's token may not be, though Kubernetes itself would sign it: a
/// control-plane host, a worker that is alive, a host of another name, a user. Each is denied, with
/// a reason.
fn a_stolen_token_becomes_no_other_node(site: &Site) {
    let groups = ["system:bootstrappers", "system:bootstrappers:turnup", "system:bootstrappers:turnup:pool"];
    let asked = [
        ("attacker-cp", "system:nodes", "system:node:it-control-plane-0", "ReservedName"),
        ("attacker-alive", "system:nodes", "system:node:pool-seven", "NodeIsAlive"),
        ("attacker-other", "system:nodes", "system:node:never-seen", "OtherNodeGroup"),
        ("attacker-root", "system:masters", "system:node:pool-x", "NotAKubelet"),
        ("attacker-admin", "system:nodes", "admin", "NotAKubelet"),
    ];
    for (request, organization, name, _) in asked {
        cluster_identity::ask_to_be(site, request, &groups, (organization, name));
    }
    for (request, .., reason) in asked {
        let (found, message) = cluster_identity::wait_until_denied(site, request);
        assert_eq!(found, reason, "{request}: {message}");
    }
    let status: Value = serde_json::from_str(&site.ok(&["status", "--output", "json"]).out).unwrap();
    let told = status["unjoined"].as_array().unwrap().iter().find(|one| one["request"] == "attacker-other").unwrap();
    assert!(
        told["why"].as_str().unwrap().starts_with("denied: turnup: the node name never-seen does not begin with pool-"),
        "{told}"
    );
}

fn serving_requests(site: &Site) -> Vec<Value> {
    site.get(&["certificatesigningrequests", "--field-selector=spec.signerName=kubernetes.io/kubelet-serving"])
}

/// `kubectl logs` works without another run of turnup: the control plane approved the serving
/// certificate.
fn its_kubelet_serves(site: &Site) {
    let selector = format!("--field-selector=spec.nodeName={NODE},status.phase=Running");
    let start = Instant::now();
    loop {
        let pods = site.get(&["pods", "--namespace=kube-system", &selector]);
        let pod = pods.first().map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned());
        if pod.is_some_and(|pod| site.try_kubectl(&["logs", "--namespace=kube-system", &pod]).is_ok()) {
            return;
        }
        if start.elapsed() > JOIN {
            site.in_host("it-control-plane-0", "journalctl --no-pager -u turnup-csr-approver");
        }
        assert!(start.elapsed() < JOIN, "{NODE} does not serve: {:#?}", serving_requests(site));
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// A node that asks for the API server's address among Services gets no certificate; the reason is
/// in the journal and in the status.
fn a_forged_request_stays_pending(site: &Site) {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, format!("system:node:{NODE}"));
    params.subject_alt_names = vec![SanType::IpAddress([10, 96, 0, 1].into())];
    let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
    let request = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "attacker"},
        "spec": {"signerName": "kubernetes.io/kubelet-serving", "usages": ["digital signature", "server auth"], "request": STANDARD.encode(pem)},
    });
    let file = site.dir.join("attacker.json");
    fs_err::write(&file, request.to_string()).unwrap();
    let user = format!("--as=system:node:{NODE}");
    site.kubectl(&["create", &user, "--as-group=system:nodes", "--filename", &file.display().to_string()]);
    let left = format!("left attacker of {NODE} alone: it asks for 10.96.0.1, which is an API server");
    let told =
        format!("timeout 60 sh -c 'until journalctl -u turnup-csr-approver | grep -q \"{left}\"; do sleep 1; done'");
    site.in_host("it-control-plane-0", &told);
    let requests = serving_requests(site);
    let attacker = requests.iter().find(|request| request["metadata"]["name"] == "attacker").unwrap();
    assert!(attacker["status"]["conditions"].is_null(), "{attacker:#}");
    let status: Value = serde_json::from_str(&site.ok(&["status", "--output", "json"]).out).unwrap();
    let told = status["unserved"].as_array().unwrap().iter().find(|one| one["request"] == "attacker").unwrap();
    assert_eq!(told["node"], NODE);
    assert!(told["why"].as_str().unwrap().starts_with("it asks for 10.96.0.1, which is an API server"), "{told}");
}

/// What is on the host, and what is not.
fn looks_as_it_should(site: &Site) {
    site.in_host(
        HOST,
        "timeout 120 cloud-init status --wait --long | tee --append /dev/stderr | grep -q 'status: done'",
    );
    let modes = "test \"$(stat -c %a /var/lib/turnup/boot-config.json /var/lib/turnup/join-token /var/lib/turnup)\" = \"600\n600\n700\"";
    site.in_host(HOST, modes);
    site.in_host(HOST, "timeout 120 sh -c 'until systemctl is-active turnup-node; do sleep 1; done'");
    site.in_host(HOST, TOKEN_IS_GONE);
    its_own_files_are_there(site);
    site.in_host(
        HOST,
        "! grep -rlE 'BEGIN (EC |RSA )?PRIVATE KEY' /etc/kubernetes /var/lib/turnup/*.json /var/lib/cloud",
    );
    site.in_host(HOST, "systemctl is-enabled turnup-node kubelet containerd");
    site.in_host(HOST, "test ! -e /var/lib/turnup/blobs/.part-* && ls /var/lib/turnup/blobs");
}
