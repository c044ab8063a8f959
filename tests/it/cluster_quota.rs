//! etcd of three members filled up to its quota, for real: the cluster refuses writes, and the
//! agents make room with no run of turnup, one member after the other, until it takes them again.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use crate::cluster_reset::{ETCDCTL, on_host};
use crate::cluster_support::{Site, can_make_hosts, say};

const HOSTS: [&str; 3] = ["it-control-plane-0", "it-control-plane-1", "it-control-plane-2"];
/// The smallest quota there is.
const QUOTA: u64 = 1 << 30;
/// The three agents look once a minute, and each waits for the one before it.
const PATIENCE: Duration = Duration::from_mins(15);

fn prepare() -> Option<Site> {
    can_make_hosts().then(|| {
        let site = Site::new("quota");
        let settings = [
            "phase1.control_plane.count=3",
            "phase1.control_plane.runs_pods=y",
            "phase1.num_nodes=0",
            "phase2.etcd.quota_gb=1",
        ];
        let own = ["config", "set", "phase1.cluster_name=it", "phase1.local.subnet=10.124.8.0/24"];
        site.ok(&[&own[..], &settings[..]].concat());
        site.warm_cache();
        site
    })
}

fn etcdctl(site: &Site, words: &str) -> Value {
    serde_json::from_str(&on_host(site, HOSTS[0], &format!("{ETCDCTL} --write-out=json {words}"))).unwrap()
}

fn has_alarm(site: &Site) -> bool {
    etcdctl(site, "alarm list")["alarms"].as_array().is_some_and(|alarms| !alarms.is_empty())
}

/// The sizes of all members' files.
fn sizes(site: &Site) -> Vec<u64> {
    let said = etcdctl(site, "endpoint status --cluster");
    said.as_array().unwrap().iter().map(|one| one["Status"]["dbSize"].as_u64().unwrap()).collect()
}

/// Versions of four keys, until a member raises its alarm.
fn fill(site: &Site) {
    let script = format!(
        "cd /run && head --bytes=1050000 /dev/urandom | base64 --wrap=0 >value && \
         until {ETCDCTL} --write-out=json alarm list | grep --quiet alarms; do \
         seq 4 | xargs --max-procs=4 --replace sh -c '{ETCDCTL} put turnup-test/{{}} <value' >/dev/null 2>&1; done; rm value"
    );
    site.in_host(HOSTS[0], &script);
}

/// When each member's defragmentation began and ended, as etcd's own log has it.
fn defragmentations(site: &Site) -> Vec<(Timestamp, Timestamp)> {
    let read = |host: &str| {
        let log = "cat /var/log/pods/kube-system_etcd-*/etcd/*.log | cut --delimiter=' ' --fields=4-";
        let lines: Vec<Value> =
            on_host(site, host, log).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let times = |text: &str| -> Vec<Timestamp> {
            let said = lines.iter().filter(|line| line["msg"].as_str().is_some_and(|msg| msg == text));
            said.map(|line| line["ts"].as_str().unwrap().parse().unwrap()).collect()
        };
        let (starts, ends) = (times("starting defragment"), times("finished defragment"));
        assert!(!ends.is_empty() && starts.len() == ends.len(), "{host}: {starts:?} {ends:?}");
        starts.into_iter().zip(ends).collect::<Vec<_>>()
    };
    HOSTS.iter().flat_map(|host| read(host)).collect()
}

#[test]
#[ignore = "it writes 3 GiB (make test-heal)"]
fn cluster_quota_that_is_reached_is_no_work_for_an_operator() {
    let Some(site) = prepare() else { return };
    site.ok(&["up"]);
    let since = Instant::now();
    fill(&site);
    say(&format!("full after {:.0} s: {:?}", since.elapsed().as_secs_f64(), sizes(&site)));
    let since = Instant::now();
    let refused = site.try_kubectl(&["create", "configmap", "while-full"]).unwrap_err();
    assert!(refused.contains("database space exceeded"), "{refused}");
    while site.try_kubectl(&["create", "configmap", "after-it"]).is_err() {
        assert!(since.elapsed() < PATIENCE, "no room after {PATIENCE:?}: {:?}", sizes(&site));
        std::thread::sleep(Duration::from_secs(2));
    }
    say(&format!("writes are taken again after {:.0} s: {:?}", since.elapsed().as_secs_f64(), sizes(&site)));
    assert!(!has_alarm(&site));
    assert!(sizes(&site).iter().all(|size| *size < QUOTA / 4), "{:?}", sizes(&site));

    let mut turns = defragmentations(&site);
    turns.sort_unstable();
    assert!(turns.windows(2).all(|pair| pair[0].1 <= pair[1].0), "two members stood still at once: {turns:?}");
    let status = site.ok(&["status"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(status.contains("etcd was full (alarm NOSPACE) and took no writes"), "{status}");
    assert!(!status.contains("not as its node config says"), "{status}");
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");
    site.ok(&["down", "--yes"]);
}
