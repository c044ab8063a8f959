//! What `?` shows: the help text, then everything about the symbol.

use super::session::Session;
use crate::expr::{Atom, ExprId};
use crate::tree::{Node, NodeId, Selection, Symbol, SymbolId};
use crate::value::{SymbolType, Tri};

/// A place deeper in the menus than this is shown without its outermost menus.
const MAX_PLACES: usize = 8;

impl Session<'_, '_> {
    /// Prints the help of a node.
    pub(super) fn print_help(&mut self, id: NodeId) {
        let node = self.tree.node(id);
        let mut text = String::from("\n");
        match self.tree.help(id) {
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
            text.push_str("\n\n");
        }
        text.push('\n');
        self.print(&text);
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
