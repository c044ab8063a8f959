//! Reads what a child says, line by line, from a pipe or from a file that it writes.

use std::io::{self, BufRead as _, BufReader, PipeReader, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::fcntl_getpipe_size;

/// A longer line of standard error is cut into pieces: of that only the end is kept, and one
/// program must not fill our memory.
pub(super) const LONGEST_LINE: u64 = 1 << 20;
/// How often it is looked whether a child that writes nothing has ended.
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

/// A pipe as a source that ends with the child, also where a process that it left behind holds the
/// other end. What the child wrote is never cut off, however late this reads: it is in the pipe.
pub(super) struct Pipe {
    source: PipeReader,
    writer_ended: Arc<AtomicBool>,
    /// How many bytes can be the child's once it has ended: a pipe holds no more.
    left: Option<usize>,
}

impl Pipe {
    pub(super) fn new(source: PipeReader, writer_ended: &Arc<AtomicBool>) -> Self {
        Self { source, writer_ended: Arc::clone(writer_ended), left: None }
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // As for a file: asked before looking.
            let ended = self.writer_ended.load(Ordering::Acquire);
            if ended && self.left.is_none() {
                self.left = Some(fcntl_getpipe_size(&self.source)?);
            }
            let tick = Timespec::try_from(if ended { Duration::ZERO } else { FOLLOW }).map_err(io::Error::other)?;
            let ready = poll(&mut [PollFd::new(&self.source, PollFlags::IN)], Some(&tick))?;
            if ready == 0 && !ended {
                continue;
            }
            let most = self.left.unwrap_or(buffer.len()).min(buffer.len());
            if ready == 0 || most == 0 {
                return Ok(0);
            }
            let count = self.source.read(&mut buffer[..most])?;
            self.left = self.left.map(|left| left - count);
            return Ok(count);
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
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use std::io::Write as _;

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
    fn a_pipe_ends_with_the_child_and_after_all_that_it_wrote() {
        let (pipe, mut held) = io::pipe().unwrap();
        let full = vec![b'x'; fcntl_getpipe_size(&pipe).unwrap()];
        held.write_all(&full).unwrap();
        let mut read = Vec::new();
        Pipe::new(pipe, &Arc::new(AtomicBool::new(true))).read_to_end(&mut read).unwrap();
        assert_eq!(read, full);
    }

    #[test]
    fn a_process_that_was_left_behind_and_writes_on_is_not_read_for_ever() {
        let (pipe, mut held) = io::pipe().unwrap();
        let capacity = fcntl_getpipe_size(&pipe).unwrap();
        let writer = std::thread::spawn(move || while held.write_all(&[b'x'; 4096]).is_ok() {});
        let mut read = Vec::new();
        let mut source = Pipe::new(pipe, &Arc::new(AtomicBool::new(true)));
        source.read_to_end(&mut read).unwrap();
        assert!(read.len() <= capacity, "{}", read.len());
        drop(source);
        writer.join().unwrap();
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
