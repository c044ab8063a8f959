//! No file of this repository needs a file that needs it, over however many others; what does is
//! one thing, and stands in `CIRCLES`.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use crate::tidy::{code, files, is_test, none};

/// The crates, by the directories of their files.
const CRATES: [&str; 3] = ["src", "crates/kconfig/src", "crates/reference/src"];

/// Files that need each other, and why.
const CIRCLES: [(&[&str], &str); 4] = [
    (
        &["src/cloud/dns_provider.rs", "src/cloud/mod.rs", "src/cloud/spec.rs", "src/cloud/target.rs"],
        "a cloud reads what its module is given, and that says whose it is; the registry knows all clouds",
    ),
    (
        &["crates/kconfig/src/load.rs", "crates/kconfig/src/syntax/blocks.rs", "crates/kconfig/src/syntax/lower.rs"],
        "a file of Kconfig sources others: the parser calls itself",
    ),
    (
        &["crates/kconfig/src/syntax/macros.rs", "crates/kconfig/src/syntax/token.rs"],
        "a macro's text has macros: its expansion calls itself",
    ),
    (
        &[
            "crates/kconfig/src/lint/facts/ask.rs",
            "crates/kconfig/src/lint/facts/compare.rs",
            "crates/kconfig/src/lint/facts/derive.rs",
            "crates/kconfig/src/lint/facts/mod.rs",
            "crates/kconfig/src/lint/facts/waiting.rs",
        ],
        "what follows from a fact is a fact: the inference calls itself",
    ),
];

static USE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)^[ ]*(pub(?:\([^)]*\))? )?use ([^;]+);").unwrap());
static VISIBILITY: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"pub\(in [^)]*\)").unwrap());
static PATH: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b(?:crate|super|self)(?:::[a-zA-Z0-9_]+)+").unwrap());

/// The path of a module from the root of its crate: nothing for the root itself.
type ModulePath = Vec<String>;

/// The files of one crate and what they hand on of each other.
struct Graph {
    modules: BTreeMap<ModulePath, String>,
    /// Where a name is that a file hands on with `pub use`.
    handed_on: BTreeMap<(String, String), String>,
}

impl Graph {
    fn of(dir: &str) -> Self {
        let all = files(&[dir], ".rs").into_iter().filter(|path| !is_test(path) && !path.contains("/tests/"));
        let modules = all.map(|path| (module_path(dir, &path), path)).collect();
        let mut graph = Self { modules, handed_on: BTreeMap::new() };
        let mut handed_on = BTreeMap::new();
        for (module, path) in &graph.modules {
            for words in uses(&code(path)).into_iter().filter(|(is_public, _)| *is_public).flat_map(|(_, paths)| paths)
            {
                let name = words.last().cloned().unwrap_or_default();
                if let Some((file, _)) = graph.locate(module, &words).filter(|(file, _)| file != path) {
                    handed_on.insert((path.clone(), name), file);
                }
            }
        }
        graph.handed_on = handed_on;
        graph
    }

    /// The file that a path leads to, and the words of the path that name something in it.
    fn locate(&self, module: &[String], words: &[String]) -> Option<(String, Vec<String>)> {
        let (mut place, mut rest) = match words.first()?.as_str() {
            "crate" => (Vec::new(), &words[1..]),
            "self" => (module.to_vec(), &words[1..]),
            "super" => (module.to_vec(), words),
            first => {
                let child = [module, &[first.to_owned()]].concat();
                self.modules.get(&child)?;
                (module.to_vec(), words)
            }
        };
        while rest.first().is_some_and(|word| word == "super") {
            place.pop()?;
            rest = &rest[1..];
        }
        while let Some(word) = rest.first() {
            let child = [place.as_slice(), std::slice::from_ref(word)].concat();
            if !self.modules.contains_key(&child) {
                break;
            }
            place = child;
            rest = &rest[1..];
        }
        Some((self.modules.get(&place)?.clone(), rest.to_vec()))
    }

    /// The files that a file needs. The root of a crate holds nothing.
    fn needs(&self, module: &[String], path: &str) -> BTreeSet<String> {
        let code = code(path);
        let own = uses(&code).into_iter().filter(|(is_public, _)| !is_public).flat_map(|(_, paths)| paths);
        let found = own.chain(paths_inside(&code)).filter_map(|words| {
            let (mut file, rest) = self.locate(module, &words)?;
            // A chain of files that hand a name on is short.
            for _ in 0..5 {
                let Some(name) = rest.first() else { break };
                let Some(next) = self.handed_on.get(&(file.clone(), name.clone())) else { break };
                file.clone_from(next);
            }
            Some(file)
        });
        found.filter(|file| file != path && !file.ends_with("/lib.rs")).collect()
    }
}

fn module_path(dir: &str, path: &str) -> ModulePath {
    let inner = path.trim_start_matches(dir).trim_start_matches('/').trim_end_matches(".rs");
    let words = inner.split('/').map(str::to_owned).filter(|word| !["mod", "lib", "main"].contains(&word.as_str()));
    words.collect()
}

/// The paths of each `use`, a list of words each, and whether it hands them on.
fn uses(code: &str) -> Vec<(bool, Vec<ModulePath>)> {
    let paths = |text: &str| expand(text).iter().map(|path| path.split("::").map(str::to_owned).collect()).collect();
    USE.captures_iter(code).map(|found| (found.get(1).is_some(), paths(&found[2]))).collect()
}

/// `a::{b, c::{d, e as f}}` as `a::b`, `a::c::d`, `a::c::e`.
fn expand(text: &str) -> Vec<String> {
    let text = text.trim();
    let Some((before, inside)) = text.split_once('{') else {
        return vec![text.split(" as ").next().unwrap_or_default().trim().to_owned()];
    };
    let inside = inside.trim_end().trim_end_matches('}');
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for letter in inside.chars() {
        depth += match letter {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        match (letter, depth) {
            (',', 0) => parts.push(String::new()),
            _ => parts.last_mut().unwrap().push(letter),
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| expand(part)).map(|part| format!("{}{part}", before.trim())).collect()
}

/// Paths that stand in the middle of code; not those that say how far a name is visible.
fn paths_inside(code: &str) -> Vec<ModulePath> {
    let code = VISIBILITY.replace_all(code, "");
    PATH.find_iter(&code).map(|found| found.as_str().split("::").map(str::to_owned).collect()).collect()
}

/// All that a file needs, over others too.
fn reach(needs: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let (mut found, mut waiting) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(path) = waiting.pop() {
        let next = needs.get(&path).into_iter().flatten().filter(|next| found.insert((*next).clone()));
        waiting.extend(next.cloned().collect::<Vec<_>>());
    }
    found
}

#[test]
fn no_files_need_each_other() {
    let mut circles = BTreeSet::new();
    for graph in CRATES.map(Graph::of) {
        let needs: BTreeMap<String, BTreeSet<String>> =
            graph.modules.iter().map(|(module, path)| (path.clone(), graph.needs(module, path))).collect();
        let reached: BTreeMap<&String, BTreeSet<String>> =
            needs.keys().map(|path| (path, reach(&needs, path))).collect();
        let returns = needs.keys().filter(|path| reached[path].contains(*path));
        circles.extend(returns.map(|path| {
            let others = reached[path].iter().filter(|other| reached[other].contains(path));
            others.cloned().collect::<Vec<String>>()
        }));
    }
    let is_known = |circle: &&Vec<String>| CIRCLES.iter().any(|(known, _)| known == circle);
    let new: Vec<String> = circles.iter().filter(|circle| !is_known(circle)).map(|circle| circle.join(", ")).collect();
    none(&new, "move what both need into one of them or into a file of its own; or say in CIRCLES why they are one");
    assert_eq!(circles.len(), CIRCLES.len(), "a circle is open now: take it out of CIRCLES");
}

#[test]
fn uses_are_read_whole() {
    let code = "use a::{b, c::{d, e as f}};\npub(crate) use g::h;\npub(in crate::x) fn i() { super::j::k() }\n";
    let words = |path: &str| path.split("::").map(str::to_owned).collect::<Vec<_>>();
    let own = vec![words("a::b"), words("a::c::d"), words("a::c::e")];
    assert_eq!(uses(code), [(false, own), (true, vec![words("g::h")])]);
    assert_eq!(paths_inside(code), [words("super::j::k")]);
}
