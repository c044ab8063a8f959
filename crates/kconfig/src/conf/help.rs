//! What `?` shows: the help text, then everything about the symbol.

use super::session::Session;
use crate::expr::{Atom, ExprId};
use crate::tree::{ChoiceId, Node, NodeId, Selection, Symbol, SymbolId};
use crate::value::{SymbolType, Tri};

/// A place deeper in the menus than this is shown without its outermost menus.
const MAX_PLACES: usize = 8;

impl Session<'_, '_> {
    /// Prints the help of a node.
    pub(super) fn print_help(&mut self, id: NodeId) {
        let node = self.tree.node(id);
        let mut text = String::from("\n");
        match self.tree.raw_help(id) {
            Some(help) => {
                if let Some(symbol) = node.symbol {
                    text.extend([&*self.prefix, &*self.tree.get(symbol).name, ":\n\n"]);
                }
                text.push_str(&help);
            }
            None => text.push_str("There is no help available for this option."),
        }
        text.push('\n');
        if let Some(symbol) = node.symbol {
            self.describe(symbol, &mut text);
        } else if let Some(choice) = node.choice {
            for node in &self.tree.choice(choice).nodes {
                self.describe_place(*node, &mut text);
            }
            for (value, letter) in [(Tri::Y, 'y'), (Tri::M, 'm'), (Tri::N, 'n')] {
                self.describe_mode(choice, value, letter, &mut text);
            }
            text.push_str("\n\n");
        }
        text.push('\n');
        self.print(&text);
    }

    /// As in C, who sees a choice that has a mode and is not optional selects it.
    fn describe_mode(&self, id: ChoiceId, value: Tri, letter: char, text: &mut String) {
        let choice = self.tree.choice(id);
        if !self.tree.has_mode(id) || choice.optional {
            return;
        }
        let mut titled = false;
        for prompt in choice.nodes.iter().filter_map(|node| self.tree.node(*node).prompt.as_ref()) {
            if self.config.holds(prompt.condition).min(Tri::M) != value {
                continue;
            }
            if !std::mem::replace(&mut titled, true) {
                text.extend(["Selected by [", letter.encode_utf8(&mut [0; 4]), "]:\n"]);
            }
            text.push_str("  - ");
            if prompt.condition != ExprId::YES {
                self.push_term(prompt.condition, text);
                text.push_str(" && ");
            }
            self.push_atom(Atom::Tri(Tri::M), text);
            text.push('\n');
        }
    }

    fn describe(&self, id: SymbolId, text: &mut String) {
        let symbol = self.tree.get(id);
        text.extend(["Symbol: ", &symbol.name, " [=", self.config.value(id), "]\n"]);
        let kind = if symbol.kind == SymbolType::Int { "integer" } else { symbol.kind.as_str() };
        text.extend(["Type  : ", kind, "\n"]);
        if let Some((low, high)) = self.config.evaluator().active_limits(symbol) {
            text.push_str("Range : [");
            self.push_atom(low, text);
            text.push(' ');
            self.push_atom(high, text);
            text.push_str("]\n");
        }
        for with_prompt in [true, false] {
            for node in &symbol.nodes {
                if self.tree.node(*node).prompt.is_some() == with_prompt {
                    self.describe_place(*node, text);
                }
            }
        }
        self.describe_relations(symbol, text);
        text.push_str("\n\n");
    }

    fn describe_relations(&self, symbol: &Symbol, text: &mut String) {
        self.push_targets(&symbol.selects, "Selects: ", text);
        if symbol.selected_by != ExprId::NO {
            self.push_alternatives(symbol.selected_by, Tri::Y, "Selected by [y]:\n", text);
            self.push_alternatives(symbol.selected_by, Tri::M, "Selected by [m]:\n", text);
            self.push_alternatives(symbol.selected_by, Tri::N, "Selected by [n]:\n", text);
        }
        self.push_targets(&symbol.implies, "Implies: ", text);
        if symbol.implied_by != ExprId::NO {
            self.push_alternatives(symbol.implied_by, Tri::Y, "Implied by [y]:\n", text);
            self.push_alternatives(symbol.implied_by, Tri::M, "Implied by [m]:\n", text);
            self.push_alternatives(symbol.implied_by, Tri::N, "Implied by [n]:\n", text);
        }
    }

    fn push_targets(&self, targets: &[Selection], title: &str, text: &mut String) {
        for (index, selection) in targets.iter().enumerate() {
            text.push_str(if index == 0 { title } else { " && " });
            self.push_atom(Atom::Symbol(selection.target), text);
        }
        text.push_str(if targets.is_empty() { "" } else { "\n" });
    }

    fn describe_place(&self, id: NodeId, text: &mut String) {
        let node = self.tree.node(id);
        let line = node.span.line.to_string();
        text.extend(["Defined at ", self.tree.path(node.span.file), ":", &line, "\n"]);
        let Some(prompt) = &node.prompt else { return self.push_condition(node.depends, "  Depends on: ", text) };
        text.extend(["  Prompt: ", &prompt.text, "\n"]);
        self.push_condition(node.depends, "  Depends on: ", text);
        if node.depends != prompt.condition {
            self.push_condition(prompt.condition, "  Visible if: ", text);
        }
        text.push_str("  Location:\n");
        let mut places: Vec<&Node> = Vec::new();
        let mut at = Some(id);
        while let Some(id) = at.filter(|id| *id != self.tree.root() && places.len() < MAX_PLACES) {
            places.push(self.tree.node(id));
            at = self.tree.node(id).parent;
        }
        for (depth, place) in places.iter().rev().enumerate() {
            text.extend([&" ".repeat(2 * depth + 4), "-> ", self.title_of(place)]);
            match (place.symbol, place.choice) {
                (Some(symbol), _) => {
                    text.extend([" (", &*self.tree.get(symbol).name, " [=", self.config.value(symbol), "])"]);
                }
                (_, Some(choice)) => {
                    let name = self.tree.choice(choice).name.as_deref().unwrap_or("<choice>");
                    text.extend([" (", name, " [=", self.choice_tri(choice).as_str(), "])"]);
                }
                _ => {}
            }
            text.push('\n');
        }
    }

    fn push_condition(&self, condition: ExprId, title: &str, text: &mut String) {
        if condition != ExprId::YES {
            text.push_str(title);
            self.push_expr(condition, text);
            text.push('\n');
        }
    }

    /// The prompt of a node, else its symbol's name.
    pub(super) fn title_of<'n>(&'n self, node: &'n Node) -> &'n str {
        match (&node.prompt, node.symbol) {
            (Some(prompt), _) => &prompt.text,
            (None, Some(symbol)) => &self.tree.get(symbol).name,
            (None, None) => "",
        }
    }
}
