//! `turnup kconfig dialect`: whose rules a tree is read by, and what the rules are.

use kconfig::Rule;
use kconfig::dialect::{Dialect, Family, Version, table};
use serde_json::{Value, json};

use super::tree::TreeArgs;
use crate::cli::Printer;
use crate::error::Result;

/// Below the options.
const NOTES: &str = "\
A tree is recognised by its mainmenu, as that of Linux, U-Boot, Buildroot, BusyBox, barebox, OpenWrt, coreboot, Zephyr, NuttX or ESP-IDF;
the version is that of KERNELVERSION (or of the variable that the project uses in its place), else of the Makefile. Where nothing tells,
KERNELVERSION is taken for Linux's. --dialect NAME or the variable KCONFIG_DIALECT decides otherwise.

With --output json one object: {\"schema\": \"turnup.kconfig.dialect/1\", \"dialect\": \"linux-6.1\", \"base\": \"6.1\", \"why\": …,
\"rules\": [{\"name\": …, \"in_force\": true, \"summary\": …}, …]}; with --list one line for each rule.

Exit codes: 0, or 3 when there is no such tree.";

/// Tells the rules.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(super) struct Args {
    /// The top file of the tree
    #[arg(value_name = "PATH", default_value = "Kconfig")]
    path: String,
    /// Show the table of all rules and stop: since or until which version Linux has each, and which
    /// forks differ
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    tree: TreeArgs,
}

/// Runs the tool.
pub(super) fn run(args: &Args, printer: &Printer) -> Result<()> {
    if args.list {
        return list(printer);
    }
    let detected = args.tree.detect(&args.path)?;
    let dialect = detected.dialect;
    if printer.is_json() {
        let rules: Vec<Value> = Rule::ALL.iter().map(|rule| describe(*rule, dialect)).collect();
        return printer.json(&json!({
            "schema": "turnup.kconfig.dialect/1", "dialect": dialect.to_string(), "base": dialect.base().to_string(),
            "why": detected.explain(), "rules": rules,
        }));
    }
    printer.line(&format!("{}: {}", args.path, detected.explain()))?;
    for rule in Rule::ALL.iter().filter(|rule| dialect.has(**rule)) {
        printer.line(&format!("  {:<28} {}", rule.name(), rule.summary()))?;
    }
    Ok(())
}

fn describe(rule: Rule, dialect: Dialect) -> Value {
    json!({ "name": rule.name(), "in_force": dialect.has(rule), "summary": rule.summary() })
}

fn list(printer: &Printer) -> Result<()> {
    for family in Family::ALL {
        for (own, linux) in table::bases(family) {
            let since = if own == Version::new(0, 0) { String::new() } else { format!(" since {own}") };
            if !printer.is_json() {
                printer.line(&format!("{}{since}: based on Linux {linux}", family.name()))?;
            }
        }
    }
    for rule in Rule::ALL {
        let linux = spell(rule.linux());
        let forks: Vec<String> = Family::ALL
            .into_iter()
            .flat_map(|family| table::exceptions(family).map(move |exception| (family, exception)))
            .filter(|(_, (excepted, _))| excepted == rule)
            .map(|(family, (_, has))| format!("{} {}", family.name(), if has { "has it" } else { "has it not" }))
            .collect();
        if printer.is_json() {
            printer.json(&json!({
                "schema": "turnup.kconfig.rule/1", "name": rule.name(), "linux": linux, "forks": forks,
                "summary": rule.summary(),
            }))?;
        } else {
            let forks = if forks.is_empty() { String::new() } else { format!("; {}", forks.join(", ")) };
            printer.line(&format!("{:<28} Linux {linux}{forks}\n    {}", rule.name(), rule.summary()))?;
        }
    }
    Ok(())
}

/// When Linux has a rule.
fn spell((first, last): (Version, Version)) -> String {
    match (first == Version::new(0, 0), last == Version::NEWEST) {
        (true, true) => "always".to_owned(),
        (false, true) => format!("since {first}"),
        (true, false) if last == first => "never".to_owned(),
        (true, false) => format!("until {last}"),
        (false, false) => format!("since {first}, until {last}"),
    }
}
