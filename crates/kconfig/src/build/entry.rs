//! One entry of the files: its node, and what its attributes say about its symbol or choice.

use thin_vec::ThinVec;

use super::Builder;
use crate::diagnostic::Diagnostic;
use crate::expr::{Atom, Expr, ExprId};
use crate::source::Span;
use crate::syntax::ast::{Attribute, Item, ItemKind, Located, RangeLine, Word};
use crate::syntax::reader::narrow;
use crate::tree::{Choice, ChoiceId, DefaultValue, NodeId, NodeKind, Prompt, RangeLimit, Selection, SymbolId};
use crate::value::SymbolType;

impl Builder<'_> {
    pub(super) fn build_entry(&mut self, item: Item, parent: NodeId) -> NodeId {
        let kind = match &item.kind {
            ItemKind::Config { menu: true, .. } => NodeKind::Menuconfig,
            ItemKind::Config { .. } => NodeKind::Config,
            ItemKind::Choice { .. } => NodeKind::Choice,
            ItemKind::Comment(_) => NodeKind::Comment,
            ItemKind::If(_) => NodeKind::If,
            ItemKind::Menu(_) | ItemKind::MainMenu(_) | ItemKind::Source => NodeKind::Menu,
        };
        let node = self.add_node(kind, Some(parent), item.span);
        match &item.kind {
            ItemKind::Config { symbol, .. } => {
                let symbol = *symbol;
                self.nodes[node.index()].symbol = Some(symbol);
                let definition = &mut self.symbols[symbol.index()];
                definition.nodes.push(node);
                definition.annotations.extend_from_slice(&item.annotations);
            }
            ItemKind::Choice { name, after } => self.open_choice(node, *name, *after),
            ItemKind::Menu(text) | ItemKind::Comment(text) => self.set_prompt(node, *text, ExprId::YES),
            ItemKind::If(condition) => self.add_dependency(node, *condition, ExprId::YES),
            ItemKind::MainMenu(_) | ItemKind::Source => {}
        }
        self.nodes[node.index()].comments = item.annotations;
        for number in item.attributes {
            let attribute = self.attributes.take(number);
            self.take_attribute(node, attribute);
        }
        self.inherit_visibility(node);
        node
    }

    fn open_choice(&mut self, node: NodeId, name: Option<Word>, after: u32) {
        let known = name.and_then(|name| self.choice_names.get(&name.text)).copied();
        let choice = known.unwrap_or_else(|| {
            let id = ChoiceId::new(self.choices.len());
            if let Some(name) = name {
                self.choice_names.insert(name.text, id);
            }
            self.choices.push(Choice {
                name: name.map(|name| self.names.shared(name.text)),
                kind: SymbolType::Unknown,
                nodes: ThinVec::new(),
                members: ThinVec::new(),
                defaults: ThinVec::new(),
                optional: false,
                after,
            });
            id
        });
        self.choices[choice.index()].nodes.push(node);
        self.nodes[node.index()].choice = Some(choice);
    }

    fn take_attribute(&mut self, node: NodeId, attribute: Attribute) {
        match attribute {
            Attribute::Type(kind, span) => self.set_type(node, kind, span),
            Attribute::Prompt { text, condition } => {
                let condition = self.condition(condition);
                self.set_prompt(node, text, condition);
            }
            Attribute::DependsOn { expression, condition } => self.add_dependency(node, expression, condition),
            Attribute::VisibleIf(expression) => {
                let visible = self.condition(expression.expr);
                let before = self.nodes[node.index()].visible_if;
                self.nodes[node.index()].visible_if = self.exprs.and(before, visible);
            }
            Attribute::Help(place) => self.nodes[node.index()].help = Some(place),
            Attribute::Optional => {
                if let Some(choice) = self.nodes[node.index()].choice {
                    self.choices[choice.index()].optional = true;
                }
            }
            Attribute::Default { value, condition } => self.add_default(node, value, condition),
            Attribute::Modules | Attribute::Ignored | Attribute::Pending(_) => {}
            other => {
                if let Some(symbol) = self.nodes[node.index()].symbol {
                    self.take_symbol_attribute(symbol, node, &other);
                }
            }
        }
    }

    /// What only symbols have.
    fn take_symbol_attribute(&mut self, symbol: SymbolId, node: NodeId, kind: &Attribute) {
        match *kind {
            Attribute::Select { target, span, condition } => {
                let selection = Selection { target, condition: self.condition(condition), node, span };
                self.symbols[symbol.index()].selects.push(selection);
            }
            Attribute::Imply { target, span, condition } => {
                let selection = Selection { target, condition: self.condition(condition), node, span };
                self.symbols[symbol.index()].implies.push(selection);
            }
            Attribute::Range(ref line) => {
                let RangeLine { low, high, span, condition } = **line;
                let condition = self.condition(condition);
                self.symbols[symbol.index()].ranges.push(RangeLimit { low, high, condition, node, span });
            }
            Attribute::Transitional => self.symbols[symbol.index()].transitional = true,
            Attribute::AllnoconfigY => self.symbols[symbol.index()].allnoconfig_y = true,
            Attribute::Env(variable) => {
                let name: Box<str> = self.names.text(variable.text).into();
                let value = self.env.read(&name).unwrap_or_else(|| {
                    let message = format!("the variable `{name}` is not set");
                    // The C tools complain of the entry.
                    let entry = self.nodes[node.index()].span;
                    self.findings
                        .push(Diagnostic::warning("K036", entry, message).with_label(variable.span, "this one"));
                    String::new()
                });
                let text = self.names.intern(&value);
                let value = self.exprs.atom(Atom::Text(text));
                let definition = &mut self.symbols[symbol.index()];
                definition.env = Some(name);
                definition
                    .defaults
                    .insert(0, DefaultValue { value, condition: ExprId::YES, node, span: variable.span });
            }
            _ => {}
        }
    }

    fn set_type(&mut self, node: NodeId, kind: SymbolType, span: Span) {
        let entry = &self.nodes[node.index()];
        if let Some(choice) = entry.choice {
            self.choices[choice.index()].kind = kind;
        }
        let Some(symbol) = entry.symbol else { return };
        let known = self.symbols[symbol.index()].kind;
        if known == SymbolType::Unknown {
            self.symbols[symbol.index()].kind = kind;
            self.type_spans[symbol.index()] = Some(span);
        } else if known != kind {
            let name = &self.symbols[symbol.index()].name;
            let message = format!("{name} is {known} already; this type is ignored");
            let mut finding = Diagnostic::warning("K021", span, message);
            if let Some(first) = self.type_spans[symbol.index()] {
                finding = finding.with_label(first, format!("{known} since here"));
            }
            self.findings.push(finding);
        }
    }

    fn set_prompt(&mut self, node: NodeId, text: Word, condition: ExprId) {
        if let Some(first) = &self.nodes[node.index()].prompt {
            let finding = Diagnostic::warning("K028", text.span, "this entry has a prompt already; this one counts");
            self.findings.push(finding.with_label(first.span, "the first prompt"));
        }
        let written = self.names.shared(text.text);
        // Blanks at the end are kept, as in the C tools.
        let mut shown = written.clone();
        if written.starts_with(char::is_whitespace) {
            self.findings.push(Diagnostic::warning("K029", text.span, "this prompt begins with blanks"));
            shown = written.trim_start().into();
        }
        self.nodes[node.index()].prompt = Some(Prompt { text: shown, condition, span: text.span });
    }

    /// Prompts of symbols and choices are hidden by `visible if` of the menus around them; menus
    /// themselves are not.
    fn inherit_visibility(&mut self, node: NodeId) {
        let entry = &self.nodes[node.index()];
        if entry.symbol.is_none() && entry.choice.is_none() {
            return;
        }
        let Some(mut condition) = entry.prompt.as_ref().map(|prompt| prompt.condition) else { return };
        let mut parent = entry.parent;
        while let Some(id) = parent {
            condition = self.exprs.and(condition, self.nodes[id.index()].visible_if);
            parent = self.nodes[id.index()].parent;
        }
        if let Some(prompt) = &mut self.nodes[node.index()].prompt {
            prompt.condition = condition;
        }
    }

    fn add_dependency(&mut self, node: NodeId, expression: Located, condition: ExprId) {
        let mut dependency = self.condition(expression.expr);
        if condition != ExprId::YES {
            // `depends on A if B` demands A unless B is `n`.
            let condition = self.condition(condition);
            let unless = self.exprs.equals_no(condition);
            dependency = self.exprs.or(dependency, unless);
        }
        let depends = self.exprs.and(self.nodes[node.index()].depends, dependency);
        let entry = &mut self.nodes[node.index()];
        entry.depends = depends;
        let number = narrow(self.written.len());
        self.written.push((dependency, expression.span));
        let lines = &mut entry.own.depends;
        let first = if lines.start == lines.end { number } else { lines.start };
        *lines = first..number + 1;
    }

    fn add_default(&mut self, node: NodeId, value: Located, condition: ExprId) {
        let condition = self.condition(condition);
        let default = DefaultValue { value: value.expr, condition, node, span: value.span };
        let entry = &self.nodes[node.index()];
        if let Some(choice) = entry.choice {
            if matches!(self.exprs.get(value.expr), Expr::Atom(Atom::Symbol(_))) {
                self.choices[choice.index()].defaults.push(default);
            } else {
                let message = "the default of a choice is one of its members";
                self.findings.push(Diagnostic::error("K030", value.span, message));
            }
        } else if let Some(symbol) = entry.symbol {
            let defaults = &mut self.symbols[symbol.index()].defaults;
            defaults.reserve_exact(1);
            defaults.push(default);
        }
    }
}
