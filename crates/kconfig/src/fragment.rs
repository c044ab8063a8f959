//! `.config` files as lines of requests, without a tree: what merging and comparing need.
//!
//! Decides nothing about values; a line that is no request is left out.

use std::collections::HashMap;

use crate::dotconfig::{Line, Strictness};
use crate::source::FastHash;

/// One line of a `.config`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The name, without the prefix.
    pub name: String,
    /// The value as written, quotes and escapes included; `n` for `is not set`.
    pub value: String,
    /// The line, from 1.
    pub line: usize,
}

impl Request {
    /// The line as the C tools write it.
    #[must_use]
    pub fn to_line(&self, prefix: &str) -> String {
        assignment(&self.name, &self.value, prefix)
    }
}

/// A name and a value as the C tools write them.
#[must_use]
pub fn assignment(name: &str, value: &str, prefix: &str) -> String {
    if value == "n" { format!("# {prefix}{name} is not set") } else { format!("{prefix}{name}={value}") }
}

/// The requests of a file in order; a name may come several times.
#[must_use]
pub fn parse(text: &str, prefix: &str) -> Vec<Request> {
    let requests = text.lines().enumerate().filter_map(|(index, line)| {
        let (name, value) = Line::read(line, prefix, Strictness::Lenient).assignment()?;
        let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || matches!(c, '#' | '"'));
        is_name.then(|| Request { name: name.to_owned(), value: value.to_owned(), line: index + 1 })
    });
    requests.collect()
}

/// The last request for each name, in the order in which the names came first.
#[must_use]
pub fn last_of_each(requests: &[Request]) -> Vec<&Request> {
    let mut places: HashMap<&str, usize, FastHash> = HashMap::default();
    let mut kept: Vec<&Request> = Vec::new();
    for request in requests {
        if let Some(at) = places.get(&*request.name) {
            kept[*at] = request;
        } else {
            places.insert(&request.name, kept.len());
            kept.push(request);
        }
    }
    kept
}
