//! How runs end: exit codes, signals, programs that are not there, time limits; and what leaks,
//! which must be nothing.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use turnup::Class;
use turnup::exec::{Failure, OnDeath, Run, Service, Ssh, Stream};

/// For what takes a moment; much shorter than what must not be waited for.
const TIMEOUT: Duration = Duration::from_mins(5);

fn sh(script: &str) -> Run {
    Run::new("sh").args(["-c", script]).dir("/")
}

#[test]
fn output_comes_whole_and_in_lines() {
    let mut lines = Vec::new();
    let output = sh("echo out; echo err >&2; printf 'no newline'")
        .stream(|stream, line| lines.push((stream, line.to_owned())))
        .unwrap();
    assert_eq!(output.stdout, "out\nno newline\n");
    assert_eq!(output.stderr, "err\n");
    assert_eq!(lines.len(), 3);
    assert!(lines.contains(&(Stream::Stderr, "err".into())));
}

#[test]
fn much_output_on_both_pipes_does_not_block() {
    let output = sh("i=0; while [ $i -lt 20000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done").output().unwrap();
    assert_eq!(output.stdout.lines().count(), 20_000);
    assert!(output.stderr.ends_with("err 19999\n"));
}

/// Terraform prints the state of a thousand hosts as one line of JSON: it must not be split.
#[test]
fn a_line_of_many_megabytes_stays_one() {
    let output = sh("head -c 3000000 /dev/zero | tr '\\0' x").output().unwrap();
    assert_eq!((output.stdout.len(), output.stdout.lines().count()), (3_000_001, 1));
}

#[test]
fn the_kinds_of_failure_are_told_apart() {
    assert!(matches!(sh("exit 7").output(), Err(Failure::Exited { code: 7, .. })));
    assert!(matches!(sh("kill -SEGV $$").output(), Err(Failure::Signalled { signal: 11, .. })));
    assert!(matches!(Run::new("no-such-program").dir("/").output(), Err(Failure::NotStarted { .. })));
    assert!(matches!(Run::new("/etc/passwd").dir("/").output(), Err(Failure::NotStarted { .. })));
    assert!(matches!(sh(":").dir("/no/such/dir").output(), Err(Failure::NotStarted { .. })));
    assert!(matches!(Run::new("true").output(), Err(Failure::NotStarted { .. })), "a working directory is required");
}

#[test]
fn a_program_that_cannot_be_executed_was_not_started() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("program");
    fs_err::write(&path, "#!/no/such/interpreter\n").unwrap();
    fs_err::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    for on_death in [OnDeath::Kill, OnDeath::Nothing] {
        let failure = Run::new(&path).dir("/").on_death(on_death).output().unwrap_err();
        assert!(matches!(failure, Failure::NotStarted { .. }), "{on_death:?}: {failure:?}");
    }
}

#[test]
fn a_timeout_kills_the_whole_process_group() {
    let start = Instant::now();
    let failure = sh("sleep 600 & echo $!; wait").timeout(Duration::from_secs(3)).output().unwrap_err();
    assert!(matches!(failure, Failure::TimedOut { .. }));
    assert_eq!(failure.class(), Class::Transient);
    assert!(start.elapsed() < TIMEOUT);
    let pid = failure.ended().stdout.trim().to_owned();
    assert!(!pid.is_empty(), "the shell had no time to say it");
    let since = Instant::now();
    while fs_err::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|process| !process.contains(") Z ")) {
        assert!(since.elapsed() < Duration::from_mins(1), "{pid} lives on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_background_process_does_not_delay_the_result() {
    let start = Instant::now();
    let output = sh("sleep 600 & echo $!").output().unwrap();
    assert!(start.elapsed() < TIMEOUT);
    let pid = output.stdout.trim().parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
    let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

#[test]
fn standard_input_is_empty_bytes_or_a_file() {
    assert_eq!(Run::new("cat").dir("/").output().unwrap().stdout, "");
    assert_eq!(Run::new("cat").dir("/").stdin("one\ntwo").output().unwrap().stdout, "one\ntwo\n");
    let big = vec![b'x'; 1 << 20];
    assert_eq!(Run::new("wc").arg("-c").dir("/").stdin(big).output().unwrap().stdout.trim(), "1048576");
    let file = tempfile::NamedTempFile::new().unwrap();
    fs_err::write(file.path(), "from a file").unwrap();
    assert_eq!(Run::new("cat").dir("/").stdin_file(file.path()).output().unwrap().stdout, "from a file\n");
}

#[test]
fn output_through_files_is_complete() {
    let run = sh("i=0; while [ $i -lt 3000 ]; do echo out $i; i=$((i+1)); done; echo err >&2; sleep 0.1; echo end");
    let output = run.on_death(OnDeath::Terminate).output().unwrap();
    assert_eq!(output.stdout.lines().count(), 3001);
    assert!(output.stdout.ends_with("end\n"));
    assert_eq!(output.stderr, "err\n");
}

#[test]
fn secrets_are_in_no_log_and_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("logs/step.log");
    let run = sh("cat; echo; echo bad hunter22 >&2; exit 1").stdin("hunter22").secret("hunter22").log(&log);
    let failure = run.output().unwrap_err();
    assert!(!format!("{failure:?}").contains("hunter22"));
    assert!(!turnup::Error::from(failure).render().contains("hunter22"));
    let text = fs_err::read_to_string(&log).unwrap();
    assert!(text.contains("bad ***") && !text.contains("hunter22"), "{text}");

    assert_eq!(fs_err::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_looks_like_a_secret_is_in_no_log_and_no_error_either() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("logs/step.log");
    let script = "echo pulling https://robot:hunter22@example.com/x; echo 'db: password=hunter22' >&2; exit 1";
    let failure = sh(script).log(&log).output().unwrap_err();
    assert_eq!(failure.stderr(), "db: password=[removed]\n");
    assert!(!turnup::Error::from(failure).render().contains("hunter22"));
    let text = fs_err::read_to_string(&log).unwrap();
    assert!(text.contains("| pulling https://robot:[removed]@example.com/x\n") && !text.contains("hunter22"), "{text}");
    // The program's own output is not redacted.
    assert_eq!(sh("echo password=hunter22").output().unwrap().stdout, "password=hunter22\n");
}

#[test]
fn an_error_shows_command_evidence_and_log() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("step.log");
    let script = "for i in 1 2 3; do echo \"Error: it's broken ($i)\" >&2; done; exit 4";
    let error = sh(script).label("terraform apply").log(&log).succeed().unwrap_err();
    assert_eq!(error.class(), Class::Permanent);
    insta::assert_snapshot!(error.render().replace(&log.display().to_string(), "LOG"));
}

#[test]
fn a_child_sees_only_what_the_list_allows() {
    let output = Run::new("env").dir("/").env("MINE", "1").output().unwrap();
    for line in output.stdout.lines() {
        let name = line.split('=').next().unwrap_or_default();
        let allowed = turnup::exec::ALLOWED.iter().any(|pattern| {
            pattern.strip_suffix('*').is_some_and(|start| name.starts_with(start))
                || pattern.strip_prefix('*').is_some_and(|end| name.ends_with(end))
                || *pattern == name
        });
        assert!(allowed || name == "MINE", "{name} came through");
    }
    // cargo sets this for tests; it is on no list.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(
        Run::new("env").dir("/").inherit("CARGO_MANIFEST_*").output().unwrap().stdout.contains("CARGO_MANIFEST_DIR=")
    );
}

#[test]
fn a_service_runs_until_it_is_stopped_and_says_why_it_ended() {
    let service = Service::start(sh("echo hello; sleep 600")).unwrap();
    let end = Instant::now() + TIMEOUT;
    while service.said() != "hello\n" {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(service.check().is_ok());
    service.stop();
    assert!(service.check().is_err());
    // Its standard input stays open as long as this process lives, and gets no data.
    let reader = Service::start(Run::new("cat").dir("/")).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(reader.check().is_ok());
    drop(reader);
    let service = Service::start(sh("echo broken; exit 9")).unwrap();
    while service.check().is_ok() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(service.check().unwrap_err().code(), Some(9));
    assert_eq!(service.said(), "broken\n");
}

#[test]
fn a_host_that_does_not_answer_is_transient_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    // Nothing listens on port 1.
    let ssh = Ssh::new("root", "127.0.0.1", 1, &file("key"), &file("known_hosts"), dir.path());
    let error = ssh.run(&["true"]).unwrap_err();
    assert_eq!(error.class(), Class::Transient);
    assert!(error.message().starts_with("cannot reach root@127.0.0.1 over ssh: ssh: connect to host"), "{error}");
}

#[test]
fn colours_of_a_tool_stay_out_of_errors() {
    let failure = sh("printf '\\033[31mError:\\033[0m bad\\n' >&2; exit 1").output().unwrap_err();
    assert_eq!(failure.stderr(), "Error: bad\n");
}
