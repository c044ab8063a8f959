//! Where text comes from and what a position in it is.
//!
//! Files come through the caller's [`Files`]; everything else from outside is in `env`.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hash, Hasher};
use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::text;

/// Reads the files of a tree; paths are relative to the tree's root and use `/`.
pub trait Files {
    /// The bytes of one file.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// The names of the entries of one directory (`""` is the root), for `source` with a glob.
    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, format!("directory `{directory}` cannot be listed here")))
    }
}

/// Files by their names, else below the directory of the tree, as the C tools look for them.
#[derive(Clone)]
pub struct SearchPath<'f> {
    files: &'f dyn Files,
    srctree: Option<String>,
}

impl<'f> SearchPath<'f> {
    /// Looks in `files` for a path, and where that cannot be read for the same below `srctree`.
    pub fn new(files: &'f dyn Files, srctree: Option<String>) -> Self {
        Self { files, srctree }
    }

    fn below_srctree(&self, path: &str) -> Option<String> {
        self.srctree.as_ref().filter(|_| !path.starts_with('/')).map(|srctree| [srctree, "/", path].concat())
    }
}

impl Files for SearchPath<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let here = match self.files.read(path) {
            Ok(bytes) => return Ok(bytes),
            // As in C, a directory of that name is taken, and then cannot be read.
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => return Err(error),
            Err(error) => error,
        };
        match self.below_srctree(path).map(|path| self.files.read(&path)) {
            Some(Err(there)) if there.kind() == io::ErrorKind::NotFound => Err(here),
            Some(there) => there,
            None => Err(here),
        }
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let here = self.files.list(directory);
        let there = self.below_srctree(directory).and_then(|directory| self.files.list(&directory).ok());
        let Some(there) = there else { return here };
        // A file that is in both is read here.
        let mut names = here.unwrap_or_default();
        names.extend(there);
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}

impl std::fmt::Debug for SearchPath<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchPath").field("srctree", &self.srctree).finish_non_exhaustive()
    }
}

/// A tree in memory: tests, and trees embedded in a program.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles(BTreeMap<String, Vec<u8>>);

impl MemoryFiles {
    /// Files by path.
    pub fn new<P: Into<String>, B: Into<Vec<u8>>>(files: impl IntoIterator<Item = (P, B)>) -> Self {
        Self(files.into_iter().map(|(path, bytes)| (path.into(), bytes.into())).collect())
    }
}

impl Files for MemoryFiles {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.0.get(path).cloned().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file"))
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let mut names: Vec<String> = self
            .0
            .keys()
            .filter_map(|path| path.strip_prefix(&prefix))
            .filter_map(|rest| rest.split('/').next())
            .map(ToOwned::to_owned)
            .collect();
        names.dedup();
        Ok(names)
    }
}

/// A file of one tree; [`crate::Tree::path`] gives its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(NonZeroU32);

impl FileId {
    /// The root file.
    pub(crate) const FIRST: Self = Self(NonZeroU32::MIN);

    fn new(index: usize) -> Self {
        Self(u32::try_from(index).map_or(NonZeroU32::MAX, |index| Self::FIRST.0.saturating_add(index)))
    }

    const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A piece of one line of one file. Every line of a tree has some, so it is kept small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// The line, from 1.
    pub line: u32,
    /// The first byte of the piece in the line, from 1; the last place that can be told is
    /// `u16::MAX`.
    pub col: u16,
    /// Its length in bytes, up to `u16::MAX`.
    pub len: u16,
}

/// The texts of all files that were read.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    files: Vec<SourceText>,
}

/// One file; spans count the bytes of this text, see [`crate::text`].
#[derive(Debug)]
struct SourceText {
    path: Arc<str>,
    text: Arc<String>,
}

impl Sources {
    pub(crate) fn add(&mut self, path: &str, bytes: Vec<u8>) -> (FileId, Arc<String>) {
        let text = Arc::new(text::from_bytes(bytes));
        let id = FileId::new(self.files.len());
        self.files.push(SourceText { path: path.into(), text: Arc::clone(&text) });
        (id, text)
    }

    pub(crate) fn path(&self, file: FileId) -> &str {
        self.files.get(file.index()).map_or("", |source| &source.path)
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|source| &*source.path)
    }

    /// The text of a file for taking pieces of it.
    pub(crate) fn whole(&self, file: FileId) -> Option<&Arc<String>> {
        self.files.get(file.index()).map(|source| &source.text)
    }

    pub(crate) fn text(&self, file: FileId) -> &str {
        self.files.get(file.index()).map_or("", |source| source.text.as_str())
    }

    /// The byte range of a place in its file's text.
    pub(crate) fn bytes(&self, span: Span) -> std::ops::Range<usize> {
        let text = self.text(span.file);
        let line_start = match span.line {
            0 | 1 => 0,
            line => text.match_indices('\n').nth(line as usize - 2).map_or(text.len(), |(at, _)| at + 1),
        };
        let start = text.floor_char_boundary(line_start + usize::from(span.col.saturating_sub(1)));
        start..text.ceil_char_boundary(start + usize::from(span.len))
    }

    /// The text of a place.
    pub(crate) fn slice(&self, span: Span) -> &str {
        self.text(span.file).get(self.bytes(span)).unwrap_or_default()
    }

    /// `file:line`.
    pub(crate) fn place(&self, span: Span) -> String {
        format!("{}:{}", self.path(span.file), span.line)
    }

    /// `file:line:col`.
    pub(crate) fn location(&self, span: Span) -> String {
        format!("{}:{}:{}", self.path(span.file), span.line, span.col)
    }

    /// The number of files.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }
}

/// A fast hash for names and small keys of trusted size; the tables hold what the tree's author
/// wrote, not network input.
pub(crate) type FastHash = BuildHasherDefault<FastHasher>;

/// The fast hash of one key, for tables that hold only numbers of keys.
pub(crate) fn hash_of<K: Hash + ?Sized>(key: &K) -> u64 {
    FastHash::default().hash_one(key)
}

/// Multiply and rotate, eight bytes at a time.
#[derive(Clone, Copy, Default)]
pub(crate) struct FastHasher(u64);

impl FastHasher {
    const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(Self::SEED);
    }
}

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        // The bytes that are left as one number; loads of fixed size, because most names are short.
        let number = match (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
            (Some(first), Some(last)) => {
                u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
            }
            _ => match *rest {
                [] => return,
                [a] => u64::from(a),
                [a, b] => u64::from(a) | u64::from(b) << 8,
                [a, b, c, ..] => u64::from(a) | u64::from(b) << 8 | u64::from(c) << 16,
            },
        };
        self.mix(number);
    }

    fn write_u8(&mut self, value: u8) {
        self.mix(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.mix(value.unsigned_abs() as u64);
    }

    /// The table takes the low bits and the multiplication mixes upwards: fold the high half down.
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}
