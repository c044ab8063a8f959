//! Lints: what is wrong with a tree that loads.
//!
//! Each finding has an id and, where that is decidable, is certain: a lint says nothing rather than
//! something wrong. What cannot be decided without knowing the files of the project that this run
//! did not read is asked of [`Elsewhere`].
//!
//! - `facts` proves what follows from conditions,
//! - `conditions`, `selects`, `values` and `menus` look for mistakes,
//! - `catalogue` lists them and knows which ones the caller wants.
//!
//! Changes no tree and evaluates no configuration.

mod catalogue;
mod conditions;
mod elsewhere;
mod facts;
mod menus;
mod selects;
mod values;

use std::cell::OnceCell;
use std::sync::Arc;

pub use catalogue::{LINTS, Lint, Policy, PolicyError, Setting, find};
pub use elsewhere::Elsewhere;

use self::facts::{Facts, Trust};
use crate::diagnostic::{Diagnostic, Diagnostics, Level};
use crate::expr::ExprId;
use crate::source::Span;
use crate::suggest::Candidates;
use crate::tree::{NodeId, SymbolId, Tree};

/// Looks for everything that the policy does not allow; the findings of loading are among them.
///
/// ```
/// use kconfig::lint::{self, Elsewhere, Policy};
/// use kconfig::{Env, MemoryFiles, Tree};
///
/// let files = MemoryFiles::new([("Kconfig", "config A\n\tbool \"A\"\nconfig B\n\tbool \"B\"\n\tdepends on A && !A\n")]);
/// let tree = Tree::load("Kconfig", &files, &Env::empty()).map_err(|found| found.render(true))?;
/// let findings = lint::check(&tree, &Policy::default(), &Elsewhere::default());
/// assert_eq!(findings.iter().map(|finding| finding.id).collect::<Vec<_>>(), ["K101"]);
/// # Ok::<(), String>(())
/// ```
#[must_use]
pub fn check(tree: &Tree, policy: &Policy, elsewhere: &Elsewhere) -> Diagnostics {
    check_watched(tree, policy, elsewhere, &|_, _| ())
}

/// The same; `watch` is told now and then how many steps are done, and of how many.
#[must_use]
pub fn check_watched(tree: &Tree, policy: &Policy, elsewhere: &Elsewhere, watch: &dyn Fn(usize, usize)) -> Diagnostics {
    let steps = tree.nodes.len() + tree.symbols.len();
    let (findings, names) = (tree.find_warnings(&|name| elsewhere.defines(name)), OnceCell::new());
    let mut linter = Linter { tree, policy, elsewhere, findings, watch, alone: None, names, done: 0, steps };
    linter.check_conditions();
    linter.check_selects();
    linter.check_values();
    linter.check_menus();
    let mut findings = linter.findings;
    findings.retain_mut(|finding| {
        let setting = policy.get(finding.id);
        if finding.level == Level::Warning && setting == Setting::Deny {
            finding.level = Level::Error;
        }
        setting != Setting::Allow
    });
    findings.sort_by_key(|finding| (finding.labels.first().map(|label| label.span), finding.id));
    Diagnostics::new(findings, Arc::clone(&tree.sources))
}

/// One run over a tree.
struct Linter<'t> {
    tree: &'t Tree,
    policy: &'t Policy,
    elsewhere: &'t Elsewhere,
    findings: Vec<Diagnostic>,
    watch: &'t dyn Fn(usize, usize),
    /// What follows from one condition and nothing else; made when it is first asked.
    alone: Option<Facts<'t>>,
    /// All names, to say which one was meant.
    names: OnceCell<Candidates<'t>>,
    /// Steps that are done.
    done: usize,
    steps: usize,
}

/// So many steps are done before the watcher is told again.
const STRIDE: usize = 64;

impl<'t> Linter<'t> {
    /// Without any assumption.
    fn alone(&mut self) -> &mut Facts<'t> {
        self.alone.get_or_insert_with(|| Facts::new(self.tree, self.elsewhere, Trust::Nothing))
    }

    /// One more of the steps that take time is done.
    fn step(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(STRIDE) {
            (self.watch)(self.done.min(self.steps), self.steps);
        }
    }

    fn wants(&self, id: &str) -> bool {
        self.policy.get(id) != Setting::Allow
    }

    fn report(&mut self, finding: Diagnostic) {
        self.findings.push(finding);
    }

    /// The `depends on` or `if`, of the entry or a block around it, that names a symbol.
    fn find_dependency(&self, node: NodeId, symbol: SymbolId) -> Option<(ExprId, Span)> {
        let mut at = Some(node);
        while let Some(id) = at {
            let mut written = self.tree.written_dependencies(id);
            if let Some(found) = written.find(|(expr, _)| self.tree.mentions(*expr, symbol)) {
                return Some(found);
            }
            at = self.tree.block_around(id);
        }
        None
    }

    /// Where a symbol is defined first.
    fn definition(&self, symbol: SymbolId) -> Option<Span> {
        self.tree.get(symbol).nodes.first().map(|node| self.tree.node(*node).span)
    }
}
