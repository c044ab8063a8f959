//! What every display does, and how it writes texts of others and durations.

use std::borrow::Cow;

use serde_json::Value;

use crate::phase::Event;
use crate::terminal;

/// One way to show events.
pub(super) trait Show {
    fn show(&mut self, event: &Event);
    /// Called once after the last event, with the text of the table of times.
    fn close(&mut self, table: &str);
}

/// The event as it is shown to people: each text in it is one line without control characters.
pub(super) fn shown(event: &Event) -> Cow<'_, Event> {
    let Ok(mut value) = serde_json::to_value(event) else { return Cow::Borrowed(event) };
    if !escape_texts(&mut value) {
        return Cow::Borrowed(event);
    }
    serde_json::from_value(value).map_or(Cow::Borrowed(event), Cow::Owned)
}

/// Whether any was changed.
fn escape_texts(value: &mut Value) -> bool {
    match value {
        Value::String(text) => match terminal::line(text) {
            Cow::Borrowed(_) => false,
            Cow::Owned(escaped) => {
                *text = escaped;
                true
            }
        },
        Value::Array(items) => items.iter_mut().fold(false, |changed, item| escape_texts(item) | changed),
        Value::Object(members) => members.values_mut().fold(false, |changed, item| escape_texts(item) | changed),
        _ => false,
    }
}

/// Seconds in readable form: `0.4s`, `12.3s`, `3m05s`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    if seconds < 59.95 {
        return format!("{seconds:.1}s");
    }
    // Rounded first: 119.7 s are 2m00s and not 1m60s.
    let whole = format!("{seconds:.0}").parse::<u64>().unwrap_or_default();
    format!("{}m{:02}s", whole / 60, whole % 60)
}
