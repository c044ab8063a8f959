//! Escape sequences that arrive in pieces: Esc, and after a moment the rest. Pure: the rest is
//! handed in.

use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Position;

use super::input::Input;
use super::keymap::Key;

/// How long the rest of a sequence may take. At 9600 baud a byte takes 1 ms, so this is far more
/// than a serial console needs; what packets of a network or of Serial over LAN lie apart is within
/// it, too. Neovim waits as long (`ttimeoutlen`); a user does not notice it.
pub(super) const DELAY: Duration = Duration::from_millis(50);

/// Whether this may be the beginning of a sequence.
pub(super) fn is_escape(event: &Event) -> bool {
    matches!(event, Event::Key(KeyEvent { code: KeyCode::Esc, modifiers: KeyModifiers::NONE, kind, .. })
        if *kind != KeyEventKind::Release)
}

/// What Esc and the events after it are; `next` waits for one as long as a sequence may take.
/// Events that belong to none are returned as they came.
pub(super) fn rejoin<E>(mut next: impl FnMut() -> Result<Option<Event>, E>) -> Result<(Vec<Input>, Vec<Event>), E> {
    let mut taken = Vec::new();
    let mut sequence = String::new();
    while let Some(event) = next()? {
        let letter = letter(&event);
        taken.push(event);
        let Some(letter) = letter else { break };
        sequence.push(letter);
        match Progress::of(&sequence) {
            Progress::Open => {}
            Progress::No => break,
            Progress::Done(input) => return Ok((input.into_iter().collect(), Vec::new())),
            Progress::Paste => return paste(next),
        }
    }
    Ok((vec![Input::Key(Key::Esc)], taken))
}

/// All that arrives without a pause: its end is a sequence that no one reads.
fn paste<E>(mut next: impl FnMut() -> Result<Option<Event>, E>) -> Result<(Vec<Input>, Vec<Event>), E> {
    let mut text = String::new();
    while let Some(event) = next()? {
        match letter(&event) {
            Some(letter) => text.push(letter),
            None => return Ok((vec![Input::Paste(text)], vec![event])),
        }
    }
    Ok((vec![Input::Paste(text)], Vec::new()))
}

/// The character that arrived.
pub(super) fn letter(event: &Event) -> Option<char> {
    let Event::Key(key) = event else { return None };
    match key.code {
        KeyCode::Char(letter) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => Some(letter),
        KeyCode::Enter => Some('\n'),
        KeyCode::Tab => Some('\t'),
        _ => None,
    }
}

enum Progress {
    /// More of it has to come.
    Open,
    /// It is a sequence; what it means, if anything.
    Done(Option<Input>),
    /// A paste begins.
    Paste,
    /// It is none.
    No,
}

impl Progress {
    /// How far the characters behind Esc are a sequence (ECMA-48: parameters, then a final byte).
    fn of(sequence: &str) -> Self {
        let mut letters = sequence.chars();
        match (letters.next(), letters.as_str()) {
            (Some('['), "200~") => Self::Paste,
            (Some('['), rest) => match rest.chars().last() {
                Some('0'..='9' | ';' | '<') | None => Self::Open,
                Some(last @ ('@'..='~')) => Self::Done(control(&rest[..rest.len() - 1], last)),
                Some(_) => Self::No,
            },
            (Some('O'), "") => Self::Open,
            (Some('O'), rest) => match key(rest) {
                Some(key) => Self::Done(Some(Input::Key(key))),
                None => Self::No,
            },
            _ => Self::No,
        }
    }
}

fn control(parameters: &str, last: char) -> Option<Input> {
    if let Some(mouse) = parameters.strip_prefix('<') {
        let numbers: Vec<u16> = mouse.split(';').map(str::parse).collect::<Result<_, _>>().ok()?;
        return match (numbers.as_slice(), last) {
            ([0, x, y], 'M') => Some(Input::Click(Position { x: x.saturating_sub(1), y: y.saturating_sub(1) })),
            ([64, ..], 'M') => Some(Input::Wheel(-1)),
            ([65, ..], 'M') => Some(Input::Wheel(1)),
            _ => None,
        };
    }
    let number = parameters.split(';').next().unwrap_or_default();
    let found = match (last, number) {
        ('~', "1" | "7") => Key::Home,
        ('~', "3") => Key::Delete,
        ('~', "4" | "8") => Key::End,
        ('~', "5") => Key::PageUp,
        ('~', "6") => Key::PageDown,
        // xterm leaves out 16 and 22.
        ('~', number) => match number.parse().ok()? {
            number @ 11_u8..=15 => Key::F(number - 10),
            number @ 17..=21 => Key::F(number - 11),
            number @ 23..=24 => Key::F(number - 12),
            _ => return None,
        },
        (last, _) => key(last.encode_utf8(&mut [0; 4]))?,
    };
    Some(Input::Key(found))
}

/// The key of a final byte.
fn key(last: &str) -> Option<Key> {
    Some(match last {
        "A" => Key::Up,
        "B" => Key::Down,
        "C" => Key::Right,
        "D" => Key::Left,
        "F" => Key::End,
        "H" => Key::Home,
        "P" => Key::F(1),
        "Q" => Key::F(2),
        "R" => Key::F(3),
        "S" => Key::F(4),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of Esc and these characters, one after the other, and how many are left.
    fn after_escape(text: &str) -> (Vec<Input>, usize) {
        let mut events = text.chars().map(|letter| Event::Key(KeyCode::Char(letter).into()));
        let (inputs, rest) = rejoin(|| Ok::<_, std::convert::Infallible>(events.next())).unwrap_or_default();
        (inputs, rest.len())
    }

    #[test]
    fn a_sequence_in_pieces_is_the_key_that_was_pressed() {
        let keys = [
            ("[A", Key::Up),
            ("OB", Key::Down),
            ("[1;5C", Key::Right),
            ("[3~", Key::Delete),
            ("[6~", Key::PageDown),
            ("[17~", Key::F(6)),
            ("OP", Key::F(1)),
        ];
        for (text, key) in keys {
            assert_eq!(after_escape(text), (vec![Input::Key(key)], 0), "{text}");
        }
        assert_eq!(after_escape("[<0;10;3M"), (vec![Input::Click(Position { x: 9, y: 2 })], 0));
        assert_eq!(after_escape("[200~a;b"), (vec![Input::Paste("a;b".to_owned())], 0));
        assert_eq!(after_escape("[<0;10;3m"), (Vec::new(), 0), "a button that is let go");
    }

    #[test]
    fn esc_stays_esc() {
        let escape = || vec![Input::Key(Key::Esc)];
        assert_eq!(after_escape(""), (escape(), 0));
        assert_eq!(after_escape("q"), (escape(), 1));
        assert_eq!(after_escape("Ox"), (escape(), 2));
        assert_eq!(after_escape("["), (escape(), 1), "what comes too late is typed");
    }
}
