//! The outside as a tree sees it: variables, commands, functions of the caller, messages, and whose
//! rules count.
//!
//! Nothing here reads the process, starts one or prints: the caller hands in what does.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use crate::dialect::Dialect;

/// Answers what one variable is.
type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// What a command printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Its standard output, which is the value of `$(shell)`.
    pub stdout: Vec<u8>,
    /// Its standard error, which goes to [`Messages::pass`].
    pub stderr: Vec<u8>,
}

/// Runs the commands of `$(shell)`.
///
/// Commands that do not need each other's output run at the same time, each on a thread of its own;
/// the same command runs once.
pub trait Shell: Send + Sync {
    /// Runs one command line as `sh -c` does and waits for its end; how it ended does not matter,
    /// as in the C tools. Of its standard output only the first `limit` bytes are wanted; a command
    /// may print for ever. The command line is a text of [`crate::text`].
    fn run(&self, command: &str, limit: usize) -> io::Result<Output>;

    /// How many commands may run at once, at least 1: one more than processors, because now and
    /// then each waits for a file or a pipe.
    fn jobs(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from) + 1
    }
}

/// Takes what a tree says while it is read. The order is that of the lines that say it, whatever
/// runs at the same time.
pub trait Messages {
    /// `$(info,text)`.
    fn info(&self, text: &str);

    /// `$(warning-if,y,text)` in line `line` of `path`.
    fn warning(&self, path: &str, line: u32, text: &str);

    /// What a command of `$(shell)` printed on its standard error.
    fn pass(&self, stderr: &[u8]);
}

/// One call of a macro function.
#[derive(Clone, Copy, Debug)]
pub struct Call<'c> {
    /// The arguments, expanded.
    pub arguments: &'c [String],
    /// The file in which the call stands.
    pub path: &'c str,
    /// Its line.
    pub line: u32,
}

/// A macro function of the caller: its value, or why it has none.
type Function<'a> = dyn Fn(&Call<'_>) -> Result<String, String> + 'a;

/// A function with its name and the least and most arguments that it takes.
pub(crate) struct NamedFunction<'a> {
    pub name: String,
    pub arguments: std::ops::RangeInclusive<usize>,
    pub body: Box<Function<'a>>,
}

/// What the macro language and `option env` see, and whose rules count; nothing is read from the
/// process by itself.
pub struct Env<'a> {
    lookup: Box<Lookup<'a>>,
    /// None where the tree itself is to say.
    dialect: Option<Dialect>,
    shell: Option<Arc<dyn Shell>>,
    messages: Option<&'a dyn Messages>,
    functions: Vec<NamedFunction<'a>>,
    /// The variables that were asked for and are set, in the order of the first question.
    used: RefCell<Vec<(String, String)>>,
}

impl<'a> Env<'a> {
    /// An environment that asks `lookup` for variables; without commands, and under the rules of
    /// [`Dialect::EXTENDED`].
    pub fn new(lookup: impl Fn(&str) -> Option<String> + 'a) -> Self {
        Self {
            lookup: Box::new(lookup),
            dialect: Some(Dialect::EXTENDED),
            shell: None,
            messages: None,
            functions: Vec::new(),
            used: RefCell::default(),
        }
    }

    /// An environment in which nothing is set.
    #[must_use]
    pub fn empty() -> Self {
        Self::new(|_| None)
    }

    /// The same under other rules.
    #[must_use]
    pub fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// The same under the rules that each tree says are its own, see [`crate::dialect::detect`];
    /// [`crate::Tree::detected`] tells which they are.
    #[must_use]
    pub fn with_detection(mut self) -> Self {
        self.dialect = None;
        self
    }

    /// The same with commands for `$(shell)`, which is an error without them.
    #[must_use]
    pub fn with_shell(mut self, shell: Arc<dyn Shell>) -> Self {
        self.shell = Some(shell);
        self
    }

    /// The same with a taker of messages; without one, warnings become findings of the tree and the
    /// rest is dropped.
    #[must_use]
    pub fn with_messages(mut self, messages: &'a dyn Messages) -> Self {
        self.messages = Some(messages);
        self
    }

    /// The same with one more macro function, which takes `arguments` and goes before a built-in
    /// one of that name.
    #[must_use]
    pub fn with_function(
        mut self,
        name: impl Into<String>,
        arguments: std::ops::RangeInclusive<usize>,
        body: impl Fn(&Call<'_>) -> Result<String, String> + 'a,
    ) -> Self {
        self.functions.push(NamedFunction { name: name.into(), arguments, body: Box::new(body) });
        self
    }

    /// Whose rules count; none where the tree says so.
    #[must_use]
    pub fn dialect(&self) -> Option<Dialect> {
        self.dialect
    }

    /// The value of one variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        (self.lookup)(name)
    }

    /// The variables that trees read with this environment and that are set, in the order in which
    /// they were first needed.
    #[must_use]
    pub fn used(&self) -> Vec<(String, String)> {
        self.used.borrow().clone()
    }

    /// The value of one variable, which the tree now depends on.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        if let Some((_, value)) = self.used.borrow().iter().find(|(known, _)| known == name) {
            return Some(value.clone());
        }
        let value = self.get(name)?;
        self.used.borrow_mut().push((name.to_owned(), value.clone()));
        Some(value)
    }

    pub(crate) fn shell(&self) -> Option<&Arc<dyn Shell>> {
        self.shell.as_ref()
    }

    pub(crate) fn messages(&self) -> Option<&'a dyn Messages> {
        self.messages
    }

    pub(crate) fn function(&self, name: &str) -> Option<&NamedFunction<'a>> {
        self.functions.iter().rev().find(|function| function.name == name)
    }
}

impl std::fmt::Debug for Env<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Env").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}
