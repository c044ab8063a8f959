//! The order in which the C tools go through all symbols: that of their hash table.
//!
//! It shows in generated files, in which symbol a random number falls on, and in the order of
//! complaints.

use std::borrow::Cow;

use crate::dialect::Rule;
use crate::text;
use crate::tree::{ChoiceId, SymbolId, Tree};

/// A symbol, or a choice, which is a symbol too in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vertex {
    Symbol(SymbolId),
    Choice(ChoiceId),
}

/// All symbols and choices. Newer ones come before older ones of the same bucket; choices without a
/// name are in the first one.
pub(super) fn all(tree: &Tree) -> Vec<Vertex> {
    let size: u32 = if tree.dialect().has(Rule::LargeTable) { 1 << 14 } else { 9973 };
    let bucket = |name: &str| hash(name) % size;
    // In the order in which the files name them.
    let mut named: Vec<(Vertex, u32)> = Vec::with_capacity(tree.symbols.len() + tree.choices.len());
    let mut choices = tree.choices.iter().enumerate().peekable();
    for (index, symbol) in tree.symbols.iter().enumerate() {
        while let Some((id, choice)) = choices.next_if(|(_, choice)| choice.after as usize <= index) {
            named.push((Vertex::Choice(ChoiceId::new(id)), choice.name.as_ref().map_or(0, |name| bucket(name))));
        }
        named.push((Vertex::Symbol(SymbolId::new(index)), bucket(&symbol.name)));
    }
    for (id, choice) in choices {
        named.push((Vertex::Choice(ChoiceId::new(id)), choice.name.as_ref().map_or(0, |name| bucket(name))));
    }
    let mut ends = vec![0_u32; size as usize + 1];
    for (_, bucket) in &named {
        ends[*bucket as usize + 1] += 1;
    }
    for index in 1..ends.len() {
        ends[index] += ends[index - 1];
    }
    let mut list = vec![Vertex::Symbol(SymbolId::new(0)); named.len()];
    for (vertex, bucket) in named.into_iter().rev() {
        let place = &mut ends[bucket as usize];
        list[*place as usize] = vertex;
        *place += 1;
    }
    list
}

/// FNV-1a, 32 bits.
fn hash(name: &str) -> u32 {
    let bytes = if name.is_ascii() { Cow::Borrowed(name.as_bytes()) } else { text::to_bytes(name) };
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
