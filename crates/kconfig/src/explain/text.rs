//! An explanation as readable text.

use std::fmt;

use super::{Condition, Definition, Explanation, Link, Plan, Reason};
use crate::value::{SymbolType, Tri};

/// More names than this are counted, not listed.
const MAX_NAMES: usize = 40;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = match self.kind {
            SymbolType::String => format!("\"{}\"", self.value),
            _ if self.value.is_empty() => "no value".to_owned(),
            _ => self.value.clone(),
        };
        writeln!(f, "{} ({}) = {value}", self.name, self.kind)?;
        self.fmt_value(f)?;
        for definition in &self.definitions {
            fmt_definition(definition, f)?;
        }
        fmt_links("selects", &self.selects, f)?;
        fmt_links("implies", &self.implies, f)?;
        fmt_links("selected by", &self.selected_by, f)?;
        fmt_links("implied by", &self.implied_by, f)?;
        if !self.used_by.is_empty() {
            let shown = self.used_by.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = self.used_by.len().saturating_sub(MAX_NAMES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            writeln!(f, "\nconcerns\n  {shown}{more}")?;
        }
        Ok(())
    }
}

impl Explanation {
    /// The value: why, what limits it, and what would change it.
    fn fmt_value(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nwhy")?;
        fmt_reason(&self.reason, 1, f)?;
        if let Some(ignored) = &self.ignored {
            writeln!(f, "  `{ignored}` was set, and does not count")?;
        }
        if self.line.is_none() {
            writeln!(f, "  it has no line in .config")?;
        }
        if let Some(choice) = &self.choice {
            let selected = choice.selected.as_deref().unwrap_or("none");
            writeln!(f, "  in the choice `{}` of {}: {selected}", choice.prompt, choice.members.join(", "))?;
        }
        writeln!(f, "\nmay be set to")?;
        if self.visible == Tri::N {
            writeln!(f, "  nothing now:")?;
            for reason in &self.blocked {
                writeln!(f, "    {reason}")?;
            }
            self.expected.iter().try_for_each(|expected| writeln!(f, "  and then: {expected}"))?;
        } else if self.kind.is_logical() {
            let values: Vec<&str> = self.assignable.iter().map(|tri| tri.as_str()).collect();
            writeln!(f, "  {}", if values.is_empty() { "nothing else".to_owned() } else { values.join(", ") })?;
        } else if let Some((low, high)) = self.range {
            let hex = self.kind == SymbolType::Hex;
            let show = |number: i64| if hex { format!("{number:#x}") } else { number.to_string() };
            writeln!(f, "  {} to {}", show(low), show(high))?;
        } else if let Some(expected) = &self.expected {
            writeln!(f, "  {expected}")?;
        } else {
            writeln!(f, "  any {}", self.kind)?;
        }
        self.plans.iter().try_for_each(|plan| fmt_plan(&self.name, plan, f))
    }
}

fn fmt_plan(name: &str, plan: &Plan, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match &plan.value {
        Some(value) => writeln!(f, "  for {name}={value}:")?,
        None => writeln!(f, "  to be able to set it:")?,
    }
    for step in &plan.steps {
        let prompt = step.prompt.as_ref().map_or_else(String::new, |prompt| format!("  ({prompt})"));
        writeln!(f, "    {}={}{prompt}", step.name, step.value)?;
    }
    Ok(())
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_reason(self, 0, f)
    }
}

fn fmt_reason(reason: &Reason, level: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let value = if reason.value.is_empty() { "\"\"" } else { &reason.value };
    write!(f, "{:indent$}{} is {value}: {}", "", reason.name, reason.how, indent = level * 2)?;
    match &reason.location {
        Some(location) => writeln!(f, " ({location})")?,
        None => writeln!(f)?,
    }
    reason.because.iter().try_for_each(|cause| fmt_reason(cause, level + 1, f))
}

fn fmt_definition(definition: &Definition, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "\ndefined at {}", definition.location)?;
    writeln!(f, "  in {}", definition.menus.join(" > "))?;
    if let Some(prompt) = &definition.prompt {
        writeln!(f, "  prompt `{prompt}`")?;
    }
    for term in &definition.depends {
        writeln!(f, "  depends on {}", show(term))?;
    }
    let dependencies: Vec<&str> = definition.depends.iter().map(|term| term.text.as_str()).collect();
    if let Some(shown) = definition.shown_if.as_ref().filter(|shown| shown.text != dependencies.join(" && ")) {
        writeln!(f, "  shown if {}", show(shown))?;
    }
    for (word, list) in [("default", &definition.defaults), ("range", &definition.ranges)] {
        for entry in list {
            write!(f, "  {word} {}", entry.value)?;
            match &entry.condition {
                Some(condition) => writeln!(f, " if {}", show(condition))?,
                None => writeln!(f)?,
            }
        }
    }
    for line in definition.help.iter().flat_map(|help| help.lines()) {
        writeln!(f, "{}", format!("    {line}").trim_end())?;
    }
    Ok(())
}

fn show(condition: &Condition) -> String {
    format!("{} [{}]", condition.text, condition.value)
}

fn fmt_links(title: &str, links: &[Link], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if links.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{title}")?;
    // Those that act now first.
    let (active, idle): (Vec<&Link>, Vec<&Link>) = links.iter().partition(|link| link.strength != Tri::N);
    let total = links.len();
    for link in active.iter().chain(&idle).take(MAX_NAMES) {
        let condition =
            link.condition.as_ref().map_or_else(String::new, |condition| format!(" if {}", show(condition)));
        writeln!(f, "  {} [{}]{condition} ({})", link.name, link.strength, link.location)?;
    }
    if total > MAX_NAMES {
        writeln!(f, "  and {} more", total - MAX_NAMES)?;
    }
    Ok(())
}
