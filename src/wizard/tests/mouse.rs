//! The mouse: what is seen can be clicked on.

use super::*;
use crate::wizard::input::Input;

/// Clicks on the text where it stands on the screen.
fn click(session: Session, text: &str) -> Session {
    let area = Rect::new(0, 0, 80, 24);
    let screen = session.screen(area.width, area.height);
    let found = screen.lines().enumerate().find_map(|(y, line)| Some((line[..line.find(text)?].chars().count(), y)));
    let (x, y) = found.unwrap_or_else(|| panic!("no {text:?} on this screen:\n{screen}"));
    let at = Position { x: u16::try_from(x).unwrap(), y: u16::try_from(y).unwrap() };
    match Input::Click(at).message(&session.model, area) {
        Some(msg) => session.tell(msg),
        None => session,
    }
}

#[test]
fn the_guide_is_answered() {
    let session = click(Session::new_file().press("<Enter><Enter>"), "( ) gce");
    assert_eq!(session.value("phase1.cloud_provider"), "local", "the first click only chooses");
    let session = click(session, "( ) gce");
    assert_eq!(session.value("phase1.cloud_provider"), "gce");
    let (before, _) = session.model.guide.as_ref().unwrap().progress(&session.model);
    let session = click(session, "Enter next");
    assert_eq!(session.model.guide.as_ref().unwrap().progress(&session.model).0, before + 1, "keys are buttons");
}

#[test]
fn questions_are_answered() {
    let changed = || Session::ours().to("phase2.security.audit").press(" q");
    assert_eq!(click(changed(), "quit without saving").effects, [Effect::Leave]);
    assert_eq!(click(changed(), "s  save and quit").effects, [Effect::Save { overwrite: false }]);
    let stays = click(changed(), "Save before leaving?");
    assert_eq!((stays.model.dialogs.len(), stays.effects.len()), (1, 0), "a heading is no button");
}

#[test]
fn lists_are_chosen_from() {
    let list =
        Session::ours().to("phase2.network.non_masquerade_cidrs").press("<Enter>a10.0.0.0/8<Enter>a10.1.0.0/16<Enter>");
    let list = click(list, "10.0.0.0/8");
    assert!(matches!(list.model.dialogs.last(), Some(Dialog::Items(items)) if items.cursor == 0));
    assert!(matches!(click(list, "10.0.0.0/8").model.dialogs.last(), Some(Dialog::Cell(_))), "a second click opens");
    let found = click(Session::ours().press("/pod cidr<Down>"), "phase2.pod_cidr");
    assert_eq!(click(found, "phase2.pod_cidr").model.row().unwrap().prompt, "Pod CIDR");
}

#[test]
fn the_path_leads_back() {
    let session = || Session::ours().to("phase2.security.audit");
    assert_eq!(session().model.places.len(), 3);
    assert_eq!(click(session(), "Phase 2: Node Bootstrapping > ").model.places.len(), 2);
    assert_eq!(click(session(), "Top > ").model.places.len(), 1);
    assert_eq!(click(session(), "Security").model.places.len(), 3, "one is there already");
}
