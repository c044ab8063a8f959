//! The command line: one file a command, each an `Args` struct and a `run` function, nothing else.
//!
//! Commands return a result; only `main` here turns the last error into text and an exit code.
//! Nothing asks a question unless stdin is a terminal.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::error::{Class, Error, Result};

mod addons;
mod artifacts;
mod backup;
mod bench;
mod bootstrap;
mod certificates;
mod completions;
mod config;
mod doctor;
mod down;
mod events;
mod examples;
mod exec;
mod global;
mod kconfig;
mod keyset;
mod kubeconfig;
mod local;
mod logs;
mod man;
mod node;
mod node_backup;
mod node_restore;
mod phase_name;
mod plan;
mod printer;
mod render;
mod reset;
mod restore;
mod run;
mod session;
mod ssh;
mod state;
mod status;
mod support_bundle;
mod trust;
mod up;
mod user_data;
mod validate;

pub use global::{Global, OutputFormat};
pub use printer::Printer;

use global::parse_assignment;

/// Below the options of `turnup --help`.
const EXIT_CODES: &str = "\
Exit codes:
    0  done, or nothing to do
    1  failed, and would fail the same way again
    2  the command line is wrong
    3  the configuration is wrong or missing
    4  a precondition must be met first: a missing tool, a port in use, a full disk
    5  may pass by itself: run the same command again
    6  another turnup works on this cluster
   70  a defect of turnup
  130  interrupted; the same command goes on where it stopped";

/// Turns up Kubernetes clusters: a Kconfig tree, a wizard, three restartable phases.
#[derive(Debug, Parser)]
#[command(name = "turnup", version, after_help = EXIT_CODES, help_expected = true, arg_required_else_help = true)]
#[command(subcommand_required = true, max_term_width = 100)]
pub struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer the configuration's questions, or read and change single answers
    Config(config::Args),
    /// Show what `up` would do now, and why; changes nothing
    Plan(plan::Args),
    /// Write all that would be sent to Terraform, to the hosts and to the API server, as files to
    /// read, and stop
    Render(render::Args),
    /// Turn the cluster up: provision, bootstrap, addons, validate; goes on where it stopped
    Up(up::Args),
    /// Phase 1 alone: hosts, made by Terraform
    Provision(up::ProvisionArgs),
    /// Phase 2 alone: hosts become nodes
    Bootstrap(bootstrap::Args),
    /// Phase 3 alone: what runs in the cluster from the start
    Addons(addons::Args),
    /// Check that nodes, pods, Services and DNS work, and say why when not
    Validate(validate::Args),
    /// Show how the cluster stands: phases, nodes, addons, certificates, versions, who works on it
    Status(status::Args),
    /// Show what a run did, step by step, with its times; also one that goes on
    Events(events::Args),
    /// Show what the programs of a step said, on one host or on all
    Logs(logs::Args),
    /// Run a command as root on one host or on many, and show what it prints
    Exec(exec::Args),
    /// Open a shell on a host, or run a command there on this terminal
    Ssh(ssh::Args),
    /// Write an archive for a support request: logs, state, configuration; without secrets
    SupportBundle(support_bundle::Args),
    /// Renew the administrator's kubeconfig when needed, and print its path
    Kubeconfig(kubeconfig::Args),
    /// List every certificate: whose it is, who signed it, when it ends, who renews it
    Certificates(certificates::Args),
    /// Rotate authorities and keys: create, promote, distrust
    Keyset(keyset::Args),
    /// Backups of etcd: take one now, list, verify, download
    Backup(backup::Args),
    /// Give etcd back the content of the member that is left, or of a backup, on all control-plane
    /// hosts
    Restore(restore::Args),
    /// Write what a machine of your own has to be told at its first boot so that it joins by itself
    UserData(user_data::Args),
    /// Delete the cluster with all its data
    Down(down::Args),
    /// Make single hosts what they were before turnup; the cluster stays
    Reset(reset::Args),
    /// Look at this machine: tools, versions, what is missing and how to install it
    Doctor(doctor::Args),
    /// Binaries and images: list, fetch, verify, export, pin
    Artifacts(artifacts::Args),
    /// Time turnup next to kubeadm on this machine, milestone by milestone
    Bench(bench::Args),
    /// Tools for any Kconfig tree, Linux's too
    Kconfig(kconfig::Args),
    /// Write the completion script of a shell: bash, zsh, fish, elvish or powershell
    Completions(completions::Args),
    /// Write the man pages of all commands
    Man(man::Args),
    /// Look at and repair what turnup remembers of a cluster
    State(state::Args),
    /// List the local hosts of this machine, and remove those whose cluster's directory is gone
    Local(local::Args),
    /// What runs on a host
    #[command(hide = true)]
    Node(node::Args),
}

impl Command {
    /// Whose the directories are that decide what turnup does, before anything of them is read.
    fn look_around(&self, global: &Global, printer: &Printer) -> Result<()> {
        match self {
            // Any Kconfig tree, which the user names; what Terraform and ssh start in turnup's own
            // directories; what shells and package builds call anywhere and reads nothing there.
            Self::Kconfig(_) | Self::Local(_) | Self::Node(_) | Self::Completions(_) | Self::Man(_) => Ok(()),
            _ => trust::look_around(global, printer),
        }
    }

    fn run(self, global: &Global, printer: &Printer) -> Result<ExitCode> {
        self.look_around(global, printer)?;
        let done = match self {
            Self::Kconfig(args) => return kconfig::run(args, global, printer),
            Self::Config(args) => config::run(args, global, printer),
            Self::Plan(args) => plan::run(&args, global, printer),
            Self::Render(args) => render::run(&args, global, printer),
            Self::Up(args) => up::run(&args, global, printer),
            Self::Provision(args) => up::provision(&args, global, printer),
            Self::Bootstrap(args) => bootstrap::run(&args, global, printer),
            Self::Addons(args) => addons::run(&args, global, printer),
            Self::Validate(args) => validate::run(&args, global, printer),
            Self::Status(args) => status::run(&args, global, printer),
            Self::Events(args) => events::run(&args, global, printer),
            Self::Logs(args) => logs::run(&args, global, printer),
            Self::SupportBundle(args) => support_bundle::run(&args, global, printer),
            Self::Kubeconfig(args) => kubeconfig::run(&args, global, printer),
            Self::Certificates(args) => certificates::run(args, global, printer),
            Self::Keyset(args) => keyset::run(&args, global, printer),
            Self::Backup(args) => backup::run(&args, global, printer),
            Self::UserData(args) => user_data::run(&args, global, printer),
            Self::Down(args) => down::run(&args, global, printer),
            Self::Exec(args) => exec::run(&args, global, printer),
            Self::Ssh(args) => ssh::run(&args, global, printer),
            Self::Restore(args) => restore::run(&args, global, printer),
            Self::Reset(args) => reset::run(&args, global, printer),
            Self::Doctor(args) => doctor::run(&args, global, printer),
            Self::Artifacts(args) => artifacts::run(&args, global, printer),
            Self::Bench(args) => bench::run(&args, global, printer),
            Self::State(args) => state::run(&args, global, printer),
            Self::Completions(args) => completions::run(&args, &command(), printer),
            Self::Man(args) => man::run(&args, command(), printer),
            Self::Local(args) => local::run(&args, printer),
            Self::Node(args) => node::run(&args, printer),
        };
        done.map(|()| ExitCode::SUCCESS)
    }
}

/// The definitions of the command line, with an example below the options of each command.
#[must_use]
pub fn command() -> clap::Command {
    examples::add(Cli::command())
}

fn parse() -> Result<Cli, clap::Error> {
    // Examples are only read, and cost more than the parsing: help is made in a second look.
    let matches = Cli::command().try_get_matches().or_else(|_| command().try_get_matches())?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    let assignments = all_assignments(words().into_iter());
    if !cli.global.set.is_empty() && assignments.len() > cli.global.set.len() {
        cli.global.set = assignments;
    }
    cli.global.config_is_named = matches.value_source("config") == Some(ValueSource::CommandLine);
    Ok(cli)
}

/// The command line behind the program's name.
fn words() -> Vec<String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Every `--set`: of those before and behind a command's name clap keeps one side only.
fn all_assignments(words: impl Iterator<Item = String>) -> Vec<(String, String)> {
    let mut words = words.take_while(|word| word != "--");
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--set") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('=').map(ToOwned::to_owned),
            None => None,
        };
        found.extend(value.and_then(|value| parse_assignment(&value).ok()));
    }
    found
}

/// Whether JSON is asked for on a command line that clap refuses.
fn asks_for_json(words: &[String]) -> bool {
    words.iter().any(|word| word == "--output=json") || words.windows(2).any(|pair| pair == ["--output", "json"])
}

/// What clap says about a wrong command line, as an error of ours.
fn usage_error(error: &clap::Error) -> Error {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Error::usage("a command is missing").hint("see all commands: turnup --help");
    }
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let message = lines.next().unwrap_or_default();
    let mut evidence: Vec<&str> = lines.collect();
    let last = evidence.pop_if(|line| line.contains("--help"));
    let error = Error::usage(message.strip_prefix("error: ").unwrap_or(message));
    let error = evidence.into_iter().fold(error, Error::evidence);
    match last {
        Some(next) => error.hint(next),
        None => error,
    }
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    match kconfig::words_of_conf(std::env::args_os().skip(1)) {
        Some(words) => kconfig::run_conf(words),
        None => run_command_line(),
    }
}

fn run_command_line() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => {
            if error.use_stderr() && asks_for_json(&words()) {
                let error = usage_error(&error);
                Printer::new(OutputFormat::Json, false).error(&error);
                return ExitCode::from(error.class().exit_code());
            }
            // After a closed pipe the error has no reader.
            error.print().ok();
            return if error.use_stderr() { ExitCode::from(Class::Usage.exit_code()) } else { ExitCode::SUCCESS };
        }
    };
    let printer = Printer::new(cli.global.output, cli.global.quiet);
    match cli.command.run(&cli.global, &printer) {
        Ok(code) => code,
        Err(error) => {
            printer.error(&error);
            ExitCode::from(error.class().exit_code())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent_and_every_option_has_help() {
        command().debug_assert();
    }

    #[test]
    fn assignments_on_both_sides_of_a_command_count() {
        let words = "--set a=1 config --set=b=2 get --settle=c=3 -- --set d=4";
        let found = all_assignments(words.split(' ').map(ToOwned::to_owned));
        assert_eq!(found, [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())]);
    }

    #[test]
    fn help_documents_the_exit_code_of_every_class() {
        use Class::{Bug, Config, Interrupted, Locked, Permanent, Precondition, Transient, Usage};
        for class in [Permanent, Usage, Config, Precondition, Transient, Locked, Bug, Interrupted] {
            let code = class.exit_code().to_string();
            let documented = EXIT_CODES.lines().any(|line| line.split_whitespace().next() == Some(&code));
            assert!(documented, "{class:?} has exit code {code}");
        }
    }
}
