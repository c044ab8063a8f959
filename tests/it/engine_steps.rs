//! Steps of a user's own: hooks in front of built-in steps, on hosts, with outputs as proof. The
//! hosts are directories here.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use turnup::exec::{Failure, Output, Run};
use turnup::phase::{
    Action, Check, Cx, Engine, HostAccess, HostFacts, Inputs, Manifest, Phase, PhaseHost, PlannedStep, Sink, Summary,
};
use turnup::state::Store;
use turnup::{Class, Result};

/// The examples of docs/steps.md: the files that they are, by path.
pub(crate) fn documented() -> Vec<(String, String)> {
    let text = fs_err::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/steps.md")).unwrap();
    let blocks = text.split("```").skip(1).step_by(2).map(|block| block.split_once('\n').unwrap().1);
    let named = |block: &str| {
        let line = block.lines().find(|line| line.starts_with("# ")).unwrap();
        (line.trim_start_matches("# ").to_owned(), block.to_owned())
    };
    blocks.map(named).collect()
}

#[test]
fn the_documented_steps_fit_into_the_phases() {
    let examples = documented();
    let phases: Vec<_> = examples.iter().filter(|(path, _)| path.ends_with("phase.toml")).collect();
    assert_eq!((phases.len(), examples.len()), (3, 6));
    for (path, own) in phases {
        let built_in = fs_err::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
        let manifest = Manifest::parse_for(path, &(built_in + own), &["control-plane", "worker"]).unwrap();
        let script = &manifest.steps.last().unwrap().run[0];
        assert!(examples.iter().any(|(path, _)| path == script), "docs/steps.md does not show {script}");
    }
}

/// A built-in step that always succeeds and records that it ran.
struct Quiet(Arc<Mutex<Vec<String>>>, &'static str);

impl Action for Quiet {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        Ok(Inputs::new())
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        Ok(Check::Ok)
    }

    fn run(&self, host: Option<&str>, _cx: &Cx) -> Result<()> {
        self.0.lock().unwrap().push(host.map_or_else(|| self.1.to_owned(), |host| format!("{}@{host}", self.1)));
        Ok(())
    }
}

/// Hosts that are directories of this machine: what is absolute there lies below them.
struct Near {
    dir: PathBuf,
    instances: BTreeMap<String, String>,
}

impl Near {
    fn moved(&self, host: &str, word: &str) -> String {
        let root = self.dir.join(host).display().to_string();
        if word.starts_with('/') { format!("{root}{word}") } else { word.replace("ROOT", &root) }
    }

    fn command(&self, host: &str, argv: &[String]) -> Run {
        let words = argv.iter().map(|word| self.moved(host, word));
        Run::new("env").args(words.skip(usize::from(argv[0] == "env"))).dir(self.dir.join(host))
    }
}

impl HostAccess for Near {
    fn variables(&self) -> Vec<(&'static str, OsString)> {
        vec![("KUBECONFIG", "the/kubeconfig".into())]
    }

    fn cluster(&self) -> String {
        "near".into()
    }

    fn makes_hosts(&self) -> bool {
        false
    }

    fn host(&self, host: &str) -> Result<Option<HostFacts>> {
        let facts = |instance: &String| HostFacts { address: format!("addr-{host}"), instance: instance.clone() };
        Ok(self.instances.get(host).map(facts))
    }

    fn copy(&self, host: &str, local: &Path, remote: &str, _mode: u32, _cx: &Cx) -> Result<()> {
        let there = PathBuf::from(self.moved(host, remote));
        fs_err::create_dir_all(there.parent().unwrap()).unwrap();
        fs_err::copy(local, there).unwrap();
        Ok(())
    }

    fn run(&self, host: &str, argv: &[String], cx: &Cx) -> Result<Result<Output, Failure>> {
        Ok(self.command(host, argv).log(cx.log_path()).output())
    }

    fn look(&self, host: &str, argv: &[String]) -> Result<Result<Output, Failure>> {
        // As the host itself would name the files.
        let root = self.dir.join(host).display().to_string();
        let plain = |text: &str| text.replace(&root, "");
        Ok(match self.command(host, argv).output() {
            Ok(output) => Ok(Output { stdout: plain(&output.stdout), ..output }),
            Err(Failure::Exited { code, mut ended }) => {
                ended.stdout = plain(&ended.stdout);
                Err(Failure::Exited { code, ended })
            }
            Err(failure) => Err(failure),
        })
    }
}

/// A working directory, two hosts and a phase with two built-in steps.
struct Bench {
    dir: tempfile::TempDir,
    ran: Arc<Mutex<Vec<String>>>,
    instances: BTreeMap<String, String>,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for host in ["c0", "w0"] {
            fs_err::create_dir_all(dir.path().join(host)).unwrap();
        }
        let instances = ["c0", "w0"].map(|name| (name.to_owned(), "first".to_owned())).into();
        Self { dir, ran: Arc::default(), instances }
    }

    fn phase(&self, own: &str) -> Phase {
        let text = format!(
            "[[step]]\nname = \"push\"\nscope = \"host\"\n[[step]]\nname = \"api\"\nafter = [\"push\"]\n[[step]]\n{own}"
        );
        let hosts = [("c0", "control-plane"), ("w0", "worker")];
        let hosts = hosts.map(|(name, role)| PhaseHost { name: name.into(), role: role.into() }).into();
        let mut phase = Phase::new("p", Manifest::parse("phase.toml", &text).unwrap(), hosts)
            .with("push", Quiet(Arc::clone(&self.ran), "push"))
            .with("api", Quiet(Arc::clone(&self.ran), "api"));
        phase.work_dir = self.dir.path().into();
        phase.host_access = Some(Arc::new(Near { dir: self.dir.path().into(), instances: self.instances.clone() }));
        phase
    }

    fn store(&self) -> Store {
        Store::open(self.dir.path().join("cluster")).unwrap()
    }

    fn run(&self, own: &str) -> Result<Summary> {
        let store = self.store();
        let lock = store.lock("test").unwrap();
        Engine::new(&store, &lock, Sink::null()).first_wait(Duration::from_millis(10)).run(&self.phase(own))
    }

    fn plan(&self, own: &str, step: &str) -> Vec<String> {
        let all = Engine::plan(&self.store(), &self.phase(own), None).unwrap().steps;
        let line = |planned: &PlannedStep| {
            let changes = planned.preview.changes.iter();
            let changes: Vec<String> = changes.map(|change| format!("{change} {}", change.lines.join(" "))).collect();
            format!("{:?} {}: {} {}", planned.decision, planned.id, planned.why, changes.join("; "))
        };
        all.iter().filter(|planned| planned.step == step).map(line).collect()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, text).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs_err::set_permissions(path, mode).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs_err::read_to_string(self.dir.path().join(path)).unwrap()
    }

    fn error(&self, own: &str) -> String {
        self.run(own).unwrap_err().render().replace(&self.dir.path().display().to_string(), "DIR")
    }
}

#[test]
fn what_a_step_made_is_its_proof() {
    let bench = Bench::new();
    let own = "name = \"list\"\nrun = [\"sh\", \"-c\", \"echo one >list; echo ran >>times\"]\noutputs = [\"list\"]\n";
    assert_eq!(bench.run(own).unwrap().ran, 4);
    assert_eq!(bench.run(own).unwrap().ran, 0);
    bench.write("list", "two\n");
    assert_eq!(
        bench.plan(own, "list"),
        ["Run p/list: outputs gone: list is not what the step made \
          run command sh -c 'echo one >list; echo ran >>times' + list"]
    );
    bench.run(own).unwrap();
    fs_err::remove_file(bench.dir.path().join("list")).unwrap();
    assert!(bench.plan(own, "list")[0].contains("outputs gone: list is not there"));
    bench.run(own).unwrap();
    assert_eq!((bench.read("list").as_str(), bench.read("times").as_str()), ("one\n", "ran\nran\nran\n"));
    let more = own.replace("[\"list\"]", "[\"list\", \"times\"]");
    assert!(bench.plan(&more, "list")[0].contains("the expected content of times is not known yet"));
}

#[test]
fn a_step_that_does_not_make_what_it_says_has_failed() {
    let bench = Bench::new();
    insta::assert_snapshot!(bench.error("name = \"list\"\nrun = [\"true\"]\noutputs = [\"list\"]\n"));
}

#[test]
fn a_failed_hook_stops_what_waits_for_it_and_nothing_else() {
    let bench = Bench::new();
    let own = "name = \"gate\"\nwhere = \"host\"\nroles = [\"worker\"]\nbefore = [\"push\"]\n\
               run = [\"sh\", \"-c\", \"echo the disk is too small; exit 3\"]\n";
    let error = bench.run(own).unwrap_err();
    assert_eq!(error.class(), Class::Permanent);
    insta::assert_snapshot!(error.render().replace(&bench.dir.path().display().to_string(), "DIR"));
    assert_eq!(*bench.ran.lock().unwrap(), ["push@c0"], "the other host goes on");
}

#[test]
fn a_script_runs_on_its_hosts_with_what_it_has_to_know_and_leaves_nothing() {
    let bench = Bench::new();
    bench.write(
        "scripts/tune.sh",
        "#!/bin/sh\necho \"$1 $TURNUP_CLUSTER $TURNUP_PHASE/$TURNUP_STEP $TURNUP_HOST $TURNUP_ROLE $TURNUP_ADDRESS\" >made\n",
    );
    let own = "name = \"tune\"\nwhere = \"host\"\nhosts = [\"w*\"]\nbefore = [\"push\"]\n\
               run = [\"scripts/tune.sh\", \"fast\"]\noutputs = [\"/made\"]\n";
    assert_eq!(bench.run(own).unwrap().ran, 4);
    assert_eq!(bench.read("w0/made"), "fast near p/tune w0 worker addr-w0\n");
    assert!(!bench.dir.path().join("c0/made").exists());
    assert!(!bench.dir.path().join("w0/opt/turnup/steps/p-tune").exists(), "the script was left there");
    assert_eq!(bench.run(own).unwrap().ran, 0);
    // Another script is another command, another machine has nothing yet, and a lost file is
    // missed.
    bench.write("scripts/tune.sh", "#!/bin/sh\necho again >made\n");
    assert_eq!(bench.run(own).unwrap().ran, 1);
    fs_err::remove_file(bench.dir.path().join("w0/made")).unwrap();
    assert_eq!(
        bench.plan(own, "tune"),
        ["Run p/tune@w0: outputs gone: /made is not there run command on w0 scripts/tune.sh fast + /made"]
    );
    assert_eq!(bench.run(own).unwrap().ran, 1);
    let moved = Bench { instances: [("c0".into(), "first".into()), ("w0".into(), "second".into())].into(), ..bench };
    assert_eq!(moved.run(own).unwrap().ran, 1);
    assert_eq!(moved.read("w0/made"), "again\n");
}

#[test]
fn a_step_here_for_each_host_knows_which() {
    let bench = Bench::new();
    let own = "name = \"note\"\nscope = \"host\"\noutputs = [\"notes/{host}\"]\n\
               run = [\"sh\", \"-c\", \"mkdir -p notes; echo $TURNUP_ADDRESS $KUBECONFIG >notes/$TURNUP_HOST\"]\n";
    bench.run(own).unwrap();
    assert_eq!(bench.read("notes/c0"), "addr-c0 the/kubeconfig\n");
    assert_eq!(bench.read("notes/w0"), "addr-w0 the/kubeconfig\n");
    assert_eq!(bench.run(own).unwrap().ran, 0);
}

#[test]
fn exit_code_75_is_tried_again_and_others_are_not() {
    let bench = Bench::new();
    let own = "name = \"wait\"\nrun = [\"sh\", \"-c\", \"echo x >>tries; test $(wc -l <tries) -ge 3 || exit 75\"]\n";
    bench.run(own).unwrap();
    assert_eq!(bench.read("tries"), "x\nx\nx\n");
    let hopeless = "name = \"wait\"\nrun = [\"sh\", \"-c\", \"echo x >>others; exit 5\"]\n";
    assert_eq!(bench.run(hopeless).unwrap_err().class(), Class::Permanent);
    assert_eq!(bench.read("others"), "x\n");
    let never = format!("{own}retry = []\n").replace("-ge 3", "-ge 30");
    assert_eq!(bench.run(&never).unwrap_err().class(), Class::Transient);
    assert_eq!(bench.read("tries").lines().count(), 4);
}

#[test]
fn a_host_that_is_not_there_is_a_mistake() {
    let bench = Bench::new();
    insta::assert_snapshot!(bench.error("name = \"tune\"\nwhere = \"host\"\nhosts = [\"w1\"]\nrun = [\"true\"]\n"));
}
