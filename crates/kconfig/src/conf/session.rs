//! One run: the configuration, what is known about it, and the console.

use std::mem::take;

use super::order::{self, Vertex};
use super::outside::{Entry, Outside};
use crate::config::Config;
use crate::text;
use crate::tree::{SymbolId, Tree};

/// The run ends with this exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit(pub u8);

/// What a step of a run gives, or the end of the run.
pub(super) type Step<T = ()> = Result<T, Exit>;

/// The outside with one buffer before standard output.
pub(super) struct Console<'o> {
    pub outside: &'o mut dyn Outside,
    pending: String,
}

impl<'o> Console<'o> {
    pub(super) fn new(outside: &'o mut dyn Outside) -> Self {
        Self { outside, pending: String::new() }
    }

    /// Standard output.
    pub(super) fn print(&mut self, text: &str) {
        self.pending.push_str(text);
    }

    /// Standard error; what was printed before comes before.
    pub(super) fn error(&mut self, text: &str) {
        self.flush();
        self.outside.err(&text::to_bytes(text));
    }

    pub(super) fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.outside.out(&text::to_bytes(&take(&mut self.pending)));
        }
    }

    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.outside.variable(name)
    }

    pub(super) fn now(&self) -> (u64, u32) {
        self.outside.now()
    }

    /// Nothing will be said any more.
    pub(super) fn end(&mut self, code: u8) {
        self.flush();
        self.outside.end(code);
    }

    /// A file by its name, else below `srctree`.
    pub(super) fn find_file(&self, name: &str) -> Option<Vec<u8>> {
        if let Ok(bytes) = self.outside.read(name) {
            return Some(bytes);
        }
        if name.starts_with('/') {
            return None;
        }
        let srctree = self.outside.variable("srctree")?;
        self.outside.read(&format!("{srctree}/{name}")).ok()
    }
}

/// The state of one run.
pub(super) struct Session<'s, 'o> {
    pub tree: &'s Tree,
    pub config: Config<'s>,
    pub console: &'s mut Console<'o>,
    /// `CONFIG_`, or what the variable of this name says.
    pub prefix: String,
    /// No "configuration written to" and the like.
    pub silent: bool,
    /// What would be written differs from what was read.
    pub changed: bool,
    /// Complaints about the file that was read last.
    pub warnings: usize,
    /// Symbols that were found to be selected against their dependencies.
    pub unmet: usize,
    /// All symbols and choices in the order of the C tools' table.
    pub order: Vec<Vertex>,
    /// The environment variables that the tree depends on.
    pub variables: Vec<(String, String)>,
}

impl<'s, 'o> Session<'s, 'o> {
    pub(super) fn new(tree: &'s Tree, console: &'s mut Console<'o>, silent: bool) -> Self {
        let prefix = console.variable("CONFIG_").unwrap_or_else(|| "CONFIG_".to_owned());
        let (config, order) = (Config::new(tree), order::all(tree));
        Self {
            tree,
            config,
            console,
            prefix,
            silent,
            changed: true,
            warnings: 0,
            unmet: 0,
            order,
            variables: Vec::new(),
        }
    }

    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.console.variable(name)
    }

    pub(super) fn has_variable(&self, name: &str) -> bool {
        self.variable(name).is_some()
    }

    pub(super) fn print(&mut self, text: &str) {
        self.console.print(text);
    }

    /// Standard error, after the complaints that evaluation had before.
    pub(super) fn error(&mut self, text: &str) {
        self.report_unmet();
        self.console.error(text);
    }

    /// A remark about files, which `-s` silences.
    pub(super) fn remark(&mut self, text: &str) {
        if !self.silent {
            self.print(&format!("#\n# {text}\n#\n"));
        }
    }

    /// The file that holds the configuration.
    pub(super) fn config_name(&self) -> String {
        self.variable("KCONFIG_CONFIG").unwrap_or_else(|| ".config".to_owned())
    }

    pub(super) fn is_directory(&self, path: &str) -> bool {
        self.console.outside.entry(path) == Some(Entry::Directory)
    }

    /// Makes the directories above a path.
    pub(super) fn make_parents(&mut self, path: &str) -> std::io::Result<()> {
        let Some((parents, _)) = path.rsplit_once('/') else { return Ok(()) };
        for end in parents.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| at).chain([parents.len()]) {
            let parent = &parents[..end];
            if !parent.trim_end_matches('/').is_empty() && !self.is_directory(parent) {
                self.console.outside.create_directory(parent)?;
            }
        }
        Ok(())
    }

    /// Computes everything again from here on.
    pub(super) fn recompute(&mut self) {
        self.report_unmet();
        self.config.forget();
        self.changed = true;
        self.config.evaluator().modules();
    }

    /// The same; where it would find the same and say nothing, what is known stays.
    pub(super) fn recompute_unless_final(&mut self) {
        if self.unmet > 0 || !self.config.answers.are_final() {
            return self.recompute();
        }
        self.changed = true;
    }

    /// Whether the user said something about a symbol.
    pub(super) fn has_value(&self, symbol: SymbolId) -> bool {
        self.config.user.symbols[symbol.index()].counts
            || self.config.answers.adopted.borrow().iter().any(|(adopted, _)| *adopted == symbol)
    }

    /// Whether the user can change a symbol now.
    pub(super) fn is_changeable(&self, symbol: SymbolId) -> bool {
        let answer = self.config.evaluator().answer(symbol);
        answer.visible > answer.forced
    }
}
