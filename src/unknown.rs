//! What only a run makes (keys, certificates, instances), as a plan has it: a placeholder that
//! travels through whatever is made from it, is shown, and is never used.
//!
//! A placeholder is recognised by a number that this process drew at random, never by its words: no
//! text of a user, of a file or of a host is taken for one, whatever it says. `state` refuses to
//! write one to a disk.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::fmt::Display;
use std::hash::BuildHasher as _;
use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

use crate::step_id::StepId;

/// What begins and ends each placeholder of this process, and is in no other text.
fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let draw = || RandomState::new().hash_one(());
        format!("{:016x}{:016x}", draw(), draw())
    })
}

fn placeholder(words: impl Display) -> String {
    format!("{0}({words}){0}", mark())
}

/// A value that is not known before this step has run.
#[must_use]
pub fn after(step: &StepId) -> String {
    placeholder(format_args!("known after {step}"))
}

/// The same where something is known of the value: two that differ in it are two values.
#[must_use]
pub fn after_with(step: &StepId, what: impl Display) -> String {
    placeholder(format_args!("known after {step}: {what}"))
}

/// A value that Terraform does not know before it applies, in Terraform's words.
#[must_use]
pub fn after_apply() -> String {
    placeholder("known after apply")
}

/// Whether a value is unknown, or has such a part.
#[must_use]
pub fn is_in(value: impl AsRef<[u8]>) -> bool {
    let mark = mark().as_bytes();
    value.as_ref().windows(mark.len()).any(|window| window == mark)
}

/// Whether a text is one placeholder and nothing else.
#[must_use]
pub fn is_whole(text: &str) -> bool {
    let words = text.strip_prefix(mark()).and_then(|rest| rest.strip_suffix(mark()));
    words.is_some_and(|words| !is_in(words))
}

/// The step after which the first unknown part of a text is known.
#[must_use]
pub fn step_of(text: &str) -> Option<StepId> {
    let (_, rest) = text.split_once(mark())?;
    let words = rest.strip_prefix("(known after ")?;
    words.split([')', ':']).next()?.parse().ok()
}

/// The digest of a text; of one with an unknown part a placeholder, another one for another text.
#[must_use]
pub fn digest(text: &str) -> String {
    let digest = hex::encode(Sha256::digest(shown(text).as_bytes()));
    step_of(text).map_or_else(|| digest.clone(), |step| after_with(&step, &digest[..12]))
}

/// The text as it is shown: `(known after STEP)` in place of each placeholder.
#[must_use]
pub fn shown(text: &str) -> Cow<'_, str> {
    if is_in(text) { Cow::Owned(text.replace(mark(), "")) } else { Cow::Borrowed(text) }
}

/// The same for the bytes of a file.
#[must_use]
pub fn shown_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    if is_in(bytes) {
        Cow::Owned(shown(&String::from_utf8_lossy(bytes)).into_owned().into_bytes())
    } else {
        Cow::Borrowed(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: StepId = StepId::of("provision", "keys");

    #[test]
    fn a_placeholder_names_its_step_through_other_text_and_its_words_alone_are_none() {
        let text = format!("a key {} of (known after x)", after(&KEYS));
        assert!(is_in(&text) && !is_whole(&text) && is_whole(&after(&KEYS)));
        assert_eq!(step_of(&text), Some(KEYS));
        assert_eq!(step_of(&after_with(&KEYS.on("h"), "a: b")), Some(KEYS.on("h")));
        assert_eq!(shown(&text), "a key (known after provision/keys) of (known after x)");
        for words in ["(known after provision/keys)", "(made by provision: key)", "", &shown(&text)] {
            assert!(!is_in(words) && !is_whole(words) && step_of(words).is_none(), "{words}");
            assert_eq!(shown(words), words);
            assert_eq!(digest(words), hex::encode(Sha256::digest(words)));
        }
    }

    #[test]
    fn the_digest_of_something_unknown_is_unknown_and_tells_two_apart() {
        let [one, two] = ["a", "b"].map(|name| digest(&format!("{name}: {}", after(&KEYS))));
        assert!(is_whole(&one) && one != two);
        assert_eq!(step_of(&one), Some(KEYS));
    }
}
