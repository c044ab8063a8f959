//! The macro language: variables, functions and the environment behind `$(…)`.
//!
//! Text in, text out. What functions do to the outside goes through [`Env`] and happens in the
//! order of the lines, while commands run at the same time: a text may hold marks for their outputs
//! until the text is needed.

use std::collections::{HashMap, VecDeque};

use super::commands::{Commands, is_pending};
use super::token::{Assignment, describe_failure};
use crate::diagnostic::Diagnostic;
use crate::dialect::{Dialect, Rule};
use crate::env::{Call, Env};
use crate::source::Span;
use crate::suggest::suggest;

/// How deep references may nest or call each other. The C tools allow a thousand calls of one
/// function; this is deep enough for any tree and shallow enough for any thread's stack.
const MAX_DEPTH: usize = 250;
/// How long the result of one line may get; references that double themselves end here.
const MAX_LENGTH: usize = 1 << 20;
/// How many arguments a call may have, as in the C tools.
const MAX_ARGUMENTS: usize = 16;
/// How many bytes of a command's output the C tools take: what fits into their buffer, with a zero
/// byte behind it.
const LONG_OUTPUT: usize = 4095;
/// The same before their buffer grew.
const SHORT_OUTPUT: usize = 255;

#[derive(Clone, Debug)]
struct Variable {
    value: String,
    recursive: bool,
    /// How many expansions of it are under way.
    open: usize,
}

/// A visible effect, run in the order of the lines.
enum Effect {
    Info(String),
    WarningIf {
        condition: String,
        text: String,
        path: String,
        span: Span,
    },
    ErrorIf {
        condition: String,
        text: String,
        span: Span,
    },
    /// What the command with this number said on standard error.
    Stderr(usize),
}

/// Why a reference has no value.
#[derive(Debug)]
pub(crate) enum Failure {
    Broken(String),
    /// `$(error-if,y,text)`: the tree's author stops here.
    Refused(String),
}

/// The variables of one run, in the state after the lines read so far.
pub(crate) struct Macros<'e> {
    env: &'e Env<'e>,
    variables: HashMap<String, Variable>,
    commands: Commands,
    effects: VecDeque<Effect>,
    /// Warnings of the tree's author without a taker, and calls of undefined functions.
    findings: Vec<Diagnostic>,
    /// How deep the reference is that is being expanded.
    depth: usize,
    /// What the line has grown to.
    length: usize,
    /// Whether an `error-if` has ended all visible effects.
    stopped: bool,
    /// How many bytes of a command's output count.
    output_limit: usize,
    /// Whether a variable of the environment stands for a function that is not there.
    variables_as_functions: bool,
}

/// Where a reference stands.
#[derive(Clone, Copy)]
struct Place<'p> {
    path: &'p str,
    span: Span,
}

impl<'e> Macros<'e> {
    pub(crate) fn new(env: &'e Env<'e>) -> Self {
        Self {
            env,
            variables: HashMap::new(),
            commands: Commands::default(),
            effects: VecDeque::new(),
            findings: Vec::new(),
            depth: 0,
            length: 0,
            stopped: false,
            output_limit: LONG_OUTPUT,
            variables_as_functions: false,
        }
    }

    /// Takes the limits and ways of a dialect.
    pub(crate) fn obey(&mut self, dialect: Dialect) {
        self.variables_as_functions = dialect.has(Rule::VariablesAsFunctions);
        self.output_limit = if dialect.has(Rule::LongShellOutput) { LONG_OUTPUT } else { SHORT_OUTPUT };
    }

    /// A variable of the environment.
    pub(crate) fn read_variable(&self, name: &str) -> Option<String> {
        self.env.read(name)
    }

    /// Whether a text waits for the output of a command.
    pub(crate) fn is_pending(text: &str) -> bool {
        is_pending(text)
    }

    /// The text with the outputs that it waits for.
    pub(crate) fn resolve(&self, text: &str, span: Span) -> Result<String, Diagnostic> {
        self.commands.resolve(text).map_err(|failure| describe_failure(span, Failure::Broken(failure)))
    }

    /// Records an assignment.
    pub(crate) fn assign(
        &mut self,
        name: &str,
        how: Assignment,
        text: &str,
        span: Span,
        path: &str,
    ) -> Result<(), Diagnostic> {
        let appends_to_recursive = self.variables.get(name).is_none_or(|variable| variable.recursive);
        let recursive = how == Assignment::Recursive || (how == Assignment::Append && appends_to_recursive);
        let value = if recursive {
            text.to_owned()
        } else {
            self.length = 0;
            self.expand(text, Place { path, span }, &[]).map_err(|failure| describe_failure(span, failure))?
        };
        match self.variables.get_mut(name) {
            Some(variable) if how == Assignment::Append => {
                variable.value.push(' ');
                variable.value.push_str(&value);
            }
            _ => {
                self.variables.insert(name.to_owned(), Variable { value, recursive, open: 0 });
            }
        }
        Ok(())
    }

    /// Expands the reference that starts at `start` of a line; also says where it ends.
    pub(crate) fn expand_reference(
        &mut self,
        text: &str,
        start: usize,
        span: Span,
        path: &str,
    ) -> (usize, Result<String, Failure>) {
        self.length = 0;
        self.expand_at(text, start, Place { path, span }, &[])
    }

    fn expand(&mut self, text: &str, place: Place<'_>, arguments: &[String]) -> Result<String, Failure> {
        let mut result = String::new();
        let mut at = 0;
        while let Some(found) = text[at..].find("$(") {
            result.push_str(&text[at..at + found]);
            let (end, value) = self.expand_at(text, at + found, place, arguments);
            result.push_str(&value?);
            at = end;
        }
        result.push_str(&text[at..]);
        Ok(result)
    }

    fn expand_at(
        &mut self,
        text: &str,
        start: usize,
        place: Place<'_>,
        arguments: &[String],
    ) -> (usize, Result<String, Failure>) {
        let inside = start + 2;
        let Some(close) = find_close(text, inside) else {
            let message = format!("unterminated reference to '{}': missing ')'", &text[inside..]);
            return (text.len(), Err(Failure::Broken(message)));
        };
        if self.depth >= MAX_DEPTH {
            return (close + 1, Err(Failure::Broken("Too deep recursive expansion".to_owned())));
        }
        self.depth += 1;
        let value = self.evaluate(&text[inside..close], place, arguments);
        self.depth -= 1;
        let value = value.and_then(|value| {
            self.length += value.len();
            if self.length > MAX_LENGTH {
                return Err(Failure::Broken("the text that these references make is too long".to_owned()));
            }
            Ok(value)
        });
        (close + 1, value)
    }

    /// The value of what stands between the parentheses. An argument of the function around it goes
    /// first, then variables, then functions, then the environment.
    fn evaluate(&mut self, inside: &str, place: Place<'_>, outer: &[String]) -> Result<String, Failure> {
        if let Some(argument) = inside.parse::<usize>().ok().and_then(|n| outer.get(n.checked_sub(1)?)) {
            return Ok(argument.clone());
        }
        let mut parts = split_arguments(inside).into_iter();
        let name = self.expand(parts.next().unwrap_or_default(), place, outer)?;
        let name = self.commands.resolve(&name).map_err(Failure::Broken)?;
        let mut arguments = Vec::new();
        for part in parts {
            arguments.push(self.expand(part, place, outer)?);
        }
        if arguments.len() >= MAX_ARGUMENTS {
            return Err(Failure::Broken("too many function arguments".to_owned()));
        }
        if self.variables.contains_key(&name) {
            return self.expand_variable(&name, place, &arguments);
        }
        if let Some(value) = self.call(&name, place, &arguments) {
            return value;
        }
        let may_be_variable = arguments.is_empty() || self.variables_as_functions;
        let value = may_be_variable.then(|| self.env.read(&name)).flatten();
        if value.is_none() && !arguments.is_empty() {
            self.report_unknown(&name, place.span);
        }
        Ok(value.unwrap_or_default())
    }

    fn expand_variable(&mut self, name: &str, place: Place<'_>, arguments: &[String]) -> Result<String, Failure> {
        let Some(variable) = self.variables.get_mut(name) else { return Ok(String::new()) };
        if !variable.recursive {
            return Ok(variable.value.clone());
        }
        if arguments.is_empty() && variable.open > 0 {
            let message = format!("Recursive variable '{name}' references itself (eventually)");
            return Err(Failure::Broken(message));
        }
        variable.open += 1;
        let value = variable.value.clone();
        let expanded = self.expand(&value, place, arguments);
        if let Some(variable) = self.variables.get_mut(name) {
            variable.open -= 1;
        }
        expanded
    }

    /// The value of a function of the caller or a built-in one; none when there is no such
    /// function.
    fn call(&mut self, name: &str, place: Place<'_>, arguments: &[String]) -> Option<Result<String, Failure>> {
        let env = self.env;
        if let Some(function) = env.function(name) {
            let checked = check_count(name, arguments, function.arguments.clone());
            return Some(checked.and_then(|()| {
                let mut resolved = Vec::new();
                for argument in arguments {
                    resolved.push(self.commands.resolve(argument).map_err(Failure::Broken)?);
                }
                let call = Call { arguments: &resolved, path: place.path, line: place.span.line };
                (function.body)(&call).map_err(Failure::Broken)
            }));
        }
        let count = match name {
            "filename" | "lineno" => 0..=0,
            "info" | "shell" => 1..=1,
            "warning-if" | "error-if" => 2..=2,
            _ => return None,
        };
        Some(check_count(name, arguments, count).and_then(|()| self.call_built_in(name, place, arguments)))
    }

    fn call_built_in(&mut self, name: &str, place: Place<'_>, arguments: &[String]) -> Result<String, Failure> {
        if self.stopped {
            return Ok(String::new());
        }
        match (name, arguments) {
            ("filename", _) => return Ok(place.path.to_owned()),
            ("lineno", _) => return Ok(place.span.line.to_string()),
            ("shell", [command]) => return self.start_command(command),
            ("info", [text]) => self.effects.push_back(Effect::Info(text.clone())),
            ("warning-if", [condition, text]) if may_be_yes(condition) => {
                let (condition, text) = (condition.clone(), text.clone());
                self.effects.push_back(Effect::WarningIf {
                    condition,
                    text,
                    path: place.path.to_owned(),
                    span: place.span,
                });
            }
            ("error-if", [condition, text]) if condition == "y" => {
                // Everything before it was seen before it.
                self.run_effects(true).map_err(|finding| Failure::Refused(finding.message))?;
                self.stop();
                return Err(Failure::Refused(self.commands.resolve(text).map_err(Failure::Broken)?));
            }
            ("error-if", [condition, text]) if is_pending(condition) => {
                self.effects.push_back(Effect::ErrorIf {
                    condition: condition.clone(),
                    text: text.clone(),
                    span: place.span,
                });
            }
            _ => {}
        }
        Ok(String::new())
    }

    fn start_command(&mut self, command: &str) -> Result<String, Failure> {
        let Some(shell) = self.env.shell() else {
            return Err(Failure::Broken("commands are not allowed here".to_owned()));
        };
        let (number, mark) = self.commands.start(command, self.output_limit, shell);
        self.effects.push_back(Effect::Stderr(number));
        Ok(mark)
    }

    /// Lets everything happen whose turn has come; waits for commands when told to. An error is
    /// that of an `error-if`.
    #[inline]
    pub(crate) fn run_effects(&mut self, wait: bool) -> Result<(), Diagnostic> {
        if self.effects.is_empty() { Ok(()) } else { self.run_due_effects(wait) }
    }

    fn run_due_effects(&mut self, wait: bool) -> Result<(), Diagnostic> {
        while let Some(effect) = self.effects.front() {
            if !wait && !self.is_due(effect) {
                return Ok(());
            }
            let Some(effect) = self.effects.pop_front() else { return Ok(()) };
            self.run_effect(effect)?;
        }
        Ok(())
    }

    fn is_due(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Info(text) => self.commands.is_ready(text),
            Effect::WarningIf { condition, text, .. } | Effect::ErrorIf { condition, text, .. } => {
                self.commands.is_ready(condition) && self.commands.is_ready(text)
            }
            Effect::Stderr(number) => self.commands.stderr(*number, false).is_some(),
        }
    }

    fn run_effect(&mut self, effect: Effect) -> Result<(), Diagnostic> {
        let messages = self.env.messages();
        match effect {
            Effect::Info(text) => {
                let text = self.commands.resolve(&text).unwrap_or_default();
                if let Some(messages) = messages {
                    messages.info(&text);
                }
            }
            Effect::WarningIf { condition, text, path, span } => {
                if self.resolve(&condition, span)? == "y" {
                    let text = self.resolve(&text, span)?;
                    match messages {
                        Some(messages) => messages.warning(&path, span.line, &text),
                        None => self.findings.push(Diagnostic::warning("K016", span, text.trim())),
                    }
                }
            }
            Effect::ErrorIf { condition, text, span } => {
                if self.resolve(&condition, span)? == "y" {
                    let text = self.resolve(&text, span)?;
                    self.stop();
                    return Err(describe_failure(span, Failure::Refused(text)));
                }
            }
            Effect::Stderr(number) => {
                let stderr = self.commands.stderr(number, true).unwrap_or_default();
                if let Some(messages) = messages.filter(|_| !stderr.is_empty()) {
                    messages.pass(&stderr);
                }
            }
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.stopped = true;
        self.effects.clear();
    }

    pub(crate) fn take_findings(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.findings)
    }

    fn report_unknown(&mut self, name: &str, span: Span) {
        let message = format!("there is no macro function `{name}`: the call expands to nothing");
        let built_in = ["error-if", "filename", "info", "lineno", "shell", "warning-if"];
        let known = self.variables.keys().map(String::as_str).chain(built_in);
        let finding = Diagnostic::warning("K017", span, message);
        self.findings.push(match suggest(name, known) {
            Some(near) => finding.with_help(format!("did you mean `{near}`?")),
            None => finding,
        });
    }
}

fn may_be_yes(condition: &str) -> bool {
    condition == "y" || is_pending(condition)
}

fn check_count(name: &str, arguments: &[String], allowed: std::ops::RangeInclusive<usize>) -> Result<(), Failure> {
    let message = if arguments.len() < *allowed.start() {
        format!("too few function arguments passed to '{name}'")
    } else if arguments.len() > *allowed.end() {
        format!("too many function arguments passed to '{name}'")
    } else {
        return Ok(());
    };
    Err(Failure::Broken(message))
}

/// The position of the parenthesis that closes a reference.
fn find_close(text: &str, from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().skip(from) {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(at),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Splits at the commas outside parentheses.
fn split_arguments(inside: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[start..]);
    parts
}
