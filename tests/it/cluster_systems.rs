//! One cluster over three systems: a control plane on Debian 12, a worker on Debian 13, one on
//! Ubuntu 24.04. Each is Ready and runs a pod that reaches Services.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "the test plays the user who prepares this machine")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::json;
use turnup::artifacts::Distribution;

use crate::cluster_firewall::{connect, start_pod};
use crate::cluster_reset::on_host;
use crate::cluster_support::{Site, can_make_hosts, say};

/// Each host, and how `/etc/os-release` names what it runs.
const SYSTEMS: [(&str, &str); 3] = [
    ("it-control-plane-0", "Debian GNU/Linux 12 (bookworm)"),
    ("it-thirteen-0", "Debian GNU/Linux 13 (trixie)"),
    ("it-ubuntu-0", "Ubuntu 24.04"),
];

/// The keys of Ubuntu's archive, which Debian 12 has in its backports alone: installed as a user
/// would, with lists of packages of its own so that this machine's stay as they are.
pub(crate) fn install_keyring(site: &Site) {
    if Path::new(Distribution::Ubuntu.keyring()).exists() {
        return;
    }
    let dir = site.dir.join("apt");
    fs_err::create_dir_all(dir.join("lists/partial")).unwrap();
    let script = r#"
list=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null || true)
mirror=$(echo "$list" | grep --only-matching --max-count=1 'http[^ ]*/debian/*$\|http[^ ]*/debian ' | head -n 1)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm-backports main" >backports.list
set -- -o Dir::Etc::sourcelist="$PWD/backports.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$PWD/lists"
apt-get "$@" update
apt-get "$@" install --yes --no-install-recommends ubuntu-keyring
"#;
    let output = Command::new("sh").args(["-ec", script]).current_dir(&dir).output().unwrap();
    assert!(output.status.success(), "ubuntu-keyring: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "make test-settings: the roots of three systems take ten minutes"]
fn one_cluster_runs_on_debian_12_debian_13_and_ubuntu() {
    if !can_make_hosts() {
        return;
    }
    let site = Site::new("systems");
    install_keyring(&site);
    let group = |name: &str, image: &str| json!({"name": name, "role": "worker", "size": 1, "image": image});
    let groups = json!([group("thirteen", "trixie"), group("ubuntu", "noble")]);
    site.ok(&[
        "config",
        "set",
        "phase1.cluster_name=it",
        "phase1.local.subnet=10.124.40.0/24",
        "phase1.local.root_suite=bookworm",
        "phase2.runtime.ecr_credentials=y",
        &format!("phase1.node_groups={groups}"),
    ]);
    site.warm_cache();
    let before = site.look_around();
    let since = Instant::now();
    site.ok(&["up"]);
    say(&format!("three systems in one cluster: {:.1} s", since.elapsed().as_secs_f64()));
    assert_eq!(site.ready_nodes(), SYSTEMS.map(|(host, _)| host));
    let nodes = site.get(&["nodes"]).into_iter();
    let images: BTreeMap<String, String> = nodes
        .map(|node| {
            let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
            (text(&node["metadata"]["name"]), text(&node["status"]["nodeInfo"]["osImage"]))
        })
        .collect();
    for (host, system) in SYSTEMS {
        assert!(images[host].starts_with(system), "{host}: {}", images[host]);
        let said = on_host(&site, host, "systemctl is-system-running; systemctl --failed --no-legend --plain");
        assert_eq!(said, "running\n", "{host}");
        // kubelet does not start with a file that it cannot read, or without the program.
        let flags = on_host(&site, host, "tr '\\0' ' ' </proc/$(pgrep -x kubelet)/cmdline");
        assert!(flags.contains("--image-credential-provider-config=/etc/kubernetes/kubelet/"), "{host}: {flags}");
        on_host(&site, host, "test -x /usr/libexec/kubernetes/credential-providers/ecr-credential-provider");
        assert!(on_host(&site, host, "nft list table inet turnup").contains("dport"), "{host} has a firewall");
    }

    let program = site.ok(&["artifacts", "path", "kubectl"]).out.trim().to_owned();
    let kubectl = [program, format!("--kubeconfig={}", site.path("kubeconfig").display())];
    for (host, _) in SYSTEMS {
        start_pod(&site, host);
    }
    site.kubectl(&["wait", "--for=condition=Ready", "--timeout=90s", "pod", "--all"]);
    for (host, _) in SYSTEMS {
        for to in ["10.96.0.1:443", "10.96.0.10:53"] {
            assert_eq!(connect(&kubectl, host, to, 60), "", "from {host} to {to}");
        }
    }
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");
    site.ok(&["down", "--yes"]);
    let left: Vec<String> = site.look_around().difference(&before).cloned().collect();
    assert_eq!(left, [""; 0], "left on this machine");
}
