//! DNS zones of clouds: what an API for one can be asked. Whose a name is, and where it should
//! lead, is `node`'s.

use std::collections::BTreeSet;
use std::fmt;

use crate::error::Result;

/// The types of records that turnup writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordKind {
    /// Addresses of IPv4.
    A,
    /// Addresses of IPv6.
    Aaaa,
    /// Texts.
    Txt,
}

impl RecordKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::A, Self::Aaaa, Self::Txt];

    /// As zones call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::Aaaa => "AAAA",
            Self::Txt => "TXT",
        }
    }

    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// All records of one type at a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneRecords {
    /// Their type.
    pub kind: RecordKind,
    /// For how many seconds resolvers may keep them.
    pub ttl: u32,
    /// As a zone file has them: texts in quotes.
    pub values: BTreeSet<String>,
    /// What the API calls this state of them; empty where it compares the records themselves.
    pub tag: String,
}

/// What a zone has at a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneName {
    /// The records that turnup may have written, a type each.
    pub records: Vec<ZoneRecords>,
    /// Others, for messages: types, and forms that a cloud has beside records.
    pub others: Vec<String>,
}

/// One cloud's API, for one zone.
pub trait ZoneApi {
    /// What is at this name, which has no dot at its end.
    fn find(&self, name: &str) -> Result<ZoneName>;

    /// Takes `old` away from the name and puts `new` there. False, and nothing is done, where `old`
    /// is no longer what is there; a cloud that changes one type after another may then have done
    /// the first of them.
    fn replace(&self, name: &str, old: &[ZoneRecords], new: &[ZoneRecords]) -> Result<bool>;
}

/// A text of a TXT record, as a zone file has it.
#[must_use]
pub fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The text of that; several strings of a record are one.
#[must_use]
pub fn unquote(value: &str) -> String {
    let (mut text, mut is_inside, mut letters) = (String::new(), false, value.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '"' => is_inside = !is_inside,
            '\\' => text.extend(letters.next()),
            letter if is_inside => text.push(letter),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_itself_after_quotes() {
        for text in ["turnup cluster=prod id=0123", "", "a \"b\" \\c"] {
            assert_eq!(unquote(&quote(text)), text);
        }
        assert_eq!(unquote("\"v=spf1 \" \"-all\""), "v=spf1 -all");
    }
}
