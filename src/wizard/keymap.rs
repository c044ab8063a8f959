//! The one table of keys: it drives the wizard, and its help is made from it.

use kconfig::Tri;

use super::msg::{Msg, Place};

/// A key, whatever terminal it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A printable character.
    Char(char),
    /// A letter with Ctrl.
    Ctrl(char),
    /// A function key.
    F(u8),
    Enter,
    Esc,
    Tab,
    Backspace,
    Delete,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
}

/// What the keys go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    /// The menus.
    Menu,
    /// Editing one line.
    Edit,
    /// Picking one of several.
    Pick,
    /// Reading.
    Text,
    /// The question before leaving.
    Quit,
    /// The question before writing what is wrong.
    Save,
}

impl Context {
    /// All contexts, in the order of the help.
    pub(super) const ALL: [Self; 6] = [Self::Menu, Self::Edit, Self::Pick, Self::Text, Self::Quit, Self::Save];

    /// The heading in the help.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Menu => "In the menus",
            Self::Edit => "While editing",
            Self::Pick => "While choosing",
            Self::Text => "While reading",
            Self::Quit => "Before leaving",
            Self::Save => "Before saving",
        }
    }
}

/// Keys that do one thing.
pub(super) struct Binding {
    context: Context,
    keys: &'static [Key],
    msg: Msg,
    /// What it does; the foot of the screen shows the bindings that also have a short form.
    pub(super) help: &'static str,
    short: &'static str,
}

const PAGE: isize = 10;

const fn bind(context: Context, keys: &'static [Key], msg: Msg, help: &'static str, short: &'static str) -> Binding {
    Binding { context, keys, msg, help, short }
}

use Context::{Edit, Menu, Pick, Quit, Save, Text};
use Key::{Backspace, Char, Ctrl, Delete, Down, End, Enter, Esc, F, Home, Left, PageDown, PageUp, Right, Tab, Up};

static BINDINGS: &[Binding] = &[
    bind(Menu, &[Up, Char('k'), Char('-')], Msg::Move(-1), "one line up", ""),
    bind(Menu, &[Down, Char('j'), Char('+')], Msg::Move(1), "one line down", ""),
    bind(Menu, &[PageUp, Ctrl('u'), Ctrl('b')], Msg::Move(-PAGE), "ten lines up", ""),
    bind(Menu, &[PageDown, Ctrl('d'), Ctrl('f')], Msg::Move(PAGE), "ten lines down", ""),
    bind(Menu, &[Home, Char('g')], Msg::First, "first line", ""),
    bind(Menu, &[End, Char('G')], Msg::Last, "last line", ""),
    bind(Menu, &[Enter], Msg::Open, "open a menu, edit a value, turn a switch over", "open"),
    bind(Menu, &[Right, Char('l')], Msg::Enter, "go into the menu", ""),
    bind(Menu, &[Left, Char('h'), Esc, Backspace], Msg::Back, "back to the menu before", "back"),
    bind(Menu, &[Char(' '), Char('t')], Msg::Toggle, "turn a switch over", "switch"),
    bind(Menu, &[Char('y')], Msg::Switch(Tri::Y), "switch on", ""),
    bind(Menu, &[Char('m')], Msg::Switch(Tri::M), "build as a module, where the tree has modules", ""),
    bind(Menu, &[Char('n')], Msg::Switch(Tri::N), "switch off", ""),
    bind(Menu, &[Char('r'), Delete], Msg::Reset, "forget the answer: the default counts again", ""),
    bind(Menu, &[Char('i'), Tab, F(2)], Msg::Details, "everything about this entry", "details"),
    bind(Menu, &[Char('s'), Ctrl('s'), F(6)], Msg::Save, "save", "save"),
    bind(Menu, &[Char('?'), F(1)], Msg::Keys, "all keys", "keys"),
    bind(Menu, &[Char('q'), Ctrl('c'), F(9)], Msg::Quit, "quit", "quit"),
    bind(Menu, &[Ctrl('z')], Msg::Suspend, "back to the shell for a while", ""),
    bind(Edit, &[Enter], Msg::Accept, "take the value", "take it"),
    bind(Edit, &[Esc, Ctrl('c')], Msg::Cancel, "leave it as it was", "leave it"),
    bind(Edit, &[Left, Ctrl('b')], Msg::Cursor(Place::Left), "one character left", ""),
    bind(Edit, &[Right, Ctrl('f')], Msg::Cursor(Place::Right), "one character right", ""),
    bind(Edit, &[Home, Ctrl('a')], Msg::Cursor(Place::Start), "to the beginning", ""),
    bind(Edit, &[End, Ctrl('e')], Msg::Cursor(Place::End), "to the end", ""),
    bind(Edit, &[Backspace, Ctrl('h')], Msg::Erase, "delete to the left", ""),
    bind(Edit, &[Delete, Ctrl('d')], Msg::EraseForward, "delete to the right", ""),
    bind(Edit, &[Ctrl('u')], Msg::EraseLine, "delete all to the left", "clear"),
    bind(Pick, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(Pick, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(Pick, &[Home, Char('g')], Msg::First, "first line", ""),
    bind(Pick, &[End, Char('G')], Msg::Last, "last line", ""),
    bind(Pick, &[Enter, Char(' '), Right, Char('l')], Msg::Accept, "choose this one", "choose"),
    bind(Pick, &[Esc, Left, Char('h'), Char('q'), Ctrl('c')], Msg::Cancel, "leave it as it was", "leave it"),
    bind(Text, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(Text, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(Text, &[PageUp, Ctrl('u')], Msg::Move(-PAGE), "ten lines up", ""),
    bind(Text, &[PageDown, Ctrl('d'), Char(' ')], Msg::Move(PAGE), "ten lines down", ""),
    bind(Text, &[Home, Char('g')], Msg::First, "to the top", ""),
    bind(
        Text,
        &[Esc, Enter, Tab, Left, Char('h'), Char('q'), Char('i'), Char('?'), Ctrl('c')],
        Msg::Cancel,
        "close",
        "close",
    ),
    bind(Quit, &[Char('s'), Char('y'), Enter], Msg::SaveAndLeave, "save and quit", "save and quit"),
    bind(Quit, &[Char('n'), Char('d')], Msg::Discard, "quit without saving", "quit without saving"),
    bind(Quit, &[Esc, Char('c'), Char('q'), Ctrl('c')], Msg::Cancel, "stay", "stay"),
    bind(Save, &[Char('s'), Char('y')], Msg::SaveAnyway, "save anyway", "save anyway"),
    bind(Save, &[Esc, Enter, Char('c'), Char('n'), Char('q'), Ctrl('c')], Msg::Cancel, "back", "back"),
    bind(Save, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(Save, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
];

/// What a key means in a context.
pub(super) fn translate(context: Context, key: Key) -> Option<Msg> {
    let bound = bindings(context).find(|binding| binding.keys.contains(&key)).map(|binding| binding.msg.clone());
    match key {
        Char(c) if bound.is_none() && context == Edit => Some(Msg::Type(c.to_string())),
        _ => bound,
    }
}

/// The bindings of a context, in the order of the table.
pub(super) fn bindings(context: Context) -> impl Iterator<Item = &'static Binding> {
    BINDINGS.iter().filter(move |binding| binding.context == context)
}

/// The keys of the foot of the screen and what they do.
pub(super) fn hints(context: Context) -> impl Iterator<Item = (String, &'static str)> {
    bindings(context).filter(|binding| !binding.short.is_empty()).map(|binding| {
        let key = binding.keys.first().copied().map(name).unwrap_or_default();
        (key, binding.short)
    })
}

impl Binding {
    /// The names of all its keys.
    pub(super) fn names(&self) -> String {
        self.keys.iter().copied().map(name).collect::<Vec<_>>().join("  ")
    }
}

fn name(key: Key) -> String {
    let fixed = match key {
        Char(' ') => "Space",
        Char(c) => return c.to_string(),
        Ctrl(c) => return format!("Ctrl-{}", c.to_ascii_uppercase()),
        F(number) => return format!("F{number}"),
        Enter => "Enter",
        Esc => "Esc",
        Tab => "Tab",
        Backspace => "Backspace",
        Delete => "Del",
        Up => "Up",
        Down => "Down",
        Left => "Left",
        Right => "Right",
        Home => "Home",
        End => "End",
        PageUp => "PgUp",
        PageDown => "PgDn",
    };
    fixed.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_in_one_context() {
        for context in Context::ALL {
            let keys: Vec<Key> = bindings(context).flat_map(|binding| binding.keys).copied().collect();
            for (index, key) in keys.iter().enumerate() {
                assert!(!keys[..index].contains(key), "{key:?} is bound twice in {context:?}");
            }
        }
    }

    #[test]
    fn every_context_can_be_left_and_stopped() {
        for context in Context::ALL {
            assert!(translate(context, Esc).is_some(), "{context:?} has no way back");
            assert!(translate(context, Ctrl('c')).is_some(), "{context:?} ignores Ctrl-C");
        }
    }

    #[test]
    fn letters_are_text_only_while_editing() {
        assert_eq!(translate(Edit, Char('q')), Some(Msg::Type("q".to_owned())));
        assert_eq!(translate(Edit, Char('?')), Some(Msg::Type("?".to_owned())));
        assert_eq!(translate(Menu, Char('x')), None);
    }

    #[test]
    fn arrow_vi_and_menuconfig_keys_agree() {
        for (arrow, vi) in [(Up, 'k'), (Down, 'j'), (Left, 'h'), (Right, 'l')] {
            assert_eq!(translate(Menu, arrow), translate(Menu, Char(vi)));
        }
        assert_eq!(translate(Menu, Char(' ')), Some(Msg::Toggle));
        assert_eq!(translate(Menu, Char('y')), Some(Msg::Switch(Tri::Y)));
    }
}
