//! Something done for many at once, most of which wait for a host: so many threads, and the results
//! in the order of the list.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// How many hosts are asked at once where they are only looked at.
pub const HOSTS: usize = 16;

/// What `act` gives for each item, in their order. At most `at_once` run at a time; a panic of one
/// goes on in the caller.
pub fn map<T: Sync, R: Send>(items: &[T], at_once: usize, act: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..at_once.clamp(1, items.len().max(1)) {
            let (sender, next, act) = (sender.clone(), &next, &act);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { return };
                    // Who waits for it lives as long as this thread.
                    drop(sender.send((at, act(item))));
                }
            });
        }
    });
    drop(sender);
    let mut results: Vec<(usize, R)> = receiver.into_iter().collect();
    results.sort_unstable_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_done_once_in_order_and_not_too_many_at_once() {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let items: Vec<u64> = (0..40).collect();
        let results = map(&items, 4, |item| {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(std::time::Duration::from_millis(40 - item));
            running.fetch_sub(1, Ordering::SeqCst);
            item * 2
        });
        assert_eq!(results, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!((2..=4).contains(&most.load(Ordering::SeqCst)), "{most:?}");
        assert!(map(&Vec::<u8>::new(), 9, |_| ()).is_empty());
    }
}
