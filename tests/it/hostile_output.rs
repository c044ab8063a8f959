//! Output of a compromised host or another program never acts on the terminal: fake ssh, Terraform
//! and kubectl send escape sequences, to a real pseudo terminal and to a pipe.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::Read as _;
use std::num::NonZero;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::json;

use crate::simulation::Simulation;

/// Another title, a bell, an empty screen, a colour, a carriage return before a line of its own,
/// letters in another order, and C1.
const HOSTILE: &str =
    "said \u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[31m\rFORGED all is well \u{202e}gnirts \u{9b}2J\u{7f} end";
/// As it is shown. Colours of tools, which are noise, are taken away before.
const SHOWN: [&str; 3] = ["\\rFORGED all is well", "\\u{202e}gnirts", "end"];
/// So wide that no line is cut.
const SIZE: PtySize = PtySize { rows: 200, cols: 4000, pixel_width: 0, pixel_height: 0 };

/// What a command writes to a terminal, byte by byte.
fn on_a_terminal(simulation: &Simulation, args: &[&str], bars: bool) -> Vec<u8> {
    let pty = native_pty_system().openpty(SIZE).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_turnup"));
    command.args(args);
    command.cwd(simulation.path("work"));
    command.env_clear();
    let path = format!("{}:{}", simulation.path("bin").display(), std::env::var("PATH").unwrap());
    command.env("PATH", path);
    command.env("TERM", if bars { "xterm-256color" } else { "dumb" });
    for (name, dir) in [("HOME", "home"), ("XDG_RUNTIME_DIR", "run"), ("TMPDIR", "tmp"), ("TURNUP_CACHE", "cache")] {
        command.env(name, simulation.path(dir));
    }
    let mut reader = pty.master.try_clone_reader().unwrap();
    let mut child = pty.slave.spawn_command(command).unwrap();
    drop(pty.slave);
    let (mut all, mut bytes) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = reader.read(&mut bytes) {
        all.extend_from_slice(&bytes[..count]);
    }
    child.wait().unwrap();
    all
}

/// Fails when anything of the hostile text has reached the terminal as it is, or stands at the
/// beginning of a line.
#[track_caller]
fn check(bytes: &[u8], what: &str) {
    let text = String::from_utf8_lossy(bytes);
    for raw in ["\u{7}", "\u{1b}]", "\u{1b}[2J", "\u{202e}", "\u{9b}", "\u{7f}"] {
        assert!(!text.contains(raw), "{what}: {raw:?} in {text:?}");
    }
    let cells = |count: u16| NonZero::new(count).unwrap();
    let mut parser = vt100::Parser::new(cells(SIZE.rows), cells(SIZE.cols), 0);
    parser.process(bytes);
    let rows: Vec<String> = parser.screen().rows(0, SIZE.cols).map(|row| row.trim_end().to_owned()).collect();
    let forged: Vec<&String> = rows.iter().filter(|row| row.trim_start().starts_with("FORGED")).collect();
    assert!(forged.is_empty(), "{what}: {forged:?}");
}

#[track_caller]
fn is_shown(text: &str, what: &str) {
    for part in SHOWN {
        assert!(text.contains(part), "{what}: {part:?} is not in {text:?}");
    }
}

/// A simulation with this fault; returns what both ways to show a run print.
fn try_both(simulation: &Simulation, args: &[&str], what: &str) {
    for bars in [true, false] {
        let bytes = on_a_terminal(simulation, args, bars);
        check(&bytes, what);
        is_shown(&String::from_utf8_lossy(&bytes), what);
    }
    let piped = simulation.run(args);
    check(piped.err.as_bytes(), what);
    is_shown(&piped.err, what);
    let json = simulation.run(&[args, &["--output", "json"]].concat());
    check(json.out.as_bytes(), what);
    for line in json.out.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    check(json.err.as_bytes(), what);
}

#[test]
fn what_a_host_says_does_not_act_on_the_terminal() {
    let simulation = Simulation::new(1);
    let fails = |when: &str, out: &str, err: &str, exit: u8| json!({"tool": "ssh", "when": ["10.125.0.1 ", when], "stdout": out, "stderr": err, "exit": exit});
    // No connection, a command that fails, and the words of turnup over there, which are JSON.
    simulation.script(&[fails("", "", &format!("{HOSTILE}\n"), 255)]);
    try_both(&simulation, &["up"], "no connection");
    simulation.script(&[fails("look", "", &format!("{HOSTILE}\n"), 1)]);
    try_both(&simulation, &["up"], "a command");
    let report = json!({"waiting": format!("{HOSTILE}\nFORGED line")}).to_string();
    let milestone = json!({"milestone": format!("{HOSTILE}\nFORGED line")}).to_string();
    let told = format!("error: {HOSTILE}\n  | FORGED\nnext: {HOSTILE}\n");
    simulation.script(&[fails("node up", &format!("{report}\n{milestone}\n"), &told, 4)]);
    try_both(&simulation, &["up"], "turnup on the host");

    let looks: [&[&str]; 5] = [&["status"], &["events"], &["logs"], &["logs", "node-up"], &["plan"]];
    for args in looks {
        let bytes = on_a_terminal(&simulation, args, true);
        check(&bytes, &args.join(" "));
        let piped = simulation.run(args);
        check(piped.out.as_bytes(), &args.join(" "));
        check(piped.err.as_bytes(), &args.join(" "));
    }
    let logs = fs_err::read_dir(simulation.state("logs")).unwrap().map(|entry| entry.unwrap().path());
    let said = |path: &std::path::PathBuf| String::from_utf8_lossy(&fs_err::read(path).unwrap()).contains("FORGED");
    let name = logs.into_iter().find(said).unwrap().file_stem().unwrap().to_string_lossy().into_owned();
    let name = name.split_once('-').map(|(phase, rest)| format!("{phase}/{rest}")).unwrap();
    let step = name.as_str();
    let log = simulation.ok(&["logs", step]).out;
    is_shown(&log, "logs");
    assert_eq!(
        String::from_utf8_lossy(&on_a_terminal(&simulation, &["logs", step, "--quiet"], true)).replace("\r\n", "\n"),
        log
    );
}

#[test]
fn what_terraform_and_kubectl_say_does_not_act_on_the_terminal() {
    let simulation = Simulation::new(1);
    let module = simulation.path("work/module");
    fs_err::create_dir_all(&module).unwrap();
    fs_err::write(module.join("main.tf"), "variable \"cluster\" {\n}\noutput \"inventory\" {\n}\n").unwrap();
    simulation.ok(&["config", "set", "phase1.cloud_provider=custom", "phase1.custom.module=module"]);
    let diagnostic = json!({"@level": "error", "@message": HOSTILE, "type": "diagnostic", "diagnostic": {
        "severity": "error", "summary": HOSTILE, "detail": format!("{HOSTILE}\nFORGED line"), "address": HOSTILE}});
    simulation.script(&[
        json!({"tool": "terraform", "when": ["plan"], "stdout": format!("{diagnostic}\n"), "stderr": HOSTILE, "exit": 1}),
    ]);
    try_both(&simulation, &["provision"], "Terraform");
    simulation.script(&[json!({"tool": "kubectl", "when": [""], "stderr": format!("{HOSTILE}\n"), "exit": 1})]);
    for args in [&["up"][..], &["validate"], &["status"]] {
        check(&on_a_terminal(&simulation, args, true), &args.join(" "));
    }
}

#[test]
fn a_hostile_configuration_or_plan_does_not_act_on_the_terminal() {
    let simulation = Simulation::new(1);
    let text = fs_err::read_to_string(simulation.path("work/.config.json")).unwrap();
    let named = text.replace("\"sim\"", &json!(HOSTILE).to_string());
    assert_ne!(named, text);
    fs_err::write(simulation.path("work/.config.json"), named).unwrap();
    let plan = json!({"schema": HOSTILE}).to_string();
    fs_err::write(simulation.path("work/plan.json"), plan).unwrap();
    for args in [&["config", "check"][..], &["config", "list"], &["status"], &["up", "--plan", "plan.json"]] {
        check(&on_a_terminal(&simulation, args, true), &args.join(" "));
    }
}
