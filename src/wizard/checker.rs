//! The one check on a thread of its own, while no key is pressed.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use super::files::Files;
use super::model::Model;
use super::msg::{Effect, Msg};
use super::update::update;
use crate::config::Problem;

/// The check on a thread of its own.
#[derive(Default)]
pub(super) struct Checker {
    running: Option<(u64, Receiver<Vec<Problem>>)>,
}

impl Checker {
    /// Begins with the answers as they are, unless it is known, or being found out, what is wrong
    /// with them.
    pub(super) fn start(&mut self, model: &Model, files: &dyn Files) {
        if model.is_checked() || self.running.is_some() {
            return;
        }
        let Some(job) = files.check(model) else { return };
        let (sender, receiver) = channel();
        // A wizard that has ended takes no verdict any more.
        let work = move || drop(sender.send(job()));
        if thread::Builder::new().name("check".into()).spawn(work).is_ok() {
            self.running = Some((model.revision, receiver));
        }
    }

    /// Whether a verdict is to be expected soon.
    pub(super) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// The answer to an effect that waits for the verdict on the answers as they are, where it is
    /// being found out already.
    pub(super) fn answer(&mut self, model: &Model, effect: &Effect) -> Option<Msg> {
        let Effect::Check { then } = effect else { return None };
        let (_, receiver) = self.running.take_if(|(revision, _)| *revision == model.revision)?;
        Some(Msg::Checked { problems: receiver.recv().ok()?, then: then.clone() })
    }

    /// Takes the verdict when it is there; whether there is something to draw.
    pub(super) fn take(&mut self, model: &mut Model) -> bool {
        let Some((revision, receiver)) = &self.running else { return false };
        let problems = match receiver.try_recv() {
            Err(TryRecvError::Empty) => return false,
            // The check itself has failed: what is known is all there is.
            Err(TryRecvError::Disconnected) => model.problems.clone(),
            Ok(problems) => problems,
        };
        let is_current = *revision == model.revision;
        self.running = None;
        if !is_current {
            return false;
        }
        // What stands at the foot of the screen is about the last key.
        let notice = model.notice.clone();
        update(model, Msg::Checked { problems, then: None });
        model.notice = notice;
        true
    }
}
