//! The fault matrix: what goes wrong in real life, each as one row, against the real program. For
//! each the class (exit code), the cause and the next command on the last screen, how long it took
//! to say so beyond the step's own timeout, that only what may pass by itself is tried again, and
//! that nothing is lost: the run after the fault ends well.
//!
//! `docs/faults.md` is written from it (`INSTA_UPDATE=always`) and compared with it. Hosts and
//! tools are made up (`tests/fakes`); what needs a real host is in `cluster_faults`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use turnup::Class;

use crate::cluster_support::{can_make_hosts, say};
use crate::simulation::{Ended, Simulation};
use crate::{fault_cluster, fault_hosts, fault_machine, fault_root};

/// What a step may take whose timeout has to end it: short enough to be waited for. A busy machine
/// may not come as far as the fault in this time, and gets the second one.
const TIMEOUTS: [Duration; 2] = [Duration::from_secs(10), Duration::from_mins(1)];
/// What every other step may take, also on a slow machine.
const ROOM: Duration = Duration::from_mins(2);
/// How long it may take to say what is wrong, beyond the timeout of the step. The times are said;
/// only what hangs is caught.
const SOON: Duration = Duration::from_mins(1);
/// How many rows are worked on at once.
const PARALLEL: usize = 3;
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/faults.md");

/// A fault.
pub(crate) struct Fault {
    name: &'static str,
    /// Whether the cluster is already up.
    up: bool,
    make: Box<dyn Fn(&mut Simulation) + Send + Sync>,
    heal: Box<dyn Fn(&mut Simulation) + Send + Sync>,
    act: Box<dyn Fn(&Simulation) -> Ended + Send + Sync>,
    after: fn(&Simulation),
    expected: Expected,
}

/// The expected result.
enum Expected {
    /// An error of this class, whose output contains all of these words.
    Fails(Class, &'static [&'static str]),
    /// The run succeeds by itself, and prints these words on the way.
    Recovers(&'static [&'static str]),
}

impl Fault {
    /// A fault of a cluster that is being turned up for the first time, with `turnup up`.
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            up: false,
            make: Box::new(|_| {}),
            heal: Box::new(|simulation| simulation.script(&[])),
            act: Box::new(|simulation| simulation.run(&["up"])),
            after: |simulation| {
                simulation.ok(&["up"]);
                let plan = simulation.ok(&["plan"]);
                assert_eq!(plan.out.trim(), "nothing to do", "{plan}");
            },
            expected: Expected::Recovers(&[]),
        }
    }

    /// The cluster is up already.
    pub(crate) fn when_up(mut self) -> Self {
        self.up = true;
        self
    }

    /// What the fake tools do wrong.
    pub(crate) fn script(self, entries: Vec<Value>) -> Self {
        self.made(move |simulation| simulation.script(&entries))
    }

    /// Causes the fault.
    pub(crate) fn made(mut self, make: impl Fn(&mut Simulation) + Send + Sync + 'static) -> Self {
        self.make = Box::new(make);
        self
    }

    /// Causes a further fault.
    pub(crate) fn made_more(mut self, more: impl Fn(&mut Simulation) + Send + Sync + 'static) -> Self {
        let make = self.make;
        self.make = Box::new(move |simulation| {
            make(simulation);
            more(simulation);
        });
        self
    }

    /// How the operator repairs it.
    pub(crate) fn healed(mut self, heal: impl Fn(&mut Simulation) + Send + Sync + 'static) -> Self {
        self.heal = Box::new(heal);
        self
    }

    /// Runs this in place of `turnup up`.
    pub(crate) fn acts(mut self, act: impl Fn(&Simulation) -> Ended + Send + Sync + 'static) -> Self {
        self.act = Box::new(act);
        self
    }

    /// What has to work after the repair, in place of `turnup up` and an empty plan.
    pub(crate) fn then(mut self, after: fn(&Simulation)) -> Self {
        self.after = after;
        self
    }

    /// Expects an error of this class, whose output contains all of these words.
    pub(crate) fn fails(mut self, class: Class, says: &'static [&'static str]) -> Self {
        self.expected = Expected::Fails(class, says);
        self
    }

    /// Expects success without help, with these words in the output.
    pub(crate) fn recovers(mut self, says: &'static [&'static str]) -> Self {
        self.expected = Expected::Recovers(says);
        self
    }

    /// What it says of itself, or why that is wrong.
    fn try_meet(&self, timeout: Duration) -> Result<Row, String> {
        catch_unwind(AssertUnwindSafe(|| self.meet(timeout)))
            .map_err(|panic| panic.downcast_ref::<String>().map_or("a panic without words", String::as_str).to_owned())
    }

    fn meet(&self, timeout: Duration) -> Row {
        let mut simulation = Simulation::new(2);
        simulation.own_tree();
        simulation.timeout(None, ROOM);
        if self.up {
            simulation.ok(&["up"]);
        }
        (self.make)(&mut simulation);
        if let Expected::Fails(Class::Transient, says) = self.expected {
            // Its first words are "PHASE/STEP failed" or "STEP failed on HOST".
            let step = says[0].split(' ').next().and_then(|id| id.rsplit('/').next());
            simulation.timeout(step, timeout);
        }
        let ended = (self.act)(&simulation);
        let row = self.judge(&simulation, &ended, timeout);
        simulation.timeout(None, ROOM);
        (self.heal)(&mut simulation);
        (self.after)(&simulation);
        row
    }

    fn judge(&self, simulation: &Simulation, ended: &Ended, timeout: Duration) -> Row {
        let retried = ended.err.contains("waits: try ");
        let words = match &self.expected {
            Expected::Recovers(words) => {
                assert_eq!(ended.code, 0, "{ended}");
                words.iter().for_each(|word| assert!(ended.err.contains(word), "it never said {word:?}: {ended}"));
                let said = if retried { "tried again" } else { "made again, or not needed" };
                return Row::new(self.name, "none", said.to_owned(), String::new(), Duration::ZERO);
            }
            Expected::Fails(class, words) => {
                assert_eq!(ended.code, i32::from(class.exit_code()), "the class is {class:?}: {ended}");
                assert!(!retried || *class == Class::Transient, "{class:?} was tried again: {ended}");
                words
            }
        };
        let screen = ended.error();
        words.iter().for_each(|word| assert!(screen.contains(word), "the screen lacks {word:?}: {ended}"));
        let cause = screen.lines().find_map(|line| line.strip_prefix("  caused by: "));
        let cause = cause.or_else(|| screen.lines().next()?.strip_prefix("error: ")).unwrap_or_default();
        let next = screen.lines().find_map(|line| line.strip_prefix("next: ")).unwrap_or_default();
        assert!(!next.is_empty(), "no next command: {ended}");
        let Expected::Fails(class, _) = self.expected else { panic!("only failures come here") };
        let timeout = if class == Class::Transient { timeout } else { Duration::ZERO };
        let redact = |text: &str| redact(simulation, text);
        let spent = started(ended) + timeout;
        // Which steps a signal interrupts differs from run to run.
        let more = evidence(screen)
            .filter(|line| class != Class::Interrupted && !cause.contains(line))
            .map(|line| format!(" <br> {line}"));
        let said = redact(&format!("{cause}{}", more.unwrap_or_default()));
        Row::new(self.name, class_name(class), said, redact(next), ended.elapsed.saturating_sub(spent))
    }
}

/// One line of the document, and the time of it.
struct Row {
    name: &'static str,
    class: String,
    said: String,
    next: String,
    beyond: Duration,
}

impl Row {
    fn new(name: &'static str, class: impl Into<String>, said: String, next: String, beyond: Duration) -> Self {
        Self { name, class: class.into(), said, next, beyond }
    }
}

fn class_name(class: Class) -> String {
    let name = serde_json::to_value(class).unwrap();
    format!("{} ({})", name.as_str().unwrap(), class.exit_code())
}

/// When the failed step began: the time to report a fault does not include the steps before it.
fn started(ended: &Ended) -> Duration {
    let first = ended.error().lines().next().unwrap_or_default();
    let mut words = first.split(' ').skip_while(|word| *word != "step").skip(1);
    let (Some(step), host) = (words.next(), words.nth(2)) else { return Duration::ZERO };
    let begins = host.map_or_else(|| format!("{step} begins"), |host| format!("{step}@{host} begins"));
    let line = ended.err.lines().find(|line| line.contains(&begins)).unwrap_or_default();
    let seconds = line.trim_start().split('s').next().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(0.0))
}

/// What differs from run to run and from machine to machine.
fn redact(simulation: &Simulation, text: &str) -> String {
    let root = simulation.path("").display().to_string();
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let text = text.replace(root.trim_end_matches('/'), "DIR").replace(&format!("on {machine})"), "on HOST)");
    let mut before = "";
    let mut words = Vec::new();
    for word in text.split(' ') {
        // The word after "within" is the rest of a timeout, the one after "for" the elapsed
        // minutes.
        let placed = matches!(before, "line" | "column" | "process" | "within")
            || (before == "for" && word.parse::<u32>().is_ok());
        // The measured clock skew depends on the round trip to the host.
        let measured = before == "is" && word.parse::<f64>().is_ok();
        words.push(if placed || measured || is_date(word) { "…".to_owned() } else { redact_word(word) });
        before = word;
    }
    words.join(" ").replace('|', "\\|")
}

fn is_date(word: &str) -> bool {
    let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    (core.len() == 10 && core.matches('-').count() == 2) || (core.ends_with('Z') && core.contains(':'))
}

/// Digests, the names of temporary files, ports and process ids; not the numbers that are always
/// the same.
fn redact_word(word: &str) -> String {
    const ALWAYS: [&str; 7] = ["600", "6443", "10250", "126", "127", "180", "125"];
    // Half of it is elsewhere where the paths in it are longer.
    if let Some((file, _)) = word.split_once("/artifacts.json:") {
        return format!("{file}/artifacts.json:…:…:");
    }
    let parts = word.split(|c: char| !c.is_ascii_alphanumeric());
    let changes = |part: &&str| {
        let number = part.len() > 2 && part.bytes().all(|byte| byte.is_ascii_digit()) && !ALWAYS.contains(part);
        let digest = part.len() == 64 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        number || digest || word.contains(&format!(".part-{part}"))
    };
    parts.filter(|part| !part.is_empty()).filter(changes).fold(word.to_owned(), |word, part| word.replace(part, "…"))
}

/// The most useful line of evidence: the last one that is not about the run itself.
fn evidence(screen: &str) -> Option<&str> {
    const ABOUT: [&str; 6] = ["$ ", "log: ", "not started", "also failed", "gave up after", "and "];
    let mut lines = screen.lines().rev().filter_map(|line| line.strip_prefix("  | "));
    lines.find(|line| !line.contains(" hosts failed: ") && !ABOUT.iter().any(|start| line.starts_with(start)))
}

/// Works the list off with some threads; a row that fails does not stop the others.
fn meet_all(faults: &[Fault]) -> (Vec<Row>, Vec<String>) {
    let queue = Mutex::new(faults.iter().enumerate());
    let done = Mutex::new((Vec::new(), Vec::new()));
    let work = || {
        loop {
            let next = queue.lock().unwrap().next();
            let Some((at, fault)) = next else { break };
            let mut met = fault.try_meet(TIMEOUTS[0]);
            if matches!(fault.expected, Expected::Fails(Class::Transient, _)) {
                met = met.or_else(|_| fault.try_meet(TIMEOUTS[1]));
            }
            match met {
                Ok(row) => done.lock().unwrap().0.push((at, row)),
                Err(why) => done.lock().unwrap().1.push(format!("=== {}: {why}", fault.name)),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL {
            scope.spawn(work);
        }
    });
    let (mut rows, wrong) = done.into_inner().unwrap();
    rows.sort_by_key(|(at, _)| *at);
    (rows.into_iter().map(|(_, row)| row).collect(), wrong)
}

#[test]
fn every_fault_is_told_and_nothing_is_lost() {
    let groups = [
        ("Hosts and the way to them", fault_hosts::faults()),
        ("The API server and what runs in the cluster", fault_cluster::faults()),
        ("This machine: files, artifacts, signals", fault_machine::faults()),
        ("Terraform, disks and tools", fault_root::faults()),
    ];
    // `TURNUP_FAULT=word` picks rows while one is being worked on.
    let picked = std::env::var("TURNUP_FAULT").unwrap_or_default();
    let mut text = String::new();
    let (mut times, mut wrong, mut count) = (Vec::new(), Vec::new(), 0);
    for (title, faults) in groups {
        let faults: Vec<Fault> = faults.into_iter().filter(|fault| fault.name.contains(&picked)).collect();
        count += faults.len();
        let (rows, failed) = meet_all(&faults);
        wrong.extend(failed);
        write!(text, "\n## {title}\n\n| fault | class (exit code) | what is said | next |\n|---|---|---|---|\n")
            .unwrap();
        for row in &rows {
            writeln!(text, "| {} | {} | {} | {} |", row.name, row.class, row.said, row.next).unwrap();
        }
        times.extend(rows.into_iter().map(|row| (row.beyond, row.name)));
    }
    assert!(wrong.is_empty(), "{} of {count} rows are wrong:\n{}", wrong.len(), wrong.join("\n\n"));
    times.sort();
    let (p95, _) = times[(times.len() * 95).div_ceil(100) - 1];
    let (worst, of) = times[times.len() - 1];
    say(&format!("{count} faults; beyond the timeout: p95 {p95:.1?}, the slowest {worst:.1?} ({of})"));
    assert!(p95 < SOON, "p95 is {p95:?}");
    if picked.is_empty() && can_make_hosts() {
        assert!(count >= 40, "only {count} faults");
        check_document(&text);
    }
}

/// The document is the text above its first heading of a group, which people write, and the tables,
/// which this test does.
fn check_document(tables: &str) {
    let old = fs_err::read_to_string(DOCUMENT).unwrap();
    let head = old.find("\n## ").map_or(old.as_str(), |at| &old[..at]);
    let new = format!("{}\n{tables}", head.trim_end());
    if std::env::var("INSTA_UPDATE").is_ok_and(|mode| mode == "always") {
        fs_err::write(DOCUMENT, &new).unwrap();
    } else {
        similar(&old, &new);
    }
}

fn similar(old: &str, new: &str) {
    let differs = old.lines().zip(new.lines()).find(|(old, new)| old != new);
    let how = "write it with INSTA_UPDATE=always and read what changed";
    assert!(differs.is_none() && old.lines().count() == new.lines().count(), "docs/faults.md: {differs:#?}; {how}");
}
