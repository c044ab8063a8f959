//! What this process, as a service of systemd's, says of how it stands: `systemctl status` shows
//! it, and `turnup status` asks every host for it. A process that systemd did not start says
//! nothing. It decides nothing.

use sd_notify::NotifyState;

/// The most characters of it: one line of a terminal or a few.
const LONGEST: usize = 600;

/// What was said last.
#[derive(Debug, Default)]
pub struct UnitStatus(String);

impl UnitStatus {
    /// Says what is not as it should be now; nothing of it is said while all is well.
    pub fn set<T: AsRef<str>>(&mut self, troubles: impl IntoIterator<Item = T>) {
        let text = text_of(troubles);
        if text != self.0 {
            // The journal has it as well: without systemd nothing is lost.
            drop(sd_notify::notify(&[NotifyState::Status(&text)]));
            self.0 = text;
        }
    }
}

/// One line: each line of a message to systemd is one of its own.
fn text_of<T: AsRef<str>>(troubles: impl IntoIterator<Item = T>) -> String {
    let mut text = String::new();
    for trouble in troubles {
        text += if text.is_empty() { "" } else { "; " };
        text += &trouble.as_ref().replace(char::is_control, " ");
    }
    if text.chars().count() > LONGEST { text.chars().take(LONGEST).chain(['…']).collect() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_one_line_that_ends() {
        assert_eq!(text_of([""; 0]), "");
        assert_eq!(text_of(["a is out\nREADY=1", "b"]), "a is out READY=1; b");
        assert_eq!(text_of(["ä".repeat(2000)]).chars().count(), LONGEST + 1);
    }
}
