//! Writes `.config`, with the old one kept aside, and minimal configurations.

use std::fmt::Write as _;
use std::io;

use super::session::Session;
use crate::dialect::Rule;
use crate::dotconfig;
use crate::expr::{Atom, Expr};
use crate::text;
use crate::tree::SymbolId;
use crate::value::{SymbolType, Tri};

impl Session<'_, '_> {
    /// Writes the configuration; by way of another file unless `KCONFIG_OVERWRITECONFIG` is set.
    pub(super) fn write_config(&mut self) -> io::Result<()> {
        let name = self.config_name();
        if name.is_empty() {
            self.error("config name is empty\n");
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if self.is_directory(&name) {
            self.error(&format!("{name}: Is a directory\n"));
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.make_parents(&name)?;
        if !self.changed {
            self.recompute_unless_final();
        }
        let text = self.head(dotconfig::write(&self.config, &self.prefix));
        let bytes = text::to_bytes(&text);
        let overwrite = self.variable("KCONFIG_OVERWRITECONFIG").is_some_and(|value| !value.is_empty());
        let temporary = format!("{name}.{}.tmp", self.console.outside.process());
        let target = if overwrite { &name } else { &temporary };
        self.console.outside.write(target, &bytes)?;
        self.report_changed_input();
        if !overwrite {
            if self.tree.dialect().has(Rule::EqualConfigKept)
                && self.console.outside.read(&name).is_ok_and(|old| !old.is_empty() && old == *bytes)
            {
                self.remark(&format!("No change to {name}"));
                // A temporary file that stays behind does no harm.
                self.console.outside.remove(&temporary).ok();
                self.changed = false;
                return Ok(());
            }
            // There may be none yet.
            self.console.outside.rename(&name, &format!("{name}.old")).ok();
            self.console.outside.rename(&temporary, &name)?;
        }
        self.remark(&format!("configuration written to {name}"));
        self.changed = false;
        Ok(())
    }

    /// The text with the head that the dialect has instead of Linux's. Times are those of
    /// Greenwich.
    fn head(&self, text: String) -> String {
        if !self.tree.dialect().has(Rule::BusyBoxHead) {
            return text;
        }
        let version = self.variable("KERNELVERSION").unwrap_or_default();
        let epoch = self.variable("SOURCE_DATE_EPOCH").and_then(|epoch| epoch.parse().ok());
        let stamp = if self.variable("KCONFIG_NOTIMESTAMP").is_some_and(|value| !value.is_empty()) {
            String::new()
        } else {
            format!("# {}\n", show_time(epoch.unwrap_or_else(|| self.console.now().0)))
        };
        let body = text.splitn(5, '\n').nth(4).unwrap_or_default();
        format!("#\n# Automatically generated make config: don't edit\n# Busybox version: {version}\n{stamp}#\n{body}")
    }

    /// Writes what differs from the defaults.
    pub(super) fn write_minimal(&mut self, name: &str) -> io::Result<()> {
        // As in C, a file that cannot be written is found out about before anything is computed.
        self.console.outside.write(name, b"")?;
        self.recompute();
        let mut text = String::new();
        for symbol in self.tree.symbols_in_menus() {
            let can_differ = self.is_bare_member(symbol) || self.is_changeable(symbol);
            if self.config.is_written(symbol) && can_differ && !self.is_default(symbol) {
                dotconfig::push_line(&self.config, symbol, &self.prefix, &mut text);
            }
        }
        self.console.outside.write(name, &text::to_bytes(&text))?;
        self.report_changed_input();
        Ok(())
    }

    /// Whether a symbol would have its value anyway.
    fn is_default(&self, symbol: SymbolId) -> bool {
        if self.config.value(symbol) == self.default_value(symbol) {
            return true;
        }
        let definition = self.tree.get(symbol);
        let Some(choice) = definition.choice else { return false };
        let counts =
            !self.tree.has_mode(choice) || (!self.tree.choice(choice).optional && definition.kind == SymbolType::Bool);
        counts && self.config.tri(symbol) == Tri::Y && self.config.evaluator().choice_default(choice) == Some(symbol)
    }

    /// Whether this is the member of a choice where neither defaults nor selects of such count.
    fn is_bare_member(&self, symbol: SymbolId) -> bool {
        self.tree.get(symbol).choice.is_some() && self.tree.dialect().has(Rule::MembersWithoutDefaults)
    }

    /// The value that a symbol has while the user says nothing, as far as the C tools look at it:
    /// ranges do not count.
    pub(super) fn default_value(&self, symbol: SymbolId) -> &str {
        let definition = self.tree.get(symbol);
        let evaluator = self.config.evaluator();
        let answer = evaluator.answer(symbol);
        let active = evaluator.active_default(definition);
        if definition.kind.is_logical() && self.is_bare_member(symbol) {
            return Tri::N.as_str();
        }
        if definition.kind.is_logical() {
            let given =
                active.map_or(Tri::N, |(index, limit)| evaluator.eval(definition.defaults[index].value).min(limit));
            let mut value = given.max(answer.forced);
            let is_member = definition.choice.is_some();
            if value == Tri::M && (definition.kind == SymbolType::Bool || !is_member && evaluator.modules() == Tri::N) {
                value = Tri::Y;
            }
            return value.max(answer.implied).as_str();
        }
        let text = match active.map(|(index, _)| self.tree.expr(definition.defaults[index].value)) {
            Some(Expr::Atom(atom @ (Atom::Tri(_) | Atom::Text(_) | Atom::Symbol(_)))) => evaluator.default_text(atom),
            _ => "",
        };
        match definition.kind {
            SymbolType::Int if text.is_empty() && self.tree.dialect().has(Rule::NumbersStartAtZero) => "0",
            SymbolType::Hex if text.is_empty() && self.tree.dialect().has(Rule::NumbersStartAtZero) => "0x0",
            _ => text,
        }
    }

    /// With `KCONFIG_WARN_CHANGED_INPUT`: the user's values that did not become so, in the order of
    /// the menus.
    fn report_changed_input(&mut self) {
        let wanted = self.tree.dialect().has(Rule::ChangedInputWarning)
            && self.variable("KCONFIG_WARN_CHANGED_INPUT").is_some_and(|value| !value.is_empty());
        if !wanted {
            return;
        }
        let mut lines = String::new();
        for symbol in self.tree.symbols_in_menus() {
            self.push_changed(symbol, &mut lines);
        }
        if !lines.is_empty() {
            self.error(&format!("warning: user-provided values changed by Kconfig:\n{lines}"));
        }
    }

    fn push_changed(&self, symbol: SymbolId, lines: &mut String) {
        let definition = self.tree.get(symbol);
        let user = &self.config.user.symbols[symbol.index()];
        let (Some(wanted), true) = (user.counted(), definition.kind != SymbolType::Unknown) else { return };
        let value = self.config.value(symbol);
        if wanted.as_str() != value {
            // Writing to a String cannot fail.
            let _ = writeln!(lines, "  {}{}: {} -> {value}", self.prefix, definition.name, wanted.as_str());
        }
    }
}

/// Seconds since 1970 as C's `ctime` shows them.
fn show_time(seconds: u64) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let weekday = WEEKDAYS.get(usize::try_from(days % 7).unwrap_or(0)).copied().unwrap_or_default();
    let (mut year, mut day) = (1970, days);
    let is_leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{weekday} {} {:2} {hour:02}:{minute:02}:{second:02} {year}", MONTHS[month], day + 1)
}

#[cfg(test)]
mod tests {
    use super::show_time;

    #[test]
    fn times_are_shown_as_c_shows_them() {
        assert_eq!(show_time(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(show_time(951_782_400), "Tue Feb 29 00:00:00 2000");
        assert_eq!(show_time(1_795_421_153), "Mon Nov 23 08:05:53 2026");
    }
}
