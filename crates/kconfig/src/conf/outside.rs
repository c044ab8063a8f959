//! The door to everything that is not Kconfig.

use std::io;

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A directory.
    Directory,
    /// Anything else.
    File,
}

/// Files, terminal, environment and clock, as `conf` needs them. Paths are relative to the caller's
/// working directory; paths and values of variables that are not UTF-8 are texts of
/// [`crate::text`].
pub trait Outside {
    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;
    /// The bytes of a file.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;
    /// Makes a file of these bytes, or replaces the bytes of one.
    fn write(&mut self, path: &str, bytes: &[u8]) -> io::Result<()>;
    /// Renames a file over another.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&mut self, path: &str) -> io::Result<()>;
    /// Makes a directory.
    fn create_directory(&mut self, path: &str) -> io::Result<()>;
    /// What a path names, links followed; none when there is nothing.
    fn entry(&self, path: &str) -> Option<Entry>;
    /// Standard output.
    fn out(&mut self, bytes: &[u8]);
    /// Standard error.
    fn err(&mut self, bytes: &[u8]);
    /// The next line of standard input with its end; none at the end of the input.
    fn read_line(&mut self) -> Option<Vec<u8>>;
    /// Whether both standard input and standard output are a terminal.
    fn is_terminal(&self) -> bool;
    /// Seconds and microseconds since 1970: the default seed.
    fn now(&self) -> (u64, u32);
    /// A number that no other running process uses.
    fn process(&self) -> u32;
    /// All is done, and this is the exit code: what follows only gives memory back, so a process
    /// may end here.
    fn end(&mut self, _code: u8) {}
}
