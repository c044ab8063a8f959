//! Reads what a child says, line by line, from a pipe or from a file that it writes.

use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A longer line of standard error is cut into pieces: of that only the end is kept, and one
/// program must not fill our memory.
pub(super) const LONGEST_LINE: u64 = 1 << 20;
/// How often a file that a child writes is looked at.
const FOLLOW: Duration = Duration::from_millis(25);

/// Hands over every line until the other end closes, longer ones in pieces. Bytes that are not
/// UTF-8 become U+FFFD.
pub(super) fn read_lines(source: impl Read, longest: u64, mut on_line: impl FnMut(String)) {
    let mut reader = BufReader::new(source);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(longest).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) => {
                let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
                on_line(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// A file as a source that ends only once the writer has ended.
pub(super) struct Follow {
    pub(super) file: std::fs::File,
    pub(super) offset: u64,
    pub(super) writer_ended: Arc<AtomicBool>,
}

impl Read for Follow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // Asked before reading: what was written before the end is then sure to be seen.
            let ended = self.writer_ended.load(Ordering::Acquire);
            let count = self.file.read_at(buffer, self.offset)?;
            self.offset += count as u64;
            if count > 0 || ended {
                return Ok(count);
            }
            std::thread::sleep(FOLLOW);
        }
    }
}

/// The last part of a text that grows: whole lines, not more bytes than the limit.
#[derive(Default)]
pub(super) struct LastLines {
    lines: std::collections::VecDeque<String>,
    bytes: usize,
}

/// How much of standard error is kept.
const TAIL_BYTES: usize = 64 << 10;

impl LastLines {
    pub(super) fn push(&mut self, line: String) {
        self.bytes += line.len() + 1;
        self.lines.push_back(line);
        while self.bytes > TAIL_BYTES && self.lines.len() > 1 {
            self.bytes -= self.lines.pop_front().map_or(0, |line| line.len() + 1);
        }
    }

    pub(super) fn into_text(self) -> String {
        let mut text = String::with_capacity(self.bytes);
        for line in self.lines {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_newline_or_with_the_source() {
        let mut lines = Vec::new();
        read_lines(&b"one\r\n\ntwo \xff\nthree"[..], u64::MAX, |line| lines.push(line));
        assert_eq!(lines, ["one", "", "two \u{fffd}", "three"]);
        lines.clear();
        read_lines(&b"longer\nthan"[..], 4, |line| lines.push(line));
        assert_eq!(lines, ["long", "er", "than"]);
    }

    #[test]
    fn the_tail_keeps_the_end_and_stays_small() {
        let mut tail = LastLines::default();
        for number in 0..100_000 {
            tail.push(format!("line {number}"));
        }
        let text = tail.into_text();
        assert!(text.len() <= TAIL_BYTES);
        assert!(text.ends_with("line 99999\n"));
    }
}
