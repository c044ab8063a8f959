//! Kills turnup at every point of every step of every phase, and at random moments, while it makes a real cluster: the next run goes on
//! from there, and the end is the same cluster.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use serde_json::Value;
use turnup::artifacts::Digest;

use crate::cluster_support::{Done, Site, can_make_hosts, say};

const POINTS: [&str; 4] = ["before-intent", "after-intent", "after-effect", "after-outcome"];
const NODES: [&str; 2] = ["it-control-plane-0", "it-worker-0"];
/// A run that is killed once more than this goes round in circles.
const MOST_KILLS: usize = 200;

/// What must stay the same from the moment it is there.
#[derive(Default)]
struct Kept {
    files: BTreeMap<&'static str, String>,
    identity: Option<(String, String)>,
}

impl Kept {
    /// Looks after a crash: whatever was there before is still there and the same.
    fn check(&mut self, site: &Site, after: &str) {
        for name in ["pki/ca.key", "pki/etcd-ca.key", "pki/sa.key", "ssh/id_ed25519"] {
            let path = site.path(name);
            if path.exists() {
                // The digest, not the text: a failed assertion prints both sides, and these are private keys.
                let digest = Digest::of_file(&path).unwrap().to_string();
                assert_eq!(self.files.entry(name).or_insert_with(|| digest.clone()), &digest, "{name} after {after}");
            }
        }
    }
}

/// One run, killed at this point of the first step that is not proven done; whether it was, or came to the end.
fn killed_at(site: &mut Site, point: &str) -> bool {
    site.env.insert("TURNUP_KILL_AT".into(), format!("*:{point}"));
    // One step at a time, so that none is done while another is killed and escapes its own turn.
    let done = site.run(&["up", "--parallel", "1"]);
    site.env.remove("TURNUP_KILL_AT");
    match (done.signal, done.code) {
        (Some(9), _) => true,
        (_, Some(0)) => false,
        _ => unreachable_end(&done),
    }
}

#[expect(clippy::panic, reason = "a test that panics has failed")]
fn unreachable_end(done: &Done) -> ! {
    panic!("neither killed nor successful: {done}")
}

/// How often the journal says that a step began, and that it ended well.
fn count_journal(site: &Site) -> BTreeMap<String, (usize, usize)> {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for line in site.read("journal.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let entry = &line["entry"];
        let count = counts.entry(entry["step"].as_str().unwrap().to_owned()).or_default();
        match entry["kind"].as_str().unwrap() {
            "intent" => count.0 += 1,
            "outcome" => {
                assert_eq!(entry["outcome"]["result"], "done", "{line}");
                count.1 += 1;
            }
            _ => {}
        }
    }
    counts
}

#[test]
fn killed_at_every_point_of_every_step_it_is_one_cluster_in_the_end() {
    if !can_make_hosts() {
        return;
    }
    let mut site = Site::new("sweep");
    site.configure("10.121.2.0/24", 1);
    site.warm_cache();
    let (mut kept, mut kills, start) = (Kept::default(), 0, Instant::now());
    'cluster: loop {
        for point in POINTS {
            if !killed_at(&mut site, point) {
                break 'cluster;
            }
            kills += 1;
            assert!(kills < MOST_KILLS, "no end: {:?}", count_journal(&site));
            kept.check(&site, point);
            if kept.identity.is_none() && site.path("state.json").exists() && has_ended(&site, "bootstrap/api") {
                kept.identity = Some(site.identity());
            }
        }
    }
    let counts = count_journal(&site);
    say(&format!("{kills} kills at {} steps in {:.0} s", counts.len(), start.elapsed().as_secs_f64()));
    // Every step of the three phases took part, and each was killed at each point.
    for phase in ["provision/", "bootstrap/", "addons/"] {
        assert!(counts.keys().any(|step| step.starts_with(phase)), "{counts:?}");
    }
    assert_eq!(kills, counts.len() * POINTS.len());
    // Begun when killed after the intent, begun and done when killed after the effect, begun again: three times, ended well once.
    for (step, count) in &counts {
        assert_eq!(*count, (3, 1), "{step}: begun and ended well");
    }
    assert_eq!(Some(site.identity()), kept.identity);
    assert_eq!(site.ready_nodes(), NODES);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    site.ok(&["validate"]);
    site.ok(&["down", "--yes"]);
}

fn has_ended(site: &Site, step: &str) -> bool {
    count_journal(site).get(step).is_some_and(|(_, ended)| *ended > 0)
}

#[test]
fn killed_at_random_moments_it_is_one_cluster_in_the_end() {
    if !can_make_hosts() {
        return;
    }
    let site = Site::new("random");
    site.configure("10.121.3.0/24", 1);
    site.warm_cache();
    let mut kept = Kept::default();
    let seed = std::env::var("TURNUP_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = Random(seed.unwrap_or_else(|| u64::from(std::process::id())));
    say(&format!("TURNUP_TEST_SEED={} repeats these moments", random.0));
    for _ in 0..9 {
        // Up to the length of one whole run, in tenths of a second; more often early, when there is more to break.
        let pause = Duration::from_millis(100 * (1 + random.below(80)));
        let running = site.start(&["up"]);
        std::thread::sleep(pause);
        // It may have come to its end before.
        let _gone = kill_process(running.pid(), Signal::KILL);
        let done = running.wait(Duration::from_mins(1));
        assert!(done.signal == Some(9) || done.code == Some(0), "{done}");
        kept.check(&site, &format!("{pause:?}"));
    }
    site.up();
    kept.check(&site, "the end");
    let identity = site.identity();
    assert_eq!(site.ready_nodes(), NODES);
    assert!(site.up().ran().is_empty());
    assert_eq!(site.identity(), identity);
    for (step, (_, ended)) in count_journal(&site) {
        assert_eq!(ended, 1, "{step} ended well {ended} times");
    }
    site.ok(&["validate"]);
    site.ok(&["down", "--yes"]);
}

/// xorshift: the seed is printed, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        for shift in [13_i32, -7, 17] {
            self.0 ^= if shift > 0 { self.0 << shift } else { self.0 >> -shift };
        }
        self.0 % end
    }
}
