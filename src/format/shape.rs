//! Lists, maps and records: as text, which Kconfig holds, and as JSON, which the file has.
//!
//! A list is `a,b` and `["a", "b"]`, a map `k=v,l=w` and `{"k": "v", "l": "w"}`; records are JSON
//! in both.

use serde_json::{Map, Value};

use super::kind::{Field, Format};

impl Format {
    /// Whether a value is an array or an object in JSON.
    #[must_use]
    pub const fn is_structured(&self) -> bool {
        matches!(self, Self::List(_) | Self::Map(..) | Self::Records(_))
    }

    /// Whether a text is the name of one file of this machine.
    #[must_use]
    pub fn is_of_a_file(&self) -> bool {
        match self {
            Self::File => true,
            Self::Any(formats) => formats.iter().any(Self::is_of_a_file),
            _ => false,
        }
    }

    /// Records in a few words, by their keys: `2: web, gpu`. None for other formats, and for a text
    /// that is no list of objects.
    #[must_use]
    pub(crate) fn summarize(&self, text: &str) -> Option<String> {
        let Self::Records(fields) = self else { return None };
        let records: Vec<Map<String, Value>> = serde_json::from_str(text).ok()?;
        let key = &fields.first()?.name;
        let names: Vec<&str> = records.iter().filter_map(|record| record.get(key)?.as_str()).collect();
        Some(if records.is_empty() { "none".to_owned() } else { format!("{}: {}", records.len(), names.join(", ")) })
    }

    /// The JSON of a text; one that is not valid stays the text that it is.
    #[must_use]
    pub fn to_json(&self, text: &str) -> Value {
        let text_of = || Value::String(text.to_owned());
        match self {
            Self::List(element) => parts(text).map(|part| element.to_json(part)).collect(),
            Self::Map(_, value) => {
                let pair = |part: &str| {
                    let (key, content) = part.split_once('=')?;
                    Some((key.to_owned(), value.to_json(content)))
                };
                parts(text).map(pair).collect::<Option<Map<_, _>>>().map_or_else(text_of, Value::Object)
            }
            Self::Records(_) => serde_json::from_str(text).unwrap_or_else(|_| text_of()),
            Self::Int(..) => text.parse::<i64>().map_or_else(|_| text_of(), Value::from),
            Self::Bool => text.parse::<bool>().map_or_else(|_| text_of(), Value::from),
            _ => text_of(),
        }
    }

    /// The text of a JSON value, or what was expected instead. Whether the text is valid is another
    /// question.
    pub fn to_text(&self, value: &Value) -> Result<String, String> {
        match (self, value) {
            (Self::List(element), Value::Array(items)) => {
                items.iter().map(|item| element.part_to_text(item)).collect::<Result<Vec<_>, _>>().map(|v| v.join(","))
            }
            (Self::List(_), _) => Err("a list in brackets, such as [\"a\", \"b\"]".to_owned()),
            (Self::Map(_, content), Value::Object(pairs)) => {
                let pair = |(key, item): (&String, &Value)| Ok(format!("{key}={}", content.part_to_text(item)?));
                pairs.iter().map(pair).collect::<Result<Vec<_>, String>>().map(|pairs| pairs.join(","))
            }
            (Self::Map(..), _) => Err("an object in braces, such as {\"key\": \"value\"}".to_owned()),
            (Self::Records(_), Value::Array(_)) => Ok(value.to_string()),
            (Self::Records(_), _) => Err("a list of objects, such as [{\"name\": …}]".to_owned()),
            (Self::Int(..), Value::Number(number)) if number.is_i64() => Ok(number.to_string()),
            (Self::Int(..), _) => Err("a whole number without quotes".to_owned()),
            (Self::Bool, Value::Bool(on)) => Ok(on.to_string()),
            (Self::Bool, _) => Err("true or false".to_owned()),
            (_, Value::String(text)) => Ok(text.clone()),
            _ => Err("a string in quotes".to_owned()),
        }
    }

    /// The same for a member of a list or map, which in text ends at a comma.
    fn part_to_text(&self, value: &Value) -> Result<String, String> {
        let text = self.to_text(value).map_err(|expected| format!("a list or map in which each is {expected}"))?;
        if text.contains(',') { Err("a list or map without commas in its values".to_owned()) } else { Ok(text) }
    }

    /// What is wrong with a JSON value that stands in a record.
    pub(crate) fn validate_json(&self, value: &Value) -> Result<(), String> {
        match (self, value) {
            (Self::Any(formats), _) if formats.iter().any(|format| format.validate_json(value).is_ok()) => Ok(()),
            (Self::List(element), Value::Array(items)) => number_errors(items, |item| element.validate_json(item)),
            // One by one: as text they would lose the blanks around them before they are judged.
            (Self::Map(key, content), Value::Object(pairs)) => pairs.iter().try_for_each(|(name, item)| {
                key.validate(name).map_err(|why| format!("key `{name}`: {why}"))?;
                content.validate_json(item).map_err(|why| format!("value of `{name}`: {why}"))
            }),
            _ => {
                let text = self.to_text(value).map_err(|expected| format!("must be {expected}"))?;
                self.validate(&text)
            }
        }
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(move |_| !text.is_empty())
}

/// Judges elements and says which one is wrong, counted from 1.
fn number_errors<T>(items: &[T], judge: impl Fn(&T) -> Result<(), String>) -> Result<(), String> {
    items.iter().zip(1..).try_for_each(|(item, number)| judge(item).map_err(|why| format!("element {number}: {why}")))
}

pub(super) fn validate_list(text: &str, element: &Format) -> Result<(), String> {
    number_errors(&parts(text).collect::<Vec<_>>(), |part| element.validate(part))
}

pub(super) fn validate_map(text: &str, key: &Format, value: &Format) -> Result<(), String> {
    let mut seen = Vec::new();
    for part in parts(text) {
        let Some((name, content)) = part.split_once('=') else {
            return Err(format!("`{part}` is not KEY=VALUE"));
        };
        if seen.contains(&name) {
            return Err(format!("key `{name}` occurs twice"));
        }
        key.validate(name).map_err(|why| format!("key `{name}`: {why}"))?;
        value.validate(content).map_err(|why| format!("value of `{name}`: {why}"))?;
        seen.push(name);
    }
    Ok(())
}

pub(super) fn validate_records(text: &str, fields: &[Field]) -> Result<(), String> {
    let expected = || Format::Records(fields.to_vec());
    let items = match serde_json::from_str(text) {
        Ok(Value::Array(items)) => items,
        Ok(_) => return Err(format!("it is no JSON list; expected {}", expected())),
        Err(error) => return Err(format!("it is no JSON ({error}); expected {}", expected())),
    };
    let mut keys = Vec::new();
    for (item, number) in items.iter().zip(1..) {
        let key = fields.first().and_then(|field| item.get(&field.name)).map(text_of).unwrap_or_default();
        let shown = if key.is_empty() { format!("element {number}") } else { format!("element {number} (`{key}`)") };
        validate_record(item, fields).map_err(|why| format!("{shown}: {why}"))?;
        if let Some(first) = keys.iter().position(|known| *known == key) {
            let name = fields.first().map_or("key", |field| field.name.as_str());
            return Err(format!("{shown}: element {} has this {name} already", first + 1));
        }
        keys.push(key);
    }
    Ok(())
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn validate_record(item: &Value, fields: &[Field]) -> Result<(), String> {
    let Value::Object(members) = item else { return Err("must be an object in braces".to_owned()) };
    for (name, value) in members {
        let Some(field) = fields.iter().find(|field| field.name == *name) else {
            let near = kconfig::suggest(name, fields.iter().map(|field| field.name.as_str()));
            let advice = near.map_or_else(
                || format!("; there are {}", fields.iter().map(|f| f.name.as_str()).collect::<Vec<_>>().join(", ")),
                |near| format!("; did you mean `{near}`?"),
            );
            return Err(format!("there is no field `{name}`{advice}"));
        };
        field.format.validate_json(value).map_err(|why| format!("{name}: {why}"))?;
    }
    let absent = fields.iter().find(|field| field.required && !members.contains_key(&field.name));
    absent.map_or(Ok(()), |field| Err(format!("`{}` is missing: {}", field.name, field.format)))
}
