//! What differs between the results of two tools, so that it can be looked up: the symbol, both
//! values, the first line.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::tool::Outcome;

/// More would not be read.
const MOST: usize = 12;

/// Nothing when all is equal: status, both outputs, every file. `ours` and `theirs` are what the
/// tools are called.
#[must_use]
pub fn difference(ours: (&str, &Outcome), theirs: (&str, &Outcome)) -> Option<String> {
    let names = (ours.0, theirs.0);
    let (ours, theirs) = (ours.1, theirs.1);
    let mut said = String::new();
    if ours.code != theirs.code {
        writeln!(said, "  exit status: {} {:?}, {} {:?}", names.0, ours.code, names.1, theirs.code).unwrap();
    }
    bytes(&mut said, "standard output", names, &ours.stdout, &theirs.stdout);
    bytes(&mut said, "standard error", names, &ours.stderr, &theirs.stderr);
    for name in ours.files.keys().filter(|name| !theirs.files.contains_key(*name)).take(MOST) {
        writeln!(said, "  {name}: only {} wrote it", names.0).unwrap();
    }
    for (name, expected) in &theirs.files {
        match ours.files.get(name) {
            None => writeln!(said, "  {name}: only {} wrote it", names.1).unwrap(),
            Some(found) => bytes(&mut said, name, names, found, expected),
        }
    }
    (!said.is_empty()).then_some(said)
}

fn bytes(said: &mut String, what: &str, names: (&str, &str), ours: &[u8], theirs: &[u8]) {
    if ours == theirs {
        return;
    }
    let (ours, theirs) = (String::from_utf8_lossy(ours), String::from_utf8_lossy(theirs));
    let (left, right) = (values(&ours), values(&theirs));
    let mut symbols: Vec<&String> = left.keys().chain(right.keys()).collect();
    symbols.sort();
    symbols.dedup();
    symbols.retain(|symbol| left.get(*symbol) != right.get(*symbol));
    if !symbols.is_empty() {
        writeln!(said, "  {what}: {} symbols differ", symbols.len()).unwrap();
    }
    for symbol in symbols.iter().take(MOST) {
        let value = |of: &BTreeMap<String, String>| of.get(*symbol).map_or("(not written)".to_owned(), Clone::clone);
        writeln!(said, "    {symbol}: {} {}, {} {}", names.0, value(&left), names.1, value(&right)).unwrap();
    }
    let (mut left, mut right) = (ours.lines(), theirs.lines());
    for number in 1.. {
        match (left.next(), right.next()) {
            (None, None) => {
                writeln!(said, "  {what}: the ends of lines differ").unwrap();
                break;
            }
            (found, expected) if found != expected => {
                let line = |of: Option<&str>| of.map_or("(no such line)".to_owned(), |line| format!("`{line}`"));
                writeln!(said, "  {what}:{number}: {}: {}", names.0, line(found)).unwrap();
                writeln!(said, "  {what}:{number}: {}: {}", names.1, line(expected)).unwrap();
                break;
            }
            _ => {}
        }
    }
}

/// Every symbol of a configuration with its value, `n` for those that are not set.
#[must_use]
pub fn values(text: &str) -> BTreeMap<String, String> {
    let value = |line: &str| {
        if let Some(name) = line.strip_prefix("# CONFIG_").and_then(|rest| rest.strip_suffix(" is not set")) {
            return Some((name.to_owned(), "n".to_owned()));
        }
        let (name, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    text.lines().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(config: &str) -> Outcome {
        let files = [(".config".to_owned(), config.as_bytes().to_vec())].into();
        Outcome { code: Some(0), stdout: Vec::new(), stderr: Vec::new(), files }
    }

    #[test]
    fn names_symbol_values_and_line() {
        let (ours, theirs) = (outcome("#\nCONFIG_A=y\nCONFIG_B=1\n"), outcome("#\nCONFIG_A=m\nCONFIG_C=2\n"));
        let said = difference(("ours", &ours), ("C", &theirs)).unwrap();
        for part in ["3 symbols", "A: ours y, C m", "B: ours 1, C (not written)", ".config:2: ours: `CONFIG_A=y`"] {
            assert!(said.contains(part), "{part} is not in:\n{said}");
        }
        assert_eq!(difference(("ours", &ours), ("C", &ours)), None);
    }

    #[test]
    fn every_byte_and_file_and_the_status_count() {
        let plain = outcome("A\n");
        let mut other = outcome("A\r\n");
        assert!(difference(("a", &plain), ("b", &other)).unwrap().contains("ends of lines"));
        other = plain.clone();
        other.code = Some(1);
        assert!(difference(("a", &plain), ("b", &other)).unwrap().contains("exit status"));
        other = plain.clone();
        other.files.insert("x".into(), Vec::new());
        assert!(difference(("a", &plain), ("b", &other)).unwrap().contains("x: only b"));
        assert!(difference(("a", &other), ("b", &plain)).unwrap().contains("x: only a"));
    }
}
