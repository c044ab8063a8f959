//! What is measured: one tool at one piece of work, in a directory that is prepared for it.

use std::path::{Path, PathBuf};

use reference::{Arch, Counter, ForkTree, Job, Python, Tool, Tree, Variant};

/// One tool at one piece of work.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) counter: Counter,
    /// An interpreter's instructions are counted for minutes, and tell little.
    pub(crate) is_interpreted: bool,
    /// Where it runs.
    _dir: tempfile::TempDir,
    /// A tree in other words, where the tool wants one.
    _tree: Option<tempfile::TempDir>,
}

/// A mode on a tree.
pub(crate) struct Work {
    conf: Tool,
    root: PathBuf,
    mode: String,
    env: Vec<(String, String)>,
    /// What lies there as `.config` at the start.
    config: Option<Vec<u8>>,
}

impl Work {
    /// On a tree of Linux, with its whole default configuration where the mode reads one.
    pub(crate) fn new(tree: &Tree, arch: Arch, variant: Variant, mode: &str) -> Self {
        let env = tree.env(arch, variant);
        let config = matches!(mode, "olddefconfig" | "listnewconfig").then(|| {
            let small = tree.defconfigs(arch).pop().unwrap();
            let whole = tree.conf().run(&Job::new(&format!("--defconfig={}", small.display()), env.clone()));
            assert!(!whole.config().is_empty(), "the C tool made no configuration");
            whole.config().to_vec()
        });
        Self { conf: tree.conf(), root: tree.root(variant).to_owned(), mode: mode.to_owned(), env, config }
    }

    /// On a tree of our own, with the C tool of that of Linux.
    pub(crate) fn of_tree(tree: &Tree, root: &Path, mode: &str) -> Self {
        let mut env = tree.env(Arch::X86, Variant::NoShell);
        env.retain(|(name, _)| name != "srctree");
        env.push(("srctree".to_owned(), root.to_str().unwrap().to_owned()));
        Self { conf: tree.conf(), root: root.to_owned(), mode: mode.to_owned(), env, config: None }
    }

    /// On the tree of a fork, with its own C tool.
    pub(crate) fn of_fork(tree: &ForkTree, mode: &str) -> Self {
        let path = std::env::var("PATH").unwrap_or_default();
        let pairs =
            [("PATH", path.as_str()), ("srctree", tree.root().to_str().unwrap()), ("CC", "gcc"), ("ARCH", "arm")];
        let env = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Self { conf: tree.conf(), root: tree.root().to_owned(), mode: mode.to_owned(), env, config: None }
    }

    pub(crate) fn c(&self) -> Subject {
        self.subject("C", &self.conf, &[])
    }

    pub(crate) fn ours(&self) -> Subject {
        self.subject("turnup", &ours(), &[])
    }

    /// Looks for what is wrong with the tree; the mode does not matter.
    pub(crate) fn ours_checking(&self) -> Subject {
        let check = Tool::new("turnup", Path::new(env!("CARGO_BIN_EXE_turnup")), &["kconfig", "check", "--quiet"]);
        self.subject_of("turnup kconfig check", &check, &Job::with_arguments(&["Kconfig"], Vec::new()), &[])
    }

    /// With the answers of `$(shell)` remembered from run to run.
    pub(crate) fn ours_with_cache(&self, cache: &Path) -> Subject {
        self.subject("turnup, warm cache", &ours(), &[(SHELL_CACHE, cache.to_str().unwrap())])
    }

    /// kconfiglib 14.1.0 cannot read `modules`, which Linux has since 5.13: it gets a copy of the
    /// tree with the older words.
    pub(crate) fn kconfiglib(&self, python: &Python) -> Subject {
        let copy = tempfile::tempdir().unwrap();
        duct::cmd!("cp", "-r", self.root.join("."), copy.path()).run().unwrap();
        let file = copy.path().join("kernel/module/Kconfig");
        let text = fs_err::read_to_string(&file).unwrap();
        fs_err::write(file, text.replace("\n\tmodules\n", "\n\toption modules\n")).unwrap();
        let script = format!("import {0}; import sys; sys.argv[1:] = ['Kconfig']; {0}.main()", self.mode);
        let tool = Tool::new("kconfiglib", python.program(), &["-B", "-c", &script]);
        let env = [("srctree", copy.path().to_str().unwrap()), ("PYTHONPATH", python.packages().to_str().unwrap())];
        let subject = self.subject("kconfiglib", &tool, &env);
        Subject { is_interpreted: true, _tree: Some(copy), ..subject }
    }

    fn subject(&self, name: &str, tool: &Tool, more: &[(&str, &str)]) -> Subject {
        self.subject_of(name, tool, &Job::new(&format!("--{}", self.mode), Vec::new()), more)
    }

    fn subject_of(&self, name: &str, tool: &Tool, job: &Job, more: &[(&str, &str)]) -> Subject {
        let dir = tempfile::tempdir().unwrap();
        if let Some(config) = &self.config {
            fs_err::write(dir.path().join(".config"), config).unwrap();
        }
        let mut env = self.env.clone();
        env.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        env.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let (program, args) = tool.command(job.args());
        let counter = Counter { program: program.to_owned(), args, env, dir: dir.path().to_owned() };
        Subject { name: name.to_owned(), counter, is_interpreted: false, _dir: dir, _tree: None }
    }
}

/// The variable that names the directory in which answers are remembered.
const SHELL_CACHE: &str = "KCONFIG_SHELL_CACHE";

fn ours() -> Tool {
    match std::env::var_os("CONF_UNDER_TEST") {
        Some(program) => Tool::new("the tool under test", Path::new(&program), &[]),
        None => Tool::new("turnup", Path::new(env!("CARGO_BIN_EXE_turnup")), &["kconfig", "conf"]),
    }
}
