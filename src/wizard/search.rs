//! Looking for an entry while typing: prompts, names, menus, values and help texts, what fits best
//! first. Pure: an index and what is typed.

use std::collections::BTreeMap;
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
    /// The titles of the menus around an entry: thousands of entries stand in the same ones.
    menus: Vec<Text>,
}

#[derive(Debug)]
struct Entry {
    node: NodeId,
    prompt: Text,
    name: Text,
    /// The place of its menus in [`Index::menus`].
    menus: usize,
    /// In small letters.
    help: String,
}

/// A text in small letters.
#[derive(Debug)]
struct Text {
    lower: String,
    /// The first letters of its words as [`initial`]s: most texts have none that begins as the word
    /// which is looked for, and need not be taken apart.
    initials: u64,
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
        let (mut menus, mut places) = (vec![Text::of("")], BTreeMap::from([(tree.root(), 0)]));
        let mut entries = Vec::new();
        for (id, node) in tree.nodes() {
            // The tree gives an entry after the one that it stands in.
            let around = node.parent.and_then(|parent| places.get(&parent)).copied().unwrap_or_default();
            let prompt = node.prompt.as_ref().map(|prompt| Text::of(&prompt.text));
            if !node.children.is_empty() {
                let titles =
                    prompt.as_ref().map(|prompt| Text::of(&format!("{} {}", prompt.lower, menus[around].lower)));
                menus.extend(titles);
                places.insert(id, if prompt.is_some() { menus.len() - 1 } else { around });
            }
            let Some(prompt) = prompt else { continue };
            let name = Text::of(node.symbol.map_or("", |symbol| &tree.get(symbol).name));
            let help = tree.help(id).unwrap_or_default().to_lowercase();
            entries.push(Entry { node: id, prompt, name, menus: around, help });
        }
        Arc::new(Self { entries, menus })
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
        let words: Vec<Word<'_>> = words.into_iter().map(|word| Word::new(word, &self.menus)).collect();
        let mut ranked: Vec<(Fit, bool, u32, usize, usize)> = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let value = std::cell::LazyCell::new(|| values(entry.node));
            let mut fits = words.iter().map(|word| entry.fit(word, || (*value).contains(word.text)));
            // Few entries have the first word: the others are looked for only in these.
            let found =
                fits.try_fold((Fit::Whole, 0), |(worst, sum), fit| fit.map(|fit| (worst.max(fit), sum + fit as u32)));
            if let Some((worst, sum)) = found {
                let (worst, sum) = if entry.prompt.lower == typed { (Fit::Whole, 0) } else { (worst, sum) };
                ranked.push((worst, !is_shown(entry.node), sum, entry.name.lower.len() / 4, at));
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

/// A bit for a letter; letters may share one.
fn initial(letter: char) -> u64 {
    1 << (u32::from(letter) % u64::BITS)
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty())
}

impl Text {
    fn of(text: &str) -> Self {
        let lower = text.to_lowercase();
        let (mut initials, mut is_between) = (0, true);
        for letter in lower.chars() {
            if is_between && letter.is_alphanumeric() {
                initials |= initial(letter);
            }
            is_between = !letter.is_alphanumeric();
        }
        Self { lower, initials }
    }
}

/// A word that is looked for, in small letters.
struct Word<'a> {
    text: &'a str,
    letters: Vec<char>,
    /// How it fits each of the [`Index::menus`].
    menus: Vec<Option<Fit>>,
}

impl<'a> Word<'a> {
    fn new(text: &'a str, menus: &[Text]) -> Self {
        let mut word = Self { text, letters: text.chars().collect(), menus: Vec::new() };
        let fit = |titles: &Text| match () {
            () if titles.lower.contains(text) => Some(Fit::Menu),
            () if word.may_resemble() && word.parts_of(titles).any(|part| word.is_misspelt(part)) => {
                Some(Fit::LikeMenu)
            }
            () => None,
        };
        word.menus = menus.iter().map(fit).collect();
        word
    }

    fn may_resemble(&self) -> bool {
        (SHORTEST_LIKE..=LONGEST_LIKE).contains(&self.letters.len())
    }

    /// The words of the text that begin with the same letter.
    fn parts_of<'t>(&self, text: &'t Text) -> impl Iterator<Item = &'t str> {
        let first = self.letters.first().copied().unwrap_or_default();
        let lower = if text.initials & initial(first) == 0 { "" } else { &text.lower };
        parts(lower).filter(move |part| part.starts_with(first))
    }

    /// Whether it is a misspelt one of the text, or its letters stand in it close together.
    fn is_like(&self, text: &Text) -> bool {
        self.parts_of(text).any(|part| self.is_misspelt(part) || self.is_abbreviated(text, part))
    }

    /// Whether one or, in long words, two letters make the difference to this part or its
    /// beginning.
    fn is_misspelt(&self, part: &str) -> bool {
        let most = if self.letters.len() < 8 { 1 } else { 2 };
        if part.len() + most < self.letters.len() {
            return false;
        }
        let part: Vec<char> = part.chars().take(2 * LONGEST_LIKE).collect();
        let mut row: Vec<usize> = (0..=part.len()).collect();
        for (at, letter) in self.letters.iter().enumerate() {
            let mut diagonal = std::mem::replace(&mut row[0], at + 1);
            for (column, other) in part.iter().enumerate() {
                let changed = diagonal + usize::from(letter != other);
                diagonal = row[column + 1];
                row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
            }
        }
        row.into_iter().min().is_some_and(|least| least <= most)
    }

    /// Whether all its letters stand in the text in their order, from this part on and in no more
    /// than twice their room: `pktfilt` is packet filtering.
    fn is_abbreviated(&self, text: &Text, part: &str) -> bool {
        let start = part.as_ptr() as usize - text.lower.as_ptr() as usize;
        let mut letters = self.letters.iter().peekable();
        for c in text.lower[start..].chars().take(2 * self.letters.len()) {
            letters.next_if_eq(&&c);
        }
        letters.peek().is_none()
    }
}

impl Entry {
    /// Where the word is found best.
    fn fit(&self, word: &Word<'_>, in_value: impl Fn() -> bool) -> Option<Fit> {
        let (text, prompt, name, menus) = (word.text, &self.prompt.lower, &self.name.lower, word.menus[self.menus]);
        let last = name.rsplit('.').next().unwrap_or_default();
        Some(match () {
            () if prompt == text || name == text || last == text => Fit::Whole,
            () if word.parts_of(&self.prompt).any(|part| part.starts_with(text)) => Fit::Prompt,
            () if prompt.contains(text) => Fit::InPrompt,
            () if name.starts_with(text) || name.split('.').any(|part| part.starts_with(text)) => Fit::Name,
            () if name.contains(text) => Fit::InName,
            () if menus == Some(Fit::Menu) => Fit::Menu,
            () if in_value() => Fit::Value,
            () if self.help.contains(text) => Fit::Help,
            () if !word.may_resemble() => return None,
            // A misspelt word has its first letter right; this keeps the rest from resembling.
            () if word.is_like(&self.prompt) => Fit::LikePrompt,
            () if word.is_like(&self.name) => Fit::LikeName,
            () => return menus,
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
