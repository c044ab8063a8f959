//! The commands agree: what `up` and `plan` refuse, `config check` refuses in the same words, and
//! no command demands a setting that it does not need or leaves anything behind where there is no
//! cluster.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::cli_support::TestEnv;
use crate::cloud_support::profiles;

const URL: &str = "phase1.user_data.artifacts_url=https://artifacts.example.com/turnup";

/// Settings, and words of what is wrong with them.
fn refused() -> Vec<(Vec<String>, &'static str)> {
    let files = json!([{"name": "own", "path": "/var/lib/kubelet/config.yaml", "content": "{}"}]);
    let hook = |name: &str, other: &str| {
        let after = format!("turnup-hook-{other}.service");
        json!({"name": name, "command": "true", "after": [after]})
    };
    let hooks = json!([hook("a", "b"), hook("b", "a")]);
    let etc = json!([{"name": "a", "path": "/etc/containerd", "link": "/data"}]);
    let inner =
        json!([{"name": "a", "path": "/srv/a", "link": "/data"}, {"name": "b", "path": "/srv/a/b", "content": "c"}]);
    let groups = json!([{"name": "web", "role": "worker", "size": 1, "labels": {"example.kubernetes.io/web": "y"}}]);
    let set = |settings: &[&str]| settings.iter().map(|&setting| setting.to_owned()).collect::<Vec<_>>();
    let aws = |more: String| vec!["phase1.cloud_provider=aws".to_owned(), URL.to_owned(), more];
    let bucket = || {
        let place = ["phase2.backup.s3.endpoint=https://s3.example.com", "phase2.backup.s3.region=eu"];
        set(&[&["phase2.backup.store=s3", "phase2.backup.s3.bucket=b"], &place[..]].concat())
    };
    let blobs = |more: &[&str]| -> Vec<String> {
        let own = ["store=azure", "azure.account=mybackups", "azure.container=etcd"].iter().chain(more);
        own.map(|one| format!("phase2.backup.{one}")).collect()
    };
    vec![
        (blobs(&[]), "phase2.backup.azure.credentials_file is empty, and hosts of local have no identity"),
        (blobs(&["azure.endpoint=http://127.0.0.1:1"]), "would get the token of the hosts' identity unencrypted"),
        (set(&["phase1.cloud_provider=aws"]), "phase1.user_data.artifacts_url: it is empty"),
        (set(&["phase1.cloud_provider=custom"]), "phase1.custom.module: it is empty"),
        (set(&["phase1.cloud_provider=baremetal"]), "phase1.baremetal.hosts_file: failed to open file"),
        (set(&["phase2.proxy_ca_file=corp.pem", "phase2.http_proxy=http://proxy:3128"]), "corp.pem is not there"),
        (aws(format!("phase1.node_groups={groups}")), "the group web has the label example.kubernetes.io/web"),
        (bucket(), "phase2.backup.s3.credentials_file is empty, and hosts of local have no identity"),
        (vec![format!("phase2.host.file_assets={files}")], "turnup writes /var/lib/kubelet/config.yaml itself"),
        (
            vec![format!("phase2.host.file_assets={etc}")],
            "in /etc/containerd turnup makes /etc/containerd/config.toml itself",
        ),
        (vec![format!("phase2.host.file_assets={inner}")], "b lies in /srv/a, which a makes a link"),
        (vec![format!("phase2.host.hooks={hooks}")], "these units wait for each other"),
    ]
}

#[test]
fn what_up_refuses_plan_and_config_check_refuse_in_the_same_words() {
    for (settings, words) in refused() {
        let test_env = TestEnv::new("");
        let assignments: Vec<&str> = settings.iter().map(String::as_str).collect();
        test_env.ok(&[&["config", "set"], assignments.as_slice()].concat());
        let check = test_env.ends(3, &["config", "check"]);
        assert!(check.out.contains(words), "{settings:?}: {}", check.out);
        let plan = test_env.ends(3, &["plan"]).err;
        let up = test_env.ends(3, &["up"]).err;
        let said = |text: &str| text.lines().find(|line| line.contains(words)).unwrap_or_default().to_owned();
        // What stands before them is the place in the file.
        let core = |line: &str| line.split_once(words).map(|(_, rest)| rest.to_owned());
        assert_eq!(core(&said(&up)), core(&said(&plan)), "{settings:?}: {up}{plan}");
        assert!(core(&said(&check.out)).unwrap().starts_with(&core(&said(&up)).unwrap()), "{up}{}", check.out);
        assert!(!test_env.path(".turnup").exists(), "nothing was started: {settings:?}");
    }
}

#[test]
fn no_command_demands_a_setting_that_it_does_not_need_or_leaves_a_directory() {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "set", "phase1.cloud_provider=gce"]);
    for command in [&["validate"][..], &["kubeconfig"], &["reset", "foo", "--yes"], &["user-data", "web"], &["status"]]
    {
        let said = test_env.run(command).err;
        assert!(!said.contains("artifacts_url: it is empty"), "{command:?}: {said}");
        assert!(!test_env.path(".turnup").exists(), "{command:?} made a directory");
    }
    for command in [&["validate"][..], &["kubeconfig"], &["reset", "foo", "--yes"]] {
        let said = test_env.ends(1, command).err;
        assert!(said.contains("is not there yet\nnext: turnup provision"), "{command:?}: {said}");
    }
    let down = test_env.ok(&["down"]).err;
    assert_eq!(down.trim(), "there is no cluster kubernetes in .turnup: nothing to do");
    assert!(!test_env.path(".turnup").exists());
    fs_err::create_dir_all(test_env.path(".turnup/other")).unwrap();
    let down = test_env.ok(&["down"]).err;
    assert!(down.contains("nothing to do; clusters there: other (turnup down --cluster NAME)"), "{down}");
}

#[test]
fn every_profile_renders_and_passes_with_the_answers_that_only_its_user_knows() {
    let profiles = TestEnv::new("").ok(&["config", "profile"]).out;
    let hosts: Vec<serde_json::Value> = (1..=5)
        .map(|index| {
            let role = if index <= 3 { "control-plane" } else { "worker" };
            let key = format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA{index:A>42}");
            json!({"name": format!("h{index}"), "role": role, "address": format!("192.0.2.{index}"), "host_key": key})
        })
        .collect();
    let mut count = 0;
    for name in profiles.lines().filter_map(|line| line.split_whitespace().next()) {
        let test_env = TestEnv::new("");
        test_env.ok(&["config", "profile", name]);
        match test_env.ok(&["config", "get", "phase1.cloud_provider"]).out.trim() {
            "local" => {}
            "baremetal" => drop(test_env.ok(&[
                "config",
                "set",
                &format!("phase1.baremetal.hosts={}", json!(hosts)),
                "phase1.api.host=api.example.com",
            ])),
            _ => drop(test_env.ok(&["config", "set", URL])),
        }
        let check = test_env.ok(&["config", "check"]);
        assert!(!check.out.contains("error: "), "{name}: {}", check.out);
        let rendered = test_env.ok(&["render"]).out;
        assert!(rendered.lines().count() > 3, "{name}: {rendered}");
        count += 1;
    }
    assert!(count >= 7, "{profiles}");
}

#[test]
fn a_time_is_a_duration_everywhere() {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "defaults"]);
    for (timeout, code) in [("1h30m", 3), ("90s", 3), ("1.5h", 3), ("5", 2), ("0s", 2), ("1d", 2), ("-5m", 2)] {
        // Refused for its setting, once the command line is right.
        let told = test_env.run(&["up", &format!("--max-duration={timeout}"), "--set", "phase1.cloud_provider=custom"]);
        assert_eq!(told.code, code, "{timeout}: {}", told.err);
        assert_eq!(told.err.contains("expected a duration such as 90s, 5m or 1h30m"), code == 2, "{}", told.err);
    }
}

#[test]
fn the_first_plan_shows_no_failure_that_will_not_happen() {
    for target in ["local", "baremetal"] {
        let test_env = TestEnv::new("");
        test_env.ok(&["config", "set", &format!("phase1.cloud_provider={target}")]);
        if target == "baremetal" {
            let key = format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA{:A>42}", 1);
            let host = json!([{"name": "a", "role": "control-plane", "address": "192.0.2.1", "host_key": key}]);
            test_env.ok(&["config", "set", &format!("phase1.baremetal.hosts={host}")]);
        }
        let plan = test_env.run(&["plan"]);
        assert!(plan.code == 0 && plan.out.contains("bootstrap/delete-nodes"), "{}{}", plan.out, plan.err);
        let after = plan.out.split("bootstrap/delete-nodes").nth(1).unwrap_or_default();
        assert!(after.lines().take(3).all(|line| !line.contains("would fail")), "{}", plan.out);
        assert!(after.contains("known after bootstrap/api"), "{}", plan.out);
        assert!(!test_env.path(".turnup").exists(), "to plan makes nothing");
    }
}

#[test]
fn what_is_known_only_after_provisioning_is_said_to_be() {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "set", "phase1.cloud_provider=gce", URL]);
    let words = "is known after `turnup provision`";
    for command in
        [&["render", "bootstrap"][..], &["render", "addons"], &["config", "show", "kubernetes-control-plane-0"]]
    {
        let said = test_env.ends(1, command).err;
        assert!(said.contains(words) && said.ends_with("next: turnup provision\n"), "{command:?}: {said}");
    }
    assert!(test_env.ok(&["render"]).err.contains(words));
    let reach = test_env.ok(&["config", "where", "phase2.security.audit", "--output", "json"]).out;
    let reach: serde_json::Value = serde_json::from_str(&reach).unwrap();
    assert!(reach["unknown_because"].as_str().unwrap_or_default().contains(words), "{reach}");
}

#[test]
fn what_does_not_count_has_no_value_and_what_was_answered_is_not_new() {
    let test_env = TestEnv::new("config");
    test_env.ok(&["set", "phase1.cloud_provider=gce"]);
    assert_eq!(test_env.ok(&["get", "phase1.aws.disk_gb", "phase1.aws.disk_encrypted"]).out, "\n\n");
    let json = test_env.ok(&["get", "phase1.aws.disk_gb", "phase1.gce.disk_gb", "--output", "json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let values = &json["values"];
    assert!(values["phase1.aws.disk_gb"].is_null() && values["phase1.gce.disk_gb"].is_u64(), "{json}");
    let complete = test_env.ok(&["show"]).out;
    assert!(!complete.contains("phase1.aws.") && complete.contains("phase1.gce.disk_gb="), "{complete}");
    assert_eq!(test_env.ok(&["list", "--new"]).out, "", "the file answers everything");
}

/// Each setting that means nothing on a target is refused there, with the reason.
#[test]
fn a_setting_without_meaning_on_the_target_cannot_be_set() {
    for (target, setting, why) in [
        ("local", "phase1.etcd_volume.size_gb=4", "phase1.cloud_provider != \"local\""),
        ("local", "phase1.api.exposure=dns", "phase1.cloud_provider != \"local\""),
        ("local", "phase1.dns.domain=k8s.example.com", "phase1.cloud_provider = \"gce\""),
        ("local", "phase1.tags=a=b", "phase1.cloud_provider != \"local\""),
        ("baremetal", "phase1.api.exposure=load-balancer", "phase1.cloud_provider != \"baremetal\""),
        ("baremetal", "phase1.ssh.authorized_key_files=", "phase1.cloud_provider != \"baremetal\""),
        ("baremetal", "phase1.ssh.bastion=create", "on baremetal the machines exist already"),
        ("custom", "phase1.dns.provider=route53", "phase1.cloud_provider = \"gce\""),
    ] {
        let test_env = TestEnv::new("");
        let target = format!("phase1.cloud_provider={target}");
        test_env.ok(&["config", "set", &target]);
        let said = test_env.ends(3, &["config", "set", setting]).err;
        assert!(said.contains(why), "{target} {setting}: {said}");
    }
    let test_env = TestEnv::new("");
    let group = json!([{"name": "pool", "role": "worker", "size": 1, "spot": true}]);
    let said = test_env.ends(3, &["config", "set", &format!("phase1.node_groups={group}")]).err;
    assert!(said.contains("pool: spot: hosts of this machine have no spot of their own"), "{said}");
    let group = json!([{"name": "control-plane", "role": "worker", "size": 1}]);
    test_env.ok(&["config", "set", &format!("phase1.node_groups={group}")]);
    let said = test_env.ends(3, &["config", "check"]).out;
    assert!(said.contains("no name of a group of workers can begin with control-plane"), "{said}");
}

#[test]
fn a_file_with_a_secret_that_others_may_read_is_refused_before_anything() {
    let test_env = TestEnv::new("");
    test_env.write("secret", "hunter2");
    let mode = |mode| fs_err::set_permissions(test_env.path("secret"), Permissions::from_mode(mode)).unwrap();
    test_env.ok(&[
        "config",
        "set",
        "phase1.cloud_provider=azure",
        "phase1.azure.client_id=c",
        "phase1.azure.client_secret_file=secret",
        URL,
    ]);
    let words = "phase1.azure.client_secret_file: others may read secret, and a secret is in it: chmod 600 secret";
    mode(0o644);
    assert!(test_env.run(&["config", "check"]).out.contains(words));
    assert!(test_env.ends(3, &["plan"]).err.contains(words));
    mode(0o600);
    assert!(!test_env.run(&["config", "check"]).out.contains(words));
}

/// From the setting as from the user's own overrides, in the same words; nothing is refused.
#[test]
fn a_gate_that_the_next_version_removes_is_told_of_by_check_and_plan() {
    let test_env = TestEnv::new("");
    test_env.write("overrides.yaml", "kube-apiserver:\n  feature-gates: GangScheduling=true\n");
    test_env.ok(&["config", "set", "phase2.kubernetes_version=1.36.3"]);
    for (name, value) in [("phase2.feature_gates", "GangScheduling=true"), ("phase2.overrides", "overrides.yaml")] {
        let set = format!("{name}={value}");
        let words = format!("{name}: Kubernetes 1.37 no longer has the gate GangScheduling");
        let check = test_env.run(&["config", "check", "--set", &set]).out;
        assert!(check.lines().any(|line| line.starts_with("notice: ") && line.contains(&words)), "{check}");
        let plan = test_env.run(&["plan", "--set", &set]);
        assert!(plan.code == 0 && plan.err.contains(&words), "{}", plan.err);
    }
    assert!(!test_env.ok(&["plan"]).err.contains("no longer has"));
}

/// A queue that nothing reads helps no pod, and holds each host of a group for five minutes.
#[test]
fn a_value_that_needs_more_than_turnup_brings_is_told_of_by_check_and_plan() {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "set", "phase1.cloud_provider=aws", URL]);
    let words = "phase1.aws.termination_queue: turnup brings no program that reads the queue";
    let set = "phase1.aws.termination_queue=y";
    let check = test_env.ok(&["config", "check", "--set", set]).out;
    assert!(check.lines().any(|line| line.starts_with("notice: ") && line.contains(words)), "{check}");
    assert!(test_env.run(&["plan", "--set", set]).err.contains(words));
    assert!(!test_env.run(&["config", "check"]).out.contains("reads the queue"));
    assert!(!test_env.run(&["plan"]).err.contains("reads the queue"));
}

/// `--artifacts-url` is for machines that reach another one than the setting says.
#[test]
fn user_data_takes_the_place_of_artifacts_from_the_configuration() {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "set", "phase1.cloud_provider=gce", URL]);
    let ssh =
        json!({"user": "admin", "port": 22, "host_key": format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA{:A>42}", 1)});
    let host = json!({"name": "kubernetes-control-plane-0", "role": "control-plane", "address": "10.0.0.1", "instance": "1", "ssh": ssh});
    let inventory = json!({
        "schema": "turnup.provision/1", "cluster": "kubernetes", "target": "gce",
        "api": {"host": "192.0.2.1", "port": 443}, "hosts": [host],
    });
    test_env.write(".turnup/kubernetes/outputs/provision.json", &inventory.to_string());
    let told = test_env.ends(1, &["user-data", "pool"]).err;
    assert!(told.contains("outputs/artifacts.json is not there yet"), "that is all that it lacks: {told}");
    test_env.ok(&["config", "unset", "phase1.user_data.artifacts_url"]);
    let told = test_env.ends(2, &["user-data", "pool"]).err;
    assert!(
        told.contains("nothing says where machines fetch turnup") && told.contains("--artifacts-url URL"),
        "{told}"
    );
}

/// The modules are tested with what the product takes.
#[test]
fn what_the_modules_are_tested_with_is_what_config_check_takes() {
    for target in ["gce", "aws", "azure"] {
        for (profile, file) in profiles(target) {
            let test_env = TestEnv::new("").with_env("USER", "ada");
            fs_err::copy(&file, test_env.path(".config.json")).unwrap();
            let check = test_env.run(&["config", "check", "--set", URL]);
            assert_eq!(check.code, 0, "{target} {profile}: {}{}", check.out, check.err);
        }
    }
}
