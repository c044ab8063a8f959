//! `docs/glossary.md`: every term leads by name to the file, type or setting where it lives.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::path::Path;

use turnup::config::{Settings, TreeSource};

/// What the field calls things; a reader searches for these words first.
const TERMS: [&str; 42] = [
    "addon",
    "admission",
    "API endpoint",
    "artifact",
    "audit log",
    "backend",
    "bastion",
    "bootstrap token",
    "certificate authority",
    "cgroup driver",
    "cloud resource",
    "control plane",
    "cordon",
    "CSR approver",
    "drain",
    "drift",
    "etcd members",
    "eviction",
    "exec credential",
    "failpoint",
    "firewall",
    "health check",
    "host key",
    "inventory",
    "journal",
    "kubeconfig",
    "kubelet config",
    "leader election",
    "lock",
    "node config",
    "node group",
    "plan",
    "preflight",
    "prune",
    "RBAC",
    "rollout",
    "state",
    "static pod",
    "taint",
    "teardown policy",
    "timeout",
    "user data",
];

/// One line of the table.
struct Row {
    term: String,
    place: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rows() -> Vec<Row> {
    let text = fs_err::read_to_string(root().join("docs/glossary.md")).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| term "));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            assert_eq!(cells.len(), 4, "term, what it is, equals, where: {line}");
            Row { term: cells[0].to_owned(), place: cells[3].trim_matches(['`', ' ', '|']).to_owned() }
        })
        .collect()
}

/// Letters and digits alone, small; a plural counts as its singular.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| word.to_lowercase().trim_end_matches('s').to_owned()).collect()
}

/// Whether a name, as of a file or type, has all words of a term, in whatever order and spelling.
fn leads(name: &str, term: &str) -> bool {
    let name: String = name.to_lowercase().chars().filter(|letter| letter.is_alphanumeric()).collect();
    // What is said with two words and spelled with one, or shortened as the program concerned does.
    let known =
        [("leader election", "leaderelect"), ("audit log", "audit"), ("probe pod", "probe"), ("local host", "local")];
    let shorter = [
        ("certificate authority", "authority"),
        ("API endpoint", "endpoint"),
        ("root file system", "rootf"),
        ("target", "cloudprovider"),
    ];
    let is_known = known.iter().chain(&shorter).any(|(long, short)| *long == term && name.contains(short));
    is_known || words(term).iter().all(|word| name.contains(word.as_str()))
}

/// Why a row leads nowhere, if it does not.
fn judge(row: &Row, settings: &Settings) -> Option<String> {
    let Row { term, place } = row;
    let wrong = |why: &str| Some(format!("{term}: {place}: {why}"));
    if place.starts_with("phase") && !place.contains('/') {
        return match (settings.get(place).is_ok(), leads(place, term)) {
            (false, _) => wrong("there is no such setting"),
            (_, false) => wrong("the name of the setting does not have the term"),
            _ => None,
        };
    }
    let (path, item) = place.split_once(": ").unwrap_or((place, ""));
    let Ok(text) = fs_err::read_to_string(root().join(path)) else { return wrong("there is no such file") };
    if !item.is_empty() && !text.contains(item) {
        return wrong("the file does not have it");
    }
    let name = if item.is_empty() { path.trim_start_matches("src/").trim_end_matches("/mod.rs") } else { item };
    if leads(name, term) { None } else { wrong("the name does not have the words of the term") }
}

#[test]
fn every_term_leads_by_name_to_where_it_lives() {
    let settings = Settings::defaults(&TreeSource::find(root())).unwrap();
    let rows = rows();
    let wrong: Vec<String> = rows.iter().filter_map(|row| judge(row, &settings)).collect();
    assert!(
        wrong.is_empty(),
        "correct docs/glossary.md, or name the file or type by the term:\n  {}",
        wrong.join("\n  ")
    );
}

#[test]
fn the_terms_of_the_field_are_in_the_glossary() {
    let rows = rows();
    let missing: Vec<&str> = TERMS.into_iter().filter(|term| !rows.iter().any(|row| row.term == *term)).collect();
    assert!(missing.is_empty(), "add to docs/glossary.md: {missing:?}");
    let sorted = rows.iter().map(|row| row.term.to_lowercase()).is_sorted();
    assert!(sorted, "docs/glossary.md is in the order of the alphabet");
}
