//! Typed files with a schema and its version: what one phase hands to the next, and facts of a
//! host.
//!
//! Checked when written and when read, by the same rules, also where another party wrote the file:
//! every text in it has a format ([`Fields`]), and each mistake has its place. This module judges
//! text: it reads and writes nothing.

mod fields;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Class, Error, Result};
use crate::json;

pub use fields::Fields;
use fields::{Formats, Mistake};

/// A kind of file. Its type has a field `schema` and refuses unknown fields.
pub trait Document: Serialize + DeserializeOwned {
    /// Name and version of what this turnup reads and writes: `turnup.provision/1`.
    const SCHEMA: &'static str;
    /// What the file is, in an error: "the inventory of the provision phase".
    const WHAT: &'static str;
    /// The command that recreates it.
    const REMEDY: &'static str;
    /// The class of a mistake in it: [`Class::Config`] where users write such files.
    const CLASS: Class = Class::Precondition;
    /// The format of every text in it. A text without one is refused, so that a new field cannot do
    /// without.
    fn fields() -> Fields;
    /// What types and formats cannot say.
    fn check(&self, _path: &str) -> Result<()> {
        Ok(())
    }
}

/// What was found where a document should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<D> {
    /// No file.
    Missing,
    /// One of an earlier version, and which.
    Older(String),
    /// A good one.
    There(D),
}

/// Parses and checks; `path` is only for the messages. In a plan a text may be a placeholder
/// (`unknown`), which no file of another party can have.
pub fn parse<D: Document>(path: &str, text: &str) -> Result<D> {
    match find(path, Some(text.as_bytes()))? {
        Found::There(document) => Ok(document),
        Found::Older(schema) => Err(older::<D>(path, &schema)),
        Found::Missing => Err(Error::bug(format!("{path} was read and is missing"))),
    }
}

/// Takes over what is no file: what a program printed, or what a setting lists. `shown` names it in
/// messages.
pub fn from_value<D: Document>(shown: &str, value: &Value) -> Result<D> {
    let document = from_incomplete(shown, value)?;
    D::check(&document, shown)?;
    Ok(document)
}

/// The same where something is still to be added before [`Document::check`] holds: nothing but the
/// formats is checked.
pub fn from_incomplete<D: Document>(shown: &str, value: &Value) -> Result<D> {
    let schema = value.get("schema").and_then(Value::as_str);
    if schema != Some(D::SCHEMA)
        && let Found::Older(schema) = judge_version::<D>(shown, schema)?
    {
        return Err(older::<D>(shown, &schema));
    }
    let document = D::deserialize(value).map_err(|error| {
        Error::new(D::CLASS, format!("{shown}: {error}")).evidence(format!("it is {}", D::WHAT)).hint(D::REMEDY)
    })?;
    refuse_mistakes::<D>(shown, None, value)?;
    Ok(document)
}

/// The same for a file that may be missing, or of a version that the caller can recreate.
pub fn find<D: Document>(path: &str, bytes: Option<&[u8]>) -> Result<Found<D>> {
    let Some(bytes) = bytes else { return Ok(Found::Missing) };
    let value: Value = serde_json::from_slice(bytes).map_err(|error| mistake::<D>(path, &error))?;
    let schema = value.get("schema").and_then(Value::as_str);
    if schema != Some(D::SCHEMA) {
        return judge_version::<D>(path, schema);
    }
    // From the text once more: a value knows no places.
    let document: D = serde_json::from_slice(bytes).map_err(|error| mistake::<D>(path, &error))?;
    refuse_mistakes::<D>(path, std::str::from_utf8(bytes).ok(), &value)?;
    document.check(path)?;
    Ok(Found::There(document))
}

/// The file's text; refused when a reader would refuse it.
pub fn render<D: Document>(path: &str, document: &D) -> Result<String> {
    let cannot = |error| Error::bug(format!("{path} cannot be written as JSON")).source(error);
    let value = serde_json::to_value(document).map_err(cannot)?;
    if value.get("schema").and_then(Value::as_str) != Some(D::SCHEMA) {
        return Err(Error::bug(format!("{path} is to be written without the schema {}", D::SCHEMA)));
    }
    refuse_mistakes::<D>(path, None, &value)?;
    document.check(path)?;
    Ok(serde_json::to_string_pretty(document).map_err(cannot)? + "\n")
}

fn judge_version<D: Document>(path: &str, schema: Option<&str>) -> Result<Found<D>> {
    let (name, known) = divide(D::SCHEMA).unwrap_or((D::SCHEMA, 0));
    let Some(schema) = schema else {
        // Only files that we write ourselves were once without.
        if D::CLASS == Class::Precondition {
            return Ok(Found::Older("no schema".into()));
        }
        let message = format!("{path}: the field `schema` is missing, so this may be any file");
        return Err(Error::new(D::CLASS, message).hint(format!("add \"schema\": \"{}\"", D::SCHEMA)));
    };
    match divide(schema) {
        Some((found, version)) if found == name && version < known => Ok(Found::Older(schema.into())),
        Some((found, version)) if found == name && version > known => {
            let message = format!("{path}: {} is of a newer turnup ({schema})", D::WHAT);
            let error = Error::precondition(message).evidence(format!("this one reads {}", D::SCHEMA));
            Err(error.hint("use the turnup that wrote it, or a newer one; the file was not touched"))
        }
        _ => {
            let message = format!("{path}: schema {schema:?} is not that of {}", D::WHAT);
            Err(Error::new(D::CLASS, message).hint(format!("expected {:?}", D::SCHEMA)))
        }
    }
}

fn older<D: Document>(path: &str, schema: &str) -> Error {
    let message = format!("{path}: {} is of an older turnup ({schema})", D::WHAT);
    Error::new(D::CLASS, message).evidence(format!("this one reads {}", D::SCHEMA)).hint(D::REMEDY)
}

fn divide(schema: &str) -> Option<(&str, u32)> {
    let (name, version) = schema.rsplit_once('/')?;
    Some((name, version.parse().ok()?))
}

/// An error unless every text of this JSON has its format, for a file that is no [`Document`]: one
/// without a schema.
pub fn require_formats(fields: &Fields, shown: &str, text: &str) -> Result<()> {
    let value = serde_json::from_str(text).map_err(|error| Error::precondition(format!("{shown}: {error}")))?;
    let lines = mistakes(&fields.parse()?, shown, Some(text), &value)?;
    let Some((first, others)) = lines.split_first() else { return Ok(()) };
    Err(Error::precondition(first).evidence_of(others).hint(format!("remove {shown}: the next run recreates it")))
}

/// The formats of a document, parsed once in a process: a forecast judges thousands of documents.
fn formats_of<D: Document>() -> Result<Arc<Formats>> {
    static KNOWN: LazyLock<Mutex<HashMap<&'static str, Arc<Formats>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(match known.entry(D::SCHEMA) {
        Entry::Occupied(entry) => Arc::clone(entry.get()),
        Entry::Vacant(entry) => Arc::clone(entry.insert(Arc::new(D::fields().parse()?))),
    })
}

/// The texts that have not their format, each in a line with its place.
fn mistakes(formats: &Formats, shown: &str, text: Option<&str>, value: &Value) -> Result<Vec<String>> {
    let line = |Mistake { path, place, why }| {
        let position = text.and_then(|text| json::locate(text, &path)).map(|at| format!(":{at}")).unwrap_or_default();
        format!("{shown}{position}: {place}: {why}")
    };
    Ok(formats.find_mistakes(value)?.into_iter().map(line).collect())
}

/// An error that names every text that has not its format: with its line and column when it stands
/// in this text of a file.
fn refuse_mistakes<D: Document>(shown: &str, text: Option<&str>, value: &Value) -> Result<()> {
    let lines = mistakes(&*formats_of::<D>()?, shown, text, value)?;
    let Some((first, others)) = lines.split_first() else { return Ok(()) };
    let error = Error::new(D::CLASS, first).evidence_of(others);
    let error = error.evidence(format!("it is {}; nothing of it was used", D::WHAT));
    Err(match D::CLASS {
        Class::Config => error.hint(format!("correct {shown}, then run the same command again")),
        _ => error.hint(D::REMEDY),
    })
}

fn mistake<D: Document>(path: &str, error: &serde_json::Error) -> Error {
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or_default();
    let message = format!("{path}:{}:{}: {said}", error.line(), error.column());
    let plain = Error::new(D::CLASS, message).evidence(format!("the file is {}", D::WHAT));
    match find_near(said) {
        Some(near) => plain.hint(format!("did you mean `{near}`?")),
        None => plain.hint(D::REMEDY),
    }
}

/// serde names what it did not know and all that it would have known, each between backticks.
fn find_near(said: &str) -> Option<String> {
    let unknown = said.strip_prefix("unknown field").or_else(|| said.strip_prefix("unknown variant"))?;
    let mut words = unknown.split('`').skip(1).step_by(2);
    let wrong = words.next()?;
    kconfig::suggest(wrong, words)
}

/// For the tests of each document: every text of a sample with what another party may write.
#[cfg(test)]
pub(crate) mod hostile {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::json::PathStep;

    const TEXTS: [&str; 9] =
        ["-oProxyCommand=id", "a\nb", "a\r", "\u{1b}[2J", "\u{9b}2J", "\u{202e}a", "a\0b", "\u{7f}", "a\tb"];

    /// Fails unless the sample has a text at every place of the document, is taken as it is, and
    /// each text with a control character is refused by its place, but at those places whose format
    /// is `content`.
    pub(crate) fn try_every_text<D: Document>(sample: &Value) {
        try_every_text_of::<D>(std::slice::from_ref(sample));
    }

    /// The same of a document that has one form or another: the samples have a text at every place
    /// together.
    pub(crate) fn try_every_text_of<D: Document>(samples: &[Value]) {
        let seen: BTreeSet<String> = samples.iter().flat_map(try_texts_of::<D>).collect();
        let missing: Vec<String> =
            D::fields().iter().map(|(place, _)| place.to_owned()).filter(|place| !seen.contains(place)).collect();
        assert!(missing.is_empty(), "not in the sample: {missing:?}");
    }

    /// The places at which this sample has a text.
    fn try_texts_of<D: Document>(sample: &Value) -> BTreeSet<String> {
        from_incomplete::<D>("sample", sample).unwrap();
        let mut seen = BTreeSet::new();
        let mut waiting = vec![(Vec::new(), String::new())];
        while let Some((path, place)) = waiting.pop() {
            let value = path.iter().fold(sample, |value, step| match step {
                PathStep::Key(key) => &value[key],
                PathStep::Index(at) => &value[*at],
            });
            match value {
                Value::Object(members) => waiting.extend(members.keys().map(|key| {
                    let dot = if place.is_empty() { "" } else { "." };
                    ([path.clone(), vec![PathStep::Key(key.clone())]].concat(), format!("{place}{dot}{key}"))
                })),
                Value::Array(items) => waiting.extend(
                    (0..items.len())
                        .map(|at| ([path.clone(), vec![PathStep::Index(at)]].concat(), format!("{place}[]"))),
                ),
                Value::String(_) => {
                    let fields = D::fields();
                    let fitting = fields.iter().filter(|(known, _)| is_at(known, &place));
                    let known = fitting.max_by_key(|(known, _)| known.len()).unwrap_or(("", "no format"));
                    seen.insert(known.0.to_owned());
                    for text in TEXTS {
                        let mut changed = sample.clone();
                        *path.iter().fold(&mut changed, |value, step| match step {
                            PathStep::Key(key) => &mut value[key],
                            PathStep::Index(at) => &mut value[*at],
                        }) = json!(text);
                        let is_taken = from_incomplete::<D>("sample", &changed).is_ok();
                        let is_free = ["text", "word", "path"].iter().any(|free| known.1.starts_with(free));
                        let may = known.1 == "content" || text.starts_with('-') && is_free;
                        assert!(!is_taken || may, "{place} ({}) takes {text:?}", known.1);
                    }
                }
                _ => {}
            }
        }
        seen
    }

    /// Whether a place with `*` for the keys of maps is this one, or that of a list or map that
    /// this one is in.
    fn is_at(known: &str, place: &str) -> bool {
        let (known, place) = (known.replace("[]", ".[]"), place.replace("[]", ".[]"));
        let (mut known, mut place) = (known.split('.'), place.split('.'));
        loop {
            match (known.next(), place.next()) {
                (None, _) => return true,
                (Some(known), Some(place)) if known == "*" || known == place => {}
                _ => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize, Serialize)]
    #[serde(deny_unknown_fields)]
    struct Fruit {
        schema: String,
        colour: String,
        weight: u32,
    }

    impl Document for Fruit {
        const SCHEMA: &'static str = "test.fruit/2";
        const WHAT: &'static str = "a fruit";
        const REMEDY: &'static str = "grow another one";
        fn fields() -> Fields {
            Fields::new(&[("schema", "text"), ("colour", "enum(red, green)")])
        }
        fn check(&self, path: &str) -> Result<()> {
            if self.weight > 0 { Ok(()) } else { Err(Error::precondition(format!("{path}: weighs nothing"))) }
        }
    }

    fn refused(text: &str) -> String {
        parse::<Fruit>("f.json", text).unwrap_err().render()
    }

    #[test]
    fn every_mistake_has_its_place_and_a_way_out() {
        let texts = [
            r#"{"schema": "test.fruit/2", "color": "red", "weight": 1}"#,
            r#"{"schema": "test.fruit/2", "colour": "red"}"#,
            r#"{"schema": "test.fruit/2", "colour": "red","#,
            r#"{"schema": "test.fruit/3", "taste": "sweet"}"#,
            r#"{"schema": "test.fruit/1"}"#,
            r#"{"schema": "test.stone/2"}"#,
            r#"{"colour": "red"}"#,
            r#"{"schema": "test.fruit/2", "colour": "red", "weight": 0}"#,
            "{\"schema\": \"test.fruit/2\",\n \"colour\": \"re\\nd\", \"weight\": 1}",
        ];
        insta::assert_snapshot!(texts.map(refused).join("\n\n"));
    }

    #[test]
    fn what_would_be_refused_is_not_written() {
        let fruit = |schema: &str, weight| Fruit { schema: schema.into(), colour: "red".into(), weight };
        let good = fruit(Fruit::SCHEMA, 1);
        assert_eq!(parse::<Fruit>("f", &render("f", &good).unwrap()).unwrap(), good);
        render("f", &fruit(Fruit::SCHEMA, 0)).unwrap_err();
        render("f", &fruit("test.fruit/1", 1)).unwrap_err();
        render("f", &Fruit { colour: "\x1b[2J".into(), ..fruit(Fruit::SCHEMA, 1) }).unwrap_err();
    }

    #[test]
    fn the_caller_can_recreate_older_ones() {
        let found = |text: &str| find::<Fruit>("f", Some(text.as_bytes())).unwrap();
        assert_eq!(found(r#"{"schema": "test.fruit/1"}"#), Found::Older("test.fruit/1".into()));
        assert_eq!(found("{}"), Found::Older("no schema".into()));
        assert_eq!(find::<Fruit>("f", None).unwrap(), Found::Missing);
    }
}
