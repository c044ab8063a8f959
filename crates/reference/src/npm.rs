//! Azurite, Microsoft's emulator of Azure Storage, from the index of npm by name and version, into
//! a directory of its own in the cache.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cache::Making;
use crate::{Missing, install, program};

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
            install("npm", &npm, &[&words[..], &[made.to_str().unwrap(), AZURITE]].concat(), LIMIT, AZURITE)
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
