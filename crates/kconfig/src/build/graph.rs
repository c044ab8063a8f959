//! What has to be known before what.
//!
//! Vertices are symbols and, behind them, choices. The edges are those that the C tools follow when
//! they look for cycles.

use crate::expr::{Atom, Expr, ExprId, Exprs};
use crate::syntax::reader::narrow;
use crate::tree::{Choice, Dependencies, Node, NodeId, Symbol, Tree};

/// A look at a tree whose conditions are whole.
#[derive(Clone, Copy)]
pub(crate) struct Graph<'t> {
    pub nodes: &'t [Node],
    pub symbols: &'t [Symbol],
    pub choices: &'t [Choice],
    pub exprs: &'t Exprs,
}

impl Tree {
    /// What has to be known before what.
    pub(crate) fn dependencies(&self) -> &Dependencies {
        let Self { nodes, symbols, choices, exprs, .. } = self;
        self.dependencies.get_or_init(|| Graph { nodes, symbols, choices, exprs }.dependencies())
    }
}

/// How far the search has come with a vertex or an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    New,
    Open,
    Done,
}

/// One step of the search: a vertex or, behind all of them, an expression.
#[derive(Clone, Copy)]
enum Step {
    Enter(u32),
    Leave(u32),
}

impl Graph<'_> {
    fn vertices(self) -> usize {
        self.symbols.len() + self.choices.len()
    }

    /// The vertex that an atom in an expression of `vertex` leads to.
    fn target(self, atom: Atom, vertex: usize) -> Option<usize> {
        match atom {
            Atom::Symbol(symbol) => Some(symbol.index()),
            // A choice finds its members' visibility out by itself; its own mode is no edge.
            Atom::Choice(choice) => Some(self.symbols.len() + choice.index()).filter(|target| *target != vertex),
            Atom::Tri(_) | Atom::Text(_) => None,
        }
    }

    /// The choice that a member has to know.
    fn choice_of(self, vertex: usize) -> Option<Atom> {
        self.symbols.get(vertex).and_then(|symbol| symbol.choice).map(Atom::Choice)
    }

    /// The expressions that decide about a vertex.
    fn visit_expressions(self, vertex: usize, visit: &mut impl FnMut(ExprId)) {
        let prompts = |visit: &mut dyn FnMut(ExprId), nodes: &[NodeId]| {
            let prompts = nodes.iter().filter_map(|node| self.nodes[node.index()].prompt.as_ref());
            prompts.for_each(|prompt| visit(prompt.condition));
        };
        if let Some(symbol) = self.symbols.get(vertex) {
            visit(symbol.selected_by);
            visit(symbol.implied_by);
            prompts(visit, &symbol.nodes);
            for default in &symbol.defaults {
                visit(default.value);
                visit(default.condition);
            }
            symbol.ranges.iter().for_each(|range| visit(range.condition));
            return;
        }
        let choice = &self.choices[vertex - self.symbols.len()];
        prompts(visit, &choice.nodes);
        choice.defaults.iter().for_each(|default| visit(default.condition));
        for member in &choice.members {
            prompts(visit, &self.symbols[member.index()].nodes);
        }
    }

    /// The edges of every vertex.
    pub(crate) fn dependencies(self) -> Dependencies {
        let vertices = self.vertices();
        let mut dependencies = Dependencies { edges: Vec::new(), starts: vec![0] };
        // The conditions of one symbol share most of their parts; each part and each target is
        // looked at once a vertex.
        let (mut parts, mut targets) = (vec![u32::MAX; self.exprs.len()], vec![u32::MAX; vertices]);
        let mut open = Vec::new();
        for vertex in 0..vertices {
            let mark = narrow(vertex);
            let start = dependencies.edges.len();
            let mut take = |atom| {
                let target = self.target(atom, vertex);
                if let Some(target) = target.filter(|target| targets[*target] != mark) {
                    targets[target] = mark;
                    dependencies.edges.push(narrow(target));
                }
            };
            self.visit_expressions(vertex, &mut |expr| open.push(expr));
            while let Some(id) = open.pop() {
                if std::mem::replace(&mut parts[id.index()], mark) == mark {
                    continue;
                }
                match self.exprs.get(id) {
                    Expr::Atom(atom) => take(atom),
                    Expr::Compare(_, left, right) => {
                        take(left);
                        take(right);
                    }
                    Expr::Not(inner) => open.push(inner),
                    Expr::And(left, right) | Expr::Or(left, right) => open.extend([right, left]),
                }
            }
            self.choice_of(vertex).into_iter().for_each(take);
            // In the order of the files, so that a cycle is shown from where it begins there.
            dependencies.edges[start..].sort_unstable();
            dependencies.starts.push(narrow(dependencies.edges.len()));
        }
        dependencies
    }

    /// Whether any vertex has to be known before itself. Expressions are steps of the search like
    /// vertices, so that one that many symbols share is looked at once.
    pub(crate) fn has_cycle(self) -> bool {
        let mut search = Search {
            graph: self,
            marks: vec![Mark::New; self.vertices() + self.exprs.len()],
            stack: Vec::new(),
            found: false,
        };
        (0..self.vertices()).any(|vertex| search.finds_cycle_from(narrow(vertex)))
    }
}

/// Depth first with a stack of its own: dependency chains may be as long as the tree.
struct Search<'t> {
    graph: Graph<'t>,
    marks: Vec<Mark>,
    stack: Vec<Step>,
    found: bool,
}

impl Search<'_> {
    fn finds_cycle_from(&mut self, start: u32) -> bool {
        self.push(start);
        while let (false, Some(step)) = (self.found, self.stack.pop()) {
            match step {
                Step::Leave(at) => self.marks[at as usize] = Mark::Done,
                Step::Enter(at) => self.enter(at),
            }
        }
        self.found
    }

    /// What is open is on the way to here.
    fn push(&mut self, at: u32) {
        match self.marks[at as usize] {
            Mark::New => self.stack.push(Step::Enter(at)),
            Mark::Open => self.found = true,
            Mark::Done => {}
        }
    }

    fn enter(&mut self, at: u32) {
        // Another way has led here since this step was put off.
        if self.marks[at as usize] != Mark::New {
            return;
        }
        self.marks[at as usize] = Mark::Open;
        self.stack.push(Step::Leave(at));
        let (graph, at) = (self.graph, at as usize);
        if at < graph.vertices() {
            graph.visit_expressions(at, &mut |expr| self.push_expression(expr, at));
            if let Some(choice) = graph.choice_of(at) {
                self.push_atom(choice, at);
            }
        } else {
            self.take_apart(graph.exprs.nth(at - graph.vertices()), usize::MAX);
        }
    }

    /// An expression that names a choice means something else to that choice: it is taken apart for
    /// each vertex.
    fn push_expression(&mut self, expr: ExprId, vertex: usize) {
        if self.graph.exprs.names_choice(expr) {
            return self.take_apart(self.graph.exprs.get(expr), vertex);
        }
        match self.graph.exprs.get(expr) {
            Expr::Atom(atom) => self.push_atom(atom, vertex),
            _ => self.push(narrow(self.graph.vertices() + expr.index())),
        }
    }

    fn take_apart(&mut self, mut expr: Expr, vertex: usize) {
        loop {
            match expr {
                Expr::Atom(atom) => return self.push_atom(atom, vertex),
                Expr::Compare(_, left, right) => {
                    self.push_atom(left, vertex);
                    return self.push_atom(right, vertex);
                }
                Expr::Not(inner) => return self.push_expression(inner, vertex),
                Expr::And(left, right) | Expr::Or(left, right) => {
                    self.push_expression(right, vertex);
                    // Chains lean to the left; only real nesting recurses.
                    if !self.graph.exprs.names_choice(left) {
                        return self.push_expression(left, vertex);
                    }
                    expr = self.graph.exprs.get(left);
                }
            }
        }
    }

    fn push_atom(&mut self, atom: Atom, vertex: usize) {
        if let Some(target) = self.graph.target(atom, vertex) {
            self.push(narrow(target));
        }
    }
}
