//! The settings `phase2.kubeconfig.*` as typed values: how the administrator is called, and how
//! long certificates of people live.

use std::time::Duration;

use crate::config::{Settings, people};
use crate::error::Result;

/// Who uses the API, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeconfigSettings {
    /// The administrator: as configured, else the operator as `user@machine`.
    pub user: String,
    /// How long the administrator's certificate lives, and another user's that does not set its
    /// own.
    pub lifetime: Duration,
    /// The longest life of another user's certificate.
    pub max_lifetime: Duration,
    /// Whether the operator's own kubeconfig has the cluster, too.
    pub merge: bool,
    /// The name of the administrator's context.
    pub context: String,
}

impl KubeconfigSettings {
    /// What the settings say.
    pub(super) fn read(settings: &Settings) -> Result<Self> {
        let user = settings.get("phase2.kubeconfig.user")?;
        Ok(Self {
            user: if user.is_empty() { operator() } else { user },
            lifetime: settings.get_duration("phase2.kubeconfig.lifetime")?.unwrap_or(people::SHORTEST),
            max_lifetime: settings.get_duration("phase2.kubeconfig.max_lifetime")?.unwrap_or(people::SHORTEST),
            merge: settings.get_bool("phase2.kubeconfig.merge")?,
            context: settings.get("phase2.kube_context_name")?,
        })
    }
}

/// The operator as `user@machine`; behind sudo, the user who called that.
#[must_use]
pub fn operator() -> String {
    let own = people::own_user();
    let behind = std::env::var("SUDO_USER").ok().filter(|user| own == "root" && !user.is_empty());
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    people::operator(&behind.unwrap_or(own), &machine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::{assert_reads, assert_refused};

    #[test]
    fn each_setting_reaches_its_field() {
        let hours = Duration::from_hours;
        let default = KubeconfigSettings {
            user: operator(),
            lifetime: hours(24),
            max_lifetime: hours(168),
            merge: false,
            context: "kubernetes".into(),
        };
        let changes = [
            ("phase2.kubeconfig.user", "anne"),
            ("phase2.kubeconfig.lifetime", "8h"),
            ("phase2.kubeconfig.max_lifetime", "24h"),
            ("phase2.kubeconfig.merge", "y"),
            ("phase2.kube_context_name", "staging"),
        ];
        let expected = KubeconfigSettings {
            user: "anne".into(),
            lifetime: hours(8),
            max_lifetime: hours(24),
            merge: true,
            context: "staging".into(),
        };
        let settings = assert_reads(KubeconfigSettings::read, &default, &changes, &expected);
        let refused = [
            ("phase2.kubeconfig.user", "system:admin", "the cluster's own"),
            ("phase2.kubeconfig.lifetime", "59m", "less than an hour"),
            ("phase2.kubeconfig.lifetime", "25h", "is more than 24h (phase2.kubeconfig.max_lifetime)"),
            ("phase2.kubeconfig.max_lifetime", "8761h", "more than a year"),
        ];
        assert_refused(&settings, &refused);
    }
}
