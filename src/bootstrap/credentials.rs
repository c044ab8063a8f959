//! Who uses the API besides hosts and components: the administrator, other people, turnup itself
//! for a moment, and break-glass.
//!
//! The administrator's certificate lies below `pki/`, because turnup works with it. All others
//! exist in memory alone; the caller writes them where it was told to. Only `rbac` and
//! break-glass use the group that stands above RBAC.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::cluster::{Cluster, KubeconfigSettings, operator};
use crate::config::people::{ADMINISTRATORS, LONGEST_NAME};
use crate::error::{Context as _, Result};
use crate::exec::MemoryFile;
use crate::inventory::Inventory;
use crate::node::yaml;
use crate::state::Credential;

use super::api::{KUBECONFIG, Kubectl};
use super::kubeconfig::{self, Identity};
use super::pki::{Authority, Issued, Leaf, Pki};
use super::user_kubeconfig;

/// The group that the API server lets do everything, whatever RBAC says. Its members cannot be
/// bound to less or revoked.
pub const MASTERS: &str = "system:masters";
/// What begins the name of the user of a break-glass credential.
const BREAK_GLASS: &str = "turnup:break-glass:";
/// The life of the credential with which turnup applies the role bindings of administrators; its
/// step has two minutes.
const MOMENT: Duration = Duration::from_mins(10);

/// A request for a credential.
#[derive(Clone, Debug)]
pub struct CredentialRequest {
    /// The user.
    pub user: String,
    /// The user's groups.
    pub groups: Vec<String>,
    /// How long it lives.
    pub life: Duration,
    /// Why, where that was said.
    pub reason: Option<String>,
}

impl CredentialRequest {
    /// A break-glass credential of the operator.
    #[must_use]
    pub fn break_glass(life: Duration, reason: String) -> Self {
        let user: String = format!("{BREAK_GLASS}{}", operator()).chars().take(LONGEST_NAME).collect();
        Self { user, groups: vec![MASTERS.to_owned()], life, reason: Some(reason) }
    }

    /// Makes the credential: a kubeconfig, and the record of it. Neither is written here.
    pub fn issue(self, cluster: &Cluster, inventory: &Inventory) -> Result<(Zeroizing<String>, Credential)> {
        let Self { user, groups, life, reason } = self;
        let issued = Pki::of(cluster).issue(&user, &groups, life)?;
        let kubeconfig = render(cluster, inventory, &user, &issued.certificate, &issued.key)?;
        let break_glass = groups.iter().any(|group| group == MASTERS);
        let Issued { serial, sha256, expires, .. } = issued;
        let (issued, by) = (Timestamp::now(), operator());
        let sealed_for = Vec::new();
        Ok((
            kubeconfig,
            Credential { user, groups, serial, sha256, issued, expires, by, break_glass, reason, sealed_for },
        ))
    }
}

/// kubectl with a credential of minutes that stands above RBAC and exists in memory alone; the API
/// server's audit log has it under the administrator's name. Needs the authority's key.
pub(super) fn kubectl_above_rbac(cluster: &Cluster, inventory: &Inventory) -> Result<Kubectl> {
    let user = &cluster.settings.kubeconfig.user;
    let issued = Pki::of(cluster).issue(user, &[MASTERS.to_owned()], MOMENT)?;
    let kubeconfig = render(cluster, inventory, user, &issued.certificate, &issued.key)?;
    let file = MemoryFile::new(kubeconfig.as_bytes()).context("cannot make a file in memory")?;
    Ok(Kubectl::in_memory(cluster.resolved()?.path(&cluster.cache()?, "kubectl")?, file).reach(cluster))
}

/// Writes the administrator's kubeconfig with a certificate that has most of its life before it;
/// replaces a damaged one.
pub fn write_kubeconfig(cluster: &Cluster, inventory: &Inventory) -> Result<()> {
    Pki::of(cluster).ensure_leaf(&administrator(cluster))?;
    let text = administrators_kubeconfig(cluster, inventory)?;
    if cluster.store.read(KUBECONFIG)?.as_deref() != Some(text.as_bytes()) {
        cluster.store.write_file(KUBECONFIG, text.as_bytes(), 0o600)?;
    }
    user_kubeconfig::sync(cluster, &administrators_config(cluster, inventory)?)
}

/// Why the administrator's kubeconfig has to be written; nothing where it is as it should be.
pub(super) fn find_fault(cluster: &Cluster, inventory: &Inventory) -> Result<Option<String>> {
    if !Pki::of(cluster).is_good(&administrator(cluster))? {
        let user = &cluster.settings.kubeconfig.user;
        return Ok(Some(format!("the certificate of the administrator {user} is missing or ends its life")));
    }
    let text = administrators_kubeconfig(cluster, inventory)?;
    let same = cluster.store.read(KUBECONFIG)?.as_deref() == Some(text.as_bytes());
    if !same {
        return Ok(Some("the kubeconfig is missing or was changed".to_owned()));
    }
    user_kubeconfig::find_fault(cluster, &administrators_config(cluster, inventory)?)
}

fn administrators_kubeconfig(cluster: &Cluster, inventory: &Inventory) -> Result<Zeroizing<String>> {
    Ok(Zeroizing::new(yaml::render(&administrators_config(cluster, inventory)?)))
}

fn administrators_config(cluster: &Cluster, inventory: &Inventory) -> Result<Value> {
    let pki = Pki::of(cluster);
    let key = Zeroizing::new(pki.text("admin", "key")?);
    let mut config = config(cluster, inventory, "admin", &pki.text("admin", "crt")?, &key)?;
    let context = &cluster.settings.kubeconfig.context;
    config["contexts"][0]["name"] = context.clone().into();
    config["current-context"] = context.clone().into();
    Ok(config)
}

fn administrator(cluster: &Cluster) -> Leaf {
    let KubeconfigSettings { user, lifetime, .. } = &cluster.settings.kubeconfig;
    Leaf { life: *lifetime, ..Leaf::client("admin", Authority::Cluster, user, Some(ADMINISTRATORS)) }
}

fn render(
    cluster: &Cluster,
    inventory: &Inventory,
    entry: &str,
    certificate: &str,
    key: &str,
) -> Result<Zeroizing<String>> {
    Ok(Zeroizing::new(yaml::render(&config(cluster, inventory, entry, certificate, key)?)))
}

fn config(cluster: &Cluster, inventory: &Inventory, entry: &str, certificate: &str, key: &str) -> Result<Value> {
    let identity = Identity::Embedded { certificate, key };
    let server = format!("https://{}:{}", inventory.api.host, inventory.api.port);
    let authority = Pki::of(cluster).bundle(Authority::Cluster)?;
    Ok(kubeconfig::config(&cluster.settings.name, &server, &authority, entry, &identity))
}
