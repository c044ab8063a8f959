//! What can happen to the wizard, in its own words, and what it wants done outside. No terminal types: a session can be replayed.

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
    /// Turn the switch under the cursor over.
    Toggle,
    /// Give the switch under the cursor this value.
    Switch(kconfig::Tri),
    /// Forget the answer under the cursor.
    Reset,
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
    Cursor(Place),
    /// Take the dialog's answer.
    Accept,
    /// Close the dialog.
    Cancel,
    /// The file was written.
    Saved,
    /// The file could not be written; the lines say why.
    NotSaved(Vec<String>),
    /// The file on disk is not the one that was read.
    Conflict(String),
}

/// Where the editor's cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Write the file; `overwrite` also when somebody else changed it.
    Save {
        /// Whatever is on disk now.
        overwrite: bool,
    },
    /// Stop until the shell wakes us up.
    Suspend,
    /// End the loop.
    Leave,
}
