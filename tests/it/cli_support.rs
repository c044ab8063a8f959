//! What tests of the command line share: what a command did.
#![expect(clippy::unwrap_used, reason = "tests")]

use assert_cmd::Command;

/// What a command did.
pub(crate) struct Outcome {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Runs a command to its end.
pub(crate) fn finish(command: &mut Command) -> Outcome {
    let output = command.output().unwrap();
    Outcome {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
