//! Names that files outside the loaded tree define or set.
//!
//! A tree such as Linux has files for each architecture and one run reads those of one: a name that
//! only the others define is no mistake. Reads no file: the caller hands in texts.

use std::collections::HashSet;

use crate::source::FastHash;

/// What other files of the same project define and set.
#[derive(Clone, Debug, Default)]
pub struct Elsewhere {
    defined: HashSet<Box<str>, FastHash>,
    set: HashSet<Box<str>, FastHash>,
}

impl Elsewhere {
    /// Takes the names of one more Kconfig file. Looks at first words only, so that a file that
    /// does not parse counts too.
    pub fn add(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let names = match words.next() {
                Some("config" | "menuconfig") => &mut self.defined,
                Some("select" | "imply") => &mut self.set,
                _ => continue,
            };
            if let Some(name) = words.next()
                && !names.contains(name)
            {
                names.insert(name.into());
            }
        }
    }

    /// Whether some file defines the name.
    #[must_use]
    pub fn defines(&self, name: &str) -> bool {
        self.defined.contains(name)
    }

    /// Whether some file selects or implies the name.
    #[must_use]
    pub fn sets(&self, name: &str) -> bool {
        self.set.contains(name)
    }
}
