//! `conf` with everything outside of it in memory: one value is one working directory with one
//! environment.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::io;

use kconfig::conf::{Entry, Outside, run};
use kconfig::{Dialect, Env, MemoryFiles, Messages, text};

/// A working directory, an environment, a keyboard and a screen.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) input: VecDeque<String>,
    pub(crate) out: RefCell<String>,
    pub(crate) err: RefCell<String>,
    /// Paths that cannot be written.
    pub(crate) locked: Vec<String>,
    /// What was written, renamed and removed, in order.
    pub(crate) touched: Vec<String>,
}

/// Prints what the tree says while it is read.
struct Screen<'m>(&'m RefCell<String>, &'m RefCell<String>);

impl Messages for Screen<'_> {
    fn info(&self, text: &str) {
        writeln!(self.0.borrow_mut(), "{text}").unwrap();
    }

    fn warning(&self, path: &str, line: u32, text: &str) {
        writeln!(self.1.borrow_mut(), "{path}:{line}: {text}").unwrap();
    }

    fn pass(&self, stderr: &[u8]) {
        self.1.borrow_mut().push_str(&String::from_utf8_lossy(stderr));
    }
}

impl Machine {
    /// A directory with one Kconfig file.
    pub(crate) fn new(kconfig: impl Into<Vec<u8>>) -> Self {
        Self::default().file("Kconfig", kconfig)
    }

    pub(crate) fn file(mut self, path: &str, text: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.to_owned(), text.into());
        self
    }

    pub(crate) fn config(self, text: impl Into<Vec<u8>>) -> Self {
        self.file(".config", text)
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Lines that the user types.
    pub(crate) fn keys(mut self, lines: &[&str]) -> Self {
        self.input.extend(lines.iter().map(|line| format!("{line}\n")));
        self
    }

    /// The same under the rules of Linux 6.1.
    pub(crate) fn old(self) -> Self {
        self.set("KERNELVERSION", "6.1.0")
    }

    /// The same under the rules of a dialect.
    pub(crate) fn rules(self, name: &str) -> Self {
        self.set("KCONFIG_DIALECT", name)
    }

    /// Runs `conf` with these words and gives its exit code.
    pub(crate) fn run(&mut self, arguments: &[&str]) -> u8 {
        let files = MemoryFiles::new(self.files.clone());
        let variables = self.variables.clone();
        let dialect = variables.get("KCONFIG_DIALECT").map(|name| Dialect::parse(name).unwrap());
        let (out, err) = (self.out.take(), self.err.take());
        let (info, warnings) = (RefCell::new(out), RefCell::new(err));
        let screen = Screen(&info, &warnings);
        let env = Env::new(move |name| variables.get(name).cloned()).with_messages(&screen);
        let env = match dialect {
            Some(dialect) => env.with_dialect(dialect),
            None => env.with_detection(),
        };
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let code = run("conf", &arguments, &files, &env, self);
        drop(env);
        self.out.borrow_mut().insert_str(0, &info.take());
        self.err.borrow_mut().insert_str(0, &warnings.take());
        code
    }

    /// Runs one mode on `Kconfig` and expects it to succeed.
    pub(crate) fn succeed(&mut self, mode: &str) -> &mut Self {
        let code = self.run(&[mode, "Kconfig"]);
        assert_eq!(code, 0, "{}{}", self.out.borrow(), self.err.borrow());
        self
    }

    pub(crate) fn read(&self, path: &str) -> &str {
        str::from_utf8(self.bytes(path)).unwrap()
    }

    pub(crate) fn bytes(&self, path: &str) -> &[u8] {
        self.files.get(path).unwrap_or_else(|| panic!("no {path} in {:?}", self.files.keys()))
    }

    /// The lines of the configuration that say something.
    pub(crate) fn values(&self) -> Vec<&str> {
        self.read(".config").lines().filter(|line| line.contains("CONFIG_")).collect()
    }

    pub(crate) fn stdout(&self) -> String {
        self.out.borrow().clone()
    }

    pub(crate) fn stderr(&self) -> String {
        self.err.borrow().clone()
    }
}

impl Outside for Machine {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let parent = path.rsplit_once('/').map_or(String::new(), |(parent, _)| format!("{parent}/"));
        if self.locked.iter().any(|locked| locked == path) || !parent.is_empty() && !self.files.contains_key(&parent) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "Permission denied"));
        }
        self.touched.push(format!("write {path}"));
        self.files.insert(path.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let text = self.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        self.touched.push(format!("rename {from} {to}"));
        self.files.insert(to.to_owned(), text);
        Ok(())
    }

    fn remove(&mut self, path: &str) -> io::Result<()> {
        self.touched.push(format!("remove {path}"));
        self.files.remove(path).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// A directory is an empty file whose name ends with a slash.
    fn create_directory(&mut self, path: &str) -> io::Result<()> {
        self.touched.push(format!("mkdir {path}"));
        self.files.insert(format!("{path}/"), Vec::new());
        Ok(())
    }

    fn entry(&self, path: &str) -> Option<Entry> {
        if self.files.contains_key(&format!("{path}/")) {
            return Some(Entry::Directory);
        }
        self.files.contains_key(path).then_some(Entry::File)
    }

    fn out(&mut self, bytes: &[u8]) {
        self.out.borrow_mut().push_str(&text::from_slice(bytes));
    }

    fn err(&mut self, bytes: &[u8]) {
        self.err.borrow_mut().push_str(&text::from_slice(bytes));
    }

    fn read_line(&mut self) -> Option<Vec<u8>> {
        self.input.pop_front().map(String::into_bytes)
    }

    fn is_terminal(&self) -> bool {
        false
    }

    fn now(&self) -> (u64, u32) {
        (6, 2)
    }

    fn process(&self) -> u32 {
        77
    }
}
