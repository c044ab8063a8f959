//! Lists, maps and records as rows that are added, changed, moved and removed; the text that
//! Kconfig holds is made of them at the end.

use kconfig::SymbolId;
use serde_json::{Map, Value};

use super::line_edit::LineEdit;
use crate::config::format::{Field, Format};
use crate::config::{HOSTS, Schema, merge_hosts, read_hosts};

/// The dialog of one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Items {
    pub(super) symbol: SymbolId,
    kind: Kind,
    /// What an element consists of: one part of a list, key and value of a map, the fields of a
    /// record.
    pub(super) columns: Vec<Field>,
    /// The texts of each element, as many as there are columns; empty for an absent one.
    pub(super) rows: Vec<Vec<String>>,
    pub(super) cursor: usize,
    notes: Vec<FieldNote>,
    /// Why the whole cannot be taken.
    pub(super) wrong: Option<String>,
}

/// What is known of one field besides its format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldNote {
    /// What it is for.
    pub(super) help: Option<String>,
    /// What counts where it is left out.
    pub(super) default: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    List,
    Map,
    Records,
}

/// What a paste has done to records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pasted {
    /// What was added, changed and assumed.
    pub(super) lines: Vec<String>,
    /// Whether it counts only when the user has seen that.
    pub(super) asks: bool,
}

/// The dialog of one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ElementFields {
    /// The element; behind the last one for a new one.
    pub(super) row: usize,
    pub(super) columns: Vec<Field>,
    pub(super) texts: Vec<String>,
    pub(super) cursor: usize,
    pub(super) wrong: Option<String>,
    /// Whether a comma would end the element.
    separated: bool,
    /// What each field is for, and what counts where it is left out.
    notes: Vec<FieldNote>,
}

/// The dialog of one text of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) column: usize,
    pub(super) field: Field,
    pub(super) line: LineEdit,
    pub(super) separated: bool,
}

impl Cell {
    /// What is wrong with the text, if anything.
    pub(super) fn judge(&self) -> Option<String> {
        judge(&self.field, self.line.text(), self.separated)
    }
}

/// What is wrong with one text of an element; one that may be left out may be empty.
fn judge(field: &Field, text: &str, separated: bool) -> Option<String> {
    if separated && text.contains(',') {
        return Some("a comma separates elements; this is one".to_owned());
    }
    match field.format.validate(text) {
        Err(_) if text.is_empty() && !field.required => None,
        Err(_) if text.is_empty() => Some(format!("{} is missing", field.name)),
        verdict => verdict.err(),
    }
}

impl Items {
    /// The editor of a structured format; none for others, and for a text that is not of the
    /// format.
    pub(super) fn open(symbol: SymbolId, format: &Format, text: &str) -> Option<Self> {
        let column =
            |name: &str, required, format: &Format| Field { name: name.to_owned(), required, format: format.clone() };
        let parts = || text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let (kind, columns, rows) = match format {
            Format::List(element) => {
                (Kind::List, vec![column("value", true, element)], parts().map(|part| vec![part.to_owned()]).collect())
            }
            Format::Map(key, value) => {
                let pair = |part: &str| {
                    let (key, value) = part.split_once('=').unwrap_or((part, ""));
                    vec![key.to_owned(), value.to_owned()]
                };
                (
                    Kind::Map,
                    vec![column("key", true, key), column("value", value.validate("").is_err(), value)],
                    parts().map(pair).collect(),
                )
            }
            Format::Records(fields) => (Kind::Records, fields.clone(), read_records(fields, text)?),
            Format::Any(formats) => {
                return formats.iter().find_map(|format| Self::open(symbol, format, text));
            }
            _ => return None,
        };
        let notes = vec![FieldNote::default(); columns.len()];
        Some(Self { symbol, kind, columns, rows, cursor: 0, notes, wrong: None })
    }

    /// The text that the rows stand for.
    pub(super) fn text(&self) -> String {
        match self.kind {
            Kind::List => self.rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>().join(","),
            Kind::Map => self.rows.iter().map(|row| format!("{}={}", row[0], row[1])).collect::<Vec<_>>().join(","),
            Kind::Records => {
                Value::from(self.rows.iter().map(|row| record(&self.columns, row)).collect::<Vec<_>>()).to_string()
            }
        }
    }

    /// The element under the cursor in an editor of its own, or a new one.
    pub(super) fn fields(&self, new: bool) -> Option<ElementFields> {
        let row = if new { self.rows.len() } else { self.cursor };
        // What can only be one word is that word.
        let begin = |field: &Field| match field.format.words() {
            Some([only]) if field.required => only.clone(),
            _ => String::new(),
        };
        let texts = if new { self.columns.iter().map(begin).collect() } else { self.rows.get(row)?.clone() };
        let separated = self.kind != Kind::Records;
        let (columns, notes) = (self.columns.clone(), self.notes.clone());
        let mut fields = ElementFields { row, columns, texts, cursor: 0, wrong: None, separated, notes };
        fields.cursor = fields.missing_from(0).unwrap_or(0);
        Some(fields)
    }

    /// Takes a changed or new element.
    pub(super) fn take(&mut self, row: usize, texts: Vec<String>) {
        self.wrong = None;
        match self.rows.get_mut(row) {
            Some(old) => *old = texts,
            None => self.rows.push(texts),
        }
        self.cursor = row.min(self.rows.len().saturating_sub(1));
    }

    /// Whether an element has fields with names.
    pub(super) fn is_records(&self) -> bool {
        self.kind == Kind::Records
    }

    /// The same with what is known of the fields.
    pub(super) fn with_notes(mut self, notes: Vec<FieldNote>) -> Self {
        if notes.len() == self.columns.len() {
            self.notes = notes;
        }
        self
    }

    /// Takes records over from a text: a JSON list, and of hosts every form that people have.
    pub(super) fn paste(&mut self, schema: &Schema, text: &str) -> Result<Pasted, String> {
        let known: Vec<Value> = serde_json::from_str(&self.text()).unwrap_or_default();
        let (all, pasted) = if schema.name(self.symbol) == HOSTS {
            let list = read_hosts(text).map_err(|why| format!("nothing was added: {why}"))?;
            let merged = merge_hosts(&known, &list);
            let asks = merged.replaces || !merged.assumed.is_empty();
            let pasted = Pasted { lines: merged.tell(), asks };
            (merged.hosts, pasted)
        } else {
            let new: Vec<Value> =
                serde_json::from_str(text).map_err(|_| "nothing was added: expected a JSON list of objects")?;
            ([known, new].concat(), Pasted::default())
        };
        let all = Value::from(all);
        self.rows = read_records(&self.columns, &all.to_string())
            .ok_or_else(|| format!("nothing was added: the fields are {}", names(&self.columns)))?;
        self.cursor = self.rows.len().saturating_sub(1);
        self.wrong = None;
        Ok(pasted)
    }

    /// Adds an element for each line behind the one under the cursor, or none when one is wrong.
    pub(super) fn insert_lines(&mut self, lines: &[&str]) -> Result<(), String> {
        let rows = self.read_lines(lines)?;
        self.wrong = None;
        let at = (self.cursor + 1).min(self.rows.len());
        self.cursor = (at + rows.len()).saturating_sub(1);
        self.rows.splice(at..at, rows);
        Ok(())
    }

    /// The elements that lines stand for, each of its format.
    pub(super) fn read_lines(&self, lines: &[&str]) -> Result<Vec<Vec<String>>, String> {
        let texts = |line: &&str| match (self.kind, line.split_once('=')) {
            (Kind::Map, Some((key, value))) => Ok(vec![key.trim().to_owned(), value.trim().to_owned()]),
            (Kind::Map, None) => Err(format!("`{line}`: expected KEY=VALUE in each line")),
            _ => Ok(vec![line.trim_end_matches(',').to_owned()]),
        };
        let rows = lines.iter().map(texts).collect::<Result<Vec<_>, String>>()?;
        for row in &rows {
            let wrong = self.columns.iter().zip(row).find_map(|(field, text)| Some((text, judge(field, text, true)?)));
            if let Some((text, why)) = wrong {
                return Err(format!("nothing was added: `{text}`: {why}"));
            }
        }
        Ok(rows)
    }

    /// Removes the element under the cursor.
    pub(super) fn remove(&mut self) {
        self.wrong = None;
        if self.cursor < self.rows.len() {
            self.rows.remove(self.cursor);
            self.cursor = self.cursor.min(self.rows.len().saturating_sub(1));
        }
    }

    /// Moves the element under the cursor up or down.
    pub(super) fn shift(&mut self, by: isize) {
        let Some(to) = self.cursor.checked_add_signed(by) else { return };
        if to < self.rows.len() && self.cursor < self.rows.len() {
            self.rows.swap(self.cursor, to);
            self.cursor = to;
        }
    }

    /// What an element must look like.
    pub(super) fn expected(&self) -> String {
        match self.kind {
            Kind::List => format!("each is {}", self.columns[0].format),
            Kind::Map => format!("keys: {}; values: {}", self.columns[0].format, self.columns[1].format),
            Kind::Records => "Enter shows what an element consists of".to_owned(),
        }
    }

    /// An element in one line.
    pub(super) fn summary(&self, row: &[String]) -> String {
        match self.kind {
            Kind::List => row[0].clone(),
            Kind::Map => format!("{} = {}", row[0], row[1]),
            Kind::Records => {
                let filled = self.columns.iter().zip(row).skip(1).filter(|(_, text)| !text.is_empty());
                let rest: Vec<String> = filled.map(|(field, text)| format!("{} {text}", field.name)).collect();
                format!("{}: {}", row.first().map_or("", String::as_str), rest.join(", "))
            }
        }
    }
}

impl ElementFields {
    /// The first field from this one on that has to be filled.
    pub(super) fn missing_from(&self, column: usize) -> Option<usize> {
        let open = |at: &usize| self.columns[*at].required && self.texts[*at].is_empty();
        (column..self.columns.len()).find(|at| open(at) && self.columns[*at].format.validate("").is_err())
    }

    /// What is known of a field.
    pub(super) fn note(&self, column: usize) -> &FieldNote {
        &self.notes[column]
    }

    /// Everything about a field.
    pub(super) fn about(&self, column: usize) -> Vec<String> {
        let (field, note) = (&self.columns[column], self.note(column));
        let mut lines: Vec<String> = note.help.iter().cloned().collect();
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(format!("Expected: {}", field.format));
        lines.push(match (&note.default, field.required) {
            (_, true) => "It has to be given.".to_owned(),
            (Some(default), false) => format!("Left out: {default}"),
            (None, false) => "It may be left out.".to_owned(),
        });
        lines
    }

    /// Whether nothing was said that the element did not begin with.
    pub(super) fn is_untouched(&self) -> bool {
        let of_itself =
            |field: &Field, text: &String| field.format.words().is_some_and(|words| words == [text.clone()]);
        self.columns.iter().zip(&self.texts).all(|(field, text)| text.is_empty() || of_itself(field, text))
    }

    /// The element's own name, as far as it has one.
    pub(super) fn title(&self) -> &str {
        self.texts.first().filter(|text| !text.is_empty()).map_or("New element", String::as_str)
    }

    /// What is wrong with the element, if anything.
    pub(super) fn judge(&self) -> Option<String> {
        self.columns.iter().zip(&self.texts).find_map(|(field, text)| {
            let why = judge(field, text, self.separated)?;
            Some(if text.is_empty() { why } else { format!("{}: {why}", field.name) })
        })
    }

    /// One of its texts in an editor of its own.
    pub(super) fn cell(&self, column: usize) -> Cell {
        let (field, line) = (self.columns[column].clone(), LineEdit::selected(&self.texts[column]));
        Cell { column, field, line, separated: self.separated }
    }
}

fn names(fields: &[Field]) -> String {
    fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The texts of records; none where that is no list of objects.
fn read_records(fields: &[Field], text: &str) -> Option<Vec<Vec<String>>> {
    let list: Vec<Map<String, Value>> = serde_json::from_str(if text.is_empty() { "[]" } else { text }).ok()?;
    let known = |record: &Map<String, Value>| record.keys().all(|key| fields.iter().any(|field| field.name == *key));
    if !list.iter().all(known) {
        return None;
    }
    let text = |record: &Map<String, Value>, field: &Field| match record.get(&field.name) {
        None => Some(String::new()),
        Some(value) => field.format.to_text(value).ok(),
    };
    list.iter().map(|record| fields.iter().map(|field| text(record, field)).collect()).collect()
}

/// A record without its absent fields.
fn record(fields: &[Field], texts: &[String]) -> Value {
    let present = fields.iter().zip(texts).filter(|(field, text)| field.required || !text.is_empty());
    Value::Object(present.map(|(field, text)| (field.name.clone(), field.format.to_json(text))).collect())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use kconfig::{Env, MemoryFiles, Tree};

    use super::*;

    fn symbol() -> SymbolId {
        let files = MemoryFiles::new([("Kconfig", "config A\n\tstring \"A\"\n")]);
        Tree::load("Kconfig", &files, &Env::empty()).unwrap().symbol("A").unwrap()
    }

    fn open(format: &str, text: &str) -> Items {
        Items::open(symbol(), &format.parse().unwrap(), text).unwrap()
    }

    #[test]
    fn rows_become_the_text_that_they_were() {
        for (format, text) in
            [("list(cidr)", "10.0.0.0/8,10.1.0.0/16"), ("map(word, word)", "a=1,b=2"), ("list(word)", "")]
        {
            assert_eq!(open(format, text).text(), text);
        }
        let field =
            |name: &str, required, format: &str| Field { name: name.into(), required, format: format.parse().unwrap() };
        let records = Format::Records(vec![field("name", true, "dns-label"), field("size", false, "int(1..9)")]);
        let text = r#"[{"name":"a","size":3},{"name":"b"}]"#;
        let items = Items::open(symbol(), &records, text).unwrap();
        assert_eq!(items.text(), text);
        assert_eq!(items.rows.iter().map(|row| items.summary(row)).collect::<Vec<_>>(), ["a: size 3", "b: "]);
        assert_eq!(Items::open(symbol(), &records, r#"[{"nam":"a"}]"#), None, "what has no column would be lost");
    }

    #[test]
    fn a_field_that_can_only_be_one_word_is_it() {
        let column =
            |name: &str, format: &str| Field { name: name.into(), required: true, format: format.parse().unwrap() };
        let records = Format::Records(vec![column("name", "dns-label"), column("role", "enum(worker)")]);
        let new = Items::open(symbol(), &records, "[]").unwrap().fields(true).unwrap();
        assert_eq!(new.texts, ["", "worker"]);
    }

    #[test]
    fn elements_are_added_moved_and_removed() {
        let mut items = open("list(word)", "a,b");
        let mut new = items.fields(true).unwrap();
        assert_eq!(new.judge().as_deref(), Some("value is missing"));
        new.texts[0] = "c,d".into();
        assert_eq!(new.judge().as_deref(), Some("value: a comma separates elements; this is one"));
        new.texts[0] = "c".into();
        assert_eq!(new.judge(), None);
        items.take(new.row, new.texts);
        items.shift(-1);
        items.shift(-5);
        assert_eq!(items.text(), "a,c,b");
        items.remove();
        assert_eq!((items.text().as_str(), items.cursor), ("a,b", 1));
        items.remove();
        items.remove();
        items.remove();
        assert_eq!(items.text(), "");
    }
}
