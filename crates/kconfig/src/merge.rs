//! Merges fragments of a `.config`, tells which later one overrides what, and, with a tree, which
//! requests were lost and why.
//!
//! Reads and writes no file.

use std::collections::HashMap;

use crate::config::{Config, SetError};
use crate::dotconfig;
use crate::fragment::{self, Request};
use crate::source::FastHash;
use crate::suggest::suggest;
use crate::tree::{SymbolId, Tree};
use crate::value::{Origin, SymbolType, Tri};

/// How fragments are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// A later `m` does not take an earlier `y` back.
    pub builtin_wins: bool,
}

/// A request with the fragment that makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The position of the fragment, the base being 0.
    pub fragment: usize,
    /// The request.
    pub request: Request,
}

/// What happened when a fragment spoke of a name that an earlier one had spoken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// The later value counts.
    Overridden,
    /// Both say the same.
    Redundant,
    /// The earlier `y` counts: see [`Rules::builtin_wins`].
    Kept,
}

/// Two requests for one name in two fragments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encounter {
    /// The earlier one.
    pub before: Source,
    /// The later one.
    pub after: Source,
    /// Which one counts.
    pub meeting: Meeting,
}

/// Fragments, merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// One request for each name, in the order in which the names came first.
    pub requests: Vec<Source>,
    /// Names of which several fragments speak, in the order of the later requests.
    pub encounters: Vec<Encounter>,
}

impl Merged {
    /// The merged requests as a `.config` that is not complete.
    #[must_use]
    pub fn to_text(&self, prefix: &str) -> String {
        self.requests.iter().map(|source| source.request.to_line(prefix) + "\n").collect()
    }
}

/// Merges the texts of fragments, the base first.
#[must_use]
pub fn merge<T: AsRef<str>>(fragments: &[T], prefix: &str, rules: Rules) -> Merged {
    let mut merged = Merged::default();
    let mut places: HashMap<String, usize, FastHash> = HashMap::default();
    for (fragment, text) in fragments.iter().enumerate() {
        let requests = fragment::parse(text.as_ref(), prefix);
        // Within one fragment the last line counts, and that is not reported.
        for request in fragment::last_of_each(&requests) {
            let after = Source { fragment, request: request.clone() };
            let Some(at) = places.get(&request.name).copied() else {
                places.insert(request.name.clone(), merged.requests.len());
                merged.requests.push(after);
                continue;
            };
            let before = merged.requests[at].clone();
            let values = (before.request.value.as_str(), request.value.as_str());
            let meeting = if values.0 == values.1 {
                Meeting::Redundant
            } else if rules.builtin_wins && values == ("y", "m") {
                Meeting::Kept
            } else {
                Meeting::Overridden
            };
            if meeting == Meeting::Overridden {
                merged.requests[at] = after.clone();
            }
            merged.encounters.push(Encounter { before, after, meeting });
        }
    }
    merged
}

/// A request that did not take effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The request that counted.
    pub source: Source,
    /// The value that the symbol has, as in `.config`; none when it has none there.
    pub actual: Option<String>,
    /// Sentences without full stops, the strongest reason first.
    pub why: Vec<String>,
}

/// Puts the merged requests into a configuration and tells which ones did not take effect.
///
/// A request for `n` is met by a symbol that has no line at all.
pub fn apply(merged: &Merged, config: &mut Config<'_>, prefix: &str) -> Vec<Lost> {
    dotconfig::read(config, &merged.to_text(prefix), prefix);
    let config = &*config;
    merged.requests.iter().filter_map(|source| find_loss(source, merged, config, prefix)).collect()
}

fn find_loss(source: &Source, merged: &Merged, config: &Config<'_>, prefix: &str) -> Option<Lost> {
    let (tree, request) = (config.tree(), &source.request);
    let lost = |actual, why| Some(Lost { source: source.clone(), actual, why });
    let Some(symbol) = tree.symbol(&request.name) else {
        let near = suggest(&request.name, tree.symbols().map(|(_, symbol)| &*symbol.name));
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        return lost(None, vec![format!("no entry of the tree defines it{near}")]);
    };
    let written = config.is_written(symbol).then(|| dotconfig::line(config, symbol, prefix));
    let is_off = request.value == "n" && config.value(symbol) == "n";
    let kind = tree.get(symbol).kind;
    if is_off || written.as_deref().is_some_and(|line| is_same(line, request, kind, prefix)) {
        return None;
    }
    let actual = written.map(|line| fragment::parse(&line, prefix).pop().map_or(line, |request| request.value));
    lost(actual, explain(symbol, request, merged, config))
}

/// Whether a line says what was requested; other than in texts, the case of letters does not count.
fn is_same(line: &str, request: &Request, kind: SymbolType, prefix: &str) -> bool {
    let requested = request.to_line(prefix);
    line == requested || kind != SymbolType::String && line.eq_ignore_ascii_case(&requested)
}

/// Why a symbol does not have the value that was requested.
fn explain(symbol: SymbolId, request: &Request, merged: &Merged, config: &Config<'_>) -> Vec<String> {
    let (tree, definition) = (config.tree(), config.tree().get(symbol));
    let value = unquoted(&request.value);
    if !definition.kind.accepts(&value) {
        return vec![format!("`{}` is no value of the type {}", request.value, definition.kind)];
    }
    if definition.kind == SymbolType::String && !request.value.starts_with('"') {
        return vec!["the text is not in quotes".to_owned()];
    }
    let hidden = config.explain_visibility(symbol);
    if !hidden.is_empty() {
        let mut why: Vec<String> = hidden;
        why.extend(explain_origin(symbol, config));
        return why;
    }
    if definition.choice.is_some() {
        return explain_choice(symbol, merged, config);
    }
    // Asking the setter for its reason: on a copy, since it may succeed.
    let mut trial = config.clone();
    match trial.set(symbol, &value) {
        Err(SetError::NotAssignable { why, .. }) => limited(symbol, why, config),
        Err(error) => vec![error.to_string()],
        Ok(()) if definition.kind == SymbolType::Unknown => vec!["it has no type".to_owned()],
        Ok(()) => explain_origin(symbol, config).into_iter().collect(),
    }
    .into_iter()
    .chain((tree.get(symbol).env.is_some()).then(|| "its value comes from the environment".to_owned()))
    .collect()
}

/// A refusal, with the dependency behind it.
fn limited(symbol: SymbolId, why: String, config: &Config<'_>) -> Vec<String> {
    let tree = config.tree();
    let mut reasons = vec![why];
    for prompt in tree.get(symbol).nodes.iter().filter_map(|node| tree.node(*node).prompt.as_ref()) {
        for term in tree.conjuncts(prompt.condition) {
            if config.holds(term) == Tri::M {
                let reason = format!("{} is m", tree.show(term));
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
        }
    }
    reasons
}

fn explain_choice(symbol: SymbolId, merged: &Merged, config: &Config<'_>) -> Vec<String> {
    let tree = config.tree();
    let Some(choice) = tree.get(symbol).choice else { return Vec::new() };
    let Some(selected) = config.selection(choice) else {
        return vec!["nothing can be selected in its choice".to_owned()];
    };
    let name = &tree.get(selected).name;
    if selected == symbol {
        return vec!["of its choice nothing else was selected, and one member has to be".to_owned()];
    }
    let requested = merged.requests.iter().any(|source| source.request.name == **name && source.request.value == "y");
    let how = if requested { "was requested too, and one counts" } else { "is selected" };
    vec![format!("in its choice {name} {how}")]
}

/// Who gave the symbol the value that it has.
fn explain_origin(symbol: SymbolId, config: &Config<'_>) -> Option<String> {
    let tree = config.tree();
    match config.origin(symbol) {
        Origin::Default { span } => Some(format!("its default counts ({})", tree.location(span))),
        Origin::Select { by, span } => Some(format!("{} selects it ({})", tree.get(by).name, tree.location(span))),
        Origin::Imply { by, span } => Some(format!("{} implies it ({})", tree.get(by).name, tree.location(span))),
        Origin::User | Origin::Choice | Origin::Unset => None,
    }
}

/// A value without the quotes of a text.
fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return value.to_owned() };
    inner.replace("\\\"", "\"").replace("\\\\", "\\")
}

/// As `allnoconfig`: what no fragment asks for is off, as far as a user could switch it off.
pub fn switch_off_the_rest(tree: &Tree, config: &mut Config<'_>) {
    for (id, symbol) in tree.symbols() {
        if symbol.kind.is_logical() && symbol.choice.is_none() && config.user_value(id).is_none() {
            // Every bool and tristate takes `n`.
            config.assign(id, "n").ok();
        }
    }
}
