//! A step's log file, and the mask that keeps secrets out of it and out of errors.

use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use jiff::Timestamp;

use crate::redact;

/// Texts that must not be shown. A text of several lines is masked line by line, because that is
/// how output arrives.
#[derive(Clone, Default)]
pub(super) struct Mask(Vec<String>);

/// Shorter lines of a secret are too common to be masked: they would eat the log.
const SHORTEST: usize = 4;

impl Mask {
    pub(super) fn add(&mut self, secret: &str) {
        let lines = secret.lines().map(str::trim).filter(|line| line.len() >= SHORTEST);
        self.0.extend(lines.filter(|line| !line.starts_with("-----")).map(str::to_owned));
        // The longest first: a secret that contains another one must not leave a rest behind.
        self.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// The text without these, and without everything that looks like a secret.
    pub(super) fn apply(&self, text: &str) -> String {
        let text = self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "***"));
        redact::clean_line(&text).into_owned()
    }
}

/// An open log file. A log that cannot be written never stops the work: it is evidence, not state.
pub(super) struct Log(Option<fs_err::File>);

impl Log {
    pub(super) fn open(path: Option<&Path>) -> Self {
        Self(path.and_then(|path| {
            let open = || fs_err::OpenOptions::new().append(true).create(true).mode(0o600).open(path);
            open().or_else(|_| path.parent().map_or_else(open, |dir| make_private(dir).and_then(|()| open()))).ok()
        }))
    }

    pub(super) fn line(&mut self, mark: &str, text: &str) {
        if let Some(file) = &mut self.0 {
            // One write a line: several children may append to the same file.
            let line = format!("{} {mark} {text}\n", Timestamp::now().strftime("%H:%M:%S%.3f"));
            if file.write_all(line.as_bytes()).is_err() {
                self.0 = None;
            }
        }
    }
}

fn make_private(dir: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_every_line_of_a_secret_and_the_longest_first() {
        let mut mask = Mask::default();
        mask.add("hunter22");
        mask.add("hunter22-and-more");
        mask.add("-----BEGIN KEY-----\nAAAABBBB\nCC\n-----END KEY-----\n");
        assert_eq!(mask.apply("a hunter22-and-more b hunter22 c AAAABBBB CC"), "a *** b *** c *** CC");
    }

    #[test]
    fn nothing_to_mask_changes_nothing() {
        assert_eq!(Mask::default().apply("as it is"), "as it is");
    }
}
