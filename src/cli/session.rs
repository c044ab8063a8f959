//! What both commands with the wizard share: running it, writing a session down, playing one again.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::Printer;
use crate::error::{Error, Result};
use crate::wizard::Wizard;

/// Options of every wizard.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sessions")]
pub(super) struct SessionArgs {
    /// Write down every key, to play the session again
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Play a recorded session and print its screens, with the processor's time of each; writes
    /// nothing else
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    replay: Option<PathBuf>,
    /// The size of the screen on which a session is played
    #[arg(long, value_name = "COLUMNSxROWS", default_value = "80x24", requires = "replay",
        value_parser = parse_size)]
    size: (u16, u16),
}

fn parse_size(text: &str) -> Result<(u16, u16), String> {
    let numbers = text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    numbers.ok_or_else(|| "expected columns and rows, as in 80x24".to_owned())
}

impl SessionArgs {
    /// Whether a session is to be written down or played.
    pub(super) const fn is_given(&self) -> bool {
        self.record.is_some() || self.replay.is_some()
    }

    /// Runs the wizard, or plays a session in it.
    pub(super) fn run(&self, wizard: Wizard, path: &Path, printer: &Printer) -> Result<()> {
        if let Some(recording) = &self.replay {
            let text = fs_err::read_to_string(recording)?;
            return show(&wizard.play(&text, self.size)?, printer);
        }
        let end = wizard.run(self.record.as_deref())?;
        printer.remark(&end.describe(path));
        Ok(())
    }

    /// Refuses where there is no terminal to draw on; a session that is played needs none.
    pub(super) fn require_terminal(&self, printer: &Printer, hint: &str) -> Result<()> {
        use std::io::IsTerminal as _;
        let both = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        if self.replay.is_some() || !printer.is_json() && !is_dumb() && both {
            return Ok(());
        }
        Err(Error::usage("the wizard needs a terminal").hint(hint))
    }
}

/// Whether the terminal shows nothing but lines.
pub(super) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn show(moments: &[crate::wizard::Moment], printer: &Printer) -> Result<()> {
    if printer.is_json() {
        let list: Vec<_> = moments
            .iter()
            .map(|moment| {
                let cpu = u64::try_from(moment.cpu.as_micros()).unwrap_or(u64::MAX);
                json!({"input": moment.input, "screen": moment.screen, "cpu_microseconds": cpu})
            })
            .collect();
        return printer.json(&json!({"schema": "turnup.wizard.replay/1", "moments": list}));
    }
    moments.iter().try_for_each(|moment| {
        let time = moment.cpu.as_secs_f64() * 1000.0;
        printer.line(&format!("=== {} ({time:.1} ms)\n{}", moment.input, moment.screen))
    })
}
