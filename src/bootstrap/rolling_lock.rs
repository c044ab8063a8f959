//! One host of the control plane restarts at a time, and the file of etcd's members changes by one
//! hand at a time. It starts and stops nothing.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::phase::Cx;

use super::etcd_members::{FILE, MemberStart, Members};

/// Between two tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// The turns that hosts of the control plane take, and the file in which they write what became of
/// them.
#[derive(Default)]
pub(super) struct RollingLock {
    turn: Mutex<()>,
    file: Mutex<()>,
}

impl RollingLock {
    pub(super) fn change(&self, cluster: &Cluster, change: impl FnOnce(&mut Members)) -> Result<()> {
        let _alone = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut members) = Members::find(&cluster.store)? else {
            return Err(Error::bug(format!("{FILE} is missing")));
        };
        let before = members.clone();
        change(&mut members);
        if members == before { Ok(()) } else { write_members(cluster, &members) }
    }

    /// Waits until no other host is restarting, and all members before this one have joined.
    pub(super) fn take(&self, cluster: &Cluster, name: &str, cx: &Cx) -> Result<MutexGuard<'_, ()>> {
        loop {
            let members = Members::find(&cluster.store)?.map(|members| members.all).unwrap_or_default();
            let joining = members.iter().find(|member| member.start == MemberStart::Joining);
            let is_next = joining.is_none_or(|first| first.name == name)
                || members.iter().any(|member| member.name == name && member.start != MemberStart::Joining);
            match self.turn.try_lock() {
                Ok(turn) if is_next => return Ok(turn),
                Err(TryLockError::Poisoned(turn)) if is_next => return Ok(turn.into_inner()),
                _ => {}
            }
            if cx.remaining() < RETRY_INTERVAL * 4 {
                let first = joining.map_or("another host", |member| &member.name);
                return Err(Error::transient(format!(
                    "{first} has to be a member of etcd before {name}, and is not yet"
                )));
            }
            cx.sleep(RETRY_INTERVAL)?;
        }
    }
}

/// Writes down who the members are.
pub(super) fn write_members(cluster: &Cluster, members: &Members) -> Result<()> {
    cluster.write_document(FILE, members, 0o600)
}
