//! User data: what a host of a cloud is told at its first boot so that it becomes a node by itself, as cloud-init and as Ignition.
//!
//! It carries the group's complete configuration and fetches turnup and everything else by URL and sha256. A worker's holds one secret, the
//! token of its group; the control plane's holds none. Nothing here asks a host or a cloud. `docs/user-data.md` tells each line.

mod cloud_init;
mod groups;
mod ignition;
mod piece;
mod source;
mod step;

use std::path::Path;

use zeroize::Zeroizing;

use crate::artifacts::{Obtained, blob_url};
use crate::cluster::assets::is_meant;
use crate::cluster::user_data::{Form, Part, PartKind};
use crate::cluster::{Cluster, find_document};
use crate::document::{Document as _, Found};
use crate::error::{Context as _, Error, Result};
use crate::node::Facts;
use crate::node::boot::{self, Boot, Expected, Mark};
use crate::provision::Role;
use crate::state::Store;

use super::assets::Assets;
use super::forecast::usual_facts;
use super::kubeconfig::{self, Identity};
use super::outfit::{Group, Outfit, Seat, marked};
use super::pki::{Authority, Pki};
use super::steps::facts_file;
use super::template;
use super::token::{self, GroupToken};

pub use groups::{admit, groups, is_approved_by, require_own_labels};
pub(super) use groups::{find_unregistered, has_comers, register_tokens, token_ids};
use piece::{Guest, Login, Piece};
pub use step::{forecast, ordered_provision_phase, provision_phase};

/// What the images of clouds are: virtual machines with systemd and the unified hierarchy of cgroups. A host that is something else
/// refuses its user data.
#[must_use]
pub fn image_facts() -> Facts {
    usual_facts()
}

/// What is known of a node that is there: for machines like it.
pub fn facts_of(cluster: &Cluster, node: &str) -> Result<Facts> {
    match find_document(&cluster.store, &facts_file(node))? {
        Found::There(facts) => Ok(facts),
        _ => Err(Error::usage(format!("nothing is known of a node {node}")).hint("turnup status (names the nodes)")),
    }
}

/// The host of the API server in user data whose address nobody knows yet: whoever makes the address replaces this text by it. It stands
/// in the document in plain, so that Terraform's `replace` finds it.
pub const API_HOST: &str = Mark::Api.text();

/// The user data of a group's hosts. `api_host` is where they reach the API server, or [`API_HOST`]; `facts` are what their image is.
///
/// Makes the authority and the group's token where they are not there yet. Refuses what the target does not take.
pub fn render(
    cluster: &Cluster,
    artifacts: &Obtained,
    facts: &Facts,
    group: &Group,
    api_host: &str,
) -> Result<Zeroizing<String>> {
    let pass = Pass::ensure(cluster, group)?;
    render_with(cluster, artifacts, facts, group, api_host, pass.as_ref())
}

/// What lets the workers of a group in, and by what they know the API server.
struct Pass {
    authority: String,
    token: Zeroizing<String>,
}

impl Pass {
    /// None for the control plane, whose keys come over SSH.
    fn ensure(cluster: &Cluster, group: &Group) -> Result<Option<Self>> {
        if group.role != Role::Worker {
            return Ok(None);
        }
        let pki = Pki::new(&cluster.store);
        cluster.store.create_dir("pki")?;
        pki.ensure_authority(Authority::Cluster, &cluster.settings.name)?;
        let life = cluster.settings.user_data.token_lifetime;
        let token = token::ensure_for_group(&cluster.store, &group.name, life)?;
        Ok(Some(Self::of(pki.text("ca", "crt")?, &token)))
    }

    /// Only what is there already; of workers.
    fn find(store: &Store, group: &Group) -> Result<Option<Self>> {
        if group.role != Role::Worker {
            return Ok(None);
        }
        let known = store.read("pki/ca.crt")?.zip(token::find_for_group(store, &group.name)?);
        Ok(known.map(|(authority, token)| Self::of(String::from_utf8_lossy(&authority).into_owned(), &token)))
    }

    fn of(authority: String, token: &GroupToken) -> Self {
        Self { authority, token: Zeroizing::new(token.text().to_owned()) }
    }

    /// In the place of what is not there yet.
    fn blank(group: &Group) -> Option<Self> {
        let token = || Zeroizing::new("(made by provision: token)".to_owned());
        (group.role == Role::Worker)
            .then(|| Self { authority: "(made by provision: authority)".into(), token: token() })
    }
}

fn render_with(
    cluster: &Cluster,
    artifacts: &Obtained,
    facts: &Facts,
    group: &Group,
    api_host: &str,
    pass: Option<&Pass>,
) -> Result<Zeroizing<String>> {
    let settings = &cluster.settings.user_data;
    let boot = boot_of(cluster, artifacts, facts, group, pass)?;
    let guest = Guest {
        pieces: pieces(cluster, &boot, api_host)?,
        login: Login { user: cluster.settings.access.user.clone(), keys: cluster.authorized_keys()? },
        parts: parts(cluster, group)?,
    };
    let text = match settings.form {
        Form::CloudInit => cloud_init::render(&guest)?,
        Form::Ignition => ignition::render(&guest)?,
    };
    let text = Zeroizing::new(text);
    require_size(&cluster.settings.target, group, &guest, text.len())?;
    Ok(text)
}

/// The files of the host, and the unit.
fn pieces(cluster: &Cluster, boot: &Boot, api_host: &str) -> Result<Vec<Piece>> {
    let url = blob_url(&boot.artifacts_url, cluster.version());
    let boot = Zeroizing::new(serde_json::to_vec(boot).context("what user data leaves on a host is no JSON")?);
    let context = minijinja::context! {
        boot_file => boot::FILE,
        fetch_file => boot::FETCH_FILE,
        packages_file => boot::PACKAGES_FILE,
        turnup => boot::TURNUP,
        place => shell_words::quote(boot::TURNUP),
        sha256 => cluster.version(),
        url => shell_words::quote(&url),
    };
    let script = |name: &str| -> Result<Zeroizing<Vec<u8>>> {
        let text = template::render(&cluster.source, &format!("templates/bootstrap/{name}"), &context)?;
        Ok(Zeroizing::new(text.into_bytes()))
    };
    Ok(vec![
        Piece::packed("the complete configuration", boot::FILE, 0o600, boot),
        Piece::plain(
            "the host of the API",
            boot::API_FILE,
            0o644,
            Zeroizing::new(format!("{api_host}\n").into_bytes()),
        ),
        Piece::packed("the script that fetches turnup", boot::FETCH_FILE, 0o700, script("fetch-turnup.sh")?),
        Piece::packed("the script that installs packages", boot::PACKAGES_FILE, 0o700, script("install-packages.sh")?),
        Piece::unit("the unit", boot::UNIT, script(boot::UNIT)?),
    ])
}

fn boot_of(cluster: &Cluster, artifacts: &Obtained, facts: &Facts, group: &Group, pass: Option<&Pass>) -> Result<Boot> {
    let marked = marked(facts);
    let seat = Seat::of_group(group);
    let assets = Assets::find(cluster, &seat)?;
    // What the approver refuses is known when the control plane is made: its unit is not in here, its program is.
    let approver = (group.role == Role::ControlPlane).then(Vec::new);
    let outfit =
        Outfit { cluster, artifacts, seat, facts: &marked, has_workers: true, api_here: None, assets, approver };
    let (complete, bootstrap_kubeconfig) = match pass {
        None => (outfit.machine()?, None),
        Some(pass) => {
            let server = format!("https://{API_HOST}:{}", cluster.settings.api_port);
            let identity = Identity::Token(&pass.token);
            let text = kubeconfig::render(&cluster.settings.name, &server, &pass.authority, "bootstrap", &identity);
            (outfit.worker(&pass.authority)?, Some(Zeroizing::new(text)))
        }
    };
    Ok(Boot {
        schema: Boot::SCHEMA.into(),
        group: group.name.clone(),
        expects: Expected::from(facts),
        artifacts_url: cluster.settings.user_data.artifacts_url.trim_end_matches('/').to_owned(),
        complete,
        bootstrap_kubeconfig,
    })
}

/// The parts of a person's own that are for this group, with what is in them.
fn parts(cluster: &Cluster, group: &Group) -> Result<Vec<(Part, Vec<u8>)>> {
    let settings = &cluster.settings.user_data;
    let chosen = settings.parts.iter().filter(|part| is_meant(&part.roles, &part.groups, group.role, &group.name));
    let read = |part: &Part| -> Result<(Part, Vec<u8>)> {
        let setting = format!("phase1.user_data.parts: {}", part.name);
        let bytes = read_file(&setting, &cluster.work_dir.join(&part.file))?;
        require_kind(part, &bytes, settings.form)?;
        Ok((part.clone(), bytes))
    };
    let own = settings.groups.iter().filter(|record| record.name == group.name);
    let own = own.flat_map(|record| &record.additional_user_data).map(|file| own_part(cluster, file));
    chosen.map(read).chain(own).collect()
}

/// A file of a group's own, which begins as what it is.
fn own_part(cluster: &Cluster, file: &str) -> Result<(Part, Vec<u8>)> {
    let bytes = read_file("phase1.node_groups: additional_user_data", &cluster.work_dir.join(file))?;
    let kind = match bytes.as_slice() {
        text if text.starts_with(b"#cloud-config") => PartKind::CloudConfig,
        text if text.trim_ascii_start().starts_with(b"{") => PartKind::Ignition,
        _ => PartKind::ShellScript,
    };
    let part = Part { name: file.to_owned(), file: file.to_owned(), kind, roles: Vec::new(), groups: Vec::new() };
    require_kind(&part, &bytes, cluster.settings.user_data.form)?;
    Ok((part, bytes))
}

fn read_file(setting: &str, path: &Path) -> Result<Vec<u8>> {
    fs_err::read(path).map_err(|error| {
        Error::config(format!("{setting}: {} cannot be read", path.display())).source(error).hint("turnup config check")
    })
}

/// cloud-init knows a part by how it begins, and says nothing about one that it does not know.
fn require_kind(part: &Part, bytes: &[u8], form: Form) -> Result<()> {
    let refuse = |why: &str, hint: &str| {
        let file = if part.name == part.file { String::new() } else { format!(" ({})", part.file) };
        Err(Error::config(format!("user data: {}{file} {why}", part.name)).hint(hint))
    };
    match (part.kind, form) {
        (PartKind::Ignition, Form::CloudInit) => refuse(
            "is Ignition, and phase1.user_data.format is cloud-init",
            "give it the type cloud-config or shell-script",
        ),
        (PartKind::CloudConfig | PartKind::ShellScript, Form::Ignition) => {
            refuse("is for cloud-init, and phase1.user_data.format is ignition", "give it the type ignition")
        }
        (PartKind::CloudConfig, _) if !bytes.starts_with(b"#cloud-config") => {
            refuse("is no cloud-config", "its first line must be: #cloud-config")
        }
        (PartKind::ShellScript, _) if !bytes.starts_with(b"#!") => {
            refuse("names no interpreter", "its first line must be, for instance: #!/bin/sh")
        }
        (PartKind::Ignition, _) if serde_json::from_slice::<serde_json::Value>(bytes).is_err() => {
            refuse("is no JSON", "Butane's YAML becomes Ignition with: butane FILE")
        }
        _ => Ok(()),
    }
}

/// How much each cloud takes, before it encodes it: aws "16 KB, in raw form", azure 64 KB, gce 256 KB for one value of the metadata.
const LIMITS: [(&str, usize); 3] = [("aws", 16 << 10), ("azure", (64 << 10) - 1), ("gce", 256 << 10)];
/// The longest DNS name: what may come in the place of [`API_HOST`].
const LONGEST_HOST: usize = 253;

fn require_size(target: &str, group: &Group, guest: &Guest, size: usize) -> Result<()> {
    let Some((_, limit)) = LIMITS.iter().find(|(name, _)| *name == target) else { return Ok(()) };
    if size + LONGEST_HOST <= *limit {
        return Ok(());
    }
    let message = format!("the user data of the group {} has {size} bytes, and {target} takes {limit}", group.name);
    let mut sizes = guest.sizes();
    sizes.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    let error = sizes
        .iter()
        .take(5)
        .fold(Error::config(message), |error, (name, size)| error.evidence(format!("{name}: {size} bytes of it")));
    Err(error.hint("make your parts smaller, for instance by fetching what they install"))
}

#[cfg(test)]
mod tests;
