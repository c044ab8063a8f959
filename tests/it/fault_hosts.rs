//! Rows of the fault matrix: hosts and the way to them.

use serde_json::{Value, json};
use turnup::Class;

use crate::fault_matrix::Fault;
use crate::simulation::Simulation;

/// The worker, as ssh is told about it.
const WORKER: &str = "10.125.0.2 ";

/// What ssh to the worker says when there is no connection.
fn connect(said: &str) -> Vec<Value> {
    vec![json!({"tool": "ssh", "when": [WORKER, "connect"], "exit": 255, "stderr": format!("{said}\n")})]
}

/// What a command on the worker ends with.
fn command(word: &str, code: u8, said: &str) -> Vec<Value> {
    vec![json!({"tool": "ssh", "when": [WORKER, word], "exit": code, "stderr": format!("{said}\n")})]
}

pub(crate) fn faults() -> Vec<Fault> {
    let mut faults = connections();
    faults.extend(looks());
    faults.extend(commands());
    faults.extend(nodes());
    faults
}

fn connections() -> Vec<Fault> {
    vec![
        Fault::new("the host does not accept our key")
            .script(connect("root@10.125.0.2: Permission denied (publickey,password)."))
            .fails(Class::Precondition, &["gather-facts failed on h1", "Permission denied", "ssh-copy-id", "turnup up"]),
        Fault::new("sshd has seen too many keys")
            .script(connect("Received disconnect from 10.125.0.2 port 22:2: Too many authentication failures"))
            .fails(Class::Precondition, &["gather-facts failed on h1", "Too many authentication failures"]),
        Fault::new("our key's file is open to others")
            .script(connect("Permissions 0644 for 'ssh/id_ed25519' are too open.\nroot@10.125.0.2: Permission denied (publickey)."))
            .fails(Class::Precondition, &["gather-facts failed on h1", "too open", "chmod 600"]),
        Fault::new("the port of SSH is closed")
            .script(connect("ssh: connect to host 10.125.0.2 port 22: Connection refused"))
            .fails(Class::Transient, &["gather-facts failed on h1", "Connection refused", "gave up after"]),
        Fault::new("the host is away")
            .script(connect("ssh: connect to host 10.125.0.2 port 22: No route to host"))
            .fails(Class::Transient, &["gather-facts failed on h1", "No route to host"]),
        Fault::new("the host comes back after a moment")
            .script(vec![json!({"tool": "ssh", "when": [WORKER, "connect"], "times": 1, "exit": 255,
                    "stderr": "ssh: connect to host 10.125.0.2 port 22: Connection timed out\n"})])
            .recovers(&["Connection timed out"]),
        Fault::new("a name is not resolved")
            .script(connect("ssh: Could not resolve hostname h1: Temporary failure in name resolution"))
            .fails(Class::Transient, &["gather-facts failed on h1", "Temporary failure in name resolution"]),
        Fault::new("another host answers: its key has changed")
            .script(connect("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed."))
            .fails(Class::Precondition, &["gather-facts failed on h1", "known_hosts"]),
        Fault::new("the host's key is not the one of the inventory")
            .script(connect("No ED25519 host key is known for 10.125.0.2 and you have requested strict checking.\nHost key verification failed."))
            .fails(Class::Precondition, &["gather-facts failed on h1", "known_hosts"]),
        Fault::new("the firewall would lock turnup out")
            .made(|simulation| {
                drop(fs_err::create_dir_all(simulation.world("hosts/10.125.0.2")));
                let facts = simulation.world("hosts/10.125.0.2/facts.json");
                drop(fs_err::write(facts, r#"{"client": "10.9.8.7"}"#));
                simulation.ok(&["config", "set", "phase2.host.firewall_ssh_networks=10.8.0.0/16"]);
            })
            .healed(|simulation| drop(simulation.ok(&["config", "unset", "phase2.host.firewall_ssh_networks"])))
            .fails(Class::Precondition, &["gather-facts failed on h1", "would lock turnup out of h1", "10.9.8.7/32", "turnup config set"]),
        Fault::new("the connection breaks in the middle of a copy")
            .script(vec![json!({"tool": "ssh", "when": [WORKER, "receive"], "times": 1, "read": 10, "exit": 255,
                    "stderr": "client_loop: send disconnect: Broken pipe\n"})])
            .recovers(&["Broken pipe"]),
        Fault::new("only a part of a copy arrives, again and again")
            .script(vec![json!({"tool": "ssh", "when": [WORKER, "receive"], "read": 10, "exit": 75,
                    "stderr": "the transfer of /opt/turnup/bin/turnup broke off\n"})])
            .fails(Class::Transient, &["gather-facts failed on h1", "broke off"]),
        Fault::new("the host is too slow")
            .script(vec![json!({"tool": "ssh", "when": [WORKER, "node facts"], "sleep_ms": 60_000})])
            .fails(Class::Transient, &["gather-facts failed on h1", "did not end within"]),
    ]
}

/// What is found before anything is changed on any host.
fn looks() -> Vec<Fault> {
    let look = |change: Value| {
        move |simulation: &mut Simulation| write(simulation, "hosts/10.125.0.2/look.json", &change.to_string())
    };
    let heal = |simulation: &mut Simulation| write(simulation, "hosts/10.125.0.2/look.json", "{}");
    vec![
        Fault::new("the host is away before anything is started")
            .script(vec![json!({"tool": "ssh", "when": [WORKER, "look"], "exit": 255,
                    "stderr": "ssh: connect to host 10.125.0.2 port 22: No route to host\n"})])
            .fails(
                Class::Transient,
                &["provision/hosts failed", "1 of 2 hosts", "h1: cannot reach", "No route to host"],
            ),
        Fault::new("the host's clock stands still").made(look(json!({"clock_ahead": -86_450.0}))).healed(heal).fails(
            Class::Precondition,
            &["provision/hosts failed", "h1: its clock is 864", "s behind this machine's", "timedatectl"],
        ),
        Fault::new("two hosts are clones of one disk")
            .made(look(json!({"machine-id": format!("{:0>32}", "1012501")})))
            .healed(heal)
            .fails(
                Class::Precondition,
                &["provision/hosts failed", "h1: it has the machine-id of h0", "systemd-machine-id-setup"],
            ),
        Fault::new("a port of the node is in use")
            .made(look(json!({"listens": "LISTEN 0 5 0.0.0.0:10250 0.0.0.0:* users:((\"k3s\",pid=7,fd=3))"})))
            .healed(heal)
            .fails(Class::Precondition, &["provision/hosts failed", "h1: port 10250 is in use by k3s"]),
    ]
}

fn commands() -> Vec<Fault> {
    vec![
        Fault::new("sudo asks for a password")
            .made(|simulation| {
                log_in_as(simulation, "ops");
                simulation.script(&[json!({"tool": "ssh", "when": [WORKER], "unless": "connect", "exit": 1,
                    "stderr": "sudo: a password is required\n"})]);
            })
            .fails(
                Class::Precondition,
                &["provision/hosts failed", "1 of 2 hosts", "sudo: a password is required", "sudoers"],
            ),
        Fault::new("the host has no sudo")
            .made(|simulation| {
                log_in_as(simulation, "ops");
                simulation.script(&[json!({"tool": "ssh", "when": [WORKER], "unless": "connect", "exit": 127,
                    "stderr": "bash: line 1: sudo: command not found\n"})]);
            })
            .fails(Class::Precondition, &["provision/hosts failed", "1 of 2 hosts", "sudo: command not found"]),
        Fault::new("the host's disk is full when turnup is copied")
            .script(command("receive", 1, "cat: write error: No space left on device"))
            .fails(Class::Precondition, &["gather-facts failed on h1", "No space left on device", "df -h"]),
        Fault::new("the host's disk is full when an artifact is copied")
            .script(vec![json!({"tool": "ssh", "when": [WORKER, "receive", "blobs"], "exit": 1,
                    "stderr": "cat: write error: No space left on device\n"})])
            .fails(Class::Precondition, &["join failed on h1", "No space left on device", "df -h"]),
        Fault::new("the host's file system is read-only")
            .script(command("receive", 1, "mkdir: cannot create directory '/opt/turnup': Read-only file system"))
            .fails(Class::Precondition, &["gather-facts failed on h1", "Read-only file system"]),
        Fault::new("the user may not write on the host")
            .script(command("receive", 1, "mkdir: cannot create directory '/opt/turnup': Permission denied"))
            .fails(Class::Precondition, &["gather-facts failed on h1", "Permission denied"]),
        Fault::new("/opt on the host is mounted noexec")
            .script(command("node facts", 126, "bash: line 1: /opt/turnup/bin/turnup: Permission denied"))
            .fails(Class::Precondition, &["gather-facts failed on h1", "Permission denied"]),
        Fault::new("the host has another architecture")
            .script(command(
                "node facts",
                126,
                "bash: line 1: /opt/turnup/bin/turnup: cannot execute binary file: Exec format error",
            ))
            .fails(Class::Precondition, &["gather-facts failed on h1", "Exec format error", "architecture"]),
        Fault::new("the host's answer is garbage")
            .script(vec![
                json!({"tool": "ssh", "when": [WORKER, "node facts"], "exit": 0, "stdout": "Welcome to h1!\n"}),
            ])
            .fails(Class::Permanent, &["gather-facts failed on h1", "does not tell its facts", "Welcome to h1!"]),
        Fault::new("an old turnup is on the host")
            .when_up()
            .made(|simulation| write(simulation, "hosts/10.125.0.2/turnup", "0123"))
            .recovers(&[]),
        Fault::new("a host was reinstalled outside of turnup")
            .when_up()
            .made(|simulation| drop(fs_err::remove_dir_all(simulation.world("hosts/10.125.0.2"))))
            .recovers(&["bootstrap/join@h1 begins"]),
    ]
}

fn nodes() -> Vec<Fault> {
    vec![
        Fault::new("a port of the node is in use")
            .script(command("node up", 4, "error: port 10250 of this host is in use, and the node needs it\n  | LISTEN 0 5 0.0.0.0:10250\nnext: stop that process on the host"))
            .fails(Class::Precondition, &["join failed on h1", "port 10250", "LISTEN", "stop that process on the host; then: turnup up"]),
        Fault::new("containerd does not start")
            .script(command("node up", 1, "error: `systemctl` failed with exit code 1\n  | $ systemctl start containerd.service\n  | containerd: failed to mount overlay: no such device"))
            .fails(Class::Permanent, &["join failed on h1", "systemctl", "failed to mount overlay"]),
        Fault::new("the host has no cgroups, so kubelet does not start")
            .script(command("node up", 1, "error: `systemctl` failed with exit code 1\n  | $ systemctl start kubelet.service\n  | failed to run Kubelet: mountpoint for cgroup not found"))
            .fails(Class::Permanent, &["join failed on h1", "mountpoint for cgroup not found"]),
        Fault::new("an image is not imported")
            .script(command("node up", 1, "error: `ctr` failed with exit code 1\n  | $ ctr images import --local\n  | ctr: failed to extract layer: unexpected EOF"))
            .fails(Class::Permanent, &["join failed on h1", "failed to extract layer"]),
        Fault::new("the disk fills while the node is made")
            .script(command("node up", 4, "error: /opt/turnup/bin/kubelet: No space left on device (os error 28)\nnext: free disk space there, then run the same command again"))
            .fails(Class::Precondition, &["join failed on h1", "No space left on device", "free disk space"]),
        Fault::new("etcd does not become healthy")
            .script(vec![json!({"tool": "ssh", "when": ["10.125.0.1 ", "node up"], "exit": 5, "stderr":
                    "error: health check did not pass within 180 s: etcd healthy\n  | etcd: failed to purge wal file: input/output error\n"})])
            .fails(Class::Transient, &["control-plane failed on h0", "etcd", "input/output error"]),
        Fault::new("the kernel of the host lacks a module")
            .script(command("node up", 4, "error: the kernel module nf_tables cannot be loaded\nnext: install a kernel that has it"))
            .fails(Class::Precondition, &["join failed on h1", "nf_tables"]),
        Fault::new("the join token was taken back or ran out, so kubelet asks for nothing")
            .script(vec![json!({"tool": "ssh", "when": [WORKER, "node up"], "exit": 0, "stdout": "{\"done\":0}\n"})])
            .fails(Class::Transient, &["join failed on h1", "the kubelet of h1 did not ask for its certificate"]),
        Fault::new("nothing signs what was approved, so kubelet has no certificate")
            .script(command("finish-join", 5, "error: the request of this host's kubelet for its certificate is not approved"))
            .fails(Class::Transient, &["join failed on h1", "is not approved"]),
        Fault::new("an attacker has the join token and asks to be another node")
            .made(|simulation| write(simulation, "hosts/10.125.0.2/asks-as", "h0"))
            .healed(|simulation| drop(fs_err::remove_file(simulation.world("hosts/10.125.0.2/asks-as"))))
            .fails(
                Class::Permanent,
                &["join failed on h1", "the token of h1 was used for another request", "it asks to be the node h0"],
            ),
        Fault::new("a node is not Ready")
            .when_up()
            .made(|simulation| set_ready(simulation, "False"))
            .healed(|simulation| set_ready(simulation, "True"))
            .fails(Class::Transient, &["addons/wait failed", "node h1 is not Ready"]),
    ]
}

fn write(simulation: &Simulation, file: &str, text: &str) {
    let path = simulation.world(file);
    drop(path.parent().map(fs_err::create_dir_all));
    drop(fs_err::write(path, text));
}

fn log_in_as(simulation: &Simulation, user: &str) {
    let path = simulation.path("work/provision.json");
    let text = fs_err::read_to_string(&path).unwrap_or_default();
    drop(fs_err::write(path, text.replace("\"root\"", &format!("\"{user}\""))));
}

fn set_ready(simulation: &Simulation, status: &str) {
    let path = simulation.world("api/nodes/h1.json");
    let text = fs_err::read_to_string(&path).unwrap_or_default();
    let mut node: Value = serde_json::from_str(&text).unwrap_or_default();
    node["status"]["conditions"][3]["status"] = status.into();
    drop(fs_err::write(path, node.to_string()));
}
