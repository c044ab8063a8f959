//! The one table of rules: what Linux changed in which version, which version each fork is based
//! on, and where a fork goes its own way.
//!
//! Data only. A new difference between two programs is a new [`Rule`] here and one question for it
//! where it matters.

use super::{Family, Version};

/// Some rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules(u128);

impl Rules {
    pub(super) const fn bits(self) -> u128 {
        self.0
    }

    const fn of(rules: &[Rule]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < rules.len() {
            bits |= rules[at].bit();
            at += 1;
        }
        Self(bits)
    }
}

/// When Linux has a rule: from the first version on, up to but without the second.
type Span = (Version, Version);

const fn v(major: u16, minor: u16) -> Version {
    Version::new(major, minor)
}

const fn since(major: u16, minor: u16) -> Span {
    (v(major, minor), v(u16::MAX, u16::MAX))
}

const fn until(major: u16, minor: u16) -> Span {
    (v(0, 0), v(major, minor))
}

/// Linux never had it.
const NEVER: Span = (v(0, 0), v(0, 0));

macro_rules! rules {
    ($($(#[doc = $summary:literal])+ $name:ident = $linux:expr;)*) => {
        /// Something that not all programs do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[doc = $summary])+ $name),*
        }

        impl Rule {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// As in the table of `turnup kconfig dialect`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name)),*
                }
            }

            /// What it says.
            #[must_use]
            pub fn summary(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($summary),+).trim()),*
                }
            }

            /// The versions of Linux that have it, the second one no longer.
            #[must_use]
            pub const fn linux(self) -> (Version, Version) {
                match self {
                    $(Self::$name => $linux),*
                }
            }
        }
    };
}

rules! {
    /// Choices have a mode: they may be tristate or optional, and the last member that was said to
    /// be `y` counts. Later they are groups of bools, and all answers about their members count,
    /// the last one most.
    ChoiceModes = until(6, 11);
    /// `KCONFIG_WARN_CHANGED_INPUT` is looked at.
    ChangedInputWarning = since(7, 0);
    /// An int or hex without any default is 0; it was empty before.
    NumbersStartAtZero = since(6, 8);
    /// Reading `.config`, values are whole lines, and a value out of its range is kept; before, it
    /// was as if not set.
    WholeLines = since(6, 8);
    /// A help without a text is an error, no warning.
    BlankHelpRefused = since(6, 8);
    /// The table of symbols has 16,384 buckets in place of 9,973; where all symbols are gone
    /// through, it gives the order.
    LargeTable = since(6, 9);
    /// Naming a file in two `source` lines is an error, whether it would recurse or not.
    RepeatedSourceRefused = since(7, 0);
    /// `.config` has a line `# end of MENU` behind each menu.
    EndOfMenu = since(5, 2);
    /// So behind menus in which nothing is, too.
    EndOfEmptyMenu = since(5, 18);
    /// A `.config` that would not change is not written.
    EqualConfigKept = since(5, 3);
    /// An `imply` obeys what its target depends on, and lets it be `m` where the implying symbol is
    /// `y`.
    ImplyObeysDependencies = since(5, 7);
    /// A number outside its range becomes the limit as it is written in the Kconfig file; before,
    /// the limit as `%lld` or `0x%llx`.
    LimitsAsWritten = since(6, 1);
    /// `$(name)` and `name = value`: the macro language.
    Macros = since(4, 18);
    /// `$NAME` stands for a symbol or variable in the paths of `source` and in `mainmenu`.
    DollarNames = until(4, 18);
    /// `$NAME` and `${NAME}` stand for a variable of the environment in every text in quotes,
    /// behind a backslash and where a macro gives them too; one that is not set stays as it is.
    DollarTexts = NEVER;
    /// `$(name,argument)` of a name that is no function is the variable of the environment, as is
    /// `$(name)`.
    VariablesAsFunctions = NEVER;
    /// `$(shell)` gives up to 4,095 bytes; it was 255.
    LongShellOutput = since(6, 1);
    /// Texts of one word may stand without quotes: `source a/Kconfig`.
    BareTexts = until(5, 0);
    /// The word `boolean`.
    Boolean = until(3, 15);
    /// The word `---help---`.
    OldHelp = until(5, 11);
    /// `option modules`, `option defconfig_list` and `option allnoconfig_y`.
    Options = until(5, 13);
    /// `option env`.
    EnvOption = until(4, 18);
    /// `modules` as an attribute of its own.
    ModulesWord = since(5, 13);
    /// The word `transitional`.
    Transitional = since(6, 18);
    /// `depends on A if B`.
    ConditionalDepends = since(7, 0);
    /// The word `imply`.
    Imply = since(4, 10);
    /// Choices enclose no `menu` and no `choice`.
    MenusInChoicesRefused = since(0, 0);
    /// Choices enclose no `menuconfig`.
    MenuconfigsInChoicesRefused = since(5, 0);
    /// Choices enclose no `source`.
    SourcesInChoicesRefused = since(5, 0);
    /// Characters that mean nothing are complained about, the carriage return and the byte order
    /// mark among them.
    JunkWarning = since(4, 17);
    /// A file whose last line has no end is complained about.
    OpenEndWarning = since(5, 0);
    /// A text without its closing quote ends with the line; it is complained about, and taken.
    OpenTexts = since(0, 0);
    /// `randconfig` goes round again until no choice changes; before, until the last choice does
    /// not.
    RandomUntilStable = since(5, 9);
    /// `randconfig` says its seed on standard output; before, on standard error.
    SeedOnOutput = since(5, 9);
    /// All modes make `auto.conf` and its like where they are missing; before, only `syncconfig`
    /// made them.
    AutoConfMade = since(5, 0);
    /// A second help text of one entry is complained about.
    SecondHelpWarning = since(5, 1);
    /// Files that are touched when a symbol changes have lower-case names, `_` is `/`, and they end
    /// in `.h`.
    LowerCaseFiles = until(5, 13);
    /// Texts stand in quotes in `auto.conf`; the head of `autoconf.h` has empty lines, and
    /// `auto.conf.cmd` no backslash behind its last file.
    OldBuildFiles = until(5, 17);
    /// There is an `include/config/tristate.conf`.
    TristateConf = until(5, 6);
    /// `rustc_cfg` is written beside `auto.conf`.
    RustcCfg = since(6, 1);
    /// `KCONFIG_WARN_UNKNOWN_SYMBOLS` and `KCONFIG_WERROR` are looked at.
    UnknownSymbolsWarning = since(6, 1);
    /// A select of what has unmet dependencies is complained about.
    UnmetWarning = since(0, 0);

    // What only forks have.

    /// Texts are written and read without escapes: `\` and `"` in them stand for themselves.
    VerbatimStrings = NEVER;
    /// `.config` has a line for every symbol, those that cannot be seen included.
    AllSymbolsWritten = NEVER;
    /// A bool or tristate with a default that counts is written, also when it is `n` and cannot be
    /// seen.
    DefaultsWritten = NEVER;
    /// A select gives way to dependencies that are `n`.
    SelectObeysDependencies = NEVER;
    /// `source` takes patterns.
    Globs = NEVER;
    /// A pattern that matches nothing is no error.
    EmptyGlobs = NEVER;
    /// A `source` of a file that is missing is no error.
    MissingSources = NEVER;
    /// A `source` that is not found from the top is looked for beside the file that names it.
    SourcesBesideFile = NEVER;
    /// Reading `.config`, a second line for a symbol is a notice, no warning.
    OverridesNoticed = NEVER;
    /// Recursive dependencies are complained about, and the tree is used all the same.
    RecursionAllowed = NEVER;
    /// `allyesconfig` and its like start from `.config`.
    AllModesReadConfig = NEVER;
    /// `.config` begins with a head of `BusyBox`' own.
    BusyBoxHead = NEVER;
    /// `rsource`, `osource`, `orsource`, `gsource` and `grsource`.
    RelativeSource = NEVER;
    /// `def_int`, `def_hex` and `def_string`.
    DefinedTypes = NEVER;
    /// Menus may have a help text.
    MenuHelp = NEVER;
    /// The carriage return at the end of a line is a blank.
    AnyLineEnds = NEVER;
    /// Reading `.config`, blanks at the end of a line do not count.
    BlanksCut = NEVER;
    /// Reading `.config`, a `#` behind a blank begins a comment, but in texts.
    LineComments = NEVER;
    /// Reading `.config`, lines between the comments `Deprecated options for backward
    /// compatibility` and `End of deprecated options` do not count.
    OldNamesSkipped = NEVER;
    /// A member inside of `if` gives its choice a type, too.
    ChoiceTypeFromIfs = NEVER;
    /// A definition that depends on nothing frees the others of their dependencies.
    FreeDefinitions = NEVER;
    /// `savedefconfig` counts neither defaults nor selects of members of choices.
    MembersWithoutDefaults = NEVER;
    /// Reading `.config`, one member that is `y` decides its choice; elsewhere a choice with a mode
    /// is new while the file says nothing about one of its members.
    OneMemberDecides = NEVER;
}

impl Rule {
    pub(super) const fn bit(self) -> u128 {
        1 << self as u32
    }

    /// What [`super::Dialect::EXTENDED`] has besides Linux's newest rules.
    pub(super) const EXTENSIONS: Rules = Rules::of(&[
        Self::Boolean,
        Self::OldHelp,
        Self::Options,
        Self::EnvOption,
        Self::RelativeSource,
        Self::DefinedTypes,
        Self::Globs,
        Self::AnyLineEnds,
    ]);

    /// What it has not of them.
    pub(super) const REFUSED: Rules = Rules::of(&[
        Self::RepeatedSourceRefused,
        Self::MenusInChoicesRefused,
        Self::MenuconfigsInChoicesRefused,
        Self::SourcesInChoicesRefused,
        Self::OpenTexts,
        Self::OpenEndWarning,
        Self::SecondHelpWarning,
    ]);
}

/// Which version of Linux a fork took its Kconfig from, by the fork's own versions: from each on,
/// up to the next.
const BASES: &[(Family, Version, Version)] = &[
    // README.buildroot: "4.17-rc2".
    (Family::Buildroot, v(0, 0), v(4, 17)),
    // zconf.y and kconf_id.c are those of 4.20 with `option`.
    (Family::UBoot, v(0, 0), v(4, 20)),
    // A Kconfig of 2007: Linux 2.6.20.
    (Family::BusyBox, v(0, 0), v(2, 6)),
    // The log of scripts/kconfig: "update to Linux …".
    (Family::Barebox, v(0, 0), v(3, 18)),
    (Family::Barebox, v(2019, 1), v(4, 20)),
    (Family::Barebox, v(2019, 7), v(5, 2)),
    (Family::Barebox, v(2019, 9), v(5, 3)),
    (Family::Barebox, v(2020, 4), v(5, 5)),
    (Family::Barebox, v(2020, 5), v(5, 7)),
    (Family::Barebox, v(2020, 9), v(5, 9)),
    (Family::Barebox, v(2021, 6), v(5, 13)),
    // scripts/config/README: "taken from the Linux 5.14 Kernel".
    (Family::OpenWrt, v(0, 0), v(5, 14)),
    // Checked by its sources: numbers start at 0 (6.8), the table is still the small one (6.9).
    (Family::Coreboot, v(0, 0), v(5, 13)),
    (Family::Coreboot, v(24, 5), v(6, 8)),
    // The library follows the C tools of its time.
    (Family::Kconfiglib, v(0, 0), v(5, 6)),
    (Family::EspIdf, v(0, 0), v(5, 6)),
];

/// Where a fork is not as the Linux that it is based on.
const EXCEPTIONS: &[(Family, Rule, bool)] = &[
    (Family::UBoot, Rule::VerbatimStrings, true),
    (Family::BusyBox, Rule::AllSymbolsWritten, true),
    (Family::BusyBox, Rule::BusyBoxHead, true),
    (Family::BusyBox, Rule::UnmetWarning, false),
    (Family::OpenWrt, Rule::DefaultsWritten, true),
    (Family::OpenWrt, Rule::SelectObeysDependencies, true),
    (Family::OpenWrt, Rule::UnmetWarning, false),
    (Family::OpenWrt, Rule::Globs, true),
    (Family::OpenWrt, Rule::EmptyGlobs, true),
    (Family::OpenWrt, Rule::SourcesBesideFile, true),
    (Family::OpenWrt, Rule::RecursionAllowed, true),
    (Family::OpenWrt, Rule::AllModesReadConfig, true),
    (Family::OpenWrt, Rule::SecondHelpWarning, false),
    (Family::Coreboot, Rule::Globs, true),
    (Family::Coreboot, Rule::EmptyGlobs, true),
    (Family::Coreboot, Rule::MissingSources, true),
    (Family::Coreboot, Rule::SourcesInChoicesRefused, false),
    (Family::Coreboot, Rule::OverridesNoticed, true),
    (Family::Kconfiglib, Rule::DollarTexts, true),
    (Family::Kconfiglib, Rule::VariablesAsFunctions, true),
    (Family::Kconfiglib, Rule::Globs, true),
    (Family::Kconfiglib, Rule::RelativeSource, true),
    (Family::Kconfiglib, Rule::DefinedTypes, true),
    (Family::Kconfiglib, Rule::Boolean, true),
    (Family::Kconfiglib, Rule::EnvOption, true),
    (Family::Kconfiglib, Rule::ModulesWord, true),
    (Family::Kconfiglib, Rule::UnmetWarning, false),
    (Family::Kconfiglib, Rule::AnyLineEnds, true),
    (Family::Kconfiglib, Rule::BlanksCut, true),
    (Family::Kconfiglib, Rule::ChoiceTypeFromIfs, true),
    (Family::Kconfiglib, Rule::FreeDefinitions, true),
    (Family::Kconfiglib, Rule::MembersWithoutDefaults, true),
    (Family::Kconfiglib, Rule::OneMemberDecides, true),
    (Family::Kconfiglib, Rule::OpenTexts, false),
    (Family::Kconfiglib, Rule::JunkWarning, false),
    (Family::Kconfiglib, Rule::OpenEndWarning, false),
    (Family::Kconfiglib, Rule::SecondHelpWarning, false),
    (Family::Kconfiglib, Rule::MenusInChoicesRefused, false),
    (Family::Kconfiglib, Rule::MenuconfigsInChoicesRefused, false),
    (Family::Kconfiglib, Rule::SourcesInChoicesRefused, false),
    (Family::EspIdf, Rule::DollarTexts, true),
    (Family::EspIdf, Rule::VariablesAsFunctions, true),
    (Family::EspIdf, Rule::Globs, true),
    (Family::EspIdf, Rule::RelativeSource, true),
    (Family::EspIdf, Rule::EnvOption, true),
    (Family::EspIdf, Rule::ModulesWord, true),
    (Family::EspIdf, Rule::MenuHelp, true),
    (Family::EspIdf, Rule::UnmetWarning, false),
    (Family::EspIdf, Rule::AnyLineEnds, true),
    (Family::EspIdf, Rule::BlanksCut, true),
    (Family::EspIdf, Rule::LineComments, true),
    (Family::EspIdf, Rule::OldNamesSkipped, true),
    (Family::EspIdf, Rule::ChoiceTypeFromIfs, true),
    (Family::EspIdf, Rule::FreeDefinitions, true),
    (Family::EspIdf, Rule::MembersWithoutDefaults, true),
    (Family::EspIdf, Rule::OneMemberDecides, true),
    (Family::EspIdf, Rule::OpenTexts, false),
    (Family::EspIdf, Rule::JunkWarning, false),
    (Family::EspIdf, Rule::OpenEndWarning, false),
    (Family::EspIdf, Rule::SecondHelpWarning, false),
    (Family::EspIdf, Rule::MenusInChoicesRefused, false),
    (Family::EspIdf, Rule::MenuconfigsInChoicesRefused, false),
    (Family::EspIdf, Rule::SourcesInChoicesRefused, false),
];

/// The version of Linux that a program is based on.
pub(super) const fn base(family: Family, version: Version) -> Version {
    if family as u8 == Family::Linux as u8 {
        return version;
    }
    let (mut base, mut at) = (version, 0);
    while at < BASES.len() {
        if BASES[at].0 as u8 == family as u8 && !is_before(version, BASES[at].1) {
            base = BASES[at].2;
        }
        at += 1;
    }
    base
}

/// The rules of a program in a version.
pub(super) const fn rules(family: Family, version: Version) -> u128 {
    let linux = base(family, version);
    let (mut bits, mut at) = (0, 0);
    while at < Rule::ALL.len() {
        let rule = Rule::ALL[at];
        let (first, last) = rule.linux();
        let mut has = !is_before(linux, first) && is_before(linux, last);
        let mut exception = 0;
        while exception < EXCEPTIONS.len() {
            let (of, what, instead) = EXCEPTIONS[exception];
            if of as u8 == family as u8 && what as u8 == rule as u8 {
                has = instead;
            }
            exception += 1;
        }
        if has {
            bits |= rule.bit();
        }
        at += 1;
    }
    bits
}

const fn is_before(a: Version, b: Version) -> bool {
    a.major < b.major || a.major == b.major && a.minor < b.minor
}

/// The exceptions of one family, for people.
pub fn exceptions(family: Family) -> impl Iterator<Item = (Rule, bool)> {
    EXCEPTIONS.iter().filter(move |(of, ..)| *of == family).map(|(_, rule, has)| (*rule, *has))
}

/// The versions of Linux that a family was based on, each with the first of its own versions that
/// was.
pub fn bases(family: Family) -> impl Iterator<Item = (Version, Version)> {
    BASES.iter().filter(move |(of, ..)| *of == family).map(|(_, own, linux)| (*own, *linux))
}

#[cfg(test)]
mod tests {
    use super::{BASES, EXCEPTIONS, Rule};
    use crate::dialect::{Dialect, Family};

    #[test]
    fn every_exception_changes_something_and_stands_once() {
        for (at, (family, rule, has)) in EXCEPTIONS.iter().enumerate() {
            assert!(!EXCEPTIONS[..at].iter().any(|(of, what, _)| of == family && what == rule), "{family:?} {rule:?}");
            let bases = BASES.iter().filter(|(of, ..)| of == family);
            let changes = bases.map(|(_, _, linux)| Dialect::linux(linux.major, linux.minor).has(*rule) != *has);
            assert!(changes.into_iter().any(|changes| changes), "{family:?} has {rule:?} as its base has it");
        }
    }

    #[test]
    fn every_fork_has_a_base_and_every_rule_a_bit() {
        for family in Family::ALL.into_iter().filter(|family| *family != Family::Linux) {
            assert!(BASES.iter().any(|(of, ..)| *of == family), "{family:?}");
        }
        assert!(Rule::ALL.len() <= 128);
        assert!(Rule::ALL.iter().all(|rule| !rule.summary().is_empty()));
    }
}
