//! Is a configuration right? Formats of single values, and what only several settings together can
//! tell.
//!
//! Pure: it judges values. It must not look at the machine, the network or a running cluster.

use kconfig::{Config, SymbolType};

use super::format::parse_duration;
use super::network::Network;
use super::node_groups::GROUPS;
use super::people;
use super::problem::Problem;
use super::relations::{Empty, NoticeOf, Only, Private, Zones, words};
use super::schema::{Schema, TARGET, suggestion};
use super::values::Values;
use super::{
    addons, artifacts, assets, backup, components, dns, ebs, host_system, hosts, limits, log_shipping, node_groups,
    ports, runtime,
};

/// Everything that is wrong with the values themselves.
#[must_use]
pub fn check(schema: &Schema, config: &Config<'_>) -> Vec<Problem> {
    let mut problems = check_formats(schema, config);
    let malformed: Vec<String> = problems.iter().filter_map(|problem| problem.symbol.clone()).collect();
    let facts = Values { schema, config, malformed };
    problems.extend(check_overlaps(&facts));
    problems.extend(check_host_room(&facts));
    problems.extend(check_node_room(&facts));
    problems.extend(check_pod_room(&facts));
    problems.extend(check_port(&facts));
    problems.extend(check_quorum(&facts));
    problems.extend(check_exposure(&facts));
    problems.extend(check_target(&facts));
    problems.extend(check_issuer(&facts));
    problems.extend(check_orders(&facts));
    problems.extend(check_people(&facts));
    problems.extend(check_zones(&facts));
    problems.extend(check_hosts(&facts));
    problems.extend(check_bastion(&facts));
    problems.extend(check_way_in(&facts));
    problems.extend(check_open_networks(&facts));
    problems.extend(check_notices(&facts));
    problems.extend(node_groups::check(&facts));
    problems.extend(check_assets(&facts));
    problems.extend(check_chosen_groups(&facts));
    problems.extend(check_firewall(&facts));
    problems.extend(components::check(&facts));
    problems.extend(find_removed_gates(&facts));
    problems.extend(host_system::check(&facts));
    problems.extend(backup::check(&facts));
    problems.extend(dns::check(&facts));
    problems.extend(runtime::check(&facts));
    problems.extend(artifacts::check(&facts));
    problems.extend(limits::check(&facts));
    problems.extend(addons::check(&facts));
    problems.extend(ebs::check(&facts));
    problems.extend(log_shipping::check(&facts));
    problems
}

/// What is wrong with this text as a value of a symbol: type, range, format. Nothing when it may be
/// set.
#[must_use]
pub fn judge(schema: &Schema, config: &Config<'_>, symbol: kconfig::SymbolId, text: &str) -> Option<String> {
    let kind = schema.tree().get(symbol).kind;
    if !kind.accepts(text) {
        return Some(match kind {
            SymbolType::Int if text.is_empty() => "it is empty; expected a whole number".to_owned(),
            SymbolType::Int => format!("`{text}` is not a whole number"),
            SymbolType::Hex => format!("`{text}` is not a hexadecimal number such as 0x1f"),
            SymbolType::Bool => format!("`{text}` is neither y nor n"),
            SymbolType::Tristate => format!("`{text}` is none of y, m and n"),
            other => format!("`{text}` is not a value of type {other}"),
        });
    }
    if kind.is_numeric() && !schema.is_foreign() && kind.parse_number(text).is_none() {
        return Some(format!("{text} is too large"));
    }
    if let Some((low, high)) = super::object::out_of_range(config, symbol, text) {
        return Some(format!("{text} is out of range: {low} to {high}"));
    }
    schema.rule(symbol).format.as_ref()?.validate(text).err()
}

fn check_formats(schema: &Schema, config: &Config<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for &symbol in schema.ordered() {
        if schema.tree().get(symbol).kind.is_logical() {
            continue;
        }
        // What is not written is not in force; an answer that is wrong in itself will be as wrong
        // when it is.
        let text = if config.is_written(symbol) { Some(config.value(symbol)) } else { config.user_value(symbol) };
        let Some(text) = text else { continue };
        if let Some(why) = judge(schema, config, symbol, text) {
            let name = schema.name(symbol);
            let why = if schema.rule(symbol).secret { "its format is wrong".to_owned() } else { why };
            problems.push(Problem::of(name, why));
        }
    }
    problems
}

/// Networks of hosts, pods and Services share no address.
fn check_overlaps(facts: &Values<'_, '_>) -> Vec<Problem> {
    let networks = facts.schema.related(|relations| relations.network);
    let networks: Vec<_> =
        networks.filter_map(|(name, addresses)| Some((name, addresses, facts.network(name)?))).collect();
    let mut problems = Vec::new();
    for (index, (name, _, network)) in networks.iter().enumerate() {
        for (other_name, addresses, other) in &networks[..index] {
            if network.overlaps(*other) {
                let what = addresses.describe();
                let message =
                    format!("{name}: {network} overlaps {what} {other} ({other_name}); choose separate networks");
                problems.push(Problem::error(message).about(name));
            }
        }
    }
    problems
}

/// How many hosts there will be at most, of the control plane and others; nothing where the
/// configuration does not say.
#[must_use]
pub fn count_hosts(schema: &Schema, config: &Config<'_>) -> Option<(u64, u64)> {
    count_hosts_of(&Values { schema, config, malformed: Vec::new() })
}

fn count_hosts_of(facts: &Values<'_, '_>) -> Option<(u64, u64)> {
    let hosts = facts.records("phase1.baremetal.hosts");
    if !hosts.is_empty() {
        let (control_plane, workers): (Vec<_>, Vec<_>) =
            hosts.into_iter().partition(|host| host.get("role").is_some_and(|role| role == "control-plane"));
        return Some((u64::try_from(control_plane.len()).ok()?, u64::try_from(workers.len()).ok()?));
    }
    let number = |name| facts.number(name).and_then(|number| u64::try_from(number).ok());
    let most = |group: &serde_json::Value| {
        let number = |field: &str| group.get(field).and_then(serde_json::Value::as_u64).unwrap_or_default();
        number("max").max(number("size"))
    };
    let groups = facts.records(GROUPS);
    let workers = if groups.is_empty() { number("phase1.num_nodes")? } else { groups.iter().map(most).sum() };
    Some((number("phase1.control_plane.count").unwrap_or(1), workers))
}

/// Feature gates that the next minor version of Kubernetes no longer has.
fn find_removed_gates(facts: &Values<'_, '_>) -> Option<Problem> {
    const SETTING: &str = "phase2.feature_gates";
    let pairs = words(facts.text(SETTING).filter(|text| !text.is_empty())?);
    let gates = pairs.iter().filter_map(|pair| Some(pair.split_once('=')?.0));
    facts.schema.gates().warn(facts.text("phase2.kubernetes_version")?, SETTING, gates)
}

/// Are there addresses for all hosts?
fn check_host_room(facts: &Values<'_, '_>) -> Option<Problem> {
    let (control_plane, workers) = count_hosts_of(facts)?;
    let (name, hosts) = ("phase1.local.subnet", control_plane + workers);
    let subnet = facts.network(name)?;
    // The network itself, the bridge and the broadcast address are no hosts'.
    let room = subnet.size().saturating_sub(3);
    let message = format!(
        "{name}: {subnet} has room for {room} hosts, but {hosts} are needed ({control_plane} for the control plane, {workers} workers)"
    );
    (hosts > room).then(|| Problem::error(message).about(name))
}

/// The prefix length of a node's pod addresses, and how many addresses that is.
fn node_network(facts: &Values<'_, '_>) -> (u32, u64) {
    let length = facts.number("phase2.network.node_cidr_bits").and_then(|length| u32::try_from(length).ok());
    let length = length.unwrap_or(24);
    (length, 1 << 32_u32.saturating_sub(length).min(32))
}

/// Is there a range of pod addresses for every node?
fn check_node_room(facts: &Values<'_, '_>) -> Option<Problem> {
    let (control_plane, workers) = count_hosts_of(facts)?;
    let (name, hosts) = ("phase2.pod_cidr", control_plane + workers);
    let (pods, (length, size)) = (facts.network(name)?, node_network(facts));
    let room = pods.size() / size;
    let message = format!("{name}: {pods} has room for {room} nodes with a /{length} each, but there may be {hosts}");
    (hosts > room).then(|| Problem::error(message).about(name))
}

/// Has a node addresses for all pods that it may run?
fn check_pod_room(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase2.max_pods";
    let most = facts.number(name).and_then(|most| u64::try_from(most).ok())?;
    let (length, size) = node_network(facts);
    // The network itself, its bridge and the broadcast address are no pods'.
    let room = size.saturating_sub(3);
    let message = format!(
        "{name}: a node's /{length} (phase2.network.node_cidr_bits) has addresses for {room} pods, not for {most}"
    );
    (most > room).then(|| Problem::error(message).about(name))
}

fn check_port(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase2.api_port";
    let port = facts.number(name)?;
    let (_, owner) = ports::find_taken(facts, &(port..=port))?;
    let message = format!("{name}: port {port} is taken by {owner} on the same host");
    Some(Problem::error(message).about(name))
}

/// etcd needs more than half of its members: an even number survives no more losses than the odd
/// one below it.
fn check_quorum(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase1.control_plane.count";
    let count = facts.number(name).filter(|count| count % 2 == 0)?;
    let message = format!(
        "{name}: {count} control-plane hosts survive no more losses than {}; choose {} or {}",
        count - 1,
        count - 1,
        count + 1
    );
    Some(Problem::error(message).about(name))
}

/// One address that belongs to a host leads to no other one.
fn check_exposure(facts: &Values<'_, '_>) -> Option<Problem> {
    let (name, count) = ("phase1.api.exposure", "phase1.control_plane.count");
    let several = facts.number(count).filter(|number| *number > 1)?;
    facts.text(name).filter(|exposure| *exposure == "static-address")?;
    let message =
        format!("{name}: a static address leads to one host, but {count} is {several}; choose load-balancer or dns");
    Some(Problem::error(message).about(name))
}

/// Values that the target cannot have, such as routes to pods where the network drops their
/// packets.
fn check_target(facts: &Values<'_, '_>) -> Vec<Problem> {
    let Some(target) = facts.text(TARGET) else { return Vec::new() };
    let judge = |(name, only): (&str, &Only)| {
        let refused = facts.text(name)? == only.value && !only.targets.iter().any(|known| known == target);
        let message = format!("{name}: {}", only.why.replace("TARGET", target));
        refused.then(|| Problem::error(message).about(name))
    };
    let judge_empty = |(name, empty): (&str, &Empty)| {
        let refused = empty.targets.iter().any(|known| known == target) && !facts.text(name)?.is_empty();
        let message = format!("{name}: {}", empty.why.replace("TARGET", target));
        refused.then(|| Problem::error(message).about(name))
    };
    let all = facts.schema.related(|relations| Some(&relations.only));
    let values = all.flat_map(|(name, only)| only.iter().map(move |only| (name, only))).filter_map(judge);
    let all = facts.schema.related(|relations| Some(&relations.empty));
    let any = all.flat_map(|(name, empty)| empty.iter().map(move |empty| (name, empty))).filter_map(judge_empty);
    values.chain(any).collect()
}

/// The API server takes no other issuer (its flag --oidc-issuer-url).
fn check_issuer(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase2.apiserver.oidc_issuer_url";
    facts.text(name).filter(|url| url.starts_with("http://"))?;
    Some(Problem::of(name, "the API server takes only issuers whose URL begins with https://"))
}

/// Settings of which the first may not be larger than the second.
const ORDERS: [(&str, &str); 2] = [
    ("phase2.network.node_port_first", "phase2.network.node_port_last"),
    ("phase2.kubelet.image_gc_low_threshold", "phase2.kubelet.image_gc_high_threshold"),
];

fn check_orders(facts: &Values<'_, '_>) -> Vec<Problem> {
    let judge = |(low, high): &(&str, &str)| {
        let (first, last) = (facts.number(low)?, facts.number(high)?);
        let message = format!("{high}: {last} is smaller than {first} ({low})");
        (first > last).then(|| Problem::error(message).about(high))
    };
    ORDERS.iter().filter_map(judge).collect()
}

const LIFETIME: &str = "phase2.kubeconfig.lifetime";
const MAX_LIFETIME: &str = "phase2.kubeconfig.max_lifetime";
const USER: &str = "phase2.kubeconfig.user";

/// How the administrator is called, and how long certificates of people live.
fn check_people(facts: &Values<'_, '_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let named = facts.text(USER).filter(|name| !name.is_empty());
    if let Some(Err(why)) = named.map(people::judge_user) {
        problems.push(Problem::of(USER, why));
    }
    let life = |name| facts.text(name).and_then(|text| Some((name, text, parse_duration(text)?)));
    if let Some((name, text, _)) = life(MAX_LIFETIME).filter(|(_, _, max)| *max > people::LONGEST) {
        problems.push(Problem::error(format!("{name}: {text} is more than a year (8760h)")).about(name));
    }
    if let Some((name, text, _)) = life(LIFETIME).filter(|(_, _, life)| *life < people::SHORTEST) {
        let message = format!(
            "{name}: {text} is less than an hour (1h), and a run works with the certificate that it begins with"
        );
        problems.push(Problem::error(message).about(name));
    }
    if let (Some((name, text, life)), Some((_, bound, max))) = (life(LIFETIME), life(MAX_LIFETIME))
        && life > max
    {
        problems.push(Problem::error(format!("{name}: {text} is more than {bound} ({MAX_LIFETIME})")).about(name));
    }
    problems
}

/// Zones lie in the region that the configuration names.
fn check_zones(facts: &Values<'_, '_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, Zones { region: of, separator }) in facts.schema.related(|relations| relations.zones.as_ref()) {
        let (Some(zones), Some(region)) = (facts.text(name), facts.text(of)) else { continue };
        let lies_there = |zone: &str| {
            let letter = zone.strip_prefix(region).and_then(|rest| rest.strip_prefix(separator.as_str()));
            letter.is_some_and(|letter| letter.len() == 1)
        };
        let elsewhere = zones.split(',').map(str::trim).find(|zone| !zone.is_empty() && !lies_there(zone));
        if let Some(zone) = elsewhere {
            let message =
                format!("{name}: {zone} is no zone of {region} ({of}); expected {region}{separator}a or the like");
            problems.push(Problem::error(message).about(name));
        }
    }
    problems
}

fn check_hosts(facts: &Values<'_, '_>) -> Vec<Problem> {
    let (name, bastion) = ("phase1.baremetal.hosts", facts.text("phase1.ssh.bastion") == Some("existing"));
    let known_hosts = facts.text("phase1.ssh.known_hosts_file").is_some_and(|file| !file.is_empty());
    let api_host = facts.text("phase1.api.host").is_some_and(|host| !host.is_empty());
    let around = hosts::HostChecks { known_hosts, bastion };
    let list = facts.text(name).unwrap_or_default();
    let mistakes = hosts::find_mistakes(list, around);
    let problems = mistakes.into_iter().map(|why| Problem::of(name, why));
    let doubts = hosts::find_doubts(list, api_host).into_iter();
    problems.chain(doubts.map(|why| Problem::notice(format!("{name}: {why}")).about(name))).collect()
}

/// A bastion that has no name is nowhere.
fn check_bastion(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase1.ssh.bastion_host";
    facts.text("phase1.ssh.bastion").filter(|bastion| *bastion == "existing")?;
    facts.text(name).filter(|host| host.is_empty())?;
    Some(Problem::error(format!("{name}: phase1.ssh.bastion is existing; name the host")).about(name))
}

/// Control-plane hosts of a cloud with inner addresses alone: who runs turnup elsewhere makes them,
/// and then finds no way to them.
fn check_way_in(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase1.ssh.bastion";
    facts.text(name).filter(|bastion| *bastion == "none")?;
    let is = |name: &str, value: &str| facts.text(name) == Some(value);
    let is_exposed = is("phase1.api.external", "y") && !is("phase1.api.exposure", "load-balancer");
    let is_private =
        |(setting, private): &(&str, &Private)| is(setting, &private.value) && !(private.unless_exposed && is_exposed);
    let mut settings = facts.schema.related(|relations| relations.private.as_ref());
    let (setting, private) = settings.find(is_private)?;
    let why = format!("{setting} is {}", private.value);
    let message = format!(
        "{name}: it is none, and {why}: turnup reaches the control plane only when it runs inside of the hosts' network (otherwise: create)"
    );
    Some(Problem::notice(message).about(name))
}

/// Networks from which a public address may be reached, and by what.
const OPEN: [(&str, &str); 2] = [
    ("phase1.api.allowed_cidrs", "connect to the API server"),
    ("phase1.ssh.allowed_cidrs", "try to log in to the hosts"),
];

/// A default that lets a first cluster come up everywhere, and is not what one wants to keep.
fn check_open_networks(facts: &Values<'_, '_>) -> Vec<Problem> {
    let is_private = facts.text("phase1.api.external") == Some("n");
    let judge = |(name, what): &(&str, &str)| {
        let networks = facts.text(name)?.split(',').map(str::trim);
        let open: Vec<&str> = networks.filter(|network| ["0.0.0.0/0", "::/0"].contains(network)).collect();
        let message = format!(
            "{name}: {} lets the whole internet {what}; name the networks of your office, VPN and CI",
            open.join(" and ")
        );
        let is_moot = open.is_empty() || is_private && name.starts_with("phase1.api.");
        (!is_moot).then(|| Problem::notice(message).about(name))
    };
    OPEN.iter().filter_map(judge).collect()
}

/// What is asked for, and takes more than turnup brings.
fn check_notices(facts: &Values<'_, '_>) -> Vec<Problem> {
    let all = facts.schema.related(|relations| Some(&relations.notices));
    let judge = |(name, notice): (&str, &NoticeOf)| {
        let holds = facts.text(name)? == notice.value;
        holds.then(|| Problem::notice(format!("{name}: {}", notice.why)).about(name))
    };
    all.flat_map(|(name, notices)| notices.iter().map(move |notice| (name, notice))).filter_map(judge).collect()
}

const FILES: &str = "phase2.host.file_assets";
const HOOKS: &str = "phase2.host.hooks";
const PARTS: &str = "phase1.user_data.parts";

fn check_assets(facts: &Values<'_, '_>) -> Vec<Problem> {
    let files = assets::find_mistakes_in_files(facts.text(FILES).unwrap_or_default());
    let hooks = assets::find_mistakes_in_hooks(facts.text(HOOKS).unwrap_or_default());
    let problem = |name: &'static str| move |why: String| Problem::of(name, why);
    files.into_iter().map(problem(FILES)).chain(hooks.into_iter().map(problem(HOOKS))).collect()
}

/// Unknown groups that an entry is for. Where the target makes hosts of groups, these are all that
/// there are; elsewhere a name that nearly is a known one is misspelt, and another one reaches only
/// machines made with user data of that name.
fn check_chosen_groups(facts: &Values<'_, '_>) -> Vec<Problem> {
    let groups = facts.records(GROUPS);
    let mut known = vec!["control-plane".to_owned(), "workers".to_owned()];
    let names = groups.iter().filter_map(|group| group.get("name")?.as_str());
    known.extend(names.map(str::to_owned));
    let makes_groups = facts.text("phase1.user_data.format").is_some_and(|format| !format.is_empty());
    let mut problems = Vec::new();
    for name in [FILES, HOOKS, PARTS] {
        for (entry, group) in assets::groups_named(facts.text(name).unwrap_or_default()) {
            if !known.contains(&group) {
                let near = suggestion(&group, known.iter().map(String::as_str));
                if makes_groups || !near.is_empty() {
                    let known = known.join(", ");
                    let message = format!("{name}: {entry}: no group here is called `{group}`{near}; groups: {known}");
                    problems.push(Problem::error(message).about(name));
                    continue;
                }
                let message = format!(
                    "{name}: {entry}: no group here is called `{group}`. Only machines that are given `turnup user-data {group}` belong to it"
                );
                problems.push(Problem::notice(message).about(name));
            }
        }
    }
    problems
}

const SSH_NETWORKS: &str = "phase2.host.firewall_ssh_networks";

/// Networks that admit other clients than they seem to, or lock turnup out.
fn check_firewall(facts: &Values<'_, '_>) -> Vec<Problem> {
    let networks = |name: &str| -> Vec<Network> {
        facts.text(name).unwrap_or_default().split(',').filter_map(|text| text.trim().parse().ok()).collect()
    };
    let mut problems = Vec::new();
    for name in ["phase2.host.firewall_kubelet_networks", SSH_NETWORKS] {
        let Some(pods) = facts.network("phase2.pod_cidr") else { continue };
        let is_wider = |network: &Network| network.overlaps(pods) && network.prefix() < pods.prefix();
        if let Some(network) = networks(name).into_iter().find(is_wider) {
            let message = format!(
                "{name}: {network} contains the pods' addresses, but lets no pod in; add {pods} (phase2.pod_cidr) to let pods in"
            );
            problems.push(Problem::notice(message).about(name));
        }
    }
    let gateway = facts.network("phase1.local.subnet").and_then(|subnet| subnet.address(1));
    let listed = facts.text(SSH_NETWORKS).is_some_and(|list| !list.is_empty());
    if let Some(gateway) = gateway.filter(|_| listed)
        && !networks(SSH_NETWORKS).iter().any(|network| network.contains(gateway))
    {
        let message = format!("{SSH_NETWORKS}: turnup logs in to local hosts from {gateway}, which is in none of them");
        problems.push(Problem::error(message).about(SSH_NETWORKS));
    }
    problems
}
