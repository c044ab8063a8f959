//! Recursive dependencies, told as the C tools tell them: each cycle step by step, in the order in
//! which they are met.

use std::fmt::Write as _;

use super::order::{self, Vertex};
use crate::dialect::Rule;
use crate::expr::{Atom, Expr, ExprId};
use crate::source::Span;
use crate::tree::{ChoiceId, Node, NodeKind, Tree};

/// A cycle behind a chain longer than this is not looked for: the tree is refused anyway.
const MAX_DEPTH: usize = 2_000;

/// Why one symbol needs another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Member,
    Depends,
    Selected,
    Implied,
    /// A default's value, or another property's condition.
    Contains(&'static str, Span),
    Visible(&'static str, Span),
}

/// One symbol on the way to where the search is.
#[derive(Clone, Copy)]
struct Step {
    vertex: Vertex,
    how: How,
}

/// A search through all dependencies.
pub(super) struct Check<'t> {
    tree: &'t Tree,
    path: Vec<Step>,
    open: Vec<bool>,
    seen: Vec<bool>,
}

/// Up to 6.10: all symbols in the order of the table.
pub(super) fn describe_all(tree: &Tree, text: &mut String) {
    let mut check = Check::new(tree);
    for vertex in order::all(tree) {
        check.check(vertex, text);
    }
}

impl<'t> Check<'t> {
    pub(super) fn new(tree: &'t Tree) -> Self {
        let vertices = tree.symbols.len() + tree.choices.len();
        Self { tree, path: Vec::new(), open: vec![false; vertices], seen: vec![false; vertices] }
    }

    /// Looks for cycles behind the symbol or choice of a node.
    pub(super) fn visit(&mut self, node: &Node, text: &mut String) {
        let vertex = node.symbol.map(Vertex::Symbol).or(node.choice.map(Vertex::Choice));
        if let Some(vertex) = vertex {
            self.check(vertex, text);
        }
    }

    fn index(&self, vertex: Vertex) -> usize {
        match vertex {
            Vertex::Symbol(symbol) => symbol.index(),
            Vertex::Choice(choice) => self.tree.symbols.len() + choice.index(),
        }
    }

    fn choice_of(&self, vertex: Vertex) -> Option<ChoiceId> {
        match vertex {
            Vertex::Symbol(symbol) => self.tree.get(symbol).choice,
            Vertex::Choice(_) => None,
        }
    }

    /// The symbol at which a cycle was met, until the search is back at it.
    fn check(&mut self, vertex: Vertex, text: &mut String) -> Option<Vertex> {
        let index = self.index(vertex);
        if self.open[index] {
            self.describe(vertex, text);
            return Some(vertex);
        }
        if std::mem::replace(&mut self.seen[index], true) || self.path.len() > MAX_DEPTH {
            return None;
        }
        if let Some(choice) = self.choice_of(vertex) {
            // The choice looks at all its members.
            self.seen[index] = false;
            self.path.push(Step { vertex, how: How::Member });
            let met = self.check(Vertex::Choice(choice), text);
            self.path.pop();
            self.seen[index] = true;
            return met;
        }
        if let Vertex::Choice(choice) = vertex {
            return self.check_choice(choice, text);
        }
        self.open[index] = true;
        let met = self.check_needs(vertex, text);
        self.open[index] = false;
        met
    }

    fn check_choice(&mut self, choice: ChoiceId, text: &mut String) -> Option<Vertex> {
        let vertex = Vertex::Choice(choice);
        self.path.push(Step { vertex, how: How::Member });
        let members: Vec<Vertex> =
            self.tree.choice(choice).members.iter().map(|member| Vertex::Symbol(*member)).collect();
        for member in &members {
            let index = self.index(*member);
            (self.open[index], self.seen[index]) = (true, true);
        }
        let index = self.index(vertex);
        self.open[index] = true;
        let mut met = self.check_needs(vertex, text);
        self.open[index] = false;
        for member in &members {
            if met.is_none() {
                met = self.check_needs(*member, text);
            }
        }
        for member in &members {
            let index = self.index(*member);
            self.open[index] = false;
        }
        self.path.pop();
        met.map(|met| if self.choice_of(met) == Some(choice) { vertex } else { met })
    }

    fn check_needs(&mut self, vertex: Vertex, text: &mut String) -> Option<Vertex> {
        let at = self.path.len();
        self.path.push(Step { vertex, how: How::Depends });
        let mut met = None;
        for (how, expr) in self.needs(vertex) {
            self.path[at].how = how;
            met = self.check_expr(expr, text);
            if met.is_some() {
                break;
            }
        }
        self.path.pop();
        // Once the search is back at the symbol that closed the cycle, others may be looked for.
        met
    }

    /// What a symbol needs, in the order of the C tools.
    fn needs(&self, vertex: Vertex) -> Vec<(How, ExprId)> {
        let mut needs = Vec::new();
        let mut places = Vec::new();
        let (nodes, defaults) = match vertex {
            Vertex::Symbol(id) => {
                let symbol = self.tree.get(id);
                if symbol.choice.is_none() || self.tree.dialect().has(Rule::ChoiceModes) {
                    needs.push((How::Depends, symbol.direct_dependency));
                }
                needs.push((How::Selected, symbol.selected_by));
                needs.push((How::Implied, symbol.implied_by));
                places.extend(symbol.ranges.iter().map(|range| (range.span, "range", range.condition, None)));
                (symbol.nodes.as_slice(), &symbol.defaults)
            }
            Vertex::Choice(id) => (self.tree.choice(id).nodes.as_slice(), &self.tree.choice(id).defaults),
        };
        for id in nodes {
            let node = self.tree.node(*id);
            if let Some(prompt) = &node.prompt {
                let word = if node.kind == NodeKind::Menuconfig { "menu" } else { "prompt" };
                places.push((prompt.span, word, prompt.condition, None));
            }
        }
        let is_symbol = matches!(vertex, Vertex::Symbol(_));
        for default in defaults {
            places.push((default.span, "default", default.condition, Some(default.value).filter(|_| is_symbol)));
        }
        places.sort_by_key(|(span, ..)| *span);
        for (span, word, condition, value) in places {
            needs.push((How::Visible(word, span), condition));
            needs.extend(value.map(|value| (How::Contains(word, span), value)));
        }
        needs
    }

    fn check_expr(&mut self, expr: ExprId, text: &mut String) -> Option<Vertex> {
        let mut stack = vec![expr];
        while let Some(expr) = stack.pop() {
            let atoms = match self.tree.expr(expr) {
                Expr::Atom(atom) => [Some(atom), None],
                Expr::Compare(_, left, right) => [Some(left), Some(right)],
                Expr::Not(inner) => {
                    stack.push(inner);
                    [None, None]
                }
                Expr::And(left, right) | Expr::Or(left, right) => {
                    stack.extend([right, left]);
                    [None, None]
                }
            };
            for atom in atoms.into_iter().flatten() {
                let met = match atom {
                    Atom::Symbol(symbol) => self.check(Vertex::Symbol(symbol), text),
                    Atom::Choice(choice) => self.check(Vertex::Choice(choice), text),
                    Atom::Tri(_) | Atom::Text(_) => None,
                };
                if met.is_some() {
                    return met;
                }
            }
        }
        None
    }

    /// Tells the steps from where the path was at `last` before; writing to a String cannot fail.
    fn describe(&mut self, last: Vertex, text: &mut String) {
        let mut steps = self.path.clone();
        let mut last = last;
        if let Some(choice) = self.choice_of(last) {
            steps.push(Step { vertex: last, how: How::Member });
            last = Vertex::Choice(choice);
        }
        let Some(first) = steps.iter().rposition(|step| step.vertex == last) else { return };
        let cycle = &steps[first..];
        for (at, step) in cycle.iter().enumerate() {
            let next = cycle.get(at + 1).map_or(last, |next| next.vertex);
            if self.tree.dialect().has(Rule::ChoiceModes) {
                self.describe_with_place(step, next, at == 0, text);
            } else {
                self.describe_step(step, next, step.vertex == last, text);
            }
        }
        text.push_str(
            "For a resolution refer to Documentation/kbuild/kconfig-language.rst\n\
             subsection \"Kconfig recursive dependency limitations\"\n\n",
        );
    }

    fn name(&self, vertex: Vertex) -> &str {
        match vertex {
            Vertex::Symbol(symbol) => &self.tree.get(symbol).name,
            Vertex::Choice(choice) => self.tree.choice(choice).name.as_deref().unwrap_or("<choice>"),
        }
    }

    fn place(&self, vertex: Vertex) -> String {
        let nodes = match vertex {
            Vertex::Symbol(symbol) => self.tree.get(symbol).nodes.as_slice(),
            Vertex::Choice(choice) => self.tree.choice(choice).nodes.as_slice(),
        };
        nodes.first().map_or(String::new(), |node| self.line(self.tree.node(*node).span))
    }

    fn line(&self, span: Span) -> String {
        format!("{}:{}", self.tree.path(span.file), span.line)
    }

    fn describe_step(&self, step: &Step, next: Vertex, is_first: bool, text: &mut String) {
        if is_first {
            text.push_str("error: recursive dependency detected!\n");
        }
        let (name, other) = (self.name(step.vertex), self.name(next));
        let _ = if let Vertex::Choice(_) = next {
            writeln!(text, "\tsymbol {name} is part of choice block at {}", self.place(next))
        } else {
            writeln!(text, "\tsymbol {name} {}", relation(step.how, other))
        };
    }

    /// Up to 6.10 every line has the place, and choices contain their members.
    fn describe_with_place(&self, step: &Step, next: Vertex, is_first: bool, text: &mut String) {
        let place = match step.how {
            How::Contains(_, span) | How::Visible(_, span) if self.choice_of(step.vertex).is_none() => self.line(span),
            _ => self.place(step.vertex),
        };
        if is_first {
            let _ = writeln!(text, "{place}:error: recursive dependency detected!");
        }
        let (name, other) = (self.name(step.vertex), self.name(next));
        let _ = if let Vertex::Choice(_) = step.vertex {
            writeln!(text, "{place}:\tchoice {name} contains symbol {other}")
        } else if self.choice_of(step.vertex).is_some() {
            writeln!(text, "{place}:\tsymbol {name} is part of choice {other}")
        } else {
            writeln!(text, "{place}:\tsymbol {name} {}", relation(step.how, other))
        };
    }
}

fn relation(how: How, other: &str) -> String {
    match how {
        How::Depends => format!("depends on {other}"),
        How::Selected => format!("is selected by {other}"),
        How::Implied => format!("is implied by {other}"),
        How::Contains(word, _) => format!("{word} value contains {other}"),
        How::Visible(word, _) => format!("{word} is visible depending on {other}"),
        How::Member => format!("unknown is visible depending on {other}"),
    }
}
