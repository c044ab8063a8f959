//! The one table of keys: it drives the wizard, and its help is made from it.

use kconfig::Tri;

use super::msg::{CursorMove, Merge, Msg};

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
pub(super) enum KeyContext {
    /// The menus.
    Menu,
    /// Looking for an entry.
    Search,
    /// Editing one line.
    Edit,
    /// Typing the name of a file.
    Path,
    /// Picking one of several.
    Pick,
    /// The elements of a list.
    Items,
    /// The fields of an element.
    Fields,
    /// The question before a paste replaces something.
    Pasted,
    /// What would unlock an entry.
    Repair,
    /// What is wrong.
    Problems,
    /// The file as it would be.
    Preview,
    /// Reading.
    Text,
    /// A question that is answered by one of several.
    GuideOptions,
    /// A question that is answered by a text.
    GuideText,
    /// A question that is answered by rows.
    GuideRows,
    /// The end of the questions.
    Summary,
    /// The same when something is wrong.
    SummaryWrong,
    /// The question before leaving.
    Quit,
    /// The question before writing what is wrong.
    Save,
    /// The question before replacing what another process wrote.
    Conflict,
    /// The same where it gave a setting another answer than the user did here.
    ConflictMeets,
    /// The question about answers that were not saved.
    Recover,
}

impl KeyContext {
    /// All contexts, in the order of the help.
    pub(super) const ALL: [Self; 22] = [
        Self::Menu,
        Self::Search,
        Self::Edit,
        Self::Path,
        Self::Pick,
        Self::Items,
        Self::Fields,
        Self::Pasted,
        Self::Repair,
        Self::Problems,
        Self::Preview,
        Self::Text,
        Self::GuideOptions,
        Self::GuideText,
        Self::GuideRows,
        Self::Summary,
        Self::SummaryWrong,
        Self::Quit,
        Self::Save,
        Self::Conflict,
        Self::ConflictMeets,
        Self::Recover,
    ];

    /// The heading in the help.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Menu => "In the menus",
            Self::Search => "While searching",
            Self::Edit => "While editing",
            Self::Path => "While naming a file",
            Self::Pick => "While choosing",
            Self::Items => "In a list",
            Self::Fields => "In an element of a list",
            Self::Pasted => "Before a pasted list is taken",
            Self::Repair => "Before unlocking",
            Self::Problems => "In the list of what is wrong",
            Self::Preview => "In the preview",
            Self::Text => "While reading",
            Self::GuideOptions => "In the guide, choosing",
            Self::GuideText => "In the guide, typing",
            Self::GuideRows => "In the guide, listing",
            Self::Summary => "At the end of the guide",
            Self::SummaryWrong => "At the end of the guide, when something is wrong",
            Self::Quit => "Before leaving",
            Self::Save => "Before saving",
            Self::Conflict => "When the file has changed on disk",
            Self::ConflictMeets => "When one setting has changed there and here",
            Self::Recover => "After a session that was cut off",
        }
    }

    /// Whether characters are text.
    const fn is_typed(self) -> bool {
        matches!(self, Self::Search | Self::Edit | Self::Path | Self::GuideText)
    }
}

/// Keys that do one thing.
pub(super) struct Binding {
    context: KeyContext,
    keys: &'static [Key],
    msg: Msg,
    /// What it does; the foot of the screen shows the bindings that also have a short form.
    pub(super) help: &'static str,
    short: &'static str,
}

const PAGE: isize = 10;

const fn bind(context: KeyContext, keys: &'static [Key], msg: Msg, help: &'static str, short: &'static str) -> Binding {
    Binding { context, keys, msg, help, short }
}

use Key::{Backspace, Char, Ctrl, Delete, Down, End, Enter, Esc, F, Home, Left, PageDown, PageUp, Right, Tab, Up};
use KeyContext::{
    Conflict, ConflictMeets, Edit, Fields, GuideOptions, GuideRows, GuideText, Items, Menu, Pasted, Path, Pick,
    Preview, Problems, Quit, Recover, Repair, Save, Search, Summary, SummaryWrong, Text,
};

static BINDINGS: &[Binding] = &[
    bind(Menu, &[Up, Char('k'), Char('-')], Msg::Move(-1), "one line up", ""),
    bind(Menu, &[Down, Char('j'), Char('+')], Msg::Move(1), "one line down", ""),
    bind(Menu, &[PageUp, Ctrl('u'), Ctrl('b')], Msg::Move(-PAGE), "ten lines up", ""),
    bind(Menu, &[PageDown, Ctrl('d'), Ctrl('f')], Msg::Move(PAGE), "ten lines down", ""),
    bind(Menu, &[Home, Char('g')], Msg::First, "first line", ""),
    bind(Menu, &[End, Char('G')], Msg::Last, "last line", ""),
    bind(Menu, &[Enter], Msg::Open, "open a menu, edit a value, turn a switch over", "open"),
    bind(Menu, &[Right, Char('l')], Msg::Enter, "go into the menu", ""),
    bind(Menu, &[Esc, Left, Char('h'), Backspace], Msg::Back, "back to the menu before", "back"),
    bind(Menu, &[Char(' '), Char('t')], Msg::Toggle, "turn a switch over", ""),
    bind(Menu, &[Char('y')], Msg::Switch(Tri::Y), "switch on", ""),
    bind(Menu, &[Char('m')], Msg::Switch(Tri::M), "build as a module, where the tree has modules", ""),
    bind(Menu, &[Char('n')], Msg::Switch(Tri::N), "switch off", ""),
    bind(
        Menu,
        &[Char('r'), Delete],
        Msg::Reset,
        "forget the answer, or all in this menu: the defaults count again",
        "",
    ),
    bind(Menu, &[Char('/'), F(8)], Msg::Search, "search prompts, names, menus, values and help", "find"),
    bind(Menu, &[Char('i'), Tab, F(2)], Msg::Details, "everything about this entry", "details"),
    bind(Menu, &[Char('u')], Msg::Undo, "undo the last change", "undo"),
    bind(Menu, &[Char('U'), Ctrl('r')], Msg::Redo, "redo what was undone last", ""),
    bind(Menu, &[Char('o'), Ctrl('o')], Msg::Return, "back to where the last jump began", ""),
    bind(Menu, &[Char('e'), F(3)], Msg::Unlock, "why is this locked, and what would unlock it", ""),
    bind(Menu, &[Char('!')], Msg::Problems, "list what is wrong, to go there", ""),
    bind(Menu, &[Char('a'), Char('z'), Char('Z'), F(4)], Msg::ShowAll, "show also what cannot be set now", ""),
    bind(Menu, &[Char('c')], Msg::ShowNames, "names instead of prompts", ""),
    bind(Menu, &[Char('w')], Msg::Guide, "the guide: only the questions that a first cluster needs", ""),
    bind(Menu, &[Char('s'), Ctrl('s'), F(6)], Msg::Save, "save", "save"),
    bind(Menu, &[Char('S')], Msg::SaveAs, "save to another file", ""),
    bind(Menu, &[Char('D')], Msg::SaveMinimal, "save to another file what is not so by default", ""),
    bind(Menu, &[Char('L'), Char('O'), F(7)], Msg::Load, "load a profile or another file", ""),
    bind(Menu, &[Char('?'), F(1)], Msg::Keys, "all keys", "keys"),
    bind(Menu, &[Char('q'), Ctrl('c'), F(9)], Msg::Quit, "quit", "quit"),
    bind(Menu, &[Char('v'), F(5)], Msg::Preview, "the file as it would be, and what differs", "view"),
    bind(Menu, &[Ctrl('z')], Msg::Suspend, "back to the shell for a while", ""),
    bind(Search, &[Enter], Msg::Accept, "go there", "go there"),
    bind(Search, &[Esc, Ctrl('c')], Msg::Cancel, "stay where you were", "stay"),
    bind(Search, &[Up, Ctrl('p')], Msg::Move(-1), "one line up", "up"),
    bind(Search, &[Down, Ctrl('n')], Msg::Move(1), "one line down", "down"),
    bind(Search, &[PageUp], Msg::Move(-PAGE), "ten lines up", ""),
    bind(Search, &[PageDown], Msg::Move(PAGE), "ten lines down", ""),
    bind(Search, &[Backspace, Ctrl('h')], Msg::Erase, "delete to the left", ""),
    bind(Search, &[Ctrl('u')], Msg::EraseLine, "delete all", "clear"),
    bind(Edit, &[Enter], Msg::Accept, "take the value", "OK"),
    bind(Edit, &[Esc, Ctrl('c')], Msg::Cancel, "leave it as it was", "cancel"),
    bind(Edit, &[Left, Ctrl('b')], Msg::Cursor(CursorMove::Left), "one character left", ""),
    bind(Edit, &[Right, Ctrl('f')], Msg::Cursor(CursorMove::Right), "one character right", ""),
    bind(Edit, &[Home, Ctrl('a')], Msg::Cursor(CursorMove::Start), "to the beginning", ""),
    bind(Edit, &[End, Ctrl('e')], Msg::Cursor(CursorMove::End), "to the end", ""),
    bind(Edit, &[Backspace, Ctrl('h')], Msg::Erase, "delete to the left", ""),
    bind(Edit, &[Delete, Ctrl('d')], Msg::EraseForward, "delete to the right", ""),
    bind(Edit, &[Ctrl('u')], Msg::EraseLine, "delete all of it", "clear"),
    bind(Edit, &[Up], Msg::Count(1), "a number: one more", ""),
    bind(Edit, &[Down], Msg::Count(-1), "a number: one less", ""),
    bind(Edit, &[PageUp], Msg::Count(10), "a number: ten more", ""),
    bind(Edit, &[PageDown], Msg::Count(-10), "a number: ten less", ""),
    bind(Edit, &[Tab], Msg::Next, "a path: complete it", ""),
    bind(Path, &[Enter], Msg::Accept, "take this file", "OK"),
    bind(Path, &[Tab], Msg::Next, "complete the path", "complete"),
    bind(Path, &[Esc, Ctrl('c')], Msg::Cancel, "back", "back"),
    bind(Path, &[Left, Ctrl('b')], Msg::Cursor(CursorMove::Left), "one character left", ""),
    bind(Path, &[Right, Ctrl('f')], Msg::Cursor(CursorMove::Right), "one character right", ""),
    bind(Path, &[Home, Ctrl('a')], Msg::Cursor(CursorMove::Start), "to the beginning", ""),
    bind(Path, &[End, Ctrl('e')], Msg::Cursor(CursorMove::End), "to the end", ""),
    bind(Path, &[Backspace, Ctrl('h')], Msg::Erase, "delete to the left", ""),
    bind(Path, &[Delete, Ctrl('d')], Msg::EraseForward, "delete to the right", ""),
    bind(Path, &[Ctrl('u')], Msg::EraseLine, "delete all of it", "clear"),
    bind(Pick, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(Pick, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(Pick, &[Home, Char('g')], Msg::First, "first line", ""),
    bind(Pick, &[End, Char('G')], Msg::Last, "last line", ""),
    bind(Pick, &[Enter, Char(' '), Right, Char('l')], Msg::Accept, "choose this one", "choose"),
    bind(Pick, &[Esc, Left, Char('h'), Char('q'), Ctrl('c')], Msg::Cancel, "leave it as it was", "cancel"),
    bind(Items, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(Items, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(Items, &[Enter, Right, Char('l')], Msg::Open, "change this element", "change"),
    bind(Items, &[Char('a'), Char('+')], Msg::Add, "add an element", "add"),
    bind(Items, &[Char('d'), Char('-'), Delete], Msg::Remove, "remove this element", "remove"),
    bind(Items, &[Char('K')], Msg::Shift(-1), "move it up", "up"),
    bind(Items, &[Char('J')], Msg::Shift(1), "move it down", "down"),
    bind(Items, &[Esc, Char('q'), Left, Char('h'), Char('s')], Msg::Accept, "take the list", "done"),
    bind(Items, &[Ctrl('c')], Msg::Cancel, "leave the list as it was", "cancel"),
    bind(Fields, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(Fields, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(Fields, &[Enter, Right, Char('l')], Msg::Open, "change this field", "change"),
    bind(Fields, &[Char('i'), Tab, F(2)], Msg::Details, "everything about this field", "details"),
    bind(Fields, &[Char('d'), Delete], Msg::Remove, "empty this field", ""),
    bind(Fields, &[Esc, Char('q'), Left, Char('h'), Char('s')], Msg::Accept, "take the element", "done"),
    bind(Fields, &[Ctrl('c')], Msg::Cancel, "leave the element as it was", "cancel"),
    bind(Pasted, &[Enter, Char('y')], Msg::Accept, "take it over", "take it over"),
    bind(Pasted, &[Esc, Char('n'), Char('q'), Ctrl('c')], Msg::Cancel, "leave the list as it was", "cancel"),
    bind(Pasted, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(Pasted, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(Pasted, &[PageUp], Msg::Move(-PAGE), "ten lines up", ""),
    bind(Pasted, &[PageDown], Msg::Move(PAGE), "ten lines down", ""),
    bind(Repair, &[Enter, Char('y')], Msg::Accept, "change all of this", "change all of this"),
    bind(Repair, &[Esc, Char('n'), Char('q'), Left, Char('h'), Ctrl('c')], Msg::Cancel, "leave it as it was", "cancel"),
    bind(Repair, &[Tab], Msg::Next, "the next way, where there are several", ""),
    bind(Repair, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(Repair, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(Repair, &[PageUp, Ctrl('u')], Msg::Move(-PAGE), "ten lines up", ""),
    bind(Repair, &[PageDown, Ctrl('d'), Char(' ')], Msg::Move(PAGE), "ten lines down", ""),
    bind(Repair, &[Home, Char('g')], Msg::First, "to the top", ""),
    bind(Repair, &[End, Char('G')], Msg::Last, "to the end", ""),
    bind(Problems, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(Problems, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(Problems, &[Enter, Right, Char('l')], Msg::Accept, "go there", "go there"),
    bind(Problems, &[Esc, Char('q'), Left, Char('h'), Char('!'), Ctrl('c')], Msg::Cancel, "close", "close"),
    bind(Preview, &[Tab, Right, Char('l')], Msg::Next, "the next view", "next view"),
    bind(Preview, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(Preview, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(Preview, &[PageUp, Ctrl('u')], Msg::Move(-PAGE), "ten lines up", ""),
    bind(Preview, &[PageDown, Ctrl('d'), Char(' ')], Msg::Move(PAGE), "ten lines down", ""),
    bind(Preview, &[Home, Char('g')], Msg::First, "to the top", ""),
    bind(Preview, &[End, Char('G')], Msg::Last, "to the end", ""),
    bind(Preview, &[Esc, Enter, Left, Char('h'), Char('q'), Char('v'), Ctrl('c')], Msg::Cancel, "close", "close"),
    bind(Text, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(Text, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(Text, &[PageUp, Ctrl('u')], Msg::Move(-PAGE), "ten lines up", ""),
    bind(Text, &[PageDown, Ctrl('d'), Char(' ')], Msg::Move(PAGE), "ten lines down", ""),
    bind(Text, &[Home, Char('g')], Msg::First, "to the top", ""),
    bind(Text, &[End, Char('G')], Msg::Last, "to the end", ""),
    bind(
        Text,
        &[Esc, Enter, Tab, Left, Char('h'), Char('q'), Char('i'), Char('?'), Ctrl('c')],
        Msg::Cancel,
        "close",
        "close",
    ),
    bind(GuideOptions, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(GuideOptions, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(GuideOptions, &[Enter, Right, Char('l'), Char(' ')], Msg::Accept, "take this answer, and on", "next"),
    bind(GuideOptions, &[Esc, Left, Char('h'), Backspace], Msg::Back, "the question before", "back"),
    bind(GuideOptions, &[PageUp], Msg::Move(-PAGE), "the text, up", ""),
    bind(GuideOptions, &[PageDown], Msg::Move(PAGE), "the text, down", ""),
    bind(GuideOptions, &[Char('!')], Msg::Problems, "list what is wrong, to go there", ""),
    bind(GuideOptions, &[Char('i'), Tab, F(2)], Msg::Details, "everything about this entry", "details"),
    bind(GuideOptions, &[F(4)], Msg::Menus, "all settings, in menus", "all settings"),
    bind(GuideOptions, &[Char('?'), F(1)], Msg::Keys, "all keys", "keys"),
    bind(GuideOptions, &[Char('q'), Ctrl('c'), F(9)], Msg::Quit, "quit", "quit"),
    bind(GuideText, &[Enter], Msg::Accept, "take this answer, and on", "next"),
    bind(GuideText, &[Esc, Ctrl('o')], Msg::Back, "the question before", "back"),
    bind(GuideText, &[Left, Ctrl('b')], Msg::Cursor(CursorMove::Left), "one character left", ""),
    bind(GuideText, &[Right, Ctrl('f')], Msg::Cursor(CursorMove::Right), "one character right", ""),
    bind(GuideText, &[Home, Ctrl('a')], Msg::Cursor(CursorMove::Start), "to the beginning", ""),
    bind(GuideText, &[End, Ctrl('e')], Msg::Cursor(CursorMove::End), "to the end", ""),
    bind(GuideText, &[Backspace, Ctrl('h')], Msg::Erase, "delete to the left", ""),
    bind(GuideText, &[Delete, Ctrl('d')], Msg::EraseForward, "delete to the right", ""),
    bind(GuideText, &[Ctrl('u')], Msg::EraseLine, "delete all of it", "clear"),
    bind(GuideText, &[Up], Msg::Count(1), "a number: one more", ""),
    bind(GuideText, &[Down], Msg::Count(-1), "a number: one less", ""),
    bind(GuideText, &[PageUp], Msg::Move(-PAGE), "the text, up", ""),
    bind(GuideText, &[PageDown], Msg::Move(PAGE), "the text, down", ""),
    bind(GuideText, &[Tab, F(2)], Msg::Details, "everything about this entry", "details"),
    bind(GuideText, &[F(4)], Msg::Menus, "all settings, in menus", "all settings"),
    bind(GuideText, &[F(1)], Msg::Keys, "all keys", "keys"),
    bind(GuideText, &[Ctrl('c'), F(9)], Msg::Quit, "quit", ""),
    bind(GuideRows, &[Enter], Msg::Accept, "take the list, and on", "next"),
    bind(GuideRows, &[Char('a'), Char('+')], Msg::Add, "add an element; a pasted list adds all of it", "add"),
    bind(GuideRows, &[Char('c'), Right, Char('l'), Char(' ')], Msg::Open, "change the list", "change"),
    bind(GuideRows, &[Esc, Left, Char('h'), Backspace], Msg::Back, "the question before", "back"),
    bind(GuideRows, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(GuideRows, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(GuideRows, &[PageUp], Msg::Move(-PAGE), "the text, up", ""),
    bind(GuideRows, &[PageDown], Msg::Move(PAGE), "the text, down", ""),
    bind(GuideRows, &[Char('!')], Msg::Problems, "list what is wrong, to go there", ""),
    bind(GuideRows, &[Char('i'), Tab, F(2)], Msg::Details, "everything about this entry", "details"),
    bind(GuideRows, &[F(4)], Msg::Menus, "all settings, in menus", "all settings"),
    bind(GuideRows, &[Char('?'), F(1)], Msg::Keys, "all keys", "keys"),
    bind(GuideRows, &[Char('q'), Ctrl('c'), F(9)], Msg::Quit, "quit", "quit"),
    bind(Summary, &[Enter, Char('s')], Msg::SaveAndLeave, "save and leave", "save and leave"),
    bind(Summary, &[Esc, Left, Char('h'), Backspace], Msg::Back, "the last question", "back"),
    bind(Summary, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(Summary, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(Summary, &[PageUp], Msg::Move(-PAGE), "ten lines up", ""),
    bind(Summary, &[PageDown], Msg::Move(PAGE), "ten lines down", ""),
    bind(Summary, &[Home, Char('g')], Msg::First, "to the top", ""),
    bind(Summary, &[End, Char('G')], Msg::Last, "to the end", ""),
    bind(Summary, &[Char('!')], Msg::Problems, "list what is wrong, to go there", ""),
    bind(Summary, &[Char('v'), F(5)], Msg::Preview, "the file as it would be, and what differs", "view"),
    bind(Summary, &[F(4)], Msg::Menus, "all settings, in menus", "all settings"),
    bind(Summary, &[Char('?'), F(1)], Msg::Keys, "all keys", "keys"),
    bind(Summary, &[Char('q'), Ctrl('c'), F(9)], Msg::Quit, "quit", "quit"),
    bind(SummaryWrong, &[Enter, Right, Char('l')], Msg::Accept, "go to the question", "go to the question"),
    bind(SummaryWrong, &[Char('s')], Msg::SaveAndLeave, "save and leave", "save and leave"),
    bind(SummaryWrong, &[Esc, Left, Char('h'), Backspace], Msg::Back, "the last question", "back"),
    bind(SummaryWrong, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(SummaryWrong, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(SummaryWrong, &[PageUp], Msg::Move(-PAGE), "ten lines up", ""),
    bind(SummaryWrong, &[PageDown], Msg::Move(PAGE), "ten lines down", ""),
    bind(SummaryWrong, &[Home, Char('g')], Msg::First, "to the top", ""),
    bind(SummaryWrong, &[End, Char('G')], Msg::Last, "to the end", ""),
    bind(SummaryWrong, &[Char('!')], Msg::Problems, "list what is wrong, to go there", ""),
    bind(SummaryWrong, &[Char('v'), F(5)], Msg::Preview, "the file as it would be, and what differs", "view"),
    bind(SummaryWrong, &[F(4)], Msg::Menus, "all settings, in menus", "all settings"),
    bind(SummaryWrong, &[Char('?'), F(1)], Msg::Keys, "all keys", "keys"),
    bind(SummaryWrong, &[Char('q'), Ctrl('c'), F(9)], Msg::Quit, "quit", "quit"),
    bind(Quit, &[Char('s'), Char('y'), Enter], Msg::SaveAndLeave, "save and quit", "save and quit"),
    bind(Quit, &[Char('n')], Msg::Discard, "quit without saving", "quit without saving"),
    bind(Quit, &[Esc, Char('c'), Char('q'), Ctrl('c')], Msg::Cancel, "stay", "stay"),
    bind(Quit, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(Quit, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(Quit, &[PageUp], Msg::Move(-PAGE), "ten lines up", ""),
    bind(Quit, &[PageDown], Msg::Move(PAGE), "ten lines down", ""),
    bind(Save, &[Char('s'), Char('y')], Msg::SaveAnyway, "save anyway", "save anyway"),
    bind(Save, &[Esc, Enter, Char('c'), Char('n'), Char('q'), Ctrl('c')], Msg::Cancel, "back", "back"),
    bind(Save, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(Save, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(
        Conflict,
        &[Char('m'), Enter],
        Msg::Reread(Merge::Mine),
        "keep both: the file, with your changes",
        "keep both",
    ),
    bind(
        Conflict,
        &[Char('r')],
        Msg::Reread(Merge::Nothing),
        "the file as it is; your changes go, u brings them back",
        "reload",
    ),
    bind(Conflict, &[Char('s')], Msg::SaveAnyway, "save yours over it", "save yours over it"),
    bind(Conflict, &[Esc, Char('q'), Ctrl('c')], Msg::Cancel, "back", "back"),
    bind(Conflict, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(Conflict, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(Conflict, &[PageUp], Msg::Move(-PAGE), "ten lines up", ""),
    bind(Conflict, &[PageDown], Msg::Move(PAGE), "ten lines down", ""),
    bind(
        ConflictMeets,
        &[Char('m')],
        Msg::Reread(Merge::Mine),
        "the changes of both; yours where both changed a setting",
        "yours where both changed it",
    ),
    bind(
        ConflictMeets,
        &[Char('f')],
        Msg::Reread(Merge::Theirs),
        "the changes of both; the file's where both changed a setting",
        "the file's where both changed it",
    ),
    bind(ConflictMeets, &[Esc, Char('q'), Ctrl('c')], Msg::Cancel, "back", "back"),
    bind(ConflictMeets, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(ConflictMeets, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
    bind(ConflictMeets, &[PageUp], Msg::Move(-PAGE), "ten lines up", ""),
    bind(ConflictMeets, &[PageDown], Msg::Move(PAGE), "ten lines down", ""),
    // The safest first.
    bind(Recover, &[Esc, Ctrl('c'), Char('q')], Msg::Quit, "quit and decide later", "quit and decide later"),
    bind(Recover, &[Enter, Char('y')], Msg::Accept, "take them over; u takes that back", "take them over"),
    bind(Recover, &[Char('n'), Char('d')], Msg::Refuse, "throw them away (twice)", "throw them away (twice)"),
    bind(Recover, &[Up, Char('k')], Msg::Move(-1), "one line up", ""),
    bind(Recover, &[Down, Char('j')], Msg::Move(1), "one line down", ""),
];

/// What a key means in a context.
pub(super) fn translate(context: KeyContext, key: Key) -> Option<Msg> {
    let bound = bindings(context).find(|binding| binding.keys.contains(&key)).map(|binding| binding.msg.clone());
    match key {
        Ctrl('z') if bound.is_none() => Some(Msg::Suspend),
        Ctrl('l') if bound.is_none() => Some(Msg::Redraw),
        F(1) if bound.is_none() && context != Text => Some(Msg::Keys),
        Char(c) if bound.is_none() && context.is_typed() => Some(Msg::Type(c.to_string())),
        _ => bound,
    }
}

/// The bindings of a context, in the order of the table.
pub(super) fn bindings(context: KeyContext) -> impl Iterator<Item = &'static Binding> {
    BINDINGS.iter().filter(move |binding| binding.context == context)
}

/// One of the keys at the foot of the screen.
pub(super) struct Hint {
    pub(super) key: String,
    pub(super) what: &'static str,
    pub(super) msg: Msg,
}

/// The keys of the foot of the screen and what they do.
pub(super) fn hints(context: KeyContext) -> impl Iterator<Item = Hint> {
    bindings(context).filter(|binding| !binding.short.is_empty()).map(|binding| {
        let key = binding.keys.first().map(ToString::to_string).unwrap_or_default();
        Hint { key, what: binding.short, msg: binding.msg.clone() }
    })
}

impl Binding {
    /// The names of all its keys.
    pub(super) fn names(&self) -> String {
        self.keys.iter().map(ToString::to_string).collect::<Vec<_>>().join("  ")
    }
}

/// The keys that are no characters.
const NAMED: [(Key, &str); 14] = [
    (Char(' '), "Space"),
    (Enter, "Enter"),
    (Esc, "Esc"),
    (Tab, "Tab"),
    (Backspace, "Backspace"),
    (Delete, "Del"),
    (Up, "Up"),
    (Down, "Down"),
    (Left, "Left"),
    (Right, "Right"),
    (Home, "Home"),
    (End, "End"),
    (PageUp, "PgUp"),
    (PageDown, "PgDn"),
];

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (NAMED.iter().find(|(key, _)| key == self), self) {
            (Some((_, name)), _) => f.write_str(name),
            (None, Char(c)) => write!(f, "{c}"),
            (None, Ctrl(c)) => write!(f, "Ctrl-{}", c.to_ascii_uppercase()),
            (None, F(number)) => write!(f, "F{number}"),
            // Every other key has a name.
            (None, _) => Ok(()),
        }
    }
}

impl Key {
    /// The key of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        if let Some((key, _)) = NAMED.iter().find(|(_, known)| *known == name) {
            return Some(*key);
        }
        let mut chars = name.chars();
        let first = chars.next().filter(|_| chars.next().is_none());
        if let Some(c) = first {
            return Some(Char(c));
        }
        if let Some(letter) = name.strip_prefix("Ctrl-").filter(|rest| rest.chars().count() == 1) {
            return letter.chars().next().map(|c| Ctrl(c.to_ascii_lowercase()));
        }
        name.strip_prefix('F')?.parse().ok().map(F)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_in_one_context() {
        for context in KeyContext::ALL {
            let keys: Vec<Key> = bindings(context).flat_map(|binding| binding.keys).copied().collect();
            for (index, key) in keys.iter().enumerate() {
                assert!(!keys[..index].contains(key), "{key:?} is bound twice in {context:?}");
            }
        }
    }

    #[test]
    fn every_context_can_be_left_and_stopped() {
        for context in KeyContext::ALL {
            assert!(translate(context, Esc).is_some(), "{context:?} has no way back");
            assert!(translate(context, Ctrl('c')).is_some(), "{context:?} ignores Ctrl-C");
        }
    }

    #[test]
    fn the_screen_can_be_drawn_again_everywhere() {
        for context in KeyContext::ALL {
            assert_eq!(translate(context, Ctrl('l')), Some(Msg::Redraw), "{context:?}");
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
