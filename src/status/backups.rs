//! The last backup of etcd, and whether it is as old as it may be.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::bootstrap::backup;
use crate::cluster::Cluster;
use crate::error::Result;

use super::gap::Gap;

/// How backups stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BackupStatus {
    /// The newest one that can be read, on any host; none where there is none yet.
    pub last: Option<LastBackup>,
    /// The newest one in the store; none where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<LastBackup>,
    /// What is wrong, a sentence each; nothing where all is well.
    pub warnings: Vec<String>,
}

/// The newest backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LastBackup {
    /// Its name.
    pub name: String,
    /// The host that has it.
    pub host: String,
    /// When it was taken.
    pub time: Timestamp,
    /// How long ago.
    pub age_seconds: i64,
}

impl LastBackup {
    fn of(name: String, host: String, time: Timestamp, now: Timestamp) -> Self {
        Self { name, host, time, age_seconds: now.duration_since(time).as_secs() }
    }

    /// Older than two intervals: the next one should long be there.
    fn is_late(&self, interval: Duration) -> bool {
        self.age_seconds > i64::try_from(interval.as_secs()).unwrap_or(i64::MAX).saturating_mul(2)
    }
}

/// Asks the control-plane hosts; nothing where no backups are taken, or no host was handed over.
pub(super) fn ask(cluster: &Cluster) -> Result<(Option<BackupStatus>, Vec<Gap>)> {
    let Some(settings) = &cluster.settings.backup else { return Ok((None, Vec::new())) };
    if cluster.find_inventory()?.is_none() {
        return Ok((None, Vec::new()));
    }
    let (mut newest, mut failed, mut gaps) = (None, Vec::new(), Vec::new());
    let (mut stored, mut problem) = (None, None);
    for host in backup::list(cluster)? {
        match host.list {
            Ok(list) => {
                if let Some(store) = list.stored {
                    problem = problem.or(store.problem);
                    let newest_copy =
                        store.backups.into_iter().next_back().map(|(time, object)| (time, object.name, store.place));
                    stored = stored.into_iter().chain(newest_copy).max();
                }
                failed.extend(list.failed.then_some(host.host));
                let whole = list.backups.into_iter().filter(|backup| backup.damage.is_none());
                newest = newest.into_iter().chain(whole).max_by_key(|backup| backup.time);
            }
            Err(error) => gaps.push(Gap::new(format!("backups on {}", host.host), error)),
        }
    }
    let now = Timestamp::now();
    let last = newest.map(|backup| LastBackup::of(backup.name, backup.host, backup.time, now));
    let mut status = judge(last, &failed, settings.interval);
    if settings.has_store() {
        let stored = stored.map(|(time, name, place)| LastBackup::of(name, place, time, now));
        status.warnings.extend(judge_store(stored.as_ref(), problem.as_deref(), settings.interval));
        status.stored = stored;
    }
    Ok((Some(status), gaps))
}

/// What is wrong with the copies in the store; nothing where all is well.
fn judge_store(last: Option<&LastBackup>, problem: Option<&str>, interval: Duration) -> Option<String> {
    match (problem, last) {
        (Some(problem), _) => Some(format!("the store does not tell: {problem}")),
        (None, None) => Some("the store has none yet: turnup backup now".to_owned()),
        (None, Some(last)) if last.is_late(interval) => {
            Some("the last one in the store is older than two intervals: turnup backup now".to_owned())
        }
        (None, Some(_)) => None,
    }
}

/// What is wrong with those on the hosts.
fn judge(last: Option<LastBackup>, failed: &[String], interval: Duration) -> BackupStatus {
    let mut warnings: Vec<String> = failed
        .iter()
        .map(|host| format!("the last try on {host} failed; see there: journalctl --unit turnup-backup"))
        .collect();
    match &last {
        None => warnings.push("there is none yet: turnup backup now".to_owned()),
        Some(last) if last.is_late(interval) => {
            warnings.push("the last one is older than two intervals: turnup backup now".to_owned());
        }
        Some(_) => {}
    }
    BackupStatus { last, stored: None, warnings }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_late_after_two_intervals() {
        let last = |age_seconds| {
            Some(LastBackup { name: "b".into(), host: "h0".into(), time: Timestamp::UNIX_EPOCH, age_seconds })
        };
        let count = |last, failed: &[String]| judge(last, failed, Duration::from_mins(10)).warnings.len();
        assert_eq!(
            [count(last(0), &[]), count(last(1200), &[]), count(last(1201), &[]), count(None, &[])],
            [0, 0, 1, 1]
        );
        assert_eq!(count(last(0), &["h0".to_owned()]), 1);
        let store = |last: Option<LastBackup>, problem| judge_store(last.as_ref(), problem, Duration::from_mins(10));
        assert_eq!((store(last(1200), None), store(last(1201), None).is_some()), (None, true));
        assert!(store(None, None).is_some_and(|why| why.contains("none yet")));
        assert!(store(last(0), Some("HTTP 403")).is_some_and(|why| why.contains("HTTP 403")));
    }
}
