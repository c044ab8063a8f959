//! A picture as SVG 1.1, for documents and reviews: the same boxes and words as in the terminal,
//! without scripts, links or fonts of its own.

use std::fmt::Write as _;

use super::Picture;
use super::cost::Cost;
use super::model::Zone;
use super::text::Glyphs;

const WIDTH: usize = 960;
const MARGIN: usize = 20;
/// Of one line of text, and of one letter of it.
const LINE: usize = 18;
const LETTER: usize = 8;
const PADDING: usize = 10;
/// Zones in a row.
const COLUMNS: usize = 3;
const GLYPHS: Glyphs = Glyphs::UNICODE;

const STYLE: &str = "text{font:13px monospace;fill:#1b1f24}.title{font-weight:bold}.dim{fill:#57606a}.alarm{fill:#b3261e;font-weight:bold}\
                     rect{fill:#ffffff;stroke:#57606a}.network{fill:#f3f6fa}.zone{fill:#ffffff}line{stroke:#57606a}";

/// A drawing that grows downwards.
#[derive(Default)]
struct Canvas {
    shapes: String,
}

impl Canvas {
    // Writing to a String cannot fail.
    fn text(&mut self, x: usize, y: usize, class: &str, text: &str) {
        let _ = writeln!(self.shapes, r#"<text x="{x}" y="{y}" class="{class}">{}</text>"#, escape(text));
    }

    fn rect(&mut self, x: usize, y: usize, width: usize, height: usize, class: &str) {
        let _ = writeln!(
            self.shapes,
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" class="{class}"/>"#
        );
    }

    fn down(&mut self, x: usize, from: usize, to: usize) {
        let _ = writeln!(self.shapes, r#"<line x1="{x}" y1="{from}" x2="{x}" y2="{to}"/>"#);
    }

    /// A box with lines of text: its heading, the others.
    fn note(&mut self, at: (usize, usize), size: (usize, usize), class: &str, lines: &[(String, bool)]) {
        let ((x, y), (width, height)) = (at, size);
        self.rect(x, y, width, height, class);
        let room = (width - 2 * PADDING) / LETTER;
        for (row, (text, is_title)) in (1..).zip(lines) {
            let class = if *is_title { "title" } else { "dim" };
            self.text(x + PADDING, y + row * LINE, class, &GLYPHS.cut(text, room));
        }
    }
}

/// Text as XML has it; what XML cannot have at all is replaced.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            letter if letter.is_control() => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

impl Picture {
    /// The picture as a document of its own.
    #[must_use]
    pub(crate) fn svg(&self) -> String {
        let mut canvas = Canvas::default();
        let title = format!("{}: {}", self.title(), self.host_count());
        canvas.text(MARGIN, MARGIN + LINE, "title", &title);
        let top = self.draw_doors(&mut canvas, MARGIN + 2 * LINE);
        let bottom = self.draw_network(&mut canvas, top);
        canvas.text(MARGIN, bottom + LINE, "dim", &self.inner_networks());
        let height = match &self.cost {
            Some(cost) => draw_cost(&mut canvas, cost, bottom + 2 * LINE),
            None => bottom + LINE,
        } + MARGIN;
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
             <title>{}</title>\n<style>{STYLE}</style>\n<rect x=\"0\" y=\"0\" width=\"{WIDTH}\" height=\"{height}\"/>\n{}</svg>\n",
            escape(&title),
            canvas.shapes
        )
    }

    /// Clients, and a line to each door. Returns where the network of the hosts begins.
    fn draw_doors(&self, canvas: &mut Canvas, top: usize) -> usize {
        canvas.text(MARGIN, top + LINE, "title", self.outside);
        let share = (WIDTH - 2 * MARGIN) / self.doors.len().max(1);
        let lines = self.doors.iter().map(|door| door.networks().len() + 1).max().unwrap_or(1);
        let bottom = top + (lines + 2) * LINE;
        for (at, door) in self.doors.iter().enumerate() {
            let x = MARGIN + at * share + PADDING;
            canvas.down(x, top + LINE + 6, bottom);
            let room = (share - 2 * PADDING) / LETTER;
            canvas.text(x + PADDING, top + 2 * LINE, "title", &GLYPHS.cut(&door.heading(), room));
            for (row, (text, is_alarm)) in (3..).zip(door.networks()) {
                let class = if is_alarm { "alarm" } else { "dim" };
                canvas.text(x + PADDING, top + row * LINE, class, &GLYPHS.cut(&text, room));
            }
        }
        bottom
    }

    /// The network with all that stands in it. Returns where it ends.
    fn draw_network(&self, canvas: &mut Canvas, top: usize) -> usize {
        let mut inside = Canvas::default();
        let width = WIDTH - 2 * MARGIN - 2 * PADDING;
        let mut y = top + LINE + PADDING;
        if !self.fixtures.is_empty() {
            let share = width / self.fixtures.len();
            for (at, fixture) in self.fixtures.iter().enumerate() {
                let lines: Vec<(String, bool)> = fixture.lines(GLYPHS.times).into_iter().zip([true, false]).collect();
                let place = (MARGIN + PADDING + at * share, y);
                inside.note(place, (share - PADDING, 2 * LINE + PADDING), "zone", &lines);
            }
            y += 2 * LINE + 2 * PADDING;
        }
        let columns = self.zones.len().clamp(1, COLUMNS);
        let share = width / columns;
        for row in self.zones.chunks(columns) {
            let texts: Vec<Vec<(String, bool)>> = row.iter().map(zone_lines).collect();
            let height = texts.iter().map(Vec::len).max().unwrap_or(0) * LINE + PADDING;
            for (at, text) in texts.iter().enumerate() {
                inside.note((MARGIN + PADDING + at * share, y), (share - PADDING, height), "zone", text);
            }
            y += height + PADDING;
        }
        canvas.rect(MARGIN, top, WIDTH - 2 * MARGIN, y - top, "network");
        canvas.text(MARGIN + PADDING, top + LINE, "title", &self.network_title());
        canvas.shapes.push_str(&inside.shapes);
        y
    }
}

/// The words in a zone's box.
fn zone_lines(zone: &Zone) -> Vec<(String, bool)> {
    let mut lines = vec![(zone.title(), true)];
    lines.retain(|(title, _)| !title.is_empty());
    for hosts in &zone.hosts {
        lines.push((hosts.heading(GLYPHS.times), true));
        lines.extend(hosts.details().into_iter().map(|detail| (format!("\u{a0}\u{a0}{detail}"), false)));
    }
    lines
}

/// The estimate below the picture. Returns where it ends.
fn draw_cost(canvas: &mut Canvas, cost: &Cost, top: usize) -> usize {
    let mut y = top + LINE;
    canvas.text(MARGIN, y, "title", &cost.sum());
    for line in &cost.lines {
        y += LINE;
        canvas.text(MARGIN + PADDING, y, "dim", &format!("{} {} {}", line.count, GLYPHS.times, line.what));
        canvas.text(MARGIN + 50 * LETTER, y, "dim", &line.price());
    }
    for term in cost.terms() {
        y += LINE;
        canvas.text(MARGIN, y, "dim", &term);
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_stays_text() {
        assert_eq!(escape("<a href=\"x\">&\u{1}\u{ffff}"), "&lt;a href=&quot;x&quot;&gt;&amp;\u{fffd}\u{fffd}");
        assert_eq!(GLYPHS.cut("abcd", 4), "abcd");
        assert_eq!(GLYPHS.cut("abcde", 4), "abc…");
    }
}
