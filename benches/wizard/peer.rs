//! A wizard on a terminal of its own, as users run it: the CPU time of its process from one idle
//! moment to the next.

use std::io::{Read as _, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// A program that counts as idle when it has printed nothing for this long.
const QUIET: Duration = Duration::from_millis(120);
const TIMEOUT: Duration = Duration::from_secs(30);

/// The program.
pub(crate) struct Peer {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    shown: Arc<AtomicU64>,
    /// Closing it would end the program.
    _master: Box<dyn MasterPty + Send>,
}

/// What it is told to do.
pub(crate) struct Keys {
    /// Opens the search.
    pub(crate) search: &'static str,
    /// Closes it.
    pub(crate) close: &'static str,
    /// Finds the switch PCI and goes there.
    pub(crate) pci: &'static str,
}

/// Milliseconds of processor time: from the start to the first screen, for a letter of a search,
/// for a switch that much depends on.
pub(crate) struct Times {
    pub(crate) start: f64,
    pub(crate) letter: f64,
    pub(crate) switch: f64,
}

impl Peer {
    pub(crate) fn start(program: &Path, args: &[&str], env: &[(String, String)], dir: &Path) -> Self {
        let size = PtySize { rows: 50, cols: 200, pixel_width: 0, pixel_height: 0 };
        let pty = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.cwd(dir);
        command.env_clear();
        for (name, value) in env {
            command.env(name, value);
        }
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        let child = pty.slave.spawn_command(command).unwrap();
        let (mut reader, shown) = (pty.master.try_clone_reader().unwrap(), Arc::new(AtomicU64::new(0)));
        let count = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                count.fetch_add(read as u64, Ordering::Relaxed);
            }
        });
        let keyboard = pty.master.take_writer().unwrap();
        Self { child, keyboard, shown, _master: pty.master }
    }

    pub(crate) fn measure(mut self, keys: &Keys) -> Times {
        self.wait(0);
        let start = self.cpu();
        let mut letters = 0;
        let mut searching = 0.0;
        for word in ["netfilter", "pcie", "compile"] {
            self.types(keys.search);
            let before = self.cpu();
            for letter in word.chars() {
                self.types(&letter.to_string());
                letters += 1;
            }
            searching += self.cpu() - before;
            self.types(keys.close);
        }
        self.types(keys.pci);
        let (before, turns) = (self.cpu(), 20);
        for turn in 0..turns {
            self.types(if turn % 2 == 0 { "n" } else { "y" });
        }
        let switching = self.cpu() - before;
        Times { start, letter: searching / f64::from(letters), switch: switching / f64::from(turns) }
    }

    fn types(&mut self, keys: &str) {
        let shown = self.shown.load(Ordering::Relaxed);
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
        self.wait(shown);
    }

    /// Waits until more than this was printed and output has stopped.
    fn wait(&self, before: u64) {
        let start = Instant::now();
        let (mut last, mut since) = (before, Instant::now());
        loop {
            let now = self.shown.load(Ordering::Relaxed);
            if now != last {
                (last, since) = (now, Instant::now());
            }
            // A key that changes nothing shows nothing.
            if since.elapsed() > QUIET && (now != before || start.elapsed() > 4 * QUIET && before > 0) {
                return;
            }
            assert!(start.elapsed() < TIMEOUT, "nothing is shown");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// User and system time of the process so far, in milliseconds; the kernel counts hundredths of
    /// a second.
    fn cpu(&self) -> f64 {
        let stat = fs_err::read_to_string(format!("/proc/{}/stat", self.child.process_id().unwrap())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11..=12].iter().map(|ticks| ticks.parse::<f64>().unwrap() * 10.0).sum()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A process that has already ended cannot be killed; that is not an error.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
