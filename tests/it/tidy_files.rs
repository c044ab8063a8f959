//! What each file of this repository has to be, whatever it is for: it says what that is, is short,
//! and knows no machine. Each failure names the place and what to do.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;

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

/// The words after `--` in the recipe of a target: parts of the names of tests that it runs.
fn filters(makefile: &str, target: &str) -> Vec<String> {
    let recipe = makefile.lines().skip_while(|line| !line.starts_with(&format!("{target}:"))).skip(1);
    let lines = recipe.take_while(|line| line.starts_with('\t')).filter_map(|line| line.split_once(" -- "));
    let words = lines.flat_map(|(_, words)| words.split_whitespace());
    words.filter(|word| !word.starts_with('-')).map(str::to_owned).collect()
}

/// A test that is only run when asked for says which target of make asks for it.
#[test]
fn a_test_that_is_left_out_is_run_by_the_target_that_it_names() {
    let (makefile, mut found, mut lost) = (read("Makefile"), 0, Vec::new());
    for file in sources().into_iter().filter(|file| file.starts_with("tests/it/")) {
        let text = read(&file);
        let lines: Vec<&str> = text.lines().collect();
        let module = file.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        for pair in lines.windows(2).filter(|pair| pair[0].starts_with("#[ignore")) {
            found += 1;
            let name = pair[1].trim_start_matches("fn ").split('(').next().unwrap_or_default();
            let after = pair[0].split("make ").nth(1).unwrap_or_default();
            let target = after.split(|letter: char| !letter.is_alphanumeric() && letter != '-').next();
            let full_name = format!("{module}::{name}");
            if !filters(&makefile, target.unwrap_or_default()).iter().any(|part| full_name.contains(part.as_str())) {
                lost.push(format!("{full_name}: {}", pair[0]));
            }
        }
    }
    assert!(found > 20, "{found}");
    none(&lost, "name the test in the recipe of the target that its `ignore` names");
}
