//! Looking for an entry while typing: names, prompts and help texts, the nearest first. Pure: an
//! index and what is typed.

use std::sync::Arc;

use frizbee::{Config as Fuzzy, Matcher, Scoring};
use kconfig::{NodeId, Tree};

use super::line_edit::LineEdit;

/// The maximum number of results.
const MOST: usize = 300;

/// What is searched.
#[derive(Debug)]
pub(super) struct Index {
    entries: Vec<Entry>,
    /// Name and prompt of each entry, as they are matched.
    haystacks: Vec<String>,
}

#[derive(Debug)]
struct Entry {
    node: NodeId,
    /// In small letters.
    name: String,
    prompt: String,
    help: String,
}

/// Where the words were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchHit {
    /// In the name or the prompt.
    Title,
    /// In the help text alone.
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
    pub(super) fn look(&mut self, index: &Index, is_shown: impl Fn(NodeId) -> bool) {
        self.hits = index.find(self.line.text(), is_shown);
        self.cursor = 0;
    }
}

impl Index {
    /// All entries that have a prompt, each with its help.
    pub(super) fn of(tree: &Tree) -> Arc<Self> {
        let mut index = Self { entries: Vec::new(), haystacks: Vec::new() };
        for (id, node) in tree.nodes() {
            let Some(prompt) = &node.prompt else { continue };
            let name = node.symbol.map_or("", |symbol| &tree.get(symbol).name);
            index.haystacks.push(format!("{name} {}", prompt.text));
            let help = tree.help(id).unwrap_or_default().to_lowercase();
            index.entries.push(Entry { node: id, name: name.to_lowercase(), prompt: prompt.text.to_lowercase(), help });
        }
        Arc::new(index)
    }

    /// The entries for what was typed. Several words must all be there. Exact names come first,
    /// then names that begin so, titles that hold the words, help texts that do, and titles that
    /// resemble them; of those that fit as well, what is shown now comes first.
    pub(super) fn find(&self, typed: &str, is_shown: impl Fn(NodeId) -> bool) -> Vec<(NodeId, SearchHit)> {
        let typed = typed.trim().to_lowercase();
        let words: Vec<&str> = typed.split_whitespace().map(without_prefix).collect();
        if words.is_empty() {
            return Vec::new();
        }
        let mut ranked: Vec<(u32, usize, SearchHit)> = Vec::new();
        let mut seen = vec![false; self.entries.len()];
        for (at, entry) in self.entries.iter().enumerate() {
            if let Some(rank) = entry.rank(&words) {
                seen[at] = true;
                ranked.push((rank, at, SearchHit::Title));
            }
        }
        let needle = words.join(" ");
        if needle.chars().count() > 2 && ranked.len() < MOST {
            let least = needle.chars().count() * usize::from(Scoring::default().match_score);
            for hit in Matcher::from_query(&needle, &Fuzzy::default()).match_list(&self.haystacks) {
                let at = hit.index as usize;
                // What is torn over the whole title loses as much by its gaps as it wins by its
                // letters: it only looks alike to a program.
                if usize::from(hit.score) > least && !std::mem::replace(&mut seen[at], true) {
                    ranked.push((1_000 + u32::from(u16::MAX - hit.score), at, SearchHit::Title));
                }
            }
        }
        for (at, entry) in self.entries.iter().enumerate() {
            if !seen[at] && words.iter().all(|word| entry.help.contains(word)) {
                // Before what only resembles the words, behind what holds them.
                ranked.push((900, at, SearchHit::Help));
            }
        }
        ranked.sort_unstable_by_key(|(rank, at, _)| (*rank, *at));
        ranked.truncate(MOST);
        ranked.sort_by_cached_key(|(rank, at, _)| (rank / 100, !is_shown(self.entries[*at].node), *rank, *at));
        ranked.into_iter().map(|(_, at, found)| (self.entries[at].node, found)).collect()
    }
}

/// People type names as they stand in .config files.
fn without_prefix(word: &str) -> &str {
    word.strip_prefix("config_").filter(|rest| !rest.is_empty()).unwrap_or(word)
}

impl Entry {
    /// How well the title fits when it holds all the words; smaller is better.
    fn rank(&self, words: &[&str]) -> Option<u32> {
        let (first, rest) = words.split_first()?;
        if rest.is_empty() && self.name == *first {
            return Some(0);
        }
        if !words.iter().all(|word| self.name.contains(word) || self.prompt.contains(word)) {
            return None;
        }
        let last = self.name.rsplit('.').next().unwrap_or_default();
        let extra = u32::try_from(self.name.len() / 4).unwrap_or(99).min(99);
        Some(match () {
            () if self.prompt == words.join(" ") || last == *first => 1,
            () if self.name.starts_with(first) || last.starts_with(first) => 100 + extra,
            () if self.prompt.starts_with(first) => 200 + extra,
            () if words.iter().all(|word| self.prompt.split(' ').any(|part| part.starts_with(word))) => 300 + extra,
            () => 400 + extra,
        })
    }
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

config PORT
	int "Number of the door"
"#;

    fn names(typed: &str) -> Vec<String> {
        let tree = Tree::load("Kconfig", &MemoryFiles::new([("Kconfig", TREE)]), &Env::empty()).unwrap();
        let hits = Index::of(&tree).find(typed, |_| true);
        hits.iter().map(|(node, _)| tree.get(tree.node(*node).symbol.unwrap()).name.to_string()).collect()
    }

    #[test]
    fn what_is_meant_comes_first() {
        assert_eq!(names("net"), ["NET", "NETFILTER", "USB_NET"]);
        assert_eq!(names("CONFIG_NETFILTER")[0], "NETFILTER");
        assert_eq!(names("usb adapters"), ["USB_NET"], "several words, all of them");
        assert_eq!(names("firewall"), ["NETFILTER"], "help texts are searched");
        assert_eq!(names("pktfilt"), ["NETFILTER"], "letters may be missing");
        assert!(names("  ").is_empty() && names("zzzz").is_empty());
    }
}
