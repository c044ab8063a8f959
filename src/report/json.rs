//! One JSON object a line on standard output: for programs. The format is `turnup.events/1`; it
//! grows, it does not change.

use std::io::Write;

use super::show::Show;
use crate::phase::Event;
use crate::terminal;

/// Writes every event as it is.
pub(super) struct Json {
    out: Option<Box<dyn Write>>,
}

impl Json {
    pub(super) fn new(out: Box<dyn Write>) -> Self {
        Self { out: Some(out) }
    }
}

impl Show for Json {
    fn show(&mut self, event: &Event) {
        let Some(out) = &mut self.out else { return };
        let written = serde_json::to_string(event).map_err(std::io::Error::from).and_then(|line| {
            writeln!(out, "{}", terminal::json(&line))?;
            out.flush()
        });
        if written.is_err() {
            // The reader has gone away; the work goes on.
            self.out = None;
        }
    }

    fn close(&mut self, _table: &str) {}
}
