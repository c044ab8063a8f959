//! What tests of the command line share: a directory to work in, and what a command did.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;

use assert_cmd::Command;

/// What a command did.
pub(crate) struct Outcome {
    pub code: i32,
    pub out: String,
    /// Without the line about replaced parts of turnup, which tests with a tree of their own need
    /// not repeat.
    pub err: String,
    /// The parts of turnup that the directory replaces, as the first line of standard error names
    /// them.
    pub replaced: Option<String>,
}

/// How that line begins.
const REPLACES: &str = "this directory replaces what is built into turnup: ";

/// Runs a command to its end.
pub(crate) fn finish(command: &mut Command) -> Outcome {
    let output = command.output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    let (replaced, err) = match err.strip_prefix(REPLACES).and_then(|rest| rest.split_once('\n')) {
        Some((names, rest)) => (Some(names.to_owned()), rest.to_owned()),
        None => (None, err),
    };
    let (code, out) = (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap());
    Outcome { code, out, err, replaced }
}

/// A working directory for commands of one group; of all groups when its name is empty.
pub(crate) struct TestEnv {
    pub dir: tempfile::TempDir,
    group: &'static str,
    /// The environment of commands besides their home.
    env: Vec<(&'static str, String)>,
}

impl TestEnv {
    pub(crate) fn new(group: &'static str) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), group, env: Vec::new() }
    }

    /// The same, with this in the environment of its commands.
    pub(crate) fn with_env(mut self, name: &'static str, value: &str) -> Self {
        self.env.push((name, value.to_owned()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs_err::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs_err::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs_err::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnup"));
        command.args(Some(self.group).filter(|group| !group.is_empty())).args(args);
        command.current_dir(self.dir.path()).env_clear().env("TERM", "xterm-256color").env("HOME", self.dir.path());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        finish(&mut self.command(args))
    }

    /// Runs a command that has to succeed.
    pub(crate) fn ok(&self, args: &[&str]) -> Outcome {
        self.ends(0, args)
    }

    /// Runs a command that has to end with this exit code.
    pub(crate) fn ends(&self, code: i32, args: &[&str]) -> Outcome {
        let outcome = self.run(args);
        assert_eq!(outcome.code, code, "{args:?}: {}{}", outcome.out, outcome.err);
        outcome
    }
}
