//! Static pods whose manifests change while kubelet is killed again and again: of each component
//! exactly one runs at the end, and it is what its newest manifest says.
//!
//! `TURNUP_TEST_ROUNDS=90` changes some 200 manifests; `TURNUP_TEST_SEED` repeats a choice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::cluster_agent::wait_for_nothing_to_do;
use crate::cluster_crash::{Random, seed};
use crate::cluster_machines::rounds_or;
use crate::cluster_reset::on_host;
use crate::cluster_support::{Site, TIMEOUT, say};

const HOST: &str = "it-control-plane-0";
/// The components and the settings of how much they write.
const COMPONENTS: [(&str, &str); 3] = [
    ("kube-apiserver", "phase2.apiserver.log_level"),
    ("kube-controller-manager", "phase2.controller_manager.log_level"),
    ("kube-scheduler", "phase2.scheduler.log_level"),
];
/// Of each static pod: its name, how many processes and containers, and a flag of the first.
const LOOK: &str = r#"for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
    pids=$(pgrep -x "$(echo $name | cut -c1-15)" | tr '\n' ' ')
    flag=$(tr '\0' '\n' <"/proc/${pids%% *}/cmdline" 2>/dev/null | grep -x -e '--v=[0-9]*')
    echo "$name $(echo $pids | wc -w) $(/opt/turnup/bin/crictl ps --quiet --name "^$name\$" | wc -l) $flag"
done"#;
/// How long a kubelet lives at most, in milliseconds.
const LIFE: u64 = 5000;

/// Ends the killing, also where the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Waits until one process in one container runs for each, with these flags.
fn require_newest(site: &Site, levels: &BTreeMap<&str, u64>) {
    let line = |(name, level): (&&str, &u64)| format!("{name} 1 1 --v={level}");
    let expected: Vec<String> = ["etcd 1 1".to_owned()].into_iter().chain(levels.iter().map(line)).collect();
    let since = Instant::now();
    loop {
        let said = on_host(site, HOST, LOOK);
        let mut found: Vec<&str> = said.lines().map(str::trim).collect();
        found.sort_unstable();
        if found == expected {
            return;
        }
        assert!(since.elapsed() < TIMEOUT, "{found:?} in place of {expected:?}");
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
#[ignore = "many runs of a cluster: make test-heal"]
fn cluster_kubelets_that_are_killed_run_the_newest_manifests() {
    let Some(site) = Site::of_cluster("kubelets", "10.125.120.0/24", 1) else { return };
    site.warm_cache();
    let mut levels: BTreeMap<&str, u64> = COMPONENTS.iter().map(|(name, _)| (*name, 2)).collect();
    let all: Vec<String> = COMPONENTS.iter().map(|(_, setting)| format!("{setting}=2")).collect();
    site.ok(&["config", "set"].into_iter().chain(all.iter().map(String::as_str)).collect::<Vec<_>>());
    site.ok(&["up"]);
    let (mut random, rounds) = (Random(seed()), rounds_or(5));
    let mut killer = Random(random.below(u64::MAX) | 1);
    let (is_over, kills) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (mut changes, mut again) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(killer.below(LIFE)));
                // One that systemd has yet to start again is none.
                site.in_host(HOST, "pkill -KILL -x kubelet || true");
                kills.fetch_add(1, Ordering::SeqCst);
            }
        });
        let _over = Over(&is_over);
        for _ in 0..rounds {
            let mut set = Vec::new();
            for (name, setting) in COMPONENTS {
                let level = 1 + random.below(4);
                changes += usize::from(levels.insert(name, level) != Some(level));
                set.push(format!("{setting}={level}"));
            }
            site.ok(&["config", "set"].into_iter().chain(set.iter().map(String::as_str)).collect::<Vec<_>>());
            // A step that has seen its kubelet die too often ends; the next run goes on.
            while site.start(&["bootstrap"]).wait(TIMEOUT).code != Some(0) {
                again += 1;
                assert!(again < 10 + rounds, "{again} runs failed");
            }
            require_newest(&site, &levels);
        }
    });
    let kills = kills.load(Ordering::SeqCst);
    say(&format!("{changes} manifests changed, kubelet killed {kills} times, {again} runs gone on with"));
    assert!(changes > 0 && kills > 0);
    site.ok(&["up"]);
    require_newest(&site, &levels);
    wait_for_nothing_to_do(&site);
    site.ok(&["down", "--yes"]);
}
