//! A second cluster, on hosts that another directory lends: what its tests share.
#![expect(clippy::disallowed_methods, reason = "the test looks at the cluster with the cluster's own tools")]

use std::process::Command;

use crate::cluster_support::{Done, Site, TIMEOUT};

/// The configuration and the state of a second cluster, on hosts of the first.
const LENT: [&str; 4] = ["--config", "lent.json", "--state-dir", "second"];

impl Site {
    /// Runs what must end with this exit code, with the other configuration and state: those of a
    /// cluster on lent hosts.
    #[track_caller]
    pub(crate) fn lent(&self, code: i32, args: &[&str]) -> Done {
        let done = self.start(&[&LENT[..], args].concat()).wait(TIMEOUT);
        assert_eq!(done.code, Some(code), "{done}");
        done
    }

    /// kubectl for the cluster of this name on lent hosts.
    pub(crate) fn lent_kubectl(&self, cluster: &str) -> Command {
        let mut kubectl = Command::new(self.ok(&["artifacts", "path", "kubectl"]).out.trim());
        kubectl.env("KUBECONFIG", self.dir.join(format!("second/{cluster}/kubeconfig")));
        kubectl
    }
}
