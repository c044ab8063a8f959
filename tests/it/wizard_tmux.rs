//! The guide in a real terminal, in tmux at 80x24: what a user types for each target, and the file
//! that single commands make.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::time::{Duration, Instant};

use crate::cli_support::TestEnv;
use crate::skip::has_program;

/// For what takes a moment.
const TIMEOUT: Duration = Duration::from_mins(5);

/// The answers for three nodes, question by question; the value that is there already where one is
/// empty or missing.
pub(crate) struct Answers {
    pub target: &'static str,
    pub lines: &'static [&'static str],
    /// The same as settings.
    settings: &'static [&'static str],
}

pub(crate) const URL: &str = "https://artifacts.example.com/turnup";
const SET_URL: &str = "phase1.user_data.artifacts_url=https://artifacts.example.com/turnup";
/// One host as a line, which a user pastes.
const HOST: &str =
    "m1 192.0.2.11 control-plane ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// All targets, in the order in which the wizard offers them.
pub(crate) const TARGETS: [Answers; 5] = [
    Answers { target: "local", lines: &["demo", "local", "", "2"], settings: &["phase1.num_nodes=2"] },
    Answers {
        target: "baremetal",
        lines: &["demo", "baremetal", "", HOST],
        settings: &[concat!(
            "phase1.baremetal.hosts=[{\"name\":\"m1\",\"address\":\"192.0.2.11\",\"role\":\"control-plane\",",
            "\"host_key\":\"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}]"
        )],
    },
    Answers {
        target: "gce",
        lines: &["demo", "gce", "", "2", "", "my-project", "europe-west1", "", "", "", "", "", URL],
        settings: &["phase1.num_nodes=2", "phase1.gce.project=my-project", "phase1.gce.region=europe-west1", SET_URL],
    },
    Answers {
        target: "aws",
        lines: &["demo", "aws", "", "", "3", "eu-west-1", "", "", "", "", "", "", URL],
        settings: &["phase1.control_plane.count=3", "phase1.aws.region=eu-west-1", SET_URL],
    },
    Answers {
        target: "azure",
        lines: &["demo", "azure", "", "2", "", "", "", "", "", "", "", "", "", URL],
        settings: &["phase1.num_nodes=2", SET_URL],
    },
];

/// The file that `config set` makes of the same answers.
pub(crate) fn file_by_commands(target: &str) -> String {
    let test_env = TestEnv::new("");
    let answers = TARGETS.iter().find(|answers| answers.target == target).unwrap();
    let provider = format!("phase1.cloud_provider={target}");
    let mut args = vec!["config", "set", "phase1.cluster_name=demo", &provider];
    args.extend(answers.settings);
    test_env.ok(&args);
    test_env.read(".config.json")
}

/// A terminal of tmux's in which one command runs; it ends with its test, however that ends.
struct Pane {
    test_env: TestEnv,
}

impl Pane {
    fn open() -> Self {
        let pane = Self { test_env: TestEnv::new("") };
        let command = format!("env -i TERM=tmux-256color LANG=C.UTF-8 HOME=. {} config", env!("CARGO_BIN_EXE_turnup"));
        pane.tmux(&["new-session", "-d", "-x", "80", "-y", "24", &command]);
        pane
    }

    fn tmux(&self, args: &[&str]) -> String {
        let socket = self.test_env.path("tmux");
        let all = ["-f", "/dev/null", "-S", socket.to_str().unwrap()].into_iter().chain(args.iter().copied());
        duct::cmd("tmux", all).dir(self.test_env.dir.path()).stderr_null().unchecked().read().unwrap()
    }

    fn sees(&self, text: &str) {
        let start = Instant::now();
        loop {
            let screen = self.tmux(&["capture-pane", "-p"]);
            if screen.contains(text) {
                return;
            }
            assert!(start.elapsed() < TIMEOUT, "no {text:?} on this screen:\n{screen}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// One question of the guide: targets are gone down to, texts typed in place of what is there.
    fn answer(&self, answer: &str) {
        match TARGETS.iter().position(|answers| answers.target == answer) {
            Some(index) => (0..index).for_each(|_| self.press(&["Down"])),
            None if answer.is_empty() => {}
            None if answer == HOST => {
                self.tmux(&["set-buffer", answer]);
                self.tmux(&["paste-buffer", "-p"]);
                self.sees("m1: address 192.0.2.11");
            }
            None => {
                self.press(&["C-u"]);
                self.press(&["-l", answer]);
            }
        }
        self.press(&["Enter"]);
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn in_tmux_the_guide_makes_the_file_that_single_commands_make_for_each_target() {
    if !has_program(&["tmux"]) {
        return;
    }
    for Answers { target, lines, .. } in &TARGETS {
        let pane = Pane::open();
        pane.sees("Guide me");
        pane.press(&["Enter"]);
        for number in 1.. {
            let question = format!("Question {number} of");
            let start = Instant::now();
            let screen = loop {
                let screen = pane.tmux(&["capture-pane", "-p"]);
                if screen.contains(&question) || screen.contains("Your answers") {
                    break screen;
                }
                assert!(start.elapsed() < TIMEOUT, "neither {question:?} nor the end:\n{screen}");
                std::thread::sleep(Duration::from_millis(10));
            };
            if screen.contains("Your answers") {
                break;
            }
            pane.answer(lines.get(number - 1).copied().unwrap_or_default());
        }
        pane.press(&["Enter"]);
        let start = Instant::now();
        while !pane.test_env.path(".config.json").exists() {
            assert!(start.elapsed() < TIMEOUT, "{target}: nothing is saved");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(pane.test_env.read(".config.json"), file_by_commands(target), "{target}");
    }
}
