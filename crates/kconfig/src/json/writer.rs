//! JSON without a tree in memory: brackets, keys and values in order. Knows nothing of Kconfig.

use std::fmt::Display;
use std::io::{self, Write};

use crate::text;

/// Writes one value; the caller opens and closes in pairs.
pub(super) struct Writer<'o> {
    out: &'o mut dyn Write,
    /// Whether the next value or key follows another one.
    comma: bool,
    /// Values of objects stand one a line at this depth and above.
    depth: usize,
}

impl<'o> Writer<'o> {
    pub(super) fn new(out: &'o mut dyn Write) -> Self {
        Self { out, comma: false, depth: 0 }
    }

    fn separate(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.comma, true) {
            self.out.write_all(b",")?;
            // Symbols, choices and nodes stand on lines of their own, for diff and grep.
            if self.depth <= 2 {
                self.out.write_all(b"\n")?;
            }
        }
        Ok(())
    }

    pub(super) fn open(&mut self, bracket: char) -> io::Result<()> {
        self.separate()?;
        write!(self.out, "{bracket}")?;
        self.comma = false;
        self.depth += 1;
        Ok(())
    }

    pub(super) fn close(&mut self, bracket: char) -> io::Result<()> {
        write!(self.out, "{bracket}")?;
        self.comma = true;
        self.depth -= 1;
        Ok(())
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    pub(super) fn key(&mut self, key: &str) -> io::Result<()> {
        self.text(key)?;
        self.out.write_all(b":")?;
        self.comma = false;
        Ok(())
    }

    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        self.separate()?;
        self.out.write_all(b"\"")?;
        let text = &*text::show(text);
        let mut start = 0;
        for (at, byte) in text.bytes().enumerate() {
            if byte >= 0x20 && byte != b'"' && byte != b'\\' {
                continue;
            }
            self.out.write_all(&text.as_bytes()[start..at])?;
            start = at + 1;
            match byte {
                b'"' | b'\\' => self.out.write_all(&[b'\\', byte])?,
                b'\n' => self.out.write_all(b"\\n")?,
                b'\t' => self.out.write_all(b"\\t")?,
                byte => write!(self.out, "\\u{byte:04x}")?,
            }
        }
        self.out.write_all(&text.as_bytes()[start..])?;
        self.out.write_all(b"\"")
    }

    pub(super) fn number(&mut self, number: impl Display) -> io::Result<()> {
        self.separate()?;
        write!(self.out, "{number}")
    }

    pub(super) fn number_or_null(&mut self, number: Option<usize>) -> io::Result<()> {
        match number {
            Some(number) => self.number(number),
            None => self.null(),
        }
    }

    pub(super) fn null(&mut self) -> io::Result<()> {
        self.separate()?;
        self.out.write_all(b"null")
    }

    pub(super) fn text_of(&mut self, key: &str, text: &str) -> io::Result<()> {
        self.key(key)?;
        self.text(text)
    }

    pub(super) fn optional(&mut self, key: &str, text: Option<&str>) -> io::Result<()> {
        self.key(key)?;
        match text {
            Some(text) => self.text(text),
            None => self.null(),
        }
    }

    pub(super) fn truth(&mut self, key: &str, truth: bool) -> io::Result<()> {
        self.key(key)?;
        self.separate()?;
        write!(self.out, "{truth}")
    }

    /// All items of a list, each written by `write`.
    pub(super) fn list<T>(
        &mut self,
        key: &str,
        items: impl Iterator<Item = T>,
        write: impl Fn(&mut Self, T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.key(key)?;
        self.open('[')?;
        for item in items {
            write(self, item)?;
        }
        self.close(']')
    }
}
