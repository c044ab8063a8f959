//! One round of care for etcd: look at its members, decide (`etcd`, pure), act (`etcdctl`), and
//! look again where one act makes room for the next.

use jiff::{SignedDuration, Timestamp};

use crate::error::{Error, Result};

use super::super::etcd_restore::OwnMember;
use super::super::node_config::NodeConfig;
use super::super::up;
use super::etcd::{EtcdAction, EtcdView, decide};
use super::etcdctl::OwnEtcd;
use super::rejoin::{self, Rejoin, RejoinOutcome};

/// Where a member's turn has come and it has to wait, it looks that often.
const WAIT: SignedDuration = SignedDuration::from_mins(5);
/// What is said of a full etcd while other members have their turns.
const IN_TURN: &str = "etcd is full (alarm NOSPACE): its members are defragmented one by one";
/// What was wrong and is not any more.
const FREED: &str = "etcd was full (alarm NOSPACE) and took no writes";

/// What a round came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// There is nothing to tell.
    Well,
    /// Done as settings ask for it.
    Done(String),
    /// This was wrong, and was put right.
    Repaired(String),
    /// This is wrong.
    Problem(String),
    /// This is wrong, and is being put right: the next look comes soon.
    Going(String),
}

/// What the agent remembers between two rounds.
#[derive(Debug, Default)]
pub(super) struct EtcdCare {
    /// How often this host's member is defragmented; never without it.
    interval: Option<SignedDuration>,
    /// Before that time nothing is due.
    next: Option<Timestamp>,
    /// How many looks in a row etcd did not answer: it may just start.
    silent: u32,
    rejoin: Rejoin,
}

impl EtcdCare {
    pub(super) fn new(interval: Option<SignedDuration>) -> Self {
        Self { interval, ..Self::default() }
    }

    /// One round on a host of this node config. etcd that is well and has nothing due is asked no
    /// more than that.
    pub(super) fn round(&mut self, node_config: &NodeConfig, now: Timestamp) -> Care {
        let Some(etcd) = OwnEtcd::find(node_config) else { return Care::Well };
        let health = node_config.health.iter().find(|health| health.pod.starts_with("kube-system_etcd-"));
        let lacks_data = OwnMember::of(node_config).is_some_and(|member| rejoin::lacks_data(&member));
        let is_well = !lacks_data && health.is_none_or(|health| up::ask(&health.url).is_ok());
        let remembered =
            if is_well && !self.rejoin.is_under_way() { self.rejoin.remember(etcd.program()) } else { Ok(true) };
        let rejoined = match remembered {
            Err(error) => self.fall_silent(&node_config.node, &error),
            Ok(false) => Care::Well,
            Ok(true) => match self.rejoin.round(node_config, etcd.program()) {
                RejoinOutcome::Nothing => Care::Well,
                RejoinOutcome::Going(what) => Care::Going(what),
                RejoinOutcome::Joined(what) => Care::Repaired(what),
                RejoinOutcome::Blocked(why) => Care::Problem(why),
            },
        };
        if rejoined != Care::Well {
            return rejoined;
        }
        let is_due = self.interval.is_some() && self.next.is_none_or(|next| now >= next);
        if is_well && !is_due {
            self.silent = 0;
            return Care::Well;
        }
        match care(&etcd, self.interval, now) {
            Ok((care, last)) => {
                self.silent = 0;
                self.next = self.interval.map(|interval| next_turn(interval, last, now));
                care
            }
            Err(error) => self.fall_silent(&node_config.node, &error),
        }
    }

    /// Whether this host's member has lost its data, and does not vote again yet.
    pub(super) const fn is_rejoining(&self) -> bool {
        self.rejoin.is_under_way()
    }

    /// Once it may just start; then it is a problem.
    fn fall_silent(&mut self, host: &str, error: &Error) -> Care {
        self.silent = self.silent.saturating_add(1);
        if self.silent < 2 {
            return Care::Well;
        }
        Care::Problem(format!(
            "etcd of this host: {}; when its data are damaged: turnup reset {host}, then: turnup up",
            error.message()
        ))
    }
}

/// When this host's member is to be looked at again, by when it was last defragmented.
fn next_turn(interval: SignedDuration, last: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let due = last.and_then(|last| last.checked_add(interval).ok());
    due.map_or(now + WAIT, |due| due.max(now + WAIT))
}

/// Looks and acts; and when this host's member was last defragmented.
fn care(etcd: &OwnEtcd, interval: Option<SignedDuration>, now: Timestamp) -> Result<(Care, Option<Timestamp>)> {
    let (mut view, revision) = etcd.view()?;
    let mut action = decide(&view, interval, now, false);
    if action == EtcdAction::Compact {
        etcd.compact(revision)?;
        (view, _) = etcd.view()?;
        action = decide(&view, interval, now, true);
        if action == EtcdAction::Defragment {
            etcd.defragment()?;
            (view, _) = etcd.view()?;
            action = decide(&view, interval, now, true);
        }
    }
    let (name, last) = own(&view);
    match action {
        EtcdAction::Nothing if view.alarms.is_empty() => Ok((Care::Well, last)),
        EtcdAction::Nothing | EtcdAction::Compact | EtcdAction::Defragment => {
            Ok((Care::Problem(IN_TURN.to_owned()), last))
        }
        EtcdAction::Report(why) => Ok((Care::Problem(why), last)),
        EtcdAction::Disarm => {
            etcd.disarm()?;
            Ok((Care::Repaired(FREED.to_owned()), last))
        }
        EtcdAction::DefragmentInTurn => {
            etcd.defragment_in_turn(&name, now)?;
            Ok((Care::Done(format!("defragmented the etcd member {name}")), Some(now)))
        }
    }
}

/// The name of this host's member, and when it was last defragmented.
fn own(view: &EtcdView) -> (String, Option<Timestamp>) {
    let own = view.members.iter().find(|member| member.id == view.own);
    let name = own.map(|member| member.name.clone()).unwrap_or_default();
    let last = view.defragmented.get(&name).copied();
    (name, last)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::*;

    /// An etcd of one member: `full` is there while it has the alarm, `holes` while its file has
    /// some. It notes what it is told to do.
    const ETCDCTL: &str = r#"#!/bin/sh
cd "$(dirname "$0")"
case " $* " in
  *" member list "*) echo '{"header": {}, "members": [{"ID": 7, "name": "cp", "peerURLs": []}]}' ;;
  *" endpoint status "*)
    if [ -e holes ]; then size=2147483648; else size=104857600; fi
    echo "[{\"Endpoint\": \"a\", \"Status\": {\"header\": {\"member_id\": 7, \"revision\": 41}, \"leader\": 7,
      \"dbSize\": $size, \"dbSizeInUse\": 104857600}}]" ;;
  *" alarm list "*)
    if [ -e full ]; then echo '{"alarms": [{"memberID": 7, "alarm": 1}]}'; else echo '{"header": {}}'; fi ;;
  *" get "*) if [ -e kept ]; then cat kept; else echo '{"header": {}}'; fi ;;
  *" compact "*)
    echo "$*" | grep -o 'compact.*' | sed 's| --command[^ ]*||' >>done
    if [ -e compacted ]; then echo "Error: etcdserver: mvcc: required revision has been compacted" >&2; exit 1; fi ;;
  *" lock "*) echo "$*" | grep -o 'lock.*' | sed "s|$PWD/||; s| --[a-z-]*=[^ ]*||g" >>done ;;
  *" defrag "*) echo defrag >>done; rm -f holes ;;
  *" alarm disarm "*) echo disarm >>done; rm full ;;
  *" put "*) echo "$*" | grep -o 'put.*' >>done ;;
esac
"#;

    fn etcd(dir: &Path, files: &[&str]) -> OwnEtcd {
        let program = dir.join("etcdctl");
        fs_err::write(&program, ETCDCTL).unwrap();
        fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        for file in files {
            fs_err::write(dir.join(file), "").unwrap();
        }
        OwnEtcd::of(program)
    }

    fn done(dir: &Path) -> String {
        fs_err::read_to_string(dir.join("done")).unwrap_or_default()
    }

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    #[test]
    fn a_full_member_has_room_again_and_takes_writes() {
        for files in [&["full", "holes"][..], &["full", "holes", "compacted"]] {
            let dir = tempfile::tempdir().unwrap();
            let etcd = etcd(dir.path(), files);
            let (cared, _) = care(&etcd, None, now()).unwrap();
            assert_eq!(cared, Care::Repaired(FREED.into()));
            assert_eq!(done(dir.path()), "compact --physical 41\ndefrag\ndisarm\n");
            assert_eq!(care(&etcd, None, now()).unwrap().0, Care::Well);
        }
    }

    #[test]
    fn in_the_interval_a_member_is_defragmented_under_the_lock_and_that_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let etcd = etcd(dir.path(), &[]);
        let day = SignedDuration::from_hours(24);
        assert_eq!(care(&etcd, None, now()).unwrap(), (Care::Well, None), "no interval");
        let (cared, last) = care(&etcd, Some(day), now()).unwrap();
        assert_eq!((cared, last), (Care::Done("defragmented the etcd member cp".into()), Some(now())));
        insta::assert_snapshot!(done(dir.path()), @r"
        lock -- turnup/defragment etcdctl defrag
        put turnup/defragmented/cp 2026-01-02T03:04:05Z
        ");
        // As etcd answers from then on; the key and the value in base64.
        let kept = r#"{"kvs": [{"key": "dHVybnVwL2RlZnJhZ21lbnRlZC9jcA==", "value": "MjAyNi0wMS0wMlQwMzowNDowNVo="}]}"#;
        fs_err::write(dir.path().join("kept"), kept).unwrap();
        let later = now() + SignedDuration::from_hours(23);
        assert_eq!(care(&etcd, Some(day), later).unwrap(), (Care::Well, Some(now())));
        assert_eq!(next_turn(day, Some(now()), later), now() + day);
        assert_eq!(next_turn(day, Some(now()), now() + day), now() + day + WAIT, "others come first");
    }

    #[test]
    fn what_etcdctl_says_otherwise_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let etcd = etcd(dir.path(), &[]);
        fs_err::write(dir.path().join("etcdctl"), "#!/bin/sh\necho 'context deadline exceeded' >&2\nexit 1\n").unwrap();
        assert!(care(&etcd, None, now()).is_err());
    }
}
