//! Whether a bundle has everything that a cluster needs. It looks at names alone: bytes are checked
//! when they are taken.

use super::download::list_blobs;
use super::selection::{Artifact, Selection};
use super::sources::{Location, Sources};
use crate::{Error, Result};

impl Sources {
    /// An error that names what a bundle lacks of all that a cluster needs.
    ///
    /// # Errors
    /// The bundle cannot be read, or is not complete.
    pub fn require_complete(&self, bundle: &Location, selection: &Selection) -> Result<()> {
        let there = list_blobs(bundle)?;
        let is_there = |artifact: &Artifact| {
            self.accepted(artifact).iter().any(|(_, pin)| there.contains(&pin.sha256.to_string()))
        };
        let lacking: Vec<String> =
            selection.required().filter(|artifact| !is_there(artifact)).map(ToString::to_string).collect();
        let Some(first) = lacking.first() else { return Ok(()) };
        let message = match lacking.len() {
            1 => format!("the bundle {bundle} lacks {first}"),
            count => format!("the bundle {bundle} lacks {count} artifacts, {first} among them"),
        };
        let error = lacking.iter().skip(1).fold(Error::config(message), |error, name| error.evidence(name.clone()));
        Err(error.hint("make it with this turnup and this configuration: turnup artifacts bundle PLACE"))
    }
}
