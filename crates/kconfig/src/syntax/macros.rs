//! The macro language: variables, functions and the environment behind `$(…)`.
//!
//! Pure text in, text out; what a function may do to the outside is not decided here.

use std::collections::HashMap;

use super::reader::LogicalLine;
use crate::diagnostic::Diagnostic;
use crate::source::Env;

/// How deep references may nest or call each other.
const MAX_DEPTH: usize = 100;
/// How long the result of one line may get; references that double themselves end here.
const MAX_LENGTH: usize = 1 << 20;

/// How a variable was assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assignment {
    /// `=`: expanded when used.
    Recursive,
    /// `:=`: expanded now.
    Simple,
    /// `+=`
    Append,
}

#[derive(Clone, Debug)]
struct Variable {
    value: String,
    recursive: bool,
}

/// The variables of one run, in the state after the lines read so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Macros {
    variables: HashMap<String, Variable>,
}

/// Where an expansion happens and what it has used up.
struct Scope<'a> {
    env: &'a Env<'a>,
    path: &'a str,
    line: u32,
    depth: usize,
    length: usize,
}

/// Why a reference has no value.
enum Failure {
    Broken(String),
    /// `$(error-if,y,text)`: the tree's author stops here.
    Refused(String),
}

impl Macros {
    /// Expands all references of a line; inside quotes the results are escaped, so that they stay inside.
    pub(crate) fn expand_line<'s>(
        &self,
        line: &LogicalLine<'s>,
        env: &Env<'_>,
        path: &str,
    ) -> Result<LogicalLine<'s>, Diagnostic> {
        let mut scope = Scope { env, path, line: line.number(), depth: 0, length: 0 };
        let mut failure = None;
        let expanded = line.rewritten(|rewriter| {
            let (mut at, mut copied, mut quote) = (0, 0, None);
            let bytes = line.text.as_bytes();
            while let Some(&byte) = bytes.get(at) {
                if byte == b'$' && bytes.get(at + 1) == Some(&b'(') {
                    rewriter.copy(copied, at);
                    let (end, value) = self.expand_at(&line.text, at, &mut scope, &[]);
                    match value {
                        Ok(value) if quote.is_some() => rewriter.replace(at, end, &escape(&value)),
                        Ok(value) => rewriter.replace(at, end, &value),
                        Err(found) => {
                            failure = Some((at, end, found));
                            return;
                        }
                    }
                    (at, copied) = (end, end);
                    continue;
                }
                match (byte, quote) {
                    (b'\\', Some(_)) => at += 1,
                    (b'"' | b'\'', None) => quote = Some(byte),
                    (byte, Some(open)) if byte == open => quote = None,
                    _ => {}
                }
                at += 1;
            }
            rewriter.copy(copied, bytes.len());
        });
        match failure {
            None => Ok(expanded),
            Some((start, end, failure)) => Err(describe_failure(line, start, end, failure)),
        }
    }

    /// Records an assignment.
    pub(crate) fn assign(
        &mut self,
        name: &str,
        how: Assignment,
        line: &LogicalLine<'_>,
        value: std::ops::Range<usize>,
        env: &Env<'_>,
        path: &str,
    ) -> Result<(), Diagnostic> {
        let text = line.text[value.clone()].trim();
        let appends_to_recursive = self.variables.get(name).is_none_or(|variable| variable.recursive);
        let recursive = how == Assignment::Recursive || (how == Assignment::Append && appends_to_recursive);
        let mut scope = Scope { env, path, line: line.number(), depth: 0, length: 0 };
        let text = if recursive {
            text.to_owned()
        } else {
            self.expand(text, &mut scope, &[])
                .map_err(|failure| describe_failure(line, value.start, value.end, failure))?
        };
        match self.variables.get_mut(name) {
            Some(variable) if how == Assignment::Append => {
                variable.value.push(' ');
                variable.value.push_str(&text);
            }
            _ => {
                self.variables.insert(name.to_owned(), Variable { value: text, recursive });
            }
        }
        Ok(())
    }

    fn expand(&self, text: &str, scope: &mut Scope<'_>, arguments: &[String]) -> Result<String, Failure> {
        let mut result = String::new();
        let mut at = 0;
        while let Some(found) = text[at..].find("$(") {
            result.push_str(&text[at..at + found]);
            let (end, value) = self.expand_at(text, at + found, scope, arguments);
            result.push_str(&value?);
            at = end;
        }
        result.push_str(&text[at..]);
        Ok(result)
    }

    /// Expands the reference that starts at `start`; also says where it ends.
    fn expand_at(
        &self,
        text: &str,
        start: usize,
        scope: &mut Scope<'_>,
        arguments: &[String],
    ) -> (usize, Result<String, Failure>) {
        let Some(close) = find_close(text, start + 2) else {
            return (text.len(), Err(Failure::Broken("this reference has no closing parenthesis".to_owned())));
        };
        if scope.depth >= MAX_DEPTH {
            return (close + 1, Err(Failure::Broken("these references call each other without an end".to_owned())));
        }
        scope.depth += 1;
        let value = self.evaluate(&text[start + 2..close], scope, arguments);
        scope.depth -= 1;
        let value = value.and_then(|value| {
            scope.length += value.len();
            if scope.length > MAX_LENGTH {
                return Err(Failure::Broken("the text that these references make is too long".to_owned()));
            }
            Ok(value)
        });
        (close + 1, value)
    }

    fn evaluate(&self, inside: &str, scope: &mut Scope<'_>, outer: &[String]) -> Result<String, Failure> {
        let mut parts = Vec::new();
        for part in split_arguments(inside) {
            parts.push(self.expand(part, scope, outer)?);
        }
        let name = parts.first().cloned().unwrap_or_default();
        if let Ok(position) = name.parse::<usize>() {
            return Ok(position.checked_sub(1).and_then(|index| outer.get(index)).cloned().unwrap_or_default());
        }
        if let Some(variable) = self.variables.get(&name) {
            if !variable.recursive {
                return Ok(variable.value.clone());
            }
            return self.expand(&variable.value, scope, &parts[1..]);
        }
        match (name.as_str(), &parts[1..]) {
            ("filename", []) => Ok(scope.path.to_owned()),
            ("lineno", []) => Ok(scope.line.to_string()),
            ("error-if", [condition, text]) if condition == "y" => Err(Failure::Refused(text.trim().to_owned())),
            ("error-if", [_, _]) => Ok(String::new()),
            (_, []) => Ok(scope.env.get(&name).unwrap_or_default()),
            _ => Err(Failure::Broken(format!("there is no macro function `{name}`"))),
        }
    }
}

fn describe_failure(line: &LogicalLine<'_>, start: usize, end: usize, failure: Failure) -> Diagnostic {
    let span = line.span(start, end);
    match failure {
        Failure::Broken(message) => Diagnostic::error("K011", span, message),
        Failure::Refused(message) => Diagnostic::error("K014", span, message).with_text("the tree refuses this"),
    }
}

/// The position of the parenthesis that closes a reference.
fn find_close(text: &str, from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().skip(from) {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(at),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Splits at the commas outside parentheses.
fn split_arguments(inside: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[start..]);
    parts
}

fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '"' | '\'' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
