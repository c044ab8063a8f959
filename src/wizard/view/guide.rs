//! The guide on the screen: one question with its help, or the summary.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget as _};

use super::drawn::Drawn;
use super::editors::{draw_field, expected, judge};
use super::text::shorten;
use super::theme::Theme;
use super::wrap::wrap;
use super::{details, lists};
use crate::config::{HOSTS, ProblemLevel};
use crate::wizard::guide::{Answer, Guide, Question};
use crate::wizard::items::Items;
use crate::wizard::model::Model;
use crate::wizard::msg::Msg;
use crate::wizard::questions::summary;
use crate::wizard::{picture, start_from};

/// Lines wider than this are hard to read.
const WIDEST: u16 = 100;

/// How far one has come.
pub(super) fn draw_path(model: &Model, theme: Theme, guide: &Guide, area: Rect, buffer: &mut Buffer) {
    let (at, count) = guide.progress(model);
    let text = if guide.is_at_end() { " Summary ".to_owned() } else { format!(" Question {at} of {count} ") };
    let (done, open) = theme.bar_parts();
    let room = usize::from(area.width).saturating_sub(text.len() + 2).min(40);
    let filled = room * (at - 1) / count.max(1);
    Line::from(vec![
        Span::styled(text, theme.title()),
        Span::styled(done.repeat(filled), theme.value()),
        Span::styled(open.repeat(room - filled), Theme::dim()),
    ])
    .render(area, buffer);
}

/// Where the question stands.
fn question_area(body: Rect) -> Rect {
    Rect {
        x: body.x + 1,
        y: body.y + 1,
        width: body.width.saturating_sub(2).min(WIDEST),
        height: body.height.saturating_sub(1),
    }
}

/// Where its answer stands, below the question.
fn answer_area(area: Rect) -> Rect {
    Rect { y: area.y + 2, height: area.height.saturating_sub(2), ..area }
}

/// The options that have room, and the first of them.
fn options_shown(count: usize, cursor: usize, answer: Rect) -> (Rect, usize) {
    let height = count.min(usize::from(answer.height / 2).max(3));
    let area = Rect { width: answer.width.min(60), height: super::frame::to_u16(height), ..answer };
    (area, lists::first_shown(cursor, count, area))
}

/// What a click means: the cursor goes to an option, a second click takes it.
pub(super) fn hit(guide: &Guide, body: Rect, at: Position) -> Option<Msg> {
    let Answer::Options { options, cursor } = &guide.answer else { return None };
    let (area, _) = options_shown(options.len(), *cursor, answer_area(question_area(body)));
    let line = lists::line_at(*cursor, options.len(), area, at)?;
    Some(if line == *cursor { Msg::Accept } else { Msg::Select(line) })
}

/// The question.
pub(super) fn draw(model: &Model, theme: Theme, guide: &Guide, area: Rect, buffer: &mut Buffer) -> Drawn {
    let area = question_area(area);
    let Some(question) = guide.question else {
        return draw_summary(model, theme, guide, area, buffer);
    };
    Line::styled(guide.title(model).to_owned(), theme.title()).render(Rect { height: 1, ..area }, buffer);
    let answer = answer_area(area);
    let (cursor, used) = draw_answer(model, theme, guide, answer, buffer);
    let help = Rect { y: answer.y + used + 1, height: answer.height.saturating_sub(used + 1), ..answer };
    let lines = match question {
        Question::Node(node) => details::help(model, node),
        Question::Profile => profile_help(model, &guide.answer),
    };
    let lines = wrap(lines, help.width);
    let most = lines.len().saturating_sub(usize::from(help.height));
    let first = guide.scroll.min(most);
    Paragraph::new(lines.into_iter().skip(first).collect::<Vec<_>>()).render(help, buffer);
    if first < most {
        buffer.set_string(help.right(), help.bottom().saturating_sub(1), theme.down(), Theme::key());
    }
    Drawn { cursor, below: most }
}

/// What the profile under the cursor is for, and what a profile is.
fn profile_help(model: &Model, answer: &Answer) -> Vec<Line<'static>> {
    let chosen = match answer {
        Answer::Options { options, cursor } => options.get(*cursor).map_or(start_from::NONE, |option| &option.value),
        _ => start_from::NONE,
    };
    vec![
        Line::raw(start_from::purpose(model, chosen)),
        Line::default(),
        Line::raw("A profile gives answers to the questions that follow and to settings that the guide does not ask."),
    ]
}

/// The rows of a list, and what to do with them.
fn draw_rows(model: &Model, theme: Theme, items: &Items, area: Rect, buffer: &mut Buffer) -> u16 {
    let height = super::frame::to_u16(items.rows.len().max(1)).min((area.height / 2).max(3));
    let shown = Rect { height, ..area };
    let width = usize::from(area.width);
    let lines: Vec<Line<'static>> = if items.rows.is_empty() {
        vec![Line::styled("none", theme.value())]
    } else {
        items.rows.iter().map(|row| Line::raw(shorten(&items.summary(row), width))).collect()
    };
    lists::draw_choices(theme, lines, items.cursor, shown, buffer);
    let paste = if model.schema.name(items.symbol) == HOSTS {
        "a adds one. Or paste them: NAME ADDRESS ROLE in each line, CSV, an inventory of Ansible, what ssh-keyscan prints."
    } else {
        "a adds one; a JSON list can be pasted."
    };
    let wrong = model.problem(items.symbol).map(|problem| theme.problem(problem));
    let below = wrap(wrong.into_iter().chain([Line::styled(paste, Theme::dim())]).collect(), area.width);
    let used = height + 1 + super::frame::to_u16(below.len());
    Paragraph::new(below).render(Rect { y: area.y + height + 1, ..area }.intersection(area), buffer);
    used
}

fn draw_answer(model: &Model, theme: Theme, guide: &Guide, area: Rect, buffer: &mut Buffer) -> (Option<Position>, u16) {
    match &guide.answer {
        Answer::Nothing => (None, 0),
        Answer::Rows(items) => (None, draw_rows(model, theme, items, area, buffer)),
        Answer::Options { options, cursor } => {
            let (shown, first) = options_shown(options.len(), *cursor, area);
            for ((index, option), row) in options.iter().enumerate().skip(first).zip(shown.rows()) {
                let mark = if option.current { "(X) " } else { "( ) " };
                Line::from(vec![Span::styled(mark, theme.value()), Span::raw(option.label.clone())])
                    .render(row, buffer);
                if index == *cursor {
                    buffer.set_style(row, Theme::cursor());
                }
            }
            (None, shown.height)
        }
        Answer::Text(line) => {
            let symbol = guide.node().and_then(|node| model.schema.tree().node(node).symbol);
            let Some(symbol) = symbol else { return (None, 0) };
            let field = Rect { width: area.width.min(60), height: 1, ..area };
            let cursor = draw_field(line, model.schema.rule(symbol).secret, field, buffer);
            let mut verdict = wrap(vec![judge(model, theme, symbol, line.text())], area.width);
            // What follows stands still while one types, but for a remedy that is longer.
            verdict.resize(verdict.len().max(2), Line::default());
            let form = wrap(vec![Line::styled(expected(model, symbol), Theme::dim())], area.width);
            let used = super::frame::to_u16((verdict.len() + form.len()).max(4)) + 1;
            let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
            Paragraph::new([verdict, form].concat()).render(below, buffer);
            (Some(cursor), used)
        }
    }
}

fn draw_summary(model: &Model, theme: Theme, guide: &Guide, area: Rect, buffer: &mut Buffer) -> Drawn {
    let (wrong, rest) = (summary_wrong(model, theme, guide.cursor), summary_lines(model, theme, area.width));
    // The answer under the cursor stays in sight.
    let first: usize = wrong.iter().take(guide.cursor + 2).map(|line| wrap(vec![line.clone()], area.width).len()).sum();
    let lines = wrap([wrong, rest].concat(), area.width);
    let height = usize::from(area.height);
    let most = lines.len().saturating_sub(height);
    let scroll = guide.scroll.max(first.saturating_sub(height)).min(most);
    Paragraph::new(lines.into_iter().skip(scroll).collect::<Vec<_>>()).render(area, buffer);
    if scroll < most {
        buffer.set_string(area.right(), area.bottom().saturating_sub(1), theme.down(), Theme::key());
    }
    Drawn::scrolls(most)
}

/// What `turnup plan` would refuse, each to be gone to.
fn summary_wrong(model: &Model, theme: Theme, cursor: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = model.errors().map(|problem| theme.problem(problem)).collect();
    if lines.is_empty() {
        return lines;
    }
    if let Some(line) = lines.get_mut(cursor) {
        line.style = line.style.patch(Theme::cursor());
    }
    lines.insert(0, Line::styled("turnup plan would refuse this", theme.title()));
    lines.push(Line::default());
    lines
}

fn summary_lines(model: &Model, theme: Theme, picture_width: u16) -> Vec<Line<'static>> {
    let (answers, consequences) = summary(model);
    let width = answers.iter().map(|(prompt, _)| Span::raw(prompt).width()).max().unwrap_or(0);
    let mut lines = vec![Line::styled("Your answers", theme.title()), Line::default()];
    for (prompt, value) in answers {
        let gap = " ".repeat(width.saturating_sub(Span::raw(&prompt).width()) + 2);
        lines.push(Line::from(vec![Span::raw(format!("{prompt}{gap}")), Span::styled(value, theme.value())]));
    }
    lines.push(Line::default());
    let notices = model.problems.iter().filter(|problem| problem.level == ProblemLevel::Notice);
    lines.extend(notices.map(|problem| theme.problem(problem)));
    lines.extend(consequences.into_iter().map(Line::raw));
    lines.extend(picture::lines(model.picture(), model.ascii, picture_width).into_iter().map(Line::raw));
    lines
}
