//! Flags as a program's `--help` shows them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::reference::{Gate, Stage};

/// One flag as the help shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HelpFlag {
    /// The type, or the placeholder that the text of the flag names; `bool` where the help shows
    /// nothing.
    pub shown_type: String,
    /// The default, where it is shown and not what the type has anyway.
    pub default: Option<String>,
    /// Why not to use it.
    pub deprecated: Option<String>,
    /// The names that a value of the flag is made of, where the text lists them all.
    pub words: Vec<String>,
    /// The feature gates that the text lists.
    pub gates: BTreeMap<String, HelpGate>,
}

/// A feature gate as a help shows it: how far it is, and whether it is on by default.
pub type HelpGate = (Stage, bool);

/// Before a list of all names that a flag takes, and behind it.
const LISTS: [(&str, &str); 2] = [("Comma-delimited list of admission plugins: ", ". "), ("All controllers: ", "\n")];

/// The flags in the help of a program that uses pflag: in one or several sections, each flag with
/// its text behind three blanks, and further lines of that text indented.
#[must_use]
pub fn read_pflag(help: &str) -> BTreeMap<String, HelpFlag> {
    let mut flags: Vec<(String, String, String)> = Vec::new();
    let mut is_open = false;
    for line in help.lines() {
        if let Some((name, shown_type, text)) = divide(line) {
            flags.push((name.to_owned(), shown_type.to_owned(), text.to_owned()));
            is_open = true;
        } else if !line.is_empty() && !line.starts_with(' ') {
            is_open = false;
        } else if let Some((_, _, text)) = flags.last_mut().filter(|_| is_open) {
            text.push('\n');
            text.push_str(line.trim_start());
        }
    }
    flags
        .into_iter()
        .filter(|(name, ..)| name != "help")
        .map(|(name, shown_type, text)| (name, describe(shown_type, &text)))
        .collect()
}

/// Name, type and the first line of the text of a flag.
fn divide(line: &str) -> Option<(&str, &str, &str)> {
    let shorthand = |line| {
        let rest = str::strip_prefix(line, "  -")?;
        let (letter, rest) = rest.split_once(", --")?;
        (letter.chars().count() == 1).then_some(rest)
    };
    let rest = line.strip_prefix("      --").or_else(|| shorthand(line))?;
    let (head, text) = rest.split_once("   ").unwrap_or((rest, ""));
    let (name, shown_type) = head.split_once(' ').unwrap_or((head, "bool"));
    // What the flag means without a value stands in brackets behind it.
    let cut = |word: &'static str| move |text: &str| text.find(word).unwrap_or(text.len());
    let (name, shown_type) = (&name[..cut("[=")(name)], &shown_type[..cut("[=")(shown_type)]);
    Some((name, shown_type, text.trim_start()))
}

/// The text of a flag ends with its default, and behind that with why it is deprecated.
fn describe(shown_type: String, text: &str) -> HelpFlag {
    let (text, deprecated) = split_end(text.trim_end(), " (DEPRECATED: ");
    let (before, default) = split_end(text, " (default ");
    let default = default.and_then(|text| match serde_json::from_str(text) {
        Ok(Value::String(unquoted)) => Some(unquoted),
        _ => Some(text.to_owned()).filter(|text| !is_zero(text)),
    });
    let gates = before.lines().filter_map(read_gate).collect();
    HelpFlag { shown_type, default, deprecated: deprecated.map(str::to_owned), words: listed_words(before), gates }
}

/// `Name=true|false (BETA - default=true)`, behind the component's name in some helps.
fn read_gate(line: &str) -> Option<(String, HelpGate)> {
    let (name, rest) = line.trim().split_once("=true|false (")?;
    let (stage, rest) = rest.split_once(" - default=")?;
    let (default, condition) = rest.split_once(')')?;
    let stage = match stage {
        "ALPHA" => Stage::Alpha,
        "BETA" => Stage::Beta,
        _ => return None,
    };
    let name = name.rsplit(':').next().unwrap_or(name);
    // Of a component that behaves as an older one there is another line.
    (!condition.starts_with(" if ")).then(|| (name.to_owned(), (stage, default == "true")))
}

/// What the gates of a table and those that the component's help lists do not share. A help leaves
/// out what is no longer a choice: gates that are final or deprecated.
#[must_use]
pub fn compare_gates(gates: &BTreeMap<String, Gate>, help: &BTreeMap<String, HelpFlag>) -> Vec<String> {
    let mut shown: BTreeMap<&str, HelpGate> =
        help.values().flat_map(|flag| &flag.gates).map(|(name, gate)| (name.as_str(), *gate)).collect();
    let mut told = Vec::new();
    for (name, gate) in gates.iter().filter(|(_, gate)| matches!(gate.stage, Stage::Alpha | Stage::Beta)) {
        match shown.remove(name.as_str()) {
            Some(found) if found == (gate.stage, gate.default) => {}
            found => told.push(format!("gate {name}: table {gate:?}, help {found:?}")),
        }
    }
    told.extend(shown.into_iter().map(|(name, found)| format!("gate {name}: only in the help: {found:?}")));
    told
}

fn listed_words(text: &str) -> Vec<String> {
    let list = LISTS.iter().find_map(|(begin, end)| {
        let (_, rest) = text.split_once(begin)?;
        Some(rest.split(end).next().unwrap_or(rest))
    });
    list.into_iter().flat_map(|list| list.split(", ")).map(|word| word.trim().to_owned()).collect()
}

/// Whether a default is what its type has anyway.
fn is_zero(default: &str) -> bool {
    ["", "0", "0s", "[]", "false", "<nil>"].contains(&default)
}

/// A text without its last parenthesis, and what that holds, where it begins so.
fn split_end<'a>(text: &'a str, begin: &str) -> (&'a str, Option<&'a str>) {
    let split = || text.strip_suffix(')')?.rsplit_once(begin);
    // pflag starts the line of a flag without a text of its own with the parenthesis.
    let alone = || text.strip_suffix(')')?.strip_prefix(begin.trim_start());
    match split() {
        Some((before, inside)) => (before, Some(inside)),
        None => alone().map_or((text, None), |inside| ("", Some(inside))),
    }
}

/// The flags in etcd's help, which is written by hand: `  --name 'default'`, and the text in the
/// next lines. Types are not shown.
#[must_use]
pub fn read_etcd(help: &str) -> BTreeMap<String, HelpFlag> {
    let mut flags: BTreeMap<String, HelpFlag> = BTreeMap::new();
    let mut last = None;
    for line in help.lines() {
        let head = line.strip_prefix("  etcd --").or_else(|| line.strip_prefix("  --"));
        if let Some(head) = head {
            let (name, default) = head.split_once(' ').unwrap_or((head, ""));
            let default = default.trim_matches('\'');
            let default = (!is_zero(default)).then(|| default.to_owned());
            flags.insert(name.to_owned(), HelpFlag { default, ..HelpFlag::default() });
            last = Some(name.to_owned());
        } else if let (Some((gate, found)), Some(flag)) =
            (read_gate(line), last.as_ref().and_then(|name| flags.get_mut(name)))
        {
            flag.gates.insert(gate, found);
        } else if let Some(flag) = last.as_ref().and_then(|name| flags.get_mut(name))
            && let Some(at) = line.find("eprecated")
        {
            let begin = line[..at].rfind(". ").map_or(0, |dot| dot + 2);
            flag.deprecated = Some(line[begin..].trim().to_owned());
        }
    }
    flags
}

#[cfg(test)]
mod tests;
