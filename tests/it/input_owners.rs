//! Directories of another user, and files that replace a part of turnup: who is refused, and what
//! is said. Tried as root and as the user `nobody`.
#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(clippy::disallowed_methods, reason = "it acts as the shell that starts turnup")]

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::cli_support::TestEnv;

/// The unprivileged user `nobody`, which owns no files.
const NOBODY: u32 = 65534;

fn set_mode(path: &Path, mode: u32) {
    fs_err::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Gives a path and everything below it to the user `nobody`.
fn give_away(path: &Path) {
    std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in fs_err::read_dir(path).unwrap() {
            give_away(&entry.unwrap().path());
        }
    }
}

fn is_root() -> bool {
    crate::skip::is_root("to be another user")
}

/// A directory with a copy of turnup that only root can list.
struct PrivateDir {
    test_env: TestEnv,
    turnup: PathBuf,
}

impl PrivateDir {
    fn new() -> Self {
        let test_env = TestEnv::new("");
        set_mode(test_env.dir.path(), 0o755);
        let turnup = test_env.path("bin-turnup");
        fs_err::copy(env!("CARGO_BIN_EXE_turnup"), &turnup).unwrap();
        set_mode(&turnup, 0o755);
        Self { test_env, turnup }
    }

    /// Runs a command as the user `nobody` in a directory of the place.
    fn as_nobody(&self, dir: &str, args: &[&str]) -> Output {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs"]).arg(&self.turnup);
        command.args(args).current_dir(self.test_env.path(dir)).env_clear().env("HOME", self.test_env.path(dir));
        command.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Commands that read or write turnup's state.
const COMMANDS: [&[&str]; 12] = [
    &["status"],
    &["logs"],
    &["events"],
    &["plan"],
    &["render"],
    &["validate"],
    &["kubeconfig"],
    &["support-bundle", "--to", "b.tar.gz"],
    &["state", "rebuild"],
    &["down", "--yes"],
    &["up"],
    &["config", "list"],
];

#[test]
fn a_directory_that_another_user_may_write_is_refused_by_every_command() {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "defaults"]);
    fs_err::create_dir_all(test_env.path(".turnup/kubernetes")).unwrap();
    for (path, mode) in [(".turnup", 0o777), (".turnup/kubernetes", 0o770)] {
        set_mode(&test_env.path(path), mode);
        for command in COMMANDS {
            let done = test_env.ends(4, command);
            let wanted = format!("error: {path} can be written to by other users: its mode is {mode:04o}\n");
            assert!(done.err.contains(&wanted), "{command:?}: {}", done.err);
            assert!(done.err.contains(&format!("chmod -R go-w {path}")), "{}", done.err);
        }
        set_mode(&test_env.path(path), 0o700);
    }
    test_env.ok(&["status"]);
}

#[test]
fn a_directory_of_another_user_is_refused_also_by_root() {
    if !is_root() {
        return;
    }
    let place = PrivateDir::new();
    let test_env = &place.test_env;
    test_env.ok(&["config", "defaults"]);
    fs_err::create_dir_all(test_env.path(".turnup/kubernetes")).unwrap();
    for path in [".turnup/kubernetes", ".turnup"] {
        give_away(&test_env.path(path));
        for command in COMMANDS {
            let done = test_env.ends(4, command);
            assert!(done.err.contains(&format!("error: {path} belongs to ")), "{command:?}: {}", done.err);
            assert!(done.err.contains("(uid 65534), and this is root (uid 0)\n"), "{command:?}: {}", done.err);
            assert!(done.err.contains("next: run turnup as "), "{command:?}: {}", done.err);
        }
    }
    // The other way round, and with a link that leads to a directory of one's own.
    fs_err::remove_dir_all(test_env.path(".turnup")).unwrap();
    for dir in ["theirs", "own/.turnup/kubernetes"] {
        fs_err::create_dir_all(test_env.path(dir)).unwrap();
    }
    fs_err::create_dir(test_env.path("theirs/.turnup")).unwrap();
    give_away(&test_env.path("own"));
    chown(test_env.path("theirs"), Some(NOBODY), Some(NOBODY)).unwrap();
    let told = said(&place.as_nobody("theirs", &["status"]));
    assert!(told.contains("error: .turnup belongs to root (uid 0), and this is "), "{told}");
    fs_err::remove_dir(test_env.path("theirs/.turnup")).unwrap();
    fs_err::os::unix::fs::symlink("../own/.turnup", test_env.path("theirs/.turnup")).unwrap();
    let told = said(&place.as_nobody("theirs", &["status"]));
    assert!(told.contains("error: .turnup belongs to root (uid 0)"), "a link of another user: {told}");
    let told = said(&place.as_nobody("own", &["logs"]));
    assert!(!told.contains("belongs to"), "{told}");
}

#[test]
fn as_nobody_an_inventory_runs_nothing_and_is_refused_with_its_place() {
    if !is_root() {
        return;
    }
    let place = PrivateDir::new();
    fs_err::create_dir(place.test_env.path("home")).unwrap();
    let canary = place.test_env.path("home/canary");
    let mut whole: Value = serde_json::from_str(include_str!("../fixtures/inventory/whole.json")).unwrap();
    whole["hosts"][0]["ssh"]["user"] = format!("-oProxyCommand=id>>{} 2>&1;:", canary.display()).into();
    fs_err::write(place.test_env.path("home/h.json"), format!("{whole:#}\n")).unwrap();
    give_away(&place.test_env.path("home"));
    assert!(place.as_nobody("home", &["config", "defaults"]).status.success());
    let output = place.as_nobody("home", &["bootstrap", "--from", "h.json"]);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(3), "{told}");
    let line = told.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert!(
        line.starts_with("error: h.json:") && line.contains(": hosts[0].ssh.user of rack-1: `-oProxyCommand="),
        "{told}"
    );
    assert!(!canary.exists(), "{told}");
}

/// Two users, one `/tmp`: a directory that the user `nobody` made first does not block root's
/// connections.
#[test]
fn a_directory_for_sockets_that_another_user_made_stops_nothing() {
    if !is_root() {
        return;
    }
    let place = PrivateDir::new();
    fs_err::create_dir(place.test_env.path("home")).unwrap();
    let whole: Value = serde_json::from_str(include_str!("../fixtures/inventory/whole.json")).unwrap();
    let mut one = whole;
    one["hosts"].as_array_mut().unwrap().truncate(1);
    one["hosts"][0]["ssh"].as_object_mut().unwrap().remove("jump");
    one["hosts"][0]["ssh"]["port"] = 9.into();
    fs_err::write(place.test_env.path("home/h.json"), one.to_string()).unwrap();
    give_away(&place.test_env.path("home"));
    // A `/tmp` of this test's own, with a directory made by root before the user `nobody` needs it.
    // A host that refuses is asked again for minutes: the first answer is enough.
    let script = format!(
        "mount --bind {} /mnt && mount -t tmpfs -o mode=1777 none /tmp && mkdir -m 777 /tmp/turnup-65534 && cd /mnt/home
        nobody='setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs'
        $nobody /mnt/bin-turnup config defaults 2>/dev/null
        $nobody /mnt/bin-turnup bootstrap --from h.json 2>/mnt/err &
        until grep -q 'cannot reach\\|error:' /mnt/err || ! kill -0 $! 2>/dev/null; do sleep 0.1; done
        kill -INT $!; wait $!; cat /mnt/err; stat --format '%U %a %n' /tmp/turnup-65534*",
        place.test_env.dir.path().display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script]).env_clear();
    let output = command.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap();
    let out = format!("{}{}", String::from_utf8_lossy(&output.stdout), said(&output));
    assert!(out.contains("cannot reach root@127.0.0.1 over ssh"), "{out}");
    assert!(out.contains("root 777 /tmp/turnup-65534\n"), "{out}");
    let own = out.lines().find(|line| line.contains("/tmp/turnup-65534-")).unwrap_or_default();
    assert!(own.contains(" 700 ") && !own.starts_with("root"), "{out}");
}

#[test]
fn what_replaces_a_part_of_turnup_is_named_and_another_users_is_refused() {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "defaults"]);
    assert_eq!(test_env.ok(&["render"]).replaced, None);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs_err::copy(root.join("cluster.lock.json"), test_env.path("cluster.lock.json")).unwrap();
    assert_eq!(test_env.ok(&["status"]).replaced.unwrap(), "cluster.lock.json");
    copy_tree(root, test_env.dir.path(), &["Kconfig", "phases", "templates"]);
    let all = "Kconfig, phases/, templates/, cluster.lock.json";
    for command in [&["render"][..], &["status"], &["config", "list"], &["doctor"], &["artifacts", "list"], &["logs"]] {
        let done = test_env.run(command);
        assert_eq!(done.replaced.as_deref(), Some(all), "{command:?}: {}", done.err);
        assert!(!done.err.contains("replaces what is built in"), "it is said once: {}", done.err);
        assert_eq!(test_env.run(&[command, &["--quiet"]].concat()).replaced, None, "{command:?}");
    }
    // For programs it is a field of the first event.
    let host = serde_json::json!([{
        "name": "cp", "role": "control-plane", "address": "127.0.0.1", "ssh_port": 9,
        "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    }]);
    let hosts = format!("phase1.baremetal.hosts={host}");
    test_env.ok(&["config", "set", "phase1.cloud_provider=baremetal", &hosts]);
    assert_eq!(test_env.run(&["provision", "--quiet", "--output", "json"]).replaced, None);
    let events = test_env.run(&["provision", "--output", "json"]).out;
    let first: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    let replaced = serde_json::json!(["Kconfig", "phases/", "templates/", "cluster.lock.json"]);
    assert_eq!(first["event"]["replaced"], replaced, "{events}");

    // What it says is still not run.
    let canary = test_env.path("canary");
    let text = test_env.read("Kconfig");
    test_env.write("Kconfig", &format!("{text}\nx := $(shell,touch {})\n", canary.display()));
    let done = test_env.run(&["config", "list"]);
    assert!(done.code != 0 && !canary.exists(), "{}", done.err);
    test_env.write("Kconfig", &text);

    set_mode(&test_env.path("templates/bootstrap/hook.service"), 0o666);
    let done = test_env.ends(4, &["config", "list"]);
    assert!(
        done.err.contains("error: templates/bootstrap/hook.service can be written to by every user, and"),
        "{}",
        done.err
    );
    set_mode(&test_env.path("templates/bootstrap/hook.service"), 0o644);
    if !is_root() {
        return;
    }
    for path in ["cluster.lock.json", "Kconfig", "phases/bootstrap/phase.toml", "templates"] {
        chown(test_env.path(path), Some(NOBODY), Some(NOBODY)).unwrap();
        for command in [&["render"][..], &["status"], &["config", "list"], &["artifacts", "list"]] {
            let done = test_env.ends(4, command);
            assert!(done.err.contains(&format!("error: {path} belongs to ")), "{command:?}: {}", done.err);
        }
        chown(test_env.path(path), Some(0), Some(0)).unwrap();
    }
    test_env.ok(&["config", "list"]);
}

pub(crate) fn copy_tree(from: &Path, to: &Path, names: &[&str]) {
    for name in names {
        let (from, to) = (from.join(name), to.join(name));
        if from.is_dir() {
            fs_err::create_dir(&to).unwrap();
            let inner = fs_err::read_dir(&from).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let inner: Vec<String> = inner.collect();
            copy_tree(&from, &to, &inner.iter().map(String::as_str).collect::<Vec<_>>());
        } else {
            fs_err::copy(&from, &to).unwrap();
            set_mode(&to, 0o644);
        }
    }
}

#[test]
fn a_device_or_a_fifo_is_not_read() {
    let test_env = TestEnv::new("");
    let fifo = test_env.path("fifo");
    let mode = rustix::fs::Mode::RWXU;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let asset =
        |file: &str| format!(r#"phase2.host.file_assets=[{{"name": "a", "path": "/etc/a", "file": "{file}"}}]"#);
    test_env.ok(&["config", "defaults"]);
    let device = "it is a character device, and only a regular file is read";
    let pipe = "it is a FIFO, and only a regular file is read";
    let cases: [(&[&str], &str); 8] = [
        (&["render", "--set", &asset("/dev/zero")], device),
        (&["render", "--set", &asset("fifo")], pipe),
        (&["bootstrap", "--from", "/dev/zero"], device),
        (&["bootstrap", "--from", "fifo"], pipe),
        (&["up", "--plan", "/dev/zero"], device),
        (&["config", "list", "--config", "/dev/zero"], device),
        (&["config", "import", "/dev/zero", "--force"], device),
        (
            &["render", "--set", "phase1.cloud_provider=baremetal", "--set", "phase1.baremetal.hosts_file=/dev/zero"],
            device,
        ),
    ];
    for (args, why) in cases {
        let done = test_env.run(args);
        assert!([2, 3, 4].contains(&done.code) && done.err.contains(why), "{args:?}: {} {}", done.code, done.err);
    }
    for file in ["cluster.lock.json", ".turnup/kubernetes/outputs/provision.json", ".turnup/kubernetes/state.json"] {
        fs_err::create_dir_all(test_env.path(file).parent().unwrap()).unwrap();
        fs_err::os::unix::fs::symlink("/dev/zero", test_env.path(file)).unwrap();
        let done = test_env.run(&["render", "--set", "phase1.cloud_provider=gce"]);
        let status = test_env.run(&["status"]);
        assert!(
            format!("{}{}{}", done.err, status.err, status.out).contains(device),
            "{file}: {} {}",
            done.err,
            status.err
        );
        fs_err::remove_file(test_env.path(file)).unwrap();
    }
}
