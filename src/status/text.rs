//! The status as text for people, laid out for 80 columns. It decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::Timestamp;

use crate::bootstrap::{PendingCsr, UnansweredWebhook};
use crate::component::Mismatch;
use crate::phase::Condition;
use crate::report::Table;
use crate::terminal;

use super::certificate_list::remedy;
use super::{
    AddonStatus, BackupStatus, Certificate, CertificateLife, ComponentDrift, HostService, Live, NodeStatus, PhaseState,
    PhaseStatus, Status, TokenStatus,
};

/// The columns that a terminal has at least.
const WIDTH: usize = 80;
/// How many reasons a phase gives, and how many certificates are named, before the rest is only
/// counted.
const LISTED: usize = 5;

/// The whole status, every line with its newline.
#[must_use]
pub(crate) fn render(status: &Status) -> String {
    let mut parts = vec![heading(status), phases(&status.phases)];
    if let Some(nodes) = &status.nodes {
        parts.push(self::nodes(nodes));
    }
    parts.extend(status.unjoined.as_deref().map(unjoined));
    parts.extend(status.unserved.as_deref().map(unserved));
    parts.extend(status.unanswered_webhooks.as_deref().map(unanswered));
    if let Some(addons) = &status.addons {
        parts.push(self::addons(addons));
    }
    parts.extend(status.drifts.as_deref().map(drifts));
    parts.extend(status.backup.as_ref().map(backup));
    parts.push(agents(status));
    parts.push(services(status));
    parts.push(certificates(&status.certificates));
    parts.push(rotations(status));
    parts.push(tokens(&status.join_tokens));
    parts.push(people(status));
    parts.push(versions(status));
    parts.push(gaps(status));
    parts.extend(status.kubeconfig.as_ref().map(|path| {
        let path = path.display().to_string();
        format!("export KUBECONFIG={}\n", shell_words::quote(&path))
    }));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// What the API says alone.
#[must_use]
pub(crate) fn render_live(live: &Live) -> String {
    let mut parts = vec![nodes(&live.nodes)];
    if let Ok(csrs) = &live.csrs {
        parts.extend([unjoined(&csrs.joining), unserved(&csrs.serving)]);
    }
    if let Ok(webhooks) = &live.webhooks {
        parts.push(unanswered(webhooks));
    }
    parts.push(addons(&live.addons));
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The table of nodes.
fn nodes(nodes: &[NodeStatus]) -> String {
    let mut table = Table::new(&["NODE", "STATUS", "ROLE", "ADDRESS", "VERSION"]);
    for node in nodes {
        table.row([&node.name, &node.status, &node.role, &node.address, &node.version]);
    }
    table.render()
}

/// The hosts that cannot join, and why; nothing where none asks.
fn unjoined(csrs: &[PendingCsr]) -> String {
    pending("requests to join that are not approved:", csrs)
}

/// The kubelets that cannot serve, and why; nothing where all can.
fn unserved(csrs: &[PendingCsr]) -> String {
    pending("kubelet serving certificates that are not issued (no logs, no exec):", csrs)
}

/// The webhooks that keep something from being written; nothing where all answer.
fn unanswered(webhooks: &[UnansweredWebhook]) -> String {
    if webhooks.is_empty() {
        return String::new();
    }
    // Others chose all of it. The command stays one line, to be copied.
    let line = |one: &UnansweredWebhook| {
        let (what, command) = (one.describe(), one.remedy());
        format!("{}    {}\n", wrap(&terminal::line(&what), 2), terminal::line(&command))
    };
    let lines: String = webhooks.iter().take(LISTED).map(line).collect();
    format!("webhooks without which nothing of their kinds is written, and how to let it pass:\n{lines}")
}

fn pending(title: &str, csrs: &[PendingCsr]) -> String {
    if csrs.is_empty() {
        return String::new();
    }
    let line = |PendingCsr { node, request, why }: &PendingCsr| {
        let why = why.as_deref().unwrap_or("it waits to be approved");
        // Others chose all of it.
        terminal::line(&format!("{node}: {request}: {why}")).into_owned()
    };
    let lines: Vec<String> = csrs.iter().map(line).collect();
    format!("{title}\n{}", listed(&lines, "kubelets"))
}

/// What components do not run with as declared; nothing where all is in effect.
fn drifts(drifts: &[ComponentDrift]) -> String {
    if drifts.is_empty() {
        return String::new();
    }
    let line = |ComponentDrift { node, component, mismatch }: &ComponentDrift| {
        let Mismatch { entry, declared, effective } = mismatch;
        let effective = effective.as_deref().unwrap_or("not set");
        // A component of another's said it.
        terminal::line(&format!("{node}: {component} {entry}: declared {declared}, in effect {effective}")).into_owned()
    };
    let lines: Vec<String> = drifts.iter().map(line).collect();
    format!("components that do not run as declared:\n{}", listed(&lines, "values"))
}

/// Hosts whose agent does not run, or has something to tell; nothing while all is well.
fn agents(status: &Status) -> String {
    let news = status.agents.iter().flat_map(|agent| agent.news(status.at));
    // The host said some of it.
    let lines: Vec<String> = news.map(|line| terminal::line(&line).into_owned()).collect();
    if lines.is_empty() { lines.concat() } else { format!("agents of the hosts:\n{}", listed(&lines, "lines")) }
}

/// Services of the hosts that fail, or say what they cannot do; nothing while all is well.
fn services(status: &Status) -> String {
    let news = status.services.iter().filter_map(HostService::news);
    let lines: Vec<String> = news.map(|line| terminal::line(&line).into_owned()).collect();
    if lines.is_empty() { lines.concat() } else { format!("services of the hosts:\n{}", listed(&lines, "lines")) }
}

/// The table of addons; nothing where there is none.
fn addons(addons: &[AddonStatus]) -> String {
    let mut table = Table::new(&["ADDON", "KIND", "READY"]);
    for addon in addons {
        table.row([&addon.name, &addon.kind, &addon.ready]);
    }
    if table.is_empty() { String::new() } else { table.render() }
}

/// The last backup of etcd, and what is wrong with backups.
fn backup(status: &BackupStatus) -> String {
    let mut lines: Vec<String> = Vec::new();
    if let Some(last) = &status.last {
        lines.push(format!("last one {} ago: {} on {}", span(last.age_seconds.max(0)), last.name, last.host));
    }
    if let Some(last) = &status.stored {
        lines.push(format!("last copy {} ago: {} in {}", span(last.age_seconds.max(0)), last.name, last.host));
    }
    lines.extend(status.warnings.iter().cloned());
    format!("backups of etcd:\n{}", listed(&lines, "warnings"))
}

fn heading(status: &Status) -> String {
    let target = status.target.as_ref().map_or_else(String::new, |target| format!(" ({target})"));
    let mut text = format!("cluster {}{target} in {}\n", status.cluster, status.directory.display());
    if let Some(holder) = &status.lock {
        let owner = &holder.owner;
        let who = format!("`{}` (process {} on {})", owner.command, owner.pid, owner.host);
        let since = format!("{} ({})", clock(owner.start), span(status.at.as_second() - owner.start.as_second()));
        let line = if holder.alive {
            format!("{who} works on it since {since}")
        } else {
            format!("{who} exited without releasing the lock (started {})", clock(owner.start))
        };
        text.push_str(&wrap(&line, 0));
    }
    text
}

fn phases(phases: &[PhaseStatus]) -> String {
    let mut table = Table::new(&["PHASE", "STATE", "STEPS", "LAST RAN", "TOOK"]).right(2).right(4);
    for phase in phases {
        let steps = if phase.total == 0 { String::new() } else { format!("{}/{}", phase.done, phase.total) };
        let took = phase.took_seconds.map_or_else(String::new, seconds);
        let last = phase.last_ran.map_or_else(String::new, clock);
        table.row([phase.name.clone(), word(phase.state).to_owned(), steps, last, took]);
    }
    if table.is_empty() {
        return String::new();
    }
    phases.iter().fold(table.render(), |text, phase| text + &reasons(phase))
}

const fn word(state: PhaseState) -> &'static str {
    match state {
        PhaseState::Done => "done",
        PhaseState::Started => "started",
        PhaseState::Never => "never ran",
        PhaseState::Unknown => "unknown",
        PhaseState::Stale => "stale",
        PhaseState::Interrupted => "interrupted",
        PhaseState::Running => "running",
        PhaseState::Failed => "failed",
    }
}

/// Why a phase is not done, step by step; the many that only never ran are no news.
fn reasons(phase: &PhaseStatus) -> String {
    let reason = |condition: &Condition| match condition {
        Condition::Done | Condition::Never => None,
        Condition::Stale(why) => Some(why.clone()),
        Condition::Failed(why) => Some(format!("failed: {why}")),
        Condition::Interrupted if phase.state == PhaseState::Running => Some("runs now".to_owned()),
        Condition::Interrupted => Some("interrupted".to_owned()),
        Condition::Unknown(why) => Some(format!("unknown: {why}")),
    };
    let lines = phase.steps.iter().filter_map(|step| Some(format!("{}: {}", step.id, reason(&step.condition)?)));
    listed(&lines.collect::<Vec<_>>(), "steps")
}

/// Indented lines, the first few of them.
fn listed(lines: &[String], what: &str) -> String {
    let more = lines.len().saturating_sub(LISTED);
    let mut text: String = lines.iter().take(LISTED).map(|line| wrap(line, 2)).collect();
    if more > 0 {
        text.push_str(&wrap(&format!("and {more} more {what} (all with --output json)"), 2));
    }
    text
}

fn certificates(all: &[Certificate]) -> String {
    let mut table = Table::new(&["CERTIFICATES", "COUNT", "FIRST TO END", "IN"]).right(1).right(3);
    let mut places: Vec<&str> = Vec::new();
    for one in all {
        if !places.contains(&one.place.as_str()) {
            places.push(&one.place);
        }
    }
    for place in places {
        let of_place = || all.iter().filter(|one| one.place == place);
        let first = of_place().min_by_key(|one| one.ends);
        let (file, left) = first.map_or_else(Default::default, |one| (file_name(&one.file), span(one.left_seconds)));
        table.row([place.to_owned(), of_place().count().to_string(), file, left]);
    }
    if table.is_empty() {
        return String::new();
    }
    let bad: Vec<String> = all.iter().filter(|one| one.level != CertificateLife::Ok).map(warning).collect();
    table.render() + &listed(&bad, "certificates")
}

/// What of rotations is left, and when; nothing where none is under way.
fn rotations(status: &Status) -> String {
    let lines: Vec<String> = status.rotations.iter().map(|rotation| rotation.describe(status.at)).collect();
    if lines.is_empty() { String::new() } else { format!("rotations under way:\n{}", listed(&lines, "keysets")) }
}

/// Who may use the API by a certificate of turnup's, and for how long.
fn people(status: &Status) -> String {
    let now = status.at.as_second();
    let line = |user: &str, groups: &[String], expires: Timestamp, more: &str| {
        let groups = if groups.is_empty() { "no group".to_owned() } else { groups.join(", ") };
        let left = expires.as_second() - now;
        let ends = if left > 0 { format!("ends in {}", span(left)) } else { "has ended".to_owned() };
        wrap(&format!("{user} ({groups}) {ends}{more}"), 2)
    };
    let administrator = status.certificates.iter().find(|one| one.is_administrators());
    let administrator = administrator.map(|one| line(&one.subject, &one.groups, one.ends, ": the kubeconfig here"));
    let issued = status.credentials.iter().map(|one| {
        let sealed = if one.sealed_for.is_empty() { "" } else { ", sealed" };
        let reason = one.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        line(&one.user, &one.groups, one.expires, &format!("{sealed}, by {}{reason}", one.by))
    });
    let lines: String = administrator.into_iter().chain(issued).collect();
    if lines.is_empty() { lines } else { format!("people with a certificate for the API:\n{lines}") }
}

/// What makes the next token: the second command for groups whose machines are made by hand.
const NEXT: &str = "turnup up, or turnup user-data again";

/// The join tokens that end soon, or have ended; nothing while all are good.
fn tokens(all: &[TokenStatus]) -> String {
    let line = |token: &TokenStatus| {
        let group = &token.group;
        match token.level {
            CertificateLife::Ok => None,
            CertificateLife::Ending => Some(format!("{group}: ends in {}: {NEXT}", span(token.left_seconds))),
            CertificateLife::Ended => {
                Some(format!("{group}: ended {} ago, no host joins: {NEXT}", span(-token.left_seconds)))
            }
        }
    };
    let lines: Vec<String> = all.iter().filter_map(line).collect();
    if lines.is_empty() { String::new() } else { format!("join tokens of node groups:\n{}", listed(&lines, "groups")) }
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

fn warning(one: &Certificate) -> String {
    let remedy = remedy(&one.file);
    let place = if one.is_here() { String::new() } else { format!(" on {}", one.place) };
    let state = match one.level {
        CertificateLife::Ended => format!("ended {} ago", span(-one.left_seconds)),
        _ => format!("ends in {}, less than a quarter of its life", span(one.left_seconds)),
    };
    format!("{}{place} {state}: {remedy}", one.file)
}

fn versions(status: &Status) -> String {
    let versions = &status.versions;
    let mut table = Table::new(&["VERSION", "WANTED", "FOUND"]);
    let mut on: BTreeMap<&str, usize> = BTreeMap::new();
    for node in status.nodes.iter().flatten() {
        *on.entry(&node.version).or_default() += 1;
    }
    let found: Vec<String> =
        on.iter().map(|(version, count)| format!("{version} on {}", many(*count, "node"))).collect();
    table.row(["Kubernetes", versions.kubernetes.as_deref().unwrap_or_default(), &found.join(", ")]);
    let same = versions.same_turnup_on.values().filter(|same| **same).count();
    let others: Vec<&str> =
        versions.same_turnup_on.iter().filter(|(_, same)| !**same).map(|(host, _)| host.as_str()).collect();
    let mut found = Vec::new();
    if same > 0 {
        found.push(format!("this one on {}", many(same, "host")));
    }
    if !others.is_empty() {
        let named = others.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
        let more = others.len().saturating_sub(LISTED);
        found.push(format!(
            "another one on {named}{}",
            if more > 0 { format!(" and {more} more") } else { String::new() }
        ));
    }
    table.row(["turnup", versions.turnup, &found.join(", ")]);
    let mut text = table.render();
    if !versions.artifacts.is_empty() {
        // Many have the version of what they are a part of, and an image that of its binary.
        let mut same: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (id, version) in &versions.artifacts {
            same.entry(version).or_default().insert(id.strip_prefix("image/").unwrap_or(id));
        }
        let group = |(version, ids): (&str, BTreeSet<&str>)| {
            wrap(&format!("artifacts {version}: {}", ids.into_iter().collect::<Vec<_>>().join(", ")), 0)
        };
        text.extend(same.into_iter().map(group));
    }
    text
}

fn gaps(status: &Status) -> String {
    if status.gaps.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = status.gaps.iter().map(|gap| format!("{}: {}", gap.what, gap.why)).collect();
    format!("could not ask:\n{}", listed(&lines, "of them"))
}

fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn clock(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

fn seconds(length: f64) -> String {
    if length < 10.0 {
        return format!("{length:.1}s");
    }
    #[expect(clippy::cast_possible_truncation, reason = "a run takes less than 2^63 seconds")]
    span(length.round() as i64)
}

/// A length of time in its two largest units.
fn span(seconds: i64) -> String {
    match seconds {
        i64::MIN..=-1 => "over".to_owned(),
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Breaks a line between words; what follows is indented by two more.
fn wrap(line: &str, indent: usize) -> String {
    let mut text = String::new();
    let mut width = 0;
    for word in line.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            text.push('\n');
            width = 0;
        }
        let margin = match (width, text.is_empty()) {
            (0, true) => indent,
            (0, false) => indent + 2,
            _ => 1,
        };
        // Writing to a String cannot fail.
        let _ = write!(text, "{:margin$}{word}", "");
        width += margin + length;
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time() {
        for (seconds, expected) in
            [(-5, "over"), (59, "59s"), (250, "4m 10s"), (80_000, "22h 13m"), (31_536_000, "365d")]
        {
            assert_eq!(span(seconds), expected);
        }
    }

    #[test]
    fn join_tokens_are_named_when_they_end() {
        let token = |group: &str, left: i64, level| TokenStatus {
            group: group.into(),
            expires: Timestamp::UNIX_EPOCH,
            left_seconds: left,
            level,
        };
        assert_eq!(tokens(&[token("web", 90 * 86_400, CertificateLife::Ok)]), "");
        let some = [
            token("web", 1, CertificateLife::Ok),
            token("pool", 2 * 86_400, CertificateLife::Ending),
            token("old", -7200, CertificateLife::Ended),
        ];
        insta::assert_snapshot!(tokens(&some), @r"
        join tokens of node groups:
          pool: ends in 2d: turnup up, or turnup user-data again
          old: ended 2h 0m ago, no host joins: turnup up, or turnup user-data again
        ");
    }

    #[test]
    fn kubelets_that_cannot_join_or_serve_are_named_with_the_reason() {
        assert_eq!(unserved(&[]), "");
        assert!(
            unjoined(&[PendingCsr { node: "x".into(), request: "c".into(), why: Some("denied: y".into()) }])
                .ends_with("  x: c: denied: y\n")
        );
        let mut all = vec![PendingCsr { node: "web-\x1b7".into(), request: "csr-1".into(), why: None }];
        all.resize(
            7,
            PendingCsr { node: "web-8".into(), request: "csr-2".into(), why: Some("there is no such Node".into()) },
        );
        let text = unserved(&all);
        assert!(
            text.starts_with(
                "kubelet serving certificates that are not issued (no logs, no exec):\n  web-\\x1b7: csr-1: it waits"
            ),
            "{text}"
        );
        assert!(text.contains("\n  web-8: csr-2: there is no such Node\n"), "{text}");
        assert!(text.ends_with("  and 2 more kubelets (all with --output json)\n"), "{text}");
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let text = wrap(&"word ".repeat(40), 2);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.split_whitespace().count(), 40);
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("    word")), "{text}");
    }
}
