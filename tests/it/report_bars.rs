//! Terminal output while many hosts are worked on: one line a step with counts, and the names of
//! those that fail.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::io::Read as _;
use std::num::NonZero;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

/// Row by row: what fills a row to its end is not the beginning of the next one.
fn text(parser: &vt100::Parser) -> String {
    let (_, cols) = parser.screen().size();
    parser.screen().rows(0, cols.get()).map(|row| row.trim_end().to_owned() + "\n").collect()
}

/// All screens that were shown, one after each piece of output, and at last everything that was
/// printed.
fn screens(hosts: &str, fails: &str, rows: u16, cols: u16) -> (Vec<String>, String) {
    let dir = tempfile::tempdir().unwrap();
    let pty = native_pty_system().openpty(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_fake-engine"));
    command.arg(dir.path());
    command.args(["many", hosts]);
    for (name, value) in
        [("FAKE_BARS", "1"), ("FAKE_PAUSE", "150"), ("FAKE_FAIL", fails), ("TERM", "xterm"), ("NO_COLOR", "1")]
    {
        command.env(name, value);
    }
    let mut reader = pty.master.try_clone_reader().unwrap();
    let mut child = pty.slave.spawn_command(command).unwrap();
    drop(pty.slave);
    let mut parser = vt100::Parser::new(cells(rows), cells(cols), 0);
    let mut long = vt100::Parser::new(cells(400), cells(cols), 0);
    let (mut shown, mut bytes) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = reader.read(&mut bytes) {
        parser.process(&bytes[..count]);
        long.process(&bytes[..count]);
        shown.push(text(&parser));
    }
    child.wait().unwrap();
    (shown, text(&long))
}

#[test]
fn a_hundred_hosts_are_one_line_with_counts() {
    let fails: Vec<String> = [3, 17, 18, 19, 40, 41, 77].map(|host| format!("host@worker-{host}")).to_vec();
    for (rows, cols) in [(24, 80), (50, 200)] {
        let (shown, all) = screens("100", &fails.join(","), rows, cols);
        let counts = |screen: &&String| {
            let mut lines = screen.lines().filter(|line| line.contains("fake/host ") && line.contains("/100 "));
            lines.next().is_some_and(|line| line.contains(" running, ") && line.contains(" failed: worker-"))
        };
        assert!(shown.iter().any(|screen| counts(&screen)), "no line with counts:\n{}", shown[shown.len() / 2]);
        for screen in &shown {
            let working = screen.lines().filter(|line| line.contains("running")).count();
            assert!(working <= 1, "one line a step:\n{screen}");
            assert!(!screen.contains("fake/host@worker-0"), "a line for one of many hosts:\n{screen}");
        }
        assert_eq!(all.matches("failed: this host was told to fail").count(), 5, "{all}");
        assert!(all.contains("fake/host: done on 93 of 100 in "), "{all}");
        assert!(all.contains("\nfake/host failed on 7 hosts: worker-3, "), "{all}");
        assert!(all.contains(" and 2 more\n"), "{all}");
        assert!(all.contains("\nhost@* made (93 of them) "), "{all}");
        let host = all.lines().find(|line| line.starts_with("  host ")).unwrap();
        assert_eq!(host.split_whitespace().take(3).collect::<Vec<_>>(), ["host", "93", "7"], "{all}");
    }
}

#[test]
fn few_hosts_have_a_line_each_when_they_end() {
    let (_, all) = screens("3", "", 24, 80);
    for host in 0..3 {
        assert!(all.contains(&format!("fake/host@worker-{host} done in ")), "{all}");
        assert!(all.contains(&format!("reached: host@worker-{host} made")), "{all}");
    }
    assert!(!all.contains("done on"), "{all}");
}
