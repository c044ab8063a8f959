//! The wizard without a screen: plain lines, sessions that are played again, any Kconfig tree, and
//! the screens in its documentation.
#![expect(clippy::unwrap_used, reason = "tests")]

use crate::cli_support::{Outcome, TestEnv, finish};
use crate::wizard_tmux::{Answers, TARGETS, file_by_commands};

/// Answers from a pipe, a line each.
fn answer(test_env: &TestEnv, lines: &[&str]) -> Outcome {
    finish(test_env.command(&["config", "--accessible"]).write_stdin(lines.join("\n") + "\n"))
}

#[test]
fn lines_and_single_commands_make_the_same_file_for_each_target() {
    for Answers { target, lines, .. } in &TARGETS {
        let test_env = TestEnv::new("");
        // An empty line keeps the value, and at the end saves; surplus lines are not read.
        let given: Vec<&str> = lines.iter().copied().chain(std::iter::repeat_n("", 20)).collect();
        let said = answer(&test_env, &given);
        assert_eq!(said.code, 0, "{target}: {}{}", said.out, said.err);
        let by_lines = test_env.read(".config.json");
        assert_eq!(by_lines, file_by_commands(target), "{target}");
        let check = test_env.ok(&["config", "check"]).out;
        assert!(check.lines().all(|line| line.starts_with("notice: ")), "{target}: {check}");
    }
}

#[test]
fn plain_lines_read_as_they_should() {
    let test_env = TestEnv::new("");
    let said = answer(&test_env, &["demo", "?", "<", "", "local", "", "2", "", "1.36.3", "y"]);
    insta::assert_snapshot!(said.out);
    assert!(said.err.contains("wrote .config.json"), "{}", said.err);
    let again = answer(&test_env, &["", "", "", "", "", "", "y"]);
    assert!(again.code == 0 && again.err.contains(".config.json is as it was"), "{}", again.err);
}

#[test]
fn answers_from_a_pipe_that_are_wrong_or_missing_save_nothing() {
    for (lines, expected) in [
        (vec!["Demo Cluster"], "Cluster name: `Demo Cluster` is not valid"),
        (vec!["demo", "openstack"], "Target platform: `openstack` is none of local, baremetal"),
        (vec!["demo", "local", "", "1001"], "Number of worker hosts: 1001 is out of range"),
        (vec!["demo", "local", ""], "the answers ended before the last question, at: Number of worker hosts"),
        (vec!["demo", "q"], ""),
    ] {
        let test_env = TestEnv::new("");
        let said = answer(&test_env, &lines);
        assert!(said.err.contains(expected), "{lines:?}: {}", said.err);
        assert_eq!(said.code == 0, expected.is_empty(), "{lines:?}");
        assert!(!test_env.path(".config.json").exists(), "{lines:?}");
    }
}

#[test]
fn plain_lines_from_a_pipe_lose_nothing_that_a_user_would_be_asked_about() {
    let test_env = TestEnv::new("");
    test_env.write(".config.json", "{\"phase1\": {\"num_node\": 3}}");
    let mistaken = answer(&test_env, &["", "", "", "", "", "", "y"]);
    assert_eq!(mistaken.code, 3);
    assert!(
        mistaken.err.contains("did you mean `phase1.num_nodes`")
            && test_env.read(".config.json").contains("num_node\""),
        "{}",
        mistaken.err
    );
    let test_env = TestEnv::new("");
    test_env.write(".config.json", "{}");
    test_env.write(".config.json.unsaved", "{\"phase1\": {\"num_nodes\": 7}}");
    let draft = answer(&test_env, &["", "", "", "", "", "", "y"]);
    assert_eq!(draft.code, 3);
    assert!(draft.err.contains("~ phase1.num_nodes: 1 -> 7"), "{}", draft.err);
    assert!(test_env.path(".config.json.unsaved").exists(), "kept until the user decides");
    let test_env = TestEnv::new("");
    let even = answer(&test_env, &["demo", "local", "", "2", "2", "", "y"]);
    assert_eq!(even.code, 3, "{}", even.out);
    assert!(!test_env.path(".config.json").exists(), "what does not fit together is not saved");
    let back = answer(&test_env, &["demo", "local", "", "2", "", "", "<", "1.35.4", "y"]);
    assert_eq!(back.code, 0, "{}", back.err);
    assert!(test_env.read(".config.json").contains("1.35.4"), "from the end one goes back to the last question");
    let both = test_env.run(&["config", "--accessible", "--replay", "keys"]);
    assert_eq!(both.code, 2);
}

/// The file as it was before the tree got these settings.
fn written_before(test_env: &TestEnv, names: &[&str]) {
    test_env.ok(&["config", "defaults"]);
    test_env.ok(&["config", "set", "phase1.num_nodes=3"]);
    let mut file: serde_json::Value = serde_json::from_str(&test_env.read(".config.json")).unwrap();
    for name in names {
        let (path, last) = name.rsplit_once('.').unwrap();
        let pointer = format!("/{}", path.replace('.', "/"));
        assert!(file.pointer_mut(&pointer).unwrap().as_object_mut().unwrap().remove(last).is_some(), "{name}");
    }
    test_env.write(".config.json", &format!("{file:#}"));
}

#[test]
fn a_tree_that_has_got_settings_asks_these_alone() {
    let test_env = TestEnv::new("");
    let missing = test_env.ends(3, &["config", "--new", "--accessible"]).err;
    assert!(missing.contains("turnup config --guided"), "{missing}");
    written_before(&test_env, &["phase1.cluster_name", "phase2.max_pods"]);
    test_env.write("keys", "key ?");
    let shown = test_env.ok(&["config", "--replay", "keys"]).out;
    assert!(shown.contains("2 settings are new since the file was written"), "{shown}");
    let lines = "demo\n\ny\n";
    let said = finish(test_env.command(&["config", "--new", "--accessible"]).write_stdin(lines));
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains("Cluster name") && !said.out.contains("Number of worker hosts"), "{}", said.out);
    let file: serde_json::Value = serde_json::from_str(&test_env.read(".config.json")).unwrap();
    assert_eq!((&file["phase1"]["cluster_name"], &file["phase1"]["num_nodes"]), (&"demo".into(), &3.into()));
    assert!(file["phase2"]["max_pods"].is_number(), "its default is an answer now");
    let again = test_env.ok(&["config", "--new", "--accessible"]).err;
    assert!(again.contains("nothing to ask: .config.json is not older than the settings"), "{again}");
}

#[test]
fn a_new_switch_that_is_off_is_told_by_the_form_that_names_it() {
    let test_env = TestEnv::new("").with_env("CONFIG_", ".");
    let old = "config phase1.old\n\tbool \"Old\"\n\nconfig phase1.size\n\tint \"Size\"\n\tdefault 3\n";
    test_env.write("Kconfig", old);
    test_env.write("phases/profiles/none.defconfig", "# The defaults.\n");
    test_env.ok(&["config", "defaults"]);
    test_env.ok(&["config", "export", "--to", ".config"]);
    let new = "config phase1.off\n\tbool \"Off\"\n\nconfig phase1.on\n\tbool \"On\"\n\tdefault y\n\n";
    test_env.write("Kconfig", &format!("{new}{old}"));
    // The object has no place for what is off, be it new or not.
    assert_eq!(test_env.ok(&["config", "list", "--new"]).out, "phase1.on=y\n");
    let told = test_env.ok(&["kconfig", "conf", "--listnewconfig", "Kconfig"]).out;
    assert!(told.contains(".phase1.off=n\n.phase1.on=y\n") && !told.contains("phase1.old"), "{told}");
}

const TREE: &str = "mainmenu \"Other people's\"\n\nconfig NET\n\tbool \"Network\"\n\nconfig PORT\n\tint \"Port\"\n\tdepends on NET\n\tdefault 80\n\nconfig BIG\n\thex \"Big\"\n\tdefault 0xdead000000000000\n";

#[test]
fn any_tree_is_edited_and_a_session_is_played_again() {
    let test_env = TestEnv::new("kconfig");
    test_env.write("Kconfig", TREE);
    test_env.write("keys", "# a comment\nkey Space\nkey j\nkey Enter\nkey Ctrl-U\npaste \"8080\"\nkey Enter\nkey v\n");
    let played = test_env.ok(&["menuconfig", "--replay", "keys", "--size", "70x16"]).out;
    let screens: Vec<&str> = played.split("=== ").skip(1).collect();
    assert_eq!(screens.len(), 8, "the start, and one for each key: {played}");
    let last = screens[7].split_once('\n').unwrap().1;
    insta::assert_snapshot!(last);
    assert!(screens[1].contains("CONFIG_NET=y"), "says what it did: {}", screens[1]);
    assert!(!test_env.path(".config").exists(), "a session that is played writes nothing");
    test_env.write("wrong", "key Enter\nkey Entr\n");
    let wrong = test_env.run(&["menuconfig", "--replay", "wrong"]);
    assert_eq!(wrong.code, 3);
    assert!(wrong.err.contains("line 2 of the recording: `key Entr` is none of"), "{}", wrong.err);
    let no_terminal = test_env.run(&["menuconfig"]);
    assert_eq!(no_terminal.code, 2);
}

/// A screen in the documentation: the keys that lead to it are in the comment before it.
fn documented() -> Vec<(Vec<String>, String)> {
    let text = fs_err::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/wizard.md")).unwrap();
    let blocks = text.split("<!-- keys:").skip(1);
    blocks
        .map(|block| {
            let (keys, rest) = block.split_once("-->").unwrap();
            let screen = rest.split("```").nth(1).unwrap().trim_start_matches("text").trim_matches('\n').to_owned();
            (keys.split(',').map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()).collect(), screen)
        })
        .collect()
}

#[test]
fn the_screens_in_the_documentation_are_what_one_sees() {
    let screens = documented();
    assert!(screens.len() >= 6, "the documentation shows the wizard");
    for (keys, expected) in screens {
        let test_env = TestEnv::new("");
        test_env.write("keys", &keys.join("\n"));
        let played = test_env.ok(&["config", "--replay", "keys"]).out;
        let last = played.rsplit("=== ").next().unwrap().split_once('\n').unwrap().1;
        assert_eq!(last.trim_matches('\n'), expected, "after {keys:?}; the screen is now:\n{last}");
    }
}
