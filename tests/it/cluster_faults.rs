//! What goes wrong on real machines: each ends with a clear message, the exit code of its class and
//! the next command; nothing is lost and no process is left behind (the support looks for orphans
//! after every command).
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "the test acts as the user of the machine")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process, kill_process_group};
use serde_json::Value;
use turnup::artifacts::Digest;

use crate::cluster_support::{Done, Running, Site, can_make_hosts, sh};

/// Below the timeout of the step under test, and enough for a slow machine.
const SOON: Duration = Duration::from_mins(10);

/// A terraform that says how it was called and which signals it got; what it does in `apply` is the
/// test's.
fn fake_terraform(site: &mut Site, name: &str, apply: &str) {
    let notes = site.dir.join("notes");
    let bin = site.dir.join("bin");
    fs_err::create_dir_all(&notes).unwrap();
    fs_err::create_dir_all(&bin).unwrap();
    fs_err::write(bin.join(name), terraform_script(apply)).unwrap();
    fs_err::set_permissions(bin.join(name), PermissionsExt::from_mode(0o755)).unwrap();
    site.env.insert("TF_NOTES".into(), notes.display().to_string());
    site.fakes = vec![bin];
}

fn terraform_script(apply: &str) -> String {
    format!(
        r#"#!/bin/sh
trap 'echo INT >>"$TF_NOTES/signals"' INT
trap 'echo TERM >>"$TF_NOTES/signals"' TERM
test "$1" = version || echo "$1" >>"$TF_NOTES/calls"
if [ "$1" = version ]; then
    echo '{{"terraform_version": "1.11.4"}}'
fi
if [ "$1" = plan ]; then
    echo '{{"type":"planned_change","change":{{"resource":{{"addr":"terraform_data.fake"}},"action":"create"}}}}'
fi
if [ "$1" = show ]; then
    echo '{{"resource_changes":[{{"address":"terraform_data.fake","change":{{"actions":["create"]}}}}]}}'
fi
if [ "$1" = apply ]; then
    echo '{{"type":"apply_start","hook":{{"resource":{{"addr":"terraform_data.fake"}},"action":"create"}}}}'
    {apply}
fi
"#
    )
}

/// Works until it gets a signal, then takes a moment to write its state, as terraform does.
const SLOW: &str = r#"while ! test -s "$TF_NOTES/signals"; do sleep 0.05; done
    sleep 1; echo saved >"$TF_NOTES/saved"; exit 1"#;
const FAILS: &str = r#"echo '{"type":"diagnostic","diagnostic":{"severity":"error","summary":"No more today","detail":"Come back tomorrow."}}'; exit 1"#;

fn notes(site: &Site, name: &str) -> Vec<String> {
    let text = fs_err::read_to_string(site.dir.join("notes").join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Starts a run and waits until the fake works on its `apply`.
fn apply_begins(site: &Site, args: &[&str]) -> Running {
    let before = notes(site, "calls").iter().filter(|call| *call == "apply").count();
    let running = site.start(args);
    let since = Instant::now();
    while notes(site, "calls").iter().filter(|call| *call == "apply").count() == before {
        assert!(since.elapsed() < SOON, "terraform apply never began: {}", running.said());
        std::thread::sleep(Duration::from_millis(10));
    }
    running
}

/// A site with a configuration and a warm cache: the faults do not concern these.
fn site(name: &str, subnet: &str, workers: u32) -> Site {
    let site = Site::new(name);
    site.configure(subnet, workers);
    site.warm_cache();
    site
}

#[test]
fn a_typo_in_the_configuration() {
    let site = Site::new("typo");
    let done = site.fails(3, &["up"]);
    insta::assert_snapshot!("no_configuration", site.error_of(&done));
    site.configure("10.121.4.0/24", 1);
    let good = fs_err::read_to_string(site.dir.join(".config.json")).unwrap();
    let typo = good.replace("\"num_nodes\"", "\"num_node\"");
    fs_err::write(site.dir.join(".config.json"), &typo).unwrap();
    for command in ["up", "plan", "status"] {
        let done = site.fails(3, &[command]);
        insta::assert_snapshot!("typo", site.error_of(&done));
    }
    let done = site.fails(3, &["down", "--yes"]);
    insta::assert_snapshot!("typo", site.error_of(&done));
    assert_eq!(
        fs_err::read_to_string(site.dir.join(".config.json")).unwrap(),
        typo,
        "the user's file is never changed"
    );
    assert!(!site.state().exists(), "nothing was started");
}

/// terraform and tofu are hidden from this one process, wherever on PATH they are.
fn hide_terraform(site: &mut Site) {
    let paths = ["terraform", "tofu"].into_iter().flat_map(which::which_all).flatten();
    let hide: Vec<String> = paths.map(|path| format!("mount --bind /dev/null '{}'\n", path.display())).collect();
    let script = hide.concat() + "exec \"$@\"";
    site.wrapper = ["unshare", "--mount", "sh", "-c", &script, "sh"].map(str::to_owned).into();
}

/// A cache that has the root of local hosts and no artifact.
fn empty_cache(site: &mut Site) {
    let root = site.ok(&["artifacts", "rootfs"]).out;
    let roots = Path::new(root.trim()).parent().unwrap().to_owned();
    let cache = site.dir.join("cache");
    fs_err::create_dir_all(&cache).unwrap();
    fs_err::os::unix::fs::symlink(roots, cache.join("roots")).unwrap();
    site.env.insert("TURNUP_CACHE".into(), cache.display().to_string());
}

#[test]
fn without_terraform_the_artifact_is_taken() {
    if !can_make_hosts() {
        return;
    }
    let mut site = site("tofu", "10.121.5.0/24", 0);
    hide_terraform(&mut site);
    empty_cache(&mut site);
    fs_err::create_dir_all(site.dir.join("mirror/sha256")).unwrap();
    let mirror = format!("phase2.artifacts.mirror={}", site.dir.join("mirror").display());
    site.ok(&["config", "set", &mirror, "phase2.artifacts.source=n"]);
    // The mirror does not have it, and building it is disabled.
    let done = site.run(&["up"]);
    insta::assert_snapshot!("no_terraform_no_artifact", format!("{:?}\n{}", done.code, site.error_of(&done)));
    // The mirror has what the lock file names: a tofu that only says that it was called.
    fake_terraform(&mut site, "no-such-name", "");
    let tofu = terraform_script(FAILS);
    let digest = Digest::of(tofu.as_bytes()).to_string();
    fs_err::write(site.dir.join("mirror/sha256").join(&digest), &tofu).unwrap();
    pin_tofu(&site, &digest);
    let done = site.fails(1, &["up"]);
    insta::assert_snapshot!("tofu_from_the_artifacts", site.error_of(&done));
    assert_eq!(notes(&site, "calls"), ["init", "state", "plan", "apply"]);
}

/// The lock file of the repository with another digest for tofu.
fn pin_tofu(site: &Site, digest: &str) {
    let text = fs_err::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/cluster.lock.json")).unwrap();
    let mut lock: Value = serde_json::from_str(&text).unwrap();
    for module in lock["modules"].as_object_mut().unwrap().values_mut() {
        let Some(platforms) = module.pointer_mut("/binaries/tofu/pins") else { continue };
        for pin in platforms.as_object_mut().unwrap().values_mut().flat_map(|pins| pins.as_array_mut().unwrap()) {
            pin["sha256"] = digest.into();
            pin.as_object_mut().unwrap().remove("size");
        }
    }
    fs_err::write(site.dir.join("cluster.lock.json"), lock.to_string()).unwrap();
}

#[test]
fn a_subnet_that_is_taken() {
    if !can_make_hosts() {
        return;
    }
    let site = site("subnet", "10.121.6.0/24", 0);
    sh("ip link add turnup-it type bridge && ip address add 10.121.6.77/28 dev turnup-it");
    let done = site.run(&["up"]);
    sh("ip link delete turnup-it");
    assert_eq!(done.code, Some(4), "{done}");
    insta::assert_snapshot!("subnet_taken", site.error_of(&done));
    assert_eq!(site.look_around().iter().filter(|entry| entry.contains(&site.id())).count(), 0);
    site.ok(&["down", "--yes"]);
}

#[test]
fn a_full_disk() {
    if !can_make_hosts() {
        return;
    }
    let mut site = site("full", "10.121.7.0/24", 0);
    let disk = site.dir.join(".turnup");
    fs_err::create_dir(&disk).unwrap();
    let resize = |options: &str| sh(&format!("mount {options} none '{}'", disk.display()));
    resize("-t tmpfs -o size=64k,mode=700");
    fs_err::write(disk.join("filler"), vec![0; 65 << 10]).unwrap_err();
    let done = site.fails(4, &["up"]);
    insta::assert_snapshot!("disk_full_at_once", site.error_of(&done));
    // With a little room it gets further; each time it reports the full disk and loses nothing.
    fake_terraform(&mut site, "terraform", FAILS);
    fs_err::remove_file(disk.join("filler")).unwrap();
    fill(&disk, 24 << 10);
    let done = site.fails(4, &["up"]);
    let said = site.error_of(&done);
    assert!(said.starts_with("error: no space left for DIR/") && said.contains("next: free space"), "{said}");
    let key = site.path("ssh/id_ed25519");
    let before = fs_err::read_to_string(&key).ok();
    fs_err::remove_file(disk.join("filler")).unwrap();
    resize("-o remount,size=8m");
    site.fails(1, &["up"]);
    assert!(before.is_none_or(|before| before == fs_err::read_to_string(&key).unwrap()), "the key was generated again");
    assert!(notes(&site, "calls").contains(&"apply".to_owned()), "it came as far as terraform");
    sh(&format!("umount '{}'", disk.display()));
}

/// Leaves so many bytes free.
fn fill(disk: &Path, free: u64) {
    let stat = rustix::fs::statvfs(disk).unwrap();
    let size = (stat.f_bavail * stat.f_frsize).saturating_sub(free);
    fs_err::write(disk.join("filler"), vec![0; usize::try_from(size).unwrap()]).unwrap();
}

#[test]
fn a_corrupt_state() {
    if !can_make_hosts() {
        return;
    }
    let mut site = site("corrupt", "10.121.8.0/24", 0);
    fake_terraform(&mut site, "terraform", FAILS);
    let done = site.fails(1, &["up"]);
    insta::assert_snapshot!("terraform_fails", site.error_of(&done));
    let key = site.read("ssh/id_ed25519");
    for damaged in ["{\"version\": 1, \"generation\":", "", "null\n"] {
        fs_err::write(site.path("state.json"), damaged).unwrap();
        for command in ["up", "plan"] {
            let done = site.fails(4, &[command]);
            let said = site.error_of(&done);
            assert!(said.contains("turnup state rebuild"), "{said}");
            if damaged.ends_with(':') {
                insta::assert_snapshot!("state_corrupt", said);
            }
        }
        assert_eq!(site.read("state.json"), damaged, "a damaged file is kept as it is");
        site.ok(&["state", "rebuild"]);
        let done = site.fails(1, &["up"]);
        assert!(!done.err.contains("provision/keys begins"), "what was done is known from the journal: {done}");
    }
    assert_eq!(site.read("ssh/id_ed25519"), key);
}

#[test]
fn a_second_up_while_one_runs() {
    if !can_make_hosts() {
        return;
    }
    let mut site = site("second", "10.121.9.0/24", 0);
    fake_terraform(&mut site, "terraform", SLOW);
    let first = apply_begins(&site, &["up"]);
    // The output of the second must not go to the first one's log.
    let second = |args: &[&str]| -> (Option<i32>, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_turnup")).args(args).current_dir(&site.dir).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for args in [&["up"][..], &["provision"], &["down", "--yes"]] {
        let (code, said) = second(args);
        assert_eq!(code, Some(6), "{said}");
        assert!(said.contains(&format!("process {} on", first.pid().as_raw_nonzero())), "{said}");
        let said = said[said.find("error: ").unwrap()..].to_owned();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        insta::assert_snapshot!("second_up", site.redact(&said.replace(&format!("on {host})"), "on HOST)")));
    }
    assert_eq!(second(&["plan"]).0, Some(0), "to look is free");
    kill_process(first.pid(), Signal::INT).unwrap();
    assert_eq!(first.wait(SOON).code, Some(130));
    assert_eq!(notes(&site, "calls"), ["init", "state", "plan", "apply"], "the second one started nothing");
}

/// What has to hold after Ctrl-C during `terraform apply`.
fn check_interrupted(site: &Site, done: &Done) {
    assert_eq!(done.code, Some(130), "{done}");
    assert_eq!(notes(site, "signals").len(), 1, "terraform gives up at a second signal: {:?}", notes(site, "signals"));
    assert_eq!(notes(site, "saved"), ["saved"], "terraform could end in order");
    insta::assert_snapshot!("interrupted", site.error_of(done));
}

#[test]
fn ctrl_c_during_terraform() {
    if !can_make_hosts() {
        return;
    }
    let mut site = site("ctrl-c", "10.121.10.0/24", 0);
    fake_terraform(&mut site, "terraform", SLOW);
    // One signal to turnup alone; to the whole foreground group, as a terminal does it; by an
    // impatient person.
    for (pauses, whole_group) in [(vec![], false), (vec![], true), (vec![100, 300, 300], true)] {
        for name in ["signals", "saved"] {
            drop(fs_err::remove_file(site.dir.join("notes").join(name)));
        }
        let running = apply_begins(&site, &["up"]);
        let send = || {
            if whole_group {
                kill_process_group(running.pid(), Signal::INT).unwrap();
            } else {
                kill_process(running.pid(), Signal::INT).unwrap();
            }
        };
        send();
        for pause in pauses {
            std::thread::sleep(Duration::from_millis(pause));
            send();
        }
        check_interrupted(&site, &running.wait(SOON));
    }
    assert!(notes(&site, "signals").iter().all(|signal| signal == "INT"));
    let plan = site.ok(&["plan"]).out;
    assert!(plan.contains("provision/apply: interrupted last time"), "{plan}");
}

#[test]
fn ctrl_c_while_real_hosts_are_made() {
    if !can_make_hosts() {
        return;
    }
    let site = site("ctrl-c-real", "10.121.11.0/24", 1);
    let before = site.look_around();
    // Before anything is made; and in the middle of the hosts, which take a second or more.
    for (mark, pause, whole_group) in [("terraform init", 0, false), ("terraform_data.host[", 300, true)] {
        let kill = if whole_group { kill_process_group } else { kill_process };
        let interrupt = || {
            let mut running = site.start(&["provision"]);
            running.wait_for(mark);
            std::thread::sleep(Duration::from_millis(pause));
            kill(running.pid(), Signal::INT).unwrap();
            running.wait(SOON)
        };
        let mut done = interrupt();
        // If this test was delayed for longer than the rest of the run takes, the signal came too
        // late.
        for _again in 0..5 {
            if done.code != Some(0) {
                break;
            }
            site.ok(&["down", "--yes"]);
            done = interrupt();
        }
        assert_eq!(done.code, Some(130), "{done}");
        assert!(done.err.contains("next: turnup provision (goes on from here)"), "{done}");
    }
    site.ok(&["provision"]);
    assert_eq!(site.hosts().len(), 2);
    for host in site.hosts().keys() {
        assert!(site.leader(host).is_some(), "{host} does not run");
    }
    site.ok(&["down", "--yes"]);
    let after = site.look_around();
    let left: Vec<&String> = after.difference(&before).collect();
    assert!(left.is_empty(), "left behind or changed: {left:#?}");
}

#[test]
fn a_port_in_use_on_a_host() {
    if !can_make_hosts() {
        return;
    }
    let site = site("port", "10.121.12.0/24", 0);
    site.ok(&["provision"]);
    let host = "it-control-plane-0";
    let inside = |script: &str| {
        sh(&format!("nsenter --target {} --all -- {script}", site.init(host).as_raw_nonzero()));
    };
    inside("systemd-run --quiet --unit=squatter socat TCP-LISTEN:6443,fork,reuseaddr SYSTEM:cat");
    let listens = "for i in $(seq 600); do ss -ltn | grep -q ':6443 ' && exit 0; sleep 0.1; done; exit 1";
    site.in_host(host, listens);
    let start = Instant::now();
    let done = site.fails(4, &["bootstrap"]);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    insta::assert_snapshot!("port_in_use", site.error_of(&done));
    inside("systemctl stop squatter");
    site.ok(&["bootstrap"]);
    site.ok(&["down", "--yes"]);
}
