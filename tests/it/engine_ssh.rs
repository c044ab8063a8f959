//! Commands over a real sshd on this machine: quoting, input, files, exit codes, one connection for all, strangers refused.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::fs::Permissions;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use turnup::Class;
use turnup::exec::{Jump, Run, Service, Ssh, tools};

/// An sshd of this test's own.
struct Server {
    dir: tempfile::TempDir,
    port: u16,
    daemon: Service,
}

impl Server {
    /// Starts it; nothing where there is no sshd or where it needs more than this user may.
    fn start() -> Option<Self> {
        let sshd = tools::find("sshd").ok().filter(|_| rustix::process::geteuid().is_root());
        let Some(sshd) = sshd else {
            let _closed = writeln!(std::io::stderr(), "skipped: needs root and an installed sshd");
            return None;
        };
        fs_err::create_dir_all("/run/sshd").unwrap();
        let dir = tempfile::tempdir().unwrap();
        for key in ["host", "user"] {
            keygen(&dir.path().join(key));
        }
        fs_err::copy(dir.path().join("user.pub"), dir.path().join("authorized")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let show = |name: &str| dir.path().join(name).display().to_string();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nLogLevel VERBOSE\nPidFile none\n",
            show("host"),
            show("authorized")
        );
        fs_err::write(dir.path().join("config"), config).unwrap();
        let run = Run::new(sshd).args(["-D", "-f", &show("config"), "-E", &show("log")]).dir("/");
        let daemon = Service::start(run).unwrap();
        let end = Instant::now() + Duration::from_mins(1);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(daemon.check().is_ok() && Instant::now() < end, "{}", daemon.said());
            std::thread::sleep(Duration::from_millis(10));
        }
        let server = Self { dir, port, daemon };
        server.trust("host.pub");
        Some(server)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn trust(&self, key: &str) {
        let key = fs_err::read_to_string(self.path(key)).unwrap();
        fs_err::write(self.path("known hosts"), format!("[127.0.0.1]:{} {key}", self.port)).unwrap();
    }

    fn ssh(&self) -> Ssh {
        Ssh::new("root", "127.0.0.1", self.port, &self.path("user"), &self.path("known hosts"), self.dir.path())
    }
}

fn keygen(path: &Path) {
    Run::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path).dir("/").succeed().unwrap();
}

#[test]
fn commands_files_and_failures_over_one_connection() {
    let Some(server) = Server::start() else { return };
    let log = server.path("step.log");
    let ssh = server.ssh().log(&log).secret("hunter22");

    let words = ["a b", "it's", "$HOME", "\"q\"", "*", "back\\slash", ";false", "", "-n"];
    let argv: Vec<&str> = ["printf", "%s\\n"].into_iter().chain(words).collect();
    assert_eq!(ssh.run(&argv).unwrap().stdout.lines().collect::<Vec<_>>(), words);

    assert_eq!(ssh.run_with_stdin(&["cat"], "hunter22").unwrap().stdout, "hunter22\n");
    assert!(!fs_err::read_to_string(&log).unwrap().contains("hunter22"));

    let remote = server.path("made/by ssh/file").display().to_string();
    ssh.write("one", &remote, 0o640).unwrap();
    let local = server.path("local");
    fs_err::write(&local, vec![7; 300_000]).unwrap();
    fs_err::write(format!("{remote}.part.1"), "of a transfer that nobody could end").unwrap();
    ssh.copy(&local, &remote, 0o750).unwrap();
    assert_eq!(fs_err::read(&remote).unwrap(), vec![7; 300_000]);
    assert_eq!(fs_err::metadata(&remote).unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(fs_err::read_dir(server.path("made/by ssh")).unwrap().count(), 1);

    let error = ssh.run(&["sh", "-c", "echo broken >&2; exit 3"]).unwrap_err();
    assert_eq!((error.class(), error.message()), (Class::Permanent, "`sh on 127.0.0.1` failed with exit code 3"));
    assert_eq!(ssh.try_run(&["false"]).unwrap().unwrap_err().code(), Some(1));

    let accepted = fs_err::read_to_string(server.path("log")).unwrap().matches("Accepted publickey").count();
    assert_eq!(accepted, 1, "all commands share one connection");
    ssh.close();
    assert_eq!(ssh.run(&["echo", "again"]).unwrap().stdout, "again\n");
}

#[test]
fn threads_share_the_connection() {
    let Some(server) = Server::start() else { return };
    let ssh = server.ssh();
    std::thread::scope(|scope| {
        for number in 0..6 {
            let ssh = ssh.clone();
            scope.spawn(move || {
                assert_eq!(ssh.run(&["echo", &number.to_string()]).unwrap().stdout, format!("{number}\n"));
            });
        }
    });
    let accepted = fs_err::read_to_string(server.path("log")).unwrap().matches("Accepted publickey").count();
    assert_eq!(accepted, 1);
}

#[test]
fn a_stranger_is_refused_and_a_lost_connection_is_transient() {
    let Some(server) = Server::start() else { return };
    keygen(&server.path("other"));
    server.trust("other.pub");
    let error = server.ssh().run(&["true"]).unwrap_err();
    assert_eq!(error.class(), Class::Precondition);
    assert!(error.next().unwrap().starts_with("look who answers at 127.0.0.1"), "{}", error.render());

    server.trust("host.pub");
    let ssh = server.ssh();
    // The host's side of the connection dies in the middle of a command.
    let error = ssh.run(&["sh", "-c", "kill -9 $PPID; sleep 5"]).unwrap_err();
    assert_eq!(error.class(), Class::Transient, "{}", error.render());
    assert_eq!(ssh.run(&["echo", "back"]).unwrap().stdout, "back\n");
    server.daemon.stop();
}

#[test]
fn a_host_behind_another_one_is_reached_with_the_same_key() {
    let (Some(door), Some(server)) = (Server::start(), Server::start()) else { return };
    let let_in = |options: &str| {
        let key = fs_err::read_to_string(server.path("user.pub")).unwrap();
        fs_err::write(door.path("authorized"), format!("{options} {key}")).unwrap();
    };
    let log = || fs_err::read_to_string(door.path("log")).unwrap();
    let jump = Jump { user: "root".into(), host: "127.0.0.1".into(), port: door.port };
    let behind = || server.ssh().jump(Some(jump.clone())).connect_timeout(Duration::from_mins(1));
    let_in("");
    let error = behind().run(&["true"]).unwrap_err();
    assert_eq!(error.class(), Class::Precondition, "a jump host with an unknown key: {}", error.render());
    assert!(error.message().contains("Host key verification failed"), "{}", error.render());

    let known = fs_err::read_to_string(server.path("known hosts")).unwrap();
    let door_key = fs_err::read_to_string(door.path("host.pub")).unwrap();
    fs_err::write(server.path("known hosts"), format!("{known}[127.0.0.1]:{} {door_key}", door.port)).unwrap();
    let ssh = behind();
    assert_eq!(ssh.run(&["echo", "one"]).unwrap().stdout, "one\n");
    assert_eq!(ssh.run_with_stdin(&["cat"], "two").unwrap().stdout, "two\n");
    assert_eq!(log().matches("Accepted publickey").count(), 1, "one connection is passed on for all commands");
    assert_eq!(behind().single().run(&["echo", "three"]).unwrap().stdout, "three\n");
    assert_eq!(log().matches("Accepted publickey").count(), 2, "{}", log());

    let_in("no-port-forwarding");
    let error = behind().single().run(&["true"]).unwrap_err();
    assert_eq!(error.class(), Class::Precondition, "{}", error.render());
    assert!(error.next().unwrap().contains("AllowTcpForwarding"), "{}", error.render());

    fs_err::write(door.path("authorized"), "").unwrap();
    let error = behind().single().run(&["true"]).unwrap_err();
    assert_eq!(error.class(), Class::Precondition, "{}", error.render());
    assert!(error.next().unwrap().contains(&format!("-p {} ", door.port)), "it is the door: {}", error.render());
}

#[test]
fn who_is_not_let_in_needs_a_person() {
    let Some(server) = Server::start() else { return };
    keygen(&server.path("stranger"));
    let known = server.path("known hosts");
    let stranger = Ssh::new("root", "127.0.0.1", server.port, &server.path("stranger"), &known, server.dir.path());
    // With a connection that stays, and with one for a single command.
    for ssh in [stranger.clone(), stranger.single()] {
        let error = ssh.run(&["true"]).unwrap_err();
        assert_eq!(error.class(), Class::Precondition, "{}", error.render());
        assert!(error.message().contains("Permission denied"), "{}", error.render());
        assert!(error.next().unwrap().starts_with("let the cluster's key in: ssh-copy-id"), "{}", error.render());
    }
    fs_err::set_permissions(server.path("user"), Permissions::from_mode(0o644)).unwrap();
    let error = server.ssh().run(&["true"]).unwrap_err();
    assert_eq!(error.class(), Class::Precondition, "{}", error.render());
    assert_eq!(error.next().unwrap(), format!("chmod 600 {}", server.path("user").display()));
}

#[test]
fn what_a_host_refuses_needs_a_person() {
    let Some(server) = Server::start() else { return };
    let ssh = server.ssh();
    let full = ssh.write(vec![7; 4096], "/dev/full/there", 0o644).unwrap_err();
    assert_eq!(full.class(), Class::Permanent, "no words that are known: {}", full.render());
    for (script, advice) in [
        ("cat /etc/passwd >/dev/full", "df -h"),
        ("echo 'sudo: a password is required' >&2; exit 1", "NOPASSWD"),
        ("/dev/null", "root on 127.0.0.1"),
    ] {
        let error = ssh.run(&["sh", "-c", script]).unwrap_err();
        assert_eq!(error.class(), Class::Precondition, "{script}: {}", error.render());
        assert!(error.next().unwrap().contains(advice), "{script}: {}", error.render());
    }
    let output = ssh.run(&["sh", "-c", "echo 'Permission denied' >&2"]).unwrap();
    assert!(output.stderr.contains("Permission denied"), "who ends well was refused nothing");
}
