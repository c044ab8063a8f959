//! The guide: what the one check says, profiles, rows.

use super::*;
use crate::config::{Problem, ProblemLevel, ProblemSource};
use crate::wizard::guide::Question;

const URL: &str = "phase1.user_data.artifacts_url";

fn found(setting: &str, message: &str) -> Problem {
    Problem {
        level: ProblemLevel::Error,
        symbol: Some(setting.into()),
        at: None,
        source: ProblemSource::File,
        message: message.into(),
    }
}

/// At the summary for gce, before the check has looked.
fn at_the_end() -> Session {
    let mut session = Session::new_file().press("<Enter><Enter>jj<Enter>");
    session.model.has_check = true;
    session.press(&"<Enter>".repeat(12))
}

#[test]
fn the_summary_asks_the_check_and_leads_to_what_it_finds() {
    let session = at_the_end();
    assert_eq!(session.effects.last(), Some(&Effect::Check { then: None }));
    assert!(session.screen(80, 40).contains("Checking whether it can be turned up"));
    let problems = vec![found(URL, "the URL is missing")];
    let session = session.tell(Msg::Checked { problems, then: None });
    let screen = session.screen(80, 24);
    assert!(screen.contains("! the URL is missing") && !screen.contains("Do it: turnup up."), "{screen}");
    let session = session.press("<Enter>");
    let symbol = session.model.typed_symbol().map(|symbol| session.model.schema.name(symbol).to_owned());
    assert_eq!(symbol.as_deref(), Some(URL));
    let session = session.press("https://example.com/turnup<Enter>");
    assert_eq!(session.notice(), format!("as a command: turnup config set {URL}=https://example.com/turnup"));
    assert_eq!(session.model.errors().count(), 0, "what was found is about another value");
    let session = session.press("<Enter>").tell(Msg::Checked { problems: Vec::new(), then: None });
    assert!(session.screen(80, 40).contains("Do it: turnup up."));
}

#[test]
fn what_the_check_found_stays_until_its_setting_changes() {
    let session = at_the_end().tell(Msg::Checked { problems: vec![found(URL, "it is empty")], then: None });
    let session = session.press("<F4>").to("phase2.max_pods").press("<Enter>50<Enter>");
    assert_eq!(session.model.errors().count(), 1, "a change elsewhere");
    assert!(!session.model.is_checked());
    let session = session.to(URL).press("<Enter>https://example.com/<Enter>");
    assert_eq!(session.model.errors().count(), 0);
}

#[test]
fn saving_waits_for_the_check() {
    let session = at_the_end().press("s");
    let Some(Effect::Check { then: Some(then) }) = session.effects.last().cloned() else {
        panic!("{:?}", session.effects)
    };
    let told = |problems| at_the_end().press("s").tell(Msg::Checked { problems, then: Some(then.clone()) });
    assert_eq!(told(Vec::new()).effects.last(), Some(&Effect::Save { overwrite: false }));
    let wrong = told(vec![found(URL, "it is empty")]);
    assert!(matches!(wrong.model.dialogs.last(), Some(Dialog::Save { .. })), "{:?}", wrong.model.dialogs);
    let remark = Problem { level: ProblemLevel::Notice, ..found(URL, "it is odd") };
    assert_eq!(told(vec![remark]).effects.last(), Some(&Effect::Save { overwrite: false }));
}

#[test]
fn a_profile_is_chosen_changed_for_another_and_given_up() {
    let start = || Session::new_file().press("<Enter><Enter>jj<Enter>");
    let answers = |session: &Session| {
        ["phase1.control_plane.count", "phase1.gce.public_addresses", "phase1.ssh.bastion"]
            .map(|name| session.value(name).to_owned())
    };
    let profile = start().press("k<Enter>");
    assert_eq!(answers(&profile), ["3", "n", "create"]);
    let back = profile.press("<Esc>");
    assert!(back.screen(80, 24).contains("(X) gce-ha"));
    let none = back.press("j<Enter>");
    assert_eq!(answers(&none), ["1", "y", "none"]);
    let local = Session::new_file().press("<Enter><Enter><Enter>");
    let offered = local.screen(80, 24);
    assert!(["hardened", "local-ha", "local-minimal"].iter().all(|name| offered.contains(name)), "{offered}");
    assert!(!offered.contains("gce-ha"), "{offered}");
    let custom = Session::new_file().press("<Enter><Enter>jjjjj<Enter>");
    assert_ne!(custom.model.guide.as_ref().unwrap().question, Some(Question::Profile), "there is none for it");
}

#[test]
fn rows_are_added_and_changed_without_leaving_the_question() {
    let hosts = || Session::new_file().press("<Enter><Enter>j<Enter><Enter>");
    let added = hosts().press("am1<Enter>192.0.2.11<Enter><Enter>").press("<Esc><Esc>");
    assert_eq!(
        added.value("phase1.baremetal.hosts"),
        r#"[{"name":"m1","address":"192.0.2.11","role":"control-plane"}]"#
    );
    assert!(added.model.dialogs.is_empty() && added.screen(80, 24).contains("m1: address 192.0.2.11"));
    let more = added.tell(Msg::Paste("w1 192.0.2.21 worker\n".to_owned()));
    assert!(more.screen(80, 24).contains("w1: address 192.0.2.21"));
    let wrong = more.tell(Msg::Paste("w2 worker\n".to_owned()));
    assert_eq!(wrong.notice(), "nothing was added: w2 has no IPv4 address; look with: getent ahostsv4 w2");
    let twins = wrong.press("c").tell(Msg::Paste("w2 192.0.2.21 worker\n".to_owned()));
    assert!(twins.screen(80, 24).contains("w1 and w2 have the same address"), "{}", twins.screen(80, 24));
}

#[test]
fn a_refusal_that_was_typed_ahead_throws_no_answers_away() {
    let recover = || Dialog::Recover { lines: vec!["~ a".into()], scroll: 0, refused: false };
    let once = Session::ours().dialog(recover()).press("n");
    assert_eq!((once.effects.len(), once.notice()), (0, "n once more throws these answers away"));
    assert_eq!(once.press("n").effects, [Effect::Forget]);
}

#[test]
fn a_tree_of_other_people_shows_nothing_that_runs() {
    let mut session = Session::everything();
    session.model.form = Form::DotConfig { prefix: "CONFIG_".into() };
    let session = session.press("v");
    assert!(!session.screen(80, 24).contains("Not what runs"));
    let before = session.screen(80, 24);
    assert_eq!(session.press("<Tab><Tab><Tab>").screen(80, 24), before, "a circle of three");
}
