//! A thread for work outside the duty cycles.

use std::io;
use std::sync::atomic::{Ordering, fence};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::StopSignal;

/// A thread for work outside the duty cycles. Drop raises its stop signal, wakes it and awaits its end.
#[derive(Debug)]
pub struct BackgroundThread {
    stop: StopSignal,
    /// `None` once it was joined.
    handle: Option<JoinHandle<()>>,
}

impl BackgroundThread {
    /// Starts a thread that calls `run`, which must return after the stop signal. If `run` waits, it must
    /// [park](std::thread::park_timeout): drop wakes only a parked thread.
    ///
    /// # Errors
    /// The system could not start a thread.
    pub fn start(name: &str, run: impl FnOnce(&StopSignal) + Send + 'static) -> io::Result<BackgroundThread> {
        let stop = StopSignal::new();
        let stopped = stop.clone();
        let handle = thread::Builder::new().name(name.to_owned()).spawn(move || run(&stopped))?;
        Ok(BackgroundThread { stop, handle: Some(handle) })
    }

    /// Starts a thread that repeats `work`, and calls it once more after the stop signal. `work` returns the
    /// time until the next call, or `None` to end the thread.
    ///
    /// # Errors
    /// The system could not start a thread.
    pub fn repeat(
        name: &str,
        mut work: impl FnMut() -> Option<Duration> + Send + 'static,
    ) -> io::Result<BackgroundThread> {
        BackgroundThread::start(name, move |stop| {
            loop {
                // Read the signal before the call: the last call then sees all writes from before the stop.
                let is_last = stop.is_stopped();
                fence(Ordering::Acquire);
                match work() {
                    Some(rest) if !is_last => thread::park_timeout(rest),
                    _ => return,
                }
            }
        })
    }

    /// Wakes the thread if it is parked.
    pub fn wake(&self) {
        if let Some(handle) = &self.handle {
            handle.thread().unpark();
        }
    }

    /// True when the thread has ended although it was not stopped: `run` or `work` ended it, or panicked.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.handle.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for BackgroundThread {
    fn drop(&mut self) {
        self.stop.stop();
        self.wake();
        if let Some(handle) = self.handle.take() {
            handle.join().ok(); // the panic hook has reported a panic there
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tickpath_lockfree::Counter;

    use super::*;

    #[test]
    fn the_work_runs_once_more_at_the_end() {
        let (calls, seen) = (Arc::new(Counter::default()), Arc::new(Counter::default()));
        let (called, see) = (Arc::clone(&calls), Arc::clone(&seen));
        let input = Arc::new(Counter::default());
        let read = Arc::clone(&input);
        let thread = BackgroundThread::repeat("test", move || {
            called.add(1);
            see.set(read.read());
            Some(Duration::from_secs(3_600))
        })
        .unwrap();
        while calls.read() == 0 {
            thread::yield_now();
        }
        assert!(!thread.has_ended());
        input.set(7);
        drop(thread);
        assert_eq!((calls.read(), seen.read()), (2, 7));
    }

    #[test]
    fn a_thread_may_end_before_it_is_stopped() {
        let thread = BackgroundThread::repeat("test", || None).unwrap();
        while !thread.has_ended() {
            thread::yield_now();
        }
    }
}
