//! `turnup config`: the wizard on a terminal; single answers, defaults and checks everywhere.

use std::io::IsTerminal as _;
use std::path::Path;

use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::{Global, Printer};
use crate::config::{Change, Level, Problem, Schema, Setting, Settings, TreeSource};
use crate::error::{Class, Error, Result};
use crate::wizard;

/// Without a command: the wizard, on a terminal.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do with the configuration
    #[command(subcommand)]
    command: Option<Command>,
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
    /// Set values, all of them or none: `turnup config set phase1.num_nodes=3 phase3.dns=n`
    Set {
        /// A setting and its value; y or n for a switch
        #[arg(required = true, value_name = "NAME=VALUE", value_parser = parse_assignment)]
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
    /// Print all settings that can be set now, as NAME=VALUE
    List,
    /// Tell everything that is wrong with the configuration
    Check,
}

/// Runs the command.
pub(super) fn run(args: Args, global: &Global, printer: &Printer) -> Result<()> {
    let source = TreeSource::find(Path::new("."));
    let path = global.config.as_path();
    match args.command {
        None => run_wizard(path, &source, printer),
        Some(Command::Defaults { force }) => write_defaults(path, &source, force, printer),
        Some(Command::Set { assignments }) => change(path, &source, printer, |settings| {
            let pairs: Vec<(&str, &str)> = assignments.iter().map(|(name, value)| (&**name, &**value)).collect();
            settings.set_all(&pairs)
        }),
        Some(Command::Unset { names }) => change(path, &source, printer, |settings| {
            settings.unset(&names.iter().map(String::as_str).collect::<Vec<_>>())
        }),
        Some(Command::Get { names }) => get(&Settings::load(path, &source)?, &names, printer),
        Some(Command::List) => list(&Settings::load(path, &source)?, printer),
        Some(Command::Check) => check(path, &source, printer),
    }
}

fn parse_assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some(("", _)) => Err("the name before `=` is empty".to_owned()),
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(format!("expected NAME=VALUE, as in {text}=…")),
    }
}

fn run_wizard(path: &Path, source: &TreeSource, printer: &Printer) -> Result<()> {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if printer.is_json() || dumb || !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Error::usage("the wizard needs a terminal").hint(
            "without one: turnup config defaults, then turnup config set NAME=VALUE …; turnup config list shows all settings",
        ));
    }
    let schema = Schema::load(source)?;
    let settings = Settings::open(path, schema.clone())?;
    let end = wizard::run(path, &schema, settings)?;
    printer.remark(&end.describe(path));
    Ok(())
}

fn write_defaults(path: &Path, source: &TreeSource, force: bool, printer: &Printer) -> Result<()> {
    let mut settings = Settings::defaults(source)?;
    settings.usable(path)?;
    if !force && fs_err::symlink_metadata(path).is_ok_and(|file| !file.is_symlink() || path.exists()) {
        let shown = path.display();
        return Err(Error::config(format!("{shown} exists already"))
            .hint("replace it with the defaults: turnup config defaults --force; or change single values: turnup config set NAME=VALUE"));
    }
    settings.overwrite(path)?;
    if printer.is_json() {
        return printer
            .json(&json!({"schema": "turnup.config.changes/1", "file": path, "written": true, "changes": []}));
    }
    printer.remark(&format!("wrote {} with all defaults", path.display()));
    Ok(())
}

/// Loads what there is, changes it and writes it, or leaves everything as it was.
fn change(
    path: &Path,
    source: &TreeSource,
    printer: &Printer,
    edit: impl FnOnce(&mut Settings) -> Result<Vec<Change>>,
) -> Result<()> {
    let schema = Schema::load(source)?;
    let mut settings = Settings::open(path, schema.clone())?.unwrap_or_else(|| Settings::from_defaults(schema));
    let changes = edit(&mut settings)?;
    let written = settings.differs_from_file();
    if written {
        settings.save(path)?;
    }
    if printer.is_json() {
        let list: Vec<Value> = changes.iter().map(change_json).collect();
        return printer
            .json(&json!({"schema": "turnup.config.changes/1", "file": path, "written": written, "changes": list}));
    }
    for change in &changes {
        printer.remark(&describe_change(change));
    }
    match (written, changes.is_empty()) {
        (true, _) => printer.remark(&format!("wrote {}", path.display())),
        (false, _) => printer.remark(&format!("nothing to change in {}", path.display())),
    }
    Ok(())
}

fn describe_change(change: &Change) -> String {
    let name = &change.name;
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => format!("{name}: {before} -> {after}"),
        (None, Some(after)) => format!("{name}: now {after}"),
        (_, None) => format!("{name}: does not count any more"),
    }
}

fn change_json(change: &Change) -> Value {
    json!({"name": change.name, "before": change.before, "after": change.after})
}

fn get(settings: &Settings, names: &[String], printer: &Printer) -> Result<()> {
    let found = names.iter().map(|name| find(settings, name)).collect::<Result<Vec<_>>>()?;
    if printer.is_json() {
        let object: Map<String, Value> =
            found.into_iter().map(|setting| (setting.name.clone(), value_json(&setting))).collect();
        return printer.json(&Value::Object(object));
    }
    found.iter().try_for_each(|setting| printer.line(shown(setting)))
}

fn find(settings: &Settings, name: &str) -> Result<Setting> {
    settings.schema().find(name)?;
    let found = settings.list().into_iter().find(|setting| setting.name == name);
    found.ok_or_else(|| Error::bug(format!("{name} has no value")))
}

fn list(settings: &Settings, printer: &Printer) -> Result<()> {
    if printer.is_json() {
        let list: Vec<Value> = settings.list().iter().map(setting_json).collect();
        return printer.json(&json!({"schema": "turnup.config.list/1", "settings": list}));
    }
    let visible = settings.list().into_iter().filter(|setting| setting.visible);
    let lines: Vec<String> = visible.map(|setting| format!("{}={}", setting.name, shown(&setting))).collect();
    printer.line(&lines.join("\n"))
}

fn shown(setting: &Setting) -> &str {
    if setting.secret && !setting.value.is_empty() { "(secret)" } else { &setting.value }
}

fn value_json(setting: &Setting) -> Value {
    use kconfig::SymbolType::{Bool, Int, Tristate};
    match (setting.kind, setting.value.as_str()) {
        _ if setting.secret && !setting.value.is_empty() => Value::Null,
        (Bool | Tristate, "y") => Value::Bool(true),
        (Bool | Tristate, "n" | "") => Value::Bool(false),
        (Int, text) => text.parse::<i64>().map_or(Value::Null, Value::from),
        (_, text) => Value::String(text.to_owned()),
    }
}

fn setting_json(setting: &Setting) -> Value {
    let default = Setting { value: setting.default.clone(), ..setting.clone() };
    json!({
        "name": setting.name,
        "type": setting.kind.as_str(),
        "value": value_json(setting),
        "default": value_json(&default),
        "prompt": setting.prompt,
        "visible": setting.visible,
        "set_by_user": setting.from_user,
        "secret": setting.secret,
    })
}

fn check(path: &Path, source: &TreeSource, printer: &Printer) -> Result<()> {
    let schema = Schema::load(source)?;
    let Some(settings) = Settings::open(path, schema)? else {
        return Settings::load(path, source).map(drop);
    };
    let problems = settings.check();
    let errors = problems.iter().filter(|problem| problem.level == Level::Error).count();
    if printer.is_json() {
        let list: Vec<Value> = problems.iter().map(Problem::json).collect();
        printer
            .json(&json!({"schema": "turnup.config.check/1", "file": path, "usable": errors == 0, "problems": list}))?;
    } else {
        for problem in &problems {
            let level = if problem.level == Level::Error { "error" } else { "notice" };
            printer.line(&format!("{level}: {}", problem.line(path)))?;
        }
    }
    match errors {
        0 => printer.remark(&format!("{} is right", path.display())),
        count => {
            let things = if count == 1 { "1 mistake".to_owned() } else { format!("{count} mistakes") };
            return Err(Error::new(Class::Config, format!("{} has {things}", path.display())).hint(
                "correct the file, or set values: turnup config set NAME=VALUE; remove keys: turnup config unset NAME",
            ));
        }
    }
    Ok(())
}
