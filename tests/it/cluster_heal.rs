//! Members of etcd that lose their data while writes go on: the agents of their hosts make them
//! voters again with no run of turnup, also where they are killed after each of their effects; and
//! where most of the data are lost, nothing forms another cluster.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cluster_agent::{wait_for_agents, wait_for_nothing_to_do};
use crate::cluster_reset::{ETCDCTL, on_host};
use crate::cluster_support::{Site, can_make_hosts, say};

const HOSTS: [&str; 3] = ["it-control-plane-0", "it-control-plane-1", "it-control-plane-2"];
/// How long it may take until a member votes again.
const PATIENCE: Duration = Duration::from_secs(90);
/// The same where its agent is killed again and again, and started again after ten seconds.
const KILLED: Duration = Duration::from_mins(15);
/// Where an agent dies: after each effect, once.
const DEATHS: &str = "# only rejoin\n# only : after\n";
/// Among them are these: the effects on etcd, on the disk and on the runtime.
const DEADLY: [&str; 6] = [
    "run etcdctl member remove",
    "run etcdctl member add",
    "run ctr run turnup-etcd-joiner etcd",
    "run ctr tasks kill turnup-etcd-joiner",
    "move the data in",
    "run etcdctl member promote",
];
const FAILPOINT_LOG: &str = "/var/tmp/turnup-failpoint-log";

/// The data of etcd are gone at once, as with a disk; kubelet and the runtime try to start it.
pub(crate) const LOSE: &str = "rm -rf /var/lib/etcd/data; pkill -KILL -x etcd";
/// The same while kubelet restarts, which then waits for the data.
pub(crate) const LOSE_QUIETLY: &str = ". /etc/profile; systemctl stop kubelet; \
    for id in $(crictl ps --quiet --name '^etcd$'); do crictl stop --timeout 0 $id; done; \
    rm -rf /var/lib/etcd/data; systemctl start kubelet";

/// The data of a member are gone, and the directories are not: the runtime starts etcd in them.
const LOSE_CONTENT: &str = "rm -rf /var/lib/etcd/data/member/*; pkill -KILL -x etcd";

fn prepare() -> Option<Site> {
    can_make_hosts().then(|| {
        let site = Site::new("heal");
        let settings = ["phase1.control_plane.count=3", "phase1.control_plane.runs_pods=y", "phase1.num_nodes=0"];
        let own = ["config", "set", "phase1.cluster_name=it", "phase1.local.subnet=10.124.12.0/24"];
        site.ok(&[&own[..], &settings[..]].concat());
        site.warm_cache();
        site
    })
}

fn etcdctl(site: &Site, host: &str, words: &str) -> Value {
    serde_json::from_str(&on_host(site, host, &format!("{ETCDCTL} --write-out=json {words}"))).unwrap()
}

/// The id of the cluster, and of the member of this host if it votes, as another one says.
fn ids(site: &Site, host: &str) -> (u64, Option<u64>) {
    let asked = HOSTS.into_iter().find(|other| *other != host).unwrap();
    let list = etcdctl(site, asked, "member list");
    let mut members = list["members"].as_array().unwrap().iter();
    let own = members.find(|member| member["name"] == host && member["isLearner"] != true);
    (list["header"]["cluster_id"].as_u64().unwrap(), own.map(|own| own["ID"].as_u64().unwrap()))
}

/// Writes one key after the other on a host, and keeps the numbers of those that etcd has taken.
fn start_writes(site: &Site, host: &str) {
    let script = format!(
        "i=0; while :; do i=$((i+1)); timeout 20 {ETCDCTL} put turnup-test/$i x >/dev/null 2>&1 && echo $i >>/run/taken; done"
    );
    site.in_host(host, &format!("systemd-run --quiet --unit=writes sh -c '{script}'"));
}

/// Every key that was taken is there, by the word of each member alone.
fn require_all_writes(site: &Site, writer: &str) {
    site.in_host(writer, "systemctl stop writes");
    let taken: BTreeSet<u64> =
        on_host(site, writer, "cat /run/taken").lines().map(|line| line.parse().unwrap()).collect();
    assert!(taken.len() > 20, "{taken:?}");
    for host in HOSTS {
        // One read through the majority, so that the member has applied all; then its own.
        let read = format!(
            "{ETCDCTL} get turnup-test/1 >/dev/null && {ETCDCTL} get --consistency=s --prefix --keys-only turnup-test/"
        );
        let number = |line: &str| line.strip_prefix("turnup-test/").and_then(|number| number.parse().ok());
        let there: BTreeSet<u64> = on_host(site, host, &read).lines().filter_map(number).collect();
        let lost: Vec<&u64> = taken.difference(&there).collect();
        assert!(lost.is_empty(), "{host} has lost {} of {}: {lost:?}", lost.len(), taken.len());
    }
    say(&format!("{} writes were taken meanwhile, and all are on each member", taken.len()));
}

/// The host's member votes again, as another one than before. Returns after how many seconds.
pub(crate) fn require_voter_again(site: &Site, host: &str, patience: Duration, lose: &str) -> f64 {
    let (cluster, old) = ids(site, host);
    let since = Instant::now();
    site.in_host(host, lose);
    let is_back = || {
        let healthy = format!("timeout 10 {ETCDCTL} endpoint health >/dev/null 2>&1 && echo yes || true");
        ids(site, host).1.is_some_and(|id| Some(id) != old) && on_host(site, host, &healthy).trim() == "yes"
    };
    while !is_back() {
        let journal = || {
            on_host(
                site,
                host,
                "journalctl --unit=turnup-agent --lines=60 --output=cat; cat /run/turnup/etcd-joiner.log || true",
            )
        };
        assert!(since.elapsed() < patience, "{host} does not vote after {patience:?}: {}", journal());
        std::thread::sleep(Duration::from_millis(500));
    }
    let took = since.elapsed().as_secs_f64();
    say(&format!("{host} votes again after {took:.1} s"));
    say(&on_host(
        site,
        host,
        "journalctl --unit=turnup-agent --lines=25 --output=short-precise | cut --delimiter=' ' --fields=3,6-",
    ));
    assert_eq!(ids(site, host).0, cluster, "it is the same cluster");
    took
}

/// An agent has to have seen its member well, as it does in the first minute.
pub(crate) fn settle_records(site: &Site) {
    for host in HOSTS {
        let complete = "test \"$(grep --count client_urls /var/lib/turnup/etcd.json 2>/dev/null)\" = 2";
        site.in_host(host, &format!("timeout 300 sh -c 'until {complete}; do sleep 1; done'"));
    }
}

/// Agents that were killed are there again, and kubelets that had no API server have told of
/// themselves.
fn settle_agents(site: &Site) {
    wait_for_agents(site, &HOSTS);
    let since = Instant::now();
    let is_ready = |host: &str| {
        let path = "--output=jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        site.try_kubectl(&["get", "node", host, path]).is_ok_and(|status| status == "True")
    };
    while !HOSTS.into_iter().all(is_ready) {
        assert!(since.elapsed() < KILLED, "not all nodes are ready again");
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
#[ignore = "some minutes: make test-heal"]
fn cluster_heal_a_member_without_data_is_a_voter_again() {
    let Some(site) = prepare() else { return };
    site.ok(&["up"]);
    settle_records(&site);
    let (cluster, _) = ids(&site, HOSTS[0]);

    start_writes(&site, HOSTS[0]);
    require_voter_again(&site, HOSTS[1], PATIENCE, LOSE);
    require_voter_again(&site, HOSTS[2], PATIENCE, LOSE_QUIETLY);
    require_all_writes(&site, HOSTS[0]);
    let status = site.ok(&["status"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(status.contains("etcd had lost its data: its member joined again as"), "{status}");

    site.in_host(HOSTS[0], "rm /run/taken");
    start_writes(&site, HOSTS[1]);
    let log = format!("printf '{DEATHS}' >{FAILPOINT_LOG}; {LOSE}");
    require_voter_again(&site, HOSTS[0], KILLED, &log);
    let deaths = on_host(&site, HOSTS[0], &format!("grep --invert-match '#' {FAILPOINT_LOG}; rm {FAILPOINT_LOG}"));
    say(&format!("its agent was killed {} times:\n{deaths}", deaths.lines().count()));
    for effect in DEADLY {
        assert!(deaths.contains(&format!("agent > rejoin > {effect}: after\n")), "{effect}: {deaths}");
    }
    require_all_writes(&site, HOSTS[1]);
    settle_agents(&site);
    wait_for_nothing_to_do(&site);
    assert_eq!(site.ready_nodes(), HOSTS);
    assert_eq!(ids(&site, HOSTS[0]).0, cluster);
    site.in_host(HOSTS[0], "! ls -d /var/lib/etcd/joining-*");

    // Two of three: the one that is left is no majority, and nothing starts from nothing.
    for (host, lose) in [(HOSTS[1], LOSE_QUIETLY), (HOSTS[2], LOSE_CONTENT)] {
        site.in_host(host, lose);
    }
    std::thread::sleep(Duration::from_secs(45));
    for (host, says) in [
        (HOSTS[1], ["etcd has lost its data", "turnup restore"]),
        (HOSTS[2], ["it is not known whether etcd has lost its data", "turnup reset"]),
    ] {
        site.in_host(host, "! ls /var/lib/etcd/data/member/wal/*.wal && ! ls -d /var/lib/etcd/joining-*");
        let told = on_host(&site, host, "/opt/turnup/bin/turnup node agent status");
        assert!(says.iter().all(|word| told.contains(word)), "{told}");
    }
    say(&on_host(
        &site,
        HOSTS[2],
        ". /etc/profile; crictl logs $(crictl ps --all --quiet --name '^etcd$' | head -n 1) 2>&1 | grep '^panic' || true",
    ));
    site.ok(&["restore", "--yes"]);
    settle_records(&site);
    site.ok(&["down", "--yes"]);
}
