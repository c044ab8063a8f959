//! Sets of symbols that only grow, and shrink again when assumptions are taken back.

use crate::tree::SymbolId;

/// Asked for each symbol that follows from something: the answer takes no search.
pub(super) struct Flags {
    has: Vec<bool>,
    raised: Vec<SymbolId>,
}

impl Flags {
    /// For so many symbols, none of them raised.
    pub(super) fn new(symbols: usize) -> Self {
        Self { has: vec![false; symbols], raised: Vec::new() }
    }

    pub(super) fn has(&self, symbol: SymbolId) -> bool {
        self.has[symbol.index()]
    }

    pub(super) fn raise(&mut self, symbol: SymbolId) {
        if !std::mem::replace(&mut self.has[symbol.index()], true) {
            self.raised.push(symbol);
        }
    }

    /// How many are raised.
    pub(super) fn len(&self) -> usize {
        self.raised.len()
    }

    /// Takes back what was raised after there were so many.
    pub(super) fn truncate(&mut self, length: usize) {
        for symbol in self.raised.drain(length..) {
            self.has[symbol.index()] = false;
        }
    }
}
