//! What a host refuses: the words of sudo, of the shell and of the kernel when a command cannot do
//! its work there, and what the operator has to change. It judges by words only; a message that
//! matches no row stays as it is.

use super::failure::Failure;
use crate::{Class, Error};

/// Words in the output of a command, and the advice for them; `{user}` and `{host}` are filled in.
const REFUSALS: &[(&[&str], &str)] = &[
    (
        &[
            "sudo: a password is required",
            "sudo: a terminal is required",
            "is not in the sudoers file",
            "sudo: command not found",
        ],
        "let {user} on {host} use sudo without a password (NOPASSWD in /etc/sudoers.d), or log in as root",
    ),
    (&["No space left on device", "Disk quota exceeded"], "free disk space on {host} (look with: df -h)"),
    (&["Read-only file system"], "make the file system on {host} writable (look with: findmnt; dmesg)"),
    (
        &["Exec format error", "cannot execute binary file"],
        "{host} has another architecture than this turnup: use hosts of one architecture, or the turnup for theirs",
    ),
    (
        &["Permission denied", "Operation not permitted"],
        "see that {user} is root on {host} or has sudo, and that /opt is not mounted noexec (look with: findmnt -T /opt)",
    ),
];

/// The error for a command that failed on a host.
pub(super) fn explain(failure: Failure, user: &str, host: &str) -> Error {
    let advice = advise(&failure);
    match advice {
        // Ends with an exit code: a command that was stopped or never began was refused nothing.
        Some(advice) if failure.code().is_some() => {
            let hint = advice.replace("{user}", user).replace("{host}", host);
            failure.into_error(Class::Precondition).hint(hint)
        }
        _ => failure.relay(),
    }
}

fn advise(failure: &Failure) -> Option<&'static str> {
    let says = |words: &&[&str]| words.iter().any(|word| failure.stderr().contains(word));
    REFUSALS.iter().find(|(words, _)| says(words)).map(|(_, advice)| *advice)
}
