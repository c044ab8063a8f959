//! The user's own files and programs on hosts, as typed values. Only read here; `bootstrap::assets`
//! puts them into the node config.

use serde::Deserialize;

use crate::config::Settings;
use crate::error::Result;
use crate::inventory::Role;

/// `phase2.host.file_assets` and `phase2.host.hooks`.
#[derive(Clone, Debug, Default)]
pub struct AssetSettings {
    /// Files.
    pub files: Vec<FileAsset>,
    /// Programs.
    pub hooks: Vec<Hook>,
}

/// One of `phase2.host.file_assets`; exactly one of `file`, `url`, `content`, `base64`, `link`
/// and `directory` is there.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileAsset {
    /// Its name.
    pub name: String,
    /// Where it lies on the host; absolute.
    pub path: String,
    /// The file with its bytes, from the directory of the configuration.
    #[serde(default)]
    pub file: Option<String>,
    /// Where the host fetches it.
    #[serde(default)]
    pub url: Option<String>,
    /// The sha256 of what the URL gives.
    #[serde(default)]
    pub sha256: Option<String>,
    /// Its one line, without the newline.
    #[serde(default)]
    pub content: Option<String>,
    /// Its bytes in base64.
    #[serde(default)]
    pub base64: Option<String>,
    /// Where a symbolic link leads; absolute.
    #[serde(default)]
    pub link: Option<String>,
    /// Whether it is a directory.
    #[serde(default)]
    pub directory: bool,
    /// Permission bits, octal; 0440 when nothing is said, 0755 for a directory.
    #[serde(default)]
    pub mode: Option<String>,
    /// The field that confirms a path or mode which can give root to other users.
    #[serde(default)]
    pub privileged: bool,
    /// Its user by name, and that user's group; root when nothing is said.
    #[serde(default)]
    pub owner: Option<String>,
    /// A group by name in place of the user's.
    #[serde(default)]
    pub owner_group: Option<String>,
    /// Only for hosts of these roles; for all when empty.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Only for hosts of these groups; for all when empty.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Units of systemd that are restarted when it changes.
    #[serde(default)]
    pub restarts: Vec<String>,
}

/// One of `phase2.host.hooks`; exactly one of `command` and `unit_file` is there.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// Its name.
    pub name: String,
    /// A command for `/bin/sh`.
    #[serde(default)]
    pub command: Option<String>,
    /// A file with a unit of systemd, from the directory of the configuration.
    #[serde(default)]
    pub unit_file: Option<String>,
    /// Units that wait for it.
    #[serde(default)]
    pub before: Vec<String>,
    /// Units that it waits for.
    #[serde(default)]
    pub after: Vec<String>,
    /// Units without which it does not run.
    #[serde(default)]
    pub requires: Vec<String>,
    /// When it runs.
    #[serde(default)]
    pub run: When,
    /// How long it may take, as a duration.
    #[serde(default)]
    pub timeout: Option<String>,
    /// Only for hosts of these roles; for all when empty.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Only for hosts of these groups; for all when empty.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Whether no host runs it.
    #[serde(default)]
    pub disabled: bool,
}

/// When a hook runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// At the first boot of a node only.
    Once,
    /// At each boot.
    #[default]
    Boot,
    /// As a service that is started again when it ends.
    Always,
}

/// Whether a host of this group and role is meant by lists of which an empty one means all.
#[must_use]
pub fn is_meant(roles: &[String], groups: &[String], role: Role, group: &str) -> bool {
    let among = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
    among(groups, group) && among(roles, role.name())
}

impl AssetSettings {
    pub(super) fn read(settings: &Settings) -> Result<Self> {
        Ok(Self {
            files: settings.get_records("phase2.host.file_assets")?,
            hooks: settings.get_records("phase2.host.hooks")?,
        })
    }
}
