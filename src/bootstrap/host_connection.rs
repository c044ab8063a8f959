//! How turnup reaches a host: ssh with the cluster's key and pinned host keys, and turnup's own
//! binary over there.

use std::time::Duration;

use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::change::Change;
use crate::cluster::Cluster;
use crate::document;
use crate::error::{Context as _, Error, Result};
use crate::exec::{Ssh, Stream};
use crate::inventory::Host;
use crate::node::facts::CLIENT_CERTIFICATE;
use crate::node::layout::{KUBELET_CLIENT, TURNUP};
use crate::node::node_config::{DNS_UNIT, FIREWALL_UNIT};
use crate::node::up::Delivery;
use crate::node::{Facts, NodeConfig, NodeEvent};
use crate::phase::Cx;

/// One host, reachable.
pub(super) struct HostConnection<'a> {
    host: &'a Host,
    ssh: Ssh,
}

impl<'a> HostConnection<'a> {
    pub(super) fn new(cluster: &Cluster, host: &'a Host, cx: &Cx) -> Result<Self> {
        let ssh = cluster.ssh(host)?.log(cx.log_path()).timeout(cx.remaining());
        Ok(Self { host, ssh })
    }

    /// Only to look: nothing is logged, and a host that does not answer soon is one that does not
    /// answer. One question needs no connection that stays.
    pub(super) fn for_proof(cluster: &Cluster, host: &'a Host) -> Result<Self> {
        Ok(Self { host, ssh: cluster.ssh(host)?.timeout(Duration::from_secs(20)).single() })
    }

    /// For what takes longer and fills no log.
    pub(super) fn quiet(cluster: &Cluster, host: &'a Host, limit: Duration) -> Result<Self> {
        Ok(Self { host, ssh: cluster.ssh(host)?.timeout(limit) })
    }

    /// The host that is reached.
    pub(super) fn host(&self) -> &'a Host {
        self.host
    }

    /// Copies turnup's binary over, unless the host has these bytes.
    pub(super) fn copy_turnup(&self, cluster: &Cluster) -> Result<()> {
        // A host without it fails the command; a host that cannot be reached is another matter.
        let found = self.ssh.try_run(&["sha256sum", TURNUP])?.map(|output| output.stdout).unwrap_or_default();
        if found.split_whitespace().next() == Some(cluster.version()) {
            return Ok(());
        }
        self.copy(&cluster.exe, TURNUP, 0o755)
    }

    fn turnup(&self) -> Ssh {
        self.ssh.clone().relays()
    }

    /// What the host is.
    pub(super) fn facts(&self) -> Result<Facts> {
        let output = self.turnup().run(&[TURNUP, "node", "facts"])?;
        let _any: serde::de::IgnoredAny =
            understand(&output.stdout, format!("{} does not tell its facts", self.host.name))?;
        document::parse(&format!("the facts of {}", self.host.name), &output.stdout)
    }

    /// The certificate with which the host's kubelet is a client of the API, in PEM. Its key is in
    /// the same file, and stays there. Empty where there is none.
    pub(super) fn kubelet_certificate(&self) -> Result<String> {
        const CERTIFICATE: &str = "/-----BEGIN CERTIFICATE-----/,/-----END CERTIFICATE-----/p";
        let found = self.ssh.try_run(&["sed", "-n", CERTIFICATE, CLIENT_CERTIFICATE])?;
        Ok(found.map(|output| output.stdout).unwrap_or_default())
    }

    /// Takes kubelet's client certificate away: its next start asks for another one.
    pub(super) fn remove_kubelet_certificate(&self) -> Result<()> {
        self.ssh.run(&["rm", "--force", CLIENT_CERTIFICATE]).map(drop)
    }

    /// Makes the client certificate that turnup has written kubelet's current one.
    pub(super) fn relink_kubelet_certificate(&self) -> Result<()> {
        self.ssh.run(&["ln", "--symbolic", "--force", "--no-target-directory", KUBELET_CLIENT, CLIENT_CERTIFICATE])?;
        self.restart_kubelet()
    }

    /// The sha256 of every artifact that the host still needs.
    pub(super) fn missing(&self, node_config: &NodeConfig) -> Result<Vec<String>> {
        self.ask("missing", node_config)
    }

    /// What on the host differs from its node config.
    pub(super) fn differences(&self, node_config: &NodeConfig) -> Result<Vec<Change>> {
        self.ask("diff", node_config)
    }

    fn ask<T: DeserializeOwned>(&self, question: &str, node_config: &NodeConfig) -> Result<Vec<T>> {
        let text = serde_json::to_vec(node_config).context("cannot write the node config")?;
        let output = self.turnup().run_with_stdin(&[TURNUP, "node", question], text)?;
        understand(&output.stdout, format!("{} does not answer with a list", self.host.name))
    }

    /// Runs `turnup node up` there and turns its reports into progress.
    pub(super) fn node_up(&self, delivery: &Delivery, cx: &Cx) -> Result<()> {
        let text = serde_json::to_vec(delivery).context("cannot write the delivery")?;
        let on_line = |stream: Stream, line: &str| {
            if stream == Stream::Stdout {
                match serde_json::from_str(line) {
                    Ok(NodeEvent::Changed(what) | NodeEvent::Waiting(what)) => cx.progress(what),
                    Ok(NodeEvent::Milestone(name)) => cx.milestone(name),
                    Ok(NodeEvent::Done(count)) => cx.progress(format!("{count} changes")),
                    Err(_) => cx.progress(line),
                }
            }
        };
        self.turnup().stream_with_stdin(&[TURNUP, "node", "up"], text, on_line)?;
        Ok(())
    }

    /// The host writes no names into a DNS zone any more.
    pub(super) fn stop_dns(&self) -> Result<()> {
        self.ssh.run(&["systemctl", "stop", DNS_UNIT]).map(drop)
    }

    /// Removes from there what the cluster has in its DNS zone.
    pub(super) fn remove_dns_names(&self) -> Result<()> {
        self.ssh.run(&[TURNUP, "node", "dns", "remove"]).map(drop)
    }

    /// Runs `turnup node backup` with these words there; what it says, as JSON.
    pub(super) fn ask_backup<T: DeserializeOwned>(&self, words: &[String]) -> Result<T> {
        understand(&self.ask_backup_text(words)?, format!("{} does not tell of its backups", self.host.name))
    }

    /// The same; what it prints.
    pub(super) fn ask_backup_text(&self, words: &[String]) -> Result<String> {
        let command = [TURNUP, "node", "backup"].into_iter().chain(words.iter().map(String::as_str));
        Ok(self.turnup().run(&command.collect::<Vec<_>>())?.stdout)
    }

    /// Runs `turnup node restore` with these words there, and this on its standard input; what it
    /// prints.
    pub(super) fn restore_etcd(&self, words: &[&str], input: &str) -> Result<String> {
        Ok(self.turnup().run_with_stdin(&[&[TURNUP, "node", "restore"], words].concat(), input)?.stdout)
    }

    /// The same with nothing on standard input; what it says, as JSON.
    pub(super) fn ask_etcd<T: DeserializeOwned>(&self, words: &[&str]) -> Result<T> {
        understand(&self.restore_etcd(words, "")?, format!("{} does not tell of its member of etcd", self.host.name))
    }

    /// Whether ssh gets there at all; what the host says is no matter.
    pub(super) fn greet(&self) -> Result<()> {
        self.ssh.try_run(&["true"]).map(drop)
    }

    /// Runs `turnup node down` there; how many things were removed or put back.
    pub(super) fn node_down(&self, cx: &Cx) -> Result<usize> {
        let mut count = 0;
        let on_line = |stream: Stream, line: &str| match serde_json::from_str(line) {
            Ok(NodeEvent::Done(all)) if stream == Stream::Stdout => count = all,
            Ok(NodeEvent::Changed(what)) if stream == Stream::Stdout => cx.progress(what),
            _ => {}
        };
        self.ssh.stream(&[TURNUP, "node", "down"], on_line)?;
        Ok(count)
    }

    /// Runs a program there; what it prints.
    pub(super) fn run(&self, words: &[&str]) -> Result<String> {
        Ok(self.ssh.run(words)?.stdout)
    }

    /// Loads these nftables rules on a host that has loaded others from this file; a host without
    /// the file has no rules.
    pub(super) fn replace_firewall(&self, file: &str, rules: &str) -> Result<()> {
        let Ok(found) = self.ssh.try_run(&["sha256sum", file])? else { return Ok(()) };
        if found.stdout.split_whitespace().next() == Some(hex::encode(Sha256::digest(rules)).as_str()) {
            return Ok(());
        }
        self.ssh.write(rules, file, 0o600)?;
        self.ssh.run(&["systemctl", "reload", FIREWALL_UNIT]).map(drop)
    }

    /// Waits until kubelet over there has its certificate, and removes the token with which it got
    /// it.
    pub(super) fn finish_join(&self, cx: &Cx) -> Result<()> {
        // The host says why before the connection is cut.
        let seconds = cx.remaining().as_secs().saturating_sub(5).to_string();
        self.turnup().run(&[TURNUP, "node", "finish-join", "--seconds", &seconds])?;
        Ok(())
    }

    /// Restarts kubelet; pods run on.
    pub(super) fn restart_kubelet(&self) -> Result<()> {
        self.ssh.run(&["systemctl", "restart", "kubelet.service"])?;
        Ok(())
    }

    /// Copies a file over, whole or not at all.
    pub(super) fn copy(&self, local: &std::path::Path, remote: &str, mode: u32) -> Result<()> {
        self.ssh.copy(local, remote, mode)
    }
}

/// An answer of turnup on the host; what is none is shown, because a login shell that greets is the
/// usual cause.
fn understand<T: DeserializeOwned>(answer: &str, message: String) -> Result<T> {
    serde_json::from_str(answer).map_err(|error| {
        let shown = answer.lines().take(3).fold(Error::permanent(message).source(error), Error::evidence);
        shown.hint("make the login shell of this user print nothing in non-interactive sessions (see its profile and rc files)")
    })
}
