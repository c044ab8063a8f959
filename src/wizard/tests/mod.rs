//! Tests of the wizard without a terminal: keys go in, screens come out.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod answers;
mod files;
mod guide;
mod lists;
mod mouse;
mod screens;
mod ways;

use std::sync::Arc;

use kconfig::{Env, MemoryFiles, Tree, Tri};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier};

use super::dialog::Dialog;
use super::keymap::{Key, translate};
use super::model::{Form, Model, Saved};
use super::msg::{Effect, Merge, Msg};
use super::recording::text;
use super::update::{greet, update};
use super::view::view;
use crate::config::{Schema, Settings, TreeSource};

/// What our own tree lacks: a choice, tristates, select, hex, a locked entry, a secret, a
/// menuconfig.
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

/// A simulated user of the wizard.
struct Session {
    model: Model,
    effects: Vec<Effect>,
}

impl Session {
    fn over(schema: Arc<Schema>, file_exists: bool) -> Self {
        let settings = Settings::from_defaults(Arc::clone(&schema));
        let saved = file_exists.then(|| Saved::Object(settings.json().clone()));
        let mut model = Model::new(schema, settings.config(), ".config.json".to_owned(), Form::Object, saved);
        model.refresh();
        Self { model, effects: Vec::new() }
    }

    fn ours() -> Self {
        Self::over(Schema::load(&TreeSource::embedded()).unwrap(), true)
    }

    /// Without a file, as the loop begins then.
    fn new_file() -> Self {
        let mut session = Self::over(Schema::load(&TreeSource::embedded()).unwrap(), false);
        let profiles = crate::config::Profile::list(&TreeSource::embedded()).unwrap();
        session.model.profiles = super::preset::Preset::all(profiles, &session.model.schema);
        super::update::ask_how(&mut session.model);
        session
    }

    /// Puts the cursor of a list on its last line.
    fn last_option(self) -> Self {
        self.press("G")
    }

    fn dialog(mut self, dialog: Dialog) -> Self {
        self.model.dialogs.push(dialog);
        self
    }

    fn ascii(mut self) -> Self {
        self.model.ascii = true;
        self
    }

    /// Goes to a setting by its name.
    fn to(mut self, name: &str) -> Self {
        let symbol = self.model.schema.find(name).unwrap();
        super::jump::to_symbol(&mut self.model, symbol);
        self.model.refresh();
        self
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
        let drawn = view(&self.model, area, &mut buffer);
        (buffer, drawn.cursor)
    }

    /// Draws as the loop does, which then knows how far something scrolls.
    fn look(mut self) -> Self {
        let drawn = view(&self.model, Rect::new(0, 0, 80, 24), &mut Buffer::empty(Rect::new(0, 0, 80, 24)));
        super::update::settle(&mut self.model, drawn.below);
        self
    }

    fn screen(&self, width: u16, height: u16) -> String {
        text(&self.draw(width, height).0)
    }

    fn notice(&self) -> &str {
        self.model.notice.as_ref().map_or("", |notice| &notice.text)
    }
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
    let letter = name.strip_prefix("C-").and_then(|letter| letter.chars().next());
    let short = [("BS", Key::Backspace), ("PgUp", Key::PageUp), ("PgDn", Key::PageDown)];
    let short = short.into_iter().find(|(known, _)| *known == name).map(|(_, key)| key);
    letter.map(Key::Ctrl).or(short).or_else(|| Key::named(name)).unwrap()
}
