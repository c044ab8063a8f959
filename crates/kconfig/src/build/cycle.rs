//! The refusal of what would have to be known before itself.

use super::Builder;
use super::graph::Graph;
use crate::diagnostic::{Diagnostic, Level};
use crate::dialect::Rule;
use crate::expr::{Atom, ExprId};
use crate::source::Span;
use crate::tree::{Dependencies, NodeId, SymbolId};

/// After so many cycles the rest are the same few knots.
const MAX_CYCLES: usize = 100;

/// How far the search has come with a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    New,
    Open,
    Done,
}

impl Builder<'_> {
    /// Reports cycles. Which of them are shown is found out only when there is one.
    pub(super) fn refuse_cycles(&mut self) {
        let graph = Graph { nodes: &self.nodes, symbols: &self.symbols, choices: &self.choices, exprs: &self.exprs };
        if !graph.has_cycle() {
            return;
        }
        let dependencies = graph.dependencies();
        // One picture a knot: another way round through the same symbols tells nothing new.
        let mut shown: Vec<usize> = Vec::new();
        for cycle in find_cycles(&dependencies, self.symbols.len() + self.choices.len()) {
            if cycle.iter().any(|vertex| shown.contains(vertex)) {
                continue;
            }
            let mut finding = self.explain_cycle(&cycle);
            if self.dialect.has(Rule::RecursionAllowed) {
                finding.level = Level::Warning;
            }
            self.findings.push(finding);
            shown.extend(cycle);
        }
    }

    fn name_of(&self, vertex: usize) -> String {
        match self.symbols.get(vertex) {
            Some(symbol) => symbol.name.to_string(),
            None => match &self.choices[vertex - self.symbols.len()].name {
                Some(name) => format!("choice {name}"),
                None => "this choice".to_owned(),
            },
        }
    }

    /// Shows each step of the cycle at the line that makes it.
    fn explain_cycle(&self, cycle: &[usize]) -> Diagnostic {
        let first = self.name_of(cycle[0]);
        let message = if let [_] = cycle {
            format!("{first} depends on itself")
        } else {
            let path: Vec<String> = cycle.iter().map(|vertex| self.name_of(*vertex)).collect();
            format!("these depend on each other: {} -> {first}", path.join(" -> "))
        };
        let mut finding: Option<Diagnostic> = None;
        for (at, from) in cycle.iter().enumerate() {
            let to = cycle[(at + 1) % cycle.len()];
            let (span, text) = self.explain_edge(*from, to);
            finding = Some(match finding {
                None => Diagnostic::error("K020", span, message.clone()).with_text(text),
                Some(finding) => finding.with_label(span, text),
            });
        }
        let finding = finding.unwrap_or_else(|| Diagnostic::error("K020", self.nodes[0].span, message));
        let selects = finding.labels.iter().any(|label| label.text.contains(" selects "));
        finding.with_help(if selects {
            "turn the `select` into `depends on`, or drop one of these lines"
        } else {
            "drop one of these lines"
        })
    }

    /// The line that makes one vertex depend on another.
    fn explain_edge(&self, from: usize, to: usize) -> (Span, String) {
        let (name, target) = (self.name_of(from), self.name_of(to));
        let Some(symbol) = self.symbols.get(from) else {
            let choice = &self.choices[from - self.symbols.len()];
            let prompts = choice.members.iter().flat_map(|member| &self.symbols[member.index()].nodes);
            for node in choice.nodes.iter().chain(prompts) {
                if let Some(span) = self.find_dependency(*node, to) {
                    return (span, format!("what can be chosen depends on {target}"));
                }
            }
            return (self.nodes[choice.nodes[0].index()].span, format!("{name} depends on {target}"));
        };
        for node in &symbol.nodes {
            if let Some(span) = self.find_dependency(*node, to) {
                return (span, format!("{name} depends on {target}"));
            }
        }
        if let Some(default) =
            symbol.defaults.iter().find(|d| self.names_vertex(d.value, to) || self.names_vertex(d.condition, to))
        {
            return (default.span, format!("a default of {name} depends on {target}"));
        }
        for (list, word) in [(&symbol.selectors, "selects"), (&symbol.impliers, "implies")] {
            for (by, index) in list {
                let selector = &self.symbols[by.index()];
                let lines = if word == "selects" { &selector.selects } else { &selector.implies };
                let selection = &lines[*index as usize];
                if by.index() == to || self.names_vertex(selection.condition, to) {
                    let text = if by.index() == to {
                        format!("{} {word} {name}", selector.name)
                    } else {
                        format!("{} {word} {name} depending on {target}", selector.name)
                    };
                    return (selection.span, text);
                }
            }
        }
        let span = symbol.nodes.first().map_or(self.nodes[0].span, |node| self.nodes[node.index()].span);
        let verb = if to >= self.symbols.len() { "is a member of" } else { "depends on" };
        (span, format!("{name} {verb} {target}"))
    }

    /// The `depends on`, or the `if` around it, that names a vertex.
    fn find_dependency(&self, node: NodeId, to: usize) -> Option<Span> {
        let mut at = Some(node);
        while let Some(id) = at {
            let own = &self.nodes[id.index()].own;
            let lines = &self.written[own.depends.start as usize..own.depends.end as usize];
            if let Some((_, span)) = lines.iter().find(|(expr, _)| self.names_vertex(*expr, to)) {
                return Some(*span);
            }
            if let Some(prompt) = &self.nodes[id.index()].prompt
                && id == node
                && self.names_vertex(prompt.condition, to)
                && !self.names_vertex(self.nodes[id.index()].depends, to)
            {
                return Some(prompt.span);
            }
            at = own.parent;
        }
        None
    }

    fn names_vertex(&self, expr: ExprId, vertex: usize) -> bool {
        vertex < self.symbols.len() && self.exprs.any_atom(expr, |atom| atom == Atom::Symbol(SymbolId::new(vertex)))
    }
}

/// Depth first with a stack of its own: dependency chains may be as long as the tree.
fn find_cycles(dependencies: &Dependencies, vertices: usize) -> Vec<Vec<usize>> {
    let mut marks = vec![Mark::New; vertices];
    let mut cycles = Vec::new();
    for start in 0..vertices {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::Open;
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some((vertex, next)) = path.last_mut() {
            let Some(target) = dependencies.of(*vertex).get(*next).map(|target| *target as usize) else {
                marks[*vertex] = Mark::Done;
                path.pop();
                continue;
            };
            *next += 1;
            match marks[target] {
                Mark::New => {
                    marks[target] = Mark::Open;
                    path.push((target, 0));
                }
                Mark::Open if cycles.len() < MAX_CYCLES => {
                    let from = path.iter().position(|(vertex, _)| *vertex == target).unwrap_or(0);
                    cycles.push(path[from..].iter().map(|(vertex, _)| *vertex).collect());
                }
                Mark::Open | Mark::Done => {}
            }
        }
    }
    cycles
}
