//! Settings of backups that no single format judges: the directory and the interval. Pure.

use std::path::Path;
use std::time::Duration;

use super::format::parse_duration;
use super::host_system::{DATA_DIR, TAKEN};
use super::problem::Problem;
use super::values::Values;

const DIRECTORY: &str = "phase2.backup.directory";
const RECIPIENTS: &str = "phase2.backup.recipients";
const ACCOUNT: &str = "phase2.backup.azure.account";
const CONTAINER: &str = "phase2.backup.azure.container";
const INTERVAL: &str = "phase2.backup.interval";
/// A snapshot of a large etcd takes as long.
const SHORTEST: Duration = Duration::from_mins(1);

/// Everything that is wrong with these settings.
pub(super) fn check(facts: &Values<'_, '_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(dir) = facts.text(DIRECTORY) {
        let own = [DATA_DIR, "phase2.runtime.data_dir"].into_iter().filter_map(|name| facts.text(name));
        let taken = TAKEN.into_iter().chain(own);
        problems.extend(judge_directory(dir, taken).map(|why| Problem::of(DIRECTORY, why)));
    }
    let interval = facts.text(INTERVAL).and_then(|text| Some((text, parse_duration(text)?)));
    if let Some((text, _)) = interval.filter(|(_, interval)| *interval < SHORTEST) {
        problems.push(Problem::of(INTERVAL, format!("{text} is less than a minute (1m)")));
    }
    let recipients = facts.text(RECIPIENTS).unwrap_or_default().split(',').map(str::trim);
    problems.extend(recipients.filter_map(judge_recipient).map(|why| Problem::of(RECIPIENTS, why)));
    for (setting, judge) in [(ACCOUNT, judge_account as fn(&str) -> _), (CONTAINER, judge_container)] {
        let name = facts.text(setting).filter(|name| !name.is_empty());
        problems.extend(name.and_then(judge).map(|why| Problem::of(setting, why)));
    }
    problems
}

/// What the names of objects in the store begin with: the prefix with one slash behind it, or
/// nothing.
#[must_use]
pub fn object_prefix(prefix: &str) -> String {
    let prefix = prefix.trim_matches('/');
    if prefix.is_empty() { String::new() } else { format!("{prefix}/") }
}

/// Its name is a label of DNS, and part of what is signed.
fn judge_account(name: &str) -> Option<String> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_good = is_plain && (3..=24).contains(&name.len());
    (!is_good).then(|| format!("{name} is no storage account: 3 to 24 lower-case letters and digits"))
}

/// It stands in the address as it is.
fn judge_container(name: &str) -> Option<String> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    let is_good = is_plain && (3..=63).contains(&name.len()) && !name.starts_with('-') && !name.ends_with('-');
    let what = "3 to 63 lower-case letters, digits and single hyphens between them";
    (!is_good || name.contains("--")).then(|| format!("{name} is no container: {what}"))
}

/// A key with a wrong letter would make backups that open for no key.
fn judge_recipient(key: &str) -> Option<String> {
    if key.is_empty() || key.parse::<age::x25519::Recipient>().is_ok() {
        return None;
    }
    if key.starts_with("AGE-SECRET-KEY-") {
        // Not shown: it is a secret.
        return Some("this is a private key of age; give the public one, which begins with age1".to_owned());
    }
    Some(format!("{key} is no public key of age; it is what age-keygen prints behind `public key:`, age1…"))
}

/// What others fill or remove keeps no backups.
fn judge_directory<'t>(dir: &str, mut taken: impl Iterator<Item = &'t str>) -> Option<String> {
    let wanted = Path::new(dir);
    let meets = |other: &&str| !other.is_empty() && (wanted.starts_with(other) || Path::new(other).starts_with(wanted));
    let other = taken.find(meets)?;
    let place = if wanted.starts_with(other) { "lies in" } else { "holds" };
    Some(format!("{dir} {place} {other}; choose a directory of its own, such as /var/lib/etcd-backup"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipient_is_a_public_key_of_age() {
        let key = "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa";
        assert_eq!(judge_recipient(key), None);
        assert!(judge_recipient(&key.replace('7', "8")).is_some_and(|why| why.contains("no public key")));
        let secret = judge_recipient("AGE-SECRET-KEY-1QQQQ").unwrap_or_default();
        assert!(secret.contains("private key") && !secret.contains("QQQQ"), "{secret}");
        assert!(judge_recipient("ssh-ed25519").is_some());
    }

    #[test]
    fn accounts_and_containers_have_names_that_the_store_takes() {
        assert_eq!([judge_account("mybackups1"), judge_container("etcd-backups")], [None, None]);
        for bad in ["ab", "My", "my-backups", "a.b", &"a".repeat(25)] {
            assert!(judge_account(bad).is_some_and(|why| why.contains(bad)), "{bad}");
        }
        for bad in ["ab", "a--b", "-ab", "ab-", "Etcd", "a/b", &"a".repeat(64)] {
            assert!(judge_container(bad).is_some_and(|why| why.contains(bad)), "{bad}");
        }
    }

    #[test]
    fn backups_lie_where_nothing_else_does() {
        let judge = |dir: &str| judge_directory(dir, TAKEN.into_iter().chain(["/data/kubelet", ""]));
        for good in ["/var/lib/etcd-backup", "/backup", "/data/backup"] {
            assert_eq!(judge(good), None);
        }
        for bad in
            ["/", "/etc/x", "/tmp", "/var/lib", "/var/lib/etcd", "/var/lib/etcd/backup", "/data/kubelet/x", "/data"]
        {
            assert!(judge(bad).is_some_and(|why| why.contains(bad)), "{bad}");
        }
    }
}
