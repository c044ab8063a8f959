//! Flags of a component as data, and the one way they become a command line: sorted, one value a flag, the same bytes every time.

use std::collections::BTreeMap;

use super::control_plane::Component;

/// The flags of one component, by name without dashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(BTreeMap<String, String>);

impl Flags {
    /// No flags.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Sets a flag.
    pub(super) fn set(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Sets a flag when the condition holds.
    pub(super) fn set_if(self, condition: bool, name: &str, value: impl Into<String>) -> Self {
        if condition { self.set(name, value) } else { self }
    }

    /// Sets several.
    pub(super) fn set_all<const N: usize>(mut self, flags: [(&str, &str); N]) -> Self {
        for (name, value) in flags {
            self = self.set(name, value);
        }
        self
    }

    /// Sets several to files in the directory of a component.
    pub(super) fn set_files<const N: usize>(mut self, component: &Component, files: [(&str, &str); N]) -> Self {
        for (name, file) in files {
            self = self.set(name, component.file(file));
        }
        self
    }

    /// `--name=value`, sorted by name.
    pub(super) fn render(&self) -> Vec<String> {
        self.0.iter().map(|(name, value)| format!("--{name}={value}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Flags;

    #[test]
    fn flags_are_sorted_and_the_last_value_wins() {
        let flags = Flags::new().set("b", "1").set("a", "2").set_if(false, "c", "3").set("b", "4");
        assert_eq!(flags.render(), ["--a=2", "--b=4"]);
    }
}
