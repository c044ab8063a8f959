//! The user's input, whatever terminal it came from, and how it is recorded.

use std::fmt;
use std::str::FromStr;

use ratatui::layout::{Position, Rect};

use super::keymap::{Key, translate};
use super::model::Model;
use super::msg::Msg;
use super::view::{hit, is_too_small};

/// One input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Key(Key),
    Paste(String),
    Wheel(isize),
    Click(Position),
}

impl Input {
    /// The same with stars for characters.
    pub(super) fn masked(&self) -> Self {
        match self {
            Self::Key(Key::Char(_)) => Self::Key(Key::Char('*')),
            Self::Paste(text) => Self::Paste("*".repeat(text.chars().count())),
            other => other.clone(),
        }
    }

    /// What it means on this screen; nothing where it means nothing.
    pub(super) fn message(&self, model: &Model, area: Rect) -> Option<Msg> {
        if is_too_small(area) {
            return match self {
                Self::Key(Key::Ctrl('c')) => Some(Msg::Interrupt),
                Self::Key(Key::Ctrl('z')) => Some(Msg::Suspend),
                _ => None,
            };
        }
        match self {
            Self::Key(key) => translate(model.context(), *key),
            Self::Paste(text) => Some(Msg::Paste(text.clone())),
            Self::Wheel(lines) => Some(Msg::Move(*lines)),
            Self::Click(at) => hit(model, area, *at),
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => write!(f, "key {key}"),
            Self::Paste(text) => write!(f, "paste {}", serde_json::Value::from(text.as_str())),
            Self::Wheel(lines) => write!(f, "wheel {lines}"),
            Self::Click(at) => write!(f, "click {} {}", at.x, at.y),
        }
    }
}

impl FromStr for Input {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let wrong = || format!("`{line}` is none of: key NAME, paste \"TEXT\", wheel LINES, click COLUMN ROW");
        let (what, rest) = line.split_once(' ').ok_or_else(wrong)?;
        match what {
            "key" => Key::named(rest).map(Self::Key).ok_or_else(wrong),
            "paste" => serde_json::from_str(rest).map(Self::Paste).map_err(|_| wrong()),
            "wheel" => rest.parse().map(Self::Wheel).map_err(|_| wrong()),
            "click" => {
                let (x, y) = rest.split_once(' ').ok_or_else(wrong)?;
                let number = |text: &str| text.parse::<u16>().map_err(|_| wrong());
                Ok(Self::Click(Position { x: number(x)?, y: number(y)? }))
            }
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_is_read_again() {
        let keys =
            [Key::Enter, Key::Char('x'), Key::Char(' '), Key::Char('-'), Key::Ctrl('r'), Key::F(10), Key::PageDown];
        let others = [Input::Paste("a \"b\"\nc".into()), Input::Wheel(-1), Input::Click(Position { x: 3, y: 4 })];
        for input in keys.map(Input::Key).into_iter().chain(others) {
            assert_eq!(input.to_string().parse(), Ok(input));
        }
        for wrong in ["", "key", "key Entr", "click 1", "wheel x", "paste x", "size 1x1"] {
            assert!(wrong.parse::<Input>().is_err(), "{wrong}");
        }
    }
}
