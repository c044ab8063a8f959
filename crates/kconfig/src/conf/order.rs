//! The order in which the C tools go through all symbols: that of their hash table.
//!
//! It shows in generated files, in which symbol a random number falls on, and in the order of complaints.

use crate::tree::{ChoiceId, SymbolId, Tree};

/// A symbol, or a choice, which is a symbol too in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vertex {
    Symbol(SymbolId),
    Choice(ChoiceId),
}

/// All symbols and choices. Newer ones come before older ones of the same bucket; choices without a name are in the first.
pub(super) fn all(tree: &Tree) -> Vec<Vertex> {
    let size = tree.dialect().symbol_buckets();
    let symbols = tree.symbols.len();
    let bucket = |name: &str| hash(name) % size;
    let buckets: Vec<u32> = tree
        .symbols
        .iter()
        .map(|symbol| bucket(&symbol.name))
        .chain(tree.choices.iter().map(|choice| choice.name.as_ref().map_or(0, |name| bucket(name))))
        .collect();
    let mut ends = vec![0_usize; size as usize + 1];
    for bucket in &buckets {
        ends[*bucket as usize + 1] += 1;
    }
    for index in 1..ends.len() {
        ends[index] += ends[index - 1];
    }
    let mut list = vec![Vertex::Symbol(SymbolId::new(0)); buckets.len()];
    for (index, bucket) in buckets.iter().enumerate().rev() {
        let place = &mut ends[*bucket as usize];
        list[*place] = if index < symbols {
            Vertex::Symbol(SymbolId::new(index))
        } else {
            Vertex::Choice(ChoiceId::new(index - symbols))
        };
        *place += 1;
    }
    list
}

/// FNV-1a, 32 bits.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
