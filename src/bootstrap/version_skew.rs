//! Which version of Kubernetes a running cluster may get next: another patch of its own minor
//! version, or the next minor version. Anything else is refused before anything begins, with the
//! way there (<https://kubernetes.io/releases/version-skew-policy/>).
//!
//! What runs is read from the steps that ended well; no host is asked.

use std::collections::BTreeMap;

use semver::Version;

use crate::artifacts::Lock;
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::phase::Inputs;
use crate::state::State;

use super::same_runtime::MAKE_NODES;

/// The input by which the steps that make a host a node know its version.
pub(super) const VERSION: &str = "Kubernetes version";
const SETTING: &str = "phase2.kubernetes_version";

/// An error when a host of the inventory cannot go to the version of the settings at once.
pub fn require_supported_hop(cluster: &Cluster) -> Result<()> {
    // What is wrong with these is said by the step that reads them.
    let (Ok(Some(inventory)), Ok(state)) = (cluster.find_inventory(), cluster.store.state()) else { return Ok(()) };
    let Ok(lock) = Lock::load(&cluster.work_dir) else { return Ok(()) };
    let known: Vec<Version> = lock.versions().iter().filter_map(|version| Version::parse(version).ok()).collect();
    let Ok(wanted) = Version::parse(&cluster.settings.kubernetes_version) else { return Ok(()) };
    let hosts = inventory.hosts.iter();
    let running = hosts.filter_map(|host| Some((host.name.as_str(), find_version(&state, &host.name, &known)?)));
    judge(&running.collect(), &wanted, &known)
}

/// The version to which the host was brought last.
fn find_version<'v>(state: &State, host: &str, known: &'v [Version]) -> Option<&'v Version> {
    let record = MAKE_NODES.iter().find_map(|step| state.steps.get(&step.on(host).to_string()))?;
    let digest = record.inputs.get(VERSION)?;
    let has_digest = |version: &&Version| {
        let inputs = Inputs::new().with(VERSION, version.to_string());
        inputs.fingerprints().get(VERSION) == Some(digest)
    };
    known.iter().find(has_digest)
}

fn judge(running: &BTreeMap<&str, &Version>, wanted: &Version, known: &[Version]) -> Result<()> {
    let minor = |version: &Version| (version.major, version.minor);
    let Some((newest_host, newest)) = running.iter().max_by_key(|(_, version)| minor(version)) else { return Ok(()) };
    if minor(newest) > minor(wanted) {
        let message = format!("{SETTING}: {newest_host} runs {newest}, and no cluster goes back to {wanted}");
        return Err(Error::config(message)
            .evidence(
                "Kubernetes supports no downgrade to an older minor version: etcd may have objects that it cannot read",
            )
            .hint(format!("turnup config set {SETTING}={newest}")));
    }
    let Some((oldest_host, oldest)) = running.iter().min_by_key(|(_, version)| minor(version)) else { return Ok(()) };
    let next = (oldest.major, oldest.minor + 1);
    if minor(wanted) <= next {
        return Ok(());
    }
    let message = format!("{SETTING}: {oldest_host} runs {oldest}, and {wanted} is more than one minor version away");
    let error = Error::config(message).evidence("Kubernetes supports one minor version at a time");
    let between = |version: &&Version| minor(version) > minor(oldest) && minor(version) < minor(wanted);
    let mut hops: Vec<&Version> = known.iter().filter(between).collect();
    hops.sort();
    // The newest patch of each minor version.
    let hops: BTreeMap<(u64, u64), &Version> = hops.into_iter().map(|version| (minor(version), version)).collect();
    let first = hops.get(&next);
    let Some(first) = first.filter(|_| u64::try_from(hops.len()).is_ok_and(|count| count == wanted.minor - next.1))
    else {
        return Err(
            error.hint(format!("turnup artifacts pin (a version of {}.{}), and that one first", next.0, next.1))
        );
    };
    let way = hops.values().map(ToString::to_string).chain([wanted.to_string()]).collect::<Vec<_>>().join(" -> ");
    Err(error
        .evidence(format!("the way: {oldest} -> {way}"))
        .hint(format!("turnup config set {SETTING}={first} && turnup up")))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::state::Record;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    fn ask(running: &[(&str, &str)], wanted: &str, known: &[&str]) -> Result<()> {
        let versions: Vec<(&str, Version)> = running.iter().map(|(host, text)| (*host, version(text))).collect();
        let running = versions.iter().map(|(host, version)| (*host, version)).collect();
        judge(&running, &version(wanted), &known.iter().map(|text| version(text)).collect::<Vec<_>>())
    }

    #[test]
    fn one_minor_version_at_a_time_and_never_back() {
        let known = ["1.35.4", "1.36.1", "1.36.3", "1.37.2"];
        let ok = |running: &[(&str, &str)], wanted: &str| ask(running, wanted, &known).is_ok();
        assert!(ok(&[], "1.37.2"), "nothing runs");
        assert!(ok(&[("cp", "1.36.3"), ("w", "1.36.3")], "1.37.2"));
        assert!(ok(&[("cp", "1.36.3")], "1.36.1"), "another patch is no other format");
        assert!(ok(&[("cp", "1.36.3"), ("w", "1.35.4")], "1.36.3"), "an update that was stopped goes on");
        let error = |running: &[(&str, &str)], wanted: &str| ask(running, wanted, &known).unwrap_err().render();
        insta::assert_snapshot!(error(&[("cp", "1.36.3"), ("w", "1.36.3")], "1.35.4"));
        insta::assert_snapshot!(error(&[("cp", "1.35.4"), ("w", "1.35.4")], "1.37.2"));
        let left = error(&[("cp", "1.36.3"), ("w", "1.35.4")], "1.37.2");
        assert!(left.contains("w runs 1.35.4"), "{left}");
        let unknown = ask(&[("cp", "1.35.4")], "1.38.0", &["1.35.4", "1.37.2", "1.38.0"]).unwrap_err().render();
        assert!(unknown.contains("turnup artifacts pin (a version of 1.36)"), "{unknown}");
    }

    #[test]
    fn a_host_runs_what_its_last_step_brought() {
        let known = [version("1.35.4"), version("1.36.3")];
        let mut state = State::default();
        assert_eq!(find_version(&state, "w0", &known), None);
        let inputs = Inputs::new().with(VERSION, "1.36.3").fingerprints().clone();
        let record = Record { digest: String::new(), inputs, finished: jiff::Timestamp::UNIX_EPOCH, elapsed_ms: 0 };
        state.steps.insert(MAKE_NODES[1].on("w0").to_string(), record);
        assert_eq!(find_version(&state, "w0", &known), Some(&known[1]));
        assert_eq!(find_version(&state, "w1", &known), None);
    }
}
