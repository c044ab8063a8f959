//! What is said of one field of a record: what it is for, and what counts where it is left out.

use kconfig::SymbolId;

use super::items::FieldNote;
use super::model::Model;
use crate::config::field_help;
use crate::config::format::{Field, Format};

/// Of all fields of a setting; nothing of one that has none.
pub(super) fn notes(model: &Model, symbol: SymbolId) -> Vec<FieldNote> {
    let Some(Format::Records(fields)) = &model.schema.rule(symbol).format else { return Vec::new() };
    let tree = model.schema.tree();
    let help = tree.get(symbol).nodes.iter().find_map(|node| tree.help(*node)).unwrap_or_default();
    let note = |field: &Field| FieldNote {
        help: field_help(fields, &help, &field.name),
        default: default_of(model, symbol, &field.name),
    };
    fields.iter().map(note).collect()
}

/// The value of the first setting in force that stands in for the field.
fn default_of(model: &Model, symbol: SymbolId, field: &str) -> Option<String> {
    let rule = model.schema.rule(symbol);
    let (_, settings) = rule.field_defaults.iter().find(|(name, _)| name == field)?;
    settings.iter().find_map(|name| {
        let setting = model.schema.tree().symbol(name).filter(|setting| model.config.is_written(*setting))?;
        let value = model.config.value(setting);
        (!value.is_empty()).then(|| format!("{}, {name}", model.shown(setting, value)))
    })
}
