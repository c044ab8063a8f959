//! The questions: one line each, in the order of the menus.

use super::options::Mode;
use super::session::{Exit, Session, Step};
use crate::dialect::Rule;
use crate::dotconfig;
use crate::eval::UserValue;
use crate::text;
use crate::tree::{ChoiceId, NodeId, NodeKind, SymbolId};
use crate::value::{SymbolType, Tri};

/// A walk through the menus.
pub(super) struct Asker<'a, 's, 'o> {
    pub session: &'a mut Session<'s, 'o>,
    pub mode: Mode,
    /// Where the walk began: menus below it are only looked through for new symbols.
    pub top: NodeId,
    /// How far questions stand to the right, from 1.
    pub indent: usize,
    /// Something was asked, so that something else may have become new.
    pub asked: bool,
    /// There are no more lines to read.
    pub ended: bool,
    /// There were none when one was needed; the C tools would ask for ever.
    pub stuck: bool,
}

/// A line that was read, or the old answer.
enum Line {
    /// There is nothing to ask: the question shows its answer.
    Settled,
    Read(String),
}

impl<'s> Asker<'_, 's, '_> {
    /// Asks everything, or what is new, until nothing new turns up.
    pub(super) fn run(&mut self) -> Step {
        let root = self.session.tree.root();
        if self.mode == Mode::Oldask {
            self.top = root;
            self.ask(root);
            self.mode = Mode::Old;
        }
        loop {
            self.asked = false;
            self.look_for_new(root);
            if self.stuck {
                return Err(Exit(1));
            }
            if !self.asked {
                return Ok(());
            }
        }
    }

    fn children(&self, id: NodeId) -> &'s [NodeId] {
        let tree: &'s crate::tree::Tree = self.session.tree;
        &tree.node(id).children
    }

    fn prompt(&self, id: NodeId) -> &'s str {
        let tree: &'s crate::tree::Tree = self.session.tree;
        tree.node(id).prompt.as_ref().map_or("", |prompt| &prompt.text)
    }

    /// Asks for all that has no value yet, below one node.
    fn look_for_new(&mut self, id: NodeId) {
        if self.stuck || !self.session.is_shown(id) {
            return;
        }
        let node = self.session.tree.node(id);
        let is_new = match (node.symbol, node.choice) {
            (Some(symbol), _) => !self.session.has_value(symbol) && self.session.is_changeable(symbol),
            (_, Some(choice)) => self.session.is_new_choice(choice),
            _ => false,
        };
        if is_new {
            self.meet_new(id);
        }
        for child in self.children(id) {
            self.look_for_new(*child);
        }
    }

    fn meet_new(&mut self, id: NodeId) {
        let node = self.session.tree.node(id);
        match self.mode {
            Mode::Listnew => {
                let Some(symbol) = node.symbol else { return };
                let mut line = String::new();
                dotconfig::push_assignment(&self.session.config, symbol, &self.session.prefix, &mut line);
                self.session.print(&line);
            }
            Mode::Helpnew => {
                self.session.print("-----\n");
                self.session.print_help(id);
                self.session.print("-----\n");
            }
            _ => {
                if !std::mem::replace(&mut self.asked, true) {
                    self.session.print("*\n* Restart config...\n*\n");
                }
                self.top = self.menu_around(id);
                self.ask(self.top);
            }
        }
    }

    /// The node itself when it is a menu, else the one around it.
    fn menu_around(&self, id: NodeId) -> NodeId {
        let mut at = id;
        loop {
            let node = self.session.tree.node(at);
            let is_menu = node.prompt.is_some() && matches!(node.kind, NodeKind::Menu | NodeKind::Menuconfig);
            match node.parent {
                Some(parent) if !is_menu => at = parent,
                _ => return at,
            }
        }
    }

    /// Asks about one node and those below it.
    fn ask(&mut self, id: NodeId) {
        if self.stuck || !self.session.is_shown(id) {
            return;
        }
        let node = self.session.tree.node(id);
        if let Some(prompt) = &node.prompt {
            let is_menu = matches!(node.kind, NodeKind::Menu | NodeKind::Menuconfig);
            if is_menu && self.mode != Mode::Oldask && self.top != id {
                return self.look_for_new(id);
            }
            if is_menu || node.kind == NodeKind::Comment {
                let blanks = self.blanks();
                self.session.print(&format!("{blanks}*\n{blanks}* {}\n{blanks}*\n", prompt.text));
            }
        }
        match (node.symbol, node.choice) {
            (Some(symbol), _)
                if !self.session.tree.get(symbol).kind.is_logical()
                    && self.session.tree.get(symbol).kind != SymbolType::Unknown =>
            {
                self.ask_text(id, symbol);
            }
            (Some(symbol), _) => self.ask_tri(id, symbol),
            (_, Some(choice)) => {
                self.ask_choice(id, choice);
                if self.session.choice_tri(choice) != Tri::M {
                    return;
                }
            }
            _ => {}
        }
        let step = if node.symbol.is_some() || node.choice.is_some() { 2 } else { 0 };
        self.indent += step;
        for child in self.children(id) {
            self.ask(*child);
        }
        self.indent -= step;
    }

    fn blanks(&self) -> String {
        " ".repeat(self.indent - 1)
    }

    /// Reads a line; as in the C tools, it is echoed when the input is not a terminal.
    fn read_line(&mut self, before: &str) -> String {
        self.session.console.flush();
        let line = self.session.console.outside.read_line().map(text::from_bytes);
        if line.is_none() {
            self.ended = true;
            self.session.error("\nError in reading or end of file.\n");
        }
        let line = line.unwrap_or_else(|| before.to_owned());
        if !self.session.console.outside.is_terminal() {
            self.session.print(&line);
        }
        line
    }

    /// Whether an answer that was not taken is the last one.
    fn is_stuck(&mut self) -> bool {
        self.stuck |= self.ended;
        self.stuck
    }

    fn read_answer(&mut self, is_new: bool, is_changeable: bool, current: &str) -> Line {
        if is_new {
            self.session.print("(NEW) ");
        }
        let only_new = matches!(self.mode, Mode::Old | Mode::Sync);
        if !is_changeable || only_new && !is_new {
            self.session.print(&format!("{current}\n"));
            return Line::Settled;
        }
        Line::Read(self.read_line("\n"))
    }

    fn ask_text(&mut self, id: NodeId, symbol: SymbolId) {
        loop {
            let name = &self.session.tree.get(symbol).name;
            let current = self.session.config.value(symbol).to_owned();
            self.session.print(&format!("{}{} ({name}) [{current}] ", self.blanks(), self.prompt(id)));
            let (is_new, is_changeable) = (!self.session.has_value(symbol), self.session.is_changeable(symbol));
            let Line::Read(mut line) = self.read_answer(is_new, is_changeable, &current) else { return };
            let value = match &*line {
                "\n" => current,
                "?\n" => {
                    self.session.print_help(id);
                    continue;
                }
                _ => {
                    line.pop();
                    line
                }
            };
            if self.session.set_text(symbol, &value) || self.is_stuck() {
                return;
            }
        }
    }

    fn ask_tri(&mut self, id: NodeId, symbol: SymbolId) {
        loop {
            let name = &self.session.tree.get(symbol).name;
            self.session.print(&format!("{}{} ({name}) ", self.blanks(), self.prompt(id)));
            let current = self.session.config.tri(symbol);
            let choices = [Tri::N, Tri::M, Tri::Y].map(|value| self.session.takes(symbol, value));
            self.print_choices(current, choices);
            let (is_new, is_changeable) = (!self.session.has_value(symbol), self.session.is_changeable(symbol));
            let Line::Read(line) = self.read_answer(is_new, is_changeable, current.as_str()) else { return };
            match parse_tri(&line, current) {
                Reply::Again => {}
                Reply::Value(value) if self.session.set_tri(symbol, value) => return,
                Reply::Value(_) | Reply::Help => self.session.print_help(id),
            }
            if self.is_stuck() {
                return;
            }
        }
    }

    fn print_choices(&mut self, current: Tri, takes: [bool; 3]) {
        let mut text = format!("[{}", current.as_str().to_uppercase());
        for (value, takes) in [Tri::N, Tri::M, Tri::Y].into_iter().zip(takes) {
            if takes && value != current {
                text.push('/');
                text.push_str(value.as_str());
            }
        }
        text.push_str("/?] ");
        self.session.print(&text);
    }

    /// The mode of a choice that has one; whether members are to be asked for.
    fn ask_mode(&mut self, id: NodeId, choice: ChoiceId) -> bool {
        if self.session.config.choice_visible(choice) <= self.session.forced_mode(choice) {
            if self.session.config.mode(choice) == Tri::M {
                let line = format!("{}{}\n", self.blanks(), self.prompt(id));
                self.session.print(&line);
            }
            return self.session.config.mode(choice) == Tri::Y;
        }
        loop {
            let name =
                self.session.tree.choice(choice).name.as_ref().map_or(String::new(), |name| format!("({name}) "));
            self.session.print(&format!("{}{} {name}", self.blanks(), self.prompt(id)));
            let current = self.session.config.mode(choice);
            let choices = [Tri::N, Tri::M, Tri::Y].map(|value| self.session.takes_mode(choice, value));
            self.print_choices(current, choices);
            let is_new = !self.session.has_mode_value(choice);
            let Line::Read(line) = self.read_answer(is_new, true, current.as_str()) else { break };
            match parse_tri(&line, current) {
                Reply::Again => {}
                Reply::Value(value) if self.session.set_mode(choice, value) => break,
                Reply::Value(_) | Reply::Help => self.session.print_help(id),
            }
            if self.is_stuck() {
                break;
            }
        }
        self.session.config.mode(choice) == Tri::Y
    }

    fn ask_choice(&mut self, id: NodeId, choice: ChoiceId) {
        let has_mode = self.session.tree.has_mode(choice);
        let mut is_new = has_mode && !self.session.has_mode_value(choice);
        if has_mode && !self.ask_mode(id, choice) {
            return;
        }
        let mut asked = false;
        loop {
            // The end of the input is an answer like Enter; what it does not settle would be asked
            // for ever.
            if asked && self.is_stuck() {
                return;
            }
            asked = true;
            let (count, current) = self.print_members(id, choice, &mut is_new, has_mode);
            let mut line = String::new();
            let mut number = count;
            if count == 1 {
                self.session.print("[1]: 1\n");
            } else {
                self.session.print(&format!("[1-{count}?]: "));
                if matches!(self.mode, Mode::Old | Mode::Sync) && !is_new {
                    number = current;
                    self.session.print(&format!("{current}\n"));
                } else {
                    self.read_line("").trim_matches(is_c_space).clone_into(&mut line);
                    match line.bytes().next() {
                        Some(b'?') => {
                            self.session.print_help(id);
                            continue;
                        }
                        None => number = current,
                        Some(b'0'..=b'9') => number = leading_number(&line),
                        Some(_) => continue,
                    }
                }
            }
            let Some((node, member)) = self.find_member(id, number) else { continue };
            if line.ends_with('?') {
                self.session.print_help(node);
                continue;
            }
            if has_mode {
                self.session.set_tri(member, Tri::Y);
                self.indent += 2;
                for child in self.children(node) {
                    self.ask(*child);
                }
                self.indent -= 2;
            } else {
                self.session.choose(choice, member);
            }
            return;
        }
    }

    /// Prints the members with their numbers; how many there are and which one is selected.
    fn print_members(&mut self, id: NodeId, choice: ChoiceId, is_new: &mut bool, has_mode: bool) -> (usize, usize) {
        let mut text = format!("{}{}\n", self.blanks(), self.prompt(id));
        let selected = self.session.config.selection(choice);
        let (mut count, mut current) = (0, 0);
        for child in self.children(id) {
            if !self.session.is_shown(*child) {
                continue;
            }
            let Some(symbol) = self.session.tree.node(*child).symbol else {
                text.extend([&self.blanks(), "* ", self.prompt(*child), "\n"]);
                continue;
            };
            count += 1;
            let is_selected = selected == Some(symbol);
            let mark = if is_selected { ">" } else { " " };
            if is_selected {
                current = count;
            }
            let name = &self.session.tree.get(symbol).name;
            text.extend([&self.blanks(), mark, " ", &count.to_string(), ". ", self.prompt(*child), " (", name, ")"]);
            if !self.session.has_value(symbol) {
                *is_new |= !has_mode;
                text.push_str(" (NEW)");
            }
            text.push('\n');
        }
        text.extend([&self.blanks(), "choice"]);
        self.session.print(&text);
        (count, current)
    }

    /// The member of this number, from 1.
    fn find_member(&mut self, id: NodeId, number: usize) -> Option<(NodeId, SymbolId)> {
        let mut left = number;
        for child in self.children(id) {
            let Some(symbol) = self.session.tree.node(*child).symbol else { continue };
            if !self.session.is_shown(*child) {
                continue;
            }
            left = left.checked_sub(1)?;
            if left == 0 {
                return Some((*child, symbol));
            }
        }
        None
    }
}

impl Session<'_, '_> {
    /// Whether a node is shown. Up to 6.10, one that is shown only for the sake of its children
    /// counts as answered.
    fn is_shown(&mut self, id: NodeId) -> bool {
        let node = self.tree.node(id);
        // As in C the symbol is computed first: that may show that a choice is new.
        if let Some(symbol) = node.symbol {
            self.config.evaluator().answer(symbol);
        }
        if let Some(choice) = node.choice {
            self.config.evaluator().choice_answer(choice);
        }
        if !self.config.node_visible(id) {
            return false;
        }
        if self.tree.dialect().has(Rule::ChoiceModes)
            && (node.symbol.is_some() || node.choice.is_some())
            && self.config.evaluator().prompt_visibility(id) == Tri::N
        {
            node.children.iter().find(|child| self.is_shown(**child));
            if let Some(symbol) = node.symbol {
                let user = &mut self.config.user.symbols[symbol.index()];
                user.value.get_or_insert(UserValue::Tri(Tri::N));
                user.counts = true;
            }
            if let Some(choice) = node.choice {
                self.config.user.choices[choice.index()].counts = true;
            }
        }
        true
    }

    /// The value of a choice as if it were a symbol: without a mode it has none.
    pub(super) fn choice_tri(&self, choice: ChoiceId) -> Tri {
        if self.tree.has_mode(choice) { self.config.mode(choice) } else { Tri::N }
    }

    fn is_new_choice(&self, choice: ChoiceId) -> bool {
        self.tree.has_mode(choice)
            && !self.has_mode_value(choice)
            && (self.config.choice_visible(choice) > self.forced_mode(choice) || self.config.mode(choice) == Tri::Y)
    }
}

/// What a line at a `[N/m/y/?]` prompt says.
enum Reply {
    Value(Tri),
    Help,
    Again,
}

fn parse_tri(line: &str, current: Tri) -> Reply {
    match line.trim_matches(is_c_space) {
        "" => Reply::Value(current),
        "n" | "N" | "no" | "No" => Reply::Value(Tri::N),
        "m" | "M" => Reply::Value(Tri::M),
        "y" | "Y" | "yes" | "Yes" => Reply::Value(Tri::Y),
        text if text.starts_with('?') => Reply::Help,
        _ => Reply::Again,
    }
}

/// The number that a line starts with.
fn leading_number(line: &str) -> usize {
    let end = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
    line[..end].parse().unwrap_or(usize::MAX)
}

/// What C's `isspace` is true for.
fn is_c_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r')
}
