//! Rows of the fault matrix that only root can make: disks, missing tools, and Terraform for hosts
//! on this machine. No host is made: Terraform's output is the inventory of the simulated hosts.

use serde_json::{Value, json};
use turnup::Class;

use crate::cluster_support::can_make_hosts;
use crate::fault_matrix::Fault;
use crate::simulation::Simulation;

pub(crate) fn faults() -> Vec<Fault> {
    if !can_make_hosts() {
        return Vec::new();
    }
    let mut faults = terraform();
    faults.extend(machine());
    faults
}

/// The Debian release of hosts that are never started.
const SUITE: &str = "bookworm";

/// The local target with a fake terraform. The root of local hosts is an empty directory, and no
/// hosts are started.
fn to_local(simulation: &mut Simulation) {
    simulation.turn = Some(crate::take_turn());
    let suite = format!("phase1.local.root_suite={SUITE}");
    let set = ["phase1.cloud_provider=local", "phase1.local.subnet=10.125.200.0/24", "phase1.num_nodes=1", &suite];
    simulation.ok(&[&["config", "set"][..], &set].concat());
    let cache = turnup::artifacts::Cache::at(&simulation.path("cache"));
    let root = cache.map(|cache| cache.host_root_path(SUITE)).unwrap_or_default();
    drop(fs_err::create_dir_all(root));
    let path = simulation.path("work/phases/provision/phase.toml");
    let text = fs_err::read_to_string(&path).unwrap_or_default();
    let steps: Vec<&str> = text.split("[[step]]").filter(|step| !step.contains("name = \"start\"")).collect();
    drop(fs_err::write(path, steps.join("[[step]]")));
}

fn up(simulation: &Simulation) {
    simulation.ok(&["up"]);
}

fn terraform_fault(name: &'static str, script: Value) -> Fault {
    Fault::new(name)
        .made(to_local)
        .made_more(move |simulation| simulation.script(std::slice::from_ref(&script)))
        .then(up)
}

/// What terraform writes about a problem.
fn diagnostic(summary: &str, detail: &str) -> String {
    let diagnostic = json!({"severity": "error", "summary": summary, "detail": detail});
    format!("{}\n", json!({"type": "diagnostic", "diagnostic": diagnostic}))
}

fn terraform() -> Vec<Fault> {
    let lock = diagnostic(
        "Error acquiring the state lock",
        "Lock Info:\n  Who: ann@elsewhere\n  Operation: OperationTypeApply",
    );
    let forbidden =
        diagnostic("Error creating instance", "googleapi: Error 403: Required 'compute.instances.create' permission");
    let away = "Error: Failed to query available provider packages\ncould not connect to registry.terraform.io: no such host\n";
    vec![
        terraform_fault("terraform is killed", json!({"tool": "terraform", "when": ["apply"], "signal": "KILL"}))
            .fails(Class::Permanent, &["provision/apply failed", "SIGKILL", "dmesg"]),
        terraform_fault(
            "another user holds the lock of Terraform's state",
            json!({"tool": "terraform", "when": ["plan"], "exit": 1, "stdout": lock}),
        )
        .fails(Class::Locked, &["provision/apply failed", "locked by ann@elsewhere", "wait for them"]),
        terraform_fault(
            "the cloud does not permit it",
            json!({"tool": "terraform", "when": ["apply"], "exit": 1, "stdout": forbidden}),
        )
        .fails(
            Class::Precondition,
            &["provision/apply failed", "Error 403", "lacks the permission compute.instances.create"],
        ),
        terraform_fault(
            "Terraform's registry is away",
            json!({"tool": "terraform", "when": ["init"], "exit": 1, "stderr": away}),
        )
        .fails(Class::Transient, &["provision/apply failed", "could not connect to registry.terraform.io"]),
        terraform_fault(
            "Terraform gives no inventory",
            json!({"tool": "terraform", "when": ["output"], "exit": 0, "stdout": "{}"}),
        )
        .fails(Class::Bug, &["provision/inventory failed", "no output named inventory"]),
    ]
}

/// The program in a namespace of its own, in which this was done to its mounts.
fn mounted(script: &'static str) -> impl Fn(&mut Simulation) + Send + Sync + 'static {
    move |simulation| {
        drop(fs_err::create_dir_all(simulation.path("work/.turnup")));
        let script = format!("{script} && exec \"$@\"");
        simulation.wrapper = ["unshare", "--mount", "sh", "-c", &script, "sh"].map(str::to_owned).into();
    }
}

fn unmounted(simulation: &mut Simulation) {
    simulation.wrapper.clear();
}

fn machine() -> Vec<Fault> {
    vec![
        Fault::new("the disk of the cluster's directory is full")
            .made(mounted("mount -t tmpfs -o size=8k,mode=700 none .turnup"))
            .healed(unmounted)
            .fails(Class::Precondition, &["no space left", "free space"]),
        Fault::new("the cluster's directory is on a read-only file system")
            .when_up()
            .made(mounted("mount --bind .turnup .turnup && mount -o remount,bind,ro .turnup"))
            .healed(unmounted)
            .fails(Class::Precondition, &["read-only", "findmnt"]),
        Fault::new("the cache is on a full disk")
            .made(mounted("mkdir -p ../cache && mount -t tmpfs -o size=16k none ../cache"))
            .healed(unmounted)
            .fails(Class::Precondition, &["disk of the cache", "free space"]),
        Fault::new("the user may not read the directory")
            .made(|simulation| {
                let words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
                simulation.wrapper = words.map(str::to_owned).into();
            })
            .healed(unmounted)
            .fails(Class::Precondition, &["ermission denied"]),
        Fault::new("ssh is not installed")
            .made(mounted(
                "for ssh in /bin/ssh /usr/bin/ssh ../bin/ssh; do test ! -e $ssh || mount --bind /dev/null $ssh; done",
            ))
            .healed(unmounted)
            .fails(Class::Precondition, &["ssh", "install"]),
        Fault::new("the temporary directory is on a full disk")
            .when_up()
            .made(|simulation| drop(fs_err::remove_file(simulation.state("outputs/facts/h1.json"))))
            .made_more(mounted("mount -t tmpfs -o size=4k none ../tmp && head -c 4096 /dev/zero >../tmp/filler"))
            .healed(unmounted)
            .recovers(&[]),
    ]
}
