//! `turnup node up --boot`: what user data left on this host, filled with what only this host
//! knows, or what was applied to it since, applied at every boot without an operator.
//!
//! User data is one for all hosts of a group. What differs between them is a closed list of
//! [`Placeholder`]s; everything else is fixed in the node config that it carries. Nothing here
//! decides what a node is, and nothing is changed before every artifact is here.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::document::{self, Document, Fields};
use crate::error::{Context as _, Error, Result};
use crate::input;
use crate::inventory::volume::Volume;
use crate::inventory::{Disk, ServerList, is_label};

use super::identity::HostIdentity;
use super::node_config::{Content, NodeConfig};
use super::up::{self, Delivery, Trigger};
use super::{Facts, NodeEvent, fetch, join, layout, mounts};

/// What user data leaves on the host.
pub(crate) const FILE: &str = "/var/lib/turnup/boot-config.json";
/// The host of the API server, where user data was made before it was known.
pub(crate) const API_FILE: &str = "/var/lib/turnup/api-host";
/// All API servers on one line, in its place on a host with a balancer of its own: the code that
/// creates their addresses writes them in the place of [`API_SERVERS`].
pub(crate) const API_SERVERS_FILE: &str = "/var/lib/turnup/api-servers";
/// What stands for them.
pub(crate) const API_SERVERS: &str = "@turnup:api-servers@";
/// The join token of the host's group, in a file of its own: Terraform fills it into user data.
pub(crate) const TOKEN_FILE: &str = "/var/lib/turnup/join-token";
/// The volume of etcd that is this host's, `ID,NAME`: the code that creates it writes it there in
/// the place of [`VOLUME`]. A space would be none of a `data:` URL, which Ignition reads.
pub(crate) const VOLUME_FILE: &str = "/var/lib/turnup/etcd-volume";
/// What stands for it.
pub(crate) const VOLUME: &str = "@turnup:volume@";
/// Puts turnup itself on the host.
pub(crate) const FETCH_FILE: &str = "/var/lib/turnup/fetch-turnup";
/// Installs what a node needs of its distribution and the image lacks.
pub(crate) const PACKAGES_FILE: &str = "/var/lib/turnup/install-packages";
/// The unit that runs all of this at every boot.
pub(crate) const UNIT: &str = "turnup-node.service";

/// What user data does not know, and what stands for it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Placeholder {
    /// The Node's name: the first label of the host's own name, with the group's prefix.
    Name,
    /// The address from which the host reaches others: that of its default route.
    Address,
    /// The file of name servers for pods ([`Facts::resolv_conf`]).
    ResolvConf,
    /// The host of the API server: the code that creates its address writes it into [`API_FILE`].
    Api,
    /// The join token, in the kubeconfig alone: [`TOKEN_FILE`] has it.
    Token,
}

impl Placeholder {
    /// All of them.
    pub(crate) const ALL: [Self; 5] = [Self::Name, Self::Address, Self::ResolvConf, Self::Api, Self::Token];

    /// The text that stands for it.
    #[must_use]
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Name => "@turnup:name@",
            Self::Address => "@turnup:address@",
            Self::ResolvConf => "@turnup:resolv-conf@",
            Self::Api => "@turnup:api@",
            Self::Token => "@turnup:token@",
        }
    }
}

/// The content of [`FILE`].
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BootConfig {
    /// Always [`BootConfig::SCHEMA`](Document::SCHEMA).
    pub schema: String,
    /// The group of the host, for messages.
    pub group: String,
    /// How the names of the group's Nodes begin; empty where it does not matter. A host whose own
    /// name begins otherwise gets it put before.
    pub name_prefix: String,
    /// What the image was taken to be; a host that is something else is refused.
    pub expects: Expected,
    /// Artifacts lie below it as `sha256/<hex>`.
    pub artifacts_url: String,
    /// The node config, with placeholders.
    pub node_config: NodeConfig,
    /// The kubeconfig with which kubelet asks for its certificate, with placeholders; none on the
    /// control plane, whose secrets come over SSH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_kubeconfig: Option<String>,
    /// Where the control plane's hosts have what makes each of them the host that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_volume: Option<IdentityVolume>,
}

/// The kind of volume that [`VOLUME_FILE`] names one of.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IdentityVolume {
    /// The name of its cloud.
    pub cloud: String,
    /// The label of the file system on it.
    pub label: String,
}

/// The facts of a host on which its node config depends and that are the same for all hosts of an
/// image.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    /// `x86_64`, `aarch64`.
    pub arch: String,
    /// 1 or 2.
    pub cgroup: u8,
    /// Whether the host is a container.
    pub container: bool,
    /// Whether processes may lower their `oom_score_adj`.
    pub lowers_oom_score: bool,
}

impl Document for BootConfig {
    const SCHEMA: &'static str = "turnup.boot-config/1";
    const WHAT: &'static str = "what user data leaves on a host";
    const REMEDY: &'static str = "recreate the host: its user data writes the file at the first boot";

    fn fields() -> Fields {
        let own = Fields::new(&[
            ("schema", "text"),
            ("group", "dns-label"),
            ("name_prefix", "word or empty"),
            ("expects.arch", "word"),
            ("artifacts_url", "url"),
            ("bootstrap_kubeconfig", "content"),
            ("identity_volume.cloud", "dns-label"),
            ("identity_volume.label", "word"),
        ]);
        own.with("node_config", NodeConfig::fields()).but("node_config.node", "dns-label or enum(@turnup:name@)")
    }
}

impl From<&Facts> for Expected {
    fn from(facts: &Facts) -> Self {
        let Facts { arch, cgroup, container, lowers_oom_score, .. } = facts.clone();
        Self { arch, cgroup, container, lowers_oom_score }
    }
}

/// Makes this host what its user data says, or, when something newer was applied to it since, what
/// that says. One [`NodeEvent`](super::NodeEvent) a line goes to `out`.
pub(crate) fn run(out: &mut dyn Write) -> Result<()> {
    let boot: BootConfig = document::parse(FILE, &input::read_text(Path::new(FILE), input::DOCUMENT)?)?;
    let place = boot.identity_volume.as_ref();
    // One that was stopped on its way to being a host goes on: what user data says knows nothing of
    // what it has by then.
    let was_ready = is_ready()?;
    if was_ready && become_host(place, &boot.artifacts_url, out)? {
        return Ok(());
    }
    fetch::fetch_missing(&find_delivery(&boot)?.node_config, &boot.artifacts_url, out)?;
    let may_become = place.is_some() && !was_ready && !has_operator_come()?;
    {
        let _turn = up::take_turn()?;
        // The operator may have delivered another one by ssh meanwhile, together with the files
        // that it needs.
        up::run_alone(find_delivery(&boot)?, if may_become { Trigger::Machine } else { Trigger::Boot }, out)?;
    }
    if boot.bootstrap_kubeconfig.is_some() {
        return join::finish(join::APPROVED);
    }
    if !may_become || become_host(place, &boot.artifacts_url, out)? {
        return Ok(());
    }
    let _turn = up::take_turn()?;
    if has_operator_come()? {
        return Ok(());
    }
    up::run_alone(find_delivery(&boot)?, Trigger::Boot, out)
}

/// Makes a machine, which is ready and has no keys yet, the host that its volume of etcd belongs
/// to; whether it is that now. Leaves it as it is where an operator was here before, or has to come
/// for the first time.
fn become_host(place: Option<&IdentityVolume>, artifacts_url: &str, out: &mut dyn Write) -> Result<bool> {
    let Some(place) = place else { return Ok(false) };
    let Some(volume) = find_volume(place)? else { return Ok(false) };
    if has_operator_come()? {
        return Ok(false);
    }
    let name = volume.name.clone();
    let device = mounts::find_device(&Disk::Volume(volume), &mut |event| event.write(out))?;
    let found = {
        let _turn = up::take_turn()?;
        if has_operator_come()? {
            return Ok(false);
        }
        HostIdentity::find(&device, &place.label)?
    };
    let identity = match found {
        Ok(identity) => identity,
        Err(why) => {
            let waits = format!("this machine waits for turnup up: the volume {name} tells it not who it is: {why}");
            NodeEvent::Waiting(waits).write(out)?;
            return Ok(false);
        }
    };
    identity.require_address()?;
    fetch::fetch_missing(&identity.node_config, artifacts_url, out)?;
    let _turn = up::take_turn()?;
    if has_operator_come()? {
        return Ok(false);
    }
    NodeEvent::Milestone(format!("this machine is {} again, by its volume", identity.node_config.node)).write(out)?;
    identity.put_back()?;
    let HostIdentity { node_config, secrets, .. } = identity;
    up::run_alone(Delivery { secrets, ..Delivery::of(node_config) }, Trigger::Boot, out)?;
    Ok(true)
}

/// Whether this machine is ready to be given what a host is, and was given nothing of it yet.
fn is_ready() -> Result<bool> {
    Ok(!has_operator_come()? && NodeConfig::read_applied()?.is_some())
}

/// Whether this machine has been given more than what it is at first, or is just being given it.
fn has_operator_come() -> Result<bool> {
    Ok(up::is_unfinished() || NodeConfig::read_applied()?.is_some_and(|applied| !applied.health.is_empty()))
}

/// The volume that the machine was told of; none where the code that makes machines tells of none.
fn find_volume(place: &IdentityVolume) -> Result<Option<Volume>> {
    if !Path::new(VOLUME_FILE).exists() {
        return Ok(None);
    }
    let text = input::read_text(Path::new(VOLUME_FILE), input::KEYS)?;
    Ok(parse_volume(&text, &place.cloud))
}

fn parse_volume(text: &str, cloud: &str) -> Option<Volume> {
    // Machines that began before have a space there.
    let (id, name) = text.trim().split_once([',', ' ']).filter(|_| !text.contains(VOLUME))?;
    Some(Volume { cloud: cloud.to_owned(), id: id.to_owned(), name: name.to_owned() })
}

/// What was applied last counts more than what the host began with. A host that has no certificate,
/// or lost it, joins by its token.
fn find_delivery(boot: &BootConfig) -> Result<Delivery> {
    let facts = Facts::read()?;
    let applied = NodeConfig::read_applied()?;
    if applied.is_none() {
        require_expected(boot, &Expected::from(&facts))?;
    }
    let (node_config, bootstrap_kubeconfig) = match applied {
        Some(node_config) if facts.joined => (node_config, None),
        applied => {
            let (mut filled, bootstrap_kubeconfig) = fill(boot, &find_known(boot, &facts)?)?;
            if applied.is_none() {
                fill_api_servers(&mut filled, find_api_servers()?.as_deref())?;
            }
            (applied.unwrap_or(filled), bootstrap_kubeconfig.filter(|_| !facts.joined))
        }
    };
    Ok(Delivery { bootstrap_kubeconfig, ..Delivery::of(node_config) })
}

fn require_expected(boot: &BootConfig, found: &Expected) -> Result<()> {
    if *found == boot.expects {
        return Ok(());
    }
    let message = format!("this host is not what the user data of its group {} was made for", boot.group);
    Err(Error::precondition(message)
        .evidence(format!("expected {:?}", boot.expects))
        .evidence(format!("found {found:?}"))
        .hint("choose an image of the kind that was expected, or make the user data for this one: turnup up"))
}

/// Values by placeholder; the API's host and the token only where there is a file of them.
type Known = BTreeMap<Placeholder, Zeroizing<String>>;

/// What was written in the place of [`API_SERVERS`], if the host was told of any.
fn find_api_servers() -> Result<Option<String>> {
    let path = Path::new(API_SERVERS_FILE);
    path.exists().then(|| Ok(input::read_text(path, input::KEYS)?)).transpose()
}

/// Writes the API servers into the list of the host's balancer, where that has none yet.
fn fill_api_servers(node_config: &mut NodeConfig, line: Option<&str>) -> Result<()> {
    let refuse = |why: String| {
        let hint = "recreate the host: what makes it writes the addresses of the control-plane hosts there";
        Err(Error::precondition(format!("{API_SERVERS_FILE} {why}")).hint(hint))
    };
    for file in &mut node_config.files {
        let Content::Text(text) = &file.content else { continue };
        if file.path != layout::API_SERVERS {
            continue;
        }
        let list: ServerList = document::parse(layout::API_SERVERS, text)?;
        if !list.servers.is_empty() {
            continue;
        }
        let Some(line) = line else { return refuse("is missing".to_owned()) };
        if line.contains(API_SERVERS) {
            return refuse(format!("was left as it was: nothing replaced {API_SERVERS}"));
        }
        let told = list
            .with_line(line.trim())
            .and_then(|list| document::render(layout::API_SERVERS, &list).map_err(|error| error.message().to_owned()));
        match told {
            Ok(text) => file.content = Content::Text(text),
            Err(why) => return refuse(format!("names no API servers: {why}")),
        }
    }
    Ok(())
}

fn find_known(boot: &BootConfig, facts: &Facts) -> Result<Known> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut known = Known::from([
        (Placeholder::Name, node_name(&host, &boot.name_prefix)?.into()),
        (Placeholder::Address, default_address()?.to_string().into()),
        (Placeholder::ResolvConf, facts.resolv_conf.clone().into()),
    ]);
    for (placeholder, file) in [(Placeholder::Api, API_FILE), (Placeholder::Token, TOKEN_FILE)] {
        if Path::new(file).exists() {
            let text = Zeroizing::new(input::read_text(Path::new(file), input::KEYS)?);
            known.insert(placeholder, text.trim().to_owned().into());
        }
    }
    Ok(known)
}

/// The first label of the host's name in lower case, behind the prefix of its group. A host that
/// has no name of its own yet is waited for.
pub(crate) fn node_name(host: &str, prefix: &str) -> Result<String> {
    let own = host.split('.').next().unwrap_or_default().to_ascii_lowercase();
    if own == "localhost" || own == "(none)" || own.is_empty() {
        return Err(Error::transient(format!("this host has no name of its own yet, but {host:?}"))
            .hint("its cloud names it at the first boot; by hand: hostnamectl set-hostname NAME"));
    }
    let name = if own.starts_with(prefix) { own } else { format!("{prefix}{own}") };
    if !is_label(&name) {
        return Err(Error::precondition(format!("the host's name {host:?} cannot be the name of a Node: {name:?}"))
            .hint("letters, digits and '-', at most 63, beginning and ending with a letter or digit"));
    }
    Ok(name)
}

/// The address with which this host would speak to the world; nothing is sent. The address asked
/// about is one of documentation (RFC 5737).
fn default_address() -> Result<IpAddr> {
    let route = || -> std::io::Result<IpAddr> {
        let socket = UdpSocket::bind(SocketAddr::from(([0, 0, 0, 0], 0)))?;
        socket.connect(SocketAddr::from(([192, 0, 2, 1], 9)))?;
        Ok(socket.local_addr()?.ip())
    };
    route().map_err(|error| Error::transient("this host has no default route yet").source(error).hint("ip route show"))
}

/// The configuration and the kubeconfig with every placeholder replaced.
fn fill(boot: &BootConfig, known: &Known) -> Result<(NodeConfig, Option<Zeroizing<String>>)> {
    known.iter().try_for_each(|(placeholder, value)| require_plain(*placeholder, value))?;
    let mut value = serde_json::to_value(&boot.node_config).context("cannot write the node config")?;
    // The token has one place.
    let open = known
        .iter()
        .filter(|(placeholder, _)| **placeholder != Placeholder::Token)
        .map(|(placeholder, value)| (*placeholder, value.clone()));
    replace_in(&mut value, &open.collect())?;
    let node_config = serde_json::from_value(value).context("the filled node config is none")?;
    let kubeconfig = boot.bootstrap_kubeconfig.as_ref();
    let kubeconfig = kubeconfig.map(|text| replace(text, known).map(Zeroizing::new)).transpose()?;
    Ok((node_config, kubeconfig))
}

/// The values go into JSON, flags and units: nothing that could end a word there.
fn require_plain(placeholder: Placeholder, value: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte);
    if !value.is_empty() && value.bytes().all(plain) {
        return Ok(());
    }
    let hint = format!("look on the host at {API_FILE}, {TOKEN_FILE}, /etc/hostname and `ip route`");
    let shown = if placeholder == Placeholder::Token { "what is there".to_owned() } else { format!("{value:?}") };
    Err(Error::precondition(format!("{shown} cannot stand for {}", placeholder.text())).hint(hint))
}

fn replace_in(value: &mut Value, known: &Known) -> Result<()> {
    match value {
        Value::String(text) => *text = replace(text, known)?,
        Value::Array(items) => items.iter_mut().try_for_each(|item| replace_in(item, known))?,
        Value::Object(members) => members.values_mut().try_for_each(|member| replace_in(member, known))?,
        _ => {}
    }
    Ok(())
}

fn replace(text: &str, known: &Known) -> Result<String> {
    let mut filled = text.to_owned();
    for placeholder in Placeholder::ALL.into_iter().filter(|placeholder| text.contains(placeholder.text())) {
        let file = if placeholder == Placeholder::Token { TOKEN_FILE } else { API_FILE };
        let missing = || Error::precondition(format!("{file} is missing")).hint(<BootConfig as Document>::REMEDY);
        filled = filled.replace(placeholder.text(), known.get(&placeholder).ok_or_else(missing)?);
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;
    use crate::error::Class;
    use crate::inventory::Role;
    use crate::node::node_config::{File, Runtime, SCHEMA, Unit};

    fn boot() -> BootConfig {
        let text = |path: &str, text: &str| File::new(path, 0o600, 0, Content::Text(text.into()));
        let node_config = NodeConfig {
            schema: SCHEMA.into(),
            node: Placeholder::Name.text().into(),
            role: Role::Worker,
            kubernetes_version: "1.36.3".into(),
            blobs: vec![],
            users: vec![],
            ports: vec![],
            packages: vec![],
            extra_hosts: BTreeMap::new(),
            shared_directories: vec![],
            modules: vec![],
            sysctls: BTreeMap::new(),
            pod_networks: vec![],
            mounts: vec![],
            directories: vec![],
            binaries: vec![],
            proxy: None,
            runtime: Runtime::default(),
            files: vec![text("/etc/kubelet.json", "{\"resolvConf\": \"@turnup:resolv-conf@\"}")],
            images: vec![],
            units: vec![Unit {
                name: "kubelet.service".into(),
                text: "--hostname-override=@turnup:name@ --node-ip=@turnup:address@".into(),
                mode: 0o600,
                restart_on: vec![],
                reloads: false,
            }],
            health: vec![],
        };
        let expects = Expected { arch: "x86_64".into(), cgroup: 2, container: false, lowers_oom_score: true };
        let bootstrap_kubeconfig = Some("https://@turnup:token@:@turnup:api@:6443".to_owned());
        let (group, name_prefix, artifacts_url) = ("pool".into(), "pool-".into(), "http://192.0.2.1".into());
        BootConfig {
            schema: BootConfig::SCHEMA.into(),
            group,
            name_prefix,
            expects,
            artifacts_url,
            node_config,
            bootstrap_kubeconfig,
            identity_volume: None,
        }
    }

    fn known() -> Known {
        let values = ["pool-1", "10.0.0.7", "/run/resolv.conf", "api.example.com", "abcdef.0123456789abcdef"];
        Placeholder::ALL.into_iter().zip(values.map(|value| value.to_owned().into())).collect()
    }

    #[test]
    fn every_mark_is_filled_wherever_it_stands() {
        let (node_config, kubeconfig) = fill(&boot(), &known()).unwrap();
        assert_eq!(node_config.node, "pool-1");
        assert_eq!(node_config.units[0].text, "--hostname-override=pool-1 --node-ip=10.0.0.7");
        let text = serde_json::to_string(&node_config).unwrap();
        assert!(!text.contains("@turnup:") && text.contains("/run/resolv.conf"), "{text}");
        assert_eq!(kubeconfig.unwrap().as_str(), "https://abcdef.0123456789abcdef:api.example.com:6443");
        let mut curious = boot();
        curious.node_config.units[0].text = "@turnup:token@".into();
        assert!(fill(&curious, &known()).is_err(), "the token goes into the kubeconfig and nowhere else");
        // What it says of itself survives the way to the host.
        let text = document::render("f", &boot()).unwrap();
        assert!(document::parse::<BootConfig>("f", &text).unwrap().node_config == boot().node_config);
    }

    #[test]
    fn a_value_that_would_end_its_word_is_refused_and_a_missing_one_named() {
        for wrong in ["a b", "a\"b", "$(x)", "", "ä", "a\nb"] {
            let error = fill(&boot(), &Known::from([(Placeholder::Api, wrong.to_owned().into())])).err().unwrap();
            assert!(error.message().contains("cannot stand for @turnup:api@"), "{}", error.message());
        }
        let secret = fill(&boot(), &Known::from([(Placeholder::Token, "a b".to_owned().into())])).err().unwrap();
        assert!(!secret.render().contains("a b"), "{}", secret.render());
        for (placeholder, file) in [(Placeholder::Api, API_FILE), (Placeholder::Token, TOKEN_FILE)] {
            let mut without = known();
            without.remove(&placeholder);
            assert_eq!(fill(&boot(), &without).err().unwrap().message(), format!("{file} is missing"));
        }
    }

    #[test]
    fn the_balancer_of_a_host_leads_to_the_api_servers_that_it_was_told_of() {
        let open = document::render(layout::API_SERVERS, &ServerList::of_node_without_servers()).unwrap();
        let mut node_config = boot().node_config;
        fill_api_servers(&mut node_config, None).unwrap();
        node_config.files.push(File::new(layout::API_SERVERS, 0o644, 0, Content::Text(open)));
        for (line, expected) in [
            (None, "/var/lib/turnup/api-servers is missing"),
            (Some("@turnup:api-servers@\n"), "was left as it was: nothing replaced @turnup:api-servers@"),
            (Some("\n"), "names no API servers: \"\" is not NAME=ADDRESS:PORT"),
            (Some("a=10.0.0.1:6443,b=10.0.0.1:6443"), "repeats the address 10.0.0.1:6443"),
            (Some("a_b=10.0.0.1:6443"), "servers[0].name"),
            (Some("a=10.0.0.1:0"), "a port is 0"),
        ] {
            let error = fill_api_servers(&mut node_config, line).unwrap_err();
            assert!(error.message().contains(expected), "{line:?}: {}", error.message());
            assert_eq!(error.class(), Class::Precondition);
        }
        fill_api_servers(&mut node_config, Some("a=10.0.0.1:6443,b=10.0.0.2:6443\n")).unwrap();
        let list = ServerList::of_node_without_servers().with_line("a=10.0.0.1:6443,b=10.0.0.2:6443").unwrap();
        assert_eq!((list.servers.len(), list.port), (2, 3992));
        let filled = Content::Text(document::render(layout::API_SERVERS, &list).unwrap());
        let content = |node_config: &NodeConfig| node_config.files.last().map(|file| file.content.clone()).unwrap();
        assert_eq!(content(&node_config), filled);
        fill_api_servers(&mut node_config, None).unwrap();
        assert_eq!(content(&node_config), filled, "it is told once");
    }

    #[test]
    fn the_name_of_a_host_becomes_the_name_of_its_node() {
        for (host, prefix, node) in [
            ("pool-1", "", "pool-1"),
            ("pool-1", "pool-", "pool-1"),
            ("IP-10-0-0-1.ec2.internal", "pool-", "pool-ip-10-0-0-1"),
            ("pool", "pool-", "pool-pool"),
        ] {
            assert_eq!(node_name(host, prefix).unwrap(), node);
        }
        for (host, class) in [
            ("localhost", Class::Transient),
            ("localhost.localdomain", Class::Transient),
            ("(none)", Class::Transient),
            ("", Class::Transient),
            ("my_host", Class::Precondition),
            ("a-", Class::Precondition),
            (&"a".repeat(60), Class::Precondition),
        ] {
            assert_eq!(node_name(host, "pool-").unwrap_err().class(), class, "{host}");
        }
    }

    #[test]
    fn the_volume_is_what_was_written_in_its_place() {
        assert_eq!(parse_volume("@turnup:volume@\n", "gce"), None, "by a module that tells of none");
        assert_eq!(parse_volume("", "gce"), None);
        for text in ["projects/p/zones/z/disks/d,d\n", "projects/p/zones/z/disks/d d\n"] {
            let volume = parse_volume(text, "gce").unwrap();
            let words = (volume.cloud.as_str(), volume.id.as_str(), volume.name.as_str());
            assert_eq!(words, ("gce", "projects/p/zones/z/disks/d", "d"));
        }
    }

    #[test]
    fn a_host_of_another_kind_is_refused_before_anything_is_done() {
        let found = Expected { cgroup: 1, ..boot().expects };
        insta::assert_snapshot!(require_expected(&boot(), &found).unwrap_err().render());
        require_expected(&boot(), &boot().expects).unwrap();
    }

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        document::hostile::try_every_text::<BootConfig>(&serde_json::json!({
            "schema": BootConfig::SCHEMA, "group": "pool", "name_prefix": "pool-", "artifacts_url": "https://a.example/b", "bootstrap_kubeconfig": "a\n",
            "expects": {"arch": "x86_64", "cgroup": 2, "container": false, "lowers_oom_score": true},
            "identity_volume": {"cloud": "gce", "label": "shelf"},
            "node_config": crate::node::node_config::sample(),
        }));
    }
}
