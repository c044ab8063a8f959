//! The canonical form of a Kconfig file, in the style of the kernel: entries at the margin,
//! attributes behind one tab, help behind a tab and two spaces, one blank line before each entry,
//! one space between words.
//!
//! Works on lines, not on the syntax tree, so that comments, continuations and macros stay where
//! they are. Only blanks and empty lines change, and `---help---` becomes `help`; what a file means
//! does not. Formatting twice changes nothing more.
//!
//! - `lines` takes a file apart,
//! - `write` puts it together again,
//! - `syntax` finds out whether the file is one at all.

mod lines;
mod syntax;
mod write;

use crate::diagnostic::Diagnostics;

/// Formats one file; refused with its errors when it does not parse. `path` is for messages.
///
/// Bytes that are no UTF-8 stay as they are.
///
/// ```
/// let formatted = kconfig::format::format("Kconfig", b"config A\n  bool  \"A\"\n  help\n    Text.\n")?;
/// assert_eq!(formatted, b"config A\n\tbool \"A\"\n\thelp\n\t  Text.\n");
/// # Ok::<(), kconfig::Diagnostics>(())
/// ```
pub fn format(path: &str, bytes: &[u8]) -> Result<Vec<u8>, Diagnostics> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Ok(format_text(path, text)?.into_bytes());
    }
    // A letter for each byte: nothing outside of ASCII matters here, and every letter goes back to
    // its byte.
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    let formatted = format_text(path, &text)?;
    Ok(formatted.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap_or(b'?')).collect())
}

fn format_text(path: &str, text: &str) -> Result<String, Diagnostics> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let units = lines::split(text);
    syntax::check(path, text, &units)?;
    Ok(write::write(&units))
}
