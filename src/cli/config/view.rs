//! The commands that show configurations and change nothing.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::answers::change_json;
use super::context::ConfigContext;
use crate::config::{
    CORRECT, ExportFormat, Privacy, Problem, ProblemLevel, Profile, Schema, Setting, SettingChange, Settings,
    is_same_file, json_schema, replace_file,
};
use crate::error::{Error, Result};
use crate::state::Store;

/// Which settings.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct ListArgs {
    /// Only those whose names begin so
    #[arg(value_name = "PREFIX")]
    prefix: Option<String>,
    /// Only those of a phase: 1, 2 or 3
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=3))]
    phase: Option<u8>,
    /// Only those that are not at their defaults
    #[arg(long)]
    changed: bool,
    /// Only those that the file does not answer
    #[arg(long)]
    new: bool,
    /// Only those that cannot be set now
    #[arg(long, conflicts_with = "all")]
    invisible: bool,
    /// Also those that cannot be set now
    #[arg(long)]
    all: bool,
}

impl ListArgs {
    fn takes(&self, settings: &Settings, setting: &Setting) -> bool {
        let seen = self.all || setting.visible != self.invisible;
        let named = self.prefix.as_ref().is_none_or(|prefix| setting.name.starts_with(prefix))
            && self.phase.is_none_or(|phase| setting.name.starts_with(&format!("phase{phase}.")));
        // A file has no place for what is off and is off by default, so nothing there says that it
        // was answered.
        let is_off = setting.kind.is_logical() && setting.value == "n" && setting.default == "n";
        let asked = !self.new || (!settings.is_answered(&setting.name) && setting.written && !is_off);
        seen && named && asked && (!self.changed || setting.value != setting.default)
    }
}

pub(super) fn list(context: &ConfigContext<'_>, args: &ListArgs) -> Result<()> {
    let settings = context.settings()?;
    let prefix = args.prefix.as_deref().unwrap_or_default();
    if !settings.list().iter().any(|setting| setting.name.starts_with(prefix)) {
        let error = Error::config(format!("no setting has a name that begins with `{prefix}`"));
        return Err(error.hint("see all settings: turnup config list"));
    }
    let chosen: Vec<&Setting> = settings.list().iter().filter(|setting| args.takes(&settings, setting)).collect();
    if context.printer.is_json() {
        let list: Vec<Value> = chosen.iter().map(|setting| setting_json(&settings, setting)).collect();
        return context.printer.json(&json!({"schema": "turnup.config.list/1", "settings": list}));
    }
    chosen.iter().try_for_each(|setting| context.printer.line(&format!("{}={}", setting.name, shown(setting))))
}

pub(super) fn get(context: &ConfigContext<'_>, names: &[String]) -> Result<()> {
    let settings = context.global.settings(&context.source)?;
    let found = names.iter().map(|name| settings.setting(name)).collect::<Result<Vec<_>>>()?;
    if context.printer.is_json() {
        let value =
            |setting: &Setting| if is_in_force(setting) { setting.json(settings.schema()) } else { Value::Null };
        let values: Map<String, Value> = found.iter().map(|setting| (setting.name.clone(), value(setting))).collect();
        return context.printer.json(&json!({"schema": "turnup.config.get/1", "values": values}));
    }
    found.iter().try_for_each(|setting| context.printer.line(if is_in_force(setting) { shown(setting) } else { "" }))
}

/// Whether the setting counts: on another target a number would be 0 and a switch off, whatever
/// their defaults are there.
const fn is_in_force(setting: &Setting) -> bool {
    setting.written || setting.visible
}

fn shown(setting: &Setting) -> &str {
    if setting.secret && !setting.value.is_empty() { "(secret)" } else { &setting.value }
}

fn setting_json(settings: &Settings, setting: &Setting) -> Value {
    let default = Setting { value: setting.default.clone(), ..setting.clone() };
    json!({
        "name": setting.name,
        "type": setting.kind.as_str(),
        "value": setting.json(settings.schema()),
        "default": default.json(settings.schema()),
        "prompt": setting.prompt,
        "visible": setting.visible,
        "set_by_user": setting.from_user,
        "secret": setting.secret,
    })
}

pub(super) fn check(context: &ConfigContext<'_>) -> Result<()> {
    let (path, printer, schema) = (context.path(), context.printer, Schema::load(&context.source)?);
    let Some(settings) = Settings::open(path, schema)? else {
        return Settings::load(path, &context.source).map(drop);
    };
    let settings = settings.with_overrides(&context.global.overrides())?;
    let verdict = context.verdict(&settings);
    let problems = &verdict.problems;
    let errors = problems.iter().filter(|problem| problem.level == ProblemLevel::Error).count();
    if printer.is_json() {
        let list: Vec<Value> = problems.iter().map(Problem::json).collect();
        printer
            .json(&json!({"schema": "turnup.config.check/1", "file": path, "usable": errors == 0, "problems": list}))?;
    } else {
        for problem in problems {
            let level = if problem.level == ProblemLevel::Error { "error" } else { "notice" };
            printer.line(&format!("{level}: {}", problem.line(path)))?;
        }
    }
    match errors {
        0 => printer.remark(&format!("{} is valid", path.display())),
        count => {
            let things = if count == 1 { "1 mistake".to_owned() } else { format!("{count} mistakes") };
            let error = Error::config(format!("{} has {things}", path.display()));
            return Err(error.hint(CORRECT));
        }
    }
    Ok(())
}

pub(super) fn diff(context: &ConfigContext<'_>, a: Option<&str>, b: Option<&str>) -> Result<()> {
    let before = side(context, a.unwrap_or("defaults"))?;
    let after = b.map_or_else(|| context.settings(), |b| side(context, b))?;
    let changes = before.differences(&after);
    if context.printer.is_json() {
        let list: Vec<Value> = changes.iter().map(change_json).collect();
        return context.printer.json(&json!({"schema": "turnup.config.diff/1", "changes": list}));
    }
    if changes.is_empty() {
        context.printer.remark("no difference");
    }
    changes.iter().try_for_each(|change| context.printer.line(&describe_difference(change)))
}

fn describe_difference(change: &SettingChange) -> String {
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => format!(" {}: {before} -> {after}", change.name),
        (None, Some(after)) => format!("+{}: {after}", change.name),
        (before, None) => format!("-{}: {}", change.name, before.as_deref().unwrap_or_default()),
    }
}

/// One side of a comparison: what its word names, the file last.
fn side(context: &ConfigContext<'_>, word: &str) -> Result<Settings> {
    let schema = Schema::load(&context.source)?;
    if word == "defaults" {
        return Ok(Settings::from_defaults(schema));
    }
    if word == "applied" {
        let found = Settings::open(&find_store(context)?.path(Settings::APPLIED), schema)?;
        return found.ok_or_else(|| Error::config("nothing was applied yet").hint("turnup up"));
    }
    if let Some(profile) = Profile::list(&context.source)?.iter().find(|profile| profile.name == word) {
        return profile.settings(schema);
    }
    Settings::open(Path::new(word), schema)?.ok_or_else(|| {
        Error::config(format!("{word} is neither `defaults`, `applied`, a profile nor a file"))
            .hint("see all profiles: turnup config profile")
    })
}

pub(super) fn complete(context: &ConfigContext<'_>) -> Result<()> {
    let settings = context.settings()?;
    let all = settings.list().iter().filter(|setting| is_in_force(setting));
    let rows = all
        .map(|setting| Ok((settings.origin(&setting.name, context.path())?, setting)))
        .collect::<Result<Vec<(String, &Setting)>>>()?;
    if context.printer.is_json() {
        let values: Vec<Value> = rows
            .iter()
            .map(|(origin, setting)| json!({"name": setting.name, "value": setting.json(settings.schema()), "origin": origin}))
            .collect();
        return context.printer.json(&json!({"schema": "turnup.config.show/1", "settings": values}));
    }
    let lines: Vec<String> = rows.iter().map(|(_, setting)| format!("{}={}", setting.name, shown(setting))).collect();
    // Beyond this a value stands alone and its origin follows after two blanks.
    let width = lines.iter().map(|line| line.chars().count()).filter(|width| *width <= 60).max().unwrap_or(0);
    lines
        .iter()
        .zip(&rows)
        .try_for_each(|(line, (origin, _))| context.printer.line(&format!("{line:width$}  {origin}")))
}

/// What turnup remembers of the cluster, for looking only.
pub(super) fn find_store(context: &ConfigContext<'_>) -> Result<Store> {
    let name = context.settings()?.get("phase1.cluster_name")?;
    Ok(Store::at(context.global.state_dir.join(name)))
}

pub(super) fn export(context: &ConfigContext<'_>, form: ExportFormat, to: Option<&Path>) -> Result<()> {
    let (text, secrets) = context.settings()?.export(form);
    if let Some(path) = to {
        // Saving over the configuration would replace it by a form that no command reads.
        if is_same_file(path, context.path()) {
            let error = Error::usage(format!("{} is the configuration itself", path.display()));
            return Err(error.hint("name another file: turnup config export --to .config"));
        }
        replace_file(path, &text, Privacy::Shared)?;
    }
    if context.printer.is_json() {
        return context
            .printer
            .json(&json!({"schema": "turnup.config.export/1", "file": to, "text": text, "secrets_left_out": secrets}));
    }
    if secrets > 0 {
        context.printer.remark(&format!("{secrets} secrets were left out"));
    }
    match to {
        Some(path) => context.printer.line(&format!("configuration in {}", path.display())),
        None => context.printer.line(text.trim_end()),
    }
}

pub(super) fn schema(context: &ConfigContext<'_>) -> Result<()> {
    let schema = json_schema(&*Schema::load(&context.source)?);
    if context.printer.is_json() {
        return context.printer.json(&schema);
    }
    context.printer.line(&format!("{schema:#}"))
}
