//! Our `conf` next to kconfiglib 14.1.0, on what Linux's trees do not have: its own words
//! (`rsource`, globs, `def_int`), old forms, and our own tree. Its rules are those of Linux before
//! 6.9, so ours are asked for those.
//!
//! Where the C tool can read a tree, it is asked too: that all three agree shows that the trees are
//! sound, and where they do not, we are with C. The differences are named in `OTHERWISE`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reference::{Job, Outcome, Python, Series, Tool, Tree, difference, or_skip, random::Numbers, values};

use crate::{compare, none, ours, side_by_side};

/// Our trees, and whether the C tool knows all of their words.
const TREES: [(&str, bool); 7] = [
    ("choices", true),
    ("differs", true),
    ("macros", true),
    ("old", false),
    ("relations", true),
    ("sources", false),
    ("types", false),
];
/// Their minimal configurations differ. kconfiglib takes a choice's members as if they had no
/// defaults of their own; C counts those, and leaves out the chosen member of an optional choice
/// when it takes it for the default.
const OTHER_MINIMUM: &str = "choices";
/// Configurations by chance for each tree.
const SEEDS: u64 = 6;
const ALL: [&str; 4] = ["alldefconfig", "allyesconfig", "allmodconfig", "allnoconfig"];

/// In the tree `differs`: the symbol, what C and we write, and kconfiglib, and why.
const OTHERWISE: [(&str, Option<&str>, Option<&str>, &str); 3] = [
    (
        "UNMET",
        Some("n"),
        None,
        "implied while what it depends on is not there: C says that it is not set, kconfiglib nothing",
    ),
    ("AS_MODULE", Some("m"), Some("y"), "implied by y and set to m: m remains since Linux 5.7, kconfiglib makes it y"),
    (
        "DOLLAR",
        Some("\"at $WHERE\""),
        Some("\"at here\""),
        "a variable without parentheses: C takes the characters as they are, kconfiglib the value",
    ),
];

fn root(tree: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel/trees").join(tree)
}

fn env(root: &Path) -> Vec<(String, String)> {
    let path = std::env::var("PATH").unwrap_or_default();
    let pairs = [
        ("PATH", path.as_str()),
        ("LC_ALL", "C.UTF-8"),
        ("WHERE", "here"),
        ("KERNELVERSION", "6.1"),
        ("srctree", root.to_str().unwrap()),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// What is asked of all tools: a mode, and the configuration that it starts from.
struct Question {
    mode: &'static str,
    config: Option<String>,
}

impl Question {
    fn job(&self, root: &Path) -> Job {
        let mode = if self.mode == "savedefconfig" { "savedefconfig=defconfig" } else { self.mode };
        let job = Job::new(&format!("--{mode}"), env(root));
        match &self.config {
            Some(config) => job.file(".config", config.as_bytes()),
            None => job,
        }
    }

    /// kconfiglib's programs are called like the modes.
    fn ask_kconfiglib(&self, python: &Python, root: &Path) -> String {
        let mut job = self.job(root).env("PYTHONPATH", python.packages().to_str().unwrap());
        if self.mode != "savedefconfig" {
            let title = fs_err::read_to_string(root.join("Kconfig")).unwrap();
            let title = title.lines().find_map(|line| line.strip_prefix("mainmenu \"")?.strip_suffix('"'));
            let header = format!("#\n# Automatically generated file; DO NOT EDIT.\n# {}\n#\n", title.unwrap());
            job = job.env("KCONFIG_CONFIG_HEADER", &header);
        }
        let tool = Tool::new("kconfiglib", python.program(), &["-B", "-c", DRIVER]);
        let outcome = tool.run(&job);
        assert_eq!(outcome.code, Some(0), "kconfiglib: {}", String::from_utf8_lossy(&outcome.stderr));
        written(self.mode, &outcome)
    }
}

/// Calls the program that is named like the mode, with the arguments that it wants.
const DRIVER: &str = "\
import runpy, sys
mode = sys.argv[1][2:].split('=')[0]
sys.argv = [mode, '--kconfig', 'Kconfig', '--out', 'defconfig'] if mode == 'savedefconfig' else [mode, 'Kconfig']
runpy.run_module(mode, run_name='__main__')
";

fn written(mode: &str, outcome: &Outcome) -> String {
    let name = if mode == "savedefconfig" { "defconfig" } else { ".config" };
    let bytes = outcome.files.get(name);
    let said = || format!("{}{}", String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
    String::from_utf8_lossy(bytes.unwrap_or_else(|| panic!("--{mode} wrote no {name}: {}", said()))).into_owned()
}

/// A plausible configuration: random values for this one's symbols, some left out.
fn by_chance(config: &str, seed: u64) -> String {
    let mut numbers = Numbers::new(seed);
    let mut text = String::new();
    for (name, value) in values(config) {
        let chosen = match (value.as_str(), numbers.below(4)) {
            (_, 0) => continue,
            ("y" | "m" | "n", 1) => format!("# CONFIG_{name} is not set\n"),
            ("y" | "m" | "n", 2) => format!("CONFIG_{name}=m\n"),
            ("y" | "m" | "n", _) => format!("CONFIG_{name}=y\n"),
            _ => format!("CONFIG_{name}={value}\n"),
        };
        text.push_str(&chosen);
    }
    text
}

/// The modes from nothing, then from configurations by chance.
fn questions(python: &Python, name: &str, root: &Path) -> Vec<Question> {
    let mut all = all_questions(python, root);
    all.retain(|question| name != OTHER_MINIMUM || question.mode != "savedefconfig");
    all
}

fn all_questions(python: &Python, root: &Path) -> Vec<Question> {
    let mut questions: Vec<Question> = ALL.map(|mode| Question { mode, config: None }).into();
    let whole = questions[1].ask_kconfiglib(python, root);
    for seed in 0..SEEDS {
        let config = Some(by_chance(&whole, seed));
        questions.push(Question { mode: "olddefconfig", config: config.clone() });
        if seed < 2 {
            questions.push(Question { mode: "savedefconfig", config });
        }
    }
    questions
}

fn ask(tool: &Tool, question: &Question, root: &Path) -> String {
    written(question.mode, &tool.run(&question.job(root)))
}

/// Only what it wrote.
fn text_outcome(text: &str) -> Outcome {
    let files = BTreeMap::from([("configuration".to_owned(), text.as_bytes().to_vec())]);
    Outcome { code: Some(0), stdout: Vec::new(), stderr: Vec::new(), files }
}

fn compare_with(what: &str, left: (&str, &str), right: (&str, &str)) -> Option<String> {
    let found = difference((left.0, &text_outcome(left.1)), (right.0, &text_outcome(right.1)))?;
    Some(format!("{what}:\n{found}"))
}

#[track_caller]
fn equal(name: &str, root: &Path) {
    let Some(python) = or_skip(Python::get()) else { return };
    let questions = questions(&python, name, root);
    let found = side_by_side(&questions, |question| {
        let theirs = question.ask_kconfiglib(&python, root);
        let config = question.config.as_deref().unwrap_or_default();
        let what = format!("{name}: {} of\n{config}", question.mode);
        let job = question.job(root).env("KCONFIG_DIALECT", "kconfiglib");
        compare_with(&what, ("turnup", &written(question.mode, &ours().run(&job))), ("kconfiglib", &theirs))
    });
    let differences: Vec<String> = found.into_iter().flatten().collect();
    none(&format!("kconfiglib's values of the tree {name}"), questions.len(), &differences);
}

#[test]
fn our_trees_mean_the_same() {
    for (name, _) in TREES.iter().filter(|(name, _)| *name != "differs") {
        equal(name, &root(name));
    }
}

#[test]
fn the_tree_of_clusters_means_the_same() {
    equal("turnup", Path::new(env!("CARGO_MANIFEST_DIR")));
}

/// A copy of a tree in the words of C, which names the symbol that allows modules in another way.
fn in_words_of_c(tree: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let text = fs_err::read_to_string(root(tree).join("Kconfig")).unwrap();
    fs_err::write(copy.path().join("Kconfig"), text.replace("\toption modules", "\tmodules")).unwrap();
    copy
}

/// Checks the reference: kconfiglib and the C tool agree where they read the same words.
#[test]
fn the_c_tool_agrees_where_it_knows_the_words() {
    let (Some(python), Some(tree)) = (or_skip(Python::get()), or_skip(Tree::get(Series::V6_1))) else { return };
    for (name, _) in TREES.iter().filter(|(name, c)| *c && *name != "differs") {
        let copy = in_words_of_c(name);
        let questions = questions(&python, name, &root(name));
        let found = side_by_side(&questions, |question| {
            let theirs = question.ask_kconfiglib(&python, &root(name));
            let what = format!("{name}: {} of\n{}", question.mode, question.config.as_deref().unwrap_or_default());
            compare_with(&what, ("C", &ask(&tree.conf(), question, copy.path())), ("kconfiglib", &theirs))
        });
        let differences: Vec<String> = found.into_iter().flatten().collect();
        none(&format!("C next to kconfiglib on the tree {name}"), questions.len(), &differences);
    }
}

/// Where kconfiglib differs from C, we follow C.
#[test]
fn results_are_those_of_c_for_the_words_that_c_knows() {
    let (Some(python), Some(tree)) = (or_skip(Python::get()), or_skip(Tree::get(Series::V6_1))) else { return };
    for (name, _) in TREES.iter().filter(|(_, c)| *c) {
        let copy = in_words_of_c(name);
        let questions = all_questions(&python, &root(name));
        let found = side_by_side(&questions, |question| {
            compare(&format!("{name}: {}", question.mode), &tree.conf(), &question.job(copy.path()))
        });
        let differences: Vec<String> = found.into_iter().flatten().collect();
        none(&format!("the tree {name} next to C"), questions.len(), &differences);
    }
}

#[test]
fn what_kconfiglib_says_otherwise_is_as_in_c() {
    let Some(python) = or_skip(Python::get()) else { return };
    let copy = in_words_of_c("differs");
    let question = Question { mode: "olddefconfig", config: Some("CONFIG_STRONG=y\nCONFIG_AS_MODULE=m\n".to_owned()) };
    let mine = values(&ask(&ours(), &question, copy.path()));
    let theirs = values(&question.ask_kconfiglib(&python, &root("differs")));
    for (symbol, ours, kconfiglib, why) in OTHERWISE {
        assert_eq!(mine.get(symbol).map(String::as_str), ours, "{symbol}: {why}");
        assert_eq!(theirs.get(symbol).map(String::as_str), kconfiglib, "{symbol}: {why}");
    }
    let others = |of: &BTreeMap<String, String>| {
        let rest = of.clone().into_iter().filter(|(name, _)| !OTHERWISE.iter().any(|(symbol, ..)| symbol == name));
        rest.collect::<Vec<_>>()
    };
    assert_eq!(others(&mine), others(&theirs));
}
