//! A tree of Linux, with no more of it than Kconfig and `make …config` read, and the C tool that
//! its own Makefile builds.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::cache::{self, Making};
use crate::series::Series;
use crate::tool::Tool;
use crate::{Missing, noshell, packages, program, say};

/// What is taken out of the package: Kconfig files, Makefiles, scripts, configurations.
const WANTED: [&str; 7] = [
    "*/Kconfig*",
    "*/Makefile*",
    "*/Kbuild*",
    "linux-source-*/scripts/*",
    "*/arch/*/configs/*",
    "linux-source-*/kernel/configs/*",
    "linux-source-*/tools/include/*",
];
const LIMIT: Duration = Duration::from_mins(5);

/// What kconfig calls SRCARCH.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arch {
    /// Both widths of Intel's.
    X86,
    /// Arm, 64 bits.
    Arm64,
    /// RISC-V, both widths.
    Riscv,
}

/// Which of a tree's two forms is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// As it comes: asks the compiler by `$(shell)`.
    Whole,
    /// Answers in place of questions: no process is started, so that only Kconfig is measured and
    /// compared.
    NoShell,
}

/// An unpacked tree with its C tool.
#[derive(Clone, Debug)]
pub struct Tree {
    /// `linux-source-6.1_6.1.176-1`
    key: String,
    /// `6.1.176`, as kbuild exports it.
    version: String,
    whole: PathBuf,
    noshell: PathBuf,
    conf: PathBuf,
}

impl Arch {
    /// The name of its directory.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86",
            Self::Arm64 => "arm64",
            Self::Riscv => "riscv",
        }
    }
}

impl Tree {
    /// The tree of this series: from the cache when one is there (whatever is newer in the
    /// distribution), else from the distribution.
    pub fn get(series: Series) -> Result<Self, Missing> {
        /// Trees found or found missing by this process.
        static KNOWN: Mutex<Vec<(Series, Result<Tree, Missing>)>> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tree)) = known.iter().find(|(of, _)| *of == series) {
            return tree.clone();
        }
        let tree = Self::obtain(series);
        if let Ok(tree) = &tree {
            say(&format!("comparing with {}", tree.key));
        }
        known.push((series, tree.clone()));
        tree
    }

    fn obtain(series: Series) -> Result<Self, Missing> {
        let making = Making::begin()?;
        let root = cache::root()?;
        let present = fs_err::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name());
        let present = present.map(|name| name.to_string_lossy().into_owned()).filter(|name| series.has(name));
        let present = present.filter(|name| root.join(name).join("tree").is_dir());
        let key = match present.max_by_key(|name| (Series::version_in(name), name.clone())) {
            Some(key) => key,
            None => Self::fetch(series, &root, &making)?,
        };
        let whole = root.join(&key).join("tree");
        let noshell = making.directory(&format!("{key}/no-shell-{}", noshell::EDITION), |made| {
            noshell::make(&whole, made);
            Ok(())
        })?;
        let tools = making.directory(&format!("{key}/tools"), |made| build(&whole, made))?;
        Ok(Self { version: kernel_version(&whole), conf: tools.join("conf"), key, whole, noshell })
    }

    fn fetch(series: Series, root: &Path, making: &Making) -> Result<String, Missing> {
        for tool in ["dpkg-deb", "tar", "xz"] {
            program(tool)?;
        }
        let work = making.work()?;
        say(&format!("fetching Linux ({series:?}) from the distribution; this is done once"));
        let package = packages::fetch(series, root, work.path())?;
        making.directory(&format!("{}/tree", package.key), |made| {
            unpack(&package.file, made);
            Ok(())
        })?;
        Ok(package.key)
    }

    /// The package and its version.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// As kbuild exports it in KERNELVERSION.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The directory that `srctree` names.
    #[must_use]
    pub fn root(&self, variant: Variant) -> &Path {
        match variant {
            Variant::Whole => &self.whole,
            Variant::NoShell => &self.noshell,
        }
    }

    /// The C tool of this very tree.
    #[must_use]
    pub fn conf(&self) -> Tool {
        Tool::new(format!("conf of {}", self.version), &self.conf, &[])
    }

    /// The kernel's own tests of Kconfig.
    #[must_use]
    pub fn suite(&self) -> PathBuf {
        self.whole.join("scripts/kconfig/tests")
    }

    /// The architecture's default configurations, sorted.
    #[must_use]
    pub fn defconfigs(&self, arch: Arch) -> Vec<PathBuf> {
        let dir = self.whole.join("arch").join(arch.name()).join("configs");
        let files = fs_err::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> = files.filter(|path| path.to_string_lossy().ends_with("defconfig")).collect();
        files.sort();
        files
    }

    /// The environment that kbuild gives to `conf`.
    #[must_use]
    pub fn env(&self, arch: Arch, variant: Variant) -> Vec<(String, String)> {
        let compiler = match variant {
            Variant::NoShell => "gcc (no-shell) 14.2.0".to_owned(),
            Variant::Whole => duct::cmd!("gcc", "--version").read().unwrap().lines().next().unwrap().to_owned(),
        };
        let path = std::env::var("PATH").unwrap_or_default();
        let pairs = [
            ("PATH", path.as_str()),
            ("LC_ALL", "C"),
            ("ARCH", arch.name()),
            ("SRCARCH", arch.name()),
            ("srctree", self.root(variant).to_str().unwrap()),
            ("KERNELVERSION", &self.version),
            ("CC_VERSION_TEXT", &compiler),
            ("CC", "gcc"),
            ("LD", "ld"),
            ("AR", "ar"),
            ("NM", "nm"),
            ("OBJCOPY", "objcopy"),
            ("OBJDUMP", "objdump"),
            ("STRIP", "strip"),
            ("HOSTCC", "gcc"),
            ("HOSTCXX", "g++"),
            ("CLANG_FLAGS", ""),
            ("RUSTC", "no-rustc-here"),
            ("RUSTC_VERSION_TEXT", ""),
            ("BINDGEN", "no-bindgen-here"),
            ("PAHOLE", "no-pahole-here"),
            ("PAHOLE_VERSION", "0"),
            ("PYTHON3", "python3"),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }
}

fn unpack(package: &Path, into: &Path) {
    let tar = ["-x", "--strip-components=1", "--wildcards", "-C", into.to_str().unwrap()];
    let tar: Vec<&str> = tar.iter().copied().chain(WANTED).collect();
    duct::cmd!("dpkg-deb", "--fsys-tarfile", package)
        .pipe(duct::cmd!("tar", "-xO", "--wildcards", "./usr/src/linux-source-*.tar.xz"))
        .pipe(duct::cmd!("xz", "-dc", "-T0"))
        .pipe(duct::cmd("tar", tar))
        .run()
        .unwrap();
}

/// Builds `conf` as a user would: by a `make allnoconfig` in a directory of its own.
fn build(tree: &Path, into: &Path) -> Result<(), Missing> {
    for tool in ["make", "gcc", "flex", "bison"] {
        program(tool)?;
    }
    let out = tempfile::tempdir().unwrap();
    let args = ["-s", "-C", tree.to_str().unwrap(), &format!("O={}", out.path().display()), "ARCH=x86", "allnoconfig"];
    let run = duct::cmd("make", args).stdin_null().stdout_null().stderr_capture().unchecked();
    let handle = run.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").start().unwrap();
    let output = handle.wait_timeout(LIMIT).unwrap();
    let output = output.unwrap_or_else(|| {
        handle.kill().unwrap();
        panic!("building conf of {} takes longer than {LIMIT:?}", tree.display())
    });
    let conf = out.path().join("scripts/kconfig/conf");
    assert!(conf.exists(), "make built no conf: {}", String::from_utf8_lossy(&output.stderr));
    fs_err::copy(conf, into.join("conf")).unwrap();
    Ok(())
}

/// What the Makefile makes of its first lines.
fn kernel_version(tree: &Path) -> String {
    let text = fs_err::read_to_string(tree.join("Makefile")).unwrap();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" ="));
        line.unwrap_or_default().trim().to_owned()
    };
    format!("{}.{}.{}{}", field("VERSION"), field("PATCHLEVEL"), field("SUBLEVEL"), field("EXTRAVERSION"))
}
