//! A program that speaks the command line of the kernel's `conf`, and one run of it in an empty
//! directory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The C tool needs seconds; ours, built without optimisation on a loaded machine, is given this
/// long before it counts as hanging.
const LIMIT: Duration = Duration::from_mins(2);
/// The input of a user who presses Enter at every question.
const ENTER: usize = 100_000;

/// Something that can be called like `scripts/kconfig/conf`.
#[derive(Clone, Debug)]
pub struct Tool {
    name: String,
    program: PathBuf,
    args: Vec<OsString>,
}

/// One run: what is in the directory before, and how the tool is called.
#[derive(Clone, Debug, Default)]
pub struct Job {
    args: Vec<OsString>,
    env: Vec<(String, String)>,
    files: Vec<(String, Vec<u8>)>,
    enter: bool,
}

/// What a run left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Nothing when it was killed.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// Every file in the directory afterwards.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Tool {
    /// A tool with a name for messages, and what goes before the arguments.
    pub fn new(name: impl Into<String>, program: &Path, args: &[&str]) -> Self {
        Self {
            name: name.into(),
            program: program.to_owned(),
            args: args.iter().map(|arg| OsString::from(*arg)).collect(),
        }
    }

    /// For messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The program and all its arguments for these ones of `conf`.
    #[must_use]
    pub fn command(&self, args: &[OsString]) -> (&Path, Vec<OsString>) {
        (&self.program, self.args.iter().chain(args).cloned().collect())
    }

    /// A script that stands in for `scripts/kconfig/conf`.
    pub fn install_at(&self, place: &Path) {
        use std::os::unix::fs::PermissionsExt as _;
        let quote = |word: String| format!("'{}'", word.replace('\'', r"'\''"));
        let program = quote(self.program.to_string_lossy().into_owned());
        let args: String = self.args.iter().map(|arg| quote(arg.to_string_lossy().into_owned()) + " ").collect();
        fs_err::create_dir_all(place.parent().unwrap()).unwrap();
        fs_err::write(place, format!("#!/bin/sh\nexec {program} {args}\"$@\"\n")).unwrap();
        fs_err::set_permissions(place, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs the job in a directory that is gone afterwards.
    #[must_use]
    pub fn run(&self, job: &Job) -> Outcome {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in &job.files {
            let place = dir.path().join(name);
            fs_err::create_dir_all(place.parent().unwrap()).unwrap();
            fs_err::write(place, bytes).unwrap();
        }
        let (program, args) = self.command(&job.args);
        let input = if job.enter { vec![b'\n'; ENTER] } else { Vec::new() };
        let run = duct::cmd(program, args).dir(dir.path()).full_env(job.env.iter().cloned());
        let run = run.stdin_bytes(input).stdout_capture().stderr_capture().unchecked();
        let handle = run.start().unwrap_or_else(|error| panic!("{} cannot be started: {error}", self.name));
        let Some(output) = handle.wait_timeout(LIMIT).unwrap() else {
            handle.kill().unwrap();
            panic!("{} {:?} hangs: killed after {LIMIT:?}", self.name, job.args);
        };
        Outcome {
            code: output.status.code(),
            stdout: output.stdout.clone(),
            stderr: output.stderr.clone(),
            files: files_below(dir.path()),
        }
    }
}

impl Job {
    /// `conf MODE Kconfig` with this environment and no other.
    #[must_use]
    pub fn new(mode: &str, env: Vec<(String, String)>) -> Self {
        Self { args: vec![mode.into(), "Kconfig".into()], env, ..Self::default() }
    }

    /// `conf` with these arguments, for tools with a command line of their own.
    #[must_use]
    pub fn with_arguments(args: &[&str], env: Vec<(String, String)>) -> Self {
        Self { args: args.iter().map(|arg| OsString::from(*arg)).collect(), env, ..Self::default() }
    }

    /// With `-s` in front.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.args.insert(0, "-s".into());
        self
    }

    /// With a file in its directory.
    #[must_use]
    pub fn file(mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.push((name.to_owned(), bytes.into()));
        self
    }

    /// With an `auto.conf`, so that none is made: with it go some thousand files, one for each
    /// symbol, which cost more than all else.
    #[must_use]
    pub fn without_auto_conf(self) -> Self {
        self.file("include/config/auto.conf", "")
    }

    /// With a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Presses Enter at every question.
    #[must_use]
    pub fn enter(mut self) -> Self {
        self.enter = true;
        self
    }

    /// The arguments of `conf`.
    #[must_use]
    pub fn args(&self) -> &[OsString] {
        &self.args
    }
}

impl Outcome {
    /// The configuration it wrote.
    #[must_use]
    pub fn config(&self) -> &[u8] {
        self.files.get(".config").map_or(&[], Vec::as_slice)
    }
}

/// All files with their paths below `dir`; links count as what they point to.
pub(crate) fn files_below(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(at) = open.pop() {
        for path in fs_err::read_dir(at).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_string_lossy().into_owned();
                found.insert(name, fs_err::read(path).unwrap());
            }
        }
    }
    found
}
