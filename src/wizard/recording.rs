//! A session written down as it happens, and played again without a terminal: keys in, screens out,
//! with the time that each took.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::files::Files;
use super::input::Input;
use super::model::Model;
use super::msg::{Effect, Msg};
use super::update::{settle, update};
use super::view::view;
use crate::error::{Context as _, Error, Result};

/// Records the user's input.
pub(super) struct Recorder {
    file: Option<fs_err::File>,
    area: Option<Rect>,
}

impl Recorder {
    /// Into this file, which must not be there yet; nowhere without one.
    pub(super) fn open(path: Option<&Path>) -> Result<Self> {
        let create = |path: &Path| {
            let made = fs_err::OpenOptions::new().write(true).create_new(true).open(path);
            made.map_err(|error| Error::usage(format!("cannot record into {}: {error}", path.display())))
        };
        Ok(Self { file: path.map(create).transpose()?, area: None })
    }

    /// One line for what was done, and one before it where the screen has another size. Of what is
    /// typed as a secret only the length.
    pub(super) fn note(&mut self, model: &Model, input: &Input, area: Rect) -> Result<()> {
        let masked = if model.is_typing_a_secret() { input.masked() } else { input.clone() };
        let input = &masked;
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut text = String::new();
        if self.area != Some(area) {
            self.area = Some(area);
            text = format!("size {}x{}\n", area.width, area.height);
        }
        file.write_all(format!("{text}{input}\n").as_bytes()).context("cannot record the session")
    }
}

/// One moment of a session that is played again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// What was done, as it was written down; `start` at first.
    pub input: String,
    /// The screen after it.
    pub screen: String,
    /// The processor's time from the key to the drawn screen.
    pub cpu: Duration,
}

/// Plays a recording from this state of the wizard. Nothing is written: what is saved counts as
/// saved, what is loaded is empty.
pub(super) fn play(model: &mut Model, files: &mut dyn Files, recording: &str, mut area: Rect) -> Result<Vec<Moment>> {
    let mut moments = Vec::new();
    let (mut buffer, cpu) = timed(|| draw(model, area));
    moments.push(Moment { input: "start".to_owned(), screen: text(&buffer), cpu });
    for (index, line) in recording.lines().enumerate() {
        let wrong = |why: String| Error::config(format!("line {} of the recording: {why}", index + 1));
        if let Some(size) = line.strip_prefix("size ") {
            let (width, height) = size.split_once('x').ok_or_else(|| wrong(format!("`{size}` is no size")))?;
            let number = |text: &str| text.parse::<u16>().map_err(|error| wrong(error.to_string()));
            area = Rect::new(0, 0, number(width)?, number(height)?);
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let input: Input = line.parse().map_err(wrong)?;
        let (leaves, cpu);
        ((buffer, leaves), cpu) = timed(|| {
            let leaves = act(model, files, &input, area);
            (draw(model, area), leaves)
        });
        moments.push(Moment { input: line.to_owned(), screen: text(&buffer), cpu });
        if leaves {
            break;
        }
    }
    Ok(moments)
}

/// Takes one input; whether it ends the session.
fn act(model: &mut Model, files: &mut dyn Files, input: &Input, area: Rect) -> bool {
    let mut next = input.message(model, area);
    while let Some(msg) = next.take() {
        next = match update(model, msg) {
            Some(Effect::Leave) => return true,
            Some(Effect::Save { .. }) => Some(Msg::Saved),
            Some(Effect::Write { path, .. }) => Some(Msg::Written(path)),
            Some(Effect::Complete(_)) => Some(Msg::Completed(Vec::new())),
            Some(check @ Effect::Check { .. }) => files.carry_out(model, &check),
            _ => None,
        };
    }
    false
}

fn draw(model: &mut Model, area: Rect) -> Buffer {
    let mut buffer = Buffer::empty(area);
    let drawn = view(model, area, &mut buffer);
    settle(model, drawn.below);
    buffer
}

/// The lines of a screen, without blanks at their ends.
pub(super) fn text(buffer: &Buffer) -> String {
    let line = |y: u16| {
        let symbols: String = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
        symbols.trim_end().to_owned()
    };
    (0..buffer.area.height).map(line).collect::<Vec<_>>().join("\n")
}

/// The result, and the processor's time of this thread for it.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
    };
    let start = now();
    let result = work();
    (result, now().saturating_sub(start))
}
