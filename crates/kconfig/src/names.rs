//! Every word and text of a tree, once: comparing two names is comparing two numbers.
//!
//! Knows which words are constants and which name symbols; nothing of what symbols are.

use hashbrown::HashTable;

use crate::excerpt::Excerpt;
use crate::expr::{Atom, TextId};
use crate::ids::SymbolId;
use crate::source::{Span, hash_of};
use crate::value::{SymbolType, Tri};

/// Words and texts by number, and the symbols that bare words name.
#[derive(Debug)]
pub(crate) struct Names {
    texts: Vec<Excerpt>,
    /// The numbers of texts by what they say; prompts, which nothing refers to, are not among them.
    ids: HashTable<TextId>,
    /// What each text means without quotes, once that was asked.
    bare: Vec<Option<Atom>>,
    /// The name of each symbol and where it was first named.
    symbols: Vec<(TextId, Span)>,
    /// Words of one to eight bytes that were looked up last: keywords and the like, which are most.
    short: Vec<(Short, TextId)>,
}

/// How many short words are remembered; a power of two.
const SHORT: usize = 1 << 10;

/// All bytes of a word that has one to eight, and how many they are. Of four and more they are the
/// first four and the last four, which may overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Short {
    bytes: u64,
    length: u32,
}

impl Short {
    /// No word.
    const NONE: Self = Self { bytes: 0, length: 0 };

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the length is below nine")]
    fn of(word: &[u8]) -> Option<Self> {
        if !(1..=8).contains(&word.len()) {
            return None;
        }
        let bytes = match (word.first_chunk(), word.last_chunk()) {
            (Some(first), Some(last)) => {
                u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
            }
            _ => word.iter().fold(0, |bytes, byte| bytes << 8 | u64::from(*byte)),
        };
        Some(Self { bytes, length: word.len() as u32 })
    }

    #[inline]
    fn slot(self) -> usize {
        let mixed = (self.bytes ^ u64::from(self.length)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 54) as usize % SHORT
    }
}

impl Default for Names {
    fn default() -> Self {
        // Room for a kernel: growing a table means moving it.
        let ids = HashTable::with_capacity(28_000);
        let short = vec![(Short::NONE, TextId::new(0)); SHORT];
        Self { texts: Vec::new(), ids, bare: Vec::new(), symbols: Vec::new(), short }
    }
}

impl Names {
    /// The number of a text that is no piece of a file.
    pub(crate) fn intern(&mut self, text: &str) -> TextId {
        self.intern_piece(text.as_bytes(), || text.into())
    }

    /// The number of a word or text; `hold` gives it for keeping when it is new.
    #[inline]
    pub(crate) fn intern_piece(&mut self, text: &[u8], hold: impl FnOnce() -> Excerpt) -> TextId {
        let Some(word) = Short::of(text) else { return self.find_or_add(text, hold) };
        let slot = word.slot();
        if self.short[slot].0 == word {
            return self.short[slot].1;
        }
        let id = self.find_or_add(text, hold);
        self.short[slot] = (word, id);
        id
    }

    fn find_or_add(&mut self, text: &[u8], hold: impl FnOnce() -> Excerpt) -> TextId {
        let hash = hash_of(text);
        if let Some(id) = self.ids.find(hash, |id| self.texts[id.index()].as_bytes() == text) {
            return *id;
        }
        let id = self.add(hold());
        self.ids.insert_unique(hash, id, |id| hash_of(self.texts[id.index()].as_bytes()));
        id
    }

    /// A number for a text that may have one already: most texts in quotes are prompts, which
    /// nothing refers to. See [`Names::quoted`].
    pub(crate) fn add(&mut self, text: Excerpt) -> TextId {
        let id = TextId::new(self.texts.len());
        self.texts.push(text);
        self.bare.push(None);
        id
    }

    pub(crate) fn text(&self, id: TextId) -> &str {
        &self.texts[id.index()]
    }

    pub(crate) fn shared(&self, id: TextId) -> Excerpt {
        self.texts[id.index()].clone()
    }

    /// What a word in quotes means: a constant, even where it is spelt like a symbol.
    pub(crate) fn quoted(&mut self, id: TextId) -> Atom {
        if let Some(tri) = tri_of(self.text(id)) {
            return Atom::Tri(tri);
        }
        let text = self.shared(id);
        Atom::Text(self.find_or_add(text.as_bytes(), || text.clone()))
    }

    /// What a word without quotes means: `y`, `m` and `n`, numbers and what a macro made of other
    /// characters than names have are constants, the rest are symbols.
    pub(crate) fn bare(&mut self, id: TextId, span: Span) -> Atom {
        if let Some(atom) = self.bare[id.index()] {
            return atom;
        }
        let text = self.text(id);
        let atom = match tri_of(text) {
            Some(tri) => Atom::Tri(tri),
            None if is_number(text) || !text.bytes().all(is_name_byte) => Atom::Text(id),
            None => Atom::Symbol(self.add_symbol(id, span)),
        };
        self.bare[id.index()] = Some(atom);
        atom
    }

    /// The symbol of a word that stands where only symbols stand.
    pub(crate) fn symbol(&mut self, id: TextId, span: Span) -> SymbolId {
        if let Some(Atom::Symbol(symbol)) = self.bare[id.index()] {
            return symbol;
        }
        let symbol = self.add_symbol(id, span);
        self.bare[id.index()] = Some(Atom::Symbol(symbol));
        symbol
    }

    fn add_symbol(&mut self, id: TextId, span: Span) -> SymbolId {
        let symbol = SymbolId::new(self.symbols.len());
        self.symbols.push((id, span));
        symbol
    }

    /// How many symbols have been named.
    pub(crate) fn count_symbols(&self) -> usize {
        self.symbols.len()
    }

    /// The text that names a symbol.
    pub(crate) fn text_of_symbol(&self, symbol: SymbolId) -> TextId {
        self.symbols[symbol.index()].0
    }

    /// The symbol of this name, if any line names it.
    pub(crate) fn find_symbol(&self, name: &str) -> Option<SymbolId> {
        let id = self.ids.find(hash_of(name.as_bytes()), |id| self.texts[id.index()].as_bytes() == name.as_bytes())?;
        match self.bare[id.index()] {
            Some(Atom::Symbol(symbol)) => Some(symbol),
            _ => None,
        }
    }

    /// The names of all symbols, with the places where they were first named, by number; they are
    /// given once, when no more can come.
    pub(crate) fn take_symbols(&mut self) -> impl Iterator<Item = (Excerpt, Span)> {
        std::mem::take(&mut self.symbols).into_iter().map(|(text, span)| (self.shared(text), span))
    }
}

fn tri_of(text: &str) -> Option<Tri> {
    match text {
        "y" => Some(Tri::Y),
        "m" => Some(Tri::M),
        "n" => Some(Tri::N),
        _ => None,
    }
}

/// What names of symbols consist of: letters, digits, `_` and `-`, and `.` and `/` of old trees and
/// of ours.
pub(crate) const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/')
}

fn is_number(text: &str) -> bool {
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return false;
    }
    SymbolType::Int.accepts(text)
        || text.bytes().all(|byte| byte.is_ascii_digit())
        || (text.starts_with("0x") || text.starts_with("0X")) && SymbolType::Hex.accepts(text)
}
