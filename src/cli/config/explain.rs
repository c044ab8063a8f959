//! The commands that say why: `explain`, `why`, `why-not`.

use serde_json::{Value, json};

use super::context::ConfigContext;
use crate::config::format::Format;
use crate::config::{Problem, ProblemLevel, Rule, Settings, WishWay};
use crate::error::{Error, Result};
use kconfig::explain::Reason;

pub(super) fn explain(context: &ConfigContext<'_>, name: &str) -> Result<()> {
    let settings = context.settings()?;
    let explanation = settings.explain(name)?;
    let rule = settings.schema().rule(settings.schema().find(name)?);
    if context.printer.is_json() {
        let origin = settings.origin(name, context.path())?;
        let mut object = crate::cli::kconfig::explanation_json(&explanation);
        object["schema"] = json!("turnup.config.explain/1");
        object["origin"] = json!(origin);
        if let Some(words) = rule.format.as_ref().and_then(Format::words) {
            object["assignable"] = json!(words);
        }
        object["format"] = json!(rule.format.as_ref().map(ToString::to_string));
        object["example"] = json!(rule.example);
        object["secret"] = json!(rule.secret);
        object["changes"] = json!(rule.effect);
        return context.printer.json(&object);
    }
    let mut text = explanation.to_string().trim_end().to_owned();
    text.push_str("\n\n");
    text.push_str(&describe_rule(rule, &settings.origin(name, context.path())?));
    context.printer.line(text.trim_end())
}

fn describe_rule(rule: &Rule, origin: &str) -> String {
    let mut lines = vec![format!("the value comes from: {origin}")];
    lines.extend(rule.example.as_ref().map(|example| format!("example: {example}")));
    lines.extend(rule.effect.map(|effect| format!("a change {}", effect.describe())));
    if rule.secret {
        lines.push("it is a secret: never shown, logged or exported".to_owned());
    }
    lines.join("\n")
}

pub(super) fn why(context: &ConfigContext<'_>, name: &str) -> Result<()> {
    let settings = context.settings()?;
    let mut reason = settings.why(name)?;
    locate(&mut reason, &settings, context);
    if context.printer.is_json() {
        return context.printer.json(&json!({"schema": "turnup.config.why/1", "reason": reason_json(&reason)}));
    }
    context.printer.line(reason.to_string().trim_end())
}

/// What was set says where.
fn locate(reason: &mut Reason, settings: &Settings, context: &ConfigContext<'_>) {
    if reason.how == "set"
        && let Ok(place) = settings.origin(&reason.name, context.path())
    {
        reason.how = format!("set by {place}");
    }
    reason.because.iter_mut().for_each(|cause| locate(cause, settings, context));
}

fn reason_json(reason: &Reason) -> Value {
    let because: Vec<Value> = reason.because.iter().map(reason_json).collect();
    json!({
        "name": reason.name, "value": reason.value, "how": reason.how, "at": reason.location, "because": because,
    })
}

/// What stands between a setting and a wish, `NAME` or `NAME=VALUE`, and what else a plan would
/// refuse after it.
fn find_way(context: &ConfigContext<'_>, wish: &str) -> Result<(WishWay, Vec<Problem>)> {
    let (name, value) = wish.split_once('=').map_or((wish, None), |(name, value)| (name, Some(value)));
    let settings = context.settings()?;
    let way = settings.why_not(name, value)?;
    let Some(steps) = way.steps.as_ref().filter(|steps| !steps.is_empty()) else { return Ok((way, Vec::new())) };
    let errors = |settings: &Settings| {
        let mut problems = context.verdict(settings).problems;
        problems.retain(|problem| problem.level == ProblemLevel::Error);
        problems
    };
    let before = errors(&settings);
    let mut new = errors(&settings.after(steps)?);
    new.retain(|problem| before.iter().all(|known| known.message != problem.message));
    let is_step = |problem: &&Problem| steps.iter().any(|(step, _)| problem.symbol.as_ref() == Some(step));
    match new.iter().find(is_step) {
        Some(problem) => Err(Error::config(problem.message.clone()).hint(format!("turnup config explain {name}"))),
        None => Ok((way, new)),
    }
}

pub(super) fn why_not(context: &ConfigContext<'_>, wish: &str) -> Result<()> {
    let (way, then) = find_way(context, wish)?;
    if context.printer.is_json() {
        let steps = way.steps.as_ref().map(|steps| -> Vec<Value> {
            steps.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
        });
        context.printer.json(&json!({
            "schema": "turnup.config.why-not/1", "name": way.name, "value": way.value, "is_so": way.reached, "possible_now": way.open,
            "blocked": way.blocked, "steps": steps, "command": command(&way),
            "refused_then": then.iter().map(Problem::json).collect::<Vec<_>>(),
        }))?;
        return if way.steps.is_some() { Ok(()) } else { Err(no_way(&way)) };
    }
    way.blocked.iter().try_for_each(|obstacle| context.printer.line(obstacle))?;
    match command(&way) {
        Some(command) if way.open => context.printer.line(&format!("it can be set now: {command}"))?,
        Some(command) => context.printer.line(&command)?,
        None if way.reached => context.printer.line("it has this value already")?,
        None if way.open => context.printer.line("it can be set now")?,
        None => return Err(no_way(&way)),
    }
    for problem in then {
        context.printer.remark(&format!("turnup plan would then refuse: {}", problem.message));
    }
    Ok(())
}

/// Sets all that the way needs.
pub(super) fn make_possible(context: &ConfigContext<'_>, wish: &str) -> Result<()> {
    context.refuse_flags()?;
    let (way, _) = find_way(context, wish)?;
    match &way.steps {
        Some(steps) => super::answers::set(context, steps),
        None => Err(no_way(&way)),
    }
}

fn no_way(way: &WishWay) -> Error {
    let wish = way.value.as_ref().map_or_else(|| way.name.clone(), |value| format!("{}={value}", way.name));
    let error = Error::permanent(format!("no answers were found that lead to {wish}"));
    error.hint(format!("see all about it: turnup config explain {}", way.name))
}

/// The command that takes all steps.
fn command(way: &WishWay) -> Option<String> {
    let steps = way.steps.as_ref().filter(|steps| !steps.is_empty())?;
    let steps: Vec<String> =
        steps.iter().map(|(name, value)| shell_words::quote(&format!("{name}={value}")).into_owned()).collect();
    Some(format!("turnup config set {}", steps.join(" ")))
}
