//! Forks of Linux's Kconfig that Debian packages with their sources: their trees, and the `conf`
//! that is built from each.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cache::{self, Making};
use crate::tool::Tool;
use crate::{Missing, packages, program, say};

const LIMIT: Duration = Duration::from_mins(5);

/// A project with a Kconfig of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// U-Boot, of 2023.01 in Debian 12.
    UBoot,
    /// `BusyBox`, of 1.35 in Debian 12.
    BusyBox,
}

/// A tree with its `conf`.
#[derive(Clone, Debug)]
pub struct ForkTree {
    root: PathBuf,
    conf: PathBuf,
    fork: Fork,
}

impl Fork {
    /// The name of the source package.
    #[must_use]
    pub fn package(self) -> &'static str {
        match self {
            Self::UBoot => "u-boot",
            Self::BusyBox => "busybox",
        }
    }

    /// What is taken out of the sources.
    fn wanted(self) -> &'static [&'static str] {
        match self {
            Self::UBoot => &["*/Kconfig*", "*/Makefile", "*/scripts/*", "*/configs/*"],
            // Its Config.in files are made from comments in its sources.
            Self::BusyBox => &["*"],
        }
    }

    /// How `conf` is built in the directory of its sources.
    fn build(self) -> &'static str {
        match self {
            Self::UBoot => {
                "bison -t -l -o zconf.tab.c zconf.y && flex -L -o zconf.lex.c zconf.l && \
                 gcc -O2 -w -I. -DCONFIG_='\"CONFIG_\"' -o conf conf.c zconf.tab.c"
            }
            Self::BusyBox => {
                "for file in *_shipped; do cp $file ${file%_shipped}; done && gcc -O2 -w -I. -o conf conf.c zconf.tab.c"
            }
        }
    }
}

impl ForkTree {
    /// The tree: from the cache, else from the distribution.
    pub fn get(fork: Fork) -> Result<Self, Missing> {
        let making = Making::begin()?;
        let key = format!("source-{}", fork.package());
        let root = making.directory(&format!("{key}/tree"), |made| {
            for tool in ["tar", "xz", "bzip2"] {
                program(tool)?;
            }
            say(&format!("fetching the sources of {} from the distribution; this is done once", fork.package()));
            let work = making.work()?;
            let archive = packages::fetch_source(fork.package(), &cache::root()?, work.path())?;
            unpack(&archive, fork.wanted(), made);
            if fork == Fork::BusyBox {
                duct::cmd!("sh", "scripts/gen_build_files.sh", ".", ".").dir(made).stdout_null().run().unwrap();
            }
            Ok(())
        })?;
        let tools = making.directory(&format!("{key}/tools"), |made| build(fork, &root, made))?;
        Ok(Self { root, conf: tools.join("conf"), fork })
    }

    /// Where the tree is.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The `conf` of this very tree.
    #[must_use]
    pub fn conf(&self) -> Tool {
        Tool::new(format!("conf of {}", self.fork.package()), &self.conf, &[])
    }

    /// Some of its default configurations, from the first in the alphabet to the last.
    #[must_use]
    pub fn defconfigs(&self, count: usize) -> Vec<PathBuf> {
        let files = fs_err::read_dir(self.root.join("configs")).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> = files.filter(|path| path.to_string_lossy().ends_with("_defconfig")).collect();
        files.sort();
        let step = (files.len() / count.max(1)).max(1);
        files.into_iter().step_by(step).take(count).collect()
    }
}

fn unpack(archive: &Path, wanted: &[&str], into: &Path) {
    let tar = ["-xf", archive.to_str().unwrap(), "--strip-components=1", "--wildcards", "-C", into.to_str().unwrap()];
    duct::cmd("tar", tar.iter().chain(wanted)).run().unwrap();
}

fn build(fork: Fork, tree: &Path, into: &Path) -> Result<(), Missing> {
    for tool in ["gcc", "flex", "bison"] {
        program(tool)?;
    }
    let work = tempfile::tempdir().unwrap();
    let sources = work.path().join("kconfig");
    duct::cmd!("cp", "-r", tree.join("scripts/kconfig"), &sources).run().unwrap();
    let run = duct::cmd!("sh", "-c", fork.build()).dir(&sources).stdin_null().stderr_capture().unchecked();
    let handle = run.start().unwrap();
    let output = handle.wait_timeout(LIMIT).unwrap();
    let output = output.unwrap_or_else(|| {
        handle.kill().unwrap();
        panic!("building conf of {} takes longer than {LIMIT:?}", fork.package())
    });
    let conf = sources.join("conf");
    assert!(conf.exists(), "no conf was built: {}", String::from_utf8_lossy(&output.stderr));
    fs_err::copy(conf, into.join("conf")).unwrap();
    Ok(())
}
