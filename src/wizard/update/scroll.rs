//! Where a long text or list stands.

use crate::wizard::dialog::Dialog;
use crate::wizard::model::Model;
use crate::wizard::msg::Msg;

/// Takes notice of what drawing has found out: nothing is scrolled further than there are lines.
pub(in crate::wizard) fn settle(model: &mut Model, below: usize) {
    let scroll = match (model.dialogs.last_mut(), &mut model.guide) {
        (
            Some(
                Dialog::Details { scroll, .. }
                | Dialog::Keys { scroll }
                | Dialog::Text { scroll, .. }
                | Dialog::Save { scroll, .. }
                | Dialog::Conflict { scroll, .. }
                | Dialog::Pasted { scroll, .. }
                | Dialog::Quit { scroll, .. }
                | Dialog::Recover { scroll, .. },
            ),
            _,
        ) => scroll,
        (Some(Dialog::Preview(preview)), _) => &mut preview.scroll,
        (Some(Dialog::Repair(repair)), _) => &mut repair.scroll,
        (None, Some(guide)) => &mut guide.scroll,
        _ => return,
    };
    *scroll = (*scroll).min(below);
}

/// Scrolls, or moves a cursor, that only the view knows the end of.
pub(super) fn scroll(at: &mut usize, msg: &Msg) {
    match msg {
        Msg::Move(by) => *at = at.saturating_add_signed(*by).min(100_000),
        Msg::First => *at = 0,
        Msg::Last => *at = 100_000,
        Msg::Select(line) => *at = *line,
        _ => {}
    }
}
