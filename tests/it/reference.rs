//! The generated reference: `docs/commands.md` from the definitions of the command line,
//! `docs/settings.md` from the Kconfig tree and from what other values of each setting change.
//! `make reference` writes both; without it the tests compare.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use kconfig::{NodeId, NodeKind, SymbolId, SymbolType};
use turnup::config::{ChangeEffect, Schema, Settings, TreeSource};
use turnup::forecast::Forecast;

use crate::settings_elsewhere::{ELSEWHERE, known};
use crate::settings_places::is_shown;

/// The head of `docs/commands.md`.
const COMMANDS: &str = "\
# Commands

Generated from the definitions of the command line by `make reference`; do not edit. `turnup COMMAND --help` and the man
pages say the same. Exit codes: [README.md](../README.md#exit-codes).

";

/// The head of `docs/settings.md`.
const SETTINGS: &str = "\
# Settings

Generated from the Kconfig tree by `make reference`; do not edit. Each section is one menu of `turnup config`.

- **setting**: the name in `.config.json`, and the prompt;
- **type**: type, range, or [format](../CONTRIBUTING.md#structured-comments);
- **default**: where there are several, the first whose condition holds;
- **a change**: recreates hosts or the cluster, restarts components, or disturbs nothing that runs (none);
- **decides**: what differs with another value, tried out on the first target that asks for the setting.

`turnup config explain NAME` shows the help text of a setting, `turnup config where NAME` every place that it reaches.
";

/// Writes the file with `INSTA_UPDATE=always`, as `make reference` does; otherwise fails where it
/// is not up to date.
#[track_caller]
fn keep(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var("INSTA_UPDATE").is_ok_and(|mode| mode == "always") {
        fs_err::write(&path, text).unwrap();
        return;
    }
    let old = fs_err::read_to_string(&path).unwrap_or_default();
    let differs = old.lines().zip(text.lines()).find(|(old, new)| old != new);
    let is_current = differs.is_none() && old.lines().count() == text.lines().count();
    assert!(is_current, "{file} is out of date, regenerate it with: make reference\n{differs:#?}");
}

/// Text in a cell of a table, on one line.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn anchor(path: &str) -> String {
    path.to_lowercase()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || "- ".contains(*letter))
        .collect::<String>()
        .replace(' ', "-")
}

#[test]
fn the_page_of_commands_is_current() {
    let mut root = turnup::cli::command().disable_help_subcommand(true);
    root.build();
    let mut page = COMMANDS.to_owned();
    page += "| command | |\n|---|---|\n";
    for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
        let (name, about) = (command.get_name(), command.get_about().map(ToString::to_string).unwrap_or_default());
        writeln!(page, "| [`turnup {name}`](#{}) | {} |", anchor(&format!("turnup {name}")), cell(&about)).unwrap();
    }
    page += "\n## Options of every command\n\n";
    page += &options(&root, false);
    for command in root.get_subcommands() {
        add_command(&mut page, command);
    }
    keep("docs/commands.md", &(page.trim_end().to_owned() + "\n"));
}

/// A command and those below it that help shows.
fn add_command(page: &mut String, command: &clap::Command) {
    if command.is_hide_set() {
        return;
    }
    let path = command.get_bin_name().unwrap();
    let level = "#".repeat(path.split(' ').count().min(4));
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = cell(usage.trim_start_matches("Usage: ")).replace(" turnup ", "` or `turnup ");
    write!(page, "\n{level} {path}\n\n{about}: `{usage}`\n").unwrap();
    let table = options(command, true);
    if !table.is_empty() {
        write!(page, "\n{table}").unwrap();
    }
    if let Some(notes) = command.get_after_help() {
        write!(page, "\n```text\n{}\n```\n", notes.to_string().trim()).unwrap();
    }
    for below in command.get_subcommands() {
        add_command(page, below);
    }
}

/// The arguments and options of a command; without those of every command for all but the root.
fn options(command: &clap::Command, own: bool) -> String {
    let shown = |arg: &&clap::Arg| {
        !arg.is_hide_set() && arg.is_global_set() != own && !["help", "version"].contains(&arg.get_id().as_str())
    };
    let args: Vec<&clap::Arg> = command.get_arguments().filter(shown).collect();
    if args.is_empty() {
        return String::new();
    }
    let row = |arg| format!("| `{}` | {} |\n", spelled(arg), described(arg));
    let rows: Vec<String> = args.into_iter().map(row).collect();
    format!("| option | |\n|---|---|\n{}", rows.concat())
}

/// `-q, --quiet`, `--config FILE`, `[HOST]...`
fn spelled(arg: &clap::Arg) -> String {
    let long = arg.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = arg.get_short().map(|short| format!("-{short}")).into_iter().chain(long).collect();
    let value = arg.get_value_names().unwrap_or_default().join(" ");
    if names.is_empty() {
        let dots = if arg.get_num_args().is_some_and(|count| count.max_values() > 1) { "..." } else { "" };
        return if arg.is_required_set() { format!("<{value}>{dots}") } else { format!("[{value}]{dots}") };
    }
    let takes = arg.get_action().takes_values();
    if takes { format!("{} {value}", names.join(", ")) } else { names.join(", ") }
}

fn described(arg: &clap::Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| value.get_name().to_owned())
        .collect();
    if !values.is_empty() && arg.get_action().takes_values() {
        write!(text, "; one of: {}", values.join(", ")).unwrap();
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if arg.get_action().takes_values() && defaults.iter().any(|value| !value.is_empty()) {
        write!(text, "; default `{}`", defaults.join(",")).unwrap();
    }
    if let Some(variable) = arg.get_env() {
        write!(text, "; variable `{}`", variable.to_string_lossy()).unwrap();
    }
    cell(&text)
}

/// The targets, each with answers that make it complete enough to be rendered.
const TARGETS: &[(&str, &[(&str, &str)])] = &[
    ("local", &[]),
    ("baremetal", &[("phase1.baremetal.hosts", HOSTS)]),
    ("gce", &[("phase1.user_data.artifacts_url", "https://example.com/a")]),
    ("aws", &[("phase1.user_data.artifacts_url", "https://example.com/a")]),
    ("azure", &[("phase1.user_data.artifacts_url", "https://example.com/a")]),
    ("custom", &[]),
];
const HOSTS: &str = r#"[
    {"name": "rack-1", "address": "192.0.2.10", "role": "control-plane",
     "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
    {"name": "rack-2", "address": "192.0.2.20", "role": "worker",
     "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAA"}]"#;

/// A target with the default answers, and what it would become.
struct Base {
    settings: Settings,
    visible: BTreeSet<String>,
    forecast: Option<Forecast>,
}

fn bases(dir: &Path) -> Vec<Base> {
    let source = TreeSource::find(Path::new(env!("CARGO_MANIFEST_DIR")));
    let base = |(target, answers): &(&'static str, &[(&str, &str)])| {
        let mut settings = Settings::defaults(&source).unwrap();
        settings.set("phase1.cloud_provider", target).unwrap();
        settings.set_all(answers).unwrap();
        let visible =
            settings.list().iter().filter(|setting| setting.visible).map(|setting| setting.name.clone()).collect();
        let forecast = Forecast::of(&settings, &source, dir).ok();
        Base { settings, visible, forecast }
    };
    TARGETS.iter().map(base).collect()
}

/// Where a setting goes: what differs when it has another value, on the first target where that
/// shows. One that does nothing has no place in the tree.
fn reaches(bases: &[Base], schema: &Schema, name: &str) -> String {
    let asked: Vec<&Base> = bases.iter().filter(|base| base.visible.contains(name)).collect();
    let mut steps: Vec<String> = Vec::new();
    for base in if asked.is_empty() { bases.iter().take(1).collect() } else { asked } {
        let Some(before) = &base.forecast else { continue };
        for variant in base.settings.variants(name).unwrap() {
            let Ok(after) = before.with(&variant) else { continue };
            let places: BTreeSet<String> =
                before.places(&after).into_iter().map(|place| format!("{} `{}`", place.kind, place.name)).collect();
            if !places.is_empty() {
                let more = places.len().saturating_sub(2);
                let first: Vec<String> = places.into_iter().take(2).collect();
                let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
                return format!("{}{rest}", first.join(", "));
            }
            steps.extend(
                before
                    .different_steps(&after)
                    .iter()
                    .map(ToString::to_string)
                    .filter(|step| !steps.contains(step))
                    .collect::<Vec<_>>(),
            );
        }
    }
    match &steps[..] {
        [] => places_of(schema, name).unwrap_or_else(|| known(name).to_owned()),
        [one] => format!("step `{one}`"),
        [one, rest @ ..] => format!("step `{one}` and {} more", rest.len()),
    }
}

/// Where the setting's own comment says that it goes.
fn places_of(schema: &Schema, name: &str) -> Option<String> {
    let sets = &schema.rule(schema.find(name).unwrap()).sets;
    let places: Vec<String> = sets.iter().map(|sets| format!("`{} {}`", sets.component, sets.destination)).collect();
    (!places.is_empty()).then(|| places.join(", "))
}

/// What a value looks like: the type, and the format or range of it.
fn kind(schema: &Schema, symbol: SymbolId) -> String {
    let tree = schema.tree();
    let of = tree.get(symbol);
    match of.kind {
        SymbolType::Bool => "bool".to_owned(),
        SymbolType::Int => match of.ranges.first() {
            Some(range) => format!("int {}..{}", tree.show_atom(range.low), tree.show_atom(range.high)),
            None => "int".to_owned(),
        },
        _ => {
            let format = of.annotations.iter().find(|note| note.key == "format").map(|note| note.value.clone());
            let fields = of.annotations.iter().filter_map(|note| note.key.strip_prefix("field ")).collect::<Vec<_>>();
            match format {
                Some(_) if !fields.is_empty() => format!("records: {}", fields.join(", ")),
                Some(format) => format,
                None => "text".to_owned(),
            }
        }
    }
}

/// The defaults, as the tree writes them: the first whose condition holds counts.
fn default(schema: &Schema, symbol: SymbolId) -> String {
    let tree = schema.tree();
    let mut all: Vec<String> = Vec::new();
    for value in &tree.get(symbol).defaults {
        let text = tree.show(value.value);
        let text = if tree.get(symbol).kind == SymbolType::Bool { text } else { text.trim_matches('"').to_owned() };
        if !text.is_empty() && !all.contains(&text) {
            all.push(text);
        }
    }
    match &all[..] {
        [] if tree.get(symbol).kind == SymbolType::Bool => "`n`".to_owned(),
        [] => String::new(),
        _ => all.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(" or "),
    }
}

/// The prompts of the menus around an entry, from the outermost.
fn menus(schema: &Schema, node: NodeId) -> Vec<String> {
    let tree = schema.tree();
    let above: Vec<NodeId> = std::iter::successors(tree.node(node).parent, |node| tree.node(*node).parent).collect();
    // The root is the menu of all.
    let menus = above.into_iter().rev().skip(1).filter(|node| matches!(tree.node(*node).kind, NodeKind::Menu));
    menus.filter_map(|node| tree.node(node).prompt.as_ref().map(|prompt| prompt.text.to_string())).collect()
}

/// The settings that are asked, by menu, in the order of the menus.
fn by_menu(schema: &Schema) -> Vec<(Vec<String>, Vec<SymbolId>)> {
    let mut pages: Vec<(Vec<String>, Vec<SymbolId>)> = Vec::new();
    let mut place: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for &symbol in schema.ordered() {
        let node =
            schema.tree().get(symbol).nodes.iter().copied().find(|node| schema.tree().node(*node).prompt.is_some());
        let Some(node) = node else { continue };
        let menu = menus(schema, node);
        let at = *place.entry(menu.clone()).or_insert_with(|| {
            pages.push((menu, Vec::new()));
            pages.len() - 1
        });
        pages[at].1.push(symbol);
    }
    pages
}

#[test]
fn the_page_of_settings_is_current_and_every_setting_acts() {
    let dir = tempfile::tempdir().unwrap();
    let bases = bases(dir.path());
    let schema = bases[0].settings.schema();
    let pages = by_menu(schema);
    let symbols: Vec<SymbolId> = pages.iter().flat_map(|(_, symbols)| symbols.clone()).collect();
    let reached: BTreeMap<String, String> = symbols
        .iter()
        .map(|symbol| (schema.name(*symbol).to_owned(), reaches(&bases, schema, schema.name(*symbol))))
        .collect();
    let listed = ELSEWHERE.iter().flat_map(|(what, names)| names.iter().map(move |name| (*name, *what)));
    let idle: Vec<&str> = listed
        .filter(|(name, what)| reached.get(*name).is_none_or(|found| found != what))
        .map(|(name, _)| name)
        .collect();
    assert!(idle.is_empty(), "shows in what is rendered: take it out of ELSEWHERE: {idle:?}");
    let names = ELSEWHERE.iter().flat_map(|(_, names)| names.iter().copied());
    let unseen: Vec<&str> = names.filter(|name| name.starts_with("phase2.") && !is_shown(name)).collect();
    assert!(unseen.is_empty(), "no test shows their effect: add them to settings_places: {unseen:?}");
    let mut page = SETTINGS.to_owned();
    for (menu, symbols) in &pages {
        let title = if menu.is_empty() { "Top".to_owned() } else { menu.join(" > ") };
        write!(page, "\n## {title}\n\n| setting | type | default | a change | decides |\n|---|---|---|---|---|\n")
            .unwrap();
        for symbol in symbols {
            let name = schema.name(*symbol);
            let rule = schema.rule(*symbol);
            let effect = match rule.effect {
                Some(ChangeEffect::Recreate) => "recreates",
                Some(ChangeEffect::Restart) => "restarts",
                Some(ChangeEffect::Hosts) => "changes hosts",
                Some(ChangeEffect::None) => "none",
                None => "",
            };
            let secret = if rule.secret { ", secret" } else { "" };
            let prompt = schema.prompt(*symbol).unwrap_or_else(|| panic!("{name} has no prompt"));
            writeln!(
                page,
                "| `{name}`<br>{} | {}{secret} | {} | {effect} | {} |",
                cell(prompt),
                cell(&kind(schema, *symbol)),
                cell(&default(schema, *symbol)),
                cell(&reached[name]),
            )
            .unwrap();
        }
    }
    assert!(symbols.len() > 150, "only {} settings", symbols.len());
    keep("docs/settings.md", &page);
}
