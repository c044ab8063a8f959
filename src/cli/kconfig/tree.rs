//! What all tools of `turnup kconfig` share: where a tree is, what its macros see, and how its
//! refusal is told.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use kconfig::dialect::Detected;
use kconfig::{Config, Diagnostics, Dialect, Env, Files as _, SearchPath, Tree, dotconfig, text};

use super::place::{Here, parse_dialect, shell};
use crate::cli::Printer;
use crate::error::{Class, Context as _, Error, Result};

/// Where the tree is and what it sees.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The tree")]
pub(super) struct TreeArgs {
    /// The directory of the tree, where files are looked for that are not here
    #[arg(long, value_name = "DIR", env = "srctree", hide_env_values = true)]
    srctree: Option<PathBuf>,
    /// A variable for the tree's macros and their commands, more than the environment's
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = parse_variable)]
    variables: Vec<(String, String)>,
    /// Refuse the tree if its macros run commands: $(shell) in an untrusted tree
    #[arg(long)]
    no_shell: bool,
    /// Whose rules count: linux-6.1, u-boot, buildroot, busybox, barebox, openwrt, coreboot,
    /// kconfiglib (zephyr, nuttx) or esp-idf, each with a version or without [default: what the
    /// tree says, else Linux's in version KERNELVERSION, or the newest]
    #[arg(long, value_name = "NAME", env = "KCONFIG_DIALECT", hide_env_values = true, value_parser = parse_dialect)]
    dialect: Option<Dialect>,
    #[command(flatten)]
    pub prefix: PrefixArgs,
}

/// What stands before names in .config files.
#[derive(Debug, clap::Args)]
pub(super) struct PrefixArgs {
    /// What stands before the names in .config files
    #[arg(long, value_name = "TEXT", env = "CONFIG_", hide_env_values = true, default_value = "CONFIG_")]
    pub prefix: String,
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some(("", _)) => Err("the name before `=` is empty".to_owned()),
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(format!("expected NAME=VALUE, as in {text}=x86")),
    }
}

impl TreeArgs {
    /// Loads the tree; its findings are printed when it is refused.
    pub(super) fn load(&self, path: &str, printer: &Printer) -> Result<Tree> {
        self.try_load(path)?.map_err(|found| {
            printer.coloured_remark(&render(&found, io::stderr().is_terminal()));
            refused(path, &found)
        })
    }

    /// Loads the tree, or gives what is wrong with it.
    pub(super) fn try_load(&self, path: &str) -> Result<Result<Tree, Diagnostics>> {
        let place = self.place(path)?;
        let env = self.env();
        let env = if self.no_shell { env } else { env.with_shell(shell(self.exports())) };
        Ok(Tree::load(path, &place, &env))
    }

    /// Whose rules the tree is read by, and why; it need not load.
    pub(super) fn detect(&self, path: &str) -> Result<Detected> {
        let place = self.place(path)?;
        Ok(kconfig::detect_dialect(path, &place, &self.env()))
    }

    /// Where the files are, when the top one is there.
    fn place(&self, path: &str) -> Result<SearchPath<'static>> {
        let place = SearchPath::new(&Here, self.srctree.as_ref().map(|dir| dir.display().to_string()));
        if let Err(error) = place.read(path) {
            let class = if error.kind() == io::ErrorKind::NotFound { Class::Config } else { Class::Permanent };
            let error = Error::new(class, format!("cannot read {path}")).source(error);
            return Err(error.hint("name the top file of the tree, or its directory with --srctree DIR"));
        }
        Ok(place)
    }

    fn env(&self) -> Env<'_> {
        let env = Env::new(|name| self.variable(name));
        match self.dialect {
            Some(dialect) => env.with_dialect(dialect),
            None => env.with_detection(),
        }
    }

    /// What commands see besides the environment.
    fn exports(&self) -> Vec<(String, String)> {
        let srctree = self.variable("srctree").map(|dir| ("srctree".to_owned(), dir));
        srctree.into_iter().chain(self.variables.iter().cloned()).collect()
    }

    fn variable(&self, name: &str) -> Option<String> {
        if let Some((_, value)) = self.variables.iter().rev().find(|(known, _)| known == name) {
            return Some(value.clone());
        }
        if name == "srctree" {
            return Some(self.srctree.as_ref().map_or_else(|| ".".to_owned(), |dir| dir.display().to_string()));
        }
        super::place::variable(name)
    }

    /// The directory below which all of the project's Kconfig files are.
    pub(super) fn directory(&self) -> &Path {
        self.srctree.as_deref().unwrap_or(Path::new("."))
    }

    /// A configuration with the values of a file: the given one, else the one that `KCONFIG_CONFIG`
    /// names or `.config` where there is one. Gives the file that was read.
    pub(super) fn configure<'t>(
        &self,
        tree: &'t Tree,
        file: Option<&Path>,
        printer: &Printer,
    ) -> Result<(Config<'t>, Option<PathBuf>)> {
        let mut config = Config::new(tree);
        let path = file.map_or_else(default_config, Path::to_owned);
        if file.is_none() && !path.exists() {
            return Ok((config, None));
        }
        let text = read_text(&path)?;
        for (line, finding) in dotconfig::read(&mut config, &text, &self.prefix.prefix).iter() {
            printer.remark(&format!("{}:{line}: {finding}", path.display()));
        }
        Ok((config, Some(path)))
    }
}

/// Where the C tools keep the configuration.
pub(super) fn default_config() -> PathBuf {
    std::env::var_os("KCONFIG_CONFIG").filter(|path| !path.is_empty()).map_or_else(|| ".config".into(), PathBuf::from)
}

/// A file that the user named.
pub(super) fn read_text(path: &Path) -> Result<String> {
    let bytes = fs_err::read(path).context_class(Class::Config, format!("cannot read {}", path.display()))?;
    Ok(text::from_bytes(bytes))
}

/// Pictures of findings, in colour on a terminal.
pub(super) fn render(found: &Diagnostics, colour: bool) -> String {
    found.render(!colour)
}

/// The error that ends a command whose tree does not load.
pub(super) fn refused(path: &str, found: &Diagnostics) -> Error {
    let errors = found.iter().filter(|finding| finding.level == kconfig::Level::Error).count();
    let noun = if errors == 1 { "error" } else { "errors" };
    let error = Error::permanent(format!("{path} is refused: {errors} {noun}"));
    match found.detected() {
        Some(detected) => error.hint(format!(
            "if these are not its rules, name others with --dialect NAME; it was read by {}",
            detected.explain()
        )),
        None => error,
    }
}
