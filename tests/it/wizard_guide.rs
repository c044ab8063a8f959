//! The guide from its first question to a configuration that `turnup plan` takes, for every target
//! and every profile, with no more keys than promised.
#![expect(clippy::unwrap_used, reason = "tests")]

use crate::artifacts_support::{Reply, Server};
use crate::cli_support::{TestEnv, finish};
use crate::cloud_support::mirror;
use crate::driver_custom::has_terraform;
use crate::wizard_tmux::{TARGETS, URL};

/// Three hosts with their keys, as a user has them in a file.
const HOSTS: &str =
    "m1 192.0.2.11 control-plane ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
m2 192.0.2.12 worker ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIABBBBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
m3 192.0.2.13 worker ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIACCCCAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
";

/// One session: keys between bars, a paste where one begins with a quote.
struct Walk {
    name: &'static str,
    keys: &'static str,
    /// So many keys at most; short texts are typed, long ones pasted.
    budget: usize,
    /// What the summary says of it.
    summary: &'static str,
}

const WALKS: [Walk; 6] = [
    Walk { name: "local", keys: "Enter*7", budget: 8, summary: "2 hosts: 1 for the control plane, 1 for pods" },
    Walk {
        name: "baremetal with three hosts",
        keys: "Enter*2|Down|Enter*2|\"HOSTS\"|Enter*4",
        budget: 60,
        summary: "3 hosts: 1 for the control plane, 2 for pods",
    },
    Walk {
        name: "gce for users that rely on it",
        keys: "Enter*2|Down*2|Enter|Up|Enter|Enter*2|\"my-project-1\"|Enter*7|\"URL\"|Enter*2",
        budget: 20,
        summary: "7 hosts: 3 for the control plane, 3 for pods, 1 the bastion",
    },
    Walk {
        name: "aws with a group",
        keys: "Enter*2|Down*3|Enter*8|a|\"web\"|Enter|\"3\"|Enter|Esc*2|Enter*3|\"URL\"|Enter*2",
        budget: 30,
        summary: "4 hosts: 1 for the control plane, 3 for pods",
    },
    Walk {
        name: "azure",
        keys: "Enter*2|Down*4|Enter*11|Enter|\"URL\"|Enter*2",
        budget: 30,
        summary: "2 hosts: 1 for the control plane, 1 for pods",
    },
    Walk {
        name: "custom",
        keys: "Enter*2|Down*5|Enter*3|\"module\"|Enter*5",
        budget: 30,
        summary: "2 hosts: 1 for the control plane, 1 for pods",
    },
];

/// The lines of a recording, and how many keys they stand for.
fn recording(keys: &str) -> (String, usize) {
    let (mut lines, mut typed) = (Vec::new(), 0);
    for part in keys.split('|') {
        if let Some(text) = part.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            let text = text.replace("HOSTS", HOSTS).replace("URL", URL);
            typed += if text.len() < 10 { text.len() } else { 0 };
            lines.push(format!("paste {}", serde_json::Value::from(text)));
            continue;
        }
        let (key, count) = part.split_once('*').unwrap_or((part, "1"));
        lines.extend(std::iter::repeat_n(format!("key {key}"), count.parse().unwrap()));
    }
    let count = lines.iter().filter(|line| line.starts_with("key ")).count();
    (lines.join("\n"), count + typed)
}

#[test]
fn the_fewest_answers_for_every_target_end_in_what_plan_takes() {
    for Walk { name, keys, budget, summary } in WALKS {
        let test_env = TestEnv::new("");
        fs_err::create_dir(test_env.path("module")).unwrap();
        test_env.write("module/main.tf", "variable \"cluster\" {}\noutput \"inventory\" {\n  value = {}\n}\n");
        let (lines, count) = recording(keys);
        test_env.write("keys", &lines);
        let played = test_env.ok(&["config", "--replay", "keys", "--size", "130x60"]).out;
        let end = played.rsplit("=== ").next().unwrap();
        assert!(end.contains(" Summary ") && end.contains("Do it: turnup up."), "{name}: {end}");
        assert!(end.contains(summary), "{name}: {end}");
        // Saving is one key more.
        assert!(count < budget, "{name}: {} keys", count + 1);
    }
}

/// Answers beyond the fewest, line by line.
const MORE: [(&str, &[&str]); 3] = [
    ("gce", &["prod", "gce", "gce-ha", "", "", "my-project", "", "", "", "", "", "", URL]),
    ("aws", &["prod", "aws", "", "", "", "", "", "", "", GROUP, "", "", URL]),
    ("custom", &["prod", "custom", "", "", "module"]),
];
const GROUP: &str = r#"[{"name":"web","role":"worker","size":3}]"#;

#[test]
fn what_the_guide_writes_is_planned_on_every_target() {
    if !has_terraform() {
        return;
    }
    let few = TARGETS.iter().map(|answers| (answers.target, answers.lines));
    for (target, lines) in few.chain(MORE) {
        let test_env = TestEnv::new("");
        fs_err::create_dir(test_env.path("module")).unwrap();
        test_env.write("module/main.tf", "variable \"cluster\" {}\noutput \"inventory\" {\n  value = {}\n}\n");
        // An empty line keeps the value, and at the end saves.
        let given: Vec<&str> = lines.iter().copied().chain(std::iter::repeat_n("", 20)).collect();
        let said = finish(test_env.command(&["config", "--accessible"]).write_stdin(given.join("\n") + "\n"));
        assert_eq!(said.code, 0, "{target}: {}{}", said.out, said.err);
        if lines.contains(&URL) {
            // What a user has too: artifacts at the URL, and providers of Terraform.
            mirror(&test_env.path("mirror"), target, None);
            let url = format!("phase1.user_data.artifacts_url={}/turnup", Server::new(Reply::Bytes(vec![0])).url);
            test_env.ok(&["config", "set", &url, "phase1.terraform.provider_mirror=mirror"]);
        }
        let planned = finish(test_env.command(&["plan"]).env("PATH", std::env::var("PATH").unwrap()));
        assert_eq!(planned.code, 0, "{target}: {}{}", planned.out, planned.err);
        assert!(planned.out.contains(" to run; takes "), "{target}: {}", planned.out);
    }
}

#[test]
fn what_plan_refuses_stands_in_the_summary_and_leads_to_its_question() {
    let test_env = TestEnv::new("");
    test_env.write("keys", &recording("Enter*2|Down*2|Enter*13").0);
    let played = test_env.ok(&["config", "--replay", "keys"]).out;
    let summary = played.rsplit("=== ").next().unwrap();
    test_env.ok(&["config", "set", "phase1.cloud_provider=gce"]);
    let refused = test_env.ends(3, &["plan"]).err;
    let why = "phase1.user_data.artifacts_url: it is empty, and hosts must fetch turnup";
    assert!(refused.contains(why) && summary.contains(&format!("! {why}")), "{refused}{summary}");
    assert!(!summary.contains("Do it: turnup up."), "{summary}");
    test_env.write("keys", &recording("Enter*2|Down*2|Enter*13|Enter").0);
    fs_err::remove_file(test_env.path(".config.json")).unwrap();
    let played = test_env.ok(&["config", "--replay", "keys"]).out;
    let question = played.rsplit("=== ").next().unwrap();
    assert!(question.contains("Question 13 of 14") && question.contains("Artifact URL for hosts"), "{question}");
}

#[test]
fn what_is_required_is_what_plan_misses_of_a_target_and_the_guide_says_so() {
    for (target, required) in [("gce", "phase1.user_data.artifacts_url"), ("custom", "phase1.custom.module")] {
        let test_env = TestEnv::new("");
        test_env.ok(&["config", "set", &format!("phase1.cloud_provider={target}")]);
        let checked = test_env.ends(3, &["config", "check", "--output", "json"]).out;
        let checked: serde_json::Value = serde_json::from_str(&checked).unwrap();
        let errors = checked["problems"].as_array().unwrap().iter().filter(|problem| problem["level"] == "error");
        let about: Vec<&str> = errors.map(|problem| problem["setting"].as_str().unwrap()).collect();
        assert_eq!(about, [required], "{target}: {checked}");
        let keys = format!("key G\nkey Enter\nkey /\npaste \"{required}\"\nkey Enter\nkey Enter");
        test_env.write("keys", &keys);
        let played = test_env.ok(&["config", "--replay", "keys"]).out;
        let editor = played.rsplit("=== ").next().unwrap();
        assert!(editor.contains("required; example: ") && !editor.contains("valid"), "{editor}");
        test_env.write("keys", &format!("{keys}\nkey x"));
        let played = test_env.ok(&["config", "--replay", "keys"]).out;
        assert!(!played.rsplit("=== ").next().unwrap().contains("required; "), "{played}");
    }
}

/// The settings that a profile leaves to its user.
fn missing(profile: &str) -> Vec<String> {
    let url = || format!("phase1.user_data.artifacts_url={URL}");
    match profile {
        "baremetal-ha" => vec!["phase1.api.host=192.0.2.10".to_owned()],
        "gce-ha" | "aws-ha" | "azure-ha" => vec![url()],
        _ => Vec::new(),
    }
}

#[test]
fn every_profile_can_be_planned_after_what_it_leaves_to_its_user() {
    let profiles = ["local-minimal", "local-ha", "hardened", "baremetal-ha", "gce-ha", "aws-ha", "azure-ha"];
    let all = TestEnv::new("").ok(&["config", "profile"]).out;
    assert_eq!(all.lines().count(), profiles.len(), "{all}");
    for profile in profiles {
        let test_env = TestEnv::new("");
        let written = test_env.ok(&["config", "profile", profile]);
        let open = missing(profile);
        assert_eq!(written.err.contains("before `turnup up`: "), !open.is_empty(), "{profile}: {}", written.err);
        for setting in &open {
            test_env.ok(&["config", "set", setting]);
        }
        if profile == "baremetal-ha" {
            test_env.write("hosts", &HOSTS.replace("worker", "control-plane"));
            test_env.ok(&["config", "hosts", "import", "hosts"]);
        }
        test_env.ok(&["config", "check"]);
        if profile == "local-minimal" || profile == "baremetal-ha" {
            test_env.ok(&["plan"]);
        }
    }
}

#[test]
fn a_profile_of_the_guide_is_what_the_command_makes_of_it() {
    for (profile, target) in [("gce-ha", "gce"), ("aws-ha", "aws"), ("azure-ha", "azure"), ("local-ha", "local")] {
        let by_command = TestEnv::new("");
        by_command.ok(&["config", "profile", profile]);
        let by_guide = TestEnv::new("");
        // The last answers: to save although the URL is missing on clouds.
        let answers = ["", target, profile].into_iter().chain(std::iter::repeat_n("", 12)).chain(["y"]);
        let count = by_guide_questions(target);
        let lines: Vec<&str> = answers.take(count).chain(["y"]).collect();
        let said = finish(by_guide.command(&["config", "--accessible"]).write_stdin(lines.join("\n") + "\n"));
        assert_eq!(said.code, 0, "{profile}: {}{}", said.out, said.err);
        assert_eq!(by_guide.read(".config.json"), by_command.read(".config.json"), "{profile}");
    }
}

/// How many questions the guide has.
fn by_guide_questions(target: &str) -> usize {
    match target {
        "local" => 6,
        "azure" => 15,
        _ => 14,
    }
}

#[test]
fn hosts_are_imported_from_files_and_from_standard_input() {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "set", "phase1.cloud_provider=baremetal"]);
    test_env.write("inventory.ini", "[masters]\nm1 ansible_host=192.0.2.11\n[workers]\nw1 ansible_host=192.0.2.21\n");
    let keyless = test_env.ends(3, &["config", "hosts", "import", "inventory.ini"]);
    assert!(keyless.err.contains("m1: it has no host_key"), "{}", keyless.err);
    let key = |last: char| format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{}", last.to_string().repeat(43));
    let keys = format!("192.0.2.11 {}\n192.0.2.21 {}\n", key('A'), key('B'));
    let said = finish(test_env.command(&["config", "hosts", "import", "-", "inventory.ini"]).write_stdin(keys));
    assert!(said.err.contains("phase1.baremetal.hosts: none -> 2: m1, w1"), "{}", said.err);
    let hosts = test_env.ok(&["config", "get", "phase1.baremetal.hosts", "--output", "json"]).out;
    let hosts: serde_json::Value = serde_json::from_str(&hosts).unwrap();
    let hosts = &hosts["values"]["phase1.baremetal.hosts"];
    assert_eq!((&hosts[0]["name"], &hosts[1]["role"]), (&"m1".into(), &"worker".into()), "a real list");
    assert!(hosts[0]["host_key"].as_str().unwrap().starts_with("ssh-ed25519 "));
    let replaced = format!("m9 192.0.2.19 master {}\n", key('C'));
    let replaced = finish(test_env.command(&["config", "hosts", "import", "--replace", "-"]).write_stdin(replaced));
    assert!(replaced.err.contains("2: m1, w1 -> 1: m9"), "{}", replaced.err);
    test_env.write("wrong", "m1 master\n");
    let wrong = test_env.ends(3, &["config", "hosts", "import", "wrong"]);
    assert!(wrong.err.contains("no list of hosts: wrong: m1 has no IPv4 address"), "{}", wrong.err);
    assert!(wrong.err.contains("next: see what a host has: turnup config explain phase1.baremetal.hosts"));
}
