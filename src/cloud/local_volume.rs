//! The volumes of hosts that are made on this machine: the API by which such a host attaches one to
//! itself, as a machine of a cloud does. The machine around the host serves it
//! (`provision::local::service`).
//!
//! The answer about a volume is [`LocalVolume`] as JSON. Who asks is known by the address that the
//! question comes from, so a host attaches volumes to itself alone.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::cloud::http::{self, HttpAnswer};
use crate::cloud::{Endpoints, VolumeApi, VolumeProvider, VolumeState};
use crate::error::{Error, Result};
use crate::inventory::volume::Volume;

/// Where a volume is, as the machine around the hosts says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalVolume {
    /// Its name.
    pub name: String,
    /// What it is known by, as in a cloud: `cluster`, `etcd`, `member`.
    pub tags: std::collections::BTreeMap<String, String>,
    /// Whose it is and what it is there: `available`, `attaching`, `in-use`.
    pub state: LocalVolumeState,
    /// The host that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whether that is the host that asks.
    pub here: bool,
}

/// What EC2 says of its volumes, in its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocalVolumeState {
    /// No host has it.
    Available,
    /// It was asked for, and is not there yet.
    Attaching,
    /// A host has it.
    InUse,
}

/// The place of a volume on a host that has it.
#[must_use]
pub fn device_of(name: &str) -> PathBuf {
    PathBuf::from(format!("/dev/disk/by-id/turnup-{name}"))
}

/// The volumes of this machine's hosts.
#[derive(Debug)]
pub(super) struct LocalVolumes;

impl VolumeProvider for LocalVolumes {
    fn name(&self) -> &'static str {
        "local"
    }

    fn volume_id_form(&self) -> &'static str {
        // Where it is asked for, and its name.
        "*/volumes/*"
    }

    fn local_devices(&self, volume: &Volume) -> Vec<PathBuf> {
        vec![device_of(&volume.name)]
    }

    fn volume_api<'v>(&self, volume: &'v Volume, _endpoints: &Endpoints) -> Result<Box<dyn VolumeApi + 'v>> {
        Ok(Box::new(Service { volume, url: format!("http://{}", volume.id) }))
    }

    fn detach_command(&self, _volume: &Volume, machine: &str) -> String {
        format!("turnup local list (on the machine that has the hosts), and end {machine} there")
    }
}

/// The API, asked for one volume.
struct Service<'v> {
    volume: &'v Volume,
    url: String,
}

impl Service<'_> {
    fn require(&self, answer: &HttpAnswer) -> Result<()> {
        answer.require(|status, text| {
            let message =
                format!("the machine around this host answers {status} about the volume {}", self.volume.name);
            Error::new(http::class_of(status), message)
                .evidence(http::shorten(text))
                .hint("turnup up (on that machine)")
        })
    }
}

impl VolumeApi for Service<'_> {
    fn look(&mut self) -> Result<VolumeState> {
        let answer = http::ask_nearby("GET", &self.url)?;
        self.require(&answer)?;
        let found: LocalVolume = serde_json::from_value(answer.json()?)
            .map_err(|_| Error::permanent(format!("{} answered with no volume", self.url)))?;
        Ok(match (found.state, found.host) {
            (LocalVolumeState::Available, _) => VolumeState::Free,
            (LocalVolumeState::Attaching, _) => VolumeState::Moving("is being attached".into()),
            (LocalVolumeState::InUse, _) if found.here => VolumeState::Here(vec![device_of(&self.volume.name)]),
            (LocalVolumeState::InUse, host) => VolumeState::AttachedElsewhere(host.unwrap_or_default()),
        })
    }

    fn attach(&mut self) -> Result<()> {
        let answer = http::ask_nearby("POST", &self.url)?;
        // Another host was faster: the next look names it.
        if answer.status == 409 { Ok(()) } else { self.require(&answer) }
    }
}
