//! One run of one program: how it is described, how it is waited for.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, PipeReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use duct::{Expression, Handle};
use rustix::fs::Mode;
use rustix::process::Signal;

use super::capture::{Follow, LONGEST_LINE, LastLines, Pipe, read_lines};
use super::failure::{Ended, Failure};
use super::log::{Log, Mask};
use super::memory::MemoryFile;
use super::{environment, program, signals, spawner};
use crate::{Result, failpoint};

/// How often a waiting run looks at the clock and at the signals.
const TICK: Duration = Duration::from_millis(50);
/// Between asking a program that took too long to end, and killing it.
const TIMEOUT_GRACE: Duration = Duration::from_secs(5);

/// Which of the two pipes a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What happens to the child when turnup itself is killed with a signal that cannot be caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDeath {
    /// The kernel kills the child too. Right for everything that can be repeated.
    Kill,
    /// The kernel asks the child to end (SIGTERM), and its output goes to a file and not to a pipe,
    /// so that it can still finish.
    ///
    /// Right for terraform: killed in the middle it loses the state of what it has just created,
    /// and so it does when it writes a line to a pipe without a reader (SIGPIPE). After a SIGINT it
    /// stops at the next resource, writes its state and lets go of its lock; a `turnup up` that
    /// comes earlier meets that lock and tries again.
    Terminate,
    /// Nothing: the child is meant to stay.
    Nothing,
}

#[derive(Clone, Default)]
enum Stdin {
    #[default]
    Empty,
    Bytes(Vec<u8>),
    File(PathBuf),
    /// Nothing comes, and its end comes with ours.
    Open(Arc<PipeReader>),
}

/// A description of one run of one program.
#[must_use = "nothing runs before `output`, `stream` or `succeed`"]
#[derive(Clone)]
pub struct Run {
    program: OsString,
    args: Vec<OsString>,
    pub(super) dir: Option<PathBuf>,
    env: HashMap<OsString, OsString>,
    inherit: Vec<String>,
    stdin: Stdin,
    pub(super) mask: Mask,
    pub(super) log: Option<PathBuf>,
    timeout: Option<Duration>,
    grace: Duration,
    label: Option<String>,
    on_death: OnDeath,
    pub(super) cleanup: bool,
    private: bool,
}

/// How a run ended that was successful.
#[derive(Clone, Debug)]
pub struct Output {
    /// All of standard output.
    pub stdout: String,
    /// The last lines of standard error.
    pub stderr: String,
}

impl Run {
    /// A run of this program: a name on PATH, or a path.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            dir: None,
            env: HashMap::new(),
            inherit: Vec::new(),
            stdin: Stdin::Empty,
            mask: Mask::default(),
            log: None,
            timeout: None,
            grace: Duration::from_mins(1),
            label: None,
            on_death: OnDeath::Kill,
            cleanup: false,
            private: false,
        }
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The working directory. Required.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// One more environment variable on top of the allow-list. Never a secret: the environment of a
    /// process is no secret place.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Lets these names of our own environment through as well (`AWS_*`): for the one program that
    /// needs them.
    pub fn inherit(mut self, pattern: impl Into<String>) -> Self {
        self.inherit.push(pattern.into());
        self
    }

    /// Bytes for standard input, which is empty otherwise. They are held in memory and may be
    /// secret.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Stdin::Bytes(bytes.into());
        self
    }

    /// A file for standard input.
    pub fn stdin_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.stdin = Stdin::File(path.into());
        self
    }

    /// Standard input without data, which ends when the process at the other end is gone.
    pub(super) fn stdin_open(mut self, reader: PipeReader) -> Self {
        self.stdin = Stdin::Open(Arc::new(reader));
        self
    }

    /// A text that must not appear in any log or error. Lines handed to `stream` and the `stdout`
    /// of the output are left as they are.
    pub fn secret(mut self, secret: &str) -> Self {
        self.mask.add(secret);
        self
    }

    /// Appends the command line and every line of output to this file (0600).
    pub fn log(mut self, path: impl Into<PathBuf>) -> Self {
        self.log = Some(path.into());
        self
    }

    /// Ends the program after this time.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// How long the program may take to end after a forwarded signal before its group is killed; 60
    /// s by default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// What errors call this run, in place of the program's name: "terraform apply".
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// What happens to the child when turnup is killed; it is killed too by default.
    pub fn on_death(mut self, what: OnDeath) -> Self {
        self.on_death = what;
        self
    }

    /// This run cleans up: it starts even after a signal has asked turnup to stop.
    pub fn cleanup(mut self) -> Self {
        self.cleanup = true;
        self
    }

    /// What the program makes is its user's alone: its umask is 077, whatever ours is.
    pub fn private(mut self) -> Self {
        self.private = true;
        self
    }

    /// Runs it and keeps the output.
    pub fn output(self) -> Result<Output, Failure> {
        self.stream(|_, _| {})
    }

    /// Runs it and hands every line over as it comes.
    pub fn stream(self, on_line: impl FnMut(Stream, &str)) -> Result<Output, Failure> {
        failpoint::around(format_args!("run {}", Short(&self)), || self.run(on_line))
    }

    fn run(&self, mut on_line: impl FnMut(Stream, &str)) -> Result<Output, Failure> {
        let start = Instant::now();
        let mut log = Log::open(self.log.as_deref());
        log.line("$", &self.to_string());
        let (sender, receiver) = mpsc::channel();
        let child = match self.start(&sender) {
            Ok(Some(child)) => child,
            Ok(None) => return Err(Failure::Interrupted { ended: self.ended(start, "", String::new()) }),
            Err(error) => {
                log.line("!", &error.to_string());
                let why = error.to_string();
                return Err(Failure::NotStarted { why, ended: self.ended(start, "", String::new()) });
            }
        };
        drop(sender);
        let mut stdout = String::new();
        let mut stderr = LastLines::default();
        let end = self.wait(&child, &receiver, start, |stream, line| {
            // Colours of a tool are noise in a log and in an error.
            let masked = self.mask.apply(&anstream::adapter::strip_str(line).to_string());
            match stream {
                Stream::Stdout => {
                    log.line("|", &masked);
                    stdout.push_str(line);
                    stdout.push('\n');
                }
                Stream::Stderr => {
                    log.line("!", &masked);
                    stderr.push(masked);
                }
            }
            on_line(stream, line);
        });
        let stderr = stderr.into_text();
        log.line("=", &format!("{} after {:.1?}", end.describe(), start.elapsed()));
        self.conclude(end, start, stdout, stderr)
    }

    /// Runs it; a failure becomes an error with the last lines of standard error as evidence.
    pub fn succeed(self) -> Result<Output> {
        self.output().map_err(crate::Error::from)
    }

    fn name(&self) -> String {
        self.label.clone().unwrap_or_else(|| {
            Path::new(&self.program).file_name().unwrap_or(&self.program).to_string_lossy().into_owned()
        })
    }

    pub(super) fn ended(&self, start: Instant, stdout: &str, stderr: String) -> Box<Ended> {
        Box::new(Ended {
            name: self.name(),
            command: self.to_string(),
            stdout: self.mask.apply(stdout),
            stderr,
            log: self.log.clone(),
            elapsed: start.elapsed(),
        })
    }

    fn conclude(&self, end: End, start: Instant, stdout: String, stderr: String) -> Result<Output, Failure> {
        let status = match end {
            End::TimedOut(limit) => {
                return Err(Failure::TimedOut { limit, ended: self.ended(start, &stdout, stderr) });
            }
            End::Lost(why) => return Err(Failure::NotStarted { why, ended: self.ended(start, &stdout, stderr) }),
            End::Status(status) => status,
        };
        if status.success() {
            return Ok(Output { stdout, stderr });
        }
        let ended = self.ended(start, &stdout, stderr);
        if !self.cleanup && signals::interrupted() {
            return Err(Failure::Interrupted { ended });
        }
        match (status.code(), status.signal()) {
            // setpriv's own words when the program that it should become cannot be executed.
            (Some(126 | 127), _) if ended.stderr.starts_with("setpriv: failed to execute") => {
                let why = ended.stderr.trim().trim_start_matches("setpriv: failed to execute ").to_owned();
                Err(Failure::NotStarted { why, ended })
            }
            (Some(code), _) => Err(Failure::Exited { code, ended }),
            (None, signal) => Err(Failure::Signalled { signal: signal.unwrap_or_default(), ended }),
        }
    }

    /// Starts the child; nothing when a signal has already asked us to stop.
    fn start(&self, sender: &Sender<Message>) -> io::Result<Option<Child>> {
        let ended = Arc::new(AtomicBool::new(false));
        let (expression, readers) = if self.on_death == OnDeath::Terminate {
            self.with_files(sender, &ended)?
        } else {
            self.with_pipes(sender, &ended)?
        };
        let Some(handle) = self.spawn(expression)? else { return Ok(None) };
        for reader in readers {
            thread::Builder::new().name("read".into()).spawn(reader)?;
        }
        let child = Child { group: handle.pids().first().copied().unwrap_or_default(), handle: Arc::new(handle) };
        let (waiter, sender) = (Arc::clone(&child.handle), sender.clone());
        thread::Builder::new().name("wait".into()).spawn(move || {
            let status = waiter.wait().map(|output| output.status);
            ended.store(true, Ordering::Release);
            drop(sender.send(Message::Exited(status.map_err(|error| error.to_string()))));
        })?;
        Ok(Some(child))
    }

    /// Starts the expression on the spawner's thread, registered for signals.
    pub(super) fn spawn(&self, expression: Expression) -> io::Result<Option<Handle>> {
        let (cleanup, private) = (self.cleanup, self.private);
        spawner::spawn_child(move || {
            // A child begins with our umask. For the moment of its start ours is the stricter one,
            // for all threads.
            let umask = private.then(|| rustix::process::umask(Mode::RWXG | Mode::RWXO));
            // The expression is dropped here, and with it our copies of the pipes' writing ends.
            let started = signals::start_registered(
                cleanup,
                || expression.start(),
                |handle: &Handle| handle.pids().first().copied(),
            );
            umask.map(rustix::process::umask);
            started
        })
    }

    fn with_pipes(&self, sender: &Sender<Message>, ended: &Arc<AtomicBool>) -> io::Result<(Expression, Vec<Reader>)> {
        let (stdout, stdout_writer) = io::pipe()?;
        let (stderr, stderr_writer) = io::pipe()?;
        let expression = self.expression()?.stdout_file(stdout_writer).stderr_file(stderr_writer);
        let (stdout, stderr) = (Pipe::new(stdout, ended), Pipe::new(stderr, ended));
        Ok((expression, vec![reader(stdout, Stream::Stdout, sender), reader(stderr, Stream::Stderr, sender)]))
    }

    fn with_files(&self, sender: &Sender<Message>, ended: &Arc<AtomicBool>) -> io::Result<(Expression, Vec<Reader>)> {
        let mut expression = self.expression()?;
        let mut readers = Vec::new();
        for stream in [Stream::Stdout, Stream::Stderr] {
            // Without a name: no other process can open it, and it is gone when the last of ours
            // has ended.
            let file = tempfile::tempfile()?;
            let follow = Follow { file: file.try_clone()?, offset: 0, writer_ended: Arc::clone(ended) };
            readers.push(reader(follow, stream, sender));
            expression = match stream {
                Stream::Stdout => expression.stdout_file(file),
                Stream::Stderr => expression.stderr_file(file),
            };
        }
        Ok((expression, readers))
    }

    /// The command with everything but its output.
    pub(super) fn expression(&self) -> io::Result<Expression> {
        let dir = self.dir.clone().ok_or_else(|| io::Error::other("no working directory was given"))?;
        if !dir.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("no such directory: {}", dir.display())));
        }
        let program = resolve(&self.program, &dir)?;
        let mut argv = death_wrapper(self.on_death);
        argv.push(program.into());
        argv.extend(self.args.iter().cloned());
        let mut environment = environment::inherited(&self.inherit);
        environment.extend(self.env.clone());
        let expression =
            duct::cmd(argv.remove(0), argv).unchecked().dir(dir).full_env(environment).before_spawn(|command| {
                command.process_group(0);
                Ok(())
            });
        Ok(match &self.stdin {
            Stdin::Empty => expression.stdin_null(),
            Stdin::Bytes(bytes) => expression.stdin_file(MemoryFile::new(bytes)?.open()?),
            Stdin::File(path) => expression.stdin_file(fs_err::File::open(path)?.into_file()),
            Stdin::Open(reader) => expression.stdin_file(reader.try_clone()?),
        })
    }

    /// Waits for the end, passing lines on, watching the clock and the signals.
    fn wait(
        &self,
        child: &Child,
        messages: &Receiver<Message>,
        start: Instant,
        mut on_line: impl FnMut(Stream, &str),
    ) -> End {
        let mut timed_out = None;
        let mut killed = false;
        let mut exited = None;
        let mut open = 2;
        loop {
            match messages.recv_timeout(TICK) {
                Ok(Message::Line(stream, line)) => on_line(stream, &line),
                Ok(Message::Closed) => open -= 1,
                Ok(Message::Exited(status)) => {
                    signals::unregister(child.group);
                    exited = Some(status.map_or_else(End::Lost, End::Status));
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            let now = Instant::now();
            // Both sources end soon after the program, whatever holds its pipes.
            match &exited {
                Some(_) if open == 0 => break,
                Some(_) => continue,
                None => {}
            }
            if timed_out.is_none() && self.timeout.is_some_and(|limit| now > start + limit) {
                timed_out = Some(now);
                signals::send(child.group, Signal::TERM);
            }
            // A program that loses its state when it is killed is given the time to write it.
            let late = if self.on_death == OnDeath::Terminate { self.grace } else { self.grace.min(TIMEOUT_GRACE) };
            let over = timed_out.is_some_and(|since| now > since + late)
                || (!self.cleanup && signals::since().is_some_and(|since| now > since + self.grace));
            if over && !killed {
                killed = true;
                signals::send(child.group, Signal::KILL);
            }
        }
        let stopped = !self.cleanup && signals::interrupted();
        if timed_out.is_some() || stopped {
            // Processes that the program left behind in its group have had the same signal and the
            // same time.
            signals::send(child.group, Signal::KILL);
        }
        match (timed_out, stopped) {
            (Some(_), false) => End::TimedOut(self.timeout.unwrap_or_default()),
            _ => exited.unwrap_or_else(|| End::Lost("it was never waited for".into())),
        }
    }
}

/// The command line as the user would type it, secrets masked.
impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = std::iter::once(&self.program).chain(&self.args);
        let words: Vec<String> = words.map(|word| self.mask.apply(&word.to_string_lossy())).collect();
        f.write_str(&shell_words::join(words))
    }
}

/// What is run, without whatever differs from one run to the next.
pub(super) struct Short<'r>(pub(super) &'r Run);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.name();
        let plain = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || b"-.".contains(&byte));
        let arguments = self.0.args.iter().filter_map(|arg| arg.to_str());
        let words = arguments.filter(|word| !word.starts_with('-') && plain(word) && !name.contains(word));
        let digest = |word: &str| word.len() > 60;
        let words = name.split(' ').filter(|word| !digest(word)).chain(words);
        f.write_str(&words.collect::<Vec<_>>().join(" "))
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Run({self})")
    }
}

struct Child {
    group: u32,
    handle: Arc<Handle>,
}

enum Message {
    Line(Stream, String),
    Closed,
    Exited(Result<ExitStatus, String>),
}

enum End {
    Status(ExitStatus),
    TimedOut(Duration),
    Lost(String),
}

impl End {
    fn describe(&self) -> String {
        match self {
            Self::Status(status) => status.to_string(),
            Self::TimedOut(_) => "stopped, too slow,".into(),
            Self::Lost(why) => why.clone(),
        }
    }
}

type Reader = Box<dyn FnOnce() + Send>;

fn reader(source: impl io::Read + Send + 'static, stream: Stream, sender: &Sender<Message>) -> Reader {
    let sender = sender.clone();
    // Terraform prints a whole state as one line, and what is kept whole anyway is not cut.
    let longest = if stream == Stream::Stdout { u64::MAX } else { LONGEST_LINE };
    Box::new(move || {
        read_lines(source, longest, |line| drop(sender.send(Message::Line(stream, line))));
        drop(sender.send(Message::Closed));
    })
}

/// The program's file, so that a missing one is told apart before anything is started.
fn resolve(program: &OsStr, dir: &Path) -> io::Result<PathBuf> {
    if Path::new(program).components().count() > 1 {
        return which::which_in(program, None::<&OsStr>, dir).map_err(|_| {
            io::Error::new(io::ErrorKind::NotFound, format!("{} is no executable file", program.display()))
        });
    }
    program::locate(program)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("`{}` is not on PATH", program.display())))
}

/// The words in front of the command that make the kernel signal it when we are gone; none where
/// setpriv is missing.
fn death_wrapper(on_death: OnDeath) -> Vec<OsString> {
    let signal = match on_death {
        OnDeath::Kill => "KILL",
        OnDeath::Terminate => "TERM",
        OnDeath::Nothing => return Vec::new(),
    };
    program::setpriv().map_or_else(Vec::new, |setpriv| {
        [setpriv.as_os_str(), OsStr::new("--pdeathsig"), OsStr::new(signal), OsStr::new("--")]
            .map(OsStr::to_owned)
            .into()
    })
}
