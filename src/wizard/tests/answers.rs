//! Answers: given, refused, saved.

use super::*;

#[test]
fn switches_turn_over_by_space_enter_and_letters() {
    let session = Session::ours().into("Phase 2: Node Bootstrapping").into("Security");
    assert_eq!(session.value("phase2.security.audit"), "y");
    let session = session.press(" ");
    assert_eq!(session.value("phase2.security.audit"), "n");
    let session = session.press("<Enter>");
    assert_eq!(session.value("phase2.security.audit"), "y");
    let session = session.press("n");
    assert_eq!(session.value("phase2.security.audit"), "n");
    assert!(session.model.is_unsaved());
    let session = session.press("r");
    assert_eq!(session.value("phase2.security.audit"), "y");
    assert!(!session.model.is_unsaved());
}

#[test]
fn tristates_go_through_their_values() {
    let session = Session::everything().into("Networking support").at("A driver");
    assert_eq!(session.value("NET_DRIVER"), "m");
    let session = session.press(" ");
    assert_eq!(session.value("NET_DRIVER"), "y");
    let session = session.press(" ");
    assert_eq!(session.value("NET_DRIVER"), "n");
    assert_eq!(session.press("m").value("NET_DRIVER"), "m");
}

#[test]
fn a_locked_switch_says_who_holds_it() {
    let session = Session::everything().into("Networking support").at("Fancy things").press("y").at("Core").press(" ");
    assert_eq!(session.notice(), "e unlocks it; fixed: NET_FANCY selects it");
    assert_eq!(session.value("NET_CORE"), "y");
}

#[test]
fn a_choice_is_answered_in_its_list() {
    let session = Session::everything().at("Colour").press("<Enter>jj<Enter>");
    assert_eq!((session.value("BLUE"), session.value("RED")), ("y", "n"));
    let session = session.press("<Enter>k<Enter>");
    assert_eq!(session.value("GREEN"), "y");
    assert!(session.screen(80, 24).contains("*** Only with green ***"));
    assert_eq!(session.press("r").value("RED"), "y");
}

#[test]
fn a_wrong_value_is_not_taken_and_esc_leaves_the_old_one() {
    let session = Session::everything().at("Mask").press("<Enter><C-u>0xfff<Enter>");
    assert!(matches!(session.model.dialogs.last(), Some(Dialog::Edit { .. })), "the editor stays open");
    let session = session.press("<Esc>");
    assert_eq!(session.value("MASK"), "0x1f");
    let session = session.press("<Enter><C-u>0xf<Enter>");
    assert_eq!(session.value("MASK"), "0xf");
}

#[test]
fn the_cursor_follows_its_entry_when_lines_vanish_above_it() {
    let session =
        Session::ours().into("Phase 1: Cluster Resource Provisioning").at("Target platform").press("<Enter>j<Enter>");
    assert_eq!(session.model.row().unwrap().prompt, "Target platform");
    assert_eq!(session.value("phase1.cloud_provider"), "baremetal");
    assert!(session.screen(80, 24).contains("Existing hosts"));
    let end = session.press("G");
    let rows = end.model.rows().len();
    assert_eq!(end.press("jjjj").model.place().cursor, rows - 1);
}

#[test]
fn menus_are_gone_into_and_back_with_the_place_kept() {
    let session = Session::ours().press("j<Right>").at("Networking").press("l<Left><Esc>");
    assert_eq!((session.model.places.len(), session.model.place().cursor), (1, 1));
    let session = session.press("<Esc>");
    assert_eq!(session.notice(), "this is the top; q quits");
}

#[test]
fn saving_asks_the_loop_once_and_leaving_waits_for_it() {
    let session = Session::ours().press("s");
    assert_eq!(session.effects, [], "nothing to save");
    let session = session.into("Phase 3: Deploying Addons").press(" s");
    assert_eq!(session.effects, [Effect::Save { overwrite: false }]);
    let session = session.tell(Msg::Saved);
    assert!(!session.model.is_unsaved());
    assert!(
        session.notice().starts_with("saved .config.json: phase3.run_addons: true -> false; "),
        "what was saved: {}",
        session.notice()
    );
    let session = session.press(" q<Enter>");
    assert_eq!(session.effects.last(), Some(&Effect::Save { overwrite: false }));
    assert_eq!(session.tell(Msg::Saved).effects.last(), Some(&Effect::Leave));
}

#[test]
fn leaving_asks_only_when_something_would_be_lost() {
    assert_eq!(Session::ours().press("q").effects, [Effect::Leave]);
    let session = Session::ours().into("Phase 3: Deploying Addons").press(" <C-c>");
    let Some(Dialog::Quit { lines, .. }) = session.model.dialogs.last() else { panic!("{:?}", session.model.dialogs) };
    assert!(
        session.effects.is_empty() && lines.first().is_some_and(|line| line == "~ phase3.run_addons: true -> false"),
        "{lines:?}"
    );
    let session = session.press("<Esc>");
    assert!(session.model.dialogs.is_empty());
    assert_eq!(session.press("qn").effects, [Effect::Leave]);
}

#[test]
fn what_cannot_be_written_keeps_the_wizard_open() {
    let session = Session::ours()
        .into("Phase 3: Deploying Addons")
        .press(" qs")
        .tell(Msg::NotSaved(vec!["disk full".to_owned()]));
    let session = session.press("<Esc>");
    assert!(session.model.is_unsaved() && !session.model.leaving);
    assert!(!session.effects.contains(&Effect::Leave));
}

#[test]
fn a_file_changed_on_disk_is_overwritten_only_on_request() {
    let conflict = |meets| {
        let session = Session::ours().into("Phase 3: Deploying Addons").press(" s");
        session.tell(Msg::Conflict { lines: vec!["changed".to_owned()], meets })
    };
    let asked = || Effect::Save { overwrite: false };
    assert_eq!(conflict(false).press("<Esc>").effects, [asked()]);
    assert_eq!(conflict(false).press("s").effects.last(), Some(&Effect::Save { overwrite: true }));
    for (key, merge) in [("m", Merge::Mine), ("<Enter>", Merge::Mine), ("r", Merge::Nothing)] {
        assert_eq!(conflict(false).press(key).effects.last(), Some(&Effect::Reread(merge)), "{key}");
    }
    // Where both sides changed one setting, not both can be kept.
    for (key, merge) in [("m", Merge::Mine), ("f", Merge::Theirs)] {
        assert_eq!(conflict(true).press(key).effects.last(), Some(&Effect::Reread(merge)), "{key}");
    }
    assert_eq!(conflict(true).press("s<Enter>r<Esc>").effects, [asked()]);
}

#[test]
fn what_is_typed_first_replaces_a_value_and_a_moved_cursor_keeps_it() {
    let name = |keys: &str| {
        let session = Session::ours().into("Phase 1: Cluster Resource Provisioning").press("<Enter>").press(keys);
        session.press("<Enter>").value("phase1.cluster_name").to_owned()
    };
    assert_eq!([name("prod"), name("<End>2"), name("<Left>1")], ["prod", "kubernetes2", "kubernete1s"]);
}

#[test]
fn one_line_takes_one_pasted_line_and_the_menus_take_none() {
    let paste = |text: &str| Msg::Paste(text.to_owned());
    let session = Session::ours().tell(paste("qqq\nq"));
    assert_eq!(session.effects, []);
    let session = session.into("Phase 1: Cluster Resource Provisioning").press("<Enter>");
    let session = session.tell(paste("two\nlines"));
    assert_eq!(session.notice(), "this takes one line, and 2 were pasted: nothing was inserted");
    assert_eq!(session.tell(paste("one\r\n")).press("<Enter>").value("phase1.cluster_name"), "one");
}

#[test]
fn pasted_lines_become_elements_of_a_list() {
    let (setting, lines) = ("phase2.apiserver.extra_sans", " a.example\n\nb.example,\r\nc.example\n");
    let paste = || Msg::Paste(lines.to_owned());
    let opened = || Session::ours().to(setting).press("<Enter>");
    for session in [opened().tell(paste()), opened().press("a").tell(paste())] {
        assert_eq!(session.press("<Esc>").value(setting), "a.example,b.example,c.example");
    }
    let wrong = opened().tell(Msg::Paste("a.example\nno name\n".to_owned()));
    assert!(wrong.notice().starts_with("nothing was added: `no name`"), "{}", wrong.notice());
    assert_eq!(wrong.press("<Esc>").value(setting), "");
}

#[test]
fn switching_is_only_for_switches() {
    let session = Session::ours().into("Phase 1: Cluster Resource Provisioning").press("y");
    assert_eq!(session.notice(), "this is no switch; Enter opens it");
    let mut other = Session::everything().at("Mask");
    update(&mut other.model, Msg::Switch(Tri::Y));
    assert_eq!(other.value("MASK"), "0x1f");
}

#[test]
fn a_value_that_needs_more_than_turnup_brings_is_in_the_list_of_problems() {
    let mut session = Session::ours();
    for (name, value) in [("phase1.cloud_provider", "aws"), ("phase1.aws.termination_queue", "y")] {
        let symbol = session.model.schema.find(name).unwrap();
        session.model.change(name.to_owned(), |config| config.set(symbol, value)).unwrap();
    }
    let words = "phase1.aws.termination_queue: turnup brings no program that reads the queue";
    assert!(session.model.problems.iter().any(|problem| problem.message.starts_with(words)));
    let off = session.to("phase1.aws.termination_queue").press("n");
    assert!(!off.model.problems.iter().any(|problem| problem.message.starts_with(words)));
}
