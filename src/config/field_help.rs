//! What the help text of a setting with records says of one field.
//!
//! A part of it begins with the names of one or several fields and two blanks, and ends before the
//! next such line or at a line that is not indented deeper.

use crate::format::Field;

/// The text about this field in one line; none where the help says nothing of it.
#[must_use]
pub fn field_help(fields: &[Field], help: &str, name: &str) -> Option<String> {
    let mut found: Option<(usize, Vec<&str>)> = None;
    for line in help.lines() {
        let depth = line.len() - line.trim_start().len();
        match (&mut found, head(fields, line)) {
            (None, Some((names, rest))) if names.contains(&name) => found = Some((depth, vec![rest])),
            (Some((outer, parts)), None) if depth > *outer && !line.trim().is_empty() => parts.push(line.trim()),
            (Some(_), _) => break,
            (None, _) => {}
        }
    }
    let text = found?.1.join(" ");
    Some(text.trim().to_owned())
}

/// The fields that a line begins to tell about, and what it says.
fn head<'l>(fields: &[Field], line: &'l str) -> Option<(Vec<&'l str>, &'l str)> {
    let line = line.trim_start();
    let (names, rest) = line.split_once("  ").unwrap_or((line, ""));
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let is_field = |name: &&str| fields.iter().any(|field| field.name == **name);
    names.iter().all(is_field).then(|| (names, rest.trim()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::config::{Schema, TreeSource};
    use crate::format::Format;

    const HELP: &str = "The hosts.\n\nname    The host.\nuser, port\n        Where they are\n        others.\nzone    A\n        \
                        label.\n\nname the hosts well.\n";

    #[test]
    fn every_field_of_our_records_is_explained() {
        let schema = Schema::load(&TreeSource::embedded()).unwrap();
        let mut silent = Vec::new();
        for (symbol, entry) in schema.tree().symbols() {
            let Some(Format::Records(fields)) = &schema.rule(symbol).format else { continue };
            let help = entry.nodes.iter().find_map(|node| schema.tree().help(*node)).unwrap();
            let silent_here = fields.iter().filter(|field| field_help(fields, &help, &field.name).is_none());
            silent.extend(silent_here.map(|field| format!("{} {}", entry.name, field.name)));
        }
        assert_eq!(silent, Vec::<String>::new());
    }

    #[test]
    fn each_field_has_its_part_of_the_help() {
        let field = |name: &str| Field { name: name.into(), required: false, format: "text".parse().unwrap() };
        let fields: Vec<Field> = ["name", "user", "port", "zone", "disk"].map(field).into();
        let told: Vec<Option<String>> = fields.iter().map(|field| field_help(&fields, HELP, &field.name)).collect();
        let told: Vec<Option<&str>> = told.iter().map(Option::as_deref).collect();
        assert_eq!(
            told,
            [Some("The host."), Some("Where they are others."), Some("Where they are others."), Some("A label."), None]
        );
    }
}
