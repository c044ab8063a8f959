//! What each mode does between reading and writing.

use super::ask::Asker;
use super::options::{Command, Mode};
use super::order::Vertex;
use super::random::Random;
use super::session::{Exit, Session, Step};
use crate::dialect::Rule;
use crate::eval::{UserSymbol, UserValue};
use crate::tree::{ChoiceId, NodeId, Symbol, SymbolId};
use crate::value::{SymbolType, Tri};

/// What symbols without a value get.
enum Filling {
    Default,
    Same(Tri),
    Random(Random, Odds),
}

/// Probabilities in percent.
#[derive(Clone, Copy)]
struct Odds {
    bool_yes: usize,
    tristate_yes: usize,
    tristate_module: usize,
}

/// Applies a mode.
pub(super) fn apply(session: &mut Session<'_, '_>, command: &Command) -> Step {
    match command.mode {
        Mode::Allno => fill(session, Filling::Same(Tri::N)),
        Mode::Allyes => fill(session, Filling::Same(Tri::Y)),
        Mode::Allmod => fill(session, Filling::Same(Tri::M)),
        Mode::Alldef | Mode::Defconfig => fill(session, Filling::Default),
        Mode::Rand => {
            let odds = read_odds(session)?;
            let random = command.random.clone().unwrap_or_else(|| Random::new(1));
            fill(session, Filling::Random(random, odds));
        }
        Mode::Yes2mod => rewrite(session, Tri::Y, Tri::M),
        Mode::Mod2yes => rewrite(session, Tri::M, Tri::Y),
        Mode::Mod2no => rewrite(session, Tri::M, Tri::N),
        Mode::Oldask | Mode::Old | Mode::Listnew | Mode::Helpnew | Mode::Sync => {
            let top = session.tree.root();
            let mode = command.mode;
            return Asker { session, mode, top, indent: 1, asked: false, ended: false, stuck: false }.run();
        }
        Mode::Savedefconfig | Mode::Olddef => {}
    }
    Ok(())
}

fn fill(session: &mut Session<'_, '_>, mut filling: Filling) {
    if !session.tree.dialect().has(Rule::ChoiceModes) {
        return session.fill_in_menu_order(&mut filling);
    }
    if let Filling::Random(..) = filling {
        while session.fill_in_table_order(&mut filling) {}
    } else {
        session.fill_in_table_order(&mut filling);
    }
}

/// Replaces one answer by another.
fn rewrite(session: &mut Session<'_, '_>, from: Tri, to: Tri) {
    let modules = session.config.evaluator().modules();
    for index in 0..session.tree.symbols.len() {
        let symbol = &session.tree.symbols[index];
        if symbol.kind != SymbolType::Tristate || modules == Tri::N {
            continue;
        }
        if symbol.choice.is_some_and(|choice| session.tree.has_mode(choice))
            && session.config.visible(SymbolId::new(index)) == Tri::Y
        {
            continue;
        }
        let user = &mut session.config.user.symbols[index];
        if user.value == Some(UserValue::Tri(from)) {
            user.value = Some(UserValue::Tri(to));
        }
    }
    for (index, choice) in session.tree.choices.iter().enumerate() {
        let user = &mut session.config.user.choices[index];
        if choice.kind == SymbolType::Tristate && modules != Tri::N && user.mode == from {
            user.mode = to;
        }
    }
    session.recompute();
}

/// `KCONFIG_PROBABILITY`: one to three numbers with colons between them.
fn read_odds(session: &mut Session<'_, '_>) -> Step<Odds> {
    let text = session.variable("KCONFIG_PROBABILITY").unwrap_or_default();
    let (mut numbers, mut rest) = (Vec::new(), &*text);
    while !rest.is_empty() && numbers.len() < 3 {
        let (number, tail) = take_number(rest);
        let Some(number) = number.filter(|number| *number <= 100) else { return Err(refuse_odds(session)) };
        numbers.push(number);
        rest = tail.strip_prefix(':').unwrap_or(tail);
    }
    let odds = match *numbers {
        [] => Odds { bool_yes: 50, tristate_yes: 33, tristate_module: 33 },
        [yes] => Odds { bool_yes: yes, tristate_yes: yes - yes / 2, tristate_module: yes / 2 },
        [yes, module] => Odds { bool_yes: yes + module, tristate_yes: yes, tristate_module: module },
        [bool_yes, yes, module, ..] => Odds { bool_yes, tristate_yes: yes, tristate_module: module },
    };
    if odds.tristate_yes + odds.tristate_module > 100 {
        return Err(refuse_odds(session));
    }
    Ok(odds)
}

fn refuse_odds(session: &mut Session<'_, '_>) -> Exit {
    session.error("KCONFIG_PROBABILITY: Numerical result out of range\n");
    Exit(1)
}

/// The number at the start of a text, as `strtol` reads it: 0 and the whole text when there is
/// none; none when negative.
fn take_number(text: &str) -> (Option<usize>, &str) {
    let digits = text.trim_start().trim_start_matches('+');
    let (negative, digits) = digits.strip_prefix('-').map_or((false, digits), |digits| (true, digits));
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    if end == 0 {
        return (Some(0), text);
    }
    let number = digits[..end].parse().unwrap_or(usize::MAX);
    (if negative && number > 0 { None } else { Some(number) }, &digits[end..])
}

impl Filling {
    /// The value for one symbol.
    fn draw_for(&mut self, symbol: &Symbol) -> Option<Tri> {
        match self {
            Self::Same(Tri::N) if symbol.allnoconfig_y => Some(Tri::Y),
            _ => self.draw(symbol.kind),
        }
    }

    /// The value for one bool or tristate; random ones cost a number each.
    fn draw(&mut self, kind: SymbolType) -> Option<Tri> {
        match self {
            Self::Default => None,
            Self::Same(value) => Some(*value),
            Self::Random(random, odds) => {
                let number = random.below(100);
                let (yes, module) = match kind {
                    SymbolType::Tristate => (odds.tristate_yes, odds.tristate_module),
                    _ => (odds.bool_yes, 0),
                };
                Some(if number < yes {
                    Tri::Y
                } else if number < yes + module {
                    Tri::M
                } else {
                    Tri::N
                })
            }
        }
    }
}

impl Session<'_, '_> {
    /// Since 6.11: what has a prompt, in the order of the menus; choices where they stand.
    fn fill_in_menu_order(&mut self, filling: &mut Filling) {
        let tree = self.tree;
        for (id, node) in tree.nodes() {
            if node.prompt.is_none() {
                continue;
            }
            if let (Some(choice), Filling::Random(random, _)) = (node.choice, &mut *filling) {
                self.shuffle(id, choice, random);
            }
            let Some(symbol) = node.symbol else { continue };
            let definition = tree.get(symbol);
            if !definition.kind.is_logical() || definition.choice.is_some() || self.has_value(symbol) {
                continue;
            }
            if let Some(value) = filling.draw_for(definition) {
                self.config.user.symbols[symbol.index()] = UserSymbol::new(UserValue::Tri(value));
            }
        }
        self.recompute();
    }

    /// Gives the members of a choice a random order of importance, behind those that the user spoke
    /// about.
    fn shuffle(&mut self, id: NodeId, choice: ChoiceId, random: &mut Random) {
        let tree = self.tree;
        let mut members = Vec::new();
        let mut stack: Vec<NodeId> = tree.node(id).children.iter().rev().copied().collect();
        while let Some(id) = stack.pop() {
            let node = tree.node(id);
            members.extend(node.symbol.filter(|symbol| !self.has_value(*symbol)));
            stack.extend(node.children.iter().rev());
        }
        while !members.is_empty() {
            let member = members.remove(random.below(members.len()));
            members.retain(|other| *other != member);
            self.config.user.symbols[member.index()] = UserSymbol::new(UserValue::Tri(Tri::Y));
            let order = self.config.order_of(choice);
            order.retain(|other| *other != member);
            order.push(member);
        }
    }

    /// Up to 6.10: all bools and tristates in the order of the table, then one member of each
    /// choice that is `y`. Whether another round may find more.
    fn fill_in_table_order(&mut self, filling: &mut Filling) -> bool {
        let mut again = false;
        for index in 0..self.order.len() {
            match self.order[index] {
                Vertex::Symbol(symbol) => {
                    let kind = self.tree.get(symbol).kind;
                    if !kind.is_logical() || self.has_value(symbol) || self.config.answers.knows(symbol) {
                        continue;
                    }
                    again = true;
                    if let Some(value) = filling.draw_for(self.tree.get(symbol)) {
                        self.config.user.symbols[symbol.index()] = UserSymbol::new(UserValue::Tri(value));
                    }
                }
                Vertex::Choice(choice) => {
                    if !self.tree.choice(choice).kind.is_logical()
                        || self.has_mode_value(choice)
                        || self.config.answers.knows_choice(choice)
                    {
                        continue;
                    }
                    again = true;
                    let drawn = filling.draw(self.tree.choice(choice).kind);
                    if let Some(value) = drawn {
                        let user = &mut self.config.user.choices[choice.index()];
                        user.mode = value;
                        user.counts |= matches!(filling, Filling::Same(_));
                    }
                }
            }
        }
        self.recompute();
        for index in 0..self.order.len() {
            let Vertex::Choice(choice) = self.order[index] else { continue };
            if self.has_mode_value(choice) {
                continue;
            }
            if let Filling::Random(random, _) = filling {
                let changes = self.config.mode(choice) == Tri::Y;
                if changes {
                    self.choose_randomly(choice, random);
                }
                again = changes || again && self.tree.dialect().has(Rule::RandomUntilStable);
            } else {
                self.look_at_strangers(choice);
                // What was said about the mode counts again, also when some member is new.
                let user = &mut self.config.user.choices[choice.index()];
                (user.counts, user.contradictory) = (true, false);
            }
        }
        again
    }

    /// As in C, a choice sees a default that belongs to another one only when that was computed
    /// before.
    fn look_at_strangers(&mut self, choice: ChoiceId) {
        if !self.config.answers.stale.borrow().is_empty() {
            self.config.evaluator().choice_answer(choice);
            self.config.answers.forget_choice(choice);
        }
    }

    /// Selects a member at random; what was computed from the choice before stays as it was, as in
    /// C.
    fn choose_randomly(&mut self, choice: ChoiceId, random: &mut Random) {
        self.report_unmet();
        let members = &self.tree.choice(choice).members;
        let chosen = random.below(members.len());
        for (index, member) in members.iter().enumerate() {
            let value = if index == chosen { Tri::Y } else { Tri::N };
            self.config.user.symbols[member.index()] = UserSymbol::new(UserValue::Tri(value));
            self.config.answers.forget_symbol(*member);
        }
        let user = &mut self.config.user.choices[choice.index()];
        (user.selection, user.counts) = (members.get(chosen).copied(), true);
        self.config.answers.forget_choice(choice);
    }
}
