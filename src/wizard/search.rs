//! Looking for an entry while typing: prompts, names, menus, values and help texts, what fits best
//! first. Pure: an index and what is typed.

use std::sync::Arc;

use kconfig::{Config, NodeId, Tree};

use super::line_edit::LineEdit;
use crate::config::Schema;

/// The maximum number of results.
const MOST: usize = 300;
/// Shorter words resemble too much.
const SHORTEST_LIKE: usize = 4;
/// Longer ones are no words: a paste would be compared letter by letter.
const LONGEST_LIKE: usize = 40;

/// What is searched.
#[derive(Debug)]
pub(super) struct Index {
    entries: Vec<Entry>,
}

/// All texts in small letters.
#[derive(Debug)]
struct Entry {
    node: NodeId,
    prompt: String,
    name: String,
    /// The titles of the menus around it.
    menus: String,
    help: String,
}

/// Where a word was found, the best place first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// It is the prompt, the name, or the last part of the name.
    Whole,
    /// A word of the prompt begins so.
    Prompt,
    InPrompt,
    /// A part of the name begins so.
    Name,
    InName,
    Menu,
    Value,
    Help,
    /// A word of the prompt resembles it.
    LikePrompt,
    LikeName,
    LikeMenu,
}

/// What the list has to say about a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchHit {
    /// What is seen has the words, or resembles them.
    Title,
    /// A word is in the help text alone.
    Help,
}

/// The dialog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Search {
    pub(super) line: LineEdit,
    pub(super) hits: Vec<(NodeId, SearchHit)>,
    pub(super) cursor: usize,
}

impl Search {
    /// Looks again after what is typed has changed.
    pub(super) fn look(&mut self, index: &Index, schema: &Schema, config: &Config<'_>) {
        self.hits = index.find(self.line.text(), |node| values(schema, config, node), |node| config.node_visible(node));
        self.cursor = 0;
    }
}

/// The value of an entry and those that it could have, as they are searched; a secret has none.
fn values(schema: &Schema, config: &Config<'_>, node: NodeId) -> String {
    let Some(symbol) = schema.tree().node(node).symbol else { return String::new() };
    let rule = schema.rule(symbol);
    if rule.secret || schema.tree().get(symbol).kind.is_logical() {
        return String::new();
    }
    let words = rule.format.as_ref().and_then(|format| format.words()).unwrap_or_default();
    format!("{} {}", config.value(symbol), words.join(" ")).to_lowercase()
}

impl Index {
    /// All entries that have a prompt, each with its help.
    pub(super) fn of(tree: &Tree) -> Arc<Self> {
        let menus = |id: NodeId| {
            let around = std::iter::successors(tree.node(id).parent, |at| tree.node(*at).parent);
            let titles = around.filter(|at| *at != tree.root()).filter_map(|at| tree.node(at).prompt.as_ref());
            titles.map(|prompt| prompt.text.to_lowercase()).collect::<Vec<_>>().join(" ")
        };
        let entries = tree.nodes().filter_map(|(id, node)| {
            let name = node.symbol.map_or("", |symbol| &tree.get(symbol).name);
            Some(Entry {
                node: id,
                prompt: node.prompt.as_ref()?.text.to_lowercase(),
                name: name.to_lowercase(),
                menus: menus(id),
                help: tree.help(id).unwrap_or_default().to_lowercase(),
            })
        });
        Arc::new(Self { entries: entries.collect() })
    }

    /// The entries for what was typed: each word is there or resembles one that is, in any order.
    /// The word that fits worst decides; of entries that fit as well, those that are shown now come
    /// first.
    pub(super) fn find(
        &self,
        typed: &str,
        values: impl Fn(NodeId) -> String,
        is_shown: impl Fn(NodeId) -> bool,
    ) -> Vec<(NodeId, SearchHit)> {
        let typed = typed.trim().to_lowercase();
        let words: Vec<&str> = typed.split_whitespace().map(without_prefix).collect();
        if words.is_empty() {
            return Vec::new();
        }
        let mut ranked: Vec<(Fit, bool, u32, usize, usize)> = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let value = std::cell::LazyCell::new(|| values(entry.node));
            let mut fits = words.iter().map(|word| entry.fit(word, || (*value).contains(word)));
            // Few entries have the first word: the others are looked for only in these.
            let found =
                fits.try_fold((Fit::Whole, 0), |(worst, sum), fit| fit.map(|fit| (worst.max(fit), sum + fit as u32)));
            if let Some((worst, sum)) = found {
                let (worst, sum) = if entry.prompt == typed { (Fit::Whole, 0) } else { (worst, sum) };
                ranked.push((worst, !is_shown(entry.node), sum, entry.name.len() / 4, at));
            }
        }
        ranked.sort_unstable();
        ranked.truncate(MOST);
        let hit = |fit| if fit == Fit::Help { SearchHit::Help } else { SearchHit::Title };
        ranked.into_iter().map(|(fit, .., at)| (self.entries[at].node, hit(fit))).collect()
    }
}

/// People type names as they stand in .config files.
fn without_prefix(word: &str) -> &str {
    word.strip_prefix("config_").filter(|rest| !rest.is_empty()).unwrap_or(word)
}

impl Entry {
    /// Where the word is found best.
    fn fit(&self, word: &str, in_value: impl Fn() -> bool) -> Option<Fit> {
        let last = self.name.rsplit('.').next().unwrap_or_default();
        Some(match () {
            () if self.prompt == word || self.name == word || last == word => Fit::Whole,
            () if parts(&self.prompt).any(|part| part.starts_with(word)) => Fit::Prompt,
            () if self.prompt.contains(word) => Fit::InPrompt,
            () if self.name.starts_with(word) || self.name.split('.').any(|part| part.starts_with(word)) => Fit::Name,
            () if self.name.contains(word) => Fit::InName,
            () if self.menus.contains(word) => Fit::Menu,
            () if in_value() => Fit::Value,
            () if self.help.contains(word) => Fit::Help,
            () if !(SHORTEST_LIKE..=LONGEST_LIKE).contains(&word.chars().count()) => return None,
            () if is_like(&self.prompt, word) => Fit::LikePrompt,
            () if is_like(&self.name, word) => Fit::LikeName,
            () if parts(&self.menus).any(|part| is_misspelt(part, word)) => Fit::LikeMenu,
            () => return None,
        })
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty())
}

/// Whether the word is a misspelt one of the text, or its letters stand in it close together.
fn is_like(text: &str, word: &str) -> bool {
    parts(text).any(|part| is_misspelt(part, word)) || is_abbreviated(text, word)
}

/// Whether one or, in long words, two letters make the difference to this word or its beginning.
fn is_misspelt(part: &str, word: &str) -> bool {
    let (part, word): (Vec<char>, Vec<char>) = (part.chars().take(2 * LONGEST_LIKE).collect(), word.chars().collect());
    let most = if word.len() < 8 { 1 } else { 2 };
    // Who misspells a word gets its first letter right; this keeps the rest from resembling.
    if part.first() != word.first() || part.len() + most < word.len() {
        return false;
    }
    let mut row: Vec<usize> = (0..=part.len()).collect();
    for (at, letter) in word.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, other) in part.iter().enumerate() {
            let changed = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row.into_iter().min().is_some_and(|least| least <= most)
}

/// Whether all letters of the word stand in the text in their order, from the beginning of a word
/// on and in no more than twice their room: `pktfilt` is packet filtering.
fn is_abbreviated(text: &str, word: &str) -> bool {
    let starts = parts(text).map(|part| part.as_ptr() as usize - text.as_ptr() as usize);
    starts.into_iter().any(|start| {
        let mut letters = word.chars().peekable();
        for c in text[start..].chars().take(2 * word.chars().count()) {
            letters.next_if_eq(&c);
        }
        text[start..].starts_with(word.chars().next().unwrap_or_default()) && letters.peek().is_none()
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use kconfig::{Env, MemoryFiles};

    use super::*;

    const TREE: &str = r#"
config NET
	bool "Networking support"

config NETFILTER
	bool "Packet filtering"
	help
	  Firewalls need this.

config USB_NET
	bool "USB network adapters"

menu "Kubelet"

config PORT
	int "Number of the door"
	default 10250

config MAX_PODS
	int "Most of them at a time"

endmenu
"#;

    fn names(typed: &str) -> Vec<String> {
        let tree = Tree::load("Kconfig", &MemoryFiles::new([("Kconfig", TREE)]), &Env::empty()).unwrap();
        let schema = Schema::new(tree).unwrap();
        let (tree, config) = (schema.tree(), schema.config());
        let hits = Index::of(tree).find(typed, |node| values(&schema, &config, node), |_| true);
        let name = |node: NodeId| tree.node(node).symbol.map_or("Kubelet", |symbol| &tree.get(symbol).name).to_owned();
        hits.iter().map(|(node, _)| name(*node)).collect()
    }

    #[test]
    fn what_is_meant_comes_first() {
        assert_eq!(names("net"), ["NET", "USB_NET", "NETFILTER"], "a name of its own, prompts, names");
        assert_eq!(names("CONFIG_NETFILTER")[0], "NETFILTER");
        assert_eq!(names("usb adapters"), ["USB_NET"], "several words, all of them");
        assert_eq!(names("adapters usb"), ["USB_NET"], "in any order");
        assert_eq!(names("firewall"), ["NETFILTER"], "help texts are searched");
        assert_eq!(names("pktfilt"), ["NETFILTER"], "letters may be missing");
        assert_eq!(names("kubelet"), ["Kubelet", "PORT", "MAX_PODS"], "titles of menus are searched");
        assert_eq!(names("max_pods kubelt"), ["MAX_PODS"], "each word may be misspelt");
        assert_eq!(names("10250"), ["PORT"], "values are searched");
        assert!(names("  ").is_empty() && names("zzzz").is_empty());
        assert!(names("uap").is_empty(), "three letters resemble too much");
    }
}
