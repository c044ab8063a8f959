//! Which format each text of a document has, by its place in it.
//!
//! A place is written as it is reached: `hosts[].ssh.user` is a member of each element of a list,
//! `objects.*` every value of a map. The formats are those of the configuration (`crate::format`).
//! A list or map may have one format as a whole: `map(label-key, label-value)`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::format::Format;
use crate::json::PathStep;
use crate::terminal;
use crate::unknown;

/// The places of a document with their formats.
#[derive(Clone, Debug, Default)]
pub struct Fields(BTreeMap<String, &'static str>);

/// A text that has not its format.
pub(super) struct Mistake {
    pub(super) path: Vec<PathStep>,
    /// As people read it: `hosts[0].ssh.user of rack-1`.
    pub(super) place: String,
    pub(super) why: String,
}

/// The longest part of a text that a message repeats.
const LONGEST: usize = 300;

impl Fields {
    /// These places with their formats.
    #[must_use]
    pub fn new(fields: &[(&str, &'static str)]) -> Self {
        Self(fields.iter().map(|(place, format)| ((*place).to_owned(), *format)).collect())
    }

    /// And those of another document at this place.
    #[must_use]
    pub fn with(mut self, place: &str, inner: Self) -> Self {
        self.0.extend(inner.0.into_iter().map(|(below, format)| (format!("{place}.{below}"), format)));
        self
    }

    /// And those of this one.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// With another format at this place.
    #[must_use]
    pub fn but(mut self, place: &str, format: &'static str) -> Self {
        self.0.insert(place.to_owned(), format);
        self
    }

    /// Each place with its format.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.0.iter().map(|(place, format)| (place.as_str(), *format))
    }

    /// These formats, ready to judge with. An error is a defect of ours.
    pub(super) fn parse(&self) -> Result<Formats> {
        let mut root = Formats::default();
        for (place, format) in &self.0 {
            let format = format.parse().map_err(|why| Error::bug(format!("{place}: {why}")))?;
            let steps = place.replace("[]", ".[]");
            let steps = steps.split('.').filter(|step| !step.is_empty());
            steps.fold(&mut root, |at, step| at.below.entry(step.to_owned()).or_default()).format = Some(format);
        }
        Ok(root)
    }
}

/// The format of a place, and the places below it: by member, `*` for all other members of a map,
/// `[]` for all elements of a list.
#[derive(Debug, Default)]
pub(super) struct Formats {
    format: Option<Format>,
    below: BTreeMap<String, Self>,
}

impl Formats {
    /// Everything that has not its format. An error is a defect of ours: a text that has none.
    pub(super) fn find_mistakes(&self, value: &Value) -> Result<Vec<Mistake>> {
        let mut walk = Walk { path: Vec::new(), names: Vec::new(), mistakes: Vec::new() };
        walk.judge(Some(self), value)?;
        Ok(walk.mistakes)
    }

    fn member(&self, key: &str) -> Option<&Self> {
        self.below.get(key).or_else(|| self.below.get("*"))
    }
}

struct Walk<'v> {
    path: Vec<Step<'v>>,
    /// What the objects around say that they are called.
    names: Vec<&'v str>,
    mistakes: Vec<Mistake>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step<'v> {
    Key(&'v str),
    Index(usize),
}

impl<'v> Walk<'v> {
    fn judge(&mut self, formats: Option<&Formats>, value: &'v Value) -> Result<()> {
        if value.is_null() || value.as_str().is_some_and(unknown::is_whole) {
            return Ok(());
        }
        if let Some(format) = formats.and_then(|formats| formats.format.as_ref()) {
            // Content may have a structure of its own.
            if *format != Format::Content
                && let Err(why) = format.validate_json(value)
            {
                self.add(why);
            }
            return Ok(());
        }
        match value {
            Value::Object(members) => {
                let name = members.get("name").and_then(Value::as_str).filter(|_| !self.path.is_empty());
                self.names.extend(name);
                for (key, member) in members {
                    self.path.push(Step::Key(key));
                    if key.contains(terminal::is_control) {
                        self.add("the key holds a control character".to_owned());
                    }
                    self.judge(formats.and_then(|formats| formats.member(key)), member)?;
                    self.path.pop();
                }
                self.names.truncate(self.names.len() - usize::from(name.is_some()));
                Ok(())
            }
            Value::Array(items) => {
                let formats = formats.and_then(|formats| formats.below.get("[]"));
                for (index, item) in items.iter().enumerate() {
                    self.path.push(Step::Index(index));
                    self.judge(formats, item)?;
                    self.path.pop();
                }
                Ok(())
            }
            Value::String(_) => Err(Error::bug(format!("the field {} of a document has no format", self.place()))),
            _ => Ok(()),
        }
    }

    /// Where the walk is, as people read it.
    fn place(&self) -> String {
        let mut place = String::new();
        for step in &self.path {
            match step {
                Step::Key(key) if place.is_empty() => place.push_str(key),
                Step::Key(key) => place.extend([".", key]),
                Step::Index(index) => place.extend(["[", &index.to_string(), "]"]),
            }
        }
        place
    }

    fn add(&mut self, why: String) {
        let mut place = self.place();
        let is_name = self.path.last() == Some(&Step::Key("name"));
        if let Some(name) = self.names.last().filter(|_| !is_name) {
            place.extend([" of ", name]);
        }
        let shorten = |text: String| match text.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        };
        let path = self.path.iter().map(|step| match *step {
            Step::Key(key) => PathStep::Key(key.to_owned()),
            Step::Index(index) => PathStep::Index(index),
        });
        self.mistakes.push(Mistake { path: path.collect(), place: shorten(place), why: shorten(why) });
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use serde_json::json;

    use super::*;

    fn mistakes(value: &Value) -> Vec<String> {
        let fields = Fields::new(&[
            ("hosts[].name", "dns-label"),
            ("hosts[].ssh.user", "login-name"),
            ("hosts[].labels", "map(label-key, label-value)"),
            ("objects.*.said[]", "text"),
        ]);
        let found = fields.parse().unwrap().find_mistakes(value).unwrap();
        found.into_iter().map(|mistake| format!("{}: {}", mistake.place, mistake.why)).collect()
    }

    #[test]
    fn every_text_is_judged_by_the_format_of_its_place() {
        let good = json!({
            "hosts": [{"name": "a", "ssh": {"user": "root", "port": 22}, "labels": {"a": "b"}}, {"name": "b", "ssh": null}],
            "objects": {"one": {"said": ["a b"]}, "two": {"said": []}},
        });
        assert!(mistakes(&good).is_empty());
        let mut wrong = good;
        wrong["hosts"][0]["ssh"]["user"] = json!("-oProxyCommand=id");
        wrong["hosts"][0]["labels"]["x"] = json!("a\nb");
        wrong["hosts"][1]["name"] = json!("B".repeat(1000));
        wrong["objects"]["one"]["said"] = json!(["fine", "\u{1b}[2J"]);
        wrong["objects"]["th\nree"] = json!({"said": []});
        let found = mistakes(&wrong);
        assert_eq!(found.len(), 5, "{found:#?}");
        assert!(found[0].starts_with("hosts[0].ssh.user of a: `-oProxyCommand=id` is not valid; expected a login"));
        assert!(found[1].starts_with("hosts[0].labels of a: value of `x`: "), "{found:#?}");
        assert!(found[2].len() < 2 * LONGEST + 50, "{}", found[2]);
        assert!(found[3].starts_with("objects.one.said[1]: "), "{found:#?}");
        assert_eq!(found[4], "objects.th\nree: the key holds a control character");
        let words = json!({"hosts": [{"name": "(known after provision/apply)"}]});
        assert_eq!(mistakes(&words).len(), 1, "these words are no placeholder");
        let apply = crate::step_id::StepId::of("provision", "apply");
        let placeholder = json!({"hosts": [{"name": unknown::after(&apply)}]});
        assert!(mistakes(&placeholder).is_empty(), "only a plan has one");
    }

    #[test]
    fn a_text_without_a_format_is_a_defect_of_ours() {
        let formats = Fields::new(&[("a", "text")]).parse().unwrap();
        let error = formats.find_mistakes(&json!({"a": "", "b": {"c": ["x"]}})).err().unwrap();
        assert_eq!(error.message(), "the field b.c[0] of a document has no format");
        assert!(Fields::new(&[("a", "txet")]).parse().is_err());
    }
}
