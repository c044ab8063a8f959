//! Menus as users see them: prompts that cannot be told apart, blocks with nothing in them,
//! questions without help.

use std::collections::HashMap;

use super::Linter;
use super::elsewhere::Elsewhere;
use super::facts::{Facts, Trust};
use crate::diagnostic::Diagnostic;
use crate::source::FastHash;
use crate::tree::{NodeId, NodeKind};

impl Linter<'_> {
    pub(super) fn check_menus(&mut self) {
        if self.wants("K105") {
            self.check_duplicates();
        }
        if self.wants("K110") {
            self.check_empty();
        }
        if self.wants("K123") {
            self.check_help();
        }
    }

    /// Entries of one menu with one prompt that can be shown at the same time.
    fn check_duplicates(&mut self) {
        // Both have to be shown in this very tree: what only other files define is off.
        let nowhere = Elsewhere::default();
        let mut facts = Facts::new(self.tree, &nowhere, Trust::Dependencies);
        let mut found = Vec::new();
        let parents = std::iter::once(self.tree.root()).chain(self.tree.nodes().map(|(id, _)| id));
        for parent in parents {
            let mut seen: HashMap<&str, Vec<NodeId>, FastHash> = HashMap::default();
            for child in &self.tree.node(parent).children {
                let node = self.tree.node(*child);
                let Some(prompt) = node.prompt.as_ref().filter(|prompt| !prompt.text.is_empty()) else { continue };
                // Comments are there to be repeated; a second definition of the same symbol is the
                // same question.
                if matches!(node.kind, NodeKind::Comment | NodeKind::If) {
                    continue;
                }
                let same = seen.entry(&prompt.text).or_default();
                for early in same.iter().map(|early| self.tree.node(*early)) {
                    let Some(first) = &early.prompt else { continue };
                    let is_same = early.symbol.is_some() && early.symbol == node.symbol;
                    let mark = facts.mark();
                    let both = !is_same && facts.assume(first.condition) && facts.assume(prompt.condition);
                    facts.undo(mark);
                    if both {
                        let message = format!("this menu asks `{}` twice", prompt.text);
                        let finding = Diagnostic::warning("K105", prompt.span, message);
                        found.push(finding.with_label(first.span, "the first time").with_help("say what differs"));
                        break;
                    }
                }
                same.push(*child);
            }
        }
        self.findings.extend(found);
    }

    /// Blocks that enclose no entry in the files.
    fn check_empty(&mut self) {
        let mut filled = vec![false; self.tree.nodes.len()];
        for (id, _) in self.tree.entries() {
            if let Some(block) = self.tree.block_around(id) {
                filled[block.index()] = true;
            }
        }
        let mut found = Vec::new();
        for (id, node) in self.tree.entries().skip(1) {
            let what = match node.kind {
                NodeKind::Menu => "menu",
                NodeKind::Choice => "choice",
                NodeKind::If => "if",
                _ => continue,
            };
            if !filled[id.index()] {
                found.push(Diagnostic::warning("K110", node.span, format!("nothing stands in this {what}")));
            }
        }
        self.findings.extend(found);
    }

    fn check_help(&mut self) {
        let mut found = Vec::new();
        for (_, node) in self.tree.entries() {
            let asks = matches!(node.kind, NodeKind::Config | NodeKind::Menuconfig);
            if let (true, Some(prompt), None) = (asks, &node.prompt, &node.help) {
                found.push(Diagnostic::warning("K123", prompt.span, "the user is asked this without help"));
            }
        }
        self.findings.extend(found);
    }
}
