//! Typed files with a schema and its version: what one phase hands to the next, and what a host says of itself.
//!
//! Checked when written and when read, by the same rules; each mistake has its place. This room judges text: it reads and writes nothing.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Class, Error, Result};

/// A kind of file. Its type has a field `schema` and refuses unknown fields.
pub trait Document: Serialize + DeserializeOwned {
    /// Name and version of what this turnup reads and writes: `turnup.provision/1`.
    const SCHEMA: &'static str;
    /// What the file is, in an error: "the hand-off of the provision phase".
    const WHAT: &'static str;
    /// The command that writes it anew.
    const REMEDY: &'static str;
    /// The class of a mistake in it: [`Class::Config`] where a person writes such files.
    const CLASS: Class = Class::Person;
    /// What the types cannot say.
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

/// Parses and checks; `path` is only for the messages.
pub fn parse<D: Document>(path: &str, text: &str) -> Result<D> {
    match find(path, Some(text.as_bytes()))? {
        Found::There(document) => Ok(document),
        Found::Older(schema) => {
            let message = format!("{path}: {} is of an older turnup ({schema})", D::WHAT);
            Err(Error::new(D::CLASS, message).evidence(format!("this one reads {}", D::SCHEMA)).hint(D::REMEDY))
        }
        Found::Missing => Err(Error::bug(format!("{path} was read and is missing"))),
    }
}

/// The same for a file that may be missing, or of a version that whoever asks can make anew.
pub fn find<D: Document>(path: &str, bytes: Option<&[u8]>) -> Result<Found<D>> {
    let Some(bytes) = bytes else { return Ok(Found::Missing) };
    let value: Value = serde_json::from_slice(bytes).map_err(|error| mistake::<D>(path, &error))?;
    let schema = value.get("schema").and_then(Value::as_str);
    if schema != Some(D::SCHEMA) {
        return judge_version::<D>(path, schema);
    }
    // From the text once more: a value knows no places.
    let document: D = serde_json::from_slice(bytes).map_err(|error| mistake::<D>(path, &error))?;
    document.check(path)?;
    Ok(Found::There(document))
}

/// The file's text; refused when whoever reads it would refuse it.
pub fn render<D: Document>(path: &str, document: &D) -> Result<String> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|error| Error::bug(format!("{path} cannot be written as JSON")).source(error))?;
    parse::<D>(path, &text)?;
    Ok(text + "\n")
}

fn judge_version<D: Document>(path: &str, schema: Option<&str>) -> Result<Found<D>> {
    let (name, known) = divide(D::SCHEMA).unwrap_or((D::SCHEMA, 0));
    let Some(schema) = schema else {
        // Only files that we write ourselves were once without.
        if D::CLASS == Class::Person {
            return Ok(Found::Older("no schema".into()));
        }
        let message = format!("{path}: the field `schema` is missing, so this may be any file");
        return Err(Error::new(D::CLASS, message).hint(format!("add \"schema\": \"{}\"", D::SCHEMA)));
    };
    match divide(schema) {
        Some((found, version)) if found == name && version < known => Ok(Found::Older(schema.into())),
        Some((found, version)) if found == name && version > known => {
            let message = format!("{path}: {} is of a newer turnup ({schema})", D::WHAT);
            let error = Error::person(message).evidence(format!("this one reads {}", D::SCHEMA));
            Err(error.hint("use the turnup that wrote it, or a newer one; the file was not touched"))
        }
        _ => {
            let message = format!("{path}: schema {schema:?} is not that of {}", D::WHAT);
            Err(Error::new(D::CLASS, message).hint(format!("expected {:?}", D::SCHEMA)))
        }
    }
}

fn divide(schema: &str) -> Option<(&str, u32)> {
    let (name, version) = schema.rsplit_once('/')?;
    Some((name, version.parse().ok()?))
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
        fn check(&self, path: &str) -> Result<()> {
            if self.weight > 0 { Ok(()) } else { Err(Error::person(format!("{path}: weighs nothing"))) }
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
    }

    #[test]
    fn older_ones_can_be_made_anew_by_whoever_looks() {
        let found = |text: &str| find::<Fruit>("f", Some(text.as_bytes())).unwrap();
        assert_eq!(found(r#"{"schema": "test.fruit/1"}"#), Found::Older("test.fruit/1".into()));
        assert_eq!(found("{}"), Found::Older("no schema".into()));
        assert_eq!(find::<Fruit>("f", None).unwrap(), Found::Missing);
    }
}
