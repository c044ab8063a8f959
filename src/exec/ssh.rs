//! Commands on another host over the system's own ssh.
//!
//! The first command opens one connection, held by a master process that is our child and ends with
//! us; every further one goes through its socket in some milliseconds. A `single` command has no
//! further one behind it and does without the master. Host keys are the cluster's own
//! (`known_hosts`), never asked about, and learnt only by who says so (`learns`). A command is an
//! argument vector here and arrives as one there: it is quoted for the login shell that sshd
//! insists on.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::failure::Failure;
use super::run::{Output, Run, Stream};
use super::{Service, remote_error, signals, socket};
use crate::{Class, Error, Result};

/// For the TCP connection and the key exchange, unless the caller says otherwise.
const CONNECT: Duration = Duration::from_secs(10);
/// Puts standard input into a file, whole or not at all. A broken connection looks like the end of
/// the input on the host, so the size decides; the reader of the output may be gone as well, and
/// writing without a reader is a signal (SIGPIPE), after which a shell would clean up nothing. An
/// earlier transfer that had no time to clean up is cleaned up after. Arguments: path, mode, size.
const RECEIVE: &str = r#"set -eu
umask 077
mkdir -p -- "$(dirname -- "$1")"
rm -f -- "$1".part.*
part="$1.part.$$"
trap 'rm -f -- "$part"' EXIT
trap 'exit 74' HUP INT PIPE TERM
cat >"$part"
if [ "$(wc -c <"$part")" -ne "$3" ]; then echo "the transfer of $1 broke off" >&2; exit 75; fi
chmod -- "$2" "$part"
mv -f -- "$part" "$1""#;
/// What `RECEIVE` exits with when the transfer broke off: `EX_TEMPFAIL`.
const BROKE_OFF: i32 = 75;

/// One host, reached over one multiplexed connection. Clones share it.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "choices that are independent of each other")]
pub struct Ssh {
    user: String,
    address: String,
    port: u16,
    key: PathBuf,
    known_hosts: PathBuf,
    seed: PathBuf,
    sudo: bool,
    log: Option<PathBuf>,
    secrets: Vec<String>,
    timeout: Option<Duration>,
    single: bool,
    relays: bool,
    agent: bool,
    learns: bool,
    learnt_as: Option<String>,
    returns: bool,
    patience: Duration,
    jump: Option<Jump>,
    master: Arc<Mutex<Option<Master>>>,
}

/// A host that passes connections on, with the same key and known hosts as the host behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jump {
    /// The user there, who needs no other right than to forward.
    pub user: String,
    /// Its address or name as this machine reaches it.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

#[derive(Debug)]
struct Master {
    service: Service,
    socket: PathBuf,
}

impl Drop for Master {
    fn drop(&mut self) {
        self.service.stop();
        // Normally gone already: the master removes its own socket.
        let _gone = fs_err::remove_file(&self.socket);
    }
}

impl Ssh {
    /// A host; nothing is connected yet. `control_dir` tells clusters apart and is not where the
    /// socket lies: that needs a short path.
    #[must_use]
    pub fn new(user: &str, address: &str, port: u16, key: &Path, known_hosts: &Path, control_dir: &Path) -> Self {
        Self {
            user: user.into(),
            address: address.into(),
            port,
            key: key.into(),
            known_hosts: known_hosts.into(),
            seed: control_dir.into(),
            sudo: false,
            log: None,
            secrets: Vec::new(),
            timeout: None,
            single: false,
            relays: false,
            agent: false,
            learns: false,
            learnt_as: None,
            returns: false,
            patience: CONNECT,
            jump: None,
            master: Arc::default(),
        }
    }

    /// Offers the keys of the agent of `SSH_AUTH_SOCK` as well. Without it the agent is never
    /// asked.
    #[must_use]
    pub fn agent(mut self, agent: bool) -> Self {
        self.agent = agent;
        self
    }

    /// Believes a host whose key is not known yet, and writes its key to the file of known hosts.
    /// One that is known must still be the same.
    #[must_use]
    pub fn learns(mut self) -> Self {
        self.learns = true;
        self
    }

    /// The name with which the user resets this host's key, where turnup has learnt it.
    #[must_use]
    pub fn learnt_as(mut self, name: Option<String>) -> Self {
        self.learnt_as = name;
        self
    }

    /// Whether a machine in the place of this host becomes it by itself. Until it has, it answers
    /// with a host key of its own.
    #[must_use]
    pub fn returns(mut self, returns: bool) -> Self {
        self.returns = returns;
        self
    }

    /// How long one attempt to connect may take.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.patience = limit.max(Duration::from_secs(1));
        self
    }

    /// Goes through this host.
    #[must_use]
    pub fn jump(mut self, jump: Option<Jump>) -> Self {
        self.jump = jump;
        self
    }

    /// Appends every command and its output to this file.
    #[must_use]
    pub fn log(mut self, path: impl Into<PathBuf>) -> Self {
        self.log = Some(path.into());
        self
    }

    /// A text that must not appear in any log or error.
    #[must_use]
    pub fn secret(mut self, secret: &str) -> Self {
        self.secrets.push(secret.into());
        self
    }

    /// A limit for every command.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// For one command: it opens a connection of its own where none stands, and no process stays
    /// for further ones.
    #[must_use]
    pub fn single(mut self) -> Self {
        self.single = true;
        self
    }

    /// What runs over there is turnup: its errors are taken over as they are, whatever their class.
    #[must_use]
    pub fn relays(mut self) -> Self {
        self.relays = true;
        self
    }

    /// Whether there is another clone: a connection that is not used can be ended.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.master) > 1
    }

    /// Runs every command as root through sudo, which must not ask for a password.
    #[must_use]
    pub fn sudo(mut self, sudo: bool) -> Self {
        self.sudo = sudo;
        self
    }

    /// Runs this argument vector on the host; every argument arrives as it is.
    pub fn run<S: AsRef<str>>(&self, argv: &[S]) -> Result<Output> {
        self.stream(argv, |_, _| {})
    }

    /// The same with bytes on standard input. They may be secret: they appear in no argument,
    /// environment or log.
    pub fn run_with_stdin<S: AsRef<str>>(&self, argv: &[S], stdin: impl Into<Vec<u8>>) -> Result<Output> {
        self.finish(self.command(argv)?.stdin(stdin).output())
    }

    /// The same; lines are handed over as they come.
    pub fn stream<S: AsRef<str>>(&self, argv: &[S], on_line: impl FnMut(Stream, &str)) -> Result<Output> {
        self.finish(self.command(argv)?.stream(on_line))
    }

    /// The same with bytes on standard input, which may be secret.
    pub fn stream_with_stdin<S: AsRef<str>>(
        &self,
        argv: &[S],
        stdin: impl Into<Vec<u8>>,
        on_line: impl FnMut(Stream, &str),
    ) -> Result<Output> {
        self.finish(self.command(argv)?.stdin(stdin).stream(on_line))
    }

    /// Runs it and leaves the judgement of exit codes to the caller. An error is a connection that
    /// failed.
    pub fn try_run<S: AsRef<str>>(&self, argv: &[S]) -> Result<Result<Output, Failure>> {
        self.try_stream(argv, |_, _| {})
    }

    /// The same; lines are handed over as they come.
    pub fn try_stream<S: AsRef<str>>(
        &self,
        argv: &[S],
        on_line: impl FnMut(Stream, &str),
    ) -> Result<Result<Output, Failure>> {
        match self.command(argv)?.stream(on_line) {
            Err(failure) if failure.code() == Some(255) || failure.code().is_none() => {
                self.finish(Err(failure)).map(Ok)
            }
            other => Ok(other),
        }
    }

    /// Copies a local file to the host, whole or not at all, with this mode.
    pub fn copy(&self, local: &Path, remote: &str, mode: u32) -> Result<()> {
        let size = fs_err::metadata(local)?.len();
        self.receive(remote, mode, size, |run| run.stdin_file(local))
    }

    /// Writes these bytes to a file on the host, whole or not at all, with this mode.
    pub fn write(&self, bytes: impl Into<Vec<u8>>, remote: &str, mode: u32) -> Result<()> {
        let bytes = bytes.into();
        self.receive(remote, mode, bytes.len() as u64, |run| run.stdin(bytes))
    }

    /// This process becomes an ssh of the user's own to the host: with a login shell of the user
    /// there, or with this command as root. Comes back with an error alone.
    pub fn take_over<S: AsRef<str>>(&self, argv: &[S], has_terminal: bool) -> Error {
        use std::os::unix::process::CommandExt as _;
        let sudo: &[&str] = if self.sudo && !argv.is_empty() { &["sudo", "--"] } else { &[] };
        let words: Vec<&str> = sudo.iter().copied().chain(argv.iter().map(AsRef::as_ref)).collect();
        #[expect(clippy::disallowed_methods, reason = "no child: the process itself, on the user's terminal")]
        let mut ssh = std::process::Command::new("ssh");
        ssh.args(self.options(self.port, "ERROR"));
        if has_terminal {
            ssh.arg("-t");
        }
        if let Some(jump) = &self.jump {
            ssh.arg("-o").arg(format!("ProxyCommand={}", self.proxy_command(jump)));
        }
        ssh.args(self.target_words());
        if !words.is_empty() {
            ssh.arg(shell_words::join(words));
        }
        Error::precondition("cannot run ssh").source(ssh.exec())
    }

    /// Ends the connection. The next command opens a new one.
    pub fn close(&self) {
        drop(self.master.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn receive(&self, remote: &str, mode: u32, size: u64, feed: impl FnOnce(Run) -> Run) -> Result<()> {
        let (mode, size) = (format!("{mode:04o}"), size.to_string());
        let run = self.command(&["sh", "-c", RECEIVE, "receive", remote, &mode, &size])?;
        match feed(run.label(format!("copy to {}:{remote}", self.address))).output() {
            Err(failure) if failure.code() == Some(BROKE_OFF) => Err(failure.into_error(Class::Transient)),
            other => self.finish(other).map(drop),
        }
    }

    fn command<S: AsRef<str>>(&self, argv: &[S]) -> Result<Run> {
        let socket = if self.single { self.standing() } else { Some(self.connect()?) };
        let sudo: &[&str] = if self.sudo { &["sudo", "--non-interactive", "--"] } else { &[] };
        let words = sudo.iter().copied().chain(argv.iter().map(AsRef::as_ref));
        let name = short_name(argv);
        let run = match socket {
            Some(socket) => self.ssh().arg("-S").arg(socket),
            None => self.ssh(),
        };
        let run = run.args(self.target_words()).arg(shell_words::join(words));
        Ok(self.dress(run).label(format!("{name} on {}", self.address)))
    }

    fn dress(&self, mut run: Run) -> Run {
        for secret in &self.secrets {
            run = run.secret(secret);
        }
        if let Some(log) = &self.log {
            run = run.log(log);
        }
        if let Some(limit) = self.timeout {
            run = run.timeout(limit);
        }
        run
    }

    fn target(&self) -> String {
        format!("{}@{}", self.user, self.address)
    }

    /// The target as ssh is given it: behind the end of the options, whatever it looks like. What
    /// follows is the command: after a `--` ssh looks for no options behind the target either.
    fn target_words(&self) -> [String; 2] {
        ["--".to_owned(), self.target()]
    }

    /// ssh with everything that does not depend on the command. `-F none`: the user's own ssh
    /// configuration must not change what we do.
    fn ssh(&self) -> Run {
        let run = Run::new("ssh").dir("/").args(self.options(self.port, "ERROR"));
        match &self.jump {
            Some(jump) => run.arg("-o").arg(format!("ProxyCommand={}", self.proxy_command(jump))),
            None => run,
        }
    }

    /// What the way to a host and to its jump host have in common.
    fn options(&self, port: u16, log_level: &str) -> Vec<String> {
        let mut words = vec!["-Fnone".to_owned(), "-T".into(), "-p".into(), port.to_string()];
        words.extend(["-i".to_owned(), self.key.display().to_string()]);
        let settings = [
            "BatchMode=yes".to_owned(),
            format!("StrictHostKeyChecking={}", if self.learns { "accept-new" } else { "yes" }),
            "HashKnownHosts=no".to_owned(),
            format!("UserKnownHostsFile={}", quote_option(&self.known_hosts)),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
            "UpdateHostKeys=no".to_owned(),
            format!("IdentitiesOnly={}", if self.agent { "no" } else { "yes" }),
            format!("ConnectTimeout={}", self.patience.as_secs()),
            "ServerAliveInterval=5".to_owned(),
            "ServerAliveCountMax=4".to_owned(),
            format!("LogLevel={log_level}"),
        ];
        let settings = settings.into_iter().chain((!self.agent).then(|| "IdentityAgent=none".to_owned()));
        words.extend(settings.flat_map(|setting| ["-o".to_owned(), setting]));
        words
    }

    /// The line that ssh hands to a shell behind `exec` to be connected by: quoted for that shell,
    /// and for ssh, which expands `%h` in it. ssh's own `-J` would leave key and known hosts of the
    /// jump host to the user's own ssh configuration.
    fn proxy_command(&self, jump: &Jump) -> String {
        let mut words = vec!["ssh".to_owned()];
        // At the level of errors it would not say why the jump host passes nothing on.
        words.extend(self.options(jump.port, "INFO"));
        let target = format!("{}@{}", jump.user, jump.host);
        let fixed = shell_words::join(words).replace('%', "%%");
        format!("{fixed} -W '[%h]:%p' -- {}", shell_words::quote(&target).replace('%', "%%"))
    }

    /// The control socket of a connection, if one stands already.
    fn standing(&self) -> Option<PathBuf> {
        let slot = self.master.lock().unwrap_or_else(PoisonError::into_inner);
        slot.as_ref().filter(|master| master.service.check().is_ok()).map(|master| master.socket.clone())
    }

    /// The control socket of a connection, which is made where none stands.
    fn connect(&self) -> Result<PathBuf> {
        let mut slot = self.master.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(master) = slot.as_ref()
            && master.service.check().is_ok()
        {
            return Ok(master.socket.clone());
        }
        drop(slot.take());
        let socket = self.socket()?;
        // Not -N: `cat` ends with its input, and the connection with it. A master that was just
        // starting when we were killed has no other way to know.
        let run = self.dress(self.ssh().args(["-M", "-S"]).arg(&socket).args(self.target_words()).arg("cat"));
        let service = Service::start(run.label(format!("ssh to {}", self.address)))?;
        let master = Master { service, socket: socket.clone() };
        self.wait_for_socket(&master)?;
        *slot = Some(master);
        Ok(socket)
    }

    fn wait_for_socket(&self, master: &Master) -> Result<()> {
        let start = Instant::now();
        loop {
            if master.socket.exists() {
                return Ok(());
            }
            if master.service.check().is_err() {
                return Err(self.unreachable(&master.service.said()));
            }
            if start.elapsed() > self.patience * if self.jump.is_some() { 4 } else { 2 } {
                return Err(self.unreachable("no answer in time"));
            }
            signals::sleep(Duration::from_millis(5))?;
        }
    }

    /// 255 is ssh's own exit code: the connection failed, not the command.
    fn finish(&self, result: Result<Output, Failure>) -> Result<Output> {
        match result {
            Err(failure) if failure.code() == Some(255) => {
                let error = self.unreachable(failure.stderr());
                self.close();
                Err(error)
            }
            Err(failure) if self.relays && failure.is_told() => Err(failure.relay_all()),
            other => other.map_err(|failure| remote_error::explain(failure, &self.user, &self.address)),
        }
    }

    fn unreachable(&self, said: &str) -> Error {
        // What a proxy command was connected to has no name; why that one failed stands before.
        let lines = || said.lines().rev().map(str::trim).filter(|line| !line.is_empty());
        let nameless = ["UNKNOWN port", "kex_exchange_identification:"];
        let told = |line: &&str| self.jump.is_none() || !nameless.iter().any(|words| line.contains(words));
        let named = lines().find(told);
        let reason = named.or_else(|| lines().next()).unwrap_or("ssh gave no reason");
        let (class, hint) = self.judge_connection(said);
        let message = format!("cannot reach {} over ssh: {reason}", self.target());
        said.lines()
            .rev()
            .take(5)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .fold(Error::new(class, message), Error::evidence)
            .hint(hint)
    }

    /// The class of a failed connection: only the operator can fix a refused login; everything else
    /// may pass.
    fn judge_connection(&self, said: &str) -> (Class, String) {
        let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
        let key = self.key.display();
        // ssh names whom it speaks of; where that is the jump host, the advice is about it.
        let speaks_of = |jump: &&Jump| {
            let words = ["Permission denied", "host key for", "key is known for"];
            said.lines().any(|line| line.contains(&jump.host) && words.iter().any(|word| line.contains(word)))
        };
        let jump = self.jump.as_ref().filter(speaks_of);
        let (target, port) = match jump {
            Some(jump) => (format!("{}@{}", jump.user, jump.host), jump.port),
            None => (self.target(), self.port),
        };
        if says(&["REMOTE HOST IDENTIFICATION HAS CHANGED", "Host key verification failed"]) {
            let (known, address) = (self.known_hosts.display(), target.rsplit('@').next().unwrap_or_default());
            let name = self.learnt_as.as_deref().map(|own| jump.map_or(own, |jump| jump.host.as_str()));
            if let Some(name) = name.filter(|_| self.returns && jump.is_none()) {
                let hint = format!(
                    "a machine in the place of {name} is that host once it has its volume: journalctl -u turnup-node (on its console); where it stays another one: turnup provision --reset-host-key {name}"
                );
                return (Class::Transient, hint);
            }
            let hint = match name {
                Some(name) => format!(
                    "look who answers at {address}; when the machine was recreated: turnup provision --reset-host-key {name}"
                ),
                None => {
                    format!("look who answers at {address}; the host keys that this cluster trusts are in {known}")
                }
            };
            return (Class::Precondition, hint);
        }
        if says(&["UNPROTECTED PRIVATE KEY FILE", "are too open"]) {
            return (Class::Precondition, format!("chmod 600 {key}"));
        }
        let through = match (&self.jump, jump) {
            (Some(Jump { user, host, port }), None) => format!(" -o ProxyJump={user}@{host}:{port}"),
            _ => String::new(),
        };
        if says(&["administratively prohibited", "port forwarding is disabled"]) {
            let jump = self.jump.as_ref().map_or("the jump host", |jump| jump.host.as_str());
            let hint =
                format!("let sshd on {jump} pass connections on (AllowTcpForwarding, PermitOpen), or name another one");
            return (Class::Precondition, hint);
        }
        if says(&["Permission denied", "Too many authentication failures"]) {
            return (
                Class::Precondition,
                format!("let the cluster's key in: ssh-copy-id -f -p {port} -i {key}.pub{through} {target}"),
            );
        }
        (Class::Transient, format!("look with: ssh -i {key} -p {port}{through} {target}"))
    }

    /// A path for this process and this host that is short enough for a socket.
    fn socket(&self) -> Result<PathBuf> {
        let mut hash = Sha256::new();
        for part in
            [self.seed.as_os_str(), self.key.as_os_str(), self.target().as_ref(), self.port.to_string().as_ref()]
        {
            hash.update(part.as_encoded_bytes());
            hash.update([0]);
        }
        // Two objects for one host are two connections: the address of the shared slot tells them
        // apart.
        hash.update((Arc::as_ptr(&self.master) as usize).to_le_bytes());
        let name = format!("{}-{}", std::process::id(), &hex::encode(hash.finalize())[..12]);
        Ok(socket::directory(name.len())?.join(name))
    }
}

/// The program and the subcommands of it: "turnup node up", "systemctl restart kubelet.service".
fn short_name<S: AsRef<str>>(argv: &[S]) -> String {
    let word = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || b".-".contains(&byte));
    let program = argv.first().map_or("", AsRef::as_ref).rsplit('/').next().unwrap_or_default();
    let words = argv.iter().skip(1).map(AsRef::as_ref).take_while(|text| !text.starts_with('-') && word(text));
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}

/// ssh splits option values at spaces unless they are quoted.
fn quote_option(path: &Path) -> String {
    format!("\"{}\"", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_asked_only_when_it_may_be() {
        let here = Path::new("/a b/key");
        let ssh = Ssh::new("root", "192.0.2.1", 22, here, here, here);
        let has = |ssh: &Ssh, option: &str| ssh.options(22, "ERROR").iter().any(|word| word == option);
        assert!(has(&ssh, "IdentityAgent=none") && has(&ssh, "IdentitiesOnly=yes"));
        let ssh = ssh.agent(true).connect_timeout(Duration::from_secs(3));
        assert!(!has(&ssh, "IdentityAgent=none") && has(&ssh, "IdentitiesOnly=no") && has(&ssh, "ConnectTimeout=3"));
    }

    #[test]
    fn another_host_key_passes_by_itself_only_where_the_host_comes_back() {
        let here = Path::new("/key");
        let ssh = Ssh::new("root", "192.0.2.1", 22, here, here, here).learnt_as(Some("c-0".into()));
        let said = "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!";
        assert_eq!(ssh.judge_connection(said).0, Class::Precondition);
        let returning = ssh.returns(true);
        let (class, hint) = returning.judge_connection(said);
        assert_eq!(class, Class::Transient);
        assert!(hint.contains("turnup provision --reset-host-key c-0"), "{hint}");
        let behind = returning.jump(Some(Jump { user: "passer".into(), host: "door".into(), port: 22 }));
        let (class, hint) = behind.judge_connection("Host key verification failed.\nhost key for door has changed");
        assert_eq!(class, Class::Precondition, "{hint}");
    }

    #[test]
    fn the_way_through_a_jump_host_is_quoted_for_the_shell_and_for_ssh() {
        let here = Path::new("/a %h b/key");
        let ssh = Ssh::new("root", "192.0.2.1", 22, here, here, here);
        let command = ssh.proxy_command(&Jump { user: "passer".into(), host: "door".into(), port: 2200 });
        assert!(command.starts_with("ssh -Fnone -T -p 2200 -i '/a %%h b/key' -o "), "{command}");
        assert!(command.ends_with(" -W '[%h]:%p' -- passer@door"), "{command}");
        let words = shell_words::split(&command).unwrap_or_default();
        assert!(words.contains(&"UserKnownHostsFile=\"/a %%h b/key\"".to_owned()), "{words:?}");
    }
}
