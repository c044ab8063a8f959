//! `turnup completions SHELL`: completion scripts, made from the definitions of the command line.

use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::{Generator as _, Shell};
use serde_json::json;

use super::Printer;
use crate::error::{Class, Context as _, Error, Result};

/// Below the options.
const NOTES: &str = "\
Each shell loads the script from a directory of its own; `make install` writes these three:
    bash   ~/.local/share/bash-completion/completions/turnup
    zsh    ~/.local/share/zsh/site-functions/_turnup, a directory that has to be in fpath
    fish   ~/.config/fish/completions/turnup.fish";

/// Writes completion scripts.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The shell that loads the script
    #[arg(value_enum)]
    shell: Shell,
    /// Write the script to this file instead of standard output; its directory is made when it is
    /// missing
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// Runs the command; `root` is the whole command line.
pub(super) fn run(args: &Args, root: &Command, printer: &Printer) -> Result<()> {
    let script = script(args.shell, root)?;
    let Some(path) = &args.to else {
        if printer.is_json() {
            let error = Error::usage("--output json: a completion script is no JSON");
            return Err(error.hint(format!("turnup completions {} --to FILE", args.shell)));
        }
        return printer.line(script.trim_end());
    };
    write_script(path, &script)?;
    if printer.is_json() {
        let shell = args.shell.to_string();
        return printer.json(&json!({"schema": "turnup.completions/1", "shell": shell, "file": path}));
    }
    printer.line(&format!("completions of {} in {}", args.shell, path.display()))
}

fn write_script(path: &Path, script: &str) -> Result<()> {
    let refused = || format!("cannot write completions to {}", path.display());
    if let Some(dir) = path.parent() {
        fs_err::create_dir_all(dir).context_class(Class::Config, refused())?;
    }
    fs_err::write(path, script).context_class(Class::Config, refused())
}

/// The script for one shell.
fn script(shell: Shell, root: &Command) -> Result<String> {
    let mut command = visible(root);
    command.set_bin_name("turnup");
    command.build();
    let mut script = Vec::new();
    shell.try_generate(&command, &mut script).context("the completion script cannot be made")?;
    String::from_utf8(script).context("the completion script is not UTF-8")
}

/// The commands that help shows. The generators would also offer the hidden ones, which only turnup
/// itself runs.
fn visible(root: &Command) -> Command {
    Command::new("turnup")
        .version(env!("CARGO_PKG_VERSION"))
        .args(root.get_arguments())
        .subcommands(root.get_subcommands().filter(|below| !below.is_hide_set()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_shell_gets_the_commands_that_help_shows_and_no_hidden_one() {
        let root = crate::cli::command();
        for shell in Shell::value_variants() {
            let script = script(*shell, &root).unwrap();
            for word in ["support-bundle", "why-not", "rootfs", "max-failures"] {
                assert!(script.contains(word), "{shell}: no {word}");
            }
            assert!(
                !script.contains("finish-join") && !script.contains("csr-approver"),
                "{shell} offers a hidden command"
            );
        }
    }
}
