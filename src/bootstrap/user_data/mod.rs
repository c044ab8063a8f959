//! User data: what a host of a cloud is told at its first boot so that it becomes a node by itself,
//! as cloud-init and as Ignition.
//!
//! It carries the group's node config and fetches turnup and everything else by URL and
//! sha256. A worker's holds one secret, the join token of its group, in plain and apart from all
//! else, so that Terraform can fill it in; the control plane's holds none, nor does a worker's that
//! joins by its cloud's word.
//! Nothing here asks a host or a cloud. `docs/user-data.md` tells each line.

mod cloud_init;
mod ignition;
mod source;
mod step;
mod write_file;

use std::path::Path;

use zeroize::Zeroizing;

use crate::artifacts::{ResolvedArtifacts, blob_url};
use crate::cloud::Target;
use crate::cluster::Cluster;
use crate::cluster::assets::is_meant;
use crate::cluster::user_data::{UserDataFormat, UserDataKind, UserDataPart};
use crate::document::Document as _;
use crate::error::{Context as _, Error, Result};
use crate::input;
use crate::inventory::{BALANCER_HOST, Inventory, Role, ServerList};
use crate::node::Facts;
use crate::node::boot_config::{self, BootConfig, Expected, IdentityVolume, Placeholder};
use crate::node::layout;
use crate::node::node_config::{CSR_APPROVER_UNIT, Unit};
use crate::provision::local;
use crate::state::Store;

use super::assets::Assets;
use super::csr_approver::{self, Policy};
use super::firewall::Neighbors;
use super::groups;
use super::kubeconfig::{self, Identity};
use super::machine_identity;
use super::node_config::{find_facts, find_written};
use super::node_config_builder::{NodeConfigBuilder, label_of, with_placeholders};
use super::node_target::{Group, NodeTarget};
use super::pki::{Authority, Pki};
use super::proxy::HostProxy;
use super::runtime;
use super::template;
use super::template_id;
use super::usual_facts::usual_facts;

pub use step::{hosts_phase, provision_phase, provision_phase_with};
use write_file::{Login, UserDataDocument, WriteFile};

/// What the images of clouds are: virtual machines with systemd and the unified hierarchy of
/// cgroups. A host that is something else refuses its user data.
#[must_use]
pub fn image_facts() -> Facts {
    usual_facts()
}

/// What the machines are that the cluster's target makes.
fn machine_facts(cluster: &Cluster) -> Result<Facts> {
    if cluster.settings.local_hosts.replaces_hosts { image_facts().in_container() } else { Ok(image_facts()) }
}

/// What is known of a node that is there: for machines like it.
pub fn facts_of(cluster: &Cluster, node: &str) -> Result<Facts> {
    let unknown = || Error::usage(format!("nothing is known of a node {node}")).hint("turnup status (names the nodes)");
    find_facts(cluster, node)?.ok_or_else(unknown)
}

/// The host of the API server in user data whose address is not known yet: what creates the address
/// replaces this text by it. It stands in the document in plain, so that Terraform's `replace`
/// finds it.
pub const API_HOST: &str = Placeholder::Api.text();
/// The same for all API servers, before which a host has a balancer of its own.
pub const API_SERVERS: &str = boot_config::API_SERVERS;
/// The same for the join token of the group.
pub const JOIN_TOKEN: &str = Placeholder::Token.text();

/// What the hosts of a group are told and the text of their user data need not know yet.
#[derive(Clone, Copy)]
pub struct JoinParams<'a> {
    /// Where they reach the API server.
    pub api: ApiPlace<'a>,
    /// The group's token, or [`JOIN_TOKEN`]; not used where hosts have none.
    pub token: &'a str,
}

/// Where hosts reach the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiPlace<'a> {
    /// At this host, or [`API_HOST`].
    Host(&'a str),
    /// By a balancer of their own, which leads to the servers of this line
    /// ([`ServerList::line`]), or those that [`API_SERVERS`] stands for.
    Balancer(&'a str),
}

impl ApiPlace<'_> {
    /// The host of it in kubeconfigs.
    const fn host(self) -> &'static str {
        match self {
            Self::Host(_) => API_HOST,
            Self::Balancer(_) => BALANCER_HOST,
        }
    }

    /// The balancer of a host, whose servers are told in a file of their own.
    fn balancer(self) -> Option<ServerList> {
        matches!(self, Self::Balancer(_)).then(ServerList::of_node_without_servers)
    }

    fn write_file(self) -> WriteFile {
        match self {
            Self::Host(host) => WriteFile::plain("the host of the API", boot_config::API_FILE, 0o644, line(host)),
            Self::Balancer(servers) => {
                WriteFile::plain("the API servers", boot_config::API_SERVERS_FILE, 0o644, line(servers))
            }
        }
    }
}

impl JoinParams<'static> {
    /// What makes the hosts fills both in. Several API servers are told one by one: each host has a
    /// balancer of its own before them.
    fn placeholders(cluster: &Cluster) -> Self {
        let several = cluster.settings.control_planes > 1;
        let api = if several { ApiPlace::Balancer(API_SERVERS) } else { ApiPlace::Host(API_HOST) };
        Self { api, token: JOIN_TOKEN }
    }
}

fn line(text: &str) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(format!("{text}\n").into_bytes())
}

/// The user data of a group's hosts. `facts` are what their image is.
///
/// Makes the cluster's authority where it is not there yet. Refuses what the target does not take.
pub fn render(
    cluster: &Cluster,
    artifacts: &ResolvedArtifacts,
    facts: &Facts,
    group: &Group,
    join: JoinParams<'_>,
) -> Result<Zeroizing<String>> {
    render_group(cluster, artifacts, facts, group, join).map(|made| made.text)
}

/// The same with the id of the template.
fn render_group(
    cluster: &Cluster,
    artifacts: &ResolvedArtifacts,
    facts: &Facts,
    group: &Group,
    join: JoinParams<'_>,
) -> Result<GroupUserData> {
    let pki = Pki::of(cluster);
    cluster.store.create_dir("pki")?;
    pki.ensure_authority(Authority::Cluster, &cluster.settings.name)?;
    render_with(cluster, artifacts, facts, group, join, &pki.bundle(Authority::Cluster)?)
}

/// The user data of a group, and the id of the template that it makes hosts from.
struct GroupUserData {
    text: Zeroizing<String>,
    template: String,
}

/// The authority by which workers know the API server, if it is there.
fn find_authority(store: &Store) -> Result<Option<String>> {
    Pki::new(store).find_bundle(Authority::Cluster)
}

fn render_with(
    cluster: &Cluster,
    artifacts: &ResolvedArtifacts,
    facts: &Facts,
    group: &Group,
    join: JoinParams<'_>,
    authority: &str,
) -> Result<GroupUserData> {
    let settings = &cluster.settings.user_data;
    let mut boot = boot_of(cluster, artifacts, facts, group, authority, join.api)?;
    let login = Login { user: cluster.settings.access.user.clone(), keys: cluster.authorized_keys()? };
    let parts = parts(cluster, group)?;
    let template = template_id::set(cluster, &mut boot, (&login.user, &login.keys), &parts)?;
    let document = UserDataDocument { write_files: write_files(cluster, &boot, join)?, login, parts };
    let text = match settings.form {
        UserDataFormat::CloudInit => cloud_init::render(&document)?,
        UserDataFormat::Ignition => ignition::render(&document)?,
    };
    let text = Zeroizing::new(text);
    require_size(cluster.settings.target, group, &document, text.len())?;
    Ok(GroupUserData { text, template })
}

/// The files of the host, and the unit.
fn write_files(cluster: &Cluster, boot: &BootConfig, join: JoinParams<'_>) -> Result<Vec<WriteFile>> {
    let url = blob_url(&boot.artifacts_url, cluster.version());
    let has_token = boot.bootstrap_kubeconfig.as_ref().is_some_and(|text| text.contains(JOIN_TOKEN));
    let has_volume = boot.identity_volume.is_some();
    let boot = Zeroizing::new(serde_json::to_vec(boot).context("what user data leaves on a host is no JSON")?);
    // The unit is written as it is: nothing replaces a placeholder in it.
    let proxy = HostProxy::find(cluster, None);
    let context = minijinja::context! {
        proxy => proxy.as_ref().map(HostProxy::environment_of_tools).unwrap_or_default(),
        boot_file => boot_config::FILE,
        fetch_file => boot_config::FETCH_FILE,
        packages_file => boot_config::PACKAGES_FILE,
        turnup => layout::TURNUP,
        place => shell_words::quote(layout::TURNUP),
        sha256 => cluster.version(),
        size => cluster.size(),
        url => shell_words::quote(&url),
    };
    let script = |name: &str| -> Result<Zeroizing<Vec<u8>>> {
        let text = template::render(&cluster.source, &format!("templates/bootstrap/{name}"), &context)?;
        Ok(Zeroizing::new(text.into_bytes()))
    };
    let mut write_files = vec![
        WriteFile::packed("the node config", boot_config::FILE, 0o600, boot),
        join.api.write_file(),
        WriteFile::packed("the script that fetches turnup", boot_config::FETCH_FILE, 0o700, script("fetch-turnup.sh")?),
        WriteFile::packed(
            "the script that installs packages",
            boot_config::PACKAGES_FILE,
            0o700,
            script("install-packages.sh")?,
        ),
        WriteFile::unit("the unit", boot_config::UNIT, script(boot_config::UNIT)?),
    ];
    if has_volume {
        write_files.push(WriteFile::plain(
            "the volume of etcd",
            boot_config::VOLUME_FILE,
            0o600,
            line(boot_config::VOLUME),
        ));
    }
    if has_token {
        write_files.push(WriteFile::plain("the join token", boot_config::TOKEN_FILE, 0o600, line(join.token)));
    }
    Ok(write_files)
}

/// The file of the host, with placeholders; `authority` is in PEM.
fn boot_of(
    cluster: &Cluster,
    artifacts: &ResolvedArtifacts,
    facts: &Facts,
    group: &Group,
    authority: &str,
    api: ApiPlace<'_>,
) -> Result<BootConfig> {
    let marked = with_placeholders(facts);
    let target = NodeTarget { blobs: blobs_of(cluster), ..NodeTarget::of_group(group) };
    let assets = Assets::find(cluster, &target)?;
    // What the CSR approver denies is known when the control plane is made: its unit is not in
    // here, its program is.
    let approver = (group.role == Role::ControlPlane).then(Policy::default);
    let builder = NodeConfigBuilder {
        cluster,
        artifacts,
        target,
        facts: &marked,
        has_workers: true,
        api_here: None,
        api_servers: api.balancer(),
        assets,
        neighbors: Neighbors::default(),
        api_host: api.host().to_owned(),
        approver,
    };
    let (node_config, bootstrap_kubeconfig) = if group.role == Role::Worker {
        runtime::require_no_credentials(cluster, &group.name)?;
        let port = api.balancer().map_or(cluster.settings.api_port, |list| list.port);
        let server = format!("https://{}:{port}", api.host());
        (builder.worker(authority)?, Some(bootstrap_kubeconfig(cluster, group, &server, authority)?))
    } else {
        (builder.machine()?, None)
    };
    Ok(BootConfig {
        schema: BootConfig::SCHEMA.into(),
        group: group.name.clone(),
        name_prefix: group.name_prefix.clone(),
        expects: Expected::from(facts),
        artifacts_url: cluster.settings.user_data.artifacts_url.trim_end_matches('/').to_owned(),
        node_config,
        bootstrap_kubeconfig,
        identity_volume: find_identity_volume(cluster, group),
    })
}

/// With what kubelet asks for its certificate.
fn bootstrap_kubeconfig(cluster: &Cluster, group: &Group, server: &str, authority: &str) -> Result<String> {
    let by_identity = groups::joins_by_identity(cluster, &group.name)?;
    let program = if by_identity { machine_identity::find_program(cluster)? } else { None };
    let words: Option<Vec<&str>> = program.as_ref().map(|words| words.iter().map(String::as_str).collect());
    let identity = words.as_ref().map_or(Identity::Token(JOIN_TOKEN), |words| Identity::Program(words));
    Ok(kubeconfig::render(&cluster.settings.name, server, authority, "bootstrap", &identity))
}

/// Where hosts have artifacts already.
fn blobs_of(cluster: &Cluster) -> &'static str {
    if cluster.settings.local_hosts.replaces_hosts { local::BLOBS } else { "" }
}

/// Where a control-plane host finds what it is when its machine is another one.
fn find_identity_volume(cluster: &Cluster, group: &Group) -> Option<IdentityVolume> {
    let keeps = group.role == Role::ControlPlane && cluster.settings.control_plane.keeps_identity;
    let provider = cluster.settings.target.volume_provider().filter(|_| keeps)?;
    Some(IdentityVolume { cloud: provider.into(), label: label_of(&cluster.settings.name) })
}

/// The user's own parts for this group, with their content.
fn parts(cluster: &Cluster, group: &Group) -> Result<Vec<(UserDataPart, Vec<u8>)>> {
    let settings = &cluster.settings.user_data;
    let chosen = settings.parts.iter().filter(|part| is_meant(&part.roles, &part.groups, group.role, &group.name));
    let read = |part: &UserDataPart| -> Result<(UserDataPart, Vec<u8>)> {
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
fn own_part(cluster: &Cluster, file: &str) -> Result<(UserDataPart, Vec<u8>)> {
    let bytes = read_file("phase1.node_groups: additional_user_data", &cluster.work_dir.join(file))?;
    let kind = match bytes.as_slice() {
        text if text.starts_with(b"#cloud-config") => UserDataKind::CloudConfig,
        text if text.trim_ascii_start().starts_with(b"{") => UserDataKind::Ignition,
        _ => UserDataKind::ShellScript,
    };
    let part =
        UserDataPart { name: file.to_owned(), file: file.to_owned(), kind, roles: Vec::new(), groups: Vec::new() };
    require_kind(&part, &bytes, cluster.settings.user_data.form)?;
    Ok((part, bytes))
}

fn read_file(setting: &str, path: &Path) -> Result<Vec<u8>> {
    input::read(path, input::DOCUMENT).map_err(|error| {
        Error::config(format!("{setting}: {} cannot be read", path.display())).source(error).hint("turnup config check")
    })
}

/// cloud-init knows a part by how it begins, and says nothing about one that it does not know.
fn require_kind(part: &UserDataPart, bytes: &[u8], form: UserDataFormat) -> Result<()> {
    let refuse = |why: &str, hint: &str| {
        let file = if part.name == part.file { String::new() } else { format!(" ({})", part.file) };
        Err(Error::config(format!("user data: {}{file} {why}", part.name)).hint(hint))
    };
    match (part.kind, form) {
        (UserDataKind::Ignition, UserDataFormat::CloudInit) => refuse(
            "is Ignition, and phase1.user_data.format is cloud-init",
            "give it the type cloud-config or shell-script",
        ),
        (UserDataKind::CloudConfig | UserDataKind::ShellScript, UserDataFormat::Ignition) => {
            refuse("is for cloud-init, and phase1.user_data.format is ignition", "give it the type ignition")
        }
        (UserDataKind::CloudConfig, _) if !bytes.starts_with(b"#cloud-config") => {
            refuse("is no cloud-config", "its first line must be: #cloud-config")
        }
        (UserDataKind::ShellScript, _) if !bytes.starts_with(b"#!") => {
            refuse("names no interpreter", "its first line must be, for instance: #!/bin/sh")
        }
        (UserDataKind::Ignition, _) if serde_json::from_slice::<serde_json::Value>(bytes).is_err() => {
            refuse("is no JSON", "Butane's YAML becomes Ignition with: butane FILE")
        }
        _ => Ok(()),
    }
}

/// Five API servers with the longest names, which is more than a DNS name, and the length of a
/// token or of what names a volume: what may come in the place of their placeholders.
const LONGEST_PARAMS: usize = 5 * (63 + "=255.255.255.255:65535,".len()) + 256;

fn require_size(target: Target, group: &Group, document: &UserDataDocument, size: usize) -> Result<()> {
    let Some(limit) = target.user_data_limit() else { return Ok(()) };
    if size + LONGEST_PARAMS <= limit {
        return Ok(());
    }
    let message = format!("the user data of the group {} has {size} bytes, and {target} takes {limit}", group.name);
    let mut sizes = document.sizes();
    sizes.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    let error = sizes
        .iter()
        .take(5)
        .fold(Error::config(message), |error, (name, size)| error.evidence(format!("{name}: {size} bytes of it")));
    Err(error.hint("make your parts smaller, for instance by fetching what they install"))
}

/// Whether all control-plane hosts approve the requests of this group's hosts, as far as this
/// machine knows.
pub fn is_approved_by(cluster: &Cluster, inventory: &Inventory, group: &Group) -> Result<bool> {
    let flag = csr_approver::group_flag(&group.name, &group.name_prefix);
    for host in inventory.control_planes() {
        let node_config = find_written(cluster, &host.name)?;
        let approves =
            |unit: &Unit| unit.name == CSR_APPROVER_UNIT && unit.text.split_whitespace().any(|word| word == flag);
        if !node_config.is_some_and(|node_config| node_config.units.iter().any(approves)) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
pub(in crate::bootstrap) mod tests;
