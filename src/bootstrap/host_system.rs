//! What a host gets besides Kubernetes: kernel settings, modules that are loaded at boot, time
//! servers.
//!
//! A pure function of the settings and the host's facts, as `node_config` is.

use std::collections::BTreeMap;

use crate::cluster::HostSystemSettings;
use crate::config::host_system::{KERNEL_SETTINGS, is_of_machine};
use crate::error::{Error, Result};
use crate::node::Facts;
use crate::node::node_config::{Content, File};

/// What systemd-modules-load reads at boot.
const MODULES: &str = "/etc/modules-load.d/90-turnup.conf";
/// What systemd-timesyncd reads, and the program.
const TIMESYNCD: [&str; 2] = ["/etc/systemd/timesyncd.conf.d/90-turnup.conf", "/usr/lib/systemd/systemd-timesyncd"];
/// Where chrony has its configuration, by distribution.
const CHRONY: [Chrony; 2] = [
    Chrony {
        file: "/etc/chrony/chrony.conf",
        keys: "/etc/chrony/chrony.keys",
        drift: "/var/lib/chrony/chrony.drift",
        unit: "chrony.service",
    },
    Chrony {
        file: "/etc/chrony.conf",
        keys: "/etc/chrony.keys",
        drift: "/var/lib/chrony/drift",
        unit: "chronyd.service",
    },
];

/// The files of chrony as a distribution has them: Debian's and Red Hat's.
struct Chrony {
    file: &'static str,
    /// The package has it, and so it tells whether the host does.
    keys: &'static str,
    drift: &'static str,
    unit: &'static str,
}

/// All kernel settings of a host.
pub(super) fn sysctls(settings: &HostSystemSettings) -> BTreeMap<String, String> {
    let own = KERNEL_SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    settings.sysctls.clone().into_iter().chain(own).collect()
}

/// An error when a setting belongs to the machine around a host that is a container.
pub(super) fn require_own_kernel(settings: &HostSystemSettings, facts: &Facts) -> Result<()> {
    match settings.sysctls.keys().find(|name| is_of_machine(name)).filter(|_| facts.container) {
        None => Ok(()),
        Some(name) => {
            let message =
                format!("phase2.host.sysctls: {name} belongs to this machine, which hosts that are containers share");
            Err(Error::config(message).hint(format!("leave it out, and set it here: sysctl -w {name}=VALUE")))
        }
    }
}

/// The files of these settings.
pub(super) fn files(settings: &HostSystemSettings) -> Vec<File> {
    let mut files = Vec::new();
    if !settings.kernel_modules.is_empty() {
        let lines = settings.kernel_modules.iter().map(|module| format!("{module}\n"));
        files.push(file(MODULES, lines.collect()));
    }
    if !settings.ntp_servers.is_empty() {
        files.push(timesyncd(&settings.ntp_servers));
        files.extend(CHRONY.iter().map(|chrony| chrony.configuration(&settings.ntp_servers)));
    }
    files
}

/// Others than root read it: services with users of their own.
fn file(path: &str, text: String) -> File {
    File::new(path, 0o644, 0, Content::Text(text))
}

fn timesyncd(servers: &[String]) -> File {
    let [path, program] = TIMESYNCD;
    let text = format!("[Time]\nNTP={}\nFallbackNTP=\n", servers.join(" "));
    let restarts = vec!["systemd-timesyncd.service".to_owned()];
    File { restarts, only_with: Some(program.to_owned()), ..file(path, text) }
}

impl Chrony {
    /// The whole configuration: servers that an image names beside these would count as much.
    fn configuration(&self, servers: &[String]) -> File {
        let servers: Vec<String> = servers.iter().map(|server| format!("server {server} iburst\n")).collect();
        let servers = servers.concat();
        let Self { file: path, keys, drift, unit } = self;
        let text = format!("{servers}keyfile {keys}\ndriftfile {drift}\nmakestep 1 3\nrtcsync\n");
        let (restarts, only_with) = (vec![(*unit).to_owned()], Some((*keys).to_owned()));
        File { restarts, only_with, ..file(path, text) }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::super::usual_facts::usual_facts;
    use super::*;

    fn text(files: &[File], path: &str) -> String {
        match &files.iter().find(|file| file.path == path).unwrap().content {
            Content::Text(text) => text.clone(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn settings_of_the_user_stand_beside_turnups_own() {
        let own = [("net.core.somaxconn", "4096"), ("vm.panic_on_oom", "0")];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let settings = HostSystemSettings { sysctls: own, ..HostSystemSettings::default() };
        let all = sysctls(&settings);
        assert_eq!(all.len(), KERNEL_SETTINGS.len() + 1);
        assert_eq!(all["net.core.somaxconn"], "4096");
        let container = Facts { container: true, ..usual_facts() };
        require_own_kernel(&settings, &container).unwrap();
        let further = BTreeMap::from([("vm.max_map_count".to_owned(), "262144".to_owned())]);
        let settings = HostSystemSettings { sysctls: further, ..settings };
        require_own_kernel(&settings, &usual_facts()).unwrap();
        let error = require_own_kernel(&settings, &container).unwrap_err();
        assert!(error.message().contains("vm.max_map_count belongs to this machine"), "{}", error.message());
    }

    #[test]
    fn modules_and_time_servers_become_files_of_the_programs_that_a_host_has() {
        assert!(files(&HostSystemSettings::default()).is_empty());
        let settings = HostSystemSettings {
            kernel_modules: vec!["wireguard".into(), "nf_conntrack".into()],
            ntp_servers: vec!["a.example".into(), "192.0.2.1".into()],
            ..HostSystemSettings::default()
        };
        let files = files(&settings);
        assert_eq!(text(&files, MODULES), "wireguard\nnf_conntrack\n");
        assert_eq!(text(&files, TIMESYNCD[0]), "[Time]\nNTP=a.example 192.0.2.1\nFallbackNTP=\n");
        assert_eq!(
            text(&files, "/etc/chrony.conf"),
            "server a.example iburst\nserver 192.0.2.1 iburst\nkeyfile /etc/chrony.keys\ndriftfile /var/lib/chrony/drift\nmakestep 1 3\nrtcsync\n"
        );
        let programs: Vec<_> = files.iter().filter_map(|file| file.only_with.as_deref()).collect();
        assert_eq!(programs, [TIMESYNCD[1], "/etc/chrony/chrony.keys", "/etc/chrony.keys"]);
        assert!(files[1..].iter().all(|file| file.restarts.len() == 1));
    }
}
