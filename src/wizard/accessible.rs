//! The guide as plain lines, for screen readers, terminals that can do no more, and answers that
//! come from a pipe.
//!
//! The same questions, the same checks, the same file: each line that is read becomes the messages
//! that keys would have become.

use std::io::{BufRead, Write};

use kconfig::SymbolId;
use serde_json::Value;

use super::dialog::Dialog;
use super::end::End;
use super::files::{Files, OTHERS};
use super::guide::{Answer, Guide};
use super::line_edit::LineEdit;
use super::model::Model;
use super::msg::{Effect, Msg};
use super::questions::summary;
use super::start_from;
use super::update::{start_guide, update};
use super::view;
use crate::config::{self, HOSTS, ProblemLevel, Schema, merge_hosts, read_hosts};
use crate::error::{Context as _, Error, Result};
use crate::terminal;

const KEYS: &str = "\
Enter keeps what stands in brackets. ? tells more, < goes to the question before, ! lists what is wrong, \
q leaves without saving. Of several possible answers type the word or its number.";

/// The conversation.
pub(super) struct Conversation<'a> {
    pub(super) input: &'a mut dyn BufRead,
    pub(super) output: &'a mut dyn Write,
    /// Whether standard input is a terminal, so that a question can be asked again.
    pub(super) interactive: bool,
    /// The width of the terminal; lines are not broken where there is none.
    pub(super) width: Option<u16>,
}

impl Conversation<'_> {
    /// Asks all questions and saves.
    pub(super) fn run(mut self, model: &mut Model, files: &mut dyn Files) -> Result<End> {
        self.say(&format!("{} in {}", model.title(model.schema.tree().root()), model.file))?;
        self.greet(model)?;
        if files.has_others() {
            self.say(&format!("! {OTHERS}"))?;
        }
        self.recover(model, files)?;
        start_guide(model);
        self.say(KEYS)?;
        let end = if self.ask_all(model, files)? { self.end(model, files) } else { Ok(End::Discarded) };
        if end.is_ok() {
            files.forget_draft();
        }
        end
    }

    /// The answers of a session on the screen that was cut off: taken over or thrown away, but
    /// never forgotten.
    fn recover(&mut self, model: &mut Model, files: &mut dyn Files) -> Result<()> {
        let Some(lines) = files.draft(model) else { return Ok(()) };
        if !self.interactive {
            let error = Error::config("a session that was cut off left answers, which are not in the file");
            return Err(lines
                .into_iter()
                .fold(error, Error::evidence)
                .hint("take them over or throw them away: turnup config"));
        }
        self.say("A session ended before it saved. These answers of it are not in the file:")?;
        lines.iter().try_for_each(|line| self.say(line))?;
        loop {
            self.say("Take them over? y or n")?;
            let effect = match self.read(model)?.trim() {
                "y" | "yes" => Effect::Recover,
                "n" | "no" => Effect::Forget,
                _ => continue,
            };
            if let Some(msg) = files.carry_out(model, &effect) {
                self.take(model, msg)?;
            }
            return Ok(());
        }
    }

    /// The summary, and what to do with the answers.
    fn end(&mut self, model: &mut Model, files: &mut dyn Files) -> Result<End> {
        loop {
            // `turnup config set` takes what is only not enough yet, and so do answers of a script.
            let known = config::check(&model.schema, &model.config);
            let misfits = known.iter().any(|problem| problem.level == ProblemLevel::Error);
            check(model, files);
            self.tell_summary(model)?;
            if !self.interactive && misfits {
                return Err(Error::config("the answers do not fit together; nothing was saved"));
            }
            let is_right = model.errors().next().is_none();
            self.say(if is_right { "Save? [y]" } else { "Something is wrong. Save all the same? y or n" })?;
            match self.read(model)?.trim() {
                "" if is_right => return save(model, files),
                "y" | "yes" => return save(model, files),
                "n" | "no" | "q" => return Ok(End::Discarded),
                "<" => {
                    self.take(model, Msg::Back)?;
                    if !self.ask_all(model, files)? {
                        return Ok(End::Discarded);
                    }
                }
                _ => self.say("y saves, n does not, < goes back to the last question")?,
            }
        }
    }

    /// All questions from where one stands; whether to go on.
    fn ask_all(&mut self, model: &mut Model, files: &mut dyn Files) -> Result<bool> {
        while let Some(guide) = model.guide.clone().filter(|guide| !guide.is_at_end()) {
            let before = model.revision;
            if !self.ask(model, files, &guide)? {
                return Ok(false);
            }
            // A script can give its answers again.
            if self.interactive && model.revision != before && model.is_unsaved() {
                // Whatever ends the conversation, the answers are there at the next start.
                files.keep_draft(model).or_else(|why| self.say(&format!("! {why}")))?;
            }
        }
        Ok(true)
    }

    /// What is wrong with the file, before anything replaces it.
    fn greet(&mut self, model: &Model) -> Result<()> {
        let Some(Dialog::Text { lines, .. }) = model.dialogs.last() else { return Ok(()) };
        if !self.interactive {
            let error = Error::config(format!("{} has mistakes, and saving would drop them", model.file));
            return Err(lines
                .iter()
                .filter(|line| !line.is_empty())
                .cloned()
                .fold(error, Error::evidence)
                .hint("turnup config check"));
        }
        lines.iter().try_for_each(|line| self.say(line))
    }

    fn say(&mut self, text: &str) -> Result<()> {
        let safe = terminal::lines(text);
        for line in view::plain_lines(&safe, self.width) {
            writeln!(self.output, "{line}").context("cannot write")?;
        }
        self.output.flush().context("cannot write")
    }

    fn read(&mut self, model: &Model) -> Result<String> {
        let mut line = String::new();
        let count = self.input.read_line(&mut line).context("cannot read an answer")?;
        if count == 0 {
            let asked = model.guide.as_ref().filter(|guide| !guide.is_at_end());
            let at = asked.map_or("the end", |guide| guide.title(model));
            let error =
                Error::usage(format!("the answers ended before the last question, at: {at}; nothing was saved"));
            return Err(error.hint("give one line for each question and one for saving; an empty line keeps the value"));
        }
        Ok(line.trim_end_matches(['\n', '\r']).to_owned())
    }

    /// One question; whether to go on.
    fn ask(&mut self, model: &mut Model, files: &mut dyn Files, guide: &Guide) -> Result<bool> {
        let (at, count) = guide.progress(model);
        self.say(&format!("\nQuestion {at} of {count}: {}", guide.title(model)))?;
        let now = self.tell_options(model, guide)?;
        self.say(&format!("[{now}]"))?;
        let line = self.read(model)?;
        match line.trim() {
            "q" => return Ok(false),
            "<" => self.take(model, Msg::Back)?,
            "?" => {
                let lines = guide
                    .node()
                    .map_or_else(|| start_from::help(model), |node| view::plain_details(model, node, self.width));
                lines.iter().try_for_each(|line| self.say(line))?;
            }
            "!" => {
                check(model, files);
                let lines: Vec<String> = model.problems.iter().map(view::problem_line).collect();
                let lines = if lines.is_empty() { vec!["nothing is wrong".to_owned()] } else { lines };
                lines.iter().try_for_each(|line| self.say(line))?;
            }
            text => {
                answer(model, text).iter().try_for_each(|line| self.say(line))?;
                self.take(model, Msg::Accept)?;
                // What was refused is asked again, with what holds.
                if model.notice.as_ref().is_some_and(|notice| notice.is_error) {
                    model.guide = Some(Guide::at(model, guide.question));
                }
            }
        }
        Ok(true)
    }

    /// The possible answers, or what one must look like; returns what holds now.
    fn tell_options(&mut self, model: &Model, guide: &Guide) -> Result<String> {
        match &guide.answer {
            Answer::Options { options, .. } => {
                for (index, option) in options.iter().enumerate() {
                    let label =
                        if option.label == option.value { String::new() } else { format!(": {}", option.label) };
                    self.say(&format!("  {}  {}{label}", index + 1, option.value))?;
                }
                Ok(options.iter().find(|option| option.current).map_or_else(String::new, |option| option.value.clone()))
            }
            Answer::Text(line) => {
                let symbol = guide.node().and_then(|node| model.schema.tree().node(node).symbol);
                let Some(symbol) = symbol else { return Ok(String::new()) };
                self.say(&format!("  {}", view::expected(model, symbol)))?;
                Ok(model.shown(symbol, line.text()))
            }
            Answer::Rows(items) => {
                items.rows.iter().try_for_each(|row| self.say(&format!("  {}", items.summary(row))))?;
                self.say(&format!("  {}", rows_expected(model, items.symbol)))?;
                Ok(model.shown(items.symbol, model.config.value(items.symbol)))
            }
            Answer::Nothing => Ok(String::new()),
        }
    }

    /// Takes a message and tells what came of it. A wrong answer ends everything when it cannot be
    /// asked again.
    fn take(&mut self, model: &mut Model, msg: Msg) -> Result<()> {
        let title = model.guide.as_ref().map_or("", |guide| guide.title(model)).to_owned();
        update(model, msg);
        let Some(notice) = model.notice.clone() else { return Ok(()) };
        if notice.is_error && !self.interactive {
            return Err(Error::config(format!("{title}: {}; nothing was saved", notice.text)));
        }
        self.say(&if notice.is_error { format!("! {}", notice.text) } else { notice.text })
    }

    fn tell_summary(&mut self, model: &Model) -> Result<()> {
        let (answers, consequences) = summary(model);
        self.say("\nYour answers:")?;
        answers.iter().try_for_each(|(prompt, value)| self.say(&format!("  {prompt}: {value}")))?;
        model.problems.iter().try_for_each(|problem| self.say(&view::problem_line(problem)))?;
        consequences.iter().try_for_each(|line| self.say(line))
    }
}

/// Asks the one check, and waits for it.
fn check(model: &mut Model, files: &mut dyn Files) {
    if !model.is_checked()
        && let Some(msg) = files.carry_out(model, &Effect::Check { then: None })
    {
        update(model, msg);
    }
}

fn save(model: &Model, files: &mut dyn Files) -> Result<End> {
    if !model.is_unsaved() && !model.is_stale {
        return Ok(End::Unchanged);
    }
    match files.carry_out(model, &Effect::Save { overwrite: false }) {
        Some(Msg::Saved) => Ok(End::Saved),
        Some(Msg::NotSaved(lines)) => {
            Err(lines.into_iter().fold(Error::config("the file could not be saved"), Error::evidence))
        }
        _ => Err(Error::config(format!("{} was changed by another process meanwhile; nothing was saved", model.file))),
    }
}

/// What a list of records looks like in one line.
fn rows_expected(model: &Model, symbol: SymbolId) -> String {
    if model.schema.name(symbol) == HOSTS {
        "Expected: hosts as NAME ADDRESS ROLE, separated by semicolons, or a JSON list".to_owned()
    } else {
        "Expected: a JSON list of objects".to_owned()
    }
}

/// The JSON of hosts that are not written as such, and what had to be assumed; what cannot be read
/// stays as it is, and is refused as any wrong answer.
fn records(schema: &Schema, symbol: SymbolId, text: &str) -> (String, Vec<String>) {
    if schema.name(symbol) != HOSTS || text.starts_with('[') {
        return (text.to_owned(), Vec::new());
    }
    let Ok(list) = read_hosts(&text.replace(';', "\n")) else { return (text.to_owned(), Vec::new()) };
    let merged = merge_hosts(&[], &list);
    (Value::from(merged.hosts).to_string(), merged.assumed)
}

/// Puts the answer where the keys would have put it; what had to be assumed.
fn answer(model: &mut Model, text: &str) -> Vec<String> {
    let Some(guide) = &mut model.guide else { return Vec::new() };
    match &mut guide.answer {
        Answer::Options { options, cursor } => {
            let wanted = |(index, option): (usize, &super::dialog::PickOption)| {
                (option.value == text || option.label == text || (index + 1).to_string() == text).then_some(index)
            };
            match options.iter().enumerate().find_map(wanted) {
                Some(found) => *cursor = found,
                None if text.is_empty() => {}
                // Judged like any text: the error says what would have been right.
                None => guide.answer = Answer::Text(LineEdit::new(text)),
            }
        }
        Answer::Text(line) if !text.is_empty() => *line = LineEdit::new(text),
        Answer::Rows(items) if !text.is_empty() => {
            let (records, assumed) = records(&model.schema, items.symbol, text);
            guide.answer = Answer::Text(LineEdit::new(&records));
            return assumed;
        }
        Answer::Text(_) | Answer::Rows(_) | Answer::Nothing => {}
    }
    Vec::new()
}
