//! Tests of the wizard without a terminal: keys go in, screens come out.
//!
//! Snapshots show text; styles are asserted apart.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use kconfig::{Env, MemoryFiles, Tree, Tri};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier};

use super::keymap::{Key, translate};
use super::model::{Dialog, Model};
use super::msg::{Effect, Msg};
use super::update::{greet, update};
use super::view::view;
use crate::config::{Schema, Settings, TreeSource};

/// What our own tree lacks: a choice, tristates, select, hex, a locked entry, a secret, a menuconfig.
const EVERYTHING: &str = r#"
mainmenu "Everything there is"

config MODULES
	bool "Modules"
	modules
	default y

menuconfig NET
	bool "Networking support"
	default y
	help
	  Turn this off and the menu behind it vanishes.

config NET_DRIVER
	tristate "A driver"
	depends on NET
	default m

config NET_CORE
	bool "Core"
	depends on NET

config NET_FANCY
	bool "Fancy things"
	depends on NET
	select NET_CORE

choice
	prompt "Colour"
	default RED
	help
	  Which one.

config RED
	bool "Red"

config GREEN
	bool "Green"

config BLUE
	bool "Blue"

endchoice

config MASK
	hex "Mask"
	range 0x0 0xff
	default 0x1f

#: secret
#: format = empty or dns-label
config TOKEN
	string "Token"

comment "Only with green"
	depends on GREEN

menu "Deep"

menu "Deeper"

config DEEPEST
	string "Deepest"
	default "down here"

endmenu

endmenu
"#;

/// A person at the wizard.
struct Session {
    model: Model,
    effects: Vec<Effect>,
}

impl Session {
    fn over(schema: Arc<Schema>, file_exists: bool) -> Self {
        let settings = Settings::from_defaults(Arc::clone(&schema));
        let saved = file_exists.then(|| settings.json().clone());
        Self { model: Model::new(schema, settings.config(), ".config.json".to_owned(), saved), effects: Vec::new() }
    }

    fn ours() -> Self {
        Self::over(Schema::load(&TreeSource::embedded()).unwrap(), true)
    }

    fn everything() -> Self {
        let files = MemoryFiles::new([("Kconfig", EVERYTHING)]);
        Self::over(Schema::new(Tree::load("Kconfig", &files, &Env::empty()).unwrap()).unwrap(), true)
    }

    /// Presses keys: characters as they are, others as `<Enter>`, `<C-c>`.
    fn press(mut self, keys: &str) -> Self {
        for key in parse_keys(keys) {
            if let Some(msg) = translate(self.model.context(), key) {
                self = self.tell(msg);
            }
        }
        self
    }

    fn tell(mut self, msg: Msg) -> Self {
        self.effects.extend(update(&mut self.model, msg));
        self
    }

    /// Puts the cursor on the entry with this prompt.
    fn at(mut self, prompt: &str) -> Self {
        let cursor = self.model.rows().iter().position(|row| row.prompt == prompt).unwrap();
        self.model.places.last_mut().unwrap().cursor = cursor;
        self
    }

    /// Goes into the menu with this prompt.
    fn into(self, prompt: &str) -> Self {
        self.at(prompt).press("l")
    }

    fn value(&self, name: &str) -> &str {
        self.model.config.value(self.model.schema.find(name).unwrap())
    }

    fn draw(&self, width: u16, height: u16) -> (Buffer, Option<Position>) {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        let cursor = view(&self.model, area, &mut buffer);
        (buffer, cursor)
    }

    fn screen(&self, width: u16, height: u16) -> String {
        text(&self.draw(width, height).0)
    }

    fn notice(&self) -> &str {
        self.model.notice.as_ref().map_or("", |notice| &notice.text)
    }
}

fn text(buffer: &Buffer) -> String {
    let line = |y: u16| {
        let symbols: String = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
        symbols.trim_end().to_owned()
    };
    (0..buffer.area.height).map(line).collect::<Vec<_>>().join("\n")
}

fn parse_keys(keys: &str) -> Vec<Key> {
    let mut parsed = Vec::new();
    let mut rest = keys;
    while let Some(c) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|inner| inner.split_once('>'));
        let (key, after) = match named {
            Some((name, after)) => (named_key(name), after),
            None => (Key::Char(c), &rest[c.len_utf8()..]),
        };
        parsed.push(key);
        rest = after;
    }
    parsed
}

fn named_key(name: &str) -> Key {
    match name {
        "Enter" => Key::Enter,
        "Esc" => Key::Esc,
        "Tab" => Key::Tab,
        "BS" => Key::Backspace,
        "Down" => Key::Down,
        "Up" => Key::Up,
        "Left" => Key::Left,
        "Right" => Key::Right,
        "Home" => Key::Home,
        "End" => Key::End,
        "PgDn" => Key::PageDown,
        other => Key::Ctrl(other.strip_prefix("C-").unwrap().chars().next().unwrap()),
    }
}

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
    baremetal: Session::ours().into("Phase 1: Cluster Resource Provisioning").at("Target: where the hosts come from").press("<Enter>j<Enter>");
    networking: Session::ours().into("Phase 2: Node Bootstrapping").into("Networking").at("Pod network plugin on the hosts");
    security: Session::ours().into("Phase 2: Node Bootstrapping").into("Security").press(" ");
    addons: Session::ours().into("Phase 3: Deploying Addons").at("Number of CoreDNS pods");
    wrong: Session::ours().into("Phase 2: Node Bootstrapping").into("Networking").at("Addresses of Services").press("<Enter><C-u>10.244.3.0/24<Enter>");
    wrong_from_above: Session::ours().into("Phase 2: Node Bootstrapping").into("Networking").at("Addresses of Services").press("<Enter><C-u>10.244.3.0/24<Enter><Esc><Esc>");
    edit_right: Session::ours().into("Phase 1: Cluster Resource Provisioning").press("<Enter>-2");
    edit_wrong: Session::ours().into("Phase 1: Cluster Resource Provisioning").press("<Enter> 2");
    edit_number: Session::ours().into("Phase 1: Cluster Resource Provisioning").at("Number of worker hosts").press("<Enter>0");
    edit_clash: Session::ours().into("Phase 1: Cluster Resource Provisioning").at("Number of worker hosts").press("<Enter>000");
    edit_secret: Session::everything().at("Token").press("<Enter>swordfish");
    pick_word: Session::ours().into("Phase 1: Cluster Resource Provisioning").at("Target: where the hosts come from").press("<Enter>j");
    pick_member: Session::everything().at("Colour").press("<Enter>j");
    details: Session::ours().into("Phase 1: Cluster Resource Provisioning").at("Target: where the hosts come from").press("i");
    keys: Session::ours().press("?");
    keys_scrolled: Session::ours().press("?<PgDn><PgDn>");
    quit_question: Session::ours().into("Phase 3: Deploying Addons").press(" q");
    quit_new_file: Session::over(Schema::load(&TreeSource::embedded()).unwrap(), false).press("q");
    save_question: Session::ours().into("Phase 2: Node Bootstrapping").into("Networking").at("Addresses of pods").press("<Enter><C-u>10.96.0.0/12<Enter>s");
    conflict: Session::ours().tell(Msg::Conflict(".config.json was changed by someone else meanwhile".to_owned()));
    not_saved: Session::ours().tell(Msg::NotSaved(vec!["error: cannot write .config.json".to_owned(), "next: free disk space".to_owned()]));
    every_kind: Session::everything().at("Colour");
    submenu_of_a_switch: Session::everything().into("Networking support").at("Fancy things").press(" ").at("Core");
    deep: Session::everything().into("Deep").into("Deeper");
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
    let sessions = [
        Session::ours(),
        Session::ours().press("?"),
        Session::ours().press("l<Enter>"),
        Session::everything().press("jjj<Enter>"),
    ];
    insta::assert_snapshot!(sessions[0].screen(40, 5), @"
    This window is too small: 40x5. The
    wizard needs 44x12; make it larger.
    ");
    for session in &sessions {
        for width in [0, 1, 2, 10, 43, 44, 45, 60, 109, 110, 111] {
            for height in [0, 1, 2, 11, 12, 13, 24] {
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
    assert!(screen.contains("Pods a node may run") && screen.contains('↑'), "{screen}");
    let up = session.press("g").screen(60, 12);
    assert!(up.contains("Addresses of pods") && up.contains('↓'), "{up}");
}

#[test]
fn the_cursor_and_mistakes_stand_out_with_and_without_colour() {
    let mut session = Session::ours()
        .into("Phase 2: Node Bootstrapping")
        .into("Networking")
        .at("Addresses of Services")
        .press("<Enter><C-u>10.244.3.0/24<Enter>");
    let find = |buffer: &Buffer, what: &str| {
        let y = text(buffer).lines().position(|line| line.contains(what)).unwrap();
        u16::try_from(y).unwrap()
    };
    let (buffer, _) = session.draw(80, 24);
    let row = find(&buffer, "Addresses of Services");
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
    assert_eq!(session.notice(), "fixed: NET_FANCY selects it");
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
    let session = Session::ours()
        .into("Phase 1: Cluster Resource Provisioning")
        .at("Target: where the hosts come from")
        .press("<Enter>j<Enter>");
    assert_eq!(session.model.row().unwrap().prompt, "Target: where the hosts come from");
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
    assert_eq!(session.notice(), "saved .config.json");
    let session = session.press(" q<Enter>");
    assert_eq!(session.effects.last(), Some(&Effect::Save { overwrite: false }));
    assert_eq!(session.tell(Msg::Saved).effects.last(), Some(&Effect::Leave));
}

#[test]
fn leaving_asks_only_when_something_would_be_lost() {
    assert_eq!(Session::ours().press("q").effects, [Effect::Leave]);
    let session = Session::ours().into("Phase 3: Deploying Addons").press(" <C-c>");
    assert_eq!((session.effects.len(), session.model.dialogs.last()), (0, Some(&Dialog::Quit)));
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
    let session =
        Session::ours().into("Phase 3: Deploying Addons").press(" s").tell(Msg::Conflict("changed".to_owned()));
    assert_eq!(session.press("<Esc>").effects, [Effect::Save { overwrite: false }]);
    let session = Session::ours()
        .into("Phase 3: Deploying Addons")
        .press(" s")
        .tell(Msg::Conflict("changed".to_owned()))
        .press("s");
    assert_eq!(session.effects.last(), Some(&Effect::Save { overwrite: true }));
}

#[test]
fn pasted_text_stays_on_one_line_and_out_of_the_menus() {
    let session = Session::ours().tell(Msg::Type("qqq".to_owned()));
    assert_eq!(session.effects, []);
    let session = session
        .into("Phase 1: Cluster Resource Provisioning")
        .press("<Enter><C-u>")
        .tell(Msg::Type("two\nlines".to_owned()));
    assert_eq!(session.press("<Enter>").value("phase1.cluster_name"), "twolines");
}

#[test]
fn secrets_are_never_on_the_screen() {
    let session = Session::everything().at("Token").press("<Enter>swordfish");
    assert!(!session.screen(200, 50).contains("swordfish"));
    let session = session.press("<Enter>");
    assert_eq!(session.value("TOKEN"), "swordfish");
    assert!(!session.screen(200, 50).contains("swordfish"));
    let wrong = session.press("<Enter> X");
    assert!(!wrong.screen(200, 50).contains("sword"));
}

#[test]
fn the_help_lists_every_key_of_the_table() {
    let screen = Session::ours().press("?").screen(100, 100);
    for part in ["Space", "Ctrl-Z", "PgUp", "turn a switch over", "Before leaving", "save and quit"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
}

#[test]
fn switching_is_only_for_switches() {
    let session = Session::ours().into("Phase 1: Cluster Resource Provisioning").press("y");
    assert_eq!(session.notice(), "this is no switch; Enter opens it");
    let mut other = Session::everything().at("Mask");
    update(&mut other.model, Msg::Switch(Tri::Y));
    assert_eq!(other.value("MASK"), "0x1f");
}
