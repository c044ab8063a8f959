//! How this machine, and people, log in to hosts: the settings `phase1.ssh.*` as typed values. It
//! connects to nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::Settings;
use crate::error::Result;

/// Where the target asks nothing about SSH: hosts on this machine.
const DEFAULT_PORT: u16 = 22;

/// Key, user, port and the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshSettings {
    /// The user of hosts that do not say another one.
    pub user: String,
    /// The port of hosts that do not say another one.
    pub port: u16,
    /// The user's own key; none: turnup makes one for the cluster.
    pub key: Option<PathBuf>,
    /// The host keys from the user's own file.
    pub known_hosts: Option<PathBuf>,
    /// For one attempt to connect.
    pub connect_timeout: Duration,
    /// Whether the agent's keys are offered.
    pub use_agent: bool,
    /// Files with further public keys that may log in.
    pub authorized_key_files: Vec<PathBuf>,
    /// A host that exists and passes connections on to all others.
    pub bastion: Option<Bastion>,
}

/// A host that only passes connections on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bastion {
    /// Its name or address.
    pub host: String,
    /// The user there.
    pub user: String,
    /// The port.
    pub port: u16,
}

impl SshSettings {
    /// What the settings say; paths relative to `work_dir`.
    pub fn read(settings: &Settings, work_dir: &Path) -> Result<Self> {
        let file = |name: &str| -> Result<Option<PathBuf>> {
            Ok(Some(settings.get(name)?).filter(|path| !path.is_empty()).map(|path| work_dir.join(path)))
        };
        let bastion =
            (settings.get("phase1.ssh.bastion")? == "existing").then(|| read_bastion(settings)).transpose()?;
        Ok(Self {
            user: settings.ssh_user()?,
            port: port(settings, "phase1.ssh.port")?,
            key: file("phase1.ssh.private_key_file")?,
            known_hosts: file("phase1.ssh.known_hosts_file")?,
            connect_timeout: settings.get_duration("phase1.ssh.connect_timeout")?.unwrap_or(Duration::from_secs(10)),
            use_agent: settings.get_bool("phase1.ssh.use_agent")?,
            authorized_key_files: settings
                .get_list("phase1.ssh.authorized_key_files")?
                .iter()
                .map(|file| work_dir.join(file))
                .collect(),
            bastion,
        })
    }
}

fn read_bastion(settings: &Settings) -> Result<Bastion> {
    Ok(Bastion {
        host: settings.get("phase1.ssh.bastion_host")?,
        user: settings.get("phase1.ssh.bastion_user")?,
        port: port(settings, "phase1.ssh.bastion_port")?,
    })
}

fn port(settings: &Settings, name: &str) -> Result<u16> {
    let port = settings.get_number(name)?;
    Ok(if port == 0 { DEFAULT_PORT } else { port })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::config::TreeSource;

    #[test]
    fn each_setting_reaches_its_field() {
        let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        let changes = [
            ("phase1.cloud_provider", "baremetal"),
            ("phase1.ssh_user", "admin"),
            ("phase1.ssh.port", "2222"),
            ("phase1.ssh.private_key_file", "keys/id"),
            ("phase1.ssh.known_hosts_file", "/etc/known"),
            ("phase1.ssh.connect_timeout", "3s"),
            ("phase1.ssh.use_agent", "y"),
            ("phase1.ssh.bastion", "existing"),
            ("phase1.ssh.bastion_host", "door.example.com"),
            ("phase1.ssh.bastion_user", "passer"),
            ("phase1.ssh.bastion_port", "2200"),
        ];
        settings.set_all(&changes).unwrap();
        let bastion = Bastion { host: "door.example.com".into(), user: "passer".into(), port: 2200 };
        let expected = SshSettings {
            user: "admin".into(),
            port: 2222,
            key: Some("/work/keys/id".into()),
            known_hosts: Some("/etc/known".into()),
            connect_timeout: Duration::from_secs(3),
            use_agent: true,
            authorized_key_files: Vec::new(),
            bastion: Some(bastion),
        };
        assert_eq!(SshSettings::read(&settings, Path::new("/work")).unwrap(), expected);
        let local = Settings::defaults(&TreeSource::embedded()).unwrap();
        let access = SshSettings::read(&local, Path::new("/work")).unwrap();
        assert_eq!((access.port, access.connect_timeout), (22, Duration::from_secs(10)), "asked of no local host");
    }
}
