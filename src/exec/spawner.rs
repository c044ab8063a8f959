//! The one thread that starts children.
//!
//! The kernel sends the parent-death signal when the *thread* that started a child ends, not the
//! process. A step's thread ends long before a connection that it opened, so all children are
//! started on a thread that never ends. It does nothing else.

use std::sync::mpsc::{self, Sender};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::{io, thread};

type Job = Box<dyn FnOnce() + Send>;

static SPAWNER: LazyLock<Mutex<Option<Sender<Job>>>> = LazyLock::new(|| {
    let (sender, receiver) = mpsc::channel::<Job>();
    let thread = thread::Builder::new().name("spawner".into()).spawn(move || {
        for job in receiver {
            job();
        }
    });
    Mutex::new(thread.is_ok().then_some(sender))
});

/// Runs this on the spawner's thread and hands back what it returns.
pub(super) fn spawn_child<T: Send + 'static>(job: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let (answer, question) = mpsc::channel();
    let sender = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let gone = || io::Error::other("the thread that starts programs is gone");
    let wrapped: Job = Box::new(move || drop(answer.send(job())));
    sender.ok_or_else(gone)?.send(wrapped).map_err(|_| gone())?;
    question.recv().map_err(|_| gone())?
}
