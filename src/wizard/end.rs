//! How a session ended.

use std::path::Path;

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The file was written and has the last answers.
    Saved,
    /// There was nothing to write.
    Unchanged,
    /// Answers were given up.
    Discarded,
}

impl End {
    /// One line for the terminal that is back.
    #[must_use]
    pub(crate) fn describe(self, path: &Path) -> String {
        let file = path.display();
        match self {
            Self::Saved => format!("wrote {file}"),
            Self::Unchanged => format!("{file} is as it was"),
            Self::Discarded => format!("not saved: {file} is left as it was"),
        }
    }
}
