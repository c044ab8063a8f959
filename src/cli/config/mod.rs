//! `turnup config`: the wizard on a terminal; everything else it can do, and more, as commands.

use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::session::{SessionArgs, is_dumb};
use super::{Global, Printer};
use crate::config::{ExportFormat, Schema, Settings, TreeSource};
use crate::error::{Error, Result};
use crate::wizard::{GuideScope, StartMode, Wizard};

mod answers;
mod component_defaults;
mod context;
mod explain;
mod hosts;
mod picture;
mod reach;
mod view;

use context::ConfigContext;

/// Below the options.
const NOTES: &str = "\
The value of a setting is that of the first place that has one:
    --set NAME=VALUE     on the command line, for one run
    TURNUP_SET_NAME      a variable, two underscores for each dot: TURNUP_SET_phase1__num_nodes=3
    the file             .config.json, or what --config names
    the default          of the Kconfig tree
Commands that write the file look at neither flags nor variables.

With --output json every command prints one JSON object; one that fails without a result prints its error (turnup.error/1).";

/// What else there is.
const WITHOUT_TERMINAL: &str = "\
without one: turnup config --accessible asks line by line; or turnup config defaults, then turnup config set NAME=VALUE …; turnup config \
list shows all settings";

/// Without a command: the wizard, on a terminal.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// What to do with the configuration
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    wizard: WizardArgs,
}

/// How the wizard asks.
#[derive(Debug, clap::Args)]
struct WizardArgs {
    /// Ask only what a first cluster needs, one question after the other
    #[arg(long)]
    guided: bool,
    /// Ask only what the file does not answer because it is older than the settings
    #[arg(long, conflicts_with = "guided")]
    new: bool,
    /// The same questions as plain lines: for screen readers, simple terminals and answers from a
    /// pipe
    #[arg(long, conflicts_with_all = ["guided", "record", "replay", "size"])]
    accessible: bool,
    #[command(flatten)]
    session: SessionArgs,
}

impl WizardArgs {
    const fn is_given(&self) -> bool {
        self.guided || self.new || self.accessible || self.session.is_given()
    }
}

/// Everything that works without a terminal.
#[derive(Debug, Subcommand)]
enum Command {
    /// Write a configuration with all defaults
    Defaults {
        /// Replace a configuration that exists
        #[arg(long)]
        force: bool,
    },
    /// Write the configuration of a profile; without a name, show the profiles
    Profile {
        /// The profile
        name: Option<String>,
        /// Replace a configuration that exists
        #[arg(long)]
        force: bool,
    },
    /// Set values, all of them or none: `turnup config set phase1.num_nodes=3 phase3.dns=n`
    Set {
        /// A setting and its value; y or n for a switch, a,b for a list, k=v,l=w for a map, JSON
        /// for records, @FILE or @- for a secret
        #[arg(required = true, value_name = "NAME=VALUE", value_parser = super::parse_assignment)]
        assignments: Vec<(String, String)>,
    },
    /// Forget answers, so that their defaults count again
    Unset {
        /// A setting, or a key of the file that is none
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Print the values of settings, one a line
    Get {
        /// A setting
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Print settings as NAME=VALUE: those that can be set now
    List(view::ListArgs),
    /// Tell everything that is wrong with the configuration
    Check,
    /// Show what differs between two configurations
    Diff {
        /// `defaults`, `applied` (by the last `turnup up`), a profile or a file [default: defaults]
        a: Option<String>,
        /// The same [default: the configuration]
        b: Option<String>,
    },
    /// Print the configuration without what is so by default
    Minimal {
        /// Make it the configuration file
        #[arg(long)]
        write: bool,
    },
    /// Print every value with where it comes from, asked or not; of a node, all that is made from
    /// them
    Show {
        /// A node of the cluster: its files, flags, units, binaries and images, each with the
        /// settings that decide it
        node: Option<String>,
        /// Also what neither a setting nor an override says: the defaults of the components that
        /// run on the node
        #[arg(long, requires = "node")]
        component_defaults: bool,
    },
    /// Draw the cluster: zones, hosts, networks, who may connect, and an estimate of what a month
    /// costs
    Picture(picture::PictureArgs),
    /// Print the configuration for other programs, without secrets
    Export {
        /// The form
        #[arg(long, value_name = "FORM", default_value = "dotconfig")]
        format: ExportFormat,
        /// Write it to this file instead of standard output
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Print the JSON Schema of the file, for editors and other programs
    Schema,
    /// Tell all about a setting
    Explain {
        /// The setting
        name: String,
    },
    /// Tell why a setting has its value
    Why {
        /// The setting
        name: String,
    },
    /// Tell why a setting cannot be set, or not to a value, and which command makes it possible
    WhyNot {
        /// The setting; of a switch without a value: on
        #[arg(value_name = "NAME[=VALUE]")]
        wish: String,
        /// Make it so: set what is in the way, and the value
        #[arg(long)]
        apply: bool,
    },
    /// Tell what depends on a setting: other settings, Terraform variables, files, units, flags,
    /// manifests, steps
    Where {
        /// The setting
        name: String,
    },
    /// Hosts of bare metal
    #[command(subcommand)]
    Hosts(hosts::HostsCommand),
    /// Bring the file of an earlier version to the present names and forms
    Migrate,
    /// Take over a configuration of kubernetes-anywhere (.config or .config.json), and say what
    /// became of each value
    Import {
        /// The old file
        file: PathBuf,
        /// Replace a configuration that exists
        #[arg(long)]
        force: bool,
    },
}

/// Runs the command.
pub(super) fn run(args: Args, global: &Global, printer: &Printer) -> Result<()> {
    let context = ConfigContext { source: TreeSource::find(Path::new(".")), global, printer };
    if args.command.is_some() && args.wizard.is_given() {
        let error = Error::usage(
            "--guided, --new, --accessible, --record and --replay are for the wizard, which has no command",
        );
        return Err(error.hint("turnup config with these options, or the command without them"));
    }
    match args.command {
        None => run_wizard(&context, &args.wizard),
        Some(Command::Defaults { force }) => answers::write_defaults(&context, force),
        Some(Command::Profile { name, force }) => answers::profile(&context, name.as_deref(), force),
        Some(Command::Set { assignments }) => answers::set(&context, &assignments),
        Some(Command::Unset { names }) => answers::unset(&context, &names),
        Some(Command::Import { file, force }) => answers::import(&context, &file, force),
        Some(Command::Hosts(command)) => hosts::run(&context, &command),
        Some(Command::Migrate) => answers::migrate(&context),
        Some(Command::Minimal { write }) => answers::minimal(&context, write),
        Some(Command::Get { names }) => view::get(&context, &names),
        Some(Command::List(list)) => view::list(&context, &list),
        Some(Command::Check) => view::check(&context),
        Some(Command::Diff { a, b }) => view::diff(&context, a.as_deref(), b.as_deref()),
        Some(Command::Show { node: None, .. }) => view::complete(&context),
        Some(Command::Show { node: Some(node), component_defaults }) => {
            reach::show_node(&context, &node, component_defaults)
        }
        Some(Command::Picture(args)) => picture::draw(&context, &args),
        Some(Command::Export { format, to }) => view::export(&context, format, to.as_deref()),
        Some(Command::Schema) => view::schema(&context),
        Some(Command::Explain { name }) => explain::explain(&context, &name),
        Some(Command::Why { name }) => explain::why(&context, &name),
        Some(Command::WhyNot { wish, apply: false }) => explain::why_not(&context, &wish),
        Some(Command::WhyNot { wish, apply: true }) => explain::make_possible(&context, &wish),
        Some(Command::Where { name }) => reach::find_dependents(&context, &name),
    }
}

fn run_wizard(context: &ConfigContext<'_>, args: &WizardArgs) -> Result<()> {
    context.refuse_flags()?;
    // A terminal that can only show lines gets lines, unless something is to be drawn or played.
    let lines = args.accessible || is_dumb() && !args.session.is_given() && !context.printer.is_json();
    let begin = match (lines, args.guided || args.new) {
        (true, _) => StartMode::Lines,
        (false, true) => StartMode::Guide,
        (false, false) => StartMode::Menus,
    };
    if begin != StartMode::Lines {
        args.session.require_terminal(context.printer, WITHOUT_TERMINAL)?;
    } else if context.printer.is_json() {
        return Err(Error::usage("plain lines are for interactive use; programs use turnup config set"));
    }
    let schema = Schema::load(&context.source)?;
    let settings = Settings::open(context.path(), schema.clone())?;
    if args.new && settings.is_none() {
        let error = Error::config(format!("{} does not exist: every question is new", context.path().display()));
        return Err(error.hint("turnup config --guided"));
    }
    let name = settings.as_ref().map_or_else(|| Ok(String::new()), |settings| settings.get("phase1.cluster_name"))?;
    // What runs is only shown: a record that cannot be read must not block the wizard.
    let applied = Settings::open(&context.global.state_dir.join(name).join(Settings::APPLIED), schema).ok().flatten();
    let check = context.check();
    let begin = (begin, if args.new { GuideScope::New } else { GuideScope::First });
    let wizard = Wizard::over_settings(context.path(), &context.source, settings, applied.as_ref(), begin, check)?;
    if args.new && !wizard.has_new() {
        context.printer.remark(&format!("nothing to ask: {} is not older than the settings", context.path().display()));
        return Ok(());
    }
    if begin.0 == StartMode::Lines {
        context.printer.remark(&wizard.run_in_lines()?.describe(context.path()));
        return Ok(());
    }
    args.session.run(wizard, context.path(), context.printer)
}
