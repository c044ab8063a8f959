//! The places of things in JSON text, so that a mistake can be pointed at. Knows nothing of
//! settings and documents.
//!
//! `serde_json` decides what is JSON; the scan after it only finds places in text that is known to
//! be well formed.

use std::fmt;

use serde_json::Value;

/// A place in a text file, counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in it.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A value that is no object, with its path through the objects around it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamedValue {
    /// The keys, from the outermost to the value's own.
    pub keys: Vec<String>,
    /// The value, never an object with members.
    pub value: Value,
    /// Where the value's own key stands.
    pub key_at: Position,
    /// Where the value stands.
    pub value_at: Position,
}

/// Why a text cannot be taken as an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Where.
    pub at: Position,
    /// What is wrong.
    pub message: String,
}

/// A key that occurs twice in one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Duplicate {
    /// The keys from the outermost to the one that is repeated.
    pub keys: Vec<String>,
    /// Where it stands first.
    pub first: Position,
    /// Where it stands again.
    pub again: Position,
}

/// Everything in an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct JsonText {
    /// The values in the order of the file.
    pub entries: Vec<NamedValue>,
    /// Keys that occur twice.
    pub duplicates: Vec<Duplicate>,
}

/// Reads an object.
pub(crate) fn parse(text: &str) -> Result<JsonText, Malformed> {
    let value: Value = serde_json::from_str(text).map_err(|error| malformed(text, &error))?;
    if !value.is_object() {
        let start = text.len() - text.trim_start().len();
        let message = format!("expected an object, `{{ … }}`, found {}", describe(&value));
        return Err(Malformed { at: position(text, start), message });
    }
    let mut scanner = Scanner { text, at: 0, document: JsonText::default() };
    scanner.skip_blanks();
    scanner.read_object(&mut Vec::new());
    Ok(scanner.document)
}

/// One step into a JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathStep {
    /// The member of an object with this key.
    Key(String),
    /// The element of a list, counted from 0.
    Index(usize),
}

/// Where the value stands to which these steps lead; nothing when they lead nowhere. The text must
/// be JSON.
pub(crate) fn locate(text: &str, path: &[PathStep]) -> Option<Position> {
    let mut scanner = Scanner { text, at: 0, document: JsonText::default() };
    scanner.skip_blanks();
    path.iter().try_for_each(|step| scanner.enter(step))?;
    Some(position(text, scanner.at))
}

/// What kind of JSON value this is, in words.
#[must_use]
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(bool) => format!("the boolean {bool}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn malformed(text: &str, error: &serde_json::Error) -> Malformed {
    if text.trim().is_empty() {
        return Malformed { at: Position { line: 1, column: 1 }, message: "the file is empty".to_owned() };
    }
    if text.starts_with('\u{feff}') {
        let message = "the file begins with a byte order mark; store it as plain UTF-8".to_owned();
        return Malformed { at: Position { line: 1, column: 1 }, message };
    }
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
    if first.starts_with("---") || (!first.starts_with(['{', '[', '"']) && first.contains(':')) {
        let message = "this looks like YAML; expected a JSON object, `{ … }`".to_owned();
        return Malformed { at: Position { line: 1, column: 1 }, message };
    }
    let full = error.to_string();
    let message = full.rsplit_once(" at line ").map_or(full.as_str(), |(message, _)| message);
    // serde_json counts bytes of the line; people count characters.
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let bytes = error.column().saturating_sub(1).min(line.len());
    let column = line.char_indices().take_while(|(at, _)| *at < bytes).count() + 1;
    Malformed { at: Position { line: error.line(), column }, message: message.to_owned() }
}

fn position(text: &str, offset: usize) -> Position {
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Position { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
}

/// Walks well-formed JSON.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
    document: JsonText,
}

impl Scanner<'_> {
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(b'}')
    }

    fn skip_blanks(&mut self) {
        while matches!(self.text.as_bytes().get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Steps over one character of punctuation and the blanks after it.
    fn skip_mark(&mut self) {
        self.at += 1;
        self.skip_blanks();
    }

    /// Goes from a value to the part of it that the step names.
    fn enter(&mut self, step: &PathStep) -> Option<()> {
        let (open, close) = if matches!(step, PathStep::Key(_)) { (b'{', b'}') } else { (b'[', b']') };
        if self.text.as_bytes().get(self.at) != Some(&open) {
            return None;
        }
        self.skip_mark();
        let mut index = 0;
        while self.text.as_bytes().get(self.at).is_some_and(|mark| *mark != close) {
            let is_here = match step {
                PathStep::Key(wanted) => {
                    let is_key = self.read_scalar().as_str() == Some(wanted);
                    self.skip_mark();
                    is_key
                }
                PathStep::Index(wanted) => index == *wanted,
            };
            if is_here {
                return Some(());
            }
            if matches!(self.peek(), b'{' | b'[') {
                self.skip_list();
            } else {
                self.read_scalar();
            }
            if self.peek() == b',' {
                self.skip_mark();
            }
            index += 1;
        }
        None
    }

    /// Reads `{ … }` and the blanks after it.
    fn read_object(&mut self, keys: &mut Vec<String>) {
        let mut seen: Vec<(String, Position)> = Vec::new();
        self.skip_mark();
        while self.peek() != b'}' {
            let key_at = position(self.text, self.at);
            let key = self.read_scalar().as_str().map(str::to_owned).unwrap_or_default();
            keys.push(key.clone());
            match seen.iter().find(|(name, _)| *name == key) {
                Some((_, first)) => {
                    self.document.duplicates.push(Duplicate { keys: keys.clone(), first: *first, again: key_at });
                }
                None => seen.push((key, key_at)),
            }
            self.skip_mark();
            self.read_member(keys, key_at);
            keys.pop();
            if self.peek() == b',' {
                self.skip_mark();
            }
        }
        self.skip_mark();
    }

    /// Reads the value of a member: an object's members one by one, anything else as it is.
    fn read_member(&mut self, keys: &mut Vec<String>, key_at: Position) {
        let value_at = position(self.text, self.at);
        let start = self.at;
        if self.peek() == b'{' {
            let before = self.document.entries.len();
            self.read_object(keys);
            // An object without members still claims its name.
            if self.document.entries.len() == before {
                let value = Value::Object(serde_json::Map::new());
                self.document.entries.push(NamedValue { keys: keys.clone(), value, key_at, value_at });
            }
            return;
        }
        let value = if self.peek() == b'[' {
            self.skip_list();
            serde_json::from_str(self.text[start..self.at].trim_end()).unwrap_or(Value::Null)
        } else {
            self.read_scalar()
        };
        self.document.entries.push(NamedValue { keys: keys.clone(), value, key_at, value_at });
    }

    /// Reads `[ … ]` or `{ … }` and the blanks after it.
    fn skip_list(&mut self) {
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                b'"' => {
                    self.read_scalar();
                    continue;
                }
                _ => {}
            }
            self.skip_mark();
            if depth == 0 {
                return;
            }
        }
    }

    /// Reads a string, number or word, and the blanks after it.
    fn read_scalar(&mut self) -> Value {
        let rest = &self.text[self.at..];
        let length = if rest.starts_with('"') {
            string_length(rest)
        } else {
            rest.find([',', '}', ']', ' ', '\t', '\n', '\r']).unwrap_or(rest.len())
        };
        let value = serde_json::from_str(&rest[..length]).unwrap_or(Value::Null);
        self.at += length.max(1);
        self.skip_blanks();
        value
    }
}

/// The length of the string literal at the beginning, quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn at(line: usize, column: usize) -> Position {
        Position { line, column }
    }

    #[test]
    fn finds_every_value_and_its_place() {
        let text = "{\n  \"a\": {\"b\": 1, \"ä\" : \"x,}\\\"\" },\n  \"c\": [1, {\"]\": \"]\"}],\n  \"d\": {},\n  \"e\": true\n}\n";
        let found: Vec<(String, String, Position, Position)> = parse(text)
            .unwrap()
            .entries
            .into_iter()
            .map(|entry| (entry.keys.join("."), entry.value.to_string(), entry.key_at, entry.value_at))
            .collect();
        let expected = [
            ("a.b", "1", at(2, 9), at(2, 14)),
            ("a.ä", "\"x,}\\\"\"", at(2, 17), at(2, 23)),
            ("c", "[1,{\"]\":\"]\"}]", at(3, 3), at(3, 8)),
            ("d", "{}", at(4, 3), at(4, 8)),
            ("e", "true", at(5, 3), at(5, 8)),
        ];
        assert_eq!(found, expected.map(|(keys, value, key, place)| (keys.to_owned(), value.to_owned(), key, place)));
    }

    #[test]
    fn the_place_of_a_value_is_found_by_its_steps() {
        let text = "{\"a\": [1, {\"x\": \"]},\"}, []],\n  \"b\": {\"c\": {}, \"d\": [[2], [\"ä\", 3]]}}";
        let key = |key: &str| PathStep::Key(key.to_owned());
        let place = |path: &[PathStep]| locate(text, path);
        assert_eq!(place(&[]), Some(at(1, 1)));
        assert_eq!(place(&[key("a"), PathStep::Index(1), key("x")]), Some(at(1, 17)));
        assert_eq!(place(&[key("b"), key("d"), PathStep::Index(1), PathStep::Index(1)]), Some(at(2, 35)));
        for path in
            [vec![key("c")], vec![PathStep::Index(0)], vec![key("a"), PathStep::Index(3)], vec![key("a"), key("x")]]
        {
            assert_eq!(place(&path), None, "{path:?}");
        }
    }

    #[test]
    fn finds_duplicates_within_one_object_only() {
        let document = parse("{\"a\": {\"x\": 1}, \"b\": {\"x\": 1},\n \"a\": 2}").unwrap();
        assert_eq!(document.duplicates, [Duplicate { keys: vec!["a".to_owned()], first: at(1, 2), again: at(2, 2) }]);
    }

    #[test]
    fn says_where_and_what_is_no_object() {
        let wrong = |text: &str| parse(text).unwrap_err();
        assert_eq!(wrong(""), Malformed { at: at(1, 1), message: "the file is empty".to_owned() });
        assert!(wrong("\u{feff}{}").message.contains("byte order mark"));
        assert_eq!(wrong(" []").message, "expected an object, `{ … }`, found a list");
        assert_eq!(wrong("\n null").at, at(2, 2));
        assert_eq!(wrong("{\"ä\": x}").at, at(1, 7));
        assert_eq!(wrong("{\"a\": 1,}").message, "trailing comma");
        assert_eq!(wrong("phase1:\n  num_nodes: 3\n").at.line, 1);
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_serde_on_any_object(value in objects()) {
            let flat = parse(&serde_json::to_string_pretty(&value).unwrap()).unwrap();
            let mut expected = Vec::new();
            flatten(&value, &mut Vec::new(), &mut expected);
            let found: Vec<_> = flat.entries.into_iter().map(|entry| (entry.keys, entry.value)).collect();
            proptest::prop_assert_eq!(found, expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn every_text_is_found_where_it_stands(value in objects()) {
            let text = serde_json::to_string_pretty(&value).unwrap();
            let mut waiting = vec![(Vec::new(), &value)];
            while let Some((path, value)) = waiting.pop() {
                let place = locate(&text, &path).unwrap();
                let line = text.lines().nth(place.line - 1).unwrap();
                let found: String = line.chars().skip(place.column - 1).collect();
                let first = serde_json::to_string_pretty(value).unwrap().lines().next().unwrap().to_owned();
                proptest::prop_assert!(found.starts_with(&first), "{found} is not {first}");
                let with = |step| [path.clone(), vec![step]].concat();
                match value {
                    Value::Object(all) => waiting.extend(all.iter().map(|(key, one)| (with(PathStep::Key(key.clone())), one))),
                    Value::Array(all) => waiting.extend(all.iter().enumerate().map(|(at, one)| (with(PathStep::Index(at)), one))),
                    _ => {}
                }
            }
        }
    }

    fn objects() -> impl proptest::strategy::Strategy<Value = Value> {
        use proptest::prelude::*;
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
            proptest::collection::vec("[\\[\\]{}\",\\\\]*", 0..3).prop_map(Value::from),
        ];
        let tree = leaf.prop_recursive(3, 20, 4, |inner| {
            proptest::collection::btree_map(".*", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect()))
        });
        proptest::collection::btree_map(".*", tree, 0..4).prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    fn flatten(value: &Value, keys: &mut Vec<String>, found: &mut Vec<(Vec<String>, Value)>) {
        match value {
            Value::Object(members) if !members.is_empty() || keys.is_empty() => {
                for (key, member) in members {
                    keys.push(key.clone());
                    flatten(member, keys, found);
                    keys.pop();
                }
            }
            other => found.push((keys.clone(), other.clone())),
        }
    }
}
