//! Ways through the answers: the guide, searching, unlocking, undoing, lists, files.

use super::*;

#[test]
fn every_change_can_be_taken_back_and_made_again() {
    let session = Session::ours()
        .to("phase1.num_nodes")
        .press("<Enter>10<Enter>")
        .to("phase1.cluster_name")
        .press("<Enter><End>x<Enter>");
    let session = session.to("phase2.security.audit").press(" ");
    let values = |session: &Session| {
        ["phase1.num_nodes", "phase1.cluster_name", "phase2.kube_context_name", "phase2.security.audit"]
            .map(|name| session.value(name).to_owned())
    };
    assert_eq!(values(&session), ["10", "kubernetesx", "kubernetesx", "n"]);
    assert_eq!(session.notice(), "as a command: turnup config set phase2.security.audit=n");
    let session = session.press("uu");
    assert_eq!(values(&session), ["10", "kubernetes", "kubernetes", "y"]);
    assert_eq!(session.notice(), "undone: turnup config set phase1.cluster_name=kubernetesx");
    let session = session.press("uu");
    assert_eq!(session.notice(), "there is nothing to undo");
    assert!(!session.model.is_unsaved(), "all is as it was");
    let session = session.press("UUUU");
    assert_eq!((values(&session)[3].as_str(), session.notice()), ("n", "there is nothing to redo"));
    let session = session.press("u").to("phase1.num_nodes").press("<Enter><C-u>3<Enter>U");
    assert_eq!(session.notice(), "there is nothing to redo", "a new change ends what could be redone");
}

#[test]
fn searching_jumps_and_finds_the_way_back() {
    let session = Session::ours().into("Phase 3: Deploying Addons").press("/max_pods<Enter>");
    assert_eq!(session.model.row().unwrap().prompt, "Maximum pods per node");
    let session = session.press("/service_cidr<Enter>oo");
    assert_eq!(session.model.places.len(), 2, "back in the addons");
    assert_eq!(session.press("o").notice(), "you have not jumped");
    let hidden = Session::ours().press("/aws.region<Enter>");
    assert!(hidden.model.show_all && hidden.model.row().unwrap().hidden, "what cannot be set is shown for the jump");
    let member = Session::everything().press("/blue<Enter>");
    assert_eq!(member.model.row().unwrap().prompt, "Colour", "a member is where its choice is");
}

#[test]
fn what_is_locked_is_unlocked_with_the_fewest_answers() {
    let session = Session::ours().to("phase1.gce.region").press("e<Enter>");
    assert_eq!(session.value("phase1.cloud_provider"), "gce");
    assert_eq!(session.notice(), "as a command: turnup config set phase1.cloud_provider=gce");
    assert_eq!(session.press("u").value("phase1.cloud_provider"), "local", "one change, undone at once");
    let core =
        Session::everything().into("Networking support").at("Fancy things").press("y").at("Core").press("e<Enter>");
    assert_eq!((core.value("NET_FANCY"), core.value("NET_CORE")), ("n", "n"));
    let bastion = Session::ours().to("phase1.ssh.bastion_host").press("e");
    let Some(Dialog::Repair(repair)) = bastion.model.dialogs.last() else { panic!("{:?}", bastion.model.dialogs) };
    assert!(repair.effects[0].starts_with("! phase1.ssh.bastion_host: "), "what is wrong then: {:?}", repair.effects);
    let mut machine = Session::ours().to("phase1.ssh.bastion_machine_type").press("e");
    for (number, target) in ["gce", "aws", "azure", "gce"].into_iter().enumerate() {
        let ways = machine.screen(80, 24);
        let way = format!("(way {} of 3; Tab shows the next)", number % 3 + 1);
        assert!(ways.contains(&way) && ways.contains(&format!("phase1.cloud_provider={target} ")), "{ways}");
        machine = machine.press("<Tab>");
    }
    let free = Session::ours().to("phase1.num_nodes").press("e");
    assert_eq!(free.notice(), "it can be changed: Enter; i tells why it has its value");
}

#[test]
fn a_locked_menu_is_unlocked_and_a_value_says_what_it_follows_from() {
    let session =
        Session::ours().press("a").into("Phase 1: Cluster Resource Provisioning").at("Amazon EC2").press("e<Enter>");
    assert_eq!(session.value("phase1.cloud_provider"), "aws");
    let exposure = Session::ours().to("phase1.cloud_provider").press("<Enter>jj<Enter>");
    let exposure = exposure.to("phase1.control_plane.count").press("<Enter>3<Enter>").to("phase1.api.exposure");
    let details = exposure.press("i").screen(200, 50);
    assert!(details.contains("Because     phase1.control_plane.count is 3: set here"), "{details}");
}

#[test]
fn rows_that_differ_from_what_runs_or_from_the_profile_are_marked() {
    let mut session = Session::new_file().press("<Enter><Enter><Enter>").press("<Up><Up><Enter>");
    assert_eq!(session.model.profile.as_ref().unwrap().name, "local-ha");
    session = session.press("<F4>").to("phase1.num_nodes");
    assert!(!session.screen(200, 50).contains("\n^ "), "nothing differs yet");
    let session = session.press("<Enter>5<Enter>");
    let screen = session.screen(200, 50);
    assert!(screen.contains("\n^   Number of worker hosts") && screen.contains("Profile     local-ha: 2"), "{screen}");
    let mut session = session;
    session.model.applied = Some(
        [("phase1.num_nodes", "5"), ("phase1.cluster_name", "old")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
    );
    let screen = session.press("<Enter>6<Enter>").screen(200, 50);
    assert!(screen.contains("\n~   Number of worker hosts") && screen.contains("Runs with   5"), "{screen}");
    assert!(screen.contains("\n~ Cluster name"), "{screen}");
}

#[test]
fn a_window_that_is_too_small_can_be_left() {
    use crate::wizard::input::Input;
    let area = Rect::new(0, 0, 30, 5);
    let leave = |session: Session| {
        assert_eq!(Input::Key(Key::Char('q')).message(&session.model, area), None);
        let msg = Input::Key(Key::Ctrl('c')).message(&session.model, area).unwrap();
        session.tell(msg).effects
    };
    assert_eq!(leave(Session::ours()), [Effect::Leave]);
    assert_eq!(leave(Session::ours().to("phase2.security.audit").press(" ")), [Effect::Interrupt], "answers are kept");
}

#[test]
fn a_long_paste_takes_no_long_time() {
    let text = "a".repeat(200_000);
    let start = std::time::Instant::now();
    for session in [
        Session::ours().to("phase1.cluster_name").press("<Enter>"),
        Session::ours().press("/"),
        Session::new_file().press("<Enter>"),
        Session::ours().press("S"),
    ] {
        let session = session.tell(Msg::Paste(text.clone()));
        session.screen(80, 24);
        session.screen(200, 50);
    }
    // Half a minute when each character was looked at from all the others.
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}

#[test]
fn lists_and_records_are_edited_row_by_row() {
    let session = Session::ours()
        .to("phase2.network.non_masquerade_cidrs")
        .press("<Enter>a10.0.0.0/8<Enter>a10.1.0.0/16<Enter>K<Esc>");
    assert_eq!(session.value("phase2.network.non_masquerade_cidrs"), "10.1.0.0/16,10.0.0.0/8");
    let session = session.press("<Enter>d<Enter><C-u>172.16.0.0/12<Enter><Esc>");
    assert_eq!(session.value("phase2.network.non_masquerade_cidrs"), "172.16.0.0/12");
    assert_eq!(
        session.press("<Enter>d<C-c>").value("phase2.network.non_masquerade_cidrs"),
        "172.16.0.0/12",
        "left as it was"
    );
    let groups = Session::ours().to("phase1.node_groups").press("<Enter>aweb<Enter><Esc><Esc>");
    let Some(Dialog::Fields(fields)) = groups.model.dialogs.last() else {
        panic!("what is needed is missing: {:?}", groups.model.dialogs)
    };
    assert!(fields.wrong.is_some());
}

#[test]
fn numbers_count_within_their_range() {
    let session = Session::ours().to("phase1.num_nodes").press("<Enter><Up><Up><Down><Enter>");
    assert_eq!(session.value("phase1.num_nodes"), "2");
    let session = session.press("<Enter><PgDn><Enter>");
    assert_eq!(session.value("phase1.num_nodes"), "0", "never below the range");
    let hex = Session::everything().at("Mask").press("<Enter><Up><Enter>");
    assert_eq!(hex.value("MASK"), "0x20");
}

#[test]
fn the_guide_asks_only_what_matters_for_the_target_and_goes_back_at_will() {
    let session = Session::new_file().press("<Enter>");
    assert_eq!(session.model.guide.as_ref().unwrap().progress(&session.model), (1, 6));
    let session = session.press("<C-u>prod<Enter>");
    assert_eq!(session.value("phase1.cluster_name"), "prod");
    let session = session.press("jj<Enter>");
    assert_eq!(
        (session.value("phase1.cloud_provider"), session.model.guide.as_ref().unwrap().progress(&session.model).1),
        ("gce", 14)
    );
    let session = session.press("<Esc>kk<Enter><Enter><Enter><Enter><Enter>");
    assert_eq!(session.value("phase1.cloud_provider"), "local");
    assert!(session.model.guide.as_ref().unwrap().is_at_end(), "the summary");
    let session = session.press("<Esc><Enter><Enter>");
    assert_eq!(session.effects, [Effect::Save { overwrite: false }]);
    let session = Session::new_file().press("<Enter> X<Enter>");
    assert_eq!(session.model.guide.as_ref().unwrap().progress(&session.model).0, 1, "a wrong answer is not taken");
    let clash = Session::new_file().press("<Enter><Enter>jj<Enter><Enter><Enter>2<Enter>");
    let at = |session: &Session| session.model.guide.as_ref().unwrap().progress(&session.model).0;
    let stays = at(&clash);
    assert!(clash.notice().contains("survive no more losses"), "{}", clash.notice());
    assert_eq!(at(&clash.press("<Enter>")), stays + 1, "given again it is taken");
    let menus = Session::new_file().press("<Enter><Enter><F4>");
    assert!(menus.model.guide.is_none());
    assert_eq!(menus.model.row().unwrap().prompt, "Target platform", "at the same entry");
}

#[test]
fn loading_is_one_change() {
    let profile = Session::new_file().press("j<Enter><Enter>");
    assert_eq!(profile.effects.len(), 1);
    let Effect::LoadProfile(name) = &profile.effects[0] else { panic!("{:?}", profile.effects) };
    crate::config::Profile::find(&TreeSource::embedded(), name).unwrap();
    let mut settings = Settings::from_defaults(Arc::clone(&profile.model.schema));
    settings.set("phase2.etcd.quota_gb", "4").unwrap();
    let said = settings.config().said();
    let before = profile.value("phase2.etcd.quota_gb").to_owned();
    let session = profile.tell(Msg::Loaded("the file".into(), Box::new(said), Vec::new()));
    assert_ne!(session.value("phase2.etcd.quota_gb"), before);
    assert_eq!(session.press("u").value("phase2.etcd.quota_gb"), before);
}

#[test]
fn paths_are_completed_as_far_as_they_agree() {
    let found = || Msg::Completed(vec!["out/a.json".into(), "out/ab.json".into()]);
    let session = Session::ours().press("So").tell(Msg::Next).tell(found());
    assert_eq!(session.effects, [Effect::Complete("o".into())]);
    assert!(session.screen(80, 24).contains("out/ab.json"));
    let session = session.press(".json<Enter>");
    assert_eq!(session.effects.last(), Some(&Effect::Write { path: "out/a.json".into(), minimal: false }));
    let minimal = Session::ours().press("Dm.json<Enter>");
    assert_eq!(minimal.effects, [Effect::Write { path: "m.json".into(), minimal: true }]);
}

#[test]
fn a_whole_menu_is_reset_at_once() {
    let session = Session::ours()
        .to("phase2.pod_cidr")
        .press("<Enter><C-u>10.200.0.0/16<Enter>")
        .to("phase2.max_pods")
        .press("<Enter><C-u>50<Enter>");
    let session = session.press("<Esc><Esc>").at("Phase 2: Node Bootstrapping").press("r");
    assert_eq!((session.value("phase2.pod_cidr"), session.value("phase2.max_pods")), ("10.244.0.0/16", "110"));
    assert!(session.notice().starts_with("as a command: turnup config unset phase2.pod_cidr"), "{}", session.notice());
    assert_eq!(session.press("u").value("phase2.max_pods"), "50");
}

#[test]
fn every_dialog_is_left_by_esc_and_leaves_no_other_behind() {
    let list = || Session::ours().to("phase2.network.non_masquerade_cidrs").press("<Enter>");
    let groups = || Session::ours().to("phase1.node_groups").press("<Enter>");
    for (session, left) in vec![
        (list().press("a"), 1),
        (list().press("a10.0.0.0/8<Enter><Enter>"), 1),
        (list(), 0),
        (groups().press("a"), 2),
        (groups().press("a<Esc>"), 1),
        (groups().press("a<Enter>"), 2),
        (groups().press("aj<Enter>"), 2),
        (Session::ours().press("/x"), 0),
        (Session::ours().press("v"), 0),
        (Session::ours().press("?"), 0),
        (Session::ours().press("S"), 0),
        (Session::ours().to("phase1.gce.region").press("e"), 0),
        (Session::ours().to("phase1.num_nodes").press("<Enter>1000<Enter>!"), 0),
        (Session::ours().to("phase1.num_nodes").press("<Enter>"), 0),
    ] {
        let before = session.model.dialogs.clone();
        assert_eq!(session.press("<Esc>").model.dialogs.len(), left, "{before:?}");
    }
    let zones = Session::ours()
        .press("/cloud_provider<Enter><Enter>Gk<Enter>")
        .to("phase1.azure.zones")
        .press("<Enter>a<Enter>");
    assert_eq!(zones.model.dialogs.len(), 1, "what is picked for an element of one part is the element");
}

#[test]
fn scrolling_back_from_the_end_begins_at_once() {
    let session = Session::ours().press("?").look().press("G").look();
    let Some(Dialog::Keys { scroll: end }) = session.model.dialogs.last().cloned() else {
        panic!("{:?}", session.model.dialogs)
    };
    let session = session.press("<PgDn><PgDn>").look().press("k").look();
    assert_eq!(session.model.dialogs.last(), Some(&Dialog::Keys { scroll: end - 1 }));
}

#[test]
fn a_jump_comes_back_to_its_entry_and_hides_again_what_it_showed() {
    let session =
        Session::ours().into("Phase 1: Cluster Resource Provisioning").at("Node groups").press("/gce.region<Enter>");
    assert!(session.model.show_all);
    let session = session.press("o");
    assert_eq!(session.model.row().unwrap().prompt, "Node groups");
    assert!(!session.model.show_all);
}

#[test]
fn taking_back_leaves_a_menu_that_is_not_shown_any_more() {
    let session = Session::ours().to("phase1.gce.region").press("e<Enter>").to("phase1.gce.region");
    assert!(session.model.places.len() > 2);
    let session = session.press("a").press("u");
    let open: Vec<bool> =
        session.model.places.iter().skip(1).map(|place| session.model.config.node_visible(place.menu)).collect();
    assert!(session.model.show_all || open.iter().all(|open| *open), "{open:?}");
}

#[test]
fn what_is_hidden_says_when_it_is_shown() {
    let session = Session::everything().press("a").at("Only with green").press("e");
    assert_eq!(session.notice(), "shown only when GREEN");
}
