//! A host's life: made, started, stopped, deleted. Every function may be repeated after a crash at
//! any instant of an earlier call.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::exec::{Run, detach::detach, signals};
use crate::failpoint;
use crate::input;

use super::process::{find_leader, stop};
use super::registry::LocalHost;
use super::spec::{BALANCER, BLOBS, HostSpec, NetworkSpec};
use super::{MachineStatus, cgroup, ignition, limits, network, registry, storage, volume};

/// How long systemd inside may take to reach sshd.
const BOOT: Duration = Duration::from_mins(1);
/// How long an orderly power-off may take before the machine is killed.
const POWER_OFF: Duration = Duration::from_secs(20);
/// How often a machine is made that does not start, and when again.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(5);
/// The unit that makes the container fit for a kubelet.
const UNIT: &str = "turnup-local.service";
/// The unit of a load balancer, and the program that it runs: on PATH, where a host with user data
/// finds it, too.
const BALANCER_UNIT: &str = "turnup-balancer.service";
const PROGRAM: &str = "usr/local/bin/turnup";
/// What of sshd's own configuration Debian's includes first, and so counts.
const SSHD: &str = "etc/ssh/sshd_config.d/turnup.conf";

/// What no host of a cluster needs, and what would change this machine itself: its modules, its
/// clock, its hardware.
const DROPPED: &str = "CAP_SYS_MODULE,CAP_SYS_RAWIO,CAP_SYS_TIME,CAP_MAC_ADMIN,CAP_MAC_OVERRIDE,CAP_SYS_PACCT,CAP_WAKE_ALARM,CAP_BLOCK_SUSPEND";
/// Calls that another right would still allow: another kernel, modules, swap.
const PROHIBITED: &str = "~kexec_load kexec_file_load @module @swap";

/// Files of every local host, from the templates.
pub struct MachineIdentity {
    /// The unit that makes the container fit for a kubelet.
    pub unit: Vec<u8>,
    /// The configuration of sshd.
    pub sshd: Vec<u8>,
    /// The unit of a load balancer.
    pub balancer: Vec<u8>,
    /// turnup itself, which a load balancer runs, and a host that boots with user data.
    pub program: PathBuf,
}

/// Makes the host and starts it, or completes and starts what an earlier call left.
pub fn create_host(spec: &HostSpec, identity: &MachineIdentity) -> Result<()> {
    let _inside = failpoint::within(format_args!("create host {}", spec.name));
    failpoint::around(format_args!("record"), || registry::record(spec))?;
    storage::mount_root(spec)?;
    if !storage::is_complete(spec) {
        if spec.is_of_group {
            storage::name_machine(spec)?;
        }
        write_identity(spec, identity)?;
        storage::mark_complete(spec)?;
    }
    start_recorded(spec)
}

/// Starts a host whose files are there, and waits until its sshd answers. Does nothing when it
/// runs.
pub fn start_host(spec: &HostSpec) -> Result<()> {
    if !storage::is_complete(spec) {
        return Err(Error::permanent(format!("host {} does not exist", spec.name)).hint("turnup provision"));
    }
    // `/run` is empty after a restart of this machine.
    failpoint::around(format_args!("record"), || registry::record(spec))?;
    start_recorded(spec)
}

fn start_recorded(spec: &HostSpec) -> Result<()> {
    let _inside = failpoint::within(format_args!("start host {}", spec.name));
    network::create_network(&spec.network)?;
    if find_leader(&spec.machine)?.is_none() {
        storage::mount_root(spec)?;
        network::attach(spec)?;
        boot(spec)?;
    }
    failpoint::around(format_args!("wait for sshd"), || wait_for_sshd(spec))
}

/// Gives a host that runs the limits of its description, and takes away those that it says nothing
/// of. One that does not run gets them when it starts.
pub fn limit_host(spec: &HostSpec) -> Result<()> {
    let _inside = failpoint::within(format_args!("limit host {}", spec.name));
    if find_leader(&spec.machine)?.is_none() {
        return Ok(());
    }
    if has_systemd() {
        let unit = format!("{}.service", spec.machine);
        let run = Run::new("systemctl").args(["set-property", "--runtime", &unit]).args(cgroup::properties(spec));
        return run.dir("/").succeed().map(drop);
    }
    cgroup::limit(spec)
}

/// Whether systemd is this machine's init, and so makes cgroups.
pub(super) fn has_systemd() -> bool {
    Path::new("/run/systemd/system").exists()
}

/// What is there of the host.
pub fn status_of(spec: &HostSpec) -> Result<MachineStatus> {
    Ok(match (storage::is_complete(spec), find_leader(&spec.machine)?) {
        (true, Some(_)) => MachineStatus::Running,
        (true, None) => MachineStatus::Stopped,
        (false, _) => MachineStatus::Absent,
    })
}

/// Whether the host's systemd runs, whatever is left of its files.
pub fn is_running(spec: &HostSpec) -> Result<bool> {
    Ok(find_leader(&spec.machine)?.is_some())
}

/// Powers the host off and removes everything of it: process, namespace, interface, mount, cgroup,
/// files. Its volume stays, and is no host's then.
pub fn delete_host(spec: &HostSpec) -> Result<()> {
    let _inside = failpoint::within(format_args!("delete host {}", spec.name));
    delete_machine(spec)?;
    // The last host of this machine takes the raised limit with it.
    if registry::is_empty()? { limits::restore() } else { Ok(()) }
}

fn delete_machine(spec: &HostSpec) -> Result<()> {
    // nspawn powers the container off on SIGTERM (systemd-nspawn(1), `--kill-signal`).
    let find = || find_leader(&spec.machine);
    failpoint::around(format_args!("stop"), || stop(find, POWER_OFF, &format!("host {}", spec.name)))?;
    network::detach(spec)?;
    cgroup::remove(&spec.machine)?;
    storage::remove(spec)?;
    spec.volume.iter().try_for_each(volume::detach_device)?;
    failpoint::around(format_args!("forget"), || registry::forget(spec))
}

/// Makes another machine in the place of one that has died, from nothing but its description, as
/// the autoscaler of a cloud does. Does nothing where the host runs, or was deleted on purpose.
pub fn replace_host(spec: &HostSpec, identity: &MachineIdentity) -> Result<()> {
    let _inside = failpoint::within(format_args!("replace host {}", spec.name));
    if status_of(spec)? != MachineStatus::Stopped {
        return Ok(());
    }
    delete_machine(spec)?;
    let mut tries = 1..=TRIES;
    loop {
        match create_host(spec, identity) {
            Err(error) if error.is_passing() && tries.next() < Some(TRIES) => signals::sleep(PAUSE)?,
            done => return done,
        }
    }
}

/// The same for hosts whose cluster's directory is gone, and for the bridges that no other host
/// uses then. Nothing can have their turn: a description that Terraform could name is gone as well.
pub fn delete_orphans(orphans: &[LocalHost]) -> Result<()> {
    for orphan in orphans {
        delete_host(&orphan.spec)?;
    }
    let used: BTreeSet<String> = registry::list_hosts()?.into_iter().map(|host| host.spec.network.bridge).collect();
    let networks: BTreeMap<&str, &NetworkSpec> =
        orphans.iter().map(|orphan| (orphan.spec.network.bridge.as_str(), &orphan.spec.network)).collect();
    for network in networks.into_values().filter(|network| !used.contains(&network.bridge)) {
        network::delete_network(network)?;
    }
    Ok(())
}

/// The host's name, keys and name resolution, as an installer would have written them.
fn write_identity(spec: &HostSpec, identity: &MachineIdentity) -> Result<()> {
    let root = storage::root(spec);
    let point = |when: &str| failpoint::pass(format_args!("identity: {when}"));
    point("before");
    let ssh = root.join("root/.ssh");
    fs_err::create_dir_all(&ssh)?;
    fs_err::set_permissions(&ssh, PermissionsExt::from_mode(0o700))?;
    fs_err::copy(&spec.authorized_keys, ssh.join("authorized_keys"))?;
    point("user's key");
    let host_key = root.join("etc/ssh/ssh_host_ed25519_key");
    fs_err::copy(&spec.host_key, &host_key)?;
    fs_err::set_permissions(&host_key, PermissionsExt::from_mode(0o600))?;
    fs_err::write(root.join(SSHD), &identity.sshd)?;
    point("sshd");
    let name = storage::machine_name(spec)?;
    fs_err::write(root.join("etc/hostname"), format!("{name}\n"))?;
    fs_err::write(root.join("etc/hosts"), format!("127.0.0.1 localhost\n{} {name}\n", spec.address))?;
    // Nothing listens there, so a query fails at once in place of waiting for a server that no
    // packet reaches.
    fs_err::write(root.join("etc/resolv.conf"), format!("nameserver {}\n", spec.network.gateway))?;
    point("names");
    enable(&root, UNIT, "sysinit", &identity.unit)?;
    point("unit");
    if spec.balancer.is_some() {
        copy_program(&root.join(PROGRAM), identity)?;
        enable(&root, BALANCER_UNIT, "multi-user", &identity.balancer)?;
        point("balancer");
    }
    if let Some(file) = &spec.user_data {
        let text = Zeroizing::new(input::read_text(file, input::DOCUMENT)?);
        // As on an image that has turnup already: the root has nothing to fetch it with.
        copy_program(&root.join(PROGRAM), identity)?;
        for unit in ignition::write_files(&root, &text)? {
            enable(&root, &unit.name, "multi-user", unit.contents.as_bytes())?;
        }
        point("user data");
    }
    point("after");
    Ok(())
}

/// A copy: the host starts after this program was replaced, too.
fn copy_program(place: &Path, identity: &MachineIdentity) -> Result<()> {
    if let Some(dir) = place.parent() {
        fs_err::create_dir_all(dir)?;
    }
    fs_err::copy(&identity.program, place)?;
    fs_err::set_permissions(place, PermissionsExt::from_mode(0o755))?;
    Ok(())
}

/// Writes a unit that starts with this target.
fn enable(root: &Path, unit: &str, target: &str, text: &[u8]) -> Result<()> {
    let units = root.join("etc/systemd/system");
    fs_err::write(units.join(unit), text)?;
    let wants = units.join(format!("{target}.target.wants"));
    fs_err::create_dir_all(&wants)?;
    let link = wants.join(unit);
    if !link.is_symlink() {
        symlink(format!("../{unit}"), link)?;
    }
    Ok(())
}

fn boot(spec: &HostSpec) -> Result<()> {
    let log = spec.dir.join("console.log");
    // The host may change what belongs to its network namespace; all else below /proc/sys and /sys
    // is the machine's.
    let env = [("SYSTEMD_NSPAWN_API_VFS_WRITABLE", "network")];
    let args = nspawn_args(spec)?;
    if has_systemd() {
        // A unit of its own: systemd makes the cgroup, and the end of a login session does not end
        // the host.
        let mut words: Vec<OsString> = ["--quiet", "--collect", "--slice=machine.slice"].map(Into::into).into();
        words.push(format!("--unit={}", spec.machine).into());
        for property in ["Delegate=yes", "KillMode=mixed", "TasksMax=infinity", "Type=exec"] {
            words.push(format!("--property={property}").into());
        }
        if spec.memory.is_some() || spec.cpu_millis.is_some() {
            words.extend(cgroup::properties(spec).iter().map(|property| format!("--property={property}").into()));
        }
        words.push(format!("--property=StandardOutput=append:{}", log.display()).into());
        words.push(format!("--setenv={}={}", env[0].0, env[0].1).into());
        words.push("systemd-nspawn".into());
        words.extend(args);
        return detach("systemd-run", &words, &[], &log);
    }
    // What a killed nspawn left must not share the root with the new one.
    cgroup::remove(&spec.machine)?;
    cgroup::enter(&spec.machine)?;
    cgroup::limit(spec)?;
    detach("systemd-nspawn", &args, &env, &log)
}

fn nspawn_args(spec: &HostSpec) -> Result<Vec<OsString>> {
    let mut args: Vec<String> = vec![
        "--quiet".into(),
        format!("--directory={}", storage::root(spec).display()),
        format!("--machine={}", spec.machine),
        format!("--hostname={}", storage::machine_name(spec)?),
        format!("--network-namespace-path={}", network::namespace(&spec.machine).display()),
        "--register=no".into(),
        "--keep-unit".into(),
        "--resolv-conf=off".into(),
        "--timezone=off".into(),
        // kubelet, runc and CNI plugins need most of what root may.
        "--capability=all".into(),
        format!("--drop-capability={DROPPED}"),
        "--system-call-filter=@known".into(),
        format!("--system-call-filter={PROHIBITED}"),
        "--console=read-only".into(),
        // kubelet reads the kernel's messages to find processes that ran out of memory.
        "--bind=/dev/kmsg".into(),
        format!("--bind-ro={}:{BLOBS}", spec.blobs.display()),
    ];
    args.extend(storage::binds(spec));
    args.extend(spec.balancer.iter().map(|dir| format!("--bind-ro={}:{BALANCER}", dir.display())));
    args.push("--boot".into());
    Ok(args.into_iter().map(Into::into).collect())
}

fn wait_for_sshd(spec: &HostSpec) -> Result<()> {
    let address = SocketAddr::from((spec.address, 22));
    let since = Instant::now();
    while TcpStream::connect_timeout(&address, Duration::from_millis(500)).is_err() {
        if find_leader(&spec.machine)?.is_none() && since.elapsed() > Duration::from_secs(2) {
            return Err(with_console(spec, Error::permanent(format!("host {} ended while it started", spec.name))));
        }
        if since.elapsed() > BOOT {
            let message = format!("host {} does not answer at {address} after {} s", spec.name, BOOT.as_secs());
            return Err(with_console(spec, Error::transient(message)));
        }
        signals::sleep(Duration::from_millis(50))?;
    }
    Ok(())
}

fn with_console(spec: &HostSpec, error: Error) -> Error {
    let log = spec.dir.join("console.log");
    let text = fs_err::read(&log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines.iter().rev().take(8).rev();
    tail.fold(error, |error, line| error.evidence(line.trim_end())).hint(format!("less {}", log.display()))
}
