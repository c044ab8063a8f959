//! Histories of etcd: what clients did and saw while a cluster was harmed, recorded by a program
//! of this project (`tests/history`) and judged by Porcupine: every answer must be one that a
//! single register could have given, so that no write which was acknowledged is lost.
#![expect(clippy::disallowed_methods, reason = "the recorder runs beside turnup and the test")]
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use crate::cluster_reset::on_host;
use crate::cluster_support::{Site, say};
use crate::go_program;

/// The recorder and judge, built once by all tests of this process.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| go_program::build("history", "history"));

/// Clients of a cluster's etcd, until it is told to end.
pub(crate) struct HistoryRecorder {
    child: Child,
    file: PathBuf,
}

impl Drop for HistoryRecorder {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl HistoryRecorder {
    /// Begins to ask the members on these hosts, with the certificate of the first one. The
    /// firewall of the hosts must let this machine in.
    pub(crate) fn start(site: &Site, hosts: &[&str]) -> Self {
        let option = |name: &str, file: &str| {
            let path = site.dir.join(format!("history-{name}.pem"));
            fs_err::write(&path, on_host(site, hosts[0], &format!("cat /etc/kubernetes/etcd/{file}"))).unwrap();
            format!("--{name}={}", path.display())
        };
        let options = [option("ca", "ca.crt"), option("cert", "server.crt"), option("key", "server.key")];
        let address = |host: &&str| site.hosts()[*host]["address"].as_str().unwrap().to_owned();
        let urls: Vec<String> = hosts.iter().map(|host| format!("https://{}:2379", address(host))).collect();
        let file = site.dir.join("history.jsonl");
        let child = Command::new(&*PROGRAM)
            .args(["record", &format!("--endpoints={}", urls.join(","))])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(fs_err::File::create(&file).unwrap().into_file())
            .spawn()
            .unwrap();
        Self { child, file }
    }

    /// Reads everything once more, and judges all that was done and seen.
    pub(crate) fn require_linearizable(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success(), "the recorder did not come to its end");
        let (is_right, told) = judge(&self.file);
        say(&format!("history of etcd: {}", told.trim()));
        assert!(is_right, "{told}");
    }
}

/// Whether a single register could have answered like this, and what is said of it.
fn judge(file: &Path) -> (bool, String) {
    let output = Command::new(&*PROGRAM).arg("check").arg(file).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert!([Some(0), Some(1)].contains(&output.status.code()), "{told}");
    (output.status.success(), told)
}

/// `P0 a 10-20` puts, `G1 a 15-30` gets, `C0 a>b 40-50` compares a with what is there and writes b,
/// `F0 a>b=c 40-50` finds c instead. Behind the kind is the client; `?` behind the times is no
/// answer.
fn line(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let (kind, client) = words[0].split_at(1);
    let (times, unknown) = words[2].strip_suffix('?').map_or((words[2], false), |times| (times, true));
    let (call, end) = times.split_once('-').unwrap();
    let (old, rest) = words[1].split_once('>').unwrap_or(("", words[1]));
    let (new, found) = rest.split_once('=').unwrap_or((rest, ""));
    let (kind, wrote, old, new, found) = match kind {
        "P" => ("put", false, "", new, ""),
        "G" => ("get", false, "", "", if new == "-" { "" } else { new }),
        "C" => ("cas", true, old, new, ""),
        _ => ("cas", false, old, new, found),
    };
    format!(
        r#"{{"client":{client},"call":{call},"return":{end},"key":"k","kind":"{kind}","old":"{old}","new":"{new}","found":"{found}","wrote":{wrote},"unknown":{unknown}}}"#
    )
}

#[test]
#[ignore = "builds a client of etcd: make test-heal"]
fn cluster_gates_history_with_a_lost_or_stale_answer_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("history.jsonl");
    let is_right = |operations: &[&str]| {
        let text: Vec<String> = operations.iter().map(|operation| line(operation)).collect();
        fs_err::write(&file, text.join("\n")).unwrap();
        judge(&file).0
    };
    assert!(is_right(&["P0 a 10-20", "G1 a 30-40", "C1 a>b 50-60", "F0 a>c=b 70-80", "G0 b 90-95"]));
    assert!(is_right(&["P0 a 10-40", "P1 b 20-30", "G0 b 50-60"]), "at the same time");
    assert!(is_right(&["P0 a 10-20", "P1 b 30-40?", "G0 a 50-60", "G0 b 90-95"]), "its answer was lost");
    assert!(is_right(&["P0 a 10-20", "P1 b 30-40?", "G0 a 50-60"]), "it never happened");
    assert!(!is_right(&["P0 a 10-20", "G1 - 30-40"]), "an acknowledged write is lost");
    assert!(!is_right(&["P0 a 10-20", "P0 b 30-40", "G1 a 50-60"]), "a stale answer");
    assert!(!is_right(&["P0 a 10-20", "C0 a>b 30-40", "C1 a>c 50-60"]), "two have compared with one value");
    assert!(!is_right(&["P1 b 30-40?", "G0 b 50-60", "G0 - 70-80"]), "it happened, and then it did not");
}
