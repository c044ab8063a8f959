//! What is wrong with a tree besides its syntax, as far as the C tools complain, and undefined
//! names.

use crate::diagnostic::Diagnostic;
use crate::expr::{Atom, Expr};
use crate::source::Span;
use crate::suggest::{Candidates, suggest};
use crate::tree::{NodeId, NodeKind, SymbolId, Tree};
use crate::value::SymbolType;

impl Tree {
    /// Everything that is doubtful about a tree that can be used; undefined names that are known
    /// elsewhere are not.
    pub(crate) fn check(&self, is_known: &dyn Fn(&str) -> bool) -> Vec<Diagnostic> {
        let mut findings = Vec::new();
        self.check_names(is_known, &mut findings);
        for (id, _) in self.symbols() {
            self.check_type(id, &mut findings);
            self.check_defaults(id, &mut findings);
            self.check_selections(id, &mut findings);
            self.check_ranges(id, &mut findings);
        }
        self.check_menus(&mut findings);
        self.check_choices(&mut findings);
        findings
    }

    /// Undefined names stand for themselves as text and are `n`: legal, and nearly always a
    /// mistake.
    fn check_names(&self, is_known: &dyn Fn(&str) -> bool, findings: &mut Vec<Diagnostic>) {
        let known = self.symbols.iter().filter(|other| !other.nodes.is_empty());
        let known = Candidates::new(known.map(|other| &*other.name));
        for symbol in &self.symbols {
            let (true, Some(span)) = (symbol.nodes.is_empty(), symbol.first_reference) else { continue };
            if is_known(&symbol.name) {
                continue;
            }
            let help = match known.nearest(&symbol.name) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("if a constant is meant, put it in quotes: \"{}\"", symbol.name),
            };
            findings.push(Diagnostic::warning("K023", span, format!("{} is not defined", symbol.name)).with_help(help));
        }
    }

    fn span_of(&self, id: SymbolId) -> Span {
        self.nodes[self.symbols[id.index()].nodes[0].index()].span
    }

    fn check_type(&self, id: SymbolId, findings: &mut Vec<Diagnostic>) {
        let symbol = &self.symbols[id.index()];
        if symbol.kind == SymbolType::Unknown {
            let finding = Diagnostic::warning("K022", self.span_of(id), format!("{} has no type", symbol.name));
            findings.push(finding.with_help("add bool, tristate, int, hex or string to one of its definitions"));
        }
    }

    fn check_defaults(&self, id: SymbolId, findings: &mut Vec<Diagnostic>) {
        let symbol = &self.symbols[id.index()];
        for default in &symbol.defaults {
            let problem = match self.exprs.get(default.value) {
                _ if symbol.kind == SymbolType::Unknown => None,
                Expr::Atom(atom) => self.refuse_value(atom, symbol.kind),
                _ if symbol.kind.is_logical() => None,
                _ => {
                    let message = format!("the default of a {} is one constant or one symbol", symbol.kind);
                    findings.push(Diagnostic::warning("K024", default.span, message));
                    continue;
                }
            };
            if let Some(problem) = problem {
                let kind = with_article(symbol.kind);
                let message = format!("{problem} cannot be the default of {}, which is {kind}", symbol.name);
                findings.push(Diagnostic::warning("K024", default.span, message));
            }
        }
    }

    /// What an atom is when it is no value of a type.
    fn refuse_value(&self, atom: Atom, kind: SymbolType) -> Option<String> {
        match atom {
            Atom::Tri(tri) if kind.is_numeric() => Some(format!("`{tri}`")),
            Atom::Text(text) => {
                let text = self.names.text(text);
                (!kind.accepts(text)).then(|| format!("`{text}`"))
            }
            Atom::Symbol(other) => {
                let other = &self.symbols[other.index()];
                let fits = match other.kind {
                    SymbolType::Unknown => {
                        kind != SymbolType::Int && kind != SymbolType::Hex || !other.nodes.is_empty()
                    }
                    // Any text may hold a number; a number is a text.
                    SymbolType::String => !kind.is_logical(),
                    other if other.is_logical() => !kind.is_numeric(),
                    other => other == kind || kind == SymbolType::String,
                };
                (!fits).then(|| match other.kind {
                    SymbolType::Unknown => format!("{}, which is not defined,", other.name),
                    kind => format!("{}, {},", other.name, with_article(kind)),
                })
            }
            Atom::Tri(_) | Atom::Choice(_) => None,
        }
    }

    fn check_selections(&self, id: SymbolId, findings: &mut Vec<Diagnostic>) {
        let symbol = &self.symbols[id.index()];
        for (selection, word) in
            symbol.selects.iter().map(|s| (s, "select")).chain(symbol.implies.iter().map(|s| (s, "imply")))
        {
            if !symbol.kind.is_logical() && symbol.kind != SymbolType::Unknown {
                let message =
                    format!("{} is {}: only bool and tristate can {word}", symbol.name, with_article(symbol.kind));
                findings.push(Diagnostic::warning("K025", selection.span, message));
            }
            let target = &self.symbols[selection.target.index()];
            if !target.kind.is_logical() && target.kind != SymbolType::Unknown {
                let message = format!(
                    "{} is {}: only bool and tristate can be the target of {word}",
                    target.name,
                    with_article(target.kind)
                );
                let finding = Diagnostic::warning("K025", selection.span, message);
                findings.push(finding.with_label(self.span_of(selection.target), "defined here"));
            }
        }
    }

    fn check_ranges(&self, id: SymbolId, findings: &mut Vec<Diagnostic>) {
        let symbol = &self.symbols[id.index()];
        for range in &symbol.ranges {
            if !symbol.kind.is_numeric() {
                if symbol.kind != SymbolType::Unknown {
                    let message =
                        format!("{} is {}: only int and hex have ranges", symbol.name, with_article(symbol.kind));
                    findings.push(Diagnostic::warning("K026", range.span, message));
                }
                continue;
            }
            let problem =
                self.refuse_value(range.low, symbol.kind).or_else(|| self.refuse_value(range.high, symbol.kind));
            if let Some(problem) = problem {
                let message = format!("{problem} cannot limit {}, which is {}", symbol.name, with_article(symbol.kind));
                findings.push(Diagnostic::warning("K026", range.span, message));
                continue;
            }
            let number = |atom| match atom {
                Atom::Text(text) => symbol.kind.parse_number(self.names.text(text)),
                _ => None,
            };
            if let (Some(low), Some(high)) = (number(range.low), number(range.high))
                && low > high
            {
                findings.push(Diagnostic::warning("K026", range.span, "the lower limit is above the upper one"));
            }
        }
    }

    fn check_menus(&self, findings: &mut Vec<Diagnostic>) {
        let never_shown = |span, what| {
            let (id, what) = what;
            Diagnostic::warning(id, span, format!("this {what} has no prompt"))
                .with_help("without one it is never shown")
        };
        let has_prompt = |node: &NodeId| self.nodes[node.index()].prompt.is_some();
        let menus = self.nodes.iter().filter(|node| node.kind == NodeKind::Menuconfig && node.prompt.is_none());
        findings.extend(menus.map(|node| never_shown(node.span, ("K031", "menuconfig"))));
        // A named choice may be continued elsewhere without repeating its prompt.
        let choices = self.choices.iter().filter(|choice| !choice.nodes.iter().any(has_prompt));
        findings
            .extend(choices.map(|choice| never_shown(self.nodes[choice.nodes[0].index()].span, ("K027", "choice"))));
    }

    fn check_choices(&self, findings: &mut Vec<Diagnostic>) {
        for choice in &self.choices {
            for member in &choice.members {
                let symbol = &self.symbols[member.index()];
                if !symbol.nodes.iter().any(|node| self.nodes[node.index()].prompt.is_some()) {
                    let message = format!("{} is a member of a choice and has no prompt", symbol.name);
                    findings.push(Diagnostic::warning("K027", self.span_of(*member), message));
                }
                if let Some(default) = symbol.defaults.first() {
                    let message = format!("{} is a member of a choice: its default has no effect", symbol.name);
                    let finding = Diagnostic::warning("K027", default.span, message);
                    findings.push(finding.with_help("give the default to the choice"));
                }
                if !symbol.kind.is_logical() {
                    let message =
                        format!("{} is {}: members of a choice are bool", symbol.name, with_article(symbol.kind));
                    findings.push(Diagnostic::warning("K027", self.span_of(*member), message));
                }
            }
            for default in &choice.defaults {
                if let Expr::Atom(Atom::Symbol(symbol)) = self.exprs.get(default.value)
                    && !choice.members.contains(&symbol)
                {
                    let names = choice.members.iter().map(|member| &*self.symbols[member.index()].name);
                    let name = &self.symbols[symbol.index()].name;
                    let help = suggest(name, names).map(|near| format!("did you mean `{near}`?"));
                    let mut finding =
                        Diagnostic::warning("K030", default.span, format!("{name} is not a member of this choice"));
                    finding.help = help;
                    findings.push(finding);
                }
            }
        }
    }
}

fn with_article(kind: SymbolType) -> String {
    match kind {
        SymbolType::Int => "an int".to_owned(),
        SymbolType::Unknown => "not typed".to_owned(),
        kind => format!("a {kind}"),
    }
}
