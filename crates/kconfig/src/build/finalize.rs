//! Makes conditions whole and menus final: what is inherited is joined in, selects reach their
//! targets, symbols that depend on the one before them become its children, `if` blocks dissolve,
//! choices get their members.
//!
//! Follows the C tools' `menu_finalize`, without its recursion along siblings.

use thin_vec::ThinVec;

use super::Builder;
use crate::dialect::Rule;
use crate::expr::{Atom, Compare, Expr, ExprId, Exprs};
use crate::tree::{ChoiceId, NodeId, NodeKind, Symbol, SymbolId};
use crate::value::{SymbolType, Tri};

impl Builder<'_> {
    pub(super) fn finalize(&mut self) {
        self.infer_choice_types();
        let root = NodeId::new(0);
        self.propagate(root);
        self.arrange(root);
        self.join_direct_dependencies();
    }

    /// A choice has the type of its first typed member; members without a type have that of the
    /// choice.
    fn infer_choice_types(&mut self) {
        for index in 0..self.choices.len() {
            let mut members = Vec::new();
            self.choices[index].nodes.iter().for_each(|node| self.push_members(*node, &mut members));
            let known = self.choices[index].kind;
            let first =
                members.iter().map(|id| self.symbols[id.index()].kind).find(|kind| *kind != SymbolType::Unknown);
            // As in C, a choice with a mode and without a member that has a type has none.
            let untyped = if self.dialect.has(Rule::ChoiceModes) { SymbolType::Unknown } else { SymbolType::Bool };
            let kind = if known == SymbolType::Unknown { first.unwrap_or(untyped) } else { known };
            self.choices[index].kind = kind;
            for member in members {
                let member = &mut self.symbols[member.index()];
                if member.kind == SymbolType::Unknown {
                    member.kind = kind;
                }
            }
        }
    }

    /// The symbols below a choice that have a say in its type. In C those inside of `if` have none.
    fn push_members(&self, parent: NodeId, members: &mut Vec<SymbolId>) {
        for child in &self.nodes[parent.index()].children {
            let node = &self.nodes[child.index()];
            if node.kind == NodeKind::If && self.dialect.has(Rule::ChoiceTypeFromIfs) {
                self.push_members(*child, members);
            }
            members.extend(node.symbol);
        }
    }

    fn has_mode(&self, choice: ChoiceId) -> bool {
        self.choices[choice.index()].has_mode(self.dialect)
    }

    /// Joins the conditions of a node into its children.
    fn propagate(&mut self, parent: NodeId) {
        let inherited = match self.nodes[parent.index()].choice {
            // The mode of a choice is the upper limit of its members.
            Some(choice) if self.has_mode(choice) => self.exprs.atom(Atom::Choice(choice)),
            _ => self.nodes[parent.index()].depends,
        };
        for index in 0..self.nodes[parent.index()].children.len() {
            let child = self.nodes[parent.index()].children[index];
            let own = self.nodes[child.index()].depends;
            let base = self.exprs.and(inherited, own);
            self.nodes[child.index()].depends = base;
            self.extend_conditions(child, base);
            if let Some(symbol) = self.nodes[child.index()].symbol {
                self.reach_targets(symbol, child);
            }
        }
    }

    /// Joins `base` into all conditions that stand in this entry.
    fn extend_conditions(&mut self, node: NodeId, base: ExprId) {
        let entry = &self.nodes[node.index()];
        let (symbol, choice) = (entry.symbol.map(SymbolId::index), entry.choice.map(ChoiceId::index));
        let keep_modules = match (symbol, choice) {
            (Some(symbol), _) => self.symbols[symbol].kind == SymbolType::Tristate,
            (_, Some(choice)) => self.choices[choice].kind == SymbolType::Tristate,
            _ => true,
        };
        let join = |exprs: &mut Exprs, symbols: &[Symbol], condition| {
            let joined = exprs.and(base, condition);
            if keep_modules { joined } else { drop_unequal_no(exprs, symbols, joined) }
        };
        if let Some(prompt) = &mut self.nodes[node.index()].prompt {
            prompt.condition = join(&mut self.exprs, &self.symbols, prompt.condition);
        }
        if let Some(choice) = choice {
            for default in self.choices[choice].defaults.iter_mut().filter(|default| default.node == node) {
                default.condition = join(&mut self.exprs, &self.symbols, default.condition);
            }
        }
        let Some(symbol) = symbol else { return };
        // By position, because the types of all symbols are looked at while the conditions of one
        // change.
        macro_rules! extend {
            ($list:ident) => {
                for index in 0..self.symbols[symbol].$list.len() {
                    let property = &self.symbols[symbol].$list[index];
                    if property.node == node {
                        let condition = join(&mut self.exprs, &self.symbols, property.condition);
                        self.symbols[symbol].$list[index].condition = condition;
                    }
                }
            };
        }
        extend!(defaults);
        extend!(selects);
        extend!(implies);
        extend!(ranges);
    }

    /// Tells the targets of selects and implies who selects and implies them.
    fn reach_targets(&mut self, symbol: SymbolId, node: NodeId) {
        let this = self.exprs.atom(Atom::Symbol(symbol));
        for imply in [false, true] {
            let definition = &self.symbols[symbol.index()];
            let list = if imply { &definition.implies } else { &definition.selects };
            let found: Vec<(u32, SymbolId, ExprId)> = list
                .iter()
                .zip(0..)
                .filter(|(selection, _)| selection.node == node)
                .map(|(selection, index)| (index, selection.target, selection.condition))
                .collect();
            for (index, target, condition) in found {
                let source = self.exprs.and(this, condition);
                let target = &mut self.symbols[target.index()];
                if imply {
                    target.implied_by = self.exprs.or(target.implied_by, source);
                    target.impliers.push((symbol, index));
                } else {
                    target.selected_by = self.exprs.or(target.selected_by, source);
                    target.selectors.push((symbol, index));
                }
            }
        }
    }

    /// Gives the children of a block their final places. Recurses into blocks only, whose nesting
    /// the parser limits.
    fn arrange(&mut self, parent: NodeId) {
        let siblings = std::mem::take(&mut self.nodes[parent.index()].children);
        for sibling in &siblings {
            if !self.nodes[sibling.index()].children.is_empty() {
                self.propagate(*sibling);
                self.arrange(*sibling);
            }
        }
        let (mut open, mut top): (Vec<NodeId>, ThinVec<NodeId>) = (Vec::new(), ThinVec::new());
        // All entries of a choice without a mode are its members, whatever they depend on.
        let flat = self.nodes[parent.index()].choice.is_some_and(|choice| !self.has_mode(choice));
        for sibling in siblings {
            while let Some(last) = open.last().copied() {
                if self.belongs_below(sibling, last) {
                    break;
                }
                open.pop();
                self.close(last);
            }
            if let Some(last) = open.last().copied() {
                self.nodes[last.index()].children.push(sibling);
                self.nodes[sibling.index()].parent = Some(last);
            } else {
                top.push(sibling);
            }
            if self.nodes[sibling.index()].symbol.is_some() && !flat {
                open.push(sibling);
            }
        }
        while let Some(last) = open.pop() {
            self.close(last);
        }
        self.nodes[parent.index()].children = top;
        self.close(parent);
    }

    /// Whether a node depends on the symbol of an earlier sibling so that it is shown below it.
    fn belongs_below(&mut self, node: NodeId, candidate: NodeId) -> bool {
        let Some(symbol) = self.nodes[candidate.index()].symbol else { return false };
        let entry = &self.nodes[node.index()];
        let condition = entry.prompt.as_ref().map_or(entry.depends, |prompt| prompt.condition);
        if !self.exprs.any_atom(condition, |atom| atom == Atom::Symbol(symbol)) {
            return false;
        }
        if self.exprs.any_conjunct(condition, &|term| demands(term, symbol)) {
            return true;
        }
        // `(A || B) && C` below A when A itself needs just C.
        let base = self.nodes[candidate.index()].prompt.as_ref().map_or(ExprId::YES, |prompt| prompt.condition);
        if base == ExprId::YES {
            return true;
        }
        let Self { exprs, symbols, .. } = self;
        let terms = exprs.conjuncts(condition).into_iter();
        let terms: Vec<ExprId> = terms.map(|term| drop_unequal_no(exprs, symbols, term)).collect();
        let base = exprs.conjuncts(base);
        base.into_iter().all(|term| terms.contains(&drop_unequal_no(exprs, symbols, term)))
    }

    /// Called when all children of a node are known: dissolves `if` blocks and invisible parents,
    /// fills choices.
    fn close(&mut self, parent: NodeId) {
        let children = std::mem::take(&mut self.nodes[parent.index()].children);
        let mut flat = ThinVec::with_capacity(children.len());
        for child in children {
            flat.push(child);
            let entry = &mut self.nodes[child.index()];
            if entry.prompt.as_ref().is_none_or(|prompt| prompt.text.is_empty()) {
                let lifted = std::mem::take(&mut entry.children);
                for node in &lifted {
                    self.nodes[node.index()].parent = Some(parent);
                }
                flat.extend(lifted);
            }
        }
        flat.retain(|child| self.nodes[child.index()].kind != NodeKind::If);
        if let Some(choice) = self.nodes[parent.index()].choice {
            for child in &flat {
                self.add_member(choice, *child);
            }
        }
        self.nodes[parent.index()].children = flat;
    }

    fn add_member(&mut self, choice: ChoiceId, node: NodeId) {
        let Some(symbol) = self.nodes[node.index()].symbol else { return };
        if self.symbols[symbol.index()].choice.is_some() {
            return;
        }
        self.symbols[symbol.index()].choice = Some(choice);
        self.choices[choice.index()].members.push(symbol);
        // A bool in a tristate choice can be chosen only while the choice is `y`.
        let kinds = (self.choices[choice.index()].kind, self.symbols[symbol.index()].kind);
        if self.has_mode(choice) && kinds.0 == SymbolType::Tristate && kinds.1 != SymbolType::Tristate {
            let full = self.exprs.compare(Compare::Equal, Atom::Choice(choice), Atom::Tri(Tri::Y));
            let depends = self.nodes[node.index()].depends;
            self.nodes[node.index()].depends = self.exprs.and(full, depends);
            self.extend_conditions(node, full);
        }
    }

    /// In C, a definition that depends on nothing does not free the others of their dependencies.
    fn join_direct_dependencies(&mut self) {
        let frees = self.dialect.has(Rule::FreeDefinitions);
        for symbol in &mut self.symbols {
            let depends = symbol.nodes.iter().map(|node| self.nodes[node.index()].depends);
            let counting = depends.filter(|depends| frees || *depends != ExprId::YES);
            let joined = counting.reduce(|any, more| self.exprs.or(any, more));
            symbol.direct_dependency = joined.unwrap_or(ExprId::YES);
        }
    }
}

/// Whether one term of a conjunction needs the symbol to be on.
fn demands(term: Expr, symbol: SymbolId) -> bool {
    match term {
        Expr::Atom(atom) => atom == Atom::Symbol(symbol),
        Expr::Compare(Compare::Equal, left, Atom::Tri(Tri::Y | Tri::M))
        | Expr::Compare(Compare::Unequal, left, Atom::Tri(Tri::N)) => left == Atom::Symbol(symbol),
        _ => false,
    }
}

/// `A != n` of a tristate is `A` itself where `m` and `y` mean the same.
fn drop_unequal_no(exprs: &mut Exprs, symbols: &[Symbol], expr: ExprId) -> ExprId {
    if !exprs.names_constant(expr, Tri::N) {
        return expr;
    }
    exprs.rewrite(expr, &|exprs, leaf| match leaf {
        Expr::Compare(Compare::Unequal, Atom::Symbol(id), Atom::Tri(Tri::N))
            if symbols[id.index()].kind == SymbolType::Tristate =>
        {
            Some(exprs.atom(Atom::Symbol(id)))
        }
        _ => None,
    })
}
