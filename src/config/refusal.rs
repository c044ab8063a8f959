//! Why settings were not changed, each with the command that helps on.

use crate::error::Error;

/// More next commands than this are no help.
const MOST_HINTS: usize = 3;

/// Why one assignment did not work, and the next command.
pub(super) struct Refused {
    pub(super) why: String,
    pub(super) next: String,
}

impl Refused {
    /// There is no such setting.
    pub(super) fn unknown(error: &Error) -> Self {
        let next = error.next().unwrap_or("see all settings: turnup config list");
        Self { why: error.message().to_owned(), next: next.to_owned() }
    }
}

/// Whether it is worth another trial.
pub(super) enum Refusal {
    /// Another assignment may make it possible.
    Later(Refused),
    /// The value is wrong in itself.
    Never(Refused),
}

pub(super) fn explain_command(name: &str) -> String {
    format!("turnup config explain {name}")
}

/// One error that says all of it.
pub(super) fn refusal(refused: &[Refused]) -> Error {
    let error = match refused {
        [one] => Error::config(one.why.clone()),
        many => {
            let error = Error::config(format!("nothing was changed: {} things are wrong", many.len()));
            many.iter().fold(error, |error, one| error.evidence(one.why.clone()))
        }
    };
    let mut next: Vec<&str> = Vec::new();
    for one in refused {
        if !next.contains(&one.next.as_str()) {
            next.push(&one.next);
        }
    }
    next.truncate(MOST_HINTS);
    error.hint(next.join("; "))
}
