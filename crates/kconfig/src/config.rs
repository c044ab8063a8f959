//! A configuration: the user's values over a tree, and every answer that follows from them.

use std::ops::Deref;
use std::sync::Arc;

use crate::eval::{Answers, Computed, Evaluator, Reason, UserChoice, UserSymbol, UserValue, UserValues};
use crate::expr::{Atom, ExprId};
use crate::tree::{ChoiceId, NodeId, Selection, SymbolId, Tree};
use crate::value::{Origin, SymbolType, Tri, Value};

/// Why a value was refused; the text is a readable sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// The symbol is not visible now.
    #[error("{name} cannot be set now: {}", why.join("; "))]
    NotVisible {
        /// The symbol.
        name: String,
        /// The dependencies that do not hold, with their values.
        why: Vec<String>,
    },
    /// The text is not a value of the symbol's type.
    #[error("`{value}` is not a value for {name}, which is of type {expected}")]
    WrongType {
        /// The symbol.
        name: String,
        /// What was given.
        value: String,
        /// The type.
        expected: SymbolType,
    },
    /// The number is outside the active range.
    #[error("{value} is out of range for {name}: {min} to {max}")]
    OutOfRange {
        /// The symbol.
        name: String,
        /// What was given.
        value: String,
        /// The lowest value, as written.
        min: String,
        /// The highest value, as written.
        max: String,
    },
    /// Other symbols or dependencies leave no such value.
    #[error("{name} cannot be {value}: {why}")]
    NotAssignable {
        /// The symbol.
        name: String,
        /// What was given.
        value: String,
        /// Who forces or limits it.
        why: String,
    },
    /// A member of a choice is switched off by choosing another one.
    #[error("{name} belongs to a choice: select another member instead of setting it to n")]
    ChoiceN {
        /// The symbol.
        name: String,
    },
    /// The symbol is not a member of that choice.
    #[error("{name} is not a member of this choice")]
    NotAMember {
        /// The symbol.
        name: String,
    },
}

/// A value that differs between two configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The symbol.
    pub symbol: SymbolId,
    /// Its value before; none when it was not written.
    pub before: Option<String>,
    /// Its value after; none when it is not written.
    pub after: Option<String>,
}

/// A tree that is borrowed or shared.
#[derive(Clone, Debug)]
enum TreeRef<'t> {
    Borrowed(&'t Tree),
    Shared(Arc<Tree>),
}

impl Deref for TreeRef<'_> {
    type Target = Tree;

    fn deref(&self) -> &Tree {
        match self {
            Self::Borrowed(tree) => tree,
            Self::Shared(tree) => tree,
        }
    }
}

/// The user's values over a tree. Answers are computed when asked for and remembered until a value
/// changes.
#[derive(Clone, Debug)]
pub struct Config<'t> {
    tree: TreeRef<'t>,
    pub(crate) user: UserValues,
    pub(crate) answers: Answers,
}

impl<'t> Config<'t> {
    /// A configuration in which the user has set nothing.
    #[must_use]
    pub fn new(tree: &'t Tree) -> Self {
        Self::over(TreeRef::Borrowed(tree))
    }

    /// The same over a shared tree, for owners that cannot keep a borrow.
    #[must_use]
    pub fn shared(tree: Arc<Tree>) -> Config<'static> {
        Config::over(TreeRef::Shared(tree))
    }

    fn over(tree: TreeRef<'t>) -> Self {
        let user = UserValues {
            symbols: vec![UserSymbol::default(); tree.symbols.len()],
            choices: vec![UserChoice::default(); tree.choices.len()],
        };
        let answers = Answers::new(&tree);
        Self { tree, user, answers }
    }

    /// The tree.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn evaluator(&self) -> Evaluator<'_> {
        Evaluator { tree: &self.tree, user: &self.user, answers: &self.answers }
    }

    /// Sets a value as a user does: refused when the symbol is invisible or the value would not
    /// take effect.
    pub fn set(&mut self, symbol: SymbolId, value: &str) -> Result<(), SetError> {
        let parsed = self.parse(symbol, value)?;
        self.check_visible(symbol)?;
        match &parsed {
            UserValue::Tri(tri) => self.check_assignable(symbol, *tri)?,
            UserValue::Text(text) => self.check_range(symbol, text)?,
        }
        self.record(symbol, parsed);
        if let (Some(choice), Some(UserValue::Tri(Tri::Y))) =
            (self.tree.get(symbol).choice, &self.user.symbols[symbol.index()].value)
        {
            self.switch_others_off(choice, symbol);
        }
        Ok(())
    }

    /// Records a value as reading a file does: only its type is checked, and it counts while the
    /// symbol is visible.
    pub fn assign(&mut self, symbol: SymbolId, value: &str) -> Result<(), SetError> {
        let parsed = self.parse(symbol, value)?;
        self.record(symbol, parsed);
        Ok(())
    }

    /// Selects a member of a choice.
    pub fn set_choice(&mut self, choice: ChoiceId, member: SymbolId) -> Result<(), SetError> {
        if self.tree.get(member).choice != Some(choice) {
            return Err(SetError::NotAMember { name: self.name(member) });
        }
        self.set(member, "y")
    }

    /// Sets the mode of a choice: `y`, or `m` and `n` where an old tree allows them.
    pub fn set_mode(&mut self, choice: ChoiceId, mode: Tri) {
        let choice = &mut self.user.choices[choice.index()];
        (choice.mode, choice.counts, choice.contradictory) = (mode, true, false);
        self.forget();
    }

    /// Forgets the user's value of a symbol; of a choice's member, what the user said about the
    /// whole choice.
    pub fn unset(&mut self, symbol: SymbolId) {
        self.user.symbols[symbol.index()] = UserSymbol::default();
        if let Some(choice) = self.tree.get(symbol).choice {
            self.user.choices[choice.index()] = UserChoice::default();
            for member in &self.tree.choice(choice).members {
                self.user.symbols[member.index()] = UserSymbol::default();
            }
        }
        self.forget();
    }

    /// Forgets all the user's values.
    pub fn clear(&mut self) {
        self.forget_findings();
        self.user.symbols.fill(UserSymbol::default());
        self.user.choices.fill(UserChoice::default());
    }

    /// What the user set, whether it takes effect or not.
    #[must_use]
    pub fn user_value(&self, symbol: SymbolId) -> Option<&str> {
        self.user.symbols[symbol.index()].counted().map(UserValue::as_str)
    }

    /// The value that it would have had the user said nothing about it; of a choice's member,
    /// nothing about the whole choice.
    #[must_use]
    pub fn default_value(&self, symbol: SymbolId) -> String {
        let definition = self.tree.get(symbol);
        if self.user_value(symbol).is_none() && definition.choice.is_none() {
            return self.value(symbol).to_owned();
        }
        if definition.choice.is_some() || definition.transitional || self.follows_itself(symbol) {
            // What the user said about a choice decides about all members at once.
            let mut without = self.clone();
            without.unset(symbol);
            return without.value(symbol).to_owned();
        }
        self.evaluator().text_without_user(symbol)
    }

    /// Whether what a symbol is without the user could depend on what it is with: only a symbol
    /// that takes over another one's answer.
    fn follows_itself(&self, symbol: SymbolId) -> bool {
        self.tree.get(symbol).defaults.iter().any(|default| {
            matches!(self.tree.expr(default.value), crate::expr::Expr::Atom(Atom::Symbol(old)) if self.tree.get(old).transitional)
        })
    }

    /// The value: `n`, `m`, `y` of bools and tristates, text of others, empty for none.
    #[must_use]
    pub fn value(&self, symbol: SymbolId) -> &str {
        self.evaluator().text(symbol)
    }

    /// The value with its kind.
    #[must_use]
    pub fn typed_value(&self, symbol: SymbolId) -> Value {
        match &self.evaluator().answer(symbol).value {
            Computed::Tri(tri) => Value::Tri(*tri),
            Computed::Text(text) => Value::Text(text.to_string()),
            Computed::None => Value::Text(self.value(symbol).to_owned()),
        }
    }

    /// The truth value; `n` for int, hex and string.
    #[must_use]
    pub fn tri(&self, symbol: SymbolId) -> Tri {
        self.evaluator().tri(symbol)
    }

    /// The value of any condition of the tree.
    #[must_use]
    pub fn holds(&self, condition: ExprId) -> Tri {
        self.evaluator().eval(condition)
    }

    /// Where the value came from.
    #[must_use]
    pub fn origin(&self, symbol: SymbolId) -> Origin {
        match self.evaluator().answer(symbol).reason {
            Reason::User => Origin::User,
            Reason::Choice => Origin::Choice,
            Reason::Unset => Origin::Unset,
            Reason::Default(index) => Origin::Default { span: self.tree.get(symbol).defaults[index as usize].span },
            Reason::Select => self
                .strongest(self.tree.selectors(symbol))
                .map_or(Origin::Unset, |(by, line)| Origin::Select { by, span: line.span }),
            Reason::Imply => self
                .strongest(self.tree.impliers(symbol))
                .map_or(Origin::Unset, |(by, line)| Origin::Imply { by, span: line.span }),
        }
    }

    /// The strongest of those that select or imply a symbol; of equals the first.
    fn strongest<'a>(
        &self,
        candidates: impl DoubleEndedIterator<Item = (SymbolId, &'a Selection)>,
    ) -> Option<(SymbolId, &'a Selection)> {
        candidates.rev().max_by_key(|(by, line)| self.tri(*by).min(self.holds(line.condition)))
    }

    /// Whether, and up to which value, a user may set the symbol.
    #[must_use]
    pub fn visible(&self, symbol: SymbolId) -> Tri {
        self.evaluator().answer(symbol).visible
    }

    /// Whether a front-end shows the node. A symbol that cannot be changed is shown while something
    /// below it can.
    #[must_use]
    pub fn node_visible(&self, node: NodeId) -> bool {
        let mut stack = vec![node];
        while let Some(id) = stack.pop() {
            let node = self.tree.node(id);
            if node.prompt.is_none() || self.holds(node.visible_if) == Tri::N {
                continue;
            }
            if self.evaluator().prompt_visibility(id) != Tri::N {
                return true;
            }
            let value = match (node.symbol, node.choice) {
                (Some(symbol), _) => self.tri(symbol),
                (_, Some(choice)) => self.mode(choice),
                _ => Tri::N,
            };
            if value != Tri::N {
                stack.extend(node.children.iter().rev());
            }
        }
        false
    }

    /// The active range of an int or hex.
    #[must_use]
    pub fn range(&self, symbol: SymbolId) -> Option<(i64, i64)> {
        self.evaluator().active_range(self.tree.get(symbol))
    }

    /// The values that a user may give a bool or tristate now.
    #[must_use]
    pub fn assignable(&self, symbol: SymbolId) -> Vec<Tri> {
        let candidates = [Tri::N, Tri::M, Tri::Y].into_iter();
        candidates.filter(|tri| self.visible(symbol) != Tri::N && self.check_assignable(symbol, *tri).is_ok()).collect()
    }

    /// The lowest value that a bool or tristate can have now: what selects it.
    #[must_use]
    pub fn minimum(&self, symbol: SymbolId) -> Tri {
        self.evaluator().answer(symbol).forced
    }

    /// The highest value that a user may give a bool or tristate now.
    #[must_use]
    pub fn maximum(&self, symbol: SymbolId) -> Tri {
        let answer = self.evaluator().answer(symbol);
        answer.visible.max(answer.forced)
    }

    /// Whether `.config` has a line for the symbol.
    #[must_use]
    pub fn is_written(&self, symbol: SymbolId) -> bool {
        self.evaluator().answer(symbol).written
    }

    /// The member of a choice that is selected.
    #[must_use]
    pub fn selection(&self, choice: ChoiceId) -> Option<SymbolId> {
        self.evaluator().choice_answer(choice).selection
    }

    /// The value of a choice itself: `y`, `m` in old trees, `n` when nothing can be chosen.
    #[must_use]
    pub fn mode(&self, choice: ChoiceId) -> Tri {
        self.evaluator().choice_answer(choice).mode
    }

    /// Whether a user may choose.
    #[must_use]
    pub fn choice_visible(&self, choice: ChoiceId) -> Tri {
        self.evaluator().choice_answer(choice).visible
    }

    /// The dependencies that keep a symbol invisible, with their values; empty when it is visible.
    #[must_use]
    pub fn explain_visibility(&self, symbol: SymbolId) -> Vec<String> {
        if self.visible(symbol) != Tri::N {
            return Vec::new();
        }
        let definition = self.tree.get(symbol);
        let prompts: Vec<ExprId> = definition
            .nodes
            .iter()
            .filter_map(|node| self.tree.node(*node).prompt.as_ref())
            .map(|p| p.condition)
            .collect();
        if prompts.is_empty() {
            return vec!["it has no prompt: its value is derived from others".to_owned()];
        }
        let mut reasons = Vec::new();
        for condition in prompts {
            for term in self.tree.exprs.conjuncts(condition) {
                let reason = self.explain_term(term);
                if self.holds(term) == Tri::N && !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
        }
        reasons
    }

    /// A condition that does not hold, with the values of the symbols in it.
    fn explain_term(&self, term: ExprId) -> String {
        let mut values: Vec<String> = Vec::new();
        self.tree.exprs.any_atom(term, |atom| {
            if let Atom::Symbol(symbol) = atom {
                let definition = self.tree.get(symbol);
                let value = match definition.kind {
                    SymbolType::Unknown => "not defined".to_owned(),
                    SymbolType::String => format!("\"{}\"", self.value(symbol)),
                    _ => self.value(symbol).to_owned(),
                };
                let text = format!("{} is {value}", definition.name);
                if !values.contains(&text) {
                    values.push(text);
                }
            }
            false
        });
        let condition = self.tree.show(term);
        if values.is_empty() {
            format!("needs {condition}")
        } else {
            format!("needs {condition} ({})", values.join(", "))
        }
    }

    /// Sentences about selects that force symbols whose dependencies do not hold.
    #[must_use]
    pub fn unmet_dependencies(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (id, symbol) in self.tree.symbols() {
            let answer = self.evaluator().answer(id);
            if !symbol.kind.is_logical() || answer.direct >= answer.forced {
                continue;
            }
            if let Some((by, _)) = self.strongest(self.tree.selectors(id)) {
                let selector = &self.tree.get(by).name;
                let needs = self.tree.show(symbol.direct_dependency);
                let direct = answer.direct;
                found.push(format!(
                    "{} is selected by {selector}, but its dependencies are {direct}: {needs}",
                    symbol.name
                ));
            }
        }
        found
    }

    /// What differs from an earlier state of the same tree.
    #[must_use]
    pub fn changes(&self, before: &Config<'_>) -> Vec<Change> {
        let state = |config: &Config<'_>, symbol| config.is_written(symbol).then(|| config.value(symbol).to_owned());
        self.tree
            .symbols()
            .map(|(symbol, _)| Change { symbol, before: state(before, symbol), after: state(self, symbol) })
            .filter(|change| change.before != change.after)
            .collect()
    }

    fn name(&self, symbol: SymbolId) -> String {
        self.tree.get(symbol).name.to_string()
    }

    fn parse(&self, symbol: SymbolId, value: &str) -> Result<UserValue, SetError> {
        let kind = self.tree.get(symbol).kind;
        if !kind.accepts(value) {
            return Err(SetError::WrongType { name: self.name(symbol), value: value.to_owned(), expected: kind });
        }
        Ok(match Tri::parse(value) {
            Some(tri) if kind.is_logical() => UserValue::Tri(tri),
            _ => UserValue::Text(value.into()),
        })
    }

    /// Records a value as if it were read from a file; of a choice's members the last one counts
    /// most.
    pub(crate) fn record(&mut self, symbol: SymbolId, value: UserValue) {
        self.forget();
        if let (Some(id), UserValue::Tri(tri)) = (self.tree.get(symbol).choice, &value) {
            let tri = *tri;
            let choice = &mut self.user.choices[id.index()];
            match tri {
                Tri::Y => choice.selection = Some(symbol),
                Tri::M => choice.contradictory |= choice.mode == Tri::Y,
                Tri::N => {}
            }
            (choice.mode, choice.counts) = (choice.mode.max(tri), true);
            self.prefer(id, symbol);
        }
        self.user.symbols[symbol.index()] = UserSymbol::new(value);
    }

    /// Forgets all answers and applies what they found out about the user's values.
    pub(crate) fn forget(&mut self) {
        for (symbol, value) in std::mem::take(self.answers.adopted.get_mut()) {
            self.user.symbols[symbol.index()] = UserSymbol::new(value);
        }
        for choice in std::mem::take(self.answers.reopened.get_mut()) {
            self.user.choices[choice.index()].counts = false;
        }
        self.answers.forget();
    }

    /// The members of a choice by how much what the user said about them counts, to be reordered.
    pub(crate) fn order_of(&mut self, choice: ChoiceId) -> &mut Vec<SymbolId> {
        let order = &mut self.user.choices[choice.index()].order;
        if order.is_empty() {
            order.extend_from_slice(&self.tree.choice(choice).members);
        }
        order
    }

    /// What the user says about this member from now on counts most.
    pub(crate) fn prefer(&mut self, choice: ChoiceId, member: SymbolId) {
        if self.tree.has_mode(choice) {
            return;
        }
        let order = self.order_of(choice);
        if let Some(at) = order.iter().position(|other| *other == member) {
            order[..=at].rotate_right(1);
        }
    }

    fn switch_others_off(&mut self, choice: ChoiceId, selected: SymbolId) {
        self.user.choices[choice.index()].contradictory = false;
        for index in 0..self.tree.choice(choice).members.len() {
            let member = self.tree.choice(choice).members[index];
            if member != selected {
                self.user.symbols[member.index()] = UserSymbol::new(UserValue::Tri(Tri::N));
            }
        }
        self.prefer(choice, selected);
    }

    fn check_visible(&self, symbol: SymbolId) -> Result<(), SetError> {
        if self.visible(symbol) != Tri::N {
            return Ok(());
        }
        Err(SetError::NotVisible { name: self.name(symbol), why: self.explain_visibility(symbol) })
    }

    fn check_assignable(&self, symbol: SymbolId, tri: Tri) -> Result<(), SetError> {
        let (definition, answer) = (self.tree.get(symbol), self.evaluator().answer(symbol));
        if definition.choice.is_some() && answer.visible == Tri::Y {
            return if tri == Tri::Y { Ok(()) } else { Err(SetError::ChoiceN { name: self.name(symbol) }) };
        }
        let refuse = |why| Err(SetError::NotAssignable { name: self.name(symbol), value: tri.to_string(), why });
        if tri < answer.forced {
            let by = self.strongest(self.tree.selectors(symbol)).map_or_else(String::new, |(by, _)| self.name(by));
            return refuse(format!("{by} selects it"));
        }
        if tri == Tri::M && (definition.kind == SymbolType::Bool || self.evaluator().modules() == Tri::N) {
            return refuse("modules are not enabled".to_owned());
        }
        if tri > answer.visible.max(answer.forced) {
            return refuse(format!("its dependencies allow {} at most", answer.visible));
        }
        Ok(())
    }

    fn check_range(&self, symbol: SymbolId, value: &str) -> Result<(), SetError> {
        let kind = self.tree.get(symbol).kind;
        let Some((low, high)) = self.range(symbol) else { return Ok(()) };
        let inside = kind.parse_number(value).is_some_and(|number| (low..=high).contains(&number));
        if inside {
            return Ok(());
        }
        let show = |number: i64| if kind == SymbolType::Hex { format!("{number:#x}") } else { number.to_string() };
        Err(SetError::OutOfRange { name: self.name(symbol), value: value.to_owned(), min: show(low), max: show(high) })
    }
}
