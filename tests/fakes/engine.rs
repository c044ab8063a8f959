//! Drives the engine through a fake phase, so that tests can kill it, interrupt it and start it
//! again.
//!
//! `fake-engine DIR SCENARIO [ARGUMENT]`. Effects are files below `DIR/out`; every run of a step
//! adds a line to `DIR/ran`. Variables say what else: `FAKE_FAIL` (ids that fail, divided by
//! commas), `FAKE_PAUSE` (milliseconds that a step takes), `FAKE_MAX_DURATION` (seconds for the
//! run), `FAKE_BARS` (terminal output instead of JSON). It is a test's tool and knows no cluster.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use turnup::exec::{OnDeath, signals};
use turnup::phase::{Action, Check, Cx, Engine, Inputs, Manifest, Phase, PhaseHost};
use turnup::report::{DisplayMode, Reporter};
use turnup::state::Store;
use turnup::{Error, Result};

const PHASE: &str = r#"
[[step]]
name = "first"
summary = "once, before all hosts"
[[step]]
name = "host"
summary = "for each host"
scope = "host"
after = ["first"]
[[step]]
name = "last"
summary = "once, after all hosts"
after = ["host"]
"#;

const ONE_STEP: &str = "[[step]]\nname = \"child\"\nsummary = \"runs a child\"\n";

/// Makes a file. Running it twice gives the same file.
struct MakeFile {
    dir: PathBuf,
    name: &'static str,
}

impl MakeFile {
    fn id(&self, host: Option<&str>) -> String {
        host.map_or_else(|| self.name.to_owned(), |host| format!("{}@{host}", self.name))
    }
}

impl Action for MakeFile {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        Ok(Inputs::new().with("setting", fs_err::read(self.dir.join("setting")).unwrap_or_default()))
    }

    fn verify(&self, host: Option<&str>) -> Result<Check> {
        let file = self.dir.join("out").join(self.id(host));
        Ok(if file.is_file() { Check::Ok } else { Check::Drifted(format!("{} is not there", self.id(host))) })
    }

    fn run(&self, host: Option<&str>, cx: &Cx) -> Result<()> {
        cx.progress("writing");
        cx.sleep(Duration::from_millis(number("FAKE_PAUSE").unwrap_or(0)))?;
        if std::env::var("FAKE_FAIL").is_ok_and(|ids| ids.split(',').any(|id| id == self.id(host))) {
            return Err(Error::permanent("this host was told to fail").evidence("told by FAKE_FAIL"));
        }
        let mut ran = fs_err::OpenOptions::new().append(true).create(true).open(self.dir.join("ran"))?;
        writeln!(ran, "{}", self.id(host))?;
        fs_err::write(self.dir.join("out").join(self.id(host)), "made")?;
        cx.milestone(format!("{} made", self.id(host)));
        Ok(())
    }
}

/// Runs a program and waits for it.
struct RunChild {
    dir: PathBuf,
    program: String,
    on_death: OnDeath,
    grace: Duration,
}

impl Action for RunChild {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        Ok(Inputs::new())
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        Ok(Check::Ok)
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let run = cx.command(&self.program).dir(&self.dir).on_death(self.on_death).grace(self.grace);
        run.stream(|_, line| cx.progress(line)).map(drop).map_err(Error::from)
    }
}

fn run(dir: &Path, scenario: &str, argument: Option<String>) -> Result<()> {
    signals::install()?;
    fs_err::create_dir_all(dir.join("out"))?;
    let store = Store::open(dir.join("state"))?;
    let lock = store.lock("fake-engine")?;
    let reporter =
        Reporter::start(DisplayMode::detect(std::env::var_os("FAKE_BARS").is_none()), "fake-engine", "fake", &[]);
    reporter.keep(store.keep_events(&lock, "fake-engine")?)?;
    let mut engine = Engine::new(&store, &lock, reporter.sink()).first_wait(Duration::from_millis(10));
    let phase = match scenario {
        "sweep" => {
            engine = engine.parallel(1);
            files(dir, &["h0", "h1"])
        }
        "many" => {
            let count: u32 = argument.and_then(|count| count.parse().ok()).ok_or_else(|| Error::usage("how many?"))?;
            let names: Vec<String> = (0..count).map(|at| format!("worker-{at}")).collect();
            files(dir, &names.iter().map(String::as_str).collect::<Vec<_>>())
        }
        "wide" => files(dir, &["h0", "h1", "h2", "h3", "h4", "h5"]),
        "child" | "child-term" => {
            let (on_death, grace) = if scenario == "child" {
                (OnDeath::Kill, Duration::from_secs(1))
            } else {
                (OnDeath::Terminate, Duration::from_mins(1))
            };
            let program = argument.ok_or_else(|| Error::usage("which child?"))?;
            let action = RunChild { dir: dir.into(), program, on_death, grace };
            Phase::new("fake", Manifest::parse("phase.toml", ONE_STEP)?, Vec::new()).with("child", action)
        }
        "hold" => {
            signals::sleep(Duration::from_mins(10))?;
            return Ok(());
        }
        other => return Err(Error::usage(format!("no scenario {other}"))),
    };
    let result = engine.run(&phase);
    drop(engine);
    let finished = reporter.finish(result.is_ok(), number("FAKE_MAX_DURATION").map(Duration::from_secs));
    result?;
    finished.judge()
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn files(dir: &Path, hosts: &[&str]) -> Phase {
    let manifest = Manifest::parse("phase.toml", PHASE).unwrap_or_default();
    let hosts = hosts.iter().map(|name| PhaseHost { name: (*name).into(), role: "worker".into() }).collect();
    let make = |name| MakeFile { dir: dir.into(), name };
    Phase::new("fake", manifest, hosts)
        .with("first", make("first"))
        .with("host", make("host"))
        .with("last", make("last"))
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(dir), Some(scenario)) = (arguments.next(), arguments.next()) else { return ExitCode::from(2) };
    match run(Path::new(&dir), &scenario, arguments.next()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is closed: the message cannot be delivered.
            let _closed = writeln!(anstream::stderr(), "{}", error.render());
            ExitCode::from(error.class().exit_code())
        }
    }
}
