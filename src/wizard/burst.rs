//! Pastes of terminals that do not say where one begins and ends: many lines of keys without a
//! pause. Into a list they are its elements, and not Enter on each of them. Pure: the keys are
//! handed in.

use std::time::Duration;

use crossterm::event::Event;

use super::dialog::Dialog;
use super::escape;
use super::guide::{Answer, Guide};
use super::items::Items;
use super::model::Model;
use crate::config::format::Format;
use crate::config::{HOSTS, read_hosts};
use crate::input::unify_line_ends;

/// Within this time the next key of a paste comes: at 9600 baud a byte takes 1 ms. The keys of a
/// keyboard that repeats lie farther apart, and so do those of hands.
pub(super) const DELAY: Duration = Duration::from_millis(10);

/// What lines can become elements of.
enum List<'m> {
    /// Rows that are open or asked.
    Rows(&'m Items),
    /// A text of elements between commas.
    Text(&'m Format),
}

/// The list that gets the keys, if any.
fn list(model: &Model) -> Option<List<'_>> {
    let rows = match (model.dialogs.last(), &model.guide) {
        (Some(Dialog::Items(items)), _) | (None, Some(Guide { answer: Answer::Rows(items), .. })) => Some(items),
        (Some(Dialog::Cell(_)), _) => model.dialogs.iter().rev().find_map(|dialog| match dialog {
            Dialog::Items(items) if !items.is_records() => Some(items),
            _ => None,
        }),
        _ => None,
    };
    let format = || match model.schema.rule(model.typed_symbol()?).format.as_ref()? {
        Format::List(element) => Some(List::Text(element)),
        _ => None,
    };
    rows.map(List::Rows).or_else(format)
}

/// Whether this key may be the first one of a paste into a list.
pub(super) fn may_begin(model: &Model, event: &Event) -> bool {
    escape::letter(event).is_some() && list(model).is_some()
}

/// This key and all characters that follow without a pause, and what ended them.
pub(super) fn collect<E>(
    first: Event,
    mut next: impl FnMut() -> Result<Option<Event>, E>,
) -> Result<(Vec<Event>, Option<Event>), E> {
    let mut burst = vec![first];
    while let Some(event) = next()? {
        if escape::letter(&event).is_none() {
            return Ok((burst, Some(event)));
        }
        burst.push(event);
    }
    Ok((burst, None))
}

/// The characters of such keys.
pub(super) fn text(burst: &[Event]) -> String {
    burst.iter().filter_map(escape::letter).collect()
}

/// Whether these keys are a paste: several lines, each of which the list can take.
pub(super) fn is_paste(model: &Model, text: &str) -> bool {
    let text = unify_line_ends(text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.len() < 2 {
        return false;
    }
    match list(model) {
        Some(List::Rows(items)) if items.is_records() => {
            model.schema.name(items.symbol) == HOSTS && read_hosts(&text).is_ok()
        }
        Some(List::Rows(items)) => items.read_lines(&lines).is_ok(),
        Some(List::Text(element)) => lines.iter().all(|line| element.validate(line.trim_end_matches(',')).is_ok()),
        None => false,
    }
}
