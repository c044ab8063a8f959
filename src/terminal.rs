//! Text of other parties made safe for a terminal: output of hosts, of Terraform, of kubectl, names
//! from files.
//!
//! A control character never reaches a terminal as it is: it is shown as an escape (`\x1b`,
//! `\u{202e}`), in pipes as well, so that a log reads the same everywhere. Colours of our own are
//! put around text that is escaped already. Pure, but for the one function that looks at the
//! environment: what the terminal of this process can show.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a terminal acts on this character, or shows the text around it in another order: the C0
/// and C1 controls, DEL, the separators of lines and paragraphs, and the bidirectional controls of
/// Unicode (UAX #9, the characters of CVE-2021-42574). A tab is no danger.
#[must_use]
pub(crate) const fn is_control(letter: char) -> bool {
    matches!(letter,
        '\0'..='\x08' | '\x0a'..='\x1f' | '\x7f'..='\u{9f}'
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// One line: a newline in it is escaped as well.
#[must_use]
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escape(text, is_control)
}

/// Text of several lines: a newline stays, everything else is as in [`line`](line()).
#[must_use]
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escape(text, |letter| letter != '\n' && is_control(letter))
}

/// JSON with the same value and without control characters: those that JSON allows as they are
/// become `\uXXXX`.
#[must_use]
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    let is_raw = |letter: char| letter != '\n' && is_control(letter);
    if !text.contains(is_raw) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_raw(letter) {
            // Writing to a String cannot fail; all of them lie in the basic plane.
            let _ = write!(escaped, "\\u{:04x}", u32::from(letter));
        } else {
            escaped.push(letter);
        }
    }
    Cow::Owned(escaped)
}

/// Text of several lines from a renderer of our own that has escaped what it quotes: of escape
/// sequences only colours (SGR) stay.
#[must_use]
pub(crate) fn coloured(text: &str) -> Cow<'_, str> {
    let mut shown = String::with_capacity(text.len());
    let mut parts = text.split('\x1b');
    shown.push_str(&lines(parts.next().unwrap_or_default()));
    for part in parts {
        let end = part.find(|letter: char| !matches!(letter, '[' | ';' | '0'..='9')).unwrap_or(part.len());
        shown.push_str(if part.starts_with('[') && part[end..].starts_with('m') { "\x1b" } else { "\\x1b" });
        shown.push_str(&lines(part));
    }
    Cow::Owned(shown)
}

fn escape(text: &str, is_unsafe: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        // Writing to a String cannot fail.
        let _ = match letter {
            letter if !is_unsafe(letter) => escaped.write_char(letter),
            '\n' => escaped.write_str("\\n"),
            '\r' => escaped.write_str("\\r"),
            '\0'..='\x7f' => write!(escaped, "\\x{:02x}", u32::from(letter)),
            letter => write!(escaped, "\\u{{{:x}}}", u32::from(letter)),
        };
    }
    Cow::Owned(escaped)
}

/// Whether lines and arrows would come out as rubbish on the terminal of this process.
#[must_use]
pub(crate) fn is_ascii_only() -> bool {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable).unwrap_or_default();
    is_ascii(&locale, &variable("TERM").unwrap_or_default())
}

/// Whether the terminal says that it is no more than ASCII, or the locale is not UTF-8.
fn is_ascii(locale: &str, terminal: &str) -> bool {
    let utf8 = locale.to_lowercase().replace('-', "").contains("utf8");
    let plain = ["C", "POSIX"].contains(&locale);
    matches!(terminal, "vt100" | "vt102" | "vt220" | "ansi")
        || !locale.is_empty() && !utf8 && (plain || locale.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_and_the_terminal_say_what_can_be_shown() {
        for (locale, terminal) in [("C", "xterm"), ("POSIX", ""), ("de_DE.ISO-8859-1", "xterm"), ("C.UTF-8", "vt100")] {
            assert!(is_ascii(locale, terminal), "{locale} {terminal}");
        }
        for (locale, terminal) in [("C.UTF-8", "xterm"), ("de_DE.utf8", "linux"), ("", "xterm"), ("de_DE", "xterm")] {
            assert!(!is_ascii(locale, terminal), "{locale} {terminal}");
        }
    }

    const HOSTILE: &str = "a\x1b]0;t\x07\x1b[2J\x1b[31m\rb\u{202e}c\u{9b}1m\x7f\0\td\ne";

    #[test]
    fn controls_are_shown_and_do_nothing() {
        let shown = r"a\x1b]0;t\x07\x1b[2J\x1b[31m\rb\u{202e}c\u{9b}1m\x7f\x00	d";
        assert_eq!(line(HOSTILE), format!("{shown}\\ne"));
        assert_eq!(lines(HOSTILE), format!("{shown}\ne"));
        assert!(matches!(line("grün, 日本, 👩‍🔧"), Cow::Borrowed(_)), "letters of all languages stay");
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({ "said": HOSTILE });
        let text = json(&value.to_string()).into_owned();
        assert!(!text.chars().any(|letter| is_control(letter) || letter == '\u{202e}'), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).ok(), Some(value));
    }

    #[test]
    fn of_escape_sequences_only_colours_stay() {
        assert_eq!(
            coloured("\x1b[1;31merror\x1b[0m\n\x1b[2J\x1b]0;t\x07\r"),
            "\x1b[1;31merror\x1b[0m\n\\x1b[2J\\x1b]0;t\\x07\\r"
        );
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_a_terminal_acts_on_is_left(text in "\\PC*|.*") {
            proptest::prop_assert!(!line(&text).contains(is_control));
            proptest::prop_assert!(!lines(&text).contains(|letter| letter != '\n' && is_control(letter)));
        }
    }
}
