//! Google Compute Engine: `instances.attachDisk`, with the token of the machine's service account.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::metadata;
use crate::cloud::http::{self, Bearer, HttpAnswer};
use crate::cloud::{Endpoints, VolumeApi, VolumeState};
use crate::error::{Error, Result};
use crate::exec::signals;
use crate::inventory::volume::Volume;

/// The public API.
const API: &str = "https://compute.googleapis.com";
/// How long an operation is followed; the volume's own state tells the rest.
const OPERATION: Duration = Duration::from_mins(1);

/// What the machine must be allowed to do.
const RIGHTS: &str = "the machine's service account needs compute.disks.get and compute.disks.use on this disk, compute.instances.attachDisk on \
    this machine, compute.zoneOperations.get, and roles/iam.serviceAccountUser on itself (docs/gce.md)";

/// The API, asked for one disk by one instance.
pub(super) struct Compute<'v> {
    volume: &'v Volume,
    api: String,
    /// `projects/P/zones/Z` of the disk.
    zone: String,
    /// The instance's name; it is in the disk's zone, or it could not be attached.
    instance: String,
    bearer: Bearer,
}

/// The links that udev makes of the name under which the disk is attached: by Google's rules, and
/// by systemd's.
pub(super) fn devices(volume: &Volume) -> Vec<PathBuf> {
    ["google-", "scsi-0Google_PersistentDisk_"]
        .map(|kind| format!("/dev/disk/by-id/{kind}{}", volume.name).into())
        .into()
}

impl<'v> Compute<'v> {
    pub(super) fn new(volume: &'v Volume, endpoints: &Endpoints) -> Result<Self> {
        let instance = metadata::ask(endpoints, "instance/name")?.trim().to_owned();
        let bearer = metadata::lend_token(endpoints)?;
        let zone = volume.id.rsplit_once("/disks/").map(|(zone, _)| zone.to_owned()).unwrap_or_default();
        let api = endpoints.api.clone().unwrap_or_else(|| API.to_owned());
        Ok(Self { volume, api, zone, instance, bearer })
    }

    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let answer = self.bearer.ask(method, &format!("{}/compute/v1/{path}", self.api), body)?;
        answer.require(|status, _| self.explain(status, &answer))?;
        answer.json()
    }

    fn explain(&self, status: u16, answer: &HttpAnswer) -> Error {
        let error =
            Error::new(http::class_of(status), format!("Compute Engine answers {status} about {}", self.volume.name));
        error.evidence(answer.said()).hint(http::advise(status, RIGHTS))
    }
}

impl VolumeApi for Compute<'_> {
    fn look(&mut self) -> Result<VolumeState> {
        let disk = self.call("GET", &self.volume.id, None)?;
        let users = disk["users"].as_array().into_iter().flatten().filter_map(Value::as_str);
        // `https://www.googleapis.com/compute/v1/projects/P/zones/Z/instances/NAME`
        let users: Vec<&str> = users.filter_map(|user| user.rsplit_once("/instances/").map(|(_, name)| name)).collect();
        if users.contains(&self.instance.as_str()) {
            return Ok(VolumeState::Here(devices(self.volume)));
        }
        let status = disk["status"].as_str().unwrap_or("READY");
        Ok(match users.first() {
            Some(user) => VolumeState::AttachedElsewhere((*user).to_owned()),
            None if status == "READY" => VolumeState::Free,
            None => VolumeState::Moving(format!("is {}", status.to_lowercase())),
        })
    }

    fn attach(&mut self) -> Result<()> {
        let body = json!({
            "source": self.volume.id,
            "deviceName": self.volume.name,
            "mode": "READ_WRITE",
            "type": "PERSISTENT",
            // The disk outlives its machines.
            "autoDelete": false,
        });
        let path = format!("{}/instances/{}/attachDisk", self.zone, self.instance);
        let mut operation = self.call("POST", &path, Some(&body))?;
        let since = Instant::now();
        while operation["status"] != "DONE" && since.elapsed() < OPERATION {
            signals::sleep(Duration::from_millis(500))?;
            let name = operation["name"].as_str().unwrap_or_default().to_owned();
            operation = self.call("GET", &format!("{}/operations/{name}", self.zone), None)?;
        }
        let Some(error) = operation["error"]["errors"].get(0) else { return Ok(()) };
        let (code, said) = (&error["code"], error["message"].as_str().unwrap_or_default());
        // Another machine was faster, or the old machine is not gone yet: the next poll names it.
        if code == "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE" || code == "RESOURCE_NOT_READY" {
            return Ok(());
        }
        let message = format!("Compute Engine does not attach {} to {}", self.volume.name, self.instance);
        let evidence = format!("{}: {said}", code.as_str().unwrap_or_default());
        // Whether a machine may be its own account is asked only when it is done.
        let is_denied = code == "SERVICE_ACCOUNT_ACCESS_DENIED";
        let error = if is_denied { Error::precondition(message).hint(RIGHTS) } else { Error::permanent(message) };
        Err(error.evidence(evidence))
    }
}
