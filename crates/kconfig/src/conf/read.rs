//! Reads `.config` and files like it, with the C tools' complaints.

use super::order::Vertex;
use super::session::Session;
use crate::dotconfig;
use crate::eval::{UserSymbol, UserValue};
use crate::tree::SymbolId;
use crate::value::{SymbolType, Tri};

/// One line that says something: a name and a value.
struct Assignment<'l> {
    name: &'l str,
    value: &'l str,
}

impl Session<'_, '_> {
    /// Reads values and compares them with what follows from them; false when there is no file.
    pub(super) fn read_config(&mut self, name: Option<&str>) -> bool {
        self.changed = false;
        let found = self.read_values(name);
        self.config.evaluator().modules();
        if !found {
            return false;
        }
        let mut differs = false;
        for index in 0..self.order.len() {
            match self.order[index] {
                Vertex::Symbol(symbol) => differs |= self.differs(symbol),
                Vertex::Choice(choice) => {
                    self.config.evaluator().choice_answer(choice);
                }
            }
        }
        if !self.tree.dialect().reads_whole_lines() {
            differs = self.drop_useless(differs);
        }
        self.changed |= differs || self.warnings > 0;
        true
    }

    /// Whether a symbol's value is not the one in the file.
    fn differs(&self, symbol: SymbolId) -> bool {
        let answer = self.config.evaluator().answer(symbol);
        let user = &self.config.user.symbols[symbol.index()];
        let has_value = user.counts || self.has_value(symbol);
        if !has_value || !answer.written {
            return has_value || answer.written;
        }
        match &user.value {
            Some(value) if user.counts => value.as_str() != self.config.value(symbol),
            _ => false,
        }
    }

    /// Up to 6.7: values that do not count now are as if not set, if all else is as written, and so are numbers out of range.
    fn drop_useless(&mut self, mut differs: bool) -> bool {
        for index in 0..self.order.len() {
            match self.order[index] {
                Vertex::Symbol(symbol) => {
                    let definition = self.tree.get(symbol);
                    if !self.has_value(symbol) || definition.choice.is_some() {
                        continue;
                    }
                    if self.config.visible(symbol) == Tri::N && !differs {
                        self.config.user.symbols[symbol.index()].counts = false;
                    }
                    if definition.kind.is_numeric() && !self.is_within_range(symbol) {
                        self.config.user.symbols[symbol.index()].counts = false;
                        self.config.answers.forget_symbol(symbol);
                        differs = true;
                    }
                }
                Vertex::Choice(choice) => {
                    if self.config.choice_visible(choice) == Tri::N && !differs {
                        self.config.user.choices[choice.index()].counts = false;
                    }
                }
            }
        }
        differs
    }

    fn is_within_range(&self, symbol: SymbolId) -> bool {
        let kind = self.tree.get(symbol).kind;
        let Some(value) = &self.config.user.symbols[symbol.index()].value else { return true };
        self.is_text_within_range(symbol, kind, value.as_str())
    }

    /// Reads values only; without a name the configuration, else the first file of `KCONFIG_DEFCONFIG_LIST`.
    pub(super) fn read_values(&mut self, name: Option<&str>) -> bool {
        let Some((name, bytes)) = (match name {
            Some(name) => self.console.find_file(name).map(|bytes| (name.to_owned(), bytes)),
            None => self.find_config(),
        }) else {
            return false;
        };
        let text = String::from_utf8_lossy(&bytes);
        self.warnings = 0;
        self.begin_reading();
        let warn_unknown = self.has_variable("KCONFIG_WARN_UNKNOWN_SYMBOLS");
        let mut number = 0;
        for line in text.split_inclusive('\n') {
            number += 1;
            match parse_line(line, &self.prefix, self.tree.dialect().reads_whole_lines()) {
                Ok(None) => {}
                Ok(Some(assignment)) => self.take(&assignment, &name, number, warn_unknown),
                Err(data) => self.warn(&name, number, &format!("unexpected data: {data}")),
            }
        }
        true
    }

    fn find_config(&mut self) -> Option<(String, Vec<u8>)> {
        let name = self.config_name();
        if let Some(bytes) = self.console.find_file(&name) {
            return Some((name, bytes));
        }
        self.changed = true;
        let list = self.variable("KCONFIG_DEFCONFIG_LIST")?;
        for name in list.split_ascii_whitespace() {
            if let Some(bytes) = self.console.find_file(name) {
                self.remark(&format!("using defaults found in {name}"));
                return Some((name.to_owned(), bytes));
            }
        }
        None
    }

    /// A file says everything: what was said before is forgotten, but not which members of choices count most.
    fn begin_reading(&mut self) {
        self.report_unmet();
        self.config.forget();
        self.config.user.symbols.fill(UserSymbol::default());
        for (index, choice) in self.config.user.choices.iter_mut().enumerate() {
            (choice.selection, choice.mode, choice.contradictory) = (None, Tri::N, false);
            choice.counts = self.tree.choices[index].has_mode(self.tree.dialect());
        }
    }

    pub(super) fn warn(&mut self, name: &str, number: usize, text: &str) {
        self.warnings += 1;
        self.error(&format!("{name}:{number}:warning: {text}\n"));
    }

    fn take(&mut self, assignment: &Assignment<'_>, file: &str, number: usize, warn_unknown: bool) {
        let Some(symbol) = self.tree.names.find_symbol(assignment.name) else {
            if warn_unknown {
                self.warn(file, number, &format!("unknown symbol: {}", assignment.name));
            }
            self.changed = true;
            return;
        };
        let definition = self.tree.get(symbol);
        if self.config.user.symbols[symbol.index()].counts {
            self.warn(file, number, &format!("override: reassigning to symbol {}", definition.name));
        }
        let value = match parse_value(definition.kind, assignment.value) {
            Ok(value) => value,
            Err(Invalid::Value) => {
                let text = format!("symbol value '{}' invalid for {}", assignment.value, definition.name);
                return self.warn(file, number, &text);
            }
            Err(Invalid::Text) => return self.warn(file, number, "invalid string found"),
        };
        if let Some(choice) = definition.choice.filter(|choice| self.tree.has_mode(*choice)) {
            let mode = self.config.user.choices[choice.index()].mode;
            match value {
                Some(UserValue::Tri(Tri::M)) if mode == Tri::Y => {
                    self.warn(file, number, &format!("{} creates inconsistent choice state", definition.name));
                }
                Some(UserValue::Tri(Tri::Y)) if mode != Tri::N => {
                    self.warn(file, number, &format!("override: {} changes choice state", definition.name));
                }
                _ => {}
            }
        }
        if let Some(value) = value {
            self.config.record(symbol, value);
        }
    }
}

/// A line that is no assignment, as it is complained about.
type Unexpected<'l> = &'l str;

/// Nothing for a comment; `whole` since 6.8, when what follows "is not set" began to count.
fn parse_line<'l>(line: &'l str, prefix: &str, whole: bool) -> Result<Option<Assignment<'l>>, Unexpected<'l>> {
    let ended = line.strip_suffix('\n');
    let line = match ended {
        Some(line) => line.strip_suffix('\r').unwrap_or(line),
        None => line,
    };
    if line.is_empty() {
        return Ok(None);
    }
    if let Some(comment) = line.strip_prefix('#') {
        let unset = comment.strip_prefix(' ').and_then(|comment| comment.strip_prefix(prefix));
        let Some((name, rest)) = unset.and_then(|unset| unset.split_once(' ')) else { return Ok(None) };
        let matches = if whole { rest == "is not set" } else { rest.starts_with("is not set") };
        return Ok(matches.then_some(Assignment { name, value: "n" }));
    }
    match line.strip_prefix(prefix) {
        Some(rest) => match rest.split_once('=') {
            Some((name, value)) => Ok(Some(Assignment { name, value })),
            None if whole => Err(line),
            None => Ok(None),
        },
        None => Err(line.split('\r').next().filter(|_| !whole).unwrap_or(line)),
    }
}

/// What is wrong with a value.
enum Invalid {
    Value,
    Text,
}

/// Nothing for a value that a symbol of this type never has, without complaint.
fn parse_value(kind: SymbolType, value: &str) -> Result<Option<UserValue>, Invalid> {
    match (kind, value.as_bytes().first()) {
        (SymbolType::Tristate, Some(b'm')) => Ok(Some(UserValue::Tri(Tri::M))),
        (SymbolType::Bool | SymbolType::Tristate, Some(b'y')) => Ok(Some(UserValue::Tri(Tri::Y))),
        (SymbolType::Bool | SymbolType::Tristate, Some(b'n')) => Ok(Some(UserValue::Tri(Tri::N))),
        (SymbolType::String, Some(b'"')) => match dotconfig::unquote(value) {
            Some(text) => Ok(Some(UserValue::Text(text.into()))),
            None => Err(Invalid::Text),
        },
        (SymbolType::Unknown | SymbolType::String, _) => Ok(None),
        (SymbolType::Int | SymbolType::Hex, _) if kind.accepts(value) => Ok(Some(UserValue::Text(value.into()))),
        _ => Err(Invalid::Value),
    }
}
