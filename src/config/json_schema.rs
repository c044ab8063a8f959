//! The JSON Schema (2020-12) of `.config.json`: with it editors complete the file, and other
//! programs check it.
//!
//! Says what `check` says about single values. What only several settings together can tell, a
//! schema cannot: see `BEYOND`.

use kconfig::{Atom, Expr, SymbolId, SymbolType};
use serde_json::{Map, Value, json};

use super::object;
use super::schema::{ChangeEffect, Schema};

/// What `turnup config check` finds and the schema does not.
const BEYOND: [&str; 5] = [
    "networks that overlap or are too small for the hosts, and networks with host bits",
    "ports that a host needs itself",
    "ranges that depend on other settings",
    "two records with the same key",
    "settings that have no effect because of others (a notice only)",
];

/// The schema of a configuration file.
#[must_use]
pub fn json_schema(schema: &Schema) -> Value {
    let mut root = group();
    for symbol in schema.ordered().iter().copied().filter(|symbol| schema.prompt(*symbol).is_some()) {
        let described = describe(schema, symbol);
        insert(&mut root, schema.name(symbol), described);
    }
    let Value::Object(mut root) = root else { return Value::Null };
    root.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    root.insert("title".to_owned(), json!("turnup: .config.json"));
    root.insert("$comment".to_owned(), json!(format!("turnup config check also finds: {}", BEYOND.join("; "))));
    Value::Object(root)
}

fn group() -> Value {
    json!({"type": "object", "properties": {}, "additionalProperties": false})
}

fn insert(at: &mut Value, name: &str, described: Value) {
    let Some(properties) = at.get_mut("properties").and_then(Value::as_object_mut) else { return };
    match name.split_once('.') {
        None => {
            properties.insert(name.to_owned(), described);
        }
        Some((outer, rest)) => insert(properties.entry(outer).or_insert_with(group), rest, described),
    }
}

fn describe(schema: &Schema, symbol: SymbolId) -> Value {
    let definition = schema.tree().get(symbol);
    let rule = schema.rule(symbol);
    let mut described = match (definition.kind, &rule.format) {
        (SymbolType::Bool, _) => json!({"type": "boolean"}),
        (SymbolType::Tristate, _) => json!({"enum": [true, false, "m"]}),
        (SymbolType::Int, _) => json!({"type": "integer"}),
        (SymbolType::Hex, _) => json!({"type": "string", "pattern": "^(0[xX])?[0-9a-fA-F]+$"}),
        (_, Some(format)) => format.json_schema(),
        (_, None) => json!({"type": "string"}),
    };
    let Some(members) = described.as_object_mut() else { return described };
    if let Some((low, high)) = bounds(schema, symbol) {
        members.insert("minimum".to_owned(), json!(low));
        members.insert("maximum".to_owned(), json!(high));
    }
    annotate(schema, symbol, members);
    described
}

/// The range that always counts.
fn bounds(schema: &Schema, symbol: SymbolId) -> Option<(i64, i64)> {
    let tree = schema.tree();
    let definition = tree.get(symbol);
    if definition.kind != SymbolType::Int {
        return None;
    }
    let [range] = definition.ranges.as_slice() else { return None };
    let number = |atom| if let Atom::Text(text) = atom { definition.kind.parse_number(tree.text(text)) } else { None };
    Some((number(range.low)?, number(range.high)?))
}

fn annotate(schema: &Schema, symbol: SymbolId, members: &mut Map<String, Value>) {
    let tree = schema.tree();
    let definition = tree.get(symbol);
    let rule = schema.rule(symbol);
    members.insert("title".to_owned(), json!(schema.prompt(symbol)));
    if let Some(help) = definition.nodes.iter().find_map(|node| tree.help(*node)) {
        members.insert("description".to_owned(), json!(help));
    }
    if let Some(default) = constant_default(schema, symbol) {
        members.insert("default".to_owned(), default);
    }
    if let Some(example) = rule.example.as_ref().and_then(|text| object::json_value(schema, symbol, text)) {
        members.insert("examples".to_owned(), json!([example]));
    }
    if rule.secret {
        members.insert("writeOnly".to_owned(), json!(true));
    }
    let effect = rule.effect.map(ChangeEffect::describe).map(|effect| format!("A change {effect}."));
    let needs = definition.nodes.first().map(|node| tree.node(*node).depends);
    let needs =
        needs.map(|depends| tree.show(depends)).filter(|text| text != "y").map(|text| format!("Counts while {text}."));
    let notes: Vec<String> = effect.into_iter().chain(needs).collect();
    if !notes.is_empty() {
        members.insert("$comment".to_owned(), json!(notes.join(" ")));
    }
}

/// The default, where it does not depend on other settings.
fn constant_default(schema: &Schema, symbol: SymbolId) -> Option<Value> {
    let tree = schema.tree();
    let default = match tree.get(symbol).defaults.as_slice() {
        [] if tree.get(symbol).kind == SymbolType::Bool => return Some(Value::Bool(false)),
        [one] => one,
        _ => return None,
    };
    match tree.expr(default.value) {
        Expr::Atom(Atom::Tri(tri)) => Some(Value::Bool(tri == kconfig::Tri::Y)),
        Expr::Atom(Atom::Text(text)) => object::json_value(schema, symbol, tree.text(text)),
        _ => None,
    }
}
