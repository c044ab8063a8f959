//! What each file of this repository has to be, whatever it is for: it says what that is, is short,
//! and knows no machine. Each failure names the place and what to do.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::{code, files, is_test, none, read, root};

/// A longer file does two things.
const LONGEST: usize = 600;
/// A longer comment is not read.
const WIDEST: usize = 100;

fn sources() -> Vec<String> {
    files(&["src", "crates", "tests"], ".rs")
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent: Vec<String> = sources().into_iter().filter(|path| !read(path).starts_with("//! ")).collect();
    none(&silent, "begin the file with `//!`: what it is for, and what it must not do");
}

#[test]
fn no_file_is_too_long() {
    let long = sources().into_iter().map(|path| (read(&path).lines().count(), path));
    let long: Vec<String> =
        long.filter(|(lines, _)| *lines > LONGEST).map(|(lines, path)| format!("{path}: {lines}")).collect();
    none(&long, "divide the file by what it does");
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    // Put together here, so that this file does not find itself.
    let words = [["/ro", "ot/"].concat(), ["/ho", "me/"].concat(), ["/Us", "ers/"].concat()];
    let mut all = files(&["src", "crates", "tests", "phases", "templates"], "");
    all.extend(
        ["Kconfig", "Makefile", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Cargo.toml", ".ci/run"]
            .map(str::to_owned),
    );
    let mut found = Vec::new();
    for path in all {
        let text = String::from_utf8_lossy(&fs_err::read(root().join(&path)).unwrap()).into_owned();
        found.extend(words.iter().filter(|word| text.contains(*word)).map(|word| format!("{path}: {word}")));
    }
    none(&found, "take the path from the environment or from an argument");
}

#[test]
fn comments_wrap_at_100_columns() {
    // A row of a table, and text between fences, cannot be wrapped.
    let mut wide = Vec::new();
    for path in sources() {
        let mut is_fenced = false;
        for (at, line) in read(&path).lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
            let text = comment.trim_start_matches(['/', '!']).trim_start();
            is_fenced ^= text.starts_with("```");
            if line.chars().count() > WIDEST && !is_fenced && !text.starts_with('|') {
                wide.push(format!("{path}:{}", at + 1));
            }
        }
    }
    none(&wide, "wrap the comment");
}

/// Files of one directory that name each other, because they are one thing: none today.
const CIRCLES: [(&str, &str); 0] = [];

#[test]
fn no_two_files_of_a_directory_name_each_other() {
    let all = files(&["src"], ".rs").into_iter().filter(|path| path.matches('/').count() > 1);
    let all: Vec<String> = all.filter(|path| !is_test(path) && !path.ends_with("/mod.rs")).collect();
    let named: BTreeMap<&str, BTreeSet<String>> =
        all.iter().map(|path| (path.as_str(), siblings_named(&code(path)))).collect();
    let is_named = |path: &str, other: &str| {
        let ((dir, _), (other_dir, file)) = (path.rsplit_once('/').unwrap(), other.rsplit_once('/').unwrap());
        dir == other_dir && named[path].contains(file.trim_end_matches(".rs"))
    };
    let pairs = all.iter().flat_map(|path| all.iter().map(move |other| (path.as_str(), other.as_str())));
    let circles: Vec<(&str, &str)> =
        pairs.filter(|(path, other)| path < other && is_named(path, other) && is_named(other, path)).collect();
    assert_eq!(circles, CIRCLES, "move what both need into one of them or a file of its own; or name the circle here");
}

/// The modules behind `super::module` and `super::{module, …}`.
fn siblings_named(code: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for after in code.split("super::").skip(1) {
        let list = match after.strip_prefix('{') {
            Some(group) => group.split(';').next().unwrap_or_default(),
            None => after.split([';', '(', ' ']).next().unwrap_or_default(),
        };
        named.extend(list.split(|letter: char| !letter.is_alphanumeric() && letter != '_').map(str::to_owned));
    }
    named
}

/// Modules whose own file shares items with files that it uses, and why.
const SHARING: [(&str, &str); 1] =
    [("src/cloud/mod.rs and src/cloud/spec.rs", "a cloud reads what its module is given, and that says whose it is")];

/// What a file declares itself, without what is inside of other items.
fn declared(code: &str) -> BTreeSet<String> {
    const ITEM: &str =
        r"(?m)^(?:pub(?:\([^)]*\))? )?(?:(?:const|async) )*(?:fn|struct|enum|trait|type|static|const) (\w+)";
    regex::Regex::new(ITEM).unwrap().captures_iter(code).map(|found| found[1].to_owned()).collect()
}

#[test]
fn a_module_and_its_files_need_each_other_in_one_direction() {
    let all = files(&["src"], ".rs");
    let children = |path: &str| {
        let dir = path.strip_suffix("/mod.rs").or(path.strip_suffix(".rs")).unwrap_or_default().to_owned() + "/";
        let is_child = |other: &&String| other.strip_prefix(&dir).is_some_and(|name| !name.contains('/'));
        all.iter().filter(is_child).filter(|other| !is_test(other) && *other != path).cloned().collect::<Vec<_>>()
    };
    let mut circles = Vec::new();
    for path in &all {
        let own = code(path);
        let items = declared(&own);
        for child in children(path) {
            let name = child.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
            let is_used = own.lines().any(|line| !line.starts_with("pub") && names_child(line, name));
            let shared: Vec<String> = siblings_named(&code(&child)).intersection(&items).cloned().collect();
            if is_used && !shared.is_empty() {
                circles.push(format!("{path} and {child}: {}", shared.join(", ")));
            }
        }
    }
    let is_known = |circle: &String| SHARING.iter().any(|(place, _)| circle.starts_with(place));
    let (known, new): (Vec<String>, Vec<String>) = circles.into_iter().partition(is_known);
    none(&new, "move what both need into a file of its own");
    let idle = SHARING.iter().filter(|(place, _)| !known.iter().any(|circle| circle.starts_with(place)));
    none(&idle.map(|(place, _)| (*place).to_owned()).collect::<Vec<_>>(), "shares nothing: take it out of SHARING");
}

/// Whether a line uses something of the file of this name.
fn names_child(line: &str, child: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    line.match_indices(&format!("{child}::")).any(|(at, _)| !line[..at].trim_end_matches("self::").ends_with(is_word))
}

/// Public names of types that stand in more than one place, and why.
const SAME_NAMES: [(&str, &str); 2] = [
    ("Args", "the options of a command, one type for each file of `cli`"),
    ("Inside", "one type of `failpoint`, with the feature and without it"),
];

/// The types that a file declares for others.
fn public_types(code: &str) -> Vec<String> {
    const KINDS: [&str; 5] = ["struct ", "enum ", "trait ", "type ", "union "];
    let declared = |line: &str| {
        let rest = line.trim_start().strip_prefix("pub")?;
        let rest = match rest.strip_prefix('(') {
            Some(inside) => inside.split_once(')')?.1,
            None => rest,
        };
        let name = KINDS.iter().find_map(|kind| rest.trim_start().strip_prefix(kind))?;
        let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(name.len());
        Some(name[..end].to_owned())
    };
    code.lines().filter_map(declared).collect()
}

#[test]
fn a_public_name_of_a_type_has_one_meaning() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files(&["src"], ".rs").into_iter().filter(|path| !is_test(path) && !path.contains("/tests/")) {
        for name in public_types(&code(&path)) {
            places.entry(name).or_default().push(path.clone());
        }
    }
    let is_known = |name: &str| SAME_NAMES.iter().any(|(known, _)| *known == name);
    let (known, new): (Vec<_>, Vec<_>) =
        places.into_iter().filter(|(_, paths)| paths.len() > 1).partition(|(name, _)| is_known(name));
    let told: Vec<String> = new.iter().map(|(name, paths)| format!("{name}: {}", paths.join(", "))).collect();
    none(&told, "call one of them what it is; where both are one concept, say so in SAME_NAMES");
    assert_eq!(known.len(), SAME_NAMES.len(), "take the name that stands in one place out of SAME_NAMES");
}

#[test]
fn types_that_others_see_are_found() {
    let code = "pub struct One;\n    pub(super) enum Two {\npub(in crate::a) trait Three<'a>: Sync {\npub(crate) type Four = u8;\nstruct Five;\npub fn six() {}\n";
    assert_eq!(public_types(code), ["One", "Two", "Three", "Four"]);
}
