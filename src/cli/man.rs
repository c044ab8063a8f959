//! `turnup man`: man pages of all commands, made from the definitions of the command line.

use std::path::{Path, PathBuf};

use clap_mangen::Man;
use serde_json::json;

use super::Printer;
use crate::error::{Class, Context as _, Error, Result};

/// Below the options.
const NOTES: &str = "\
One page for each command that `turnup --help` shows: turnup.1, turnup-kconfig.1, turnup-kconfig-conf.1 and so on. `make install` writes
them to ~/.local/share/man/man1, where man looks for them.";

/// Writes man pages.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The directory to write to; it is made when it is missing
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Only this command and those below it, as in: turnup man --dir DIR kconfig
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command; `root` is the whole command line.
pub(super) fn run(args: &Args, root: clap::Command, printer: &Printer) -> Result<()> {
    let mut root = root.disable_help_subcommand(true);
    root.build();
    let mut command = &root;
    for name in &args.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            let known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            let error = Error::usage(format!("`{name}` is no command of `{}`", command.get_name()));
            match kconfig::suggest(name, known.into_iter()) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint("turnup --help shows all commands"),
            }
        })?;
    }
    let written = write_pages(command, &args.dir)?;
    if printer.is_json() {
        return printer.json(&json!({"schema": "turnup.man/1", "files": written}));
    }
    printer.line(&format!("{} man pages in {}", written.len(), args.dir.display()))
}

/// Writes the page of a command and of all below it that help shows; gives their paths.
fn write_pages(command: &clap::Command, dir: &Path) -> Result<Vec<PathBuf>> {
    let refused = || format!("cannot write man pages to {}", dir.display());
    fs_err::create_dir_all(dir).context_class(Class::Config, refused())?;
    let mut written = Vec::new();
    for (name, page) in pages(command)? {
        let path = dir.join(name);
        fs_err::write(&path, page).context_class(Class::Config, refused())?;
        written.push(path);
    }
    Ok(written)
}

/// The pages of a command and of all below it that help shows, by the names of their files. The
/// command has to be built.
fn pages(command: &clap::Command) -> Result<Vec<(String, Vec<u8>)>> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let mut page = Vec::new();
    Man::new(command.clone()).title(name.to_uppercase()).render(&mut page).context("a man page cannot be made")?;
    let mut all = vec![(format!("{name}.1"), page)];
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        all.extend(pages(below)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn every_command_that_help_shows_has_a_page_with_its_options() {
        let mut root = crate::cli::command().disable_help_subcommand(true);
        root.build();
        let pages = pages(&root).unwrap();
        let text = |name: &str| {
            let page = pages.iter().find(|(known, _)| known == name);
            String::from_utf8(page.unwrap_or_else(|| panic!("no {name}")).1.clone()).unwrap()
        };
        let check = text("turnup-kconfig-check.1");
        assert!(check.contains(".TH TURNUP-KCONFIG-CHECK") && check.contains("\\-\\-deny"), "{check}");
        assert!(check.contains("Exit codes"), "what stands below the options is in the page");
        for name in ["conf", "menuconfig", "check", "dialect", "merge", "diff", "explain", "fmt", "json"] {
            assert!(text(&format!("turnup-kconfig-{name}.1")).contains(".SH NAME"), "{name}");
        }
        assert!(!pages.iter().any(|(name, _)| name.contains("turnup-node")), "hidden commands have none");
    }
}
