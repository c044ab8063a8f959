//! The commands that say why: `explain`, `why`, `why-not`, `where`.

use serde_json::{Value, json};

use super::Desk;
use crate::config::{Rule, Settings, Way};
use crate::error::{Error, Result};
use kconfig::explain::Reason;

pub(super) fn explain(desk: &Desk<'_>, name: &str) -> Result<()> {
    let settings = desk.settings()?;
    let explanation = settings.explain(name)?;
    let rule = settings.schema().rule(settings.schema().find(name)?);
    if desk.printer.is_json() {
        let origin = settings.origin(name, desk.path())?;
        let mut object = crate::cli::kconfig::explanation_json(&explanation);
        object["schema"] = json!("turnup.config.explain/1");
        object["origin"] = json!(origin);
        object["format"] = json!(rule.format.as_ref().map(ToString::to_string));
        object["example"] = json!(rule.example);
        object["secret"] = json!(rule.secret);
        object["changes"] = json!(rule.effect);
        object["unused"] = json!(rule.unused);
        return desk.printer.json(&object);
    }
    let mut text = explanation.to_string().trim_end().to_owned();
    text.push_str("\n\n");
    text.push_str(&describe_rule(rule, &settings.origin(name, desk.path())?));
    desk.printer.line(text.trim_end())
}

fn describe_rule(rule: &Rule, origin: &str) -> String {
    let mut lines = vec![format!("the value comes from: {origin}")];
    lines.extend(rule.format.as_ref().map(|format| format!("expected: {format}")));
    lines.extend(rule.example.as_ref().map(|example| format!("example: {example}")));
    lines.extend(rule.effect.map(|effect| format!("a change {}", effect.describe())));
    if rule.secret {
        lines.push("it is a secret: never shown, logged or exported".to_owned());
    }
    if rule.unused {
        lines.push("this version does not act on it yet; turnup up refuses another value than the default".to_owned());
    }
    lines.join("\n")
}

pub(super) fn why(desk: &Desk<'_>, name: &str) -> Result<()> {
    let settings = desk.settings()?;
    let reason = settings.why(name)?;
    if desk.printer.is_json() {
        return desk
            .printer
            .json(&json!({"schema": "turnup.config.why/1", "reason": reason_json(&settings, desk, &reason)}));
    }
    let mut lines = Vec::new();
    describe_reason(&settings, desk, &reason, 0, &mut lines);
    desk.printer.line(&lines.join("\n"))
}

/// What was set says where.
fn how(settings: &Settings, desk: &Desk<'_>, reason: &Reason) -> String {
    if reason.how != "set" {
        return reason.how.clone();
    }
    settings.origin(&reason.name, desk.path()).map_or_else(|_| reason.how.clone(), |place| format!("set by {place}"))
}

fn describe_reason(settings: &Settings, desk: &Desk<'_>, reason: &Reason, level: usize, lines: &mut Vec<String>) {
    let value = if reason.value.is_empty() { "\"\"" } else { &reason.value };
    let place = reason.location.as_ref().map_or_else(String::new, |location| format!(" ({location})"));
    let how = how(settings, desk, reason);
    lines.push(format!("{:indent$}{} is {value}: {how}{place}", "", reason.name, indent = level * 2));
    for cause in &reason.because {
        describe_reason(settings, desk, cause, level + 1, lines);
    }
}

fn reason_json(settings: &Settings, desk: &Desk<'_>, reason: &Reason) -> Value {
    let because: Vec<Value> = reason.because.iter().map(|cause| reason_json(settings, desk, cause)).collect();
    json!({
        "name": reason.name, "value": reason.value, "how": how(settings, desk, reason), "at": reason.location,
        "because": because,
    })
}

pub(super) fn why_not(desk: &Desk<'_>, wish: &str) -> Result<()> {
    let (name, value) = wish.split_once('=').map_or((wish, None), |(name, value)| (name, Some(value)));
    let way = desk.settings()?.why_not(name, value)?;
    if desk.printer.is_json() {
        let steps = way.steps.as_ref().map(|steps| -> Vec<Value> {
            steps.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
        });
        desk.printer.json(&json!({
            "schema": "turnup.config.why-not/1", "name": way.name, "value": way.value, "is_so": way.reached, "possible_now": way.open,
            "blocked": way.blocked, "steps": steps, "command": command(&way),
        }))?;
        return if way.steps.is_some() { Ok(()) } else { Err(no_way(&way)) };
    }
    way.blocked.iter().try_for_each(|obstacle| desk.printer.line(obstacle))?;
    match command(&way) {
        Some(command) if way.open => desk.printer.line(&format!("nothing stands in the way: {command}")),
        Some(command) => desk.printer.line(&command),
        None if way.reached => desk.printer.line("it is so already"),
        None if way.open => desk.printer.line("nothing stands in the way"),
        None => Err(no_way(&way)),
    }
}

/// Sets all that the way needs.
pub(super) fn make_possible(desk: &Desk<'_>, wish: &str) -> Result<()> {
    desk.refuse_flags()?;
    let (name, value) = wish.split_once('=').map_or((wish, None), |(name, value)| (name, Some(value)));
    let way = desk.settings()?.why_not(name, value)?;
    match &way.steps {
        Some(steps) => super::answers::set(desk, steps),
        None => Err(no_way(&way)),
    }
}

fn no_way(way: &Way) -> Error {
    let wish = way.value.as_ref().map_or_else(|| way.name.clone(), |value| format!("{}={value}", way.name));
    let error = Error::permanent(format!("no way to {wish} was found"));
    error.hint(format!("see all about it: turnup config explain {}", way.name))
}

/// The command that takes all steps.
fn command(way: &Way) -> Option<String> {
    let steps = way.steps.as_ref().filter(|steps| !steps.is_empty())?;
    let steps: Vec<String> =
        steps.iter().map(|(name, value)| shell_words::quote(&format!("{name}={value}")).into_owned()).collect();
    Some(format!("turnup config set {}", steps.join(" ")))
}

pub(super) fn find_dependents(desk: &Desk<'_>, name: &str) -> Result<()> {
    let settings = desk.settings()?;
    let explanation = settings.explain(name)?;
    let affected = settings.affected_by(name)?;
    let (steps, unknown) = match crate::cli::run::find_dependents(desk.global, &settings, &affected) {
        Ok(found) => found,
        Err(why) => {
            desk.printer.remark(&format!("the steps are not known: {}", why.message()));
            (Vec::new(), Vec::new())
        }
    };
    let defined: Vec<&str> = explanation.definitions.iter().map(|definition| definition.location.as_str()).collect();
    if desk.printer.is_json() {
        return desk.printer.json(&json!({
            "schema": "turnup.config.where/1", "name": name, "defined": defined, "named_by": explanation.used_by,
            "changes": affected[1..],
            "steps": steps, "steps_not_known_yet": unknown,
        }));
    }
    let lists = [("defined at", defined.iter().map(ToString::to_string).collect()), ("named by", explanation.used_by)];
    let changed = [("changes with it:", affected[1..].to_vec())];
    let steps = [("step", steps), ("step, not known before it can run:", unknown)];
    for (word, list) in lists.into_iter().chain(changed).chain(steps) {
        list.iter().try_for_each(|one| desk.printer.line(&format!("{word} {one}")))?;
    }
    Ok(())
}
