//! Every kind of finding with its id, and which of them a caller wants to hear of.
//!
//! Ids are for ever: a lint that goes leaves a gap. Decides nothing about trees.

use crate::suggest::suggest;

/// What becomes of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Setting {
    /// It is not reported.
    Allow,
    /// It is a warning.
    Warn,
    /// It is an error.
    Deny,
}

impl Setting {
    /// As on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Warn => "warn",
            Self::Deny => "deny",
        }
    }
}

/// One kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lint {
    /// Stable for ever.
    pub id: &'static str,
    /// What becomes of it when the caller says nothing.
    pub default: Setting,
    /// Whether the tree cannot be used at all, so that no setting can allow it.
    pub fatal: bool,
    /// What it finds, in one line.
    pub summary: &'static str,
}

const fn fatal(id: &'static str, summary: &'static str) -> Lint {
    Lint { id, default: Setting::Deny, fatal: true, summary }
}

const fn warn(id: &'static str, summary: &'static str) -> Lint {
    Lint { id, default: Setting::Warn, fatal: false, summary }
}

const fn allow(id: &'static str, summary: &'static str) -> Lint {
    Lint { id, default: Setting::Allow, fatal: false, summary }
}

/// All kinds of findings, by id: below K100 those of loading a tree, from there on those of
/// [`super::check`].
pub const LINTS: &[Lint] = &[
    fatal("K001", "a line begins with no word of the language"),
    fatal("K002", "a line is incomplete, or something else was expected in it"),
    fatal("K003", "a quoted text is not closed"),
    fatal("K004", "an end without its beginning"),
    fatal("K005", "a block is not closed"),
    fatal("K006", "an attribute stands where it is not allowed"),
    fatal("K007", "a file cannot be read"),
    fatal("K008", "a file sources itself"),
    fatal("K010", "something nests too deep, or the tree is too large"),
    fatal("K011", "a macro fails"),
    warn("K012", "a structured comment belongs to no entry"),
    warn("K013", "a help text is empty"),
    fatal("K014", "the tree itself refuses to go on: error-if"),
    warn("K015", "a character that means nothing in Kconfig"),
    fatal("K020", "symbols depend on each other in a circle"),
    warn("K021", "a symbol is given a second type"),
    warn("K022", "a symbol has no type"),
    warn("K023", "a symbol is used and never defined"),
    warn("K024", "a default is of the wrong type"),
    warn("K025", "a select or imply from or to what is neither bool nor tristate"),
    warn("K026", "a range of what is no number, or with limits that are none"),
    warn("K027", "a choice or a member of one that cannot work as written"),
    warn("K028", "an entry has two prompts"),
    warn("K029", "a prompt begins or ends with blanks"),
    warn("K030", "the default of a choice is not one of its members"),
    warn("K031", "a menuconfig without a prompt"),
    warn("K032", "the last line of a file has no end"),
    fatal("K033", "a directory stands where a file is wanted"),
    fatal("K034", "a word that the rules of this tree do not have"),
    warn("K035", "an entry has two help texts"),
    allow("K036", "`option env` of a variable that is not set"),
    warn("K101", "a condition can never hold: what stands under it is unreachable"),
    warn("K102", "a select of what can never have its dependencies met there"),
    warn("K103", "a select of what has dependencies that the selecting symbol does not carry"),
    warn("K104", "a default outside the range that applies to it"),
    warn("K105", "two entries of one menu with the same prompt"),
    warn("K106", "a default behind one that always applies"),
    warn("K107", "a symbol that nothing can ever switch on"),
    warn("K108", "a comparison with a text that the symbol never has"),
    warn("K109", "the same line twice in one entry"),
    warn("K110", "a menu, choice or if without an entry in it"),
    allow("K120", "a select of what has a prompt: the user's answer is overruled"),
    allow("K121", "a dependency that the block around already has"),
    allow("K122", "`default n`, which is so anyway"),
    allow("K123", "a prompt without help"),
    allow("K124", "a symbol that no other entry mentions"),
];

/// The kind with this id.
#[must_use]
pub fn find(id: &str) -> Option<&'static Lint> {
    LINTS.iter().find(|lint| lint.id == id)
}

/// Why a lint cannot be set so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No lint has this id.
    #[error("there is no lint `{id}`{}", near.as_ref().map_or_else(String::new, |near| format!("; did you mean {near}?")))]
    Unknown {
        /// What was given.
        id: String,
        /// The nearest id.
        near: Option<String>,
    },
    /// The tree cannot be used with such a finding.
    #[error("{id} cannot be {}ed: {}, and such a tree cannot be used", if *.setting == Setting::Warn { "warn" } else { "allow" }, find(id).map_or("", |lint| lint.summary))]
    Fatal {
        /// The lint.
        id: &'static str,
        /// What was wanted of it.
        setting: Setting,
    },
}

/// What becomes of each kind of finding.
#[derive(Clone, Debug)]
pub struct Policy {
    settings: Vec<Setting>,
}

impl Default for Policy {
    fn default() -> Self {
        Self { settings: LINTS.iter().map(|lint| lint.default).collect() }
    }
}

impl Policy {
    /// Changes one kind; `all` stands for every kind that is not fatal.
    pub fn set(&mut self, id: &str, setting: Setting) -> Result<(), PolicyError> {
        if id == "all" {
            for (at, _) in LINTS.iter().enumerate().filter(|(_, lint)| !lint.fatal) {
                self.settings[at] = setting;
            }
            return Ok(());
        }
        let Some(at) = LINTS.iter().position(|lint| lint.id.eq_ignore_ascii_case(id)) else {
            let near = suggest(id, LINTS.iter().map(|lint| lint.id));
            return Err(PolicyError::Unknown { id: id.to_owned(), near });
        };
        if LINTS[at].fatal && setting != Setting::Deny {
            return Err(PolicyError::Fatal { id: LINTS[at].id, setting });
        }
        self.settings[at] = setting;
        Ok(())
    }

    /// The setting of one kind; an unknown kind is a warning.
    #[must_use]
    pub fn get(&self, id: &str) -> Setting {
        LINTS.iter().position(|lint| lint.id == id).map_or(Setting::Warn, |at| self.settings[at])
    }
}
