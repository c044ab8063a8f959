//! Texts as the screen has room for them.

use ratatui::text::Span;

use crate::config::{Problem, ProblemLevel};

/// One finding in a line, as `turnup config check` says it.
pub(in crate::wizard) fn problem_line(problem: &Problem) -> String {
    match problem.level {
        ProblemLevel::Error => format!("! {}", problem.message),
        ProblemLevel::Notice => format!("notice: {}", problem.message),
    }
}

/// The text, or its beginning and three dots.
pub(super) fn shorten(text: &str, room: usize) -> String {
    if Span::raw(text).width() <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        if Span::raw(format!("{short}{c}")).width() + 3 > room {
            break;
        }
        short.push(c);
    }
    format!("{short}...")
}
