//! Lists: elements that are given up, pastes that ask first, pastes of terminals that do not mark
//! them.

use crossterm::event::{Event, KeyCode};

use super::*;
use crate::wizard::burst;

const HOSTS: &str = "phase1.baremetal.hosts";

/// At the question about hosts, of which there are these.
fn hosts(lines: &str) -> Session {
    Session::new_file().press("<Enter><Enter>j<Enter><Enter>").tell(Msg::Paste(lines.to_owned()))
}

fn names(session: &Session) -> Vec<String> {
    let hosts: Vec<serde_json::Value> = serde_json::from_str(session.value(HOSTS)).unwrap();
    hosts.iter().map(|host| host["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_incomplete_element_is_left_after_one_question() {
    let groups = || Session::ours().to("phase1.node_groups").press("<Enter>aweb<Enter>");
    let asked = groups().press("<C-u><Esc>d<Esc>");
    let Some(Dialog::Fields(fields)) = asked.model.dialogs.last() else { panic!("{:?}", asked.model.dialogs) };
    assert!(fields.wrong.is_some(), "something is missing");
    assert!(asked.screen(80, 24).contains("Esc once more leaves the element as it was"), "{}", asked.screen(80, 24));
    let left = asked.press("<Esc>");
    assert!(matches!(left.model.dialogs.last(), Some(Dialog::Items(items)) if items.rows.is_empty()));
    assert!(left.notice().starts_with("the element is left as it was"), "{}", left.notice());
    // A key between the two asks again.
    let moved = groups().press("<Esc>d<Esc>j<Esc>");
    assert!(matches!(moved.model.dialogs.last(), Some(Dialog::Fields(_))), "{:?}", moved.model.dialogs);
    // What was there before stays as it was.
    let changed = hosts("m1 192.0.2.11 master\n").press("c<Enter>jd<Esc><Esc><Esc>");
    assert!(changed.model.dialogs.is_empty());
    assert!(changed.value(HOSTS).contains("192.0.2.11"), "{}", changed.value(HOSTS));
}

#[test]
fn a_paste_that_replaces_or_assumes_something_shows_it_first() {
    let session = hosts("m1 192.0.2.11 master\nw1 192.0.2.21 worker zone=a\n");
    assert_eq!(session.notice(), "added 2: m1, w1", "nothing to ask about");
    let session = session.tell(Msg::Paste("w1 192.0.2.99\nw2 192.0.2.22\n".to_owned()));
    let screen = session.screen(80, 24);
    for shown in [
        "Take this list over?",
        "added 1: w2",
        "changed w1: address 192.0.2.21 -> 192.0.2.99, no zone any more (was a)",
        "without a role, so workers: w2",
    ] {
        assert!(screen.contains(shown), "{shown}: {screen}");
    }
    let left = session.press("<Esc>");
    assert_eq!(names(&left), ["m1", "w1"]);
    let taken = left.tell(Msg::Paste("w1 192.0.2.99\nw2 192.0.2.22\n".to_owned())).press("<Enter>");
    assert_eq!(names(&taken), ["m1", "w1", "w2"]);
    assert!(taken.value(HOSTS).contains("192.0.2.99"));
    let undone = taken.press("<F4>u");
    assert!(undone.value(HOSTS).contains("192.0.2.21"), "u takes it back");
    // In the dialog of the list, too.
    let dialog = hosts("m1 192.0.2.11 master\n").press("c").tell(Msg::Paste("m1 192.0.2.12\n".to_owned()));
    assert!(matches!(dialog.model.dialogs.last(), Some(Dialog::Pasted { .. })));
    assert!(dialog.press("<Enter><Esc>").value(HOSTS).contains("192.0.2.12"));
}

#[test]
fn the_hint_stays_when_the_hosts_have_mistakes() {
    let screen = hosts("m1 192.0.2.11 master\nm2 192.0.2.12 master\n").screen(80, 24);
    let lines: Vec<&str> = screen.lines().map(str::trim).collect();
    let text = lines.join(" ");
    assert!(text.contains("m1: it has no host_key, and phase1.ssh.known_hosts_file names no file"), "{text}");
    assert!(text.contains("Or paste them: NAME ADDRESS ROLE in each line"), "{text}");
}

#[test]
fn what_is_wrong_is_said_whole_at_the_foot_of_the_screen() {
    let session = hosts("m1 192.0.2.11 master\n").press("<F4>");
    let text = session.screen(80, 24).lines().map(str::trim).collect::<Vec<_>>().join(" ");
    assert!(text.contains("phase1.ssh.known_hosts_file names no file; look with: ssh-keyscan -t ed25519 192.0.2.11"));
}

#[test]
fn the_end_of_the_guide_scrolls_to_its_ends_when_something_is_wrong() {
    let session = hosts("m1 192.0.2.11 master\nm2 192.0.2.12 master\n").press("<Enter><Enter><Enter><Enter>");
    assert_eq!(session.model.context(), crate::wizard::keymap::KeyContext::SummaryWrong);
    let top = session.screen(80, 24);
    let end = session.press("<End>").look();
    assert!(!end.screen(80, 24).contains("turnup plan would refuse this"), "{}", end.screen(80, 24));
    assert_eq!(end.press("j<Home>").look().screen(80, 24), top);
}

/// What becomes of these characters when they arrive without a pause.
fn arrives(session: &Session, text: &str) -> bool {
    let key = |letter| Event::Key(if letter == '\n' { KeyCode::Enter } else { KeyCode::Char(letter) }.into());
    let mut events = text.chars().map(key);
    let first = events.next().unwrap();
    if !burst::may_begin(&session.model, &first) {
        return false;
    }
    let (keys, end) = burst::collect(first, || Ok::<_, std::convert::Infallible>(events.next())).unwrap();
    assert_eq!((keys.len(), end), (text.chars().count(), None));
    assert_eq!(burst::text(&keys), text);
    burst::is_paste(&session.model, text)
}

#[test]
fn lines_that_arrive_without_a_pause_are_a_paste_into_a_list_alone() {
    let lines = "m1 192.0.2.11 master\nw1 192.0.2.21 worker\n";
    let question = Session::new_file().press("<Enter><Enter>j<Enter><Enter>");
    assert!(arrives(&question, lines));
    assert!(!arrives(&question, "am1\n192.0.2.11\n"), "keys of a script");
    assert!(!arrives(&question, "m1 192.0.2.11 master\n"), "one line");
    let names = "a.example\nb.example\n";
    let list = || Session::ours().to("phase2.apiserver.extra_sans").press("<Enter>");
    assert!(arrives(&list(), names) && arrives(&list().press("a"), names));
    assert!(!arrives(&list(), "jj\nno name\n"));
    assert!(!arrives(&Session::ours(), lines), "menus take no lines");
    assert!(!arrives(&Session::new_file().press("<Enter>"), names), "one line takes one line");
}

#[test]
fn other_keys_end_what_arrives_without_a_pause() {
    let mut events =
        [KeyCode::Char('b'), KeyCode::Esc, KeyCode::Char('c')].map(|code| Event::Key(code.into())).into_iter();
    let first = Event::Key(KeyCode::Char('a').into());
    let (keys, end) = burst::collect(first, || Ok::<_, std::convert::Infallible>(events.next())).unwrap();
    assert_eq!((burst::text(&keys).as_str(), end), ("ab", Some(Event::Key(KeyCode::Esc.into()))));
}
