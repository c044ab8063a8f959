//! The loop: the only code of the wizard that touches the terminal and the signals.
//!
//! The terminal is left as it was on every way out: quit, error, panic, signal, suspension. One
//! that is gone ends the wizard.

use std::io::{self, stdin, stdout};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossterm::event::{
    self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use crossterm::execute;
use crossterm::style::Print;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Position, Rect};
use rustix::event::{PollFd, PollFlags, Timespec};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM};

use super::burst;
use super::checker::Checker;
use super::escape;
use super::files::{Files, OTHERS};
use super::input::Input;
use super::keymap::Key;
use super::model::Model;
use super::msg::{Effect, Msg};
use super::palette::Palette;
use super::recording::Recorder;
use super::update::{settle, update};
use super::view::{Drawn, view};
use crate::error::{Class, Context as _, Error, Result};

/// How long a signal may wait for us.
const TIMEOUT: Duration = Duration::from_millis(200);
/// How long what the check says may wait for the screen.
const CHECK_TIMEOUT: Duration = Duration::from_millis(20);

/// The terminal while the wizard has it; gives it back when dropped.
struct Screen {
    /// Its own way to give back the cursor ends in a panic when neither terminal nor standard error
    /// take any more.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Palette>>>,
}

/// Buttons and the wheel, with positions as SGR writes them. Movements, of which crossterm's own
/// command asks for every one, would only be sent and thrown away.
const WITH_MOUSE: Print<&str> = Print("\x1b[?1000h\x1b[?1006h");
const WITHOUT_MOUSE: Print<&str> = Print("\x1b[?1006l\x1b[?1000l");

impl Screen {
    fn open() -> Result<Self> {
        // Also restores the terminal before a panic is reported.
        let plain = ratatui::try_init().context_class(Class::Precondition, "cannot use the terminal")?;
        // It would give back the cursor when it is dropped.
        let _plain = ManuallyDrop::new(plain);
        let screen = Self { terminal: ManuallyDrop::new(new_terminal().context("cannot use the terminal")?) };
        execute!(stdout(), event::EnableBracketedPaste, WITH_MOUSE).context("cannot use the terminal")?;
        // The first poll begins to watch the window's size: a change between drawing and polling
        // would go unseen.
        event::poll(Duration::ZERO).context("cannot read from the terminal")?;
        Ok(screen)
    }

    fn area(&self) -> Result<Rect> {
        let size = self.terminal.size().context("cannot ask the terminal for its size")?;
        Ok(Rect::new(0, 0, size.width, size.height))
    }

    fn draw(&mut self, model: &mut Model) -> Result<()> {
        let mut drawn = Drawn::default();
        let result = self.terminal.draw(|frame| {
            let area = frame.area();
            drawn = view(model, area, frame.buffer_mut());
            if let Some(cursor) = drawn.cursor {
                frame.set_cursor_position(cursor);
            }
        });
        settle(model, drawn.below);
        result.map(drop).context("cannot draw on the terminal")
    }

    /// Takes the terminal again after another program had it.
    fn reopen(&mut self) -> Result<()> {
        let again = || -> io::Result<()> {
            crossterm::terminal::enable_raw_mode()?;
            execute!(
                stdout(),
                crossterm::terminal::EnterAlternateScreen,
                crossterm::terminal::Clear(crossterm::terminal::ClearType::All),
                event::EnableBracketedPaste,
                WITH_MOUSE
            )
        };
        again().context("cannot use the terminal again")?;
        // A new one draws everything. Clearing the old one would ask the terminal where its cursor
        // is, which not every one answers.
        let terminal = new_terminal().context("cannot use the terminal again")?;
        // The old one is left alone: it would only give the cursor back once more.
        self.terminal = ManuallyDrop::new(terminal);
        Ok(())
    }

    /// Stops this job as Ctrl-Z does in any other program, and goes on when it is woken up.
    fn suspend(&mut self) -> Result<()> {
        close();
        rustix::process::kill_current_process_group(rustix::process::Signal::TSTP).context("cannot suspend")?;
        self.reopen()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        close();
    }
}

fn new_terminal() -> io::Result<Terminal<CrosstermBackend<Palette>>> {
    Terminal::new(CrosstermBackend::new(Palette::new()))
}

fn close() {
    // Nothing better can be done for a terminal that takes no more orders.
    execute!(stdout(), WITHOUT_MOUSE, event::DisableBracketedPaste, crossterm::cursor::Show).ok();
    ratatui::try_restore().ok();
}

/// Signals as the loop sees them.
struct Signals {
    fatal: Arc<AtomicUsize>,
    woken: Arc<AtomicUsize>,
    registered: Vec<signal_hook::SigId>,
}

impl Signals {
    fn watch() -> Result<Self> {
        let mut signals = Self { fatal: Arc::default(), woken: Arc::default(), registered: Vec::new() };
        let watched =
            [(SIGHUP, &signals.fatal), (SIGINT, &signals.fatal), (SIGTERM, &signals.fatal), (SIGCONT, &signals.woken)];
        for (signal, flag) in watched {
            let number = usize::try_from(signal).unwrap_or(usize::MAX);
            let id =
                signal_hook::flag::register_usize(signal, Arc::clone(flag), number).context("cannot watch signals")?;
            signals.registered.push(id);
        }
        Ok(signals)
    }

    fn check(&self) -> Result<()> {
        match self.fatal.load(Ordering::Relaxed) {
            0 => Ok(()),
            number => {
                let name =
                    i32::try_from(number).ok().and_then(signal_hook::low_level::signal_name).unwrap_or("a signal");
                Err(ended_by(name))
            }
        }
    }

    fn was_woken(&self) -> bool {
        self.woken.swap(0, Ordering::Relaxed) != 0
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

fn ended_by(what: &str) -> Error {
    Error::interrupted(format!("the wizard was ended by {what}"))
        .hint("start it again: it offers the answers that were not saved")
}

/// Whether the terminal is gone: only the leader of a session and its foreground jobs are told by
/// SIGHUP.
fn is_hung_up() -> bool {
    let stdin = stdin();
    let mut terminal = [PollFd::new(&stdin, PollFlags::IN)];
    let polled = rustix::event::poll(&mut terminal, Some(&Timespec::default()));
    polled.is_ok() && terminal[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// Runs until the user leaves; returns whether the file was written.
pub(super) fn run(model: &mut Model, files: &mut dyn Files, recorder: &mut Recorder) -> Result<bool> {
    let signals = Signals::watch()?;
    let mut screen = Screen::open()?;
    let mut draft = Draft { kept: model.revision, since: None, failed: None, told: files.has_others() };
    let end = converse(&signals, &mut screen, model, files, recorder, &mut draft);
    if end.is_err() {
        draft.keep(model, files);
    }
    match end {
        // Whatever failed first failed because of that.
        Err(error) if error.class() != Class::Interrupted && is_hung_up() => Err(ended_by("its terminal's end")),
        end => end,
    }
}

fn converse(
    signals: &Signals,
    screen: &mut Screen,
    model: &mut Model,
    files: &mut dyn Files,
    recorder: &mut Recorder,
    draft: &mut Draft,
) -> Result<bool> {
    let (mut written, mut checker) = (false, Checker::default());
    screen.draw(model)?;
    loop {
        let event = wait(signals, checker.is_running(), &mut || {
            let told = draft.keep_and_tell(model, files);
            let verdict = checker.take(model);
            checker.start(model, files);
            Idle { draws: told || verdict, soon: checker.is_running() }
        })?;
        if signals.was_woken() {
            screen.reopen()?;
        }
        for input in event.map(|event| read_inputs(event, model)).transpose()?.unwrap_or_default() {
            let area = screen.area()?;
            recorder.note(model, &input, area)?;
            let mut next = input.message(model, area);
            while let Some(msg) = next.take() {
                match update(model, msg) {
                    Some(Effect::Leave) => {
                        files.forget_draft();
                        return Ok(written);
                    }
                    Some(Effect::Interrupt) => return Err(ended_by("Ctrl-C")),
                    Some(Effect::Suspend) => {
                        draft.keep(model, files);
                        screen.suspend()?;
                    }
                    Some(Effect::Redraw) => screen.reopen()?,
                    Some(Effect::Check { then: None }) => checker.start(model, files),
                    Some(effect) => {
                        next = checker.answer(model, &effect).or_else(|| files.carry_out(model, &effect));
                        written |= next == Some(Msg::Saved);
                    }
                    None => {}
                }
            }
        }
        screen.draw(model)?;
        draft.keep_in_time(model, files);
    }
}

/// The answers beside the file, which a crash does not reach.
struct Draft {
    /// Which answers were kept last.
    kept: u64,
    /// Since when there are others.
    since: Option<Instant>,
    /// When they could not be kept.
    failed: Option<Instant>,
    /// Whether it was told that another wizard is at work.
    told: bool,
}

/// Writing a large tree takes longer than a key may; while the user types without a pause, answers
/// are saved at this interval.
const KEEP_EVERY: Duration = Duration::from_millis(500);
/// Where answers could not be kept, this passes before it is tried again: a disk may have room by
/// then, although the user types nothing.
const RETRY_EVERY: Duration = Duration::from_secs(2);

impl Draft {
    /// While keys come one after the other.
    fn keep_in_time(&mut self, model: &mut Model, files: &dyn Files) {
        if self.kept == model.revision {
            self.since = None;
        } else if self.since.get_or_insert_with(Instant::now).elapsed() > KEEP_EVERY {
            self.keep(model, files);
        }
    }

    /// The same; whether there is something to tell about it.
    fn keep_and_tell(&mut self, model: &mut Model, files: &dyn Files) -> bool {
        let before = model.notice.clone();
        self.keep(model, files);
        model.notice != before
    }

    /// Whatever ends the wizard from here on, these answers are there at the next start.
    fn keep(&mut self, model: &mut Model, files: &dyn Files) {
        self.since = None;
        let changed = std::mem::replace(&mut self.kept, model.revision) != model.revision;
        if !changed && self.failed.is_none_or(|at| at.elapsed() < RETRY_EVERY) {
            return;
        }
        if !model.is_unsaved() {
            self.failed = None;
            return files.forget_draft();
        }
        match files.keep_draft(model) {
            Err(why) => {
                self.failed = Some(Instant::now());
                // Told once for each answer: what else is said meanwhile stays to be read.
                if changed {
                    model.complain(why);
                }
            }
            Ok(()) if self.failed.take().is_some() => model.say("unsaved answers are kept again"),
            Ok(()) => {
                if !self.told && files.has_others() {
                    self.told = true;
                    model.complain(OTHERS);
                }
            }
        }
    }
}

/// What became of the work that is done while no key is pressed.
struct Idle {
    /// Whether there is something to draw.
    draws: bool,
    /// Whether there will be soon.
    soon: bool,
}

/// The next event; nothing when there is something to draw without one: what signals did to the
/// screen, what deferred work, which is done while no key is pressed, has to tell.
fn wait(signals: &Signals, mut soon: bool, idle: &mut dyn FnMut() -> Idle) -> Result<Option<Event>> {
    loop {
        signals.check()?;
        let ready = event::poll(if soon { CHECK_TIMEOUT } else { TIMEOUT }).context("cannot read from the terminal")?;
        if ready {
            return event::read().map(Some).context("cannot read from the terminal");
        }
        let Idle { draws, soon: again } = idle();
        soon = again;
        if is_hung_up() {
            return Err(ended_by("its terminal's end"));
        }
        if draws || signals.woken.load(Ordering::Relaxed) != 0 {
            return Ok(None);
        }
    }
}

/// What an event means, with the rest of a sequence or of a paste that comes after it.
fn read_inputs(event: Event, model: &Model) -> Result<Vec<Input>> {
    if burst::may_begin(model, &event) {
        let (burst, end) =
            burst::collect(event, || next_event(burst::DELAY)).context("cannot read from the terminal")?;
        let text = burst::text(&burst);
        let mut inputs = if burst::is_paste(model, &text) {
            vec![Input::Paste(text)]
        } else {
            burst.into_iter().flat_map(read_event).collect()
        };
        inputs.extend(end.map(read_sequence).transpose()?.into_iter().flatten());
        return Ok(inputs);
    }
    read_sequence(event)
}

fn read_sequence(event: Event) -> Result<Vec<Input>> {
    if !escape::is_escape(&event) {
        return Ok(read_event(event));
    }
    let (mut inputs, rest) = escape::rejoin(|| next_event(escape::DELAY)).context("cannot read from the terminal")?;
    inputs.extend(rest.into_iter().flat_map(read_event));
    Ok(inputs)
}

/// The next event that comes within this time.
fn next_event(within: Duration) -> io::Result<Option<Event>> {
    if event::poll(within)? { event::read().map(Some) } else { Ok(None) }
}

fn read_event(event: Event) -> Vec<Input> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => read_keys(key).into_iter().map(Input::Key).collect(),
        Event::Paste(text) => vec![Input::Paste(text)],
        Event::Mouse(mouse) => read_mouse(mouse).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn read_mouse(mouse: MouseEvent) -> Option<Input> {
    match mouse.kind {
        MouseEventKind::ScrollUp => Some(Input::Wheel(-1)),
        MouseEventKind::ScrollDown => Some(Input::Wheel(1)),
        MouseEventKind::Down(MouseButton::Left) => Some(Input::Click(Position { x: mouse.column, y: mouse.row })),
        _ => None,
    }
}

/// Terminals send Alt and a key as Esc and that key, so that Esc and a key typed fast look like
/// Alt: here they are what was typed.
fn read_keys(key: KeyEvent) -> Vec<Key> {
    let escape = key.modifiers.contains(KeyModifiers::ALT).then_some(Key::Esc);
    escape.into_iter().chain(read_key(key)).collect()
}

fn read_key(key: KeyEvent) -> Option<Key> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char(c) if control => Key::Ctrl(c.to_ascii_lowercase()),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::F(number) => Key::F(number),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Tab => Key::Tab,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete => Key::Delete,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        _ => return None,
    })
}
