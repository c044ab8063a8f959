//! The terminal with its sixteen colours by their oldest names: `36` where crossterm writes
//! `38;5;6`, which terminals of sixteen colours do not know, and which means the same elsewhere.

use std::io::{self, Stdout, Write};

/// Standard output; what is written goes out as a whole when it is flushed.
pub(super) struct Palette {
    out: Stdout,
    pending: Vec<u8>,
}

impl Palette {
    pub(super) fn new() -> Self {
        Self { out: io::stdout(), pending: Vec::new() }
    }
}

impl Write for Palette {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&name_colours(&std::mem::take(&mut self.pending)))?;
        self.out.flush()
    }
}

/// The bytes with the sixteen colours in SGR sequences by their old names.
fn name_colours(bytes: &[u8]) -> Vec<u8> {
    let mut named = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"\x1b[") {
        let (before, after) = rest.split_at(at + 2);
        named.extend_from_slice(before);
        let end = after.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b';')).unwrap_or(after.len());
        let (parameters, following) = after.split_at(end);
        match std::str::from_utf8(parameters) {
            Ok(parameters) if following.first() == Some(&b'm') => named.extend(old_names(parameters).as_bytes()),
            _ => named.extend_from_slice(parameters),
        }
        rest = following;
    }
    named.extend_from_slice(rest);
    named
}

fn old_names(parameters: &str) -> String {
    let mut words = parameters.split(';').peekable();
    let mut named: Vec<String> = Vec::new();
    while let Some(word) = words.next() {
        let normal = match word {
            "38" => 30,
            "48" => 40,
            _ => {
                named.push(word.to_owned());
                continue;
            }
        };
        let rest: Vec<&str> = words.by_ref().take(2).collect();
        let number = rest.get(1).and_then(|number| number.parse::<u16>().ok());
        named.push(match (rest.first(), number) {
            (Some(&"5"), Some(number @ 0..8)) => (normal + number).to_string(),
            (Some(&"5"), Some(number @ 8..16)) => (normal + 60 + number - 8).to_string(),
            _ => std::iter::once(word).chain(rest).collect::<Vec<_>>().join(";"),
        });
    }
    named.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_colours_have_their_old_names() {
        let named = |text: &str| String::from_utf8(name_colours(text.as_bytes())).unwrap_or_default();
        assert_eq!(named("a\x1b[38;5;6;49mb\x1b[48;5;9m"), "a\x1b[36;49mb\x1b[101m");
        assert_eq!(named("\x1b[38;5;200m\x1b[0m\x1b[1;2H38;5;6m"), "\x1b[38;5;200m\x1b[0m\x1b[1;2H38;5;6m");
        assert_eq!(named("\x1b[38;2;1;2;3mx\x1b["), "\x1b[38;2;1;2;3mx\x1b[");
    }
}
