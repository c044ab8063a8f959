//! Every screen and dialog. Snapshots show text; styles are asserted apart.

use super::*;
use crate::wizard::keymap::{KeyContext, bindings};

/// Every screen and dialog at both sizes.
macro_rules! screens {
    ($($name:ident: $session:expr;)*) => {
        $(
            #[test]
            fn $name() {
                let session = $session;
                insta::assert_snapshot!(concat!(stringify!($name), "_80x24"), session.screen(80, 24));
                insta::assert_snapshot!(concat!(stringify!($name), "_200x50"), session.screen(200, 50));
            }
        )*
    };
}

screens! {
    top: Session::ours();
    provision: Session::ours().into("Phase 1: Cluster Resource Provisioning").at("Number of worker hosts");
    baremetal: Session::ours().into("Phase 1: Cluster Resource Provisioning").at("Target platform").press("<Enter>j<Enter>");
    networking: Session::ours().into("Phase 2: Node Bootstrapping").into("Networking").at("CNI plugin on the hosts");
    security: Session::ours().into("Phase 2: Node Bootstrapping").into("Security").press(" ");
    addons: Session::ours().into("Phase 3: Deploying Addons").at("Number of CoreDNS replicas");
    wrong: Session::ours().into("Phase 2: Node Bootstrapping").into("Networking").at("Service CIDR").press("<Enter><C-u>10.244.3.0/24<Enter>");
    wrong_from_above: Session::ours().into("Phase 2: Node Bootstrapping").into("Networking").at("Service CIDR").press("<Enter><C-u>10.244.3.0/24<Enter><Esc><Esc>");
    edit_right: Session::ours().into("Phase 1: Cluster Resource Provisioning").press("<Enter><End>-2");
    edit_wrong: Session::ours().into("Phase 1: Cluster Resource Provisioning").press("<Enter> 2");
    edit_number: Session::ours().into("Phase 1: Cluster Resource Provisioning").at("Number of worker hosts").press("<Enter>10");
    edit_clash: Session::ours().into("Phase 1: Cluster Resource Provisioning").at("Number of worker hosts").press("<Enter>1000");
    edit_secret: Session::everything().at("Token").press("<Enter>swordfish");
    pick_word: Session::ours().into("Phase 1: Cluster Resource Provisioning").at("Target platform").press("<Enter>j");
    pick_member: Session::everything().at("Colour").press("<Enter>j");
    details: Session::ours().into("Phase 1: Cluster Resource Provisioning").at("Target platform").press("i");
    keys: Session::ours().press("?");
    keys_scrolled: Session::ours().press("?<PgDn><PgDn>");
    quit_question: Session::ours().into("Phase 3: Deploying Addons").press(" q");
    quit_new_file: Session::over(Schema::load(&TreeSource::embedded()).unwrap(), false).press("q");
    save_question: Session::ours().into("Phase 2: Node Bootstrapping").into("Networking").at("Pod CIDR").press("<Enter><C-u>10.96.0.0/12<Enter>s");
    conflict: Session::ours().tell(in_conflict(false));
    conflict_meets: Session::ours().tell(in_conflict(true));
    not_saved: Session::ours().tell(Msg::NotSaved(vec!["error: cannot write .config.json".to_owned(), "next: free disk space".to_owned()]));
    every_kind: Session::everything().at("Colour");
    begin_question: Session::new_file();
    guide_options: Session::new_file().press("<Enter><Enter>");
    guide_text: Session::new_file().press("<Enter>");
    guide_wrong: Session::new_file().press("<Enter> X<Enter>");
    guide_summary: Session::new_file().press("<Enter><Enter><Enter><Enter><Enter><Enter><Enter>");
    profiles: Session::new_file().press("j<Enter>");
    load_file: Session::new_file().press("j<Enter>").last_option().press("<Enter>prov").tell(Msg::Completed(vec!["provision.json".into(), "provisions/".into()]));
    search_nothing_typed: Session::ours().press("/");
    search: Session::ours().press("/node cidr");
    search_help: Session::ours().press("/firewall");
    search_nothing: Session::ours().press("/xyzzyx");
    jumped: Session::ours().press("/gce.region<Enter>");
    unlock: Session::ours().press("/gce.region<Enter>e");
    unlock_select: Session::everything().into("Networking support").at("Fancy things").press("y").at("Core").press("e");
    hidden: Session::everything().press("a");
    names: Session::ours().into("Phase 2: Node Bootstrapping").into("Networking").press("c");
    list_empty: Session::ours().to("phase2.network.non_masquerade_cidrs").press("<Enter>");
    list: Session::ours().to("phase2.network.non_masquerade_cidrs").press("<Enter>a10.0.0.0/8<Enter>a10.1.0.0/16<Enter>");
    list_element: Session::ours().to("phase2.network.non_masquerade_cidrs").press("<Enter>a10.0.0");
    records: Session::ours().to("phase1.node_groups").press("<Enter>");
    guide_profile: Session::new_file().press("<Enter><Enter>jj<Enter>kkk");
    guide_hosts_none: Session::new_file().press("<Enter><Enter>j<Enter><Enter>");
    guide_hosts: hosts_in_the_guide();
    guide_hosts_pasted_over: hosts_in_the_guide().tell(Msg::Paste("w1 192.0.2.99\nw2 192.0.2.22\n".to_owned()));
    guide_wrong_at_the_end: hosts_in_the_guide().press("<Enter><Enter><Enter><Enter>");
    menu_of_records: hosts_in_the_guide().press("<F4>");
    records_filled: hosts_in_the_guide().press("c");
    record_filled: hosts_in_the_guide().press("c<Enter>jjj");
    record_field_help: hosts_in_the_guide().press("c<Enter>jjji");
    preview_of_records: hosts_in_the_guide().press("<F4>v<Tab>");
    record: Session::ours().to("phase1.node_groups").press("<Enter>a");
    record_missing: Session::ours().to("phase1.node_groups").press("<Enter>a<Esc>");
    record_word: Session::ours().to("phase1.node_groups").press("<Enter>aj<Enter>");
    problems: Session::ours().to("phase1.num_nodes").press("<Enter>1000<Enter>!");
    preview: Session::ours().to("phase1.num_nodes").press("<Enter>0<Enter>v");
    preview_saved: Session::ours().to("phase1.cluster_name").press("<Enter><C-u>prod<Enter>v<Tab>");
    preview_defaults: Session::ours().to("phase1.cluster_name").press("<Enter><C-u>prod<Enter>v<Tab><Tab>");
    preview_applied: Session::ours().press("v<Tab><Tab><Tab>");
    recover: Session::ours().dialog(Dialog::Recover { lines: vec!["~ phase1.num_nodes: 1 -> 3".into()], scroll: 0, refused: false });
    ascii: Session::ours().ascii().into("Phase 1: Cluster Resource Provisioning").at("Target platform").press("<Enter>");
    submenu_of_a_switch: Session::everything().into("Networking support").at("Fancy things").press(" ").at("Core");
    deep: Session::everything().into("Deep").into("Deeper");
}

/// The file was changed; also a setting that was changed here.
fn in_conflict(meets: bool) -> Msg {
    let changed =
        ["Changed in the file:", "~ phase1.num_nodes: 1 -> 4", "", "Changed here:", "~ phase1.num_nodes: 1 -> 3"];
    let why = [".config.json was changed by another process meanwhile", ""];
    let lines = why.into_iter().chain(changed.into_iter().take(if meets { 5 } else { 2 }));
    Msg::Conflict { lines: lines.map(ToOwned::to_owned).collect(), meets }
}

/// Three hosts, pasted as lines, at the question about them.
fn hosts_in_the_guide() -> Session {
    let lines =
        "m1 192.0.2.11 master\nm2 192.0.2.12 master ssh_user=ops labels=rack=a,disk=ssd\nw1 192.0.2.21 worker\n";
    Session::new_file().press("<Enter><Enter>j<Enter><Enter>").tell(Msg::Paste(lines.to_owned()))
}

#[test]
fn first_words_about_a_wrong_file() {
    let mut session = Session::ours();
    greet(
        &mut session.model,
        vec![".config.json:3:5: there is no setting `phase1.num_node`; did you mean `phase1.num_nodes`?".to_owned()],
    );
    insta::assert_snapshot!(session.screen(80, 24));
    assert!(session.press("<Esc>").model.dialogs.is_empty());
}

#[test]
fn too_small_a_window_says_so_and_nothing_panics() {
    let sessions = vec![
        Session::ours(),
        Session::ours().press("?"),
        Session::ours().press("l<Enter>"),
        Session::everything().press("jjj<Enter>"),
        Session::new_file(),
        Session::new_file().press("<Enter>"),
        Session::new_file().press("<Enter><Enter>"),
        Session::new_file().press("<Enter><Enter><Enter><Enter><Enter><Enter><Enter>"),
        Session::ours().press("/net"),
        Session::ours().to("phase1.gce.region").press("e"),
        Session::ours().to("phase1.node_groups").press("<Enter>"),
        Session::ours().to("phase1.node_groups").press("<Enter>a"),
        Session::ours().to("phase2.network.non_masquerade_cidrs").press("<Enter>a"),
        Session::ours().to("phase1.num_nodes").press("<Enter>1000<Enter>!"),
        Session::ours().press("v"),
        Session::ours().press("S"),
        Session::ours().dialog(Dialog::Recover { lines: vec!["~ a".repeat(40)], scroll: 0, refused: false }),
        Session::ours().dialog(Dialog::Quit { lines: vec!["~ a: 1 -> 2".to_owned()], scroll: 0 }),
    ];
    insta::assert_snapshot!(sessions[0].screen(40, 5), @"
    This window is too small: 40x5. The
    wizard needs 44x12. Ctrl-C leaves;
    answers that are not saved are offered
    at the next start.
    ");
    for session in &sessions {
        for width in [0, 1, 2, 10, 43, 44, 45, 60, 109, 110, 111] {
            for height in [0, 1, 2, 11, 12, 13, 14, 24] {
                session.draw(width, height);
            }
        }
    }
}

#[test]
fn long_menus_keep_the_cursor_in_sight() {
    let session = Session::ours().into("Phase 2: Node Bootstrapping").into("Networking").press("G");
    let (buffer, _) = session.draw(60, 12);
    let screen = text(&buffer);
    assert!(screen.contains("Maximum pods per node") && screen.contains('↑'), "{screen}");
    let up = session.press("g").screen(60, 12);
    assert!(up.contains("Pod CIDR") && up.contains('↓'), "{up}");
}

#[test]
fn the_cursor_and_mistakes_stand_out_with_and_without_colour() {
    let mut session = Session::ours()
        .into("Phase 2: Node Bootstrapping")
        .into("Networking")
        .at("Service CIDR")
        .press("<Enter><C-u>10.244.3.0/24<Enter>");
    let find = |buffer: &Buffer, what: &str| {
        let y = text(buffer).lines().position(|line| line.contains(what)).unwrap();
        u16::try_from(y).unwrap()
    };
    let (buffer, _) = session.draw(80, 24);
    let row = find(&buffer, "Service CIDR");
    assert!(buffer[(5, row)].modifier.contains(Modifier::REVERSED));
    assert!(!buffer[(5, row - 1)].modifier.contains(Modifier::REVERSED));
    assert_eq!((buffer[(0, row)].symbol(), buffer[(0, row)].fg), ("!", Color::Red));
    session.model.colour = false;
    let (plain, _) = session.draw(80, 24);
    assert!(plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset), "no colour at all");
    assert!(plain[(0, row)].modifier.contains(Modifier::BOLD));
}

#[test]
fn the_terminal_cursor_stands_where_typing_goes() {
    let session = Session::ours().into("Phase 1: Cluster Resource Provisioning").press("<Enter><Left>");
    let (buffer, cursor) = session.draw(80, 24);
    let cursor = cursor.unwrap();
    assert_eq!(buffer[(cursor.x, cursor.y)].symbol(), "s", "before the last letter of `kubernetes`");
    let long = session.press(&format!("<End>{}", "x".repeat(100)));
    let (buffer, cursor) = long.draw(80, 24);
    let cursor = cursor.unwrap();
    assert!(cursor.x < 80 && buffer[(cursor.x - 1, cursor.y)].symbol() == "x");
}

#[test]
fn secrets_are_never_on_the_screen() {
    let session = Session::everything().at("Token").press("<Enter>swordfish");
    assert!(!session.screen(200, 50).contains("swordfish"));
    let session = session.press("<Enter>");
    assert_eq!(session.value("TOKEN"), "swordfish");
    assert!(!session.screen(200, 50).contains("swordfish"));
    let session = session.press("v");
    assert!(!session.screen(200, 50).contains("swordfish") && session.screen(200, 50).contains("(secret)"));
    let session = session.press("<Tab>").press("<Esc>u");
    assert!(!session.notice().contains("swordfish"), "{}", session.notice());
    let wrong = session.press("U<Enter> X");
    assert!(wrong.model.is_typing_a_secret(), "so a recording has stars");
    assert!(!wrong.screen(200, 50).contains("sword"));
}

#[test]
fn the_help_lists_every_key_of_the_table() {
    let screen = Session::ours().press("?").screen(120, 400);
    for binding in KeyContext::ALL.into_iter().flat_map(bindings) {
        assert!(screen.contains(binding.help) && screen.contains(&binding.names()), "{}: {screen}", binding.help);
    }
}

#[test]
fn clicks_choose_and_open_what_they_hit() {
    let area = Rect::new(0, 0, 80, 24);
    let click =
        |session: Session, x: u16, y: u16| match crate::wizard::view::hit(&session.model, area, Position { x, y }) {
            Some(msg) => session.tell(msg),
            None => session,
        };
    let session = click(Session::ours(), 10, 3);
    assert_eq!(session.model.place().cursor, 1);
    let session = click(session, 10, 3);
    assert_eq!(session.model.places.len(), 2, "a second click opens");
    let session = click(session, 79, 12);
    assert_eq!(session.model.places.len(), 2, "beside the list nothing happens");
    let keys = click(session, 2, 23);
    assert_eq!(keys.model.places.len(), 3, "the hints in the last line are buttons");
    let pick = click(Session::new_file(), 20, 11);
    let Some(Dialog::Pick(list)) = pick.model.dialogs.last() else { panic!("the first click only chooses") };
    assert_eq!(list.cursor, 1);
    let opened = click(pick, 20, 11);
    assert!(
        matches!(opened.model.dialogs.last(), Some(Dialog::Pick(list)) if list.title == "Take over the answers of")
    );
}

#[test]
fn ascii_terminals_get_ascii() {
    for session in [
        Session::ours().ascii(),
        Session::ours().ascii().press("?"),
        Session::new_file().ascii().press("<Enter><Enter>"),
        Session::ours().ascii().press("/net"),
        Session::ours().ascii().press("v"),
    ] {
        let screen = session.screen(80, 24);
        assert!(screen.is_ascii(), "{}", screen.chars().filter(|c| !c.is_ascii()).collect::<String>());
    }
}
