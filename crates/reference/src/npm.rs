//! Azurite, Microsoft's emulator of Azure Storage, from the index of npm by name and version, into
//! a directory of its own in the cache.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cache::Making;
use crate::{Missing, program};

/// The version that results were compared with.
const AZURITE: &str = "azurite@3.35.0";
const LIMIT: Duration = Duration::from_mins(8);

/// The emulator.
#[derive(Clone, Debug)]
pub struct Azurite {
    node: PathBuf,
    script: PathBuf,
}

impl Azurite {
    /// From the cache, or installed into it.
    pub fn get() -> Result<Self, Missing> {
        let (node, npm) = (program("node")?, program("npm")?);
        let packages = Making::begin()?.directory(&format!("npm/{AZURITE}"), |made| {
            let words = ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
            let args = words.iter().copied().chain([made.to_str().unwrap(), AZURITE]);
            let run = duct::cmd(&npm, args).stdin_null().stdout_null().stderr_capture().unchecked();
            let handle = run.start().map_err(|error| Missing::new(error.to_string()))?;
            let Some(output) = handle.wait_timeout(LIMIT).unwrap() else {
                handle.kill().unwrap();
                return Err(Missing::new("npm takes too long: is there a way to the package index?"));
            };
            if output.status.success() {
                return Ok(());
            }
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(Missing::new(format!("npm cannot install {AZURITE}: {}", said.trim())))
        })?;
        Ok(Self { node, script: packages.join("node_modules/azurite/dist/src/blob/main.js") })
    }

    /// Node.js.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.node
    }

    /// The server of blobs, for Node.js.
    #[must_use]
    pub fn script(&self) -> &Path {
        &self.script
    }
}
