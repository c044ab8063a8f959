//! Volumes that the host attaches to itself by its cloud's API, with the rights of its own identity.
//!
//! One loop for all clouds: poll, attach once when the volume is free, poll again. A volume that
//! another machine has is waited for: that machine is dead, or its data would not have been
//! assigned to this one. A volume is never detached from it by force.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Class, Error, Result};
use crate::exec::signals;
use crate::failpoint;
use crate::inventory::volume::{Cloud, Volume};

use super::event::{NodeEvent, Tell};

mod aws;
mod azure;
mod gce;
mod http;
mod sigv4;

/// Where every cloud's metadata service answers its machines.
const METADATA: &str = "http://169.254.169.254";

/// How long what is waited for.
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    /// Between two looks.
    poll: Duration,
    /// For the API to do what it was asked, and to answer at all.
    attach: Duration,
    /// For another machine to let go.
    elsewhere: Duration,
    /// For rights of a machine that is as new as they are to count: Google names two to seven minutes, Azure up to ten.
    rights: Duration,
}

/// Within the timeout of the step that makes a control plane.
const TIMEOUTS: Timeouts = Timeouts {
    poll: Duration::from_secs(5),
    attach: Duration::from_mins(3),
    elsewhere: Duration::from_mins(6),
    rights: Duration::from_mins(8),
};

/// Where a volume is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// At this host, as one of these devices.
    Here(Vec<PathBuf>),
    /// Nowhere.
    Free,
    /// On its way.
    Moving(String),
    /// At this other machine.
    AttachedElsewhere(String),
}

/// One cloud's API, for one volume.
trait Api {
    /// Where the volume is now.
    fn look(&mut self) -> Result<State>;
    /// Asks for it to be attached to this host. Another machine may have been faster: the next look tells.
    fn attach(&mut self) -> Result<()>;
}

/// The devices as one of which the volume appears, attached to this host when it was not.
pub(super) fn attach(volume: &Volume, tell: Tell<'_>) -> Result<Vec<PathBuf>> {
    let local = find_local(volume);
    if local.iter().any(|path| path.exists()) {
        return Ok(local);
    }
    if volume.parts().is_none() {
        let message = format!("the volume's id {:?} is not of the form {}", volume.id, volume.cloud.form());
        return Err(Error::config(message).hint("correct etcd_volume in the inventory"));
    }
    let mut api: Box<dyn Api> = match volume.cloud {
        Cloud::Gce => Box::new(gce::Compute::new(volume, METADATA, gce::API)?),
        Cloud::Aws => Box::new(aws::Ec2::new(volume, METADATA, None)?),
        Cloud::Azure => Box::new(azure::Manager::new(volume, METADATA, None)?),
    };
    settle(api.as_mut(), volume, TIMEOUTS, tell)
}

/// The devices that the volume can only be once this host has it, without an API call. None where
/// only the API knows.
pub(super) fn find_local(volume: &Volume) -> Vec<PathBuf> {
    match volume.cloud {
        Cloud::Gce => gce::devices(volume),
        Cloud::Aws => aws::devices(volume, Path::new("/sys/block")),
        Cloud::Azure => Vec::new(),
    }
}

/// Looks and asks until the volume is here.
fn settle(api: &mut dyn Api, volume: &Volume, timeouts: Timeouts, tell: Tell<'_>) -> Result<Vec<PathBuf>> {
    let start = Instant::now();
    let (mut said, mut asked_at, mut held_since, mut freed_at) = (String::new(), None::<Instant>, None, start);
    let may_not_yet = |error: &Error| error.class() == Class::Precondition && start.elapsed() < timeouts.rights;
    loop {
        let state = match api.look() {
            Err(error) if may_not_yet(&error) => {
                freed_at = Instant::now();
                State::Moving(without_rights(&error))
            }
            Err(error) if error.class() == Class::Transient && start.elapsed() < timeouts.attach => {
                State::Moving(format!("is not told of: {}", error.message()))
            }
            state => state?,
        };
        let doing = match state {
            State::Here(devices) => return Ok(devices),
            State::Free if asked_at.is_none_or(|asked: Instant| asked.elapsed() > timeouts.attach / 2) => {
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
            State::Free => "is being attached".to_owned(),
            State::Moving(what) => what,
            State::AttachedElsewhere(who) => {
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
    let command = match volume.cloud {
        Cloud::Gce => {
            let zone = volume.parts().and_then(|parts| parts.get(1).copied()).unwrap_or("ZONE");
            let name = who.rsplit('/').next().unwrap_or(who);
            format!("gcloud compute instances detach-disk {name} --disk={} --zone={zone}", volume.name)
        }
        Cloud::Aws => format!("aws ec2 detach-volume --volume-id {}", volume.id),
        Cloud::Azure => format!("az vm disk detach --ids {who} --name {}", volume.name),
    };
    Error::precondition(format!(
        "the volume {} is attached to another machine, which does not let go: {who}",
        volume.name
    ))
    .evidence(format!("{} with etcd's data; two machines must never have it", volume.id))
    .hint(format!("if that machine is dead: {command}; then: turnup up"))
}

#[cfg(test)]
mod tests;
