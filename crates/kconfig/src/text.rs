//! Bytes as text: a file that is not UTF-8 is held in strings and comes back byte for byte.
//!
//! A byte that is part of no UTF-8 character becomes one character of a private range,
//! [`from_bytes`] and [`to_bytes`] being inverse to each other. Knows nothing of Kconfig.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The private character of a byte is this plus the byte: U+10FE80 to U+10FEFF, which no script
/// uses.
const BASE: u32 = 0x0010_FE00;
/// How the UTF-8 form of all of them starts; the third byte is one of [`THIRD`].
const START: [u8; 2] = [0xf4, 0x8f];
const THIRD: [u8; 2] = [0xba, 0xbb];
/// The length of that form in bytes.
const LENGTH: usize = 4;

/// The bytes as text.
#[must_use]
pub fn from_bytes(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) if !is_marked(&text) => text,
        Ok(text) => encode(text.as_bytes()),
        Err(error) => encode(error.as_bytes()),
    }
}

/// The same for bytes that stay where they are.
#[must_use]
pub fn from_slice(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) if !is_marked(text) => Cow::Borrowed(text),
        _ => Cow::Owned(encode(bytes)),
    }
}

/// The bytes that a text of [`from_bytes`] was made of.
#[must_use]
pub fn to_bytes(text: &str) -> Cow<'_, [u8]> {
    if !is_marked(text) {
        return Cow::Borrowed(text.as_bytes());
    }
    let (mut bytes, mut buffer) = (Vec::with_capacity(text.len()), [0; LENGTH]);
    for c in text.chars() {
        match byte_of(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// The text for the eyes: `\xE9` in the place of a byte that is part of no character. It is as long
/// as `text`, so that places in one are places in the other.
#[must_use]
pub fn show(text: &str) -> Cow<'_, str> {
    if !is_marked(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match byte_of(c) {
            // Writing to a String cannot fail.
            Some(byte) => write!(shown, "\\x{byte:02X}").unwrap_or_default(),
            None => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Whether a text holds bytes that are part of no character.
#[must_use]
pub fn is_marked(text: &str) -> bool {
    memchr::memchr_iter(START[0], text.as_bytes()).any(|at| is_mark(&text.as_bytes()[at..]))
}

fn is_mark(bytes: &[u8]) -> bool {
    matches!(bytes, [first, second, third, ..] if [*first, *second] == START && THIRD.contains(third))
}

/// The character that stands for a byte of 0x80 and above.
pub(crate) fn char_of(byte: u8) -> char {
    if byte.is_ascii() { char::from(byte) } else { char::from_u32(BASE + u32::from(byte)).unwrap_or('\u{fffd}') }
}

fn byte_of(c: char) -> Option<u8> {
    u32::from(c).checked_sub(BASE).and_then(|byte| u8::try_from(byte).ok()).filter(|byte| !byte.is_ascii())
}

/// A character of the private range that is really there is taken byte by byte, so that every text
/// has one meaning.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + LENGTH);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if byte_of(c).is_some() {
                text.extend(c.encode_utf8(&mut [0; LENGTH]).bytes().map(char_of));
            } else {
                text.push(c);
            }
        }
        text.extend(chunk.invalid().iter().copied().map(char_of));
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{from_bytes, from_slice, is_marked, show, to_bytes};

    #[test]
    fn bytes_that_are_no_characters_are_shown_by_their_numbers() {
        let text = from_bytes(b"caf\xe9 \xff".to_vec());
        assert_eq!(show(&text), "caf\\xE9 \\xFF");
        assert_eq!(show(&text).len(), text.len());
        assert_eq!(show("caf\u{e9}"), "caf\u{e9}");
    }

    proptest! {
        #[test]
        fn every_byte_comes_back(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let held = from_bytes(bytes.clone());
            prop_assert_eq!(&*to_bytes(&held), &*bytes);
            prop_assert_eq!(from_slice(&bytes), held);
        }

        #[test]
        fn every_text_comes_back_and_the_private_range_means_bytes(text in "[a-z\u{10fe70}-\u{10ff10}\u{f4}]{0,16}") {
            let held = from_bytes(text.clone().into_bytes());
            prop_assert_eq!(&*to_bytes(&held), text.as_bytes());
            prop_assert_eq!(is_marked(&held), text.chars().any(|c| ('\u{10fe80}'..='\u{10feff}').contains(&c)));
        }
    }
}
