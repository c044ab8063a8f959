//! The wizard on a real (pseudo) terminal: the binary, its keys, its file, and the terminal as it
//! leaves it.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, SlavePty, native_pty_system};

use crate::skip::{has_program, is_root};

const TIMEOUT: Duration = Duration::from_mins(5);

/// The wizard's process; does not outlive its test, however that ends.
struct Wizard(Box<dyn Child + Send + Sync>);

impl Wizard {
    /// The exit code, if it ends in time.
    fn ends(&mut self) -> Option<u32> {
        let start = Instant::now();
        while start.elapsed() < TIMEOUT {
            if let Some(status) = self.0.try_wait().unwrap() {
                return Some(status.exit_code());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }
}

impl Drop for Wizard {
    fn drop(&mut self) {
        // A process that has already ended cannot be killed; that is not an error.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// What shows the wizard's output on the screen until it is told to stop.
struct Display {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Display {
    fn show(mut reader: Box<dyn Read + Send>, screen: Arc<Mutex<vt100::Parser>>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                screen.lock().unwrap().process(&bytes[..count]);
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        Self { stop, thread }
    }
}

/// A user at a terminal in which the wizard runs.
struct TestEnv {
    wizard: Wizard,
    dir: tempfile::TempDir,
    master: Box<dyn MasterPty + Send>,
    /// Stays open: what the child leaves behind must still be readable.
    _slave: Box<dyn SlavePty + Send>,
    keyboard: Box<dyn Write + Send>,
    display: Display,
    screen: Arc<Mutex<vt100::Parser>>,
    /// How the terminal was set before; compared, never looked into.
    before: String,
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

impl TestEnv {
    fn sit_down(file: Option<&str>) -> Self {
        Self::sit_down_with(file, true)
    }

    /// `controlled`: whether the kernel tells the wizard by a signal that the terminal is gone.
    fn sit_down_with(file: Option<&str>, controlled: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        if let Some(text) = file {
            fs_err::write(dir.path().join(".config.json"), text).unwrap();
        }
        Self::sit_down_in(dir, controlled)
    }

    /// Another wizard, on the same file.
    fn sit_down_beside(&self) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_turnup"));
        command.args(["config", "--config"]);
        command.arg(self.dir.path().join(".config.json"));
        Self::start(tempfile::tempdir().unwrap(), command, true)
    }

    fn sit_down_in(dir: tempfile::TempDir, controlled: bool) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_turnup"));
        command.arg("config");
        command.env_clear();
        let test_env = Self::start(dir, command, controlled);
        test_env.sees("turnup: Kubernetes cluster configuration");
        test_env
    }

    fn start(dir: tempfile::TempDir, mut command: CommandBuilder, controlled: bool) -> Self {
        let pty = native_pty_system().openpty(size(24, 80)).unwrap();
        let before = format!("{:?}", pty.master.get_termios());
        command.cwd(dir.path());
        command.env("TERM", "xterm-256color");
        command.set_controlling_tty(controlled);
        let wizard = Wizard(pty.slave.spawn_command(command).unwrap());
        let screen = Arc::new(Mutex::new(vt100::Parser::new(cells(24), cells(80), 0)));
        let display = Display::show(pty.master.try_clone_reader().unwrap(), Arc::clone(&screen));
        let keyboard = pty.master.take_writer().unwrap();
        Self { wizard, dir, master: pty.master, _slave: pty.slave, keyboard, display, screen, before }
    }

    /// Without a file; the question how to begin is answered with the menus.
    fn sit_down_at_the_menus() -> Self {
        let mut test_env = Self::sit_down(None);
        test_env.sees("Guide me");
        test_env.types("G\r");
        test_env.waits(|screen| !screen.contents().contains("Guide me"), "menus");
        test_env
    }

    fn contents(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Waits until there is a file.
    fn waits_for(&self, file: &Path) {
        let start = Instant::now();
        while !file.exists() {
            assert!(start.elapsed() < TIMEOUT, "there is no {}: {}", file.display(), self.contents());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the text is on the screen.
    fn sees(&self, text: &str) {
        self.waits(|screen| screen.contents().contains(text), text);
    }

    fn waits(&self, holds: impl Fn(&vt100::Screen) -> bool, what: &str) {
        let start = Instant::now();
        while !holds(self.screen.lock().unwrap().screen()) {
            assert!(start.elapsed() < TIMEOUT, "no {what:?} on this screen:\n{}", self.contents());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    fn resizes(&self, rows: u16, cols: u16) {
        self.screen.lock().unwrap().screen_mut().set_size(cells(rows), cells(cols));
        self.master.resize(size(rows, cols)).unwrap();
    }

    /// Waits for the end; the terminal must be as it was.
    fn leaves(&mut self, code: u32) {
        let ended = self.wizard.ends();
        assert_eq!(ended, Some(code), "{}", self.contents());
        let restored =
            |screen: &vt100::Screen| !screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste();
        self.waits(restored, "normal screen");
        assert_eq!(format!("{:?}", self.master.get_termios()), self.before, "the terminal's modes");
    }

    /// Takes the terminal away, as closing its window does; `idle`: not before the wizard waits for
    /// the next key.
    fn hangs_up(mut self, idle: bool) -> (Wizard, tempfile::TempDir) {
        self.display.stop.store(true, Ordering::Relaxed);
        let start = Instant::now();
        // The display holds the terminal too, and lets go after the next thing it has shown.
        while !self.display.thread.is_finished() {
            assert!(start.elapsed() < TIMEOUT, "nothing moves on this screen:\n{}", self.contents());
            self.types("jk");
            std::thread::sleep(Duration::from_millis(5));
        }
        // Types a last line end.
        drop(self.keyboard);
        if idle {
            std::thread::sleep(Duration::from_millis(300));
        }
        (self.wizard, self.dir)
    }

    fn file(&self) -> String {
        fs_err::read_to_string(self.dir.path().join(".config.json")).unwrap()
    }
}

#[test]
fn start_edit_save_quit() {
    let mut test_env = TestEnv::sit_down_at_the_menus();
    test_env.sees("(new)");
    test_env.types("\r");
    test_env.sees("Number of worker hosts");
    test_env.types("jj\r");
    test_env.sees("Expected: a number from 0 to 1000");
    test_env.types("\x15");
    test_env.sees("it is empty");
    test_env.types("3\r");
    test_env.sees("Number of worker hosts             3");
    test_env.types("s");
    test_env.sees("saved .config.json");
    test_env.types("q");
    test_env.leaves(0);
    test_env.sees("wrote .config.json");
    let file: serde_json::Value = serde_json::from_str(&test_env.file()).unwrap();
    assert_eq!(file["phase1"]["num_nodes"], 3);
    assert_eq!(file["phase1"]["cluster_name"], "kubernetes");
}

#[test]
fn nothing_is_lost_without_a_question() {
    let mut test_env = TestEnv::sit_down_at_the_menus();
    test_env.types("\x1b[B\x1b[B\r");
    test_env.sees("Addon rollout");
    test_env.types(" \x03");
    test_env.sees("Save before leaving?");
    test_env.types("n");
    test_env.leaves(0);
    test_env.sees("not saved");
    assert!(!test_env.dir.path().join(".config.json").exists());
}

#[test]
fn a_terminating_signal_gives_the_terminal_back() {
    let mut test_env = TestEnv::sit_down(None);
    let pid = rustix::process::Pid::from_raw(i32::try_from(test_env.wizard.0.process_id().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    test_env.leaves(130);
    test_env.sees("ended by SIGTERM");
}

#[test]
fn a_terminal_that_goes_away_ends_it_without_saving() {
    for (controlled, idle) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut test_env = TestEnv::sit_down_with(Some("{}"), controlled);
        test_env.types("\r\r");
        test_env.sees("valid; example");
        test_env.types("\x05x\r");
        test_env.sees("kubernetesx");
        let (mut wizard, dir) = test_env.hangs_up(idle);
        assert_eq!(wizard.ends(), Some(130), "told by a signal: {controlled}, waiting for a key: {idle}");
        assert_eq!(fs_err::read_to_string(dir.path().join(".config.json")).unwrap(), "{}");
        assert!(dir.path().join(".config.json.unsaved").exists(), "but the answers are kept");
    }
}

#[test]
fn a_killed_session_is_taken_up_again() {
    let mut test_env = TestEnv::sit_down(Some("{}"));
    test_env.types("/num_nodes\r");
    test_env.sees("o goes back");
    test_env.types("\r\x157\r");
    test_env.sees("turnup config set phase1.num_nodes=7");
    let draft = ".config.json.unsaved";
    let start = Instant::now();
    while !test_env.dir.path().join(draft).exists() {
        assert!(start.elapsed() < TIMEOUT, "no draft is kept");
        std::thread::sleep(Duration::from_millis(5));
    }
    test_env.wizard.0.kill().unwrap();
    test_env.wizard.ends();
    let dir = test_env.dir;
    let mut test_env = TestEnv::sit_down_in(dir, true);
    test_env.sees("~ phase1.num_nodes: 1 -> 7");
    test_env.types("\r");
    test_env.sees("took over the answers");
    test_env.types("s");
    test_env.sees("saved .config.json");
    test_env.types("q");
    test_env.leaves(0);
    let file: serde_json::Value = serde_json::from_str(&test_env.file()).unwrap();
    assert_eq!(file["phase1"]["num_nodes"], 7);
    assert!(!test_env.dir.path().join(draft).exists(), "a draft that is saved is gone");
}

#[test]
fn a_second_wizard_leaves_the_answers_of_the_first_alone() {
    let mut first = TestEnv::sit_down(Some("{}"));
    first.types("/num_nodes\r\r7\r");
    first.sees("phase1.num_nodes=7");
    let draft = first.dir.path().join(".config.json.unsaved");
    first.waits_for(&draft);
    let mut second = first.sit_down_beside();
    second.sees("Phase 3: Deploying Addons");
    second.sees("another wizard is open on this file");
    assert!(!second.contents().contains("Unsaved answers"), "{}", second.contents());
    second.types("q");
    second.leaves(0);
    assert!(draft.exists(), "it is the first one's");
    first.types("q");
    first.sees("Save before leaving?");
    first.types("n");
    first.leaves(0);
    assert!(!draft.exists());
}

#[test]
fn two_wizards_tell_of_each_other_and_keep_what_both_answered() {
    let mut first = TestEnv::sit_down(Some("{}"));
    let mut second = first.sit_down_beside();
    second.sees("another wizard is open on this file");
    first.types("/num_nodes\r\r7\r");
    first.sees("another wizard is open on this file");
    second.types("\r\rours\r");
    second.sees("phase1.cluster_name=ours");
    first.types("s");
    first.sees("saved .config.json");
    second.types("s");
    second.sees("Changed in the file:");
    second.sees("~ phase1.num_nodes: 1 -> 7");
    second.sees("~ phase1.cluster_name: kubernetes -> ours");
    second.types("ms");
    second.sees("saved /");
    let file: serde_json::Value = serde_json::from_str(&first.file()).unwrap();
    assert_eq!((&file["phase1"]["num_nodes"], &file["phase1"]["cluster_name"]), (&7.into(), &"ours".into()));
    for wizard in [&mut first, &mut second] {
        wizard.types("q");
        wizard.leaves(0);
    }
}

#[test]
fn the_mouse_opens_and_scrolls() {
    let mut test_env = TestEnv::sit_down(Some("{}"));
    // SGR: button, column and row from 1; M is down, m is up.
    test_env.types("\x1b[<0;10;3M\x1b[<0;10;3m");
    test_env.sees("Top > Phase 1");
    let mode = test_env.screen.lock().unwrap().screen().mouse_protocol_mode();
    assert_eq!(mode, vt100::MouseProtocolMode::PressRelease, "no movement is asked for");
    test_env.types("\x1b[<65;10;5M");
    test_env.sees("Nothing is created: the hosts exist");
    test_env.types("q");
    test_env.leaves(0);
}

#[test]
fn an_arrow_key_in_two_pieces_is_no_esc() {
    let mut test_env = TestEnv::sit_down(Some("{}"));
    test_env.types("\x1b");
    std::thread::sleep(Duration::from_millis(5));
    test_env.types("[B\r");
    test_env.sees("Top > Phase 2");
    test_env.types("\x1b");
    test_env.waits(|screen| !screen.contents().contains("Top > Phase 2"), "top");
    test_env.types("q");
    test_env.leaves(0);
}

#[test]
fn a_window_that_is_too_small_is_left_with_answers_kept() {
    let mut test_env = TestEnv::sit_down(Some("{}"));
    test_env.types("/num_nodes\r\r7\r");
    test_env.sees("phase1.num_nodes=7");
    test_env.resizes(5, 30);
    test_env.sees("Ctrl-C leaves");
    test_env.types("\x03");
    test_env.leaves(130);
    assert!(test_env.dir.path().join(".config.json.unsaved").exists());
}

#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let mut shell = CommandBuilder::new("/bin/sh");
    shell.args(["-c", &format!("TERM=dumb exec '{}' config", env!("CARGO_BIN_EXE_turnup"))]);
    let mut test_env = TestEnv::start(tempfile::tempdir().unwrap(), shell, true);
    test_env.sees("Cluster name");
    test_env.types("dumb\r");
    test_env.sees("Target platform");
    let draft = test_env.dir.path().join(".config.json.unsaved");
    assert!(fs_err::read_to_string(&draft).unwrap().contains("\"dumb\""), "its answers are kept, too");
    test_env.types("q\r");
    test_env.leaves(0);
    assert!(!draft.exists());
}

#[test]
fn suspended_it_gives_the_terminal_back_and_comes_again() {
    // Only a shell with jobs can be gone back to.
    let mut shell = CommandBuilder::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]);
    shell.env("PATH", "/usr/bin:/bin");
    let mut test_env = TestEnv::start(tempfile::tempdir().unwrap(), shell, true);
    fs_err::write(test_env.dir.path().join(".config.json"), "{}").unwrap();
    test_env.types(&format!("{} config\r", env!("CARGO_BIN_EXE_turnup")));
    test_env.sees("Phase 3: Deploying Addons");
    test_env.types("\x1a");
    test_env.sees("Stopped");
    test_env.waits(|screen| !screen.alternate_screen(), "normal screen");
    test_env.types("fg\r");
    test_env.waits(vt100::Screen::alternate_screen, "the wizard again");
    test_env.sees("Phase 3: Deploying Addons");
    test_env.types("q");
    test_env.waits(|screen| !screen.alternate_screen(), "normal screen");
    test_env.types("exit\r");
    assert_eq!(test_env.wizard.ends(), Some(0));
}

#[test]
fn the_window_may_change_its_size() {
    let mut test_env = TestEnv::sit_down_at_the_menus();
    test_env.resizes(5, 30);
    test_env.sees("30x5. The wizard needs");
    test_env.resizes(40, 150);
    test_env.sees("Phase 3: Deploying Addons");
    test_env.types("q");
    test_env.sees("Save before leaving?");
    test_env.types("n");
    test_env.leaves(0);
}

#[test]
fn a_paste_is_text_in_an_editor_and_nothing_in_a_menu() {
    let mut test_env = TestEnv::sit_down(Some("{}"));
    test_env.types("\x1b[200~qn\x1b[201~");
    test_env.types("\r\r");
    test_env.sees("valid; example");
    test_env.types("\x15\x1b[200~pasted\nname\x1b[201~");
    test_env.sees("2 were pasted: nothing was inserted");
    test_env.types("\x1b[200~pastedname\n\x1b[201~\r");
    test_env.sees("pastedname");
    test_env.types("qs");
    test_env.leaves(0);
    assert!(test_env.file().contains("\"cluster_name\": \"pastedname\""));
}

#[test]
fn a_file_with_mistakes_is_shown_before_anything_else() {
    let mut test_env = TestEnv::sit_down(Some("{\"phase1\": {\"num_node\": 3}}"));
    test_env.sees("did you mean");
    // Typed this fast, Esc and q arrive as one key with Alt.
    test_env.types("\x1bq");
    test_env.leaves(0);
    assert_eq!(test_env.file(), "{\"phase1\": {\"num_node\": 3}}");
}

#[test]
fn a_file_that_another_process_changed_is_asked_about() {
    let mut test_env = TestEnv::sit_down(Some("{}"));
    fs_err::write(test_env.dir.path().join(".config.json"), "{\"phase1\": {\"num_nodes\": 7}}").unwrap();
    test_env.types("s");
    test_env.sees("has changed on disk");
    test_env.types("\x1b");
    test_env.sees("Phase 1");
    test_env.types("q");
    test_env.leaves(0);
    assert_eq!(test_env.file(), "{\"phase1\": {\"num_nodes\": 7}}");
}

#[test]
fn a_list_that_is_pasted_without_a_mark_is_one_paste() {
    let mut test_env = TestEnv::sit_down(Some("{\"phase1\": {\"cloud_provider\": \"baremetal\"}}"));
    test_env.sees("Phase 1");
    test_env.types("/");
    test_env.sees("Find");
    test_env.types("baremetal.hosts");
    test_env.sees("2 entries");
    test_env.types("\r\r");
    test_env.sees("a adds an element");
    test_env.types("m1 192.0.2.11 master\rw1 192.0.2.21 worker\r");
    test_env.sees("w1: address 192.0.2.21, role worker");
    test_env.types("\x1b");
    test_env.sees("2: m1, w1");
    test_env.types("qn");
    test_env.leaves(0);
}

#[test]
fn a_full_disk_is_told_at_once_and_loses_no_answer() {
    if !is_root("to mount a small file system") || !has_program(&["unshare"]) {
        return;
    }
    // A file system of its own, which no other process sees, and on which nothing has room.
    let dir = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=64k tmpfs \"$1\" && cd \"$1\" && printf '{}' > .config.json && \
                  { cat /dev/zero > filler 2> /dev/null; exec \"$2\" config; }";
    let mut command = CommandBuilder::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]);
    command.arg(dir.path());
    command.arg(env!("CARGO_BIN_EXE_turnup"));
    let mut test_env = TestEnv::start(dir, command, true);
    test_env.sees("turnup: Kubernetes cluster configuration");
    let mounted = Path::new("/proc").join(test_env.wizard.0.process_id().unwrap().to_string()).join("root");
    let place = mounted.join(test_env.dir.path().strip_prefix("/").unwrap());
    let draft = place.join(".config.json.unsaved");
    let names = || -> Vec<String> {
        let entries = fs_err::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        entries.filter(|name| name != "filler").collect()
    };
    test_env.types("/num_nodes\r\r7\r");
    test_env.sees("unsaved answers cannot be kept for the next start");
    test_env.types("s");
    test_env.sees("No space left on device");
    test_env.sees("free disk space there");
    test_env.types("\r");
    test_env.waits(|screen| !screen.contents().contains("No space left"), "menu");
    test_env.sees("Number of worker hosts             7");
    assert_eq!(names(), [".config.json"], "nothing half-written is left");
    assert_eq!(fs_err::read_to_string(place.join(".config.json")).unwrap(), "{}");
    fs_err::remove_file(place.join("filler")).unwrap();
    // Answers are kept once there is room.
    test_env.waits_for(&draft);
    test_env.types("s");
    test_env.sees("saved .config.json");
    let file: serde_json::Value =
        serde_json::from_str(&fs_err::read_to_string(place.join(".config.json")).unwrap()).unwrap();
    assert_eq!(file["phase1"]["num_nodes"], 7);
    assert_eq!(names(), [".config.json"]);
    test_env.types("q");
    test_env.leaves(0);
}
