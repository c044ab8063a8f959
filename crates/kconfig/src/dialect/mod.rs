//! Whose rules count: which program's language and output a tree was written for, and in which
//! version.
//!
//! Linux changed its Kconfig over the years, and other projects forked it at some version. A
//! [`Dialect`] is one of those programs in one version; [`Rule`]s are all that differs between
//! them. [`table`] says which dialect has which rule, and nothing else in this crate asks for a
//! name or a version.

mod detect;
pub mod table;

use std::fmt;

pub use detect::{Detected, Evidence, detect};
pub use table::Rule;

/// A project with a Kconfig of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Linux's `scripts/kconfig`, and trees that follow it.
    Linux,
    /// U-Boot.
    UBoot,
    /// Buildroot.
    Buildroot,
    /// `BusyBox`.
    BusyBox,
    /// barebox.
    Barebox,
    /// `OpenWrt`.
    OpenWrt,
    /// coreboot.
    Coreboot,
    /// The Python library kconfiglib: Zephyr, `NuttX`, and its other users.
    Kconfiglib,
    /// ESP-IDF's `esp-idf-kconfig`.
    EspIdf,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Linux,
        Self::UBoot,
        Self::Buildroot,
        Self::BusyBox,
        Self::Barebox,
        Self::OpenWrt,
        Self::Coreboot,
        Self::Kconfiglib,
        Self::EspIdf,
    ];

    /// As on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::UBoot => "u-boot",
            Self::Buildroot => "buildroot",
            Self::BusyBox => "busybox",
            Self::Barebox => "barebox",
            Self::OpenWrt => "openwrt",
            Self::Coreboot => "coreboot",
            Self::Kconfiglib => "kconfiglib",
            Self::EspIdf => "esp-idf",
        }
    }

    /// The family of this name; `zephyr` and `nuttx` are kconfiglib's.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "zephyr" | "nuttx" => Some(Self::Kconfiglib),
            _ => Self::ALL.into_iter().find(|family| family.name() == name),
        }
    }
}

/// The first two numbers of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u16,
}

impl Version {
    /// Newer than all others.
    pub const NEWEST: Self = Self { major: u16::MAX, minor: u16::MAX };

    /// A version by its numbers.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// The first two numbers of a text that starts like `6.1.176`, `2026.10-rc2` or `7.2`; one
    /// number alone is not enough.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit());
        let (major, minor) = (numbers.next()?, numbers.next()?);
        Some(Self::new(major.parse().ok()?, minor.parse().ok()?))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NEWEST { f.write_str("newest") } else { write!(f, "{}.{}", self.major, self.minor) }
    }
}

/// The rules of one program in one version.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dialect {
    family: Family,
    version: Version,
    /// One bit a [`Rule`].
    rules: u128,
}

impl Dialect {
    /// The newest rules of Linux that this crate knows: those of 7.2.
    pub const LATEST: Self = Self::linux(7, 2);

    /// The newest rules of Linux, and the words and liberties of kconfiglib on top: for trees that
    /// no C tool has to read.
    pub const EXTENDED: Self = {
        let rules = table::rules(Family::Linux, Version::new(7, 2)) & !Rule::REFUSED.bits() | Rule::EXTENSIONS.bits();
        Self { family: Family::Linux, version: Version::new(7, 2), rules }
    };

    /// The same with texts of one word that stand without quotes: what any file of any dialect may
    /// look like.
    pub(crate) const ANY: Self = Self { rules: Self::EXTENDED.rules | Rule::BareTexts.bit(), ..Self::EXTENDED };

    /// The rules of one version of Linux.
    #[must_use]
    pub const fn linux(major: u16, minor: u16) -> Self {
        Self::new(Family::Linux, Version::new(major, minor))
    }

    /// The rules of one program in one version of its own.
    #[must_use]
    pub const fn new(family: Family, version: Version) -> Self {
        Self { family, version, rules: table::rules(family, version) }
    }

    /// The dialect that a text names: `linux-6.1` or `6.1` alone, `u-boot`, `barebox-2021.07`, and
    /// so on; without a version it is the newest.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(version) = Version::parse(text) {
            return Some(Self::new(Family::Linux, version));
        }
        if let Some(family) = Family::parse(text) {
            return Some(Self::newest(family));
        }
        let (family, version) = text.rsplit_once('-')?;
        Some(Self::new(Family::parse(family)?, Version::parse(version)?))
    }

    /// The newest rules of a program.
    #[must_use]
    pub const fn newest(family: Family) -> Self {
        match family {
            Family::Linux => Self::LATEST,
            family => Self::new(family, Version::NEWEST),
        }
    }

    /// Whose rules these are.
    #[must_use]
    pub const fn family(self) -> Family {
        self.family
    }

    /// The version whose rules these are, of the family's own numbers.
    #[must_use]
    pub const fn version(self) -> Version {
        self.version
    }

    /// The version of Linux that the program is based on.
    #[must_use]
    pub const fn base(self) -> Version {
        table::base(self.family, self.version)
    }

    /// Whether a rule is in force.
    #[must_use]
    #[inline]
    pub const fn has(self, rule: Rule) -> bool {
        self.rules & rule.bit() != 0
    }
}

impl Default for Dialect {
    fn default() -> Self {
        Self::EXTENDED
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.family.name())?;
        if self.version != Version::NEWEST {
            write!(f, "-{}", self.version)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::{Dialect, Family, Rule, Version};

    #[test]
    fn names_and_versions_are_read() {
        assert_eq!(Dialect::parse("6.1.176"), Some(Dialect::linux(6, 1)));
        assert_eq!(Dialect::parse("7.2-rc1"), Some(Dialect::linux(7, 2)));
        assert_eq!(Dialect::parse("linux-6.1"), Some(Dialect::linux(6, 1)));
        assert_eq!(Dialect::parse("linux"), Some(Dialect::LATEST));
        assert_eq!(Dialect::parse("u-boot"), Some(Dialect::newest(Family::UBoot)));
        assert_eq!(Dialect::parse("barebox-2021.07.0"), Some(Dialect::new(Family::Barebox, Version::new(2021, 7))));
        assert_eq!(Dialect::parse("zephyr").map(Dialect::family), Some(Family::Kconfiglib));
        for wrong in ["seven", "linux-", "-6.1", "u-boot-x", ""] {
            assert_eq!(Dialect::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_dialect_reads_its_own_name() {
        for family in Family::ALL {
            let newest = Dialect::newest(family);
            assert_eq!(Dialect::parse(&newest.to_string()), Some(newest));
        }
    }

    #[test]
    fn rules_follow_versions() {
        let has = |text: &str, rule| Dialect::parse(text).is_some_and(|dialect| dialect.has(rule));
        assert!(has("6.1", Rule::ChoiceModes) && !has("6.12", Rule::ChoiceModes));
        assert!(has("u-boot", Rule::VerbatimStrings) && !has("4.20", Rule::VerbatimStrings));
        assert!(has("barebox-2021.07", Rule::EndOfMenu) && !has("barebox-2018.12", Rule::EndOfMenu));
        assert!(
            !Dialect::EXTENDED.has(Rule::RepeatedSourceRefused) && Dialect::LATEST.has(Rule::RepeatedSourceRefused)
        );
        assert!(Dialect::EXTENDED.has(Rule::RelativeSource) && !Dialect::LATEST.has(Rule::RelativeSource));
    }
}
