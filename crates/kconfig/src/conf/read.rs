//! Reads `.config` and files like it, with the C tools' complaints.

use super::order::Vertex;
use super::session::Session;
use crate::dialect::Rule;
use crate::dotconfig::{self, Line, Sieve, Strictness};
use crate::eval::{UserSymbol, UserValue};
use crate::text;
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
        if !self.tree.dialect().has(Rule::WholeLines) {
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

    /// Up to 6.7: values that do not count now are as if not set, if all else is as written, and so
    /// are numbers out of range.
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

    /// Reads values only; without a name the configuration, else the first file of
    /// `KCONFIG_DEFCONFIG_LIST`.
    pub(super) fn read_values(&mut self, name: Option<&str>) -> bool {
        let Some((name, bytes)) = (match name {
            Some(name) => self.console.find_file(name).map(|bytes| (name.to_owned(), bytes)),
            None => self.find_config(),
        }) else {
            return false;
        };
        let text = text::from_bytes(bytes);
        self.warnings = 0;
        self.begin_reading();
        let warn_unknown =
            self.tree.dialect().has(Rule::UnknownSymbolsWarning) && self.has_variable("KCONFIG_WARN_UNKNOWN_SYMBOLS");
        let strictness = if self.tree.dialect().has(Rule::WholeLines) { Strictness::Whole } else { Strictness::Start };
        let prefix = self.prefix.clone();
        let mut sieve = Sieve::new(self.tree.dialect());
        for (line, number) in dotconfig::lines(&text).zip(1..) {
            let line = Line::read(sieve.pass(line), &prefix, strictness);
            if let Line::Unexpected(data) = line {
                self.warn(&name, number, &format!("unexpected data: {data}"));
            } else if let Some((symbol, value)) = line.assignment() {
                self.take(&Assignment { name: symbol, value }, &name, number, warn_unknown);
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

    /// A file says everything: what was said before is forgotten, but not which members of choices
    /// count most.
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

    /// A later line counts instead of an earlier one.
    fn remark_override(&mut self, name: &str, number: usize, text: &str) {
        if self.tree.dialect().has(Rule::OverridesNoticed) {
            self.error(&format!("{name}:{number}:notice: {text}\n"));
        } else {
            self.warn(name, number, text);
        }
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
            self.remark_override(file, number, &format!("override: reassigning to symbol {}", definition.name));
        }
        let verbatim = self.tree.dialect().has(Rule::VerbatimStrings);
        let value = match parse_value(definition.kind, assignment.value, verbatim) {
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
                    self.remark_override(file, number, &format!("override: {} changes choice state", definition.name));
                }
                _ => {}
            }
        }
        if let Some(value) = value {
            self.config.record(symbol, value);
        }
    }
}

/// What is wrong with a value.
enum Invalid {
    Value,
    Text,
}

/// Nothing for a value that a symbol of this type never has, without complaint.
fn parse_value(kind: SymbolType, value: &str, verbatim: bool) -> Result<Option<UserValue>, Invalid> {
    match (kind, value.as_bytes().first()) {
        (SymbolType::Tristate, Some(b'm')) => Ok(Some(UserValue::Tri(Tri::M))),
        (SymbolType::Bool | SymbolType::Tristate, Some(b'y')) => Ok(Some(UserValue::Tri(Tri::Y))),
        (SymbolType::Bool | SymbolType::Tristate, Some(b'n')) => Ok(Some(UserValue::Tri(Tri::N))),
        (SymbolType::String, Some(b'"')) => match dotconfig::unquote(value, verbatim) {
            Some(text) => Ok(Some(UserValue::Text(text.into()))),
            None => Err(Invalid::Text),
        },
        (SymbolType::Unknown | SymbolType::String, _) => Ok(None),
        (SymbolType::Int | SymbolType::Hex, _) if kind.accepts(value) => Ok(Some(UserValue::Text(value.into()))),
        _ => Err(Invalid::Value),
    }
}
