//! One JSON object a line on standard output: for programs. The format is `turnup.events/1`; it grows, it does not change.

use std::io::Write;

use super::Show;
use crate::phase::Event;

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
        let written = serde_json::to_vec(event).map_err(std::io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            out.write_all(&line)?;
            out.flush()
        });
        if written.is_err() {
            // The reader has gone away; the work goes on.
            self.out = None;
        }
    }

    fn close(&mut self, _table: &str) {}
}
