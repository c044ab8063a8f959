//! A picture in letters: boxes of lines for a terminal, of a given width.
//!
//! What both drawings say of a host or a door, in words, is here too.

use super::Picture;
use super::cost::Cost;
use super::door::{AllowedNetwork, Door};
use super::model::{Fixture, HostSet, Zone};

/// The least width of a zone's box.
const NARROWEST_ZONE: usize = 24;
/// What is drawn is never narrower than this.
const NARROWEST: usize = 40;

/// What lines are drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Glyphs {
    /// Across, down.
    lines: [&'static str; 2],
    /// Of a box: upper left, upper right, lower left, lower right.
    corners: [&'static str; 4],
    branch: &'static str,
    last_branch: &'static str,
    pub(super) times: &'static str,
    cut: char,
}

impl Glyphs {
    /// For every terminal.
    pub(crate) const ASCII: Self = Self {
        lines: ["-", "|"],
        corners: ["+", "+", "+", "+"],
        branch: "+--",
        last_branch: "v",
        times: "x",
        cut: '~',
    };
    /// For terminals that show Unicode.
    pub(crate) const UNICODE: Self = Self {
        lines: ["─", "│"],
        corners: ["┌", "┐", "└", "┘"],
        branch: "├──",
        last_branch: "▼",
        times: "×",
        cut: '…',
    };

    /// The text, as much as fits into this width.
    pub(super) fn cut(self, text: &str, width: usize) -> String {
        if text.chars().count() <= width {
            return text.to_owned();
        }
        text.chars().take(width.saturating_sub(1)).chain([self.cut]).collect()
    }

    /// A box of this width with at least so many lines in it; `lines` fit already.
    fn boxed(self, title: &str, lines: &[String], width: usize, height: usize) -> Vec<String> {
        let inner = width.saturating_sub(4);
        let [across, down] = self.lines;
        let [upper_left, upper_right, lower_left, lower_right] = self.corners;
        let title =
            if title.is_empty() { String::new() } else { format!(" {} ", self.cut(title, inner.saturating_sub(2))) };
        let rest = across.repeat((inner + 1).saturating_sub(title.chars().count()));
        let mut drawn = vec![format!("{upper_left}{across}{title}{rest}{upper_right}")];
        for at in 0..lines.len().max(height) {
            let line = self.cut(lines.get(at).map_or("", String::as_str), inner);
            let gap = " ".repeat(inner - line.chars().count());
            drawn.push(format!("{down} {line}{gap} {down}"));
        }
        drawn.push(format!("{lower_left}{}{lower_right}", across.repeat(inner + 2)));
        drawn
    }

    /// Boxes side by side, equally high, that share this width: the title of each, and its lines.
    fn row(self, texts: &[(String, Vec<String>)], width: usize) -> Vec<String> {
        let (share, more) = ((width + 1) / texts.len() - 1, (width + 1) % texts.len());
        let widths = (0..texts.len()).map(|at| if at < more { share + 1 } else { share });
        let wrapped: Vec<_> = texts
            .iter()
            .zip(widths)
            .map(|((title, lines), width)| {
                let lines: Vec<String> = lines.iter().flat_map(|line| wrap(line, width.saturating_sub(4))).collect();
                (title, lines, width)
            })
            .collect();
        let height = wrapped.iter().map(|(_, lines, _)| lines.len()).max().unwrap_or(0);
        let boxes: Vec<_> =
            wrapped.iter().map(|(title, lines, width)| self.boxed(title, lines, *width, height)).collect();
        let line = |at: usize| boxes.iter().map(|drawn| drawn[at].as_str()).collect::<Vec<_>>().join(" ");
        (0..height + 2).map(line).collect()
    }
}

/// The words of a line in lines of this width; those that follow stand a little to the right.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let indent = line.len() - line.trim_start().len();
    let mut lines = vec![" ".repeat(indent)];
    let mut is_empty = true;
    for word in line.split_whitespace() {
        let last = lines.last().map_or(0, |last| last.chars().count());
        if !is_empty && last + 1 + word.chars().count() > width {
            lines.push(" ".repeat(indent + 2));
            is_empty = true;
        }
        if let Some(last) = lines.last_mut() {
            last.push_str(if is_empty { "" } else { " " });
            last.push_str(word);
        }
        is_empty = false;
    }
    lines
}

impl HostSet {
    /// The name, and how many there are.
    pub(super) fn heading(&self, times: &str) -> String {
        let count = match (self.least, self.most) {
            (1, 1) => String::new(),
            (least, most) if least == most => format!(" {times} {most}"),
            (least, most) => format!(" {times} {least} or {most}"),
        };
        let limit = self.grows_to.map_or_else(String::new, |most| format!(" (all: at most {most})"));
        format!("{}{count}{limit}", self.name)
    }

    /// All else that is known of them.
    pub(super) fn details(&self) -> Vec<String> {
        let spot = if self.spot { ", spot" } else { "" };
        let machine = self.machine_type.as_ref().map(|kind| format!("{kind}{spot}"));
        let disks = self.disk.iter().chain(&self.etcd);
        let disks = disks.map(|disk| format!("{}: {} GB {}", disk.what, disk.size_gb, disk.kind));
        let public = self.public_address.filter(|public| *public).map(|_| "public address".to_owned());
        let address = self.address.map(|address| address.to_string());
        machine.into_iter().chain(disks).chain(public).chain(address).collect()
    }
}

impl Door {
    /// What it is and what leads to it.
    pub(super) fn heading(&self) -> String {
        format!("{}, tcp {}, via {}", self.service, self.port, self.by)
    }

    /// From where it is open, and whether that is to be noticed.
    pub(super) fn networks(&self) -> Vec<(String, bool)> {
        if !self.is_open {
            return vec![("closed: reached from inside the network only".to_owned(), false)];
        }
        let shown = |network: &AllowedNetwork| {
            let mark = if network.is_world { "  OPEN TO THE WORLD" } else { "" };
            (format!("from {}{mark}", network.network), network.is_world)
        };
        self.allowed.iter().map(shown).collect()
    }
}

impl Fixture {
    pub(super) fn lines(&self, times: &str) -> Vec<String> {
        let count = if self.count == 1 { String::new() } else { format!(" {times} {}", self.count) };
        vec![format!("{}{count}", self.what), self.detail.clone()]
    }
}

impl Zone {
    /// The heading of its box; empty where the target has no zones.
    pub(super) fn title(&self) -> String {
        match self.name.as_str() {
            "" => String::new(),
            // Azure's zones are numbers.
            name if name.len() < 3 => format!("zone {name}"),
            name => name.to_owned(),
        }
    }

    fn lines(&self, glyphs: Glyphs) -> Vec<String> {
        let one = |hosts: &HostSet| {
            let details = hosts.details().into_iter().map(|detail| format!("  {detail}"));
            std::iter::once(hosts.heading(glyphs.times)).chain(details).collect::<Vec<_>>()
        };
        self.hosts.iter().flat_map(one).collect()
    }
}

impl Picture {
    /// The picture as lines of at most this width.
    #[must_use]
    pub(crate) fn lines(&self, width: usize, glyphs: Glyphs) -> Vec<String> {
        let width = width.max(NARROWEST);
        let mut lines = vec![glyphs.cut(&format!("{}: {}", self.title(), self.host_count()), width), String::new()];
        lines.extend(self.way_in(glyphs).into_iter().map(|line| glyphs.cut(&line, width)));
        lines.extend(glyphs.boxed(&self.network_title(), &self.inside(width - 4, glyphs), width, 0));
        lines.push(glyphs.cut(&self.inner_networks(), width));
        if let Some(cost) = &self.cost {
            lines.push(String::new());
            lines.extend(cost_lines(cost, glyphs).into_iter().map(|line| glyphs.cut(&line, width)));
        }
        lines
    }

    /// The heading of the hosts' network.
    pub(super) fn network_title(&self) -> String {
        self.host_network.as_ref().map_or_else(|| "hosts".to_owned(), |network| format!("hosts {network}"))
    }

    /// The networks that the cluster has to itself.
    pub(super) fn inner_networks(&self) -> String {
        format!("pods {}   Services {}", self.pod_network, self.service_network)
    }

    pub(super) fn host_count(&self) -> String {
        let counted = |count: u32, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let control_plane = counted(self.control_plane_hosts, "control-plane host", "control-plane hosts");
        format!("{control_plane}, {}", counted(self.workers, "worker", "workers"))
    }

    fn way_in(&self, glyphs: Glyphs) -> Vec<String> {
        let down = glyphs.lines[1];
        let mut lines = vec![format!("  {}", self.outside)];
        for door in &self.doors {
            lines.push(format!("    {} {}", glyphs.branch, door.heading()));
            lines.extend(door.networks().into_iter().map(|(text, _)| format!("    {down}     {text}")));
        }
        lines.push(format!("    {}", glyphs.last_branch));
        lines
    }

    /// What stands in the network of the hosts.
    fn inside(&self, width: usize, glyphs: Glyphs) -> Vec<String> {
        let mut lines = Vec::new();
        // Four stand better in two rows than three and one.
        let columns = if self.fixtures.len() == 4 { 2 } else { 3 }.min((width / NARROWEST_ZONE).max(1));
        for fixtures in self.fixtures.chunks(columns) {
            let texts: Vec<_> = fixtures.iter().map(|one| (String::new(), one.lines(glyphs.times))).collect();
            lines.extend(glyphs.row(&texts, width));
        }
        if self.zones.is_empty() {
            lines.push("The inventory names the hosts.".to_owned());
        }
        for zones in self.zones.chunks(((width + 1) / (NARROWEST_ZONE + 1)).max(1)) {
            let texts: Vec<_> = zones.iter().map(|zone| (zone.title(), zone.lines(glyphs))).collect();
            lines.extend(glyphs.row(&texts, width));
        }
        lines
    }
}

/// The estimate as a table.
fn cost_lines(cost: &Cost, glyphs: Glyphs) -> Vec<String> {
    let mut lines = vec![cost.sum()];
    for line in &cost.lines {
        let count = format!("{} {}", line.count, glyphs.times);
        lines.push(format!("  {count:>6} {:<40} {:>14}", line.what, line.price()));
    }
    lines.extend(cost.terms());
    lines
}
