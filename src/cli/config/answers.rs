//! The commands that write the configuration file: as a whole and atomically, or not at all.

use std::path::Path;

use serde_json::{Value, json};

use super::context::ConfigContext;
use crate::config::{Fate, ProblemLevel, Profile, Schema, SettingChange, Settings, import_anywhere};
use crate::error::{Class, Context as _, Error, Result};
use crate::input;

pub(super) fn write_defaults(context: &ConfigContext<'_>, force: bool) -> Result<()> {
    let settings = Settings::defaults(&context.source)?;
    write_new(context, settings, force, "config defaults", "with all defaults")
}

pub(super) fn profile(context: &ConfigContext<'_>, name: Option<&str>, force: bool) -> Result<()> {
    let Some(name) = name else { return list_profiles(context) };
    let settings = Profile::find(&context.source, name)?.settings(Schema::load(&context.source)?)?;
    let missing = context.check()(&settings);
    write_new(context, settings, force, &format!("config profile {name}"), &format!("from the profile {name}"))?;
    if !context.printer.is_json() {
        let missing = missing.iter().filter(|problem| problem.level == ProblemLevel::Error);
        missing.for_each(|problem| context.printer.remark(&format!("before `turnup up`: {}", problem.message)));
    }
    Ok(())
}

fn list_profiles(context: &ConfigContext<'_>) -> Result<()> {
    let profiles = Profile::list(&context.source)?;
    if context.printer.is_json() {
        let list: Vec<Value> =
            profiles.iter().map(|profile| json!({"name": profile.name, "purpose": profile.purpose})).collect();
        return context.printer.json(&json!({"schema": "turnup.config.profiles/1", "profiles": list}));
    }
    let width = profiles.iter().map(|profile| profile.name.len()).max().unwrap_or(0);
    profiles
        .iter()
        .try_for_each(|profile| context.printer.line(&format!("{:width$}  {}", profile.name, profile.purpose)))
}

/// Writes a file that is not there yet, or one that may be replaced.
fn write_new(context: &ConfigContext<'_>, mut settings: Settings, force: bool, command: &str, how: &str) -> Result<()> {
    refuse_existing(context, force, command)?;
    let path = context.path();
    settings.usable(path)?;
    settings.overwrite(path)?;
    if context.printer.is_json() {
        return tell_changes(context, true, &[]);
    }
    context.printer.remark(&format!("wrote {} {how}", path.display()));
    Ok(())
}

fn refuse_existing(context: &ConfigContext<'_>, force: bool, command: &str) -> Result<()> {
    context.refuse_flags()?;
    let path = context.path();
    if !force && fs_err::symlink_metadata(path).is_ok_and(|file| !file.is_symlink() || path.exists()) {
        let shown = path.display();
        return Err(Error::config(format!("{shown} exists already")).hint(format!(
            "replace it: turnup {command} --force; or change single values: turnup config set NAME=VALUE"
        )));
    }
    Ok(())
}

pub(super) fn set(context: &ConfigContext<'_>, assignments: &[(String, String)]) -> Result<()> {
    change(context, |settings| {
        let value_of = |(name, value): &(String, String)| {
            if settings.is_secret(name) { read_secret(name, value) } else { Ok(value.clone()) }
        };
        let values = assignments.iter().map(value_of).collect::<Result<Vec<_>>>()?;
        let pairs: Vec<(&str, &str)> =
            assignments.iter().zip(&values).map(|((name, _), value)| (&**name, &**value)).collect();
        settings.set_all(&pairs)
    })
}

/// All users of the machine can read arguments: a secret comes from a file or from standard input.
fn read_secret(name: &str, value: &str) -> Result<String> {
    let text = match value.strip_prefix('@') {
        Some("-") => std::io::read_to_string(std::io::stdin()).context("cannot read standard input")?,
        Some(file) => input::read_text(Path::new(file), input::KEYS)?,
        None if value.is_empty() => String::new(),
        None => {
            let error = Error::usage(format!("{name} is a secret: every user of this machine can read a command line"));
            return Err(error.hint(format!("turnup config set {name}=@FILE, or {name}=@- to read standard input")));
        }
    };
    Ok(text.trim_end_matches('\n').to_owned())
}

pub(super) fn unset(context: &ConfigContext<'_>, names: &[String]) -> Result<()> {
    change(context, |settings| settings.unset(&names.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// Loads what there is, changes it and writes it, or leaves everything as it was.
pub(super) fn change(
    context: &ConfigContext<'_>,
    edit: impl FnOnce(&mut Settings) -> Result<Vec<SettingChange>>,
) -> Result<()> {
    context.refuse_flags()?;
    let (path, schema) = (context.path(), Schema::load(&context.source)?);
    let mut settings = Settings::open(path, schema.clone())?.unwrap_or_else(|| Settings::from_defaults(schema));
    let changes = edit(&mut settings)?;
    let written = settings.differs_from_file();
    if written {
        settings.save(path)?;
    }
    if context.printer.is_json() {
        return tell_changes(context, written, &changes);
    }
    for change in &changes {
        context.printer.remark(&describe_change(change));
    }
    tell_written(context, written);
    Ok(())
}

fn tell_written(context: &ConfigContext<'_>, written: bool) {
    let what = if written { "wrote" } else { "nothing to change in" };
    context.printer.remark(&format!("{what} {}", context.path().display()));
}

fn tell_changes(context: &ConfigContext<'_>, written: bool, changes: &[SettingChange]) -> Result<()> {
    let list: Vec<Value> = changes.iter().map(change_json).collect();
    context.printer.json(
        &json!({"schema": "turnup.config.changes/1", "file": context.path(), "written": written, "changes": list}),
    )
}

fn describe_change(change: &SettingChange) -> String {
    let name = &change.name;
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => format!("{name}: {before} -> {after}"),
        (None, Some(after)) => format!("{name}: now {after}"),
        (_, None) => format!("{name}: no longer applies"),
    }
}

pub(super) fn change_json(change: &SettingChange) -> Value {
    let [before, after] = &change.values;
    json!({"name": change.name, "before": before, "after": after})
}

pub(super) fn minimal(context: &ConfigContext<'_>, write: bool) -> Result<()> {
    if !write {
        let settings = context.settings()?.minimal();
        if context.printer.is_json() {
            return context.printer.json(&json!({"schema": "turnup.config.minimal/1", "settings": settings}));
        }
        return context.printer.line(&format!("{settings:#}"));
    }
    context.refuse_flags()?;
    let mut settings = Settings::load(context.path(), &context.source)?;
    let written = settings.save_minimal(context.path())?;
    if context.printer.is_json() {
        return tell_changes(context, written, &[]);
    }
    tell_written(context, written);
    Ok(())
}

pub(super) fn migrate(context: &ConfigContext<'_>) -> Result<()> {
    context.refuse_flags()?;
    let (path, schema) = (context.path(), Schema::load(&context.source)?);
    let Some((mut settings, done)) = Settings::migrate(path, schema)? else {
        return Settings::load(path, &context.source).map(drop);
    };
    settings.usable(path)?;
    if !done.is_empty() {
        settings.save(path)?;
    }
    if context.printer.is_json() {
        let list: Vec<Value> = done.iter().map(|(name, what)| json!({"name": name, "what": what})).collect();
        return context.printer.json(
            &json!({"schema": "turnup.config.migrate/1", "file": path, "written": !done.is_empty(), "changes": list}),
        );
    }
    for (name, what) in &done {
        context.printer.remark(&format!("{name} {what}"));
    }
    tell_written(context, !done.is_empty());
    Ok(())
}

pub(super) fn import(context: &ConfigContext<'_>, file: &Path, force: bool) -> Result<()> {
    let bytes =
        input::read(file, input::DOCUMENT).context_class(Class::Config, format!("cannot read {}", file.display()))?;
    let mut imported = import_anywhere(&String::from_utf8_lossy(&bytes), &Schema::load(&context.source)?)
        .map_err(|why| Error::config(format!("{}: {why}", file.display())))?;
    let command = format!("config import {}", shell_words::quote(&file.display().to_string()));
    refuse_existing(context, force, &command)?;
    let lost = imported.fates.iter().filter(|(_, fate)| !matches!(fate, Fate::Kept { .. })).count();
    if context.printer.is_json() {
        let fates: Vec<Value> = imported.fates.iter().map(|(name, fate)| fate.json(name)).collect();
        context.printer.json(&json!({"schema": "turnup.config.import/1", "from": file, "values": fates}))?;
    } else {
        for (name, fate) in &imported.fates {
            context.printer.line(&format!("{name}: {fate}"))?;
        }
    }
    imported.settings.usable(context.path())?;
    imported.settings.overwrite(context.path())?;
    let (total, path) = (imported.fates.len(), context.path().display());
    context.printer.remark(&format!("wrote {path}: {} of {total} values taken over", total - lost));
    Ok(())
}
