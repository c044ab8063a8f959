//! Microsoft Azure: `attachDetachDataDisks`, with the token of the machine's managed identity.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::identity::ManagedIdentity;
use crate::cloud::http::{self, HttpAnswer};
use crate::cloud::{Endpoints, VolumeApi, VolumeState};
use crate::error::{Error, Result};
use crate::inventory::volume::Volume;

/// The version of the API of machines, and of disks.
const MACHINES: &str = "2024-07-01";
const DISKS: &str = "2024-03-02";
/// The smallest machines take fewer; the API says so.
const LUNS: std::ops::Range<u64> = 0..64;

/// The API, asked for one disk by one machine.
pub(super) struct Manager<'v> {
    volume: &'v Volume,
    identity: ManagedIdentity,
}

/// The links of Azure's udev rules: of `azure-vm-utils`, of the older agent.
fn devices(lun: u64) -> Vec<PathBuf> {
    vec![format!("/dev/disk/azure/data/by-lun/{lun}").into(), format!("/dev/disk/azure/scsi1/lun{lun}").into()]
}

impl<'v> Manager<'v> {
    pub(super) fn new(volume: &'v Volume, endpoints: &Endpoints) -> Result<Self> {
        Ok(Self { volume, identity: ManagedIdentity::open(endpoints)? })
    }

    fn call(&self, method: &str, path: &str, version: &str, body: Option<&Value>) -> Result<HttpAnswer> {
        self.identity.ask(method, &format!("{path}?api-version={version}"), None, body)
    }

    fn get(&self, path: &str, version: &str) -> Result<Value> {
        let answer = self.call("GET", path, version, None)?;
        answer.require(|status, _| self.explain(status, &answer))?;
        answer.json()
    }

    fn explain(&self, status: u16, answer: &HttpAnswer) -> Error {
        let said = answer.json().ok().map(|value| value["error"].clone()).filter(Value::is_object);
        let said = said.map_or_else(
            || http::shorten(&answer.text),
            |error| {
                let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
                format!("{}: {}", text("code"), text("message"))
            },
        );
        let error = Error::new(http::class_of(status), format!("Azure answers {status} about {}", self.volume.name));
        let rights = "the machine's identity needs the role that docs/azure.md names, on this disk and this machine";
        error.evidence(said).hint(http::advise(status, rights))
    }

    /// The data disks of this machine.
    fn disks(&self) -> Result<Vec<Value>> {
        let machine = self.get(&self.identity.machine, MACHINES)?;
        Ok(machine["properties"]["storageProfile"]["dataDisks"].as_array().cloned().unwrap_or_default())
    }
}

impl VolumeApi for Manager<'_> {
    fn look(&mut self) -> Result<VolumeState> {
        let is_ours = |disk: &&Value| {
            disk["managedDisk"]["id"].as_str().is_some_and(|id| id.eq_ignore_ascii_case(&self.volume.id))
        };
        let disks = self.disks()?;
        if let Some(disk) = disks.iter().find(is_ours) {
            return Ok(match disk["lun"].as_u64() {
                Some(lun) if disk["toBeDetached"] != true => VolumeState::Here(devices(lun)),
                _ => VolumeState::Moving("is being detached".into()),
            });
        }
        let disk = self.get(&self.volume.id, DISKS)?;
        let holder = disk["managedBy"].as_str().filter(|holder| !holder.eq_ignore_ascii_case(&self.identity.machine));
        let state = disk["properties"]["diskState"].as_str().unwrap_or_default();
        Ok(match (holder, state) {
            (Some(holder), _) => VolumeState::AttachedElsewhere(holder.to_owned()),
            (None, "Unattached") => VolumeState::Free,
            (None, other) => VolumeState::Moving(format!("is {}", other.to_lowercase())),
        })
    }

    fn attach(&mut self) -> Result<()> {
        let taken: BTreeSet<u64> = self.disks()?.iter().filter_map(|disk| disk["lun"].as_u64()).collect();
        let Some(lun) = LUNS.into_iter().find(|lun| !taken.contains(lun)) else {
            return Err(Error::precondition("this machine has as many disks as it can")
                .hint("detach one that it does not need"));
        };
        let body = json!({"dataDisksToAttach": [{"diskId": self.volume.id, "lun": lun}]});
        let path = format!("{}/attachDetachDataDisks", self.identity.machine);
        let answer = self.call("POST", &path, MACHINES, Some(&body))?;
        // 409: another change of the machine or the disk is under way. The next look says what came
        // of it.
        if answer.status == 409 {
            return Ok(());
        }
        answer.require(|status, _| self.explain(status, &answer))
    }
}
