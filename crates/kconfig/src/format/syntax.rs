//! Whether a file parses, taken alone: what it sources is empty, what its macros give is not known.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use super::lines::{Unit, UnitKind};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::dialect::Dialect;
use crate::env::Env;
use crate::source::{Files, Sources};
use crate::tree::Tree;

/// Errors that are about the form of the file; anything else needs the rest of the tree.
const ABOUT_FORM: &[&str] = &["K001", "K002", "K003", "K004", "K005", "K006", "K010"];

/// Errors that are about the order of lines: they count on lines with macros too.
const ABOUT_ORDER: &[&str] = &["K004", "K005"];

/// The file itself; every other one is empty.
struct Alone<'t> {
    path: &'t str,
    text: String,
}

impl Files for Alone<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        Ok(if path == self.path { self.text.clone().into_bytes() } else { Vec::new() })
    }

    fn list(&self, _: &str) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// Refuses a file that does not parse.
pub(super) fn check(path: &str, text: &str, units: &[Unit<'_>]) -> Result<(), Diagnostics> {
    let mut unknown = HashSet::new();
    let alone = Alone { path, text: without_macros(units, &mut unknown) };
    let Err(found) = Tree::load(path, &alone, &Env::empty().with_dialect(Dialect::ANY)) else { return Ok(()) };
    let is_certain = |finding: &&Diagnostic| {
        let line = finding.labels.first().map_or(0, |label| label.span.line as usize);
        finding.is_error()
            && ABOUT_FORM.contains(&finding.id)
            && (ABOUT_ORDER.contains(&finding.id) || !unknown.contains(&line))
    };
    let errors: Vec<Diagnostic> = found.iter().filter(is_certain).cloned().collect();
    if errors.is_empty() {
        return Ok(());
    }
    // Pictures show the file as it is.
    let mut sources = Sources::default();
    sources.add(path, text.as_bytes().to_vec());
    Err(Diagnostics::new(errors, Arc::new(sources)))
}

/// The file with a word in the place of each macro and without assignments, line by line.
fn without_macros(units: &[Unit<'_>], unknown: &mut HashSet<usize>) -> String {
    let mut text = String::new();
    for unit in units {
        let statement = if unit.kind == UnitKind::Help { 1 } else { unit.lines.len() };
        if unit.kind == UnitKind::Macro {
            // A comment, not an empty line: what follows is no help text any more.
            text.push_str(&"#\n".repeat(unit.lines.len()));
        } else if !matches!(unit.kind, UnitKind::Comment | UnitKind::Blank)
            && unit.lines[..statement].iter().any(|line| line.contains('$'))
        {
            let joined: String = unit.lines[..statement].iter().map(|line| line.trim_end_matches('\\')).collect();
            text.push_str(&replace_macros(&joined));
            text.push_str(&"\n".repeat(statement));
            unknown.extend(unit.number..unit.number + statement);
            unit.lines[statement..].iter().for_each(|line| text.extend([line, "\n"]));
        } else {
            unit.lines.iter().for_each(|line| text.extend([line, "\n"]));
        }
    }
    text
}

fn replace_macros(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(at) = rest.find("$(") {
        out.push_str(&rest[..at]);
        out.push_str("MACRO");
        let mut depth = 0_usize;
        let end = rest[at + 1..].find(|letter| {
            match letter {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        rest = end.map_or("", |end| &rest[at + 1 + end + 1..]);
    }
    out + rest
}
