//! Evaluation: what follows from the user's values, computed on demand and remembered.
//!
//! Follows the C tools' `sym_calc_value`, in their order: it decides in which order they complain.
//! Decides nothing about what a user may set: that is `config`.

mod choice;
pub(crate) mod number;
mod symbol;

use std::cell::{Cell, OnceCell, RefCell};

use crate::expr::{Atom, Compare, Expr, ExprId};
use crate::tree::{ChoiceId, SymbolId, Tree};
use crate::value::{SymbolType, Tri};

/// Values that wait for others are computed by recursion down to here; deeper chains by a stack of
/// their own.
const MAX_DEPTH: u32 = 200;

/// What the user said about one symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UserValue {
    Tri(Tri),
    Text(Box<str>),
}

impl UserValue {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Tri(tri) => tri.as_str(),
            Self::Text(text) => text,
        }
    }
}

/// What the user said about one symbol, and whether it counts: the C tools keep what they set
/// aside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserSymbol {
    pub value: Option<UserValue>,
    pub counts: bool,
}

impl UserSymbol {
    /// The value, if it counts.
    pub(crate) fn counted(&self) -> Option<&UserValue> {
        self.value.as_ref().filter(|_| self.counts)
    }

    pub(crate) fn new(value: UserValue) -> Self {
        Self { value: Some(value), counts: true }
    }
}

/// What the user said about one choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserChoice {
    pub selection: Option<SymbolId>,
    pub mode: Tri,
    /// The mode counts.
    pub counts: bool,
    /// One member was said to be `y` and a later one `m`: as in C the mode then counts as not set.
    pub contradictory: bool,
    /// The members by how much what was said about them counts, most first; empty while that is the
    /// order of the files.
    pub order: Vec<SymbolId>,
}

/// Everything that the user said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserValues {
    pub symbols: Vec<UserSymbol>,
    pub choices: Vec<UserChoice>,
}

/// What decided a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    User,
    Default(u32),
    Select,
    Imply,
    Choice,
    Unset,
}

/// A computed value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Computed {
    Tri(Tri),
    Text(Box<str>),
    /// Nothing gave a value; or the symbol has no type and stands for its name.
    None,
}

/// All that is known about one symbol.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub value: Computed,
    pub visible: Tri,
    /// The value of `depends on`.
    pub direct: Tri,
    /// The value that selects force.
    pub forced: Tri,
    /// The value that implies suggest.
    pub implied: Tri,
    pub written: bool,
    pub reason: Reason,
}

impl Answer {
    const NOTHING: Self = Self {
        value: Computed::None,
        visible: Tri::N,
        direct: Tri::N,
        forced: Tri::N,
        implied: Tri::N,
        written: false,
        reason: Reason::Unset,
    };
}

/// All that is known about one choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChoiceAnswer {
    pub visible: Tri,
    pub mode: Tri,
    pub selection: Option<SymbolId>,
}

impl ChoiceAnswer {
    const NOTHING: Self = Self { visible: Tri::N, mode: Tri::N, selection: None };
}

/// Answers so far; thrown away when a user value changes.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    symbols: Vec<OnceCell<Answer>>,
    choices: Vec<OnceCell<ChoiceAnswer>>,
    /// The visibility and mode of choices before their members were looked at.
    modes: Vec<OnceCell<(Tri, Tri)>>,
    /// Values of expressions: the generation in which they were computed, and the value in the two
    /// low bits.
    exprs: Vec<Cell<u32>>,
    generation: u32,
    /// An expression was computed since all was forgotten.
    dirty: Cell<bool>,
    /// What was computed since all was forgotten: forgetting costs as much as was asked, not as
    /// much as there is.
    computed: RefCell<Vec<u32>>,
    /// Vertices that are being computed.
    busy: Vec<Cell<bool>>,
    depth: Cell<u32>,
    /// Terms of chains whose turn comes later.
    pending: RefCell<Vec<ExprId>>,
    /// Symbols that are selected against their dependencies, in the order in which that was found.
    pub unmet: RefCell<Vec<SymbolId>>,
    /// Symbols that took over the user's value of a transitional one.
    pub adopted: RefCell<Vec<(SymbolId, UserValue)>>,
    /// How visible symbols were that choices of others have as defaults, when they were computed
    /// last.
    pub stale: RefCell<Vec<(SymbolId, Tri)>>,
    /// Choices about whose visible members the user has not said everything: their mode counts no
    /// longer.
    pub reopened: RefCell<Vec<ChoiceId>>,
    nothing: Answer,
}

impl Answers {
    pub(crate) fn new(tree: &Tree) -> Self {
        let (symbols, choices) = (tree.symbols.len(), tree.choices.len());
        let strangers = tree.strangers().map(|symbol| (symbol, Tri::N)).collect();
        Self {
            symbols: vec![OnceCell::new(); symbols],
            choices: vec![OnceCell::new(); choices],
            modes: vec![OnceCell::new(); choices],
            exprs: vec![Cell::new(0); tree.exprs.len()],
            generation: 1,
            dirty: Cell::new(false),
            computed: RefCell::default(),
            busy: vec![Cell::new(false); symbols + choices],
            depth: Cell::new(0),
            pending: RefCell::default(),
            unmet: RefCell::default(),
            adopted: RefCell::default(),
            stale: RefCell::new(strangers),
            reopened: RefCell::default(),
            nothing: Answer::NOTHING,
        }
    }

    /// Forgets everything; costs nothing when nothing was asked since the last time.
    pub(crate) fn forget(&mut self) {
        if !self.dirty.replace(false) {
            return;
        }
        for (symbol, visible) in self.stale.get_mut() {
            if let Some(answer) = self.symbols[symbol.index()].get() {
                *visible = answer.visible;
            }
        }
        let symbols = self.symbols.len();
        for vertex in self.computed.get_mut().drain(..) {
            let vertex = vertex as usize;
            if let Some(cell) = self.symbols.get_mut(vertex) {
                cell.take();
            } else {
                self.choices[vertex - symbols].take();
                self.modes[vertex - symbols].take();
            }
        }
        self.unmet.get_mut().clear();
        self.forget_exprs();
    }

    fn forget_exprs(&mut self) {
        self.generation += 1;
        // Two bits of each entry are its value.
        if self.generation >= 1 << 30 {
            self.generation = 1;
            self.exprs.fill(Cell::new(0));
        }
    }

    /// Whether another look would find the same: nothing was found out about what the user said,
    /// and no choice looks back.
    pub(crate) fn are_final(&self) -> bool {
        self.unmet.borrow().is_empty()
            && self.adopted.borrow().is_empty()
            && self.reopened.borrow().is_empty()
            && self.stale.borrow().is_empty()
    }

    /// Forgets one symbol; what follows from it stays.
    pub(crate) fn forget_symbol(&mut self, id: SymbolId) {
        self.symbols[id.index()].take();
        self.forget_exprs();
    }

    /// Forgets one choice; what follows from it stays.
    pub(crate) fn forget_choice(&mut self, id: ChoiceId) {
        self.choices[id.index()].take();
        self.modes[id.index()].take();
        self.forget_exprs();
    }

    /// Remembers how visible a symbol was found to be, if a choice of others has it as its default.
    fn note_stranger(&self, id: SymbolId, visible: Tri) {
        for (_, known) in self.stale.borrow_mut().iter_mut().filter(|(stranger, _)| *stranger == id) {
            *known = visible;
        }
    }

    /// How visible a symbol is, if it has been computed since it was forgotten.
    fn visible_so_far(&self, id: SymbolId) -> Option<Tri> {
        self.symbols[id.index()].get().map(|answer| answer.visible)
    }

    /// Whether a symbol has been computed since it was forgotten.
    pub(crate) fn knows(&self, id: SymbolId) -> bool {
        self.symbols[id.index()].get().is_some()
    }

    /// Whether a choice has been computed since it was forgotten.
    pub(crate) fn knows_choice(&self, id: ChoiceId) -> bool {
        self.choices[id.index()].get().is_some()
    }
}

/// A look at a tree with the user's values.
#[derive(Clone, Copy)]
pub(crate) struct Evaluator<'a> {
    pub tree: &'a Tree,
    pub user: &'a UserValues,
    pub answers: &'a Answers,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn answer(self, id: SymbolId) -> &'a Answer {
        let cell = &self.answers.symbols[id.index()];
        if let Some(known) = cell.get() {
            return known;
        }
        self.demand(id.index());
        // Still unknown only where something that is no dependency of the cycle check leads back:
        // read as `n`.
        cell.get().unwrap_or(&self.answers.nothing)
    }

    pub(crate) fn choice_answer(self, id: ChoiceId) -> ChoiceAnswer {
        let cell = &self.answers.choices[id.index()];
        if cell.get().is_none() {
            self.demand(self.tree.symbols.len() + id.index());
        }
        cell.get().copied().unwrap_or(ChoiceAnswer::NOTHING)
    }

    pub(crate) fn tri(self, id: SymbolId) -> Tri {
        match self.answer(id).value {
            Computed::Tri(tri) => tri,
            Computed::Text(_) | Computed::None => Tri::N,
        }
    }

    /// The value as text; an untyped symbol is its own name.
    pub(crate) fn text(self, id: SymbolId) -> &'a str {
        match &self.answer(id).value {
            Computed::Tri(tri) => tri.as_str(),
            Computed::Text(text) => text,
            Computed::None => match self.tree.get(id).kind {
                SymbolType::Unknown => &self.tree.get(id).name,
                SymbolType::Bool | SymbolType::Tristate => Tri::N.as_str(),
                _ => "",
            },
        }
    }

    /// Computes a vertex that is not known yet, unless that is going on already.
    fn demand(self, vertex: usize) {
        if self.answers.busy[vertex].get() {
            return;
        }
        let depth = self.answers.depth.get();
        if depth >= MAX_DEPTH {
            return self.settle(vertex);
        }
        self.answers.depth.set(depth + 1);
        self.answers.busy[vertex].set(true);
        self.compute(vertex);
        self.answers.busy[vertex].set(false);
        self.answers.depth.set(depth);
    }

    /// Computes a vertex after all that it could need, without recursion along chains.
    fn settle(self, vertex: usize) {
        let mut stack = vec![(vertex, 0)];
        self.answers.busy[vertex].set(true);
        while let Some((vertex, next)) = stack.last_mut() {
            let vertex = *vertex;
            let needed = self.tree.dependencies().of(vertex);
            let open = needed[*next..].iter().position(|target| !self.is_settled(*target as usize));
            if let Some(offset) = open {
                let target = needed[*next + offset] as usize;
                *next += offset + 1;
                self.answers.busy[target].set(true);
                stack.push((target, 0));
                continue;
            }
            self.compute(vertex);
            self.answers.busy[vertex].set(false);
            stack.pop();
        }
    }

    fn is_settled(self, vertex: usize) -> bool {
        let symbols = self.answers.symbols.len();
        let known = match self.answers.symbols.get(vertex) {
            Some(cell) => cell.get().is_some(),
            None => self.answers.choices[vertex - symbols].get().is_some(),
        };
        known || self.answers.busy[vertex].get()
    }

    /// Fills a cell; a second filling would find the same value and is dropped.
    fn compute(self, vertex: usize) {
        self.answers.dirty.set(true);
        self.answers.computed.borrow_mut().push(narrow(vertex));
        if let Some(cell) = self.answers.symbols.get(vertex) {
            let answer = self.compute_symbol(SymbolId::new(vertex));
            cell.get_or_init(|| answer);
        } else {
            let id = ChoiceId::new(vertex - self.answers.symbols.len());
            let answer = self.compute_choice(id);
            self.answers.choices[id.index()].get_or_init(|| answer);
        }
    }

    pub(crate) fn modules(self) -> Tri {
        self.tree.modules.map_or(Tri::N, |symbol| self.tri(symbol))
    }

    /// `m` is `y` for all but tristates, and for those too while modules are off.
    pub(crate) fn clamp(self, tri: Tri, kind: SymbolType) -> Tri {
        if tri == Tri::M && (kind != SymbolType::Tristate || self.modules() == Tri::N) { Tri::Y } else { tri }
    }

    /// The value of an expression. All its terms are looked at, from left to right, as the C tools
    /// do.
    pub(crate) fn eval(self, id: ExprId) -> Tri {
        match self.tree.expr(id) {
            Expr::Atom(atom) => self.atom_tri(atom),
            Expr::Not(inner) => !self.eval(inner),
            Expr::Compare(operator, left, right) => self.compare(operator, left, right),
            Expr::And(..) | Expr::Or(..) => self.recall(id).unwrap_or_else(|| self.eval_chain(id)),
        }
    }

    /// Chains lean to the left and are walked in a loop; only real nesting recurses.
    fn eval_chain(self, id: ExprId) -> Tri {
        let start = self.answers.pending.borrow().len();
        let mut at = id;
        let mut known = None;
        while let Expr::And(left, _) | Expr::Or(left, _) = self.tree.expr(at) {
            self.answers.pending.borrow_mut().push(at);
            at = left;
            known = self.recall(at);
            if known.is_some() {
                break;
            }
        }
        let mut value = known.unwrap_or_else(|| self.eval(at));
        loop {
            let node = {
                let mut pending = self.answers.pending.borrow_mut();
                if pending.len() == start {
                    return value;
                }
                pending.pop()
            };
            let Some(node) = node else { return value };
            match self.tree.expr(node) {
                Expr::And(_, right) => value = value.min(self.eval(right)),
                Expr::Or(_, right) => value = value.max(self.eval(right)),
                _ => {}
            }
            self.remember(node, value);
        }
    }

    fn recall(self, id: ExprId) -> Option<Tri> {
        let entry = self.answers.exprs[id.index()].get();
        if entry >> 2 != self.answers.generation {
            return None;
        }
        Some(match entry & 3 {
            0 => Tri::N,
            1 => Tri::M,
            _ => Tri::Y,
        })
    }

    fn remember(self, id: ExprId, value: Tri) {
        self.answers.dirty.set(true);
        self.answers.exprs[id.index()].set(self.answers.generation << 2 | value as u32);
    }

    fn atom_tri(self, atom: Atom) -> Tri {
        match atom {
            Atom::Tri(tri) => tri,
            Atom::Text(_) => Tri::N,
            Atom::Symbol(symbol) => self.tri(symbol),
            Atom::Choice(choice) => self.mode(choice),
        }
    }

    /// The mode of a choice, also while its members are being looked at.
    fn mode(self, choice: ChoiceId) -> Tri {
        let cell = &self.answers.choices[choice.index()];
        if cell.get().is_none() {
            self.demand(self.tree.symbols.len() + choice.index());
        }
        match cell.get() {
            Some(answer) => answer.mode,
            None => self.answers.modes[choice.index()].get().map_or(Tri::N, |(_, mode)| *mode),
        }
    }

    pub(crate) fn atom_text(self, atom: Atom) -> &'a str {
        match atom {
            Atom::Text(text) => self.tree.text(text),
            Atom::Symbol(symbol) => self.text(symbol),
            Atom::Tri(_) | Atom::Choice(_) => self.atom_tri(atom).as_str(),
        }
    }

    fn compare(self, operator: Compare, left: Atom, right: Atom) -> Tri {
        let (left_text, right_text) = (self.atom_text(left), self.atom_text(right));
        let order = number::compare((left_text, self.atom_kind(left)), (right_text, self.atom_kind(right)));
        if operator.holds(order) { Tri::Y } else { Tri::N }
    }

    pub(crate) fn atom_kind(self, atom: Atom) -> SymbolType {
        match atom {
            Atom::Tri(_) => SymbolType::Tristate,
            Atom::Text(_) => SymbolType::Unknown,
            Atom::Symbol(symbol) => self.tree.get(symbol).kind,
            Atom::Choice(choice) => self.tree.choice(choice).kind,
        }
    }
}

fn narrow(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
