//! An answer of the API that many steps ask for at about the same time: asked for once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Result;

/// The last answer, and when it was asked for.
pub(super) struct Latest<T>(Mutex<Option<(Instant, Arc<T>)>>);

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Latest<T> {
    /// The last answer when the question is younger than this, else a new one. A caller that comes
    /// while another one is asking waits for that answer and takes it.
    pub(super) fn get(&self, fresh: Duration, ask: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let came = Instant::now();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((began, answer)) = last.as_ref()
            && came.saturating_duration_since(*began) < fresh
        {
            return Ok(Arc::clone(answer));
        }
        let began = Instant::now();
        let answer = Arc::new(ask()?);
        *last = Some((began, Arc::clone(&answer)));
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn an_answer_is_shared_until_it_is_old() {
        let latest = Latest::default();
        let ask = |fresh: Duration, answer: u32| *latest.get(fresh, || Ok(answer)).unwrap();
        assert_eq!(ask(Duration::from_mins(1), 1), 1);
        assert_eq!(ask(Duration::from_mins(1), 2), 1);
        assert_eq!(ask(Duration::ZERO, 3), 3);
        assert!(latest.get(Duration::ZERO, || Err(crate::Error::transient("away"))).is_err());
        assert_eq!(ask(Duration::from_mins(1), 4), 3, "a question that failed has no answer");
    }
}
