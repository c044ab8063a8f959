//! `turnup kconfig explain`: all about one symbol.

use std::path::Path;

use kconfig::explain::{Condition, Default, Definition, Explanation, Link, Plan, Reason, explain};
use kconfig::suggest;
use serde_json::{Value, json};

use super::tree::TreeArgs;
use crate::cli::Printer;
use crate::error::{Error, Result};

/// Below the options.
const NOTES: &str = "\
The values are those of --config FILE, else of $KCONFIG_CONFIG or .config where there is one, else defaults.

Values stand in brackets behind conditions. A way to another value has been tried out: taken in this order, every step is possible.
It is one short way, not the only one.

With --output json one object: {\"schema\": \"turnup.kconfig.explain/1\", \"name\", \"type\", \"value\", \"line\", \"reason\", \"definitions\",
\"selects\", \"implies\", \"selected_by\", \"implied_by\", \"used_by\", \"visible\", \"assignable\", \"range\", \"blocked\", \"choice\", \"plans\", …}.";

/// Explains a symbol.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(super) struct Args {
    /// The symbol, with or without the prefix
    #[arg(value_name = "SYMBOL")]
    symbol: String,
    /// The top file of the tree
    #[arg(value_name = "PATH", default_value = "Kconfig")]
    path: String,
    #[command(flatten)]
    tree: TreeArgs,
}

/// Runs the tool.
pub(super) fn run(args: &Args, config: Option<&Path>, printer: &Printer) -> Result<()> {
    let tree = args.tree.load(&args.path, printer)?;
    let name = args.symbol.strip_prefix(&args.tree.prefix.prefix).unwrap_or(&args.symbol);
    let Some(symbol) = tree.symbol(name).or_else(|| tree.symbol(&args.symbol)) else {
        let error = Error::usage(format!("{name} is not defined in {}", args.path));
        let users: Vec<_> = tree.undefined().filter(|(id, _)| &*tree.get(*id).name == name).collect();
        let error = users.iter().fold(error, |error, (_, span)| {
            error.evidence(format!("it is used at {}, and counts as n", tree.location(*span)))
        });
        return Err(match suggest(name, tree.symbols().map(|(_, symbol)| &*symbol.name)) {
            Some(near) => error.hint(format!("turnup kconfig explain {near}")),
            None => error,
        });
    };
    let (config, file) = args.tree.configure(&tree, config, printer)?;
    let explanation = explain(&config, symbol);
    if printer.is_json() {
        return printer.json(&to_json(&explanation));
    }
    match file {
        Some(file) => printer.remark(&format!("with the values of {}", file.display())),
        None => printer.remark("with default values: there is no .config here, and no --config FILE"),
    }
    printer.line(explanation.to_string().trim_end())
}

/// An explanation as JSON.
pub(in crate::cli) fn to_json(explanation: &Explanation) -> Value {
    let links = |links: &[Link]| -> Value { links.iter().map(link).collect() };
    json!({
        "schema": "turnup.kconfig.explain/1",
        "name": explanation.name,
        "type": explanation.kind.as_str(),
        "value": explanation.value,
        "line": explanation.line,
        "reason": reason(&explanation.reason),
        "ignored": explanation.ignored,
        "visible": explanation.visible.as_str(),
        "blocked": explanation.blocked,
        // Of ints and texts `range` and their format say it.
        "assignable": explanation.kind.is_logical()
            .then(|| explanation.assignable.iter().map(|tri| tri.as_str()).collect::<Vec<_>>()),
        "range": explanation.range,
        "choice": explanation.choice.as_ref().map(|choice| json!({
            "prompt": choice.prompt, "members": choice.members, "selected": choice.selected,
        })),
        "definitions": explanation.definitions.iter().map(definition).collect::<Vec<_>>(),
        "selects": links(&explanation.selects),
        "implies": links(&explanation.implies),
        "selected_by": links(&explanation.selected_by),
        "implied_by": links(&explanation.implied_by),
        "used_by": explanation.used_by,
        "plans": explanation.plans.iter().map(plan).collect::<Vec<_>>(),
    })
}

fn condition(condition: &Condition) -> Value {
    json!({ "text": condition.text, "value": condition.value.as_str() })
}

fn link(link: &Link) -> Value {
    json!({
        "symbol": link.name, "value": link.value, "if": link.condition.as_ref().map(condition),
        "strength": link.strength.as_str(), "at": link.location,
    })
}

fn reason(cause: &Reason) -> Value {
    json!({
        "symbol": cause.name, "value": cause.value, "how": cause.how, "at": cause.location,
        "because": cause.because.iter().map(reason).collect::<Vec<_>>(),
    })
}

fn definition(definition: &Definition) -> Value {
    let entries = |entries: &[Default]| -> Value {
        let entry = |entry: &Default| json!({ "value": entry.value, "if": entry.condition.as_ref().map(condition), "at": entry.location });
        entries.iter().map(entry).collect()
    };
    json!({
        "at": definition.location, "menus": definition.menus, "prompt": definition.prompt,
        "shown_if": definition.shown_if.as_ref().map(condition),
        "depends": definition.depends.iter().map(condition).collect::<Vec<_>>(),
        "defaults": entries(&definition.defaults), "ranges": entries(&definition.ranges), "help": definition.help,
    })
}

fn plan(plan: &Plan) -> Value {
    let steps =
        plan.steps.iter().map(|step| json!({ "symbol": step.name, "value": step.value, "prompt": step.prompt }));
    json!({ "value": plan.value, "steps": steps.collect::<Vec<_>>() })
}
