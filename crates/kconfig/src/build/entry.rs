//! One entry of the files: its node, and what its attributes say about its symbol or choice.

use super::Builder;
use crate::diagnostic::Diagnostic;
use crate::expr::{Atom, Expr, ExprId};
use crate::source::Span;
use crate::syntax::ast::{Attribute, AttributeKind, Item, ItemKind, Located, Word};
use crate::tree::{Choice, ChoiceId, DefaultValue, NodeId, NodeKind, Prompt, RangeLimit, Selection, SymbolId};
use crate::value::SymbolType;

impl Builder<'_> {
    pub(super) fn build_entry(&mut self, item: &Item, parent: NodeId) -> NodeId {
        let kind = match &item.kind {
            ItemKind::Config { menu: true, .. } => NodeKind::Menuconfig,
            ItemKind::Config { .. } => NodeKind::Config,
            ItemKind::Choice { .. } => NodeKind::Choice,
            ItemKind::Comment(_) => NodeKind::Comment,
            ItemKind::If(_) => NodeKind::If,
            ItemKind::Menu(_) | ItemKind::MainMenu(_) | ItemKind::Source => NodeKind::Menu,
        };
        let node = self.add_node(kind, Some(parent), item.span);
        self.nodes[node.index()].comments.clone_from(&item.annotations);
        match &item.kind {
            ItemKind::Config { name, .. } => {
                let symbol = self.intern(&name.text, name.span);
                self.nodes[node.index()].symbol = Some(symbol);
                let definition = &mut self.symbols[symbol.index()];
                definition.nodes.push(node);
                definition.annotations.extend_from_slice(&item.annotations);
            }
            ItemKind::Choice { name } => self.open_choice(node, name.as_ref()),
            ItemKind::Menu(text) | ItemKind::Comment(text) => self.set_prompt(node, text, ExprId::YES),
            ItemKind::If(condition) => self.add_dependency(node, condition, None),
            ItemKind::MainMenu(_) | ItemKind::Source => {}
        }
        for attribute in &item.attributes {
            self.take_attribute(node, attribute);
        }
        self.inherit_visibility(node);
        node
    }

    fn open_choice(&mut self, node: NodeId, name: Option<&Word>) {
        let known = name.and_then(|name| self.choice_names.get(&*name.text)).copied();
        let choice = known.unwrap_or_else(|| {
            let id = ChoiceId::new(self.choices.len());
            let name: Option<std::sync::Arc<str>> = name.map(|name| (*name.text).into());
            if let Some(name) = &name {
                self.choice_names.insert(std::sync::Arc::clone(name), id);
            }
            self.choices.push(Choice {
                name,
                kind: SymbolType::Unknown,
                nodes: Vec::new(),
                members: Vec::new(),
                defaults: Vec::new(),
                optional: false,
            });
            id
        });
        self.choices[choice.index()].nodes.push(node);
        self.nodes[node.index()].choice = Some(choice);
    }

    fn take_attribute(&mut self, node: NodeId, attribute: &Attribute) {
        match &attribute.kind {
            AttributeKind::Type { kind } => self.set_type(node, *kind, attribute.span),
            AttributeKind::Prompt { text, condition } => {
                let condition = self.lower_optional(condition.as_ref());
                self.set_prompt(node, text, condition);
            }
            AttributeKind::DependsOn { expression, condition } => {
                self.add_dependency(node, expression, condition.as_ref());
            }
            AttributeKind::VisibleIf(expression) => {
                let visible = self.lower_condition(&expression.expression);
                let before = self.nodes[node.index()].visible_if;
                self.nodes[node.index()].visible_if = self.exprs.and(before, visible);
            }
            AttributeKind::Help(text) => self.nodes[node.index()].help = Some(text.clone()),
            AttributeKind::Optional => {
                if let Some(choice) = self.nodes[node.index()].choice {
                    self.choices[choice.index()].optional = true;
                }
            }
            AttributeKind::Default { value, condition } => self.add_default(node, value, condition.as_ref()),
            AttributeKind::Modules | AttributeKind::Ignored => {}
            other => {
                if let Some(symbol) = self.nodes[node.index()].symbol {
                    self.take_symbol_attribute(symbol, node, other);
                }
            }
        }
    }

    /// What only symbols have.
    fn take_symbol_attribute(&mut self, symbol: SymbolId, node: NodeId, kind: &AttributeKind) {
        match kind {
            AttributeKind::Select { target, condition } | AttributeKind::Imply { target, condition } => {
                let span = target.span;
                let target = self.intern(&target.text, span);
                let condition = self.lower_optional(condition.as_ref());
                let selection = Selection { target, condition, node, span };
                let definition = &mut self.symbols[symbol.index()];
                let imply = matches!(kind, AttributeKind::Imply { .. });
                if imply { &mut definition.implies } else { &mut definition.selects }.push(selection);
            }
            AttributeKind::Range { low, high, condition } => {
                let span = if low.span.line == high.span.line && low.span.file == high.span.file {
                    Span { len: (high.span.col + high.span.len).saturating_sub(low.span.col), ..low.span }
                } else {
                    low.span
                };
                let (low, high) = (self.lower_word(low), self.lower_word(high));
                let condition = self.lower_optional(condition.as_ref());
                self.symbols[symbol.index()].ranges.push(RangeLimit { low, high, condition, node, span });
            }
            AttributeKind::Transitional => self.symbols[symbol.index()].transitional = true,
            AttributeKind::Env(variable) => {
                let value = self.env.get(&variable.text).unwrap_or_default();
                let text = self.exprs.intern_text(&value);
                let value = self.exprs.atom(Atom::Text(text));
                let definition = &mut self.symbols[symbol.index()];
                definition.env = Some(variable.text.to_string());
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
            self.type_spans.insert(symbol, span);
        } else if known != kind {
            let name = &self.symbols[symbol.index()].name;
            let message = format!("{name} is {known} already; this type is ignored");
            let mut finding = Diagnostic::warning("K021", span, message);
            if let Some(first) = self.type_spans.get(&symbol) {
                finding = finding.with_label(*first, format!("{known} since here"));
            }
            self.findings.push(finding);
        }
    }

    fn set_prompt(&mut self, node: NodeId, text: &Word, condition: ExprId) {
        if let Some(first) = &self.nodes[node.index()].prompt {
            let finding = Diagnostic::warning("K028", text.span, "this entry has a prompt already; this one counts");
            self.findings.push(finding.with_label(first.span, "the first prompt"));
        }
        if text.text.trim() != &*text.text {
            self.findings.push(Diagnostic::warning("K029", text.span, "this prompt begins or ends with blanks"));
        }
        let prompt = Prompt { text: text.text.trim().to_owned(), condition, span: text.span };
        self.nodes[node.index()].prompt = Some(prompt);
    }

    /// Prompts of symbols and choices are hidden by `visible if` of the menus around them; menus themselves are not.
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

    fn add_dependency(&mut self, node: NodeId, expression: &Located, condition: Option<&Located>) {
        let mut dependency = self.lower_condition(&expression.expression);
        if let Some(condition) = condition {
            // `depends on A if B` demands A only while B holds.
            let condition = self.lower_condition(&condition.expression);
            let not = self.exprs.not(condition);
            dependency = self.exprs.or(dependency, not);
        }
        let depends = self.exprs.and(self.nodes[node.index()].depends, dependency);
        let entry = &mut self.nodes[node.index()];
        entry.depends = depends;
        entry.own.depends.push((dependency, expression.span));
    }

    fn add_default(&mut self, node: NodeId, value: &Located, condition: Option<&Located>) {
        let span = value.span;
        let value = self.lower(&value.expression);
        let condition = self.lower_optional(condition);
        let default = DefaultValue { value, condition, node, span };
        let entry = &self.nodes[node.index()];
        if let Some(choice) = entry.choice {
            if matches!(self.exprs.get(value), Expr::Atom(Atom::Symbol(_))) {
                self.choices[choice.index()].defaults.push(default);
            } else {
                self.findings.push(Diagnostic::error("K030", span, "the default of a choice is one of its members"));
            }
        } else if let Some(symbol) = entry.symbol {
            self.symbols[symbol.index()].defaults.push(default);
        }
    }

    fn lower_optional(&mut self, condition: Option<&Located>) -> ExprId {
        condition.map_or(ExprId::YES, |condition| self.lower_condition(&condition.expression))
    }
}
