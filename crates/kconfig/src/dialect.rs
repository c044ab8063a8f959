//! Whose rules count where the C tools changed them on purpose.
//!
//! One number decides: the version of Linux whose `scripts/kconfig` is followed. Nothing else in this crate asks for a version.

/// The version of Linux whose `scripts/kconfig` is followed.
///
/// Everything that any version accepts is accepted in every dialect unless a later one made it an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dialect {
    major: u16,
    minor: u16,
    /// Whether what other implementations allow is allowed as well where Linux made it an error.
    extended: bool,
}

impl Dialect {
    /// The newest rules that this crate knows: those of Linux 7.2.
    pub const LATEST: Self = Self::linux(7, 2);

    /// The newest rules, and what trees outside of Linux rely on: a file may be sourced more than once.
    pub const EXTENDED: Self = Self { extended: true, ..Self::LATEST };

    /// The rules of one version of Linux.
    #[must_use]
    pub const fn linux(major: u16, minor: u16) -> Self {
        Self { major, minor, extended: false }
    }

    /// The rules of the version in `text`, which starts like `6.1.176`; what the kernel's Makefile exports as `KERNELVERSION`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit());
        let (major, minor) = (numbers.next()?, numbers.next()?);
        Some(Self::linux(major.parse().ok()?, minor.parse().ok()?))
    }

    /// Choices have a mode of their own: they may be tristate or optional, and the last member that was said to be `y` counts.
    /// Since 6.11 they are only groups of bools, and all answers about their members count, the last one most.
    #[must_use]
    pub fn choices_have_modes(self) -> bool {
        self < Self::linux(6, 11)
    }

    /// `KCONFIG_WARN_CHANGED_INPUT` is looked at.
    #[must_use]
    pub fn warns_of_changed_input(self) -> bool {
        self >= Self::linux(7, 0)
    }

    /// An int or hex without any default is 0; it was empty before.
    #[must_use]
    pub fn numbers_start_at_zero(self) -> bool {
        self >= Self::linux(6, 8)
    }

    /// Reading `.config`, values are whole lines, and a value out of its range is kept; before, it was as if not set.
    #[must_use]
    pub fn reads_whole_lines(self) -> bool {
        self >= Self::linux(6, 8)
    }

    /// How many buckets the C tools' table of symbols has; where they go through all symbols, it gives the order.
    #[must_use]
    pub(crate) fn symbol_buckets(self) -> u32 {
        if self < Self::linux(6, 9) { 9973 } else { 1 << 14 }
    }

    /// Naming a file in two `source` lines is an error, whether it would recurse or not.
    #[must_use]
    pub fn refuses_repeated_source(self) -> bool {
        self >= Self::linux(7, 0) && !self.extended
    }
}

impl Default for Dialect {
    fn default() -> Self {
        Self::EXTENDED
    }
}

#[cfg(test)]
mod tests {
    use super::Dialect;

    #[test]
    fn versions_are_read_as_kbuild_writes_them() {
        assert_eq!(Dialect::parse("6.1.176"), Some(Dialect::linux(6, 1)));
        assert_eq!(Dialect::parse("7.2-rc1"), Some(Dialect::linux(7, 2)));
        assert_eq!(Dialect::parse("seven"), None);
        assert!(Dialect::linux(6, 1).choices_have_modes() && !Dialect::linux(6, 12).choices_have_modes());
    }
}
