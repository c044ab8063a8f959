//! Volumes that the host attaches to itself by its cloud's API, with the rights of its own
//! identity.
//!
//! One loop for all clouds: poll, attach once when the volume is free, poll again. A volume that
//! another machine has is waited for: that machine is dead, or its data would not have been
//! assigned to this one. A volume is never detached from it by force.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::cloud::{self, Endpoints, VolumeApi, VolumeState};
use crate::error::{Class, Error, Result};
use crate::exec::signals;
use crate::failpoint;
use crate::inventory::volume::Volume;

use super::event::{NodeEvent, Tell};

/// How long what is waited for.
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    /// Between two looks.
    poll: Duration,
    /// For the API to do what it was asked, and to answer at all.
    attach: Duration,
    /// For another machine to let go.
    elsewhere: Duration,
    /// For rights of a machine that is as new as they are to count: clouds name two to ten minutes.
    rights: Duration,
}

/// Within the timeout of the step that makes a control plane.
const TIMEOUTS: Timeouts = Timeouts {
    poll: Duration::from_secs(5),
    attach: Duration::from_mins(3),
    elsewhere: Duration::from_mins(6),
    rights: Duration::from_mins(8),
};

/// The devices as one of which the volume appears, attached to this host when it was not.
pub(super) fn attach(volume: &Volume, tell: Tell<'_>) -> Result<Vec<PathBuf>> {
    let local = find_local(volume);
    if local.iter().any(|path| path.exists()) {
        return Ok(local);
    }
    let mut api = cloud::require_volume(volume)?.volume_api(volume, &Endpoints::default())?;
    settle(api.as_mut(), volume, TIMEOUTS, tell)
}

/// The devices that the volume can only be once this host has it, without an API call. None where
/// only the API knows.
pub(super) fn find_local(volume: &Volume) -> Vec<PathBuf> {
    cloud::find_volume_provider(&volume.cloud).map_or_else(Vec::new, |provider| provider.local_devices(volume))
}

/// Looks and asks until the volume is here.
fn settle(api: &mut dyn VolumeApi, volume: &Volume, timeouts: Timeouts, tell: Tell<'_>) -> Result<Vec<PathBuf>> {
    let start = Instant::now();
    let (mut said, mut asked_at, mut held_since, mut freed_at) = (String::new(), None::<Instant>, None, start);
    let may_not_yet = |error: &Error| error.class() == Class::Precondition && start.elapsed() < timeouts.rights;
    loop {
        let state = match api.look() {
            Err(error) if may_not_yet(&error) => {
                freed_at = Instant::now();
                VolumeState::Moving(without_rights(&error))
            }
            Err(error) if error.class() == Class::Transient && start.elapsed() < timeouts.attach => {
                VolumeState::Moving(format!("is not told of: {}", error.message()))
            }
            state => state?,
        };
        let doing = match state {
            VolumeState::Here(devices) => return Ok(devices),
            VolumeState::Free if asked_at.is_none_or(|asked: Instant| asked.elapsed() > timeouts.attach / 2) => {
                match failpoint::around(format_args!("attach {}", volume.name), || api.attach()) {
                    Err(error) if may_not_yet(&error) => {
                        freed_at = Instant::now();
                        without_rights(&error)
                    }
                    asked => {
                        asked?;
                        asked_at = Some(Instant::now());
                        "is being attached".to_owned()
                    }
                }
            }
            VolumeState::Free => "is being attached".to_owned(),
            VolumeState::Moving(what) => what,
            VolumeState::AttachedElsewhere(who) => {
                if held_since.get_or_insert_with(Instant::now).elapsed() > timeouts.elsewhere {
                    return Err(held(volume, &who));
                }
                (freed_at, asked_at) = (Instant::now(), None);
                format!("is still attached to {who}: waiting up to {} s", timeouts.elsewhere.as_secs())
            }
        };
        if freed_at.elapsed() > timeouts.attach {
            let message = format!("the volume {} did not come within {} s", volume.name, timeouts.attach.as_secs());
            return Err(Error::transient(message).evidence(format!("the volume {doing}")).hint("turnup up"));
        }
        if doing != said {
            tell(NodeEvent::Waiting(format!("the volume {} {doing}", volume.name)))?;
            said = doing;
        }
        signals::sleep(timeouts.poll)?;
    }
}

fn without_rights(error: &Error) -> String {
    format!("is not this host's to attach yet, as far as rights that are new count: {}", error.message())
}

fn held(volume: &Volume, who: &str) -> Error {
    let provider = cloud::find_volume_provider(&volume.cloud);
    let command = provider.map(|provider| provider.detach_command(volume, who)).unwrap_or_default();
    Error::precondition(format!(
        "the volume {} is attached to another machine, which does not let go: {who}",
        volume.name
    ))
    .evidence(format!("{} with etcd's data; two machines must never have it", volume.id))
    .hint(format!("if that machine is dead: {command}; then: turnup up"))
}

#[cfg(test)]
mod tests;
