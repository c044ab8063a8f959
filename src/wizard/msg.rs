//! What can happen to the wizard, in its own words, and what it wants done outside. No terminal
//! types: a session can be replayed.

use crate::config::Problem;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Msg {
    /// Move the cursor, or scroll, by this many lines.
    Move(isize),
    /// Go to the first line.
    First,
    /// Go to the last line.
    Last,
    /// Open what is under the cursor: a menu, an editor, a list to pick from; a switch turns over.
    Open,
    /// Go into the menu under the cursor.
    Enter,
    /// Go back to the menu around this one.
    Back,
    /// Go back until this many menus are open.
    To(usize),
    /// Turn the switch under the cursor over.
    Toggle,
    /// Give the switch under the cursor this value.
    Switch(kconfig::Tri),
    /// Forget the answer under the cursor, and all in its menu.
    Reset,
    /// Take the last change of answers back.
    Undo,
    /// Make the change again that was taken back.
    Redo,
    /// Look for an entry.
    Search,
    /// Go back to where the last jump began.
    Return,
    /// Show entries that cannot be set now, or hide them again.
    ShowAll,
    /// Show names instead of prompts, or prompts again.
    ShowNames,
    /// Say why the entry is locked and what would unlock it.
    Unlock,
    /// List what is wrong.
    Problems,
    /// Show the file as it would be, and what differs.
    Preview,
    /// The next of several views, or the completion of a path.
    Next,
    /// Ask for a file or profile whose answers are taken over.
    Load,
    /// Ask for another file to write.
    SaveAs,
    /// Ask for a file to write what is not so by default.
    SaveMinimal,
    /// Ask the questions one after the other.
    Guide,
    /// Leave the questions for the menus.
    Menus,
    /// Add an element.
    Add,
    /// Remove the element under the cursor.
    Remove,
    /// Move the element under the cursor by this many lines.
    Shift(isize),
    /// Change a number by this much.
    Count(i64),
    /// Put the cursor on this line.
    Select(usize),
    /// Show everything about what is under the cursor.
    Details,
    /// Show all keys.
    Keys,
    /// Write the file.
    Save,
    /// Write the file although something is wrong, or although it changed on disk.
    SaveAnyway,
    /// Write the file and leave.
    SaveAndLeave,
    /// Leave, after a question when something is unsaved.
    Quit,
    /// Leave without writing.
    Discard,
    /// Leave at once; answers that are not saved are kept for the next start.
    Interrupt,
    /// Stop until the shell wakes us up.
    Suspend,
    /// Text for the editor.
    Type(String),
    /// Delete the character before the cursor.
    Erase,
    /// Delete the character under the cursor.
    EraseForward,
    /// Delete everything before the cursor.
    EraseLine,
    /// Move the editor's cursor.
    Cursor(CursorMove),
    /// Take the dialog's answer.
    Accept,
    /// Close the dialog.
    Cancel,
    /// Leave the answers of the session that was cut off alone.
    Refuse,
    /// The file was written.
    Saved,
    /// Another file was written.
    Written(String),
    /// Answers were read: from where, what they are, and what was wrong with them.
    Loaded(String, Box<kconfig::history::Said>, Vec<String>),
    /// The files and directories that begin as what was typed.
    Completed(Vec<String>),
    /// The file could not be written; the lines say why.
    NotSaved(Vec<String>),
    /// The file on disk is not the one that was read.
    Conflict {
        /// What differs.
        lines: Vec<String>,
        /// Whether both sides gave one setting different answers.
        meets: bool,
    },
    /// Take the file as it is now, with the changes that were made here or without.
    Reread(Merge),
    /// That was done.
    Taken {
        /// The answers on disk.
        disk: Box<kconfig::history::Said>,
        /// The answers from now on.
        answers: Box<kconfig::history::Said>,
        /// What became of changes that were made here.
        merge: Merge,
        /// What was wrong in the file.
        remarks: Vec<String>,
    },
    /// The one check has looked at the answers.
    Checked {
        /// What it says of them.
        problems: Vec<Problem>,
        /// What waited for that.
        then: Option<Box<Msg>>,
    },
    /// Lines that were pasted.
    Paste(String),
    /// Draw everything again: another program wrote on the screen.
    Redraw,
}

/// What becomes of changes that were made here when the file is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merge {
    /// They go.
    Nothing,
    /// They are made to the file, also where it was changed itself.
    Mine,
    /// They are made to the file where it was not changed itself.
    Theirs,
}

/// Where the editor's cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CursorMove {
    /// One character to the left.
    Left,
    /// One character to the right.
    Right,
    /// Before the first character.
    Start,
    /// After the last character.
    End,
}

/// What only the loop may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Write the file; `overwrite` also when another process changed it.
    Save {
        /// Whatever is on disk now.
        overwrite: bool,
    },
    /// Write another file; all answers, or only what is not so by default.
    Write {
        /// The file.
        path: String,
        /// What is so by default is left out.
        minimal: bool,
    },
    /// Read the answers of this file.
    Load(String),
    /// Read the answers of this profile.
    LoadProfile(String),
    /// Find the files and directories that begin so.
    Complete(String),
    /// Read the configuration's own file again.
    Reread(Merge),
    /// Ask the one check about the answers; at the next pause where nothing waits for it.
    Check {
        /// What waits for it.
        then: Option<Box<Msg>>,
    },
    /// Draw everything again.
    Redraw,
    /// Read what a session that was cut off left behind.
    Recover,
    /// Throw that away.
    Forget,
    /// Stop until the shell wakes us up.
    Suspend,
    /// End the loop.
    Leave,
    /// End it without a word about what is not saved.
    Interrupt,
}
