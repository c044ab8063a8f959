//! The machine authenticator: a unit of control-plane hosts that tells their API server which
//! machine shows a token, where the cloud signs nothing that the API server could verify itself.
//! It is a token webhook of Kubernetes (`TokenReview`).
//!
//! It asks the cloud by `cloud::IdentityJudge`, and makes of a machine the user that the CSR
//! approver knows. It approves nothing, and has no rights in the cluster. Of a token that is none
//! of its kind it asks nothing: the API server asks about every token that it does not know.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub use crate::cloud::MachineRole;
use crate::cloud::{self, Cloud, Endpoints, IdentityJudge, ProvenMachine};
use crate::cluster::Cluster;
use crate::error::{Context as _, Error, Result};
use crate::exec::UnitStatus;
use crate::inventory::Role;
use crate::node::boot_config::node_name;
use crate::node::https_server::{self, JsonService, ServerIdentity};
use crate::node::layout;
use crate::node::node_config::User;

use super::csr_approver::group_flag;
use super::groups::groups;
use super::machine_identity::find_role;
use super::token::{BOOTSTRAPPERS, MACHINE_USER};

/// The name of its certificate below `pki/`.
pub(super) const NAME: &str = "machine-authenticator";
/// Who it is in that.
pub(super) const SUBJECT: &str = "turnup:machine-authenticator";
/// The number of its user on the host. It reads what anyone may send, so it is not root.
pub(super) const USER_ID: u32 = 3993;
/// Where the API server of the host finds it.
pub(super) const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 3993);
/// A line that was told is not told again for so long.
const AGAIN: Duration = Duration::from_mins(1);
/// Trouble is told to systemd for so long after it was met.
const TROUBLE: Duration = Duration::from_mins(5);
/// So many different lines are told in that time.
const MOST_LINES: usize = 64;
const REVIEW: (&str, &str) = ("authentication.k8s.io/v1", "TokenReview");

/// Its user on the host.
pub(super) fn system_user() -> User {
    User { name: NAME.into(), id: USER_ID }
}

/// The names and addresses in its certificate.
pub(super) fn server_names() -> Vec<String> {
    vec![ADDRESS.ip().to_string()]
}

/// The URL at which the API server asks it.
pub(super) fn url() -> String {
    format!("https://{ADDRESS}{}", <Authenticator as JsonService>::PATH)
}

/// The flags of `turnup node machine-authenticator`; none where it does not run.
pub(super) fn find_flags(cluster: &Cluster) -> Result<Option<Vec<String>>> {
    let Some(MachineRole { audience, cluster: name, role }) = find_role(cluster)? else { return Ok(None) };
    let mut flags = vec![
        format!("--listen={ADDRESS}"),
        format!("--certificate={}", layout::MACHINE_AUTHENTICATOR_CERTIFICATE),
        format!("--key={}", layout::MACHINE_AUTHENTICATOR_KEY),
        format!("--cloud={}", cluster.settings.target),
        format!("--cluster={name}"),
        format!("--audience={audience}"),
        format!("--role={role}"),
    ];
    let workers = groups(cluster)?.into_iter().filter(|group| group.role == Role::Worker);
    flags.extend(workers.map(|group| group_flag(&group.name, &group.name_prefix)));
    Ok(Some(flags))
}

/// Where it listens, and whom it knows.
#[derive(Clone, Debug)]
pub struct AuthenticatorOptions {
    /// An address of this host alone.
    pub listen: SocketAddr,
    /// Its certificate, in PEM.
    pub certificate: PathBuf,
    /// The key of that.
    pub key: PathBuf,
    /// The cloud that it asks.
    pub cloud: String,
    /// As what the workers are known there.
    pub workers: MachineRole,
    /// How the names of a group's Nodes begin, by the name of the group.
    pub node_groups: BTreeMap<String, String>,
}

/// Answers until the process ends. What it decided goes to `out`, a line each.
///
/// # Errors
/// That `out` cannot be written to, or that there is nothing to ask.
pub fn run(options: AuthenticatorOptions, out: &mut dyn Write) -> Result<()> {
    let (news, all) = channel();
    start(options, Endpoints::default(), news)?;
    let mut status = UnitStatus::default();
    loop {
        match all.recv_timeout(TROUBLE) {
            Ok(News::Line(line)) => {
                // What others chose is in it.
                writeln!(out, "{}", line.replace(char::is_control, "?")).context("cannot write")?;
                out.flush().context("cannot write")?;
            }
            Ok(News::Trouble(trouble)) => status.set(trouble),
            // The machine that could not be known has joined elsewhere, or is gone.
            Err(RecvTimeoutError::Timeout) => status.set(None::<String>),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Serves in the background; what it asks its cloud, it asks there.
fn start(options: AuthenticatorOptions, endpoints: Endpoints, news: Sender<News>) -> Result<()> {
    let open = cloud::find(&options.cloud).and_then(Cloud::identity_judge);
    let none = || Error::precondition(format!("{:?} is not asked which machine shows a token", options.cloud));
    let judge = open.ok_or_else(none)?(endpoints, options.workers);
    let service = Arc::new(Authenticator { judge, node_groups: options.node_groups, news, told: Mutex::default() });
    let identity = ServerIdentity { certificate: options.certificate, key: options.key };
    thread::spawn(move || https_server::serve(&service, identity, options.listen));
    Ok(())
}

enum News {
    /// For the journal.
    Line(String),
    /// What is not as it should be now, if anything.
    Trouble(Option<String>),
}

struct Authenticator {
    judge: Box<dyn IdentityJudge>,
    node_groups: BTreeMap<String, String>,
    news: Sender<News>,
    /// When a line was told last.
    told: Mutex<BTreeMap<String, Instant>>,
}

impl JsonService for Authenticator {
    const PATH: &'static str = "/token-review";

    fn answer(&self, asked: &Value) -> Option<Value> {
        if (asked["apiVersion"].as_str(), asked["kind"].as_str()) != (Some(REVIEW.0), Some(REVIEW.1)) {
            return None;
        }
        let token = asked["spec"]["token"].as_str()?;
        Some(json!({"apiVersion": REVIEW.0, "kind": REVIEW.1, "status": self.review(token)}))
    }

    fn tell(&self, line: String) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|_, at| at.elapsed() < AGAIN);
        if told.len() < MOST_LINES && told.insert(line.clone(), Instant::now()).is_none() {
            self.send(News::Line(line));
        }
    }
}

impl Authenticator {
    fn send(&self, news: News) {
        // The receiver lives as long as the process.
        drop(self.news.send(news));
    }

    /// The status of a `TokenReview`. The API server remembers an answer for a while, but none with
    /// an error: that is for what says nothing of the token.
    fn review(&self, token: &str) -> Value {
        if !token.starts_with(self.judge.prefix()) {
            return json!({"authenticated": false});
        }
        match self.judge.judge(token).and_then(|machine| self.user_of(&machine)) {
            Ok(user) => {
                self.send(News::Trouble(None));
                json!({"authenticated": true, "user": user})
            }
            Err(error) if error.is_passing() => {
                let line = error.in_one_line();
                self.send(News::Trouble(Some(line.clone())));
                self.tell(format!("cannot say whose token it is: {line}"));
                json!({"authenticated": false, "error": "the cloud does not say whose token it is: see turnup-machine-authenticator"})
            }
            Err(error) => {
                self.tell(format!("refused: {}", error.in_one_line()));
                json!({"authenticated": false})
            }
        }
    }

    /// The user that a machine is, which may ask for a certificate for the Node of its own name.
    fn user_of(&self, machine: &ProvenMachine) -> Result<Value> {
        let ProvenMachine { id, group, host } = machine;
        let none = || Error::permanent(format!("the machine {id} is of the group {group:?}, which is none: turnup up"));
        let prefix = self.node_groups.get(group).ok_or_else(none)?;
        let name = node_name(host, prefix)?;
        self.tell(format!("{id} of the group {group} is {name}"));
        Ok(json!({
            "username": format!("{MACHINE_USER}{group}:{name}"),
            "groups": [BOOTSTRAPPERS, format!("{BOOTSTRAPPERS}:{group}")],
        }))
    }
}

#[cfg(test)]
#[path = "machine_authenticator_tests.rs"]
mod tests;
