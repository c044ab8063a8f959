//! The documents: commands in them exist, links lead somewhere, the README stays short, and the
//! words are plain.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::tidy::{accept, commands, files, none, read, root};

/// Documents in which commands stand as one would type them.
const GUIDES: [&str; 7] = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/configuration.md",
    "docs/day-by-day.md",
    "docs/failures.md",
    "docs/getting-started.md",
    "docs/local.md",
];

#[test]
fn commands_in_the_readme_and_the_guides_exist() {
    let makefile = read("Makefile");
    let (mut turnup, mut make) = (0, 0);
    for file in GUIDES {
        for command in commands(&read(file)) {
            if let Some(arguments) = command.strip_prefix("turnup ") {
                turnup += 1;
                accept(arguments);
            } else if let Some(target) = command.strip_prefix("make ") {
                make += 1;
                let name = target.split_whitespace().next().unwrap_or_default();
                assert!(makefile.contains(&format!("\n{name}:")), "{file}: no target in the Makefile: {command}");
            }
        }
    }
    assert!(turnup > 30 && make > 20, "found only {turnup} commands of turnup and {make} of make");
}

#[test]
fn the_readme_is_the_first_ten_minutes_and_names_the_tests() {
    let text = read("README.md");
    assert!(text.lines().count() <= 200, "README.md has {} lines: move some to docs/", text.lines().count());
    for command in ["make up", "make test", "make check"] {
        assert!(text.lines().any(|line| line.starts_with(command)), "README.md does not show {command}");
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut documents = files(&["docs"], ".md");
    documents.extend(["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(str::to_owned));
    let mut broken = Vec::new();
    for file in &documents {
        let text = read(file);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            if path.contains("://") {
                continue;
            }
            let dir = Path::new(file).parent().unwrap_or(Path::new(""));
            let target = if path.is_empty() { PathBuf::from(file) } else { dir.join(path) };
            if !root().join(&target).exists() {
                broken.push(format!("{file}: {link}"));
            } else if !anchor.is_empty() && !anchors(&target.to_string_lossy()).contains(anchor) {
                broken.push(format!("{file}: {link}: no such heading"));
            }
        }
    }
    none(&broken, "correct the links");
    let index = read("docs/README.md");
    let lost = files(&["docs"], ".md").into_iter().map(|file| file.replace("docs/", ""));
    none(
        &lost.filter(|file| !index.contains(&format!("({file})")) && file != "README.md").collect::<Vec<_>>(),
        "list in docs/README.md",
    );
}

/// The anchors of the headings of a document, as they are made from the text of a heading.
fn anchors(file: &str) -> BTreeSet<String> {
    let text = read(file);
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let is_kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    headings.map(|text| text.to_lowercase().chars().filter(is_kept).collect::<String>().replace(' ', "-")).collect()
}

/// Words that stand in place of the one who acts, and one that SREs do not write.
const RIDDLES: [&str; 8] = ["nobody", "somebody", "whoever", "anew", "a person", "anybody", "everybody", "begun"];

/// What a reader of English stumbles over where the field has a word of its own.
const STUMBLES: [(&str, &str); 19] = [
    ("turn it up", "turnup up, create"),
    ("largest packet", "MTU"),
    ("silence until", "grace period"),
    ("encrypt the way", "TLS to the server"),
    ("in peace", "soft eviction"),
    ("idle time until", "idle timeout"),
    ("reading requests at a time", "requests in flight"),
    ("of one node of memory", "NUMA"),
    ("a cluster does not notice", "nothing depends on it"),
    ("made again", "recreated, redone"),
    ("taken back", "undone, reclaimed"),
    ("take it\"", "OK"),
    ("leave it\"", "cancel"),
    ("nothing stands in the way", "it can be set now"),
    ("is right\"", "is valid"),
    ("no way was found", "no answers lead to it"),
    ("it is so already", "it has this value already"),
    ("what is said above", "say it"),
    ("which is n ", "not met"),
];

#[test]
fn prompts_help_and_the_wizard_use_the_words_of_the_field() {
    let mut texts = files(&["phases"], "Kconfig");
    texts.extend(["docs/wizard.md", "docs/configuration.md"].map(str::to_owned));
    texts.extend(files(&["src/wizard", "src/cli/config"], ".rs"));
    let mut found = Vec::new();
    for file in texts {
        // As one line, as a reader has it; comments of code are about code.
        let text = read(&file);
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("//"));
        let text = lines.collect::<Vec<_>>().join(" ").to_lowercase();
        let stumbles = STUMBLES.iter().filter(|(phrase, _)| text.contains(phrase));
        found.extend(stumbles.map(|(phrase, better)| format!("{file}: {phrase}: say {better}")));
    }
    none(&found, "use the word of the field");
}

#[test]
fn documents_code_and_messages_say_who_does_what() {
    let mut texts = files(&["docs"], ".md");
    texts.extend(["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(str::to_owned));
    texts.extend(files(&["src", "crates"], ".rs"));
    texts.extend(files(&["phases"], "Kconfig"));
    texts.extend(files(&["schemas"], ".json"));
    let mut found = Vec::new();
    for file in texts {
        let text = read(&file);
        // The word of earlier versions in a file of theirs.
        let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with(" │") && !line.contains("\"begun\""));
        for (number, line) in lines {
            let words: Vec<String> =
                line.split(|letter: char| !letter.is_alphanumeric()).map(str::to_lowercase).collect();
            let spoken = format!(" {} ", words.join(" "));
            let riddles = RIDDLES.iter().filter(|word| spoken.contains(&format!(" {word} ")));
            found.extend(riddles.map(|word| format!("{file}:{}: {word}", number + 1)));
        }
    }
    none(&found, "name who acts: turnup, the operator, another user, the cloud; `started` in place of `begun`");
}
