//! The Kconfig tree together with what its structured comments say: formats, secrets, examples,
//! effects of a change.
//!
//! Immutable once loaded. A mistake in a structured comment is found here, at load time, with its
//! place in the Kconfig file.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use kconfig::{Annotation, Config, Env, NodeId, SymbolId, Tree};

use super::destination::Sets;
use super::format::{Field, Format};
use super::gates::Gates;
use super::relations::{Addresses, Relations, words};
use super::source::TreeSource;
use crate::error::{Error, Result};

/// What altering a setting does to a cluster that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeEffect {
    /// Hosts or the cluster are recreated.
    Recreate,
    /// Components are restarted.
    Restart,
    /// Hosts get other files or images, and nothing is restarted.
    Hosts,
    /// No host changes.
    None,
}

impl ChangeEffect {
    /// The effect in words, as it completes "a change …".
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Recreate => "recreates hosts or the whole cluster",
            Self::Restart => "restarts components",
            Self::Hosts => "changes hosts and restarts nothing",
            Self::None => "disturbs nothing that runs",
        }
    }
}

/// What the structured comments say about one symbol.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// What its text must look like.
    pub format: Option<Format>,
    /// Never shown, logged or written where others can read it.
    pub secret: bool,
    /// What altering it does.
    pub effect: Option<ChangeEffect>,
    /// A value that would do.
    pub example: Option<String>,
    /// The guided wizard asks it: a first cluster needs an answer, or is better for one.
    pub guided: Option<Guided>,
    /// It may be empty until the cluster is to be turned up.
    pub required: bool,
    /// What it was called before.
    pub was: Vec<String>,
    /// Settings that stand in for fields which a record leaves out.
    pub field_defaults: Vec<(String, Vec<String>)>,
    /// What it means for other settings.
    pub relations: Relations,
    /// What it sets in the configuration of components.
    pub sets: Vec<Sets>,
}

/// The symbol whose value is the target.
pub const TARGET: &str = "phase1.cloud_provider";

/// Where the guided wizard asks: `guided`, or `guided = TARGET, …`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guided {
    /// On these targets alone; on all when there are none.
    targets: Vec<String>,
}

impl Guided {
    /// Whether it asks on this target.
    #[must_use]
    pub fn is_on(&self, target: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|one| one == target)
    }
}

/// The tree and its rules.
#[derive(Debug)]
pub struct Schema {
    tree: Arc<Tree>,
    rules: Vec<Rule>,
    /// Settings that mean something for others, in the order of the menus.
    related: Vec<SymbolId>,
    /// Every symbol once, in the order of the menus; looked for when it is first asked for.
    ordered: OnceLock<Vec<SymbolId>>,
    /// The place of each symbol there, by its index.
    ranks: OnceLock<Vec<usize>>,
    /// Where the tables of feature gates are, and what is in them once that was asked.
    source: Option<TreeSource>,
    gates: OnceLock<Gates>,
    foreign: bool,
}

impl Schema {
    /// Loads the tree of this source.
    pub fn load(source: &TreeSource) -> Result<Arc<Self>> {
        let tree = Tree::load("Kconfig", source, &Env::empty()).map_err(|found| {
            let error = Error::config(format!("{} has mistakes", source.describe()));
            found.render(true).lines().fold(error, Error::evidence)
        })?;
        Self::with_source(tree, Some(source.clone()))
    }

    /// The rules of a tree; refuses one with wrong structured comments or with names that exclude
    /// each other in JSON.
    pub fn new(tree: Tree) -> Result<Arc<Self>> {
        Self::with_source(tree, None)
    }

    fn with_source(tree: Tree, source: Option<TreeSource>) -> Result<Arc<Self>> {
        let mut mistakes = find_name_clashes(&tree);
        let count = tree.symbols().map(|(id, _)| id.index() + 1).max().unwrap_or(0);
        let mut rules = vec![Rule::default(); count];
        for (id, symbol) in tree.symbols() {
            for annotation in &symbol.annotations {
                if let Err(why) = read_annotation(&mut rules[id.index()], annotation) {
                    mistakes.push(format!("{}: {why}", tree.location(annotation.span)));
                }
            }
        }
        for (id, symbol) in tree.symbols() {
            if matches!(&rules[id.index()].format, Some(Format::Records(fields)) if fields.is_empty()) {
                mistakes.push(format!("{}: records need a field: `#: field NAME = FORMAT`", symbol.name));
            }
            mistakes.extend(find_wrong_defaults(&tree, &symbol.name, &rules[id.index()]));
        }
        spread_secrecy(&tree, &mut rules);
        if mistakes.is_empty() {
            let mut schema = Self {
                tree: Arc::new(tree),
                rules,
                related: Vec::new(),
                ordered: OnceLock::new(),
                ranks: OnceLock::new(),
                source,
                gates: OnceLock::new(),
                foreign: false,
            };
            let is_related = |symbol: &SymbolId| schema.rule(*symbol).relations != Relations::NONE;
            schema.related = schema.ordered().iter().copied().filter(is_related).collect();
            return Ok(Arc::new(schema));
        }
        let error = Error::config("the Kconfig tree cannot be used");
        Err(mistakes.into_iter().fold(error, Error::evidence))
    }

    /// The tree.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// A configuration over this tree in which nothing has been set.
    #[must_use]
    pub fn config(&self) -> Config<'static> {
        Config::shared(Arc::clone(&self.tree))
    }

    /// What the structured comments say about a symbol.
    #[must_use]
    pub fn rule(&self, symbol: SymbolId) -> &Rule {
        static NONE: Rule = Rule {
            format: None,
            secret: false,
            effect: None,
            example: None,
            guided: None,
            required: false,
            was: Vec::new(),
            field_defaults: Vec::new(),
            relations: Relations::NONE,
            sets: Vec::new(),
        };
        self.rules.get(symbol.index()).unwrap_or(&NONE)
    }

    /// A tree of other people, whose comments are nothing but comments.
    #[must_use]
    pub fn without_rules(tree: Tree) -> Arc<Self> {
        Arc::new(Self {
            tree: Arc::new(tree),
            rules: Vec::new(),
            related: Vec::new(),
            ordered: OnceLock::new(),
            ranks: OnceLock::new(),
            source: None,
            gates: OnceLock::new(),
            foreign: true,
        })
    }

    /// Whether the tree is one of other people, written as `.config`, where numbers may be larger
    /// than JSON's.
    #[must_use]
    pub const fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// Whether a value of this setting takes more than turnup brings.
    #[must_use]
    pub(crate) fn needs_more(&self, name: &str) -> bool {
        self.related(|relations| Some(&relations.notices)).any(|(known, notices)| known == name && !notices.is_empty())
    }

    /// The feature gates of the versions of Kubernetes that there are tables of.
    pub(super) fn gates(&self) -> &Gates {
        self.gates.get_or_init(|| self.source.as_ref().map(Gates::read).unwrap_or_default())
    }

    /// Every symbol once, in the order of the menus.
    #[must_use]
    pub fn ordered(&self) -> &[SymbolId] {
        let find = || {
            let mut seen = HashSet::new();
            self.tree.nodes().filter_map(|(_, node)| node.symbol).filter(|symbol| seen.insert(*symbol)).collect()
        };
        self.ordered.get_or_init(find)
    }

    /// The place of a symbol in the order of the menus.
    pub(super) fn rank(&self, symbol: SymbolId) -> Option<usize> {
        let find = || {
            let mut ranks = Vec::new();
            for (rank, symbol) in self.ordered().iter().enumerate() {
                ranks.resize(ranks.len().max(symbol.index() + 1), usize::MAX);
                ranks[symbol.index()] = rank;
            }
            ranks
        };
        self.ranks.get_or_init(find).get(symbol.index()).copied().filter(|rank| *rank != usize::MAX)
    }

    /// Every setting that has such a relation to others, in the order of the menus.
    pub(super) fn related<'s, T>(
        &'s self,
        of: impl Fn(&'s Relations) -> Option<T> + 's,
    ) -> impl Iterator<Item = (&'s str, T)> {
        let related = self.related.iter();
        related.filter_map(move |symbol| Some((self.name(*symbol), of(&self.rule(*symbol).relations)?)))
    }

    /// The settings whose networks have these addresses.
    pub fn networks(&self, addresses: Addresses) -> impl Iterator<Item = &str> {
        self.related(|relations| relations.network).filter(move |(_, own)| *own == addresses).map(|(name, _)| name)
    }

    /// The name of a symbol.
    #[must_use]
    pub fn name(&self, symbol: SymbolId) -> &str {
        &self.tree.get(symbol).name
    }

    /// The prompt of a symbol: of its first definition that has one.
    #[must_use]
    pub fn prompt(&self, symbol: SymbolId) -> Option<&str> {
        let prompt = |node: &NodeId| self.tree.node(*node).prompt.as_ref().map(|prompt| &*prompt.text);
        self.tree.get(symbol).nodes.iter().find_map(prompt)
    }

    /// The symbol of this name, or an error that says which one was probably meant.
    pub fn find(&self, name: &str) -> Result<SymbolId> {
        self.tree.symbol(name).ok_or_else(|| {
            let group = format!("{name}.");
            if let Some((_, inner)) = self.tree.symbols().find(|(_, symbol)| symbol.name.starts_with(&group)) {
                return Error::config(format!(
                    "`{name}` is a group of settings; name one of them, such as {}",
                    inner.name
                ));
            }
            let error = Error::config(format!("there is no setting `{name}`{}", self.suggestion(name)));
            error.hint("see all settings: turnup config list")
        })
    }

    /// The name of the symbol that is spelled so but for capitals.
    pub fn find_ignoring_case(&self, name: &str) -> Result<String> {
        let mut names = self.tree.symbols().map(|(_, symbol)| &symbol.name);
        match names.find(|known| known.eq_ignore_ascii_case(name)) {
            Some(known) => Ok(known.to_string()),
            None => self.find(name).map(|symbol| self.name(symbol).to_owned()),
        }
    }

    /// The symbol that had this name before.
    #[must_use]
    pub fn find_renamed(&self, name: &str) -> Option<SymbolId> {
        let had = |id: &SymbolId| self.rule(*id).was.iter().any(|was| was == name);
        self.tree.symbols().map(|(id, _)| id).find(had)
    }

    /// "; did you mean `x`?", or nothing.
    pub(super) fn suggestion(&self, name: &str) -> String {
        let names = self.tree.symbols().map(|(_, symbol)| symbol.name.as_ref());
        suggestion(name, names)
    }
}

/// What takes its value from a secret is one.
fn spread_secrecy(tree: &Tree, rules: &mut [Rule]) {
    let sources = |id: SymbolId| tree.get(id).defaults.iter().flat_map(|default| tree.symbols_in(default.value));
    loop {
        let is_secret = |id: SymbolId| rules.get(id.index()).is_some_and(|rule| rule.secret);
        let spread = |id: &SymbolId| !is_secret(*id) && sources(*id).any(is_secret);
        let Some(found) = tree.symbols().map(|(id, _)| id).find(spread) else { return };
        rules[found.index()].secret = true;
    }
}

/// "; did you mean `x`?", or nothing when nothing known is near.
pub(super) fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    kconfig::suggest(name, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

fn read_annotation(rule: &mut Rule, annotation: &Annotation) -> Result<(), String> {
    let value = annotation.value.as_str();
    match annotation.key.as_str() {
        "format" => rule.format = Some(value.parse()?),
        "was" if !value.is_empty() => rule.was.push(value.to_owned()),
        "guided" => rule.guided = Some(Guided { targets: words(value) }),
        "secret" if value.is_empty() => rule.secret = true,
        "required" if value.is_empty() => rule.required = true,
        flag @ ("secret" | "required") => return Err(format!("`{flag}` takes no value")),
        "sets" => rule.sets.push(value.parse()?),
        "example" => rule.example = Some(value.to_owned()),
        "changes" => {
            rule.effect = Some(match value {
                "recreate" => ChangeEffect::Recreate,
                "restart" => ChangeEffect::Restart,
                "hosts" => ChangeEffect::Hosts,
                "none" => ChangeEffect::None,
                other => return Err(format!("`{other}` is none of recreate, restart, hosts or none")),
            });
        }
        other if other.starts_with("field ") => return add_field(rule, other, value),
        other if let Some(field) = other.strip_prefix("default ") => {
            rule.field_defaults.push((field.trim().to_owned(), words(value)));
        }
        other if rule.relations.read(other, value)? => {}
        other => {
            let known =
                ["format", "field", "default", "secret", "example", "changes", "guided", "required", "was", "sets"];
            let advice = suggestion(other, known.into_iter().chain(Relations::KEYS));
            return Err(format!("`{other}` is no structured comment{advice}"));
        }
    }
    Ok(())
}

/// `field NAME = FORMAT`, or `field NAME? = FORMAT` of one that may be absent.
fn add_field(rule: &mut Rule, key: &str, format: &str) -> Result<(), String> {
    let Some(Format::Records(fields)) = &mut rule.format else {
        return Err("a field stands below `format = records`".to_owned());
    };
    let written = key.trim_start_matches("field").trim();
    let name = written.trim_end_matches('?');
    let format: Format = format.parse()?;
    if name.is_empty() || fields.iter().any(|field| field.name == name) {
        return Err(format!("`{written}` is no name for another field"));
    }
    if matches!(format, Format::Records(_)) {
        return Err("the fields of records are no records".to_owned());
    }
    fields.push(Field { name: name.to_owned(), required: name == written, format });
    Ok(())
}

/// `default FIELD = SETTING, …` names a field and settings.
fn find_wrong_defaults(tree: &Tree, name: &str, rule: &Rule) -> Vec<String> {
    let is_field = |field: &str| match &rule.format {
        Some(Format::Records(fields)) => fields.iter().any(|known| known.name == field && !known.required),
        _ => false,
    };
    let mut mistakes = Vec::new();
    for (field, settings) in &rule.field_defaults {
        if !is_field(field) {
            mistakes.push(format!("{name}: `default {field}` is about no field that may be left out"));
        }
        let unknown = settings.iter().filter(|setting| tree.symbol(setting).is_none());
        mistakes.extend(unknown.map(|setting| format!("{name}: `default {field}` names no setting: {setting}")));
    }
    mistakes
}

/// In JSON a path is either a value or an object of more paths.
fn find_name_clashes(tree: &Tree) -> Vec<String> {
    let mut names: Vec<&str> = tree.symbols().map(|(_, symbol)| symbol.name.as_ref()).collect();
    names.sort_unstable();
    let clash = |name: &&str| {
        let group = format!("{name}.");
        let inner = names.iter().find(|other| other.starts_with(&group))?;
        Some(format!("`{name}` and `{inner}` exclude each other: one JSON key cannot be both a value and an object"))
    };
    names.iter().filter_map(clash).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use kconfig::MemoryFiles;

    fn load(text: &str) -> Result<Arc<Schema>> {
        let files = MemoryFiles::new([("Kconfig", text)]);
        Schema::new(Tree::load("Kconfig", &files, &Env::empty()).unwrap())
    }

    #[test]
    fn reads_structured_comments() {
        let schema = load(
            "#: format = cidr\n#: secret\n#: changes = restart\n#: example = 10.0.0.0/8\nconfig a.b\n\tstring \"P\"\n",
        )
        .unwrap();
        let symbol = schema.find("a.b").unwrap();
        let rule = schema.rule(symbol);
        assert_eq!(rule.format, Some(Format::Cidr(0, 32)));
        assert!(rule.secret);
        assert_eq!(rule.effect, Some(ChangeEffect::Restart));
        assert_eq!(rule.example.as_deref(), Some("10.0.0.0/8"));
        assert_eq!(schema.prompt(symbol), Some("P"));
    }

    #[test]
    fn refuses_wrong_structured_comments_with_their_place() {
        let error = load(
            "#: format = cdir\nconfig a\n\tstring \"A\"\n\n#: chages = none\n#: secret = y\n#: unused\nconfig b\n\tbool \"B\"\n",
        );
        insta::assert_snapshot!(error.unwrap_err().render(), @r"
        error: the Kconfig tree cannot be used
          | Kconfig:1:1: `cdir` is no format; did you mean `cidr`?
          | Kconfig:5:1: `chages` is no structured comment; did you mean `changes`?
          | Kconfig:6:1: `secret` takes no value
          | Kconfig:7:1: `unused` is no structured comment
        ");
    }

    #[test]
    fn refuses_records_without_fields() {
        let error = load("#: format = records\nconfig a.b\n\tstring \"A\"\n").unwrap_err();
        assert!(error.render().contains("a.b: records need a field"), "{}", error.render());
    }

    #[test]
    fn refuses_names_that_exclude_each_other() {
        let error = load("config a.b\n\tbool \"A\"\n\nconfig a.b.c\n\tbool \"B\"\n").unwrap_err();
        assert!(error.render().contains("`a.b` and `a.b.c` exclude each other"), "{}", error.render());
        assert!(load("config a.b\n\tbool \"A\"\n\nconfig a.bc\n\tbool \"B\"\n").is_ok());
    }

    #[test]
    fn an_unknown_name_gets_a_suggestion() {
        let schema = load("config phase1.num_nodes\n\tint \"N\"\n").unwrap();
        let error = schema.find("phase1.num_node").unwrap_err();
        let group = schema.find("phase1").unwrap_err();
        assert_eq!(group.message(), "`phase1` is a group of settings; name one of them, such as phase1.num_nodes");
        assert_eq!(error.message(), "there is no setting `phase1.num_node`; did you mean `phase1.num_nodes`?");
    }
}
