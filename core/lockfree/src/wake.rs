//! Wakes a thread that sleeps until there is work; while the thread is awake, the producer pays one load.
//!
//! # Protocol
//!
//! - The sleeper stores `is_asleep := true`, runs a *heavy* barrier, checks for work again, and sleeps when
//!   there is none.
//! - The producer makes its item visible, prevents compiler reordering (the *light* barrier), and loads
//!   `is_asleep` (relaxed). If it is true, the producer exchanges it for false, and the one producer that
//!   succeeds wakes the sleeper.
//! - A heavy barrier orders the memory accesses of every running thread of the process, as if the producer's
//!   light barrier were a sequentially consistent fence too. So either the producer sees that the thread is
//!   about to sleep, or the thread sees the item. Linux has such a barrier: membarrier(2),
//!   `MEMBARRIER_CMD_PRIVATE_EXPEDITED`.
//!
//! The barrier and the sleep are system calls; the caller provides them.
//!
//! ```
//! use std::sync::mpsc;
//! use tickpath_lockfree::{spsc, wake::Waker};
//!
//! let (bell, rings) = mpsc::channel();
//! let waker = Waker::new(move || bell.send(()).expect("the sleeper listens"));
//! let (mut producer, mut consumer) = spsc::channel::<u64>(2);
//! consumer.wake_by(&waker);
//! producer.try_push(1).expect("the ring is empty");
//! assert!(rings.try_recv().is_err(), "the consumer is awake");
//!
//! waker.announce(|| std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst));
//! assert_eq!(consumer.try_pop(), Some(1)); // there is something: it does not sleep yet
//! producer.try_push(2).expect("there is room");
//! assert!(rings.try_recv().is_ok(), "woken");
//! ```

use core::fmt;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

use crate::sync::{Arc, AtomicBool, Ordering};

/// Maximum number of threads that one source of work can wake.
pub const WAKERS_MAX: usize = 8;

/// Wakes one thread; clones wake the same thread.
#[derive(Clone)]
pub struct Waker(Arc<Sleeper>);

#[repr(align(128))] // on separate cache lines: every producer loads it
struct Sleeper {
    is_asleep: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Waker {
    /// Creates the waker of an awake thread. `wake` ends the thread's current sleep, or else its next one.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Waker {
        Waker(Arc::new(Sleeper { is_asleep: AtomicBool::new(false), wake: Box::new(wake) }))
    }

    /// Announces that the thread is about to sleep. It must then check for work again before it sleeps.
    ///
    /// `heavy_barrier` orders the announcement before that check, as seen by every producer.
    pub fn announce(&self, heavy_barrier: impl FnOnce()) {
        self.0.is_asleep.store(true, Ordering::Relaxed);
        heavy_barrier();
    }

    /// True while the thread has announced its sleep and was not woken since.
    #[must_use]
    #[inline]
    pub fn is_announced(&self) -> bool {
        self.0.is_asleep.load(Ordering::Relaxed)
    }

    /// Retracts the announcement: the thread stays awake.
    #[inline]
    pub fn retract(&self) {
        self.take_announcement();
    }

    /// Wakes the thread if it sleeps or is about to. Call this after giving the thread work.
    #[inline(always)]
    pub fn wake_if_asleep(&self) {
        light_barrier();
        if self.0.is_asleep.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        // Several producers may get here; only the one that ends the announcement wakes the thread.
        if self.take_announcement() {
            (self.0.wake)();
        }
    }

    /// Ends the announcement. Returns true only to the caller that ended it; other callers write nothing.
    fn take_announcement(&self) -> bool {
        self.0.is_asleep.compare_exchange(true, false, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Prevents compiler reordering. The sleeper's heavy barrier compensates for reordering by the CPU.
#[cfg(not(loom))]
#[inline(always)]
fn light_barrier() {
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
}

/// Loom has no heavy barrier that acts on other threads: under loom both barriers are full fences.
#[cfg(loom)]
fn light_barrier() {
    crate::sync::fence(Ordering::SeqCst);
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Waker").field(&self.is_announced()).finish()
    }
}

/// Wakers of the threads that one source of work wakes, at most [`WAKERS_MAX`].
#[derive(Debug, Default)]
pub struct Wakers {
    count: AtomicUsize,
    wakers: [OnceLock<Waker>; WAKERS_MAX],
}

impl Wakers {
    /// Adds a waker permanently.
    ///
    /// # Panics
    /// When there are [`WAKERS_MAX`] already: a thread that is not woken would sleep forever.
    pub fn add(&self, waker: &Waker) {
        let index = self.count.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        assert!(index < WAKERS_MAX, "at most {WAKERS_MAX} threads can be woken by one ring");
        let is_first = self.wakers[index].set(waker.clone()).is_ok();
        debug_assert!(is_first, "each index is given out once");
    }

    /// Wakes the threads that sleep or are about to. Call this after giving them work.
    #[inline(always)]
    pub fn wake_if_asleep(&self) {
        let count = self.count.load(core::sync::atomic::Ordering::Relaxed);
        if count > 0 {
            self.wake_some(count);
        }
    }

    #[inline]
    fn wake_some(&self, count: usize) {
        for waker in self.wakers.iter().take(count) {
            // A waker that is not stored yet belongs to a thread that has not announced a sleep yet.
            if let Some(waker) = waker.get() {
                waker.wake_if_asleep();
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    use super::*;

    fn counted() -> (Waker, std::sync::Arc<AtomicU32>) {
        let count = std::sync::Arc::new(AtomicU32::new(0));
        let calls = std::sync::Arc::clone(&count);
        let ring = move || _ = calls.fetch_add(1, SeqCst);
        (Waker::new(ring), count)
    }

    #[test]
    fn only_a_sleeping_thread_is_woken_and_only_once() {
        let (waker, calls) = counted();
        waker.wake_if_asleep();
        assert_eq!(calls.load(SeqCst), 0);
        waker.announce(|| {});
        waker.wake_if_asleep();
        waker.wake_if_asleep();
        assert_eq!(calls.load(SeqCst), 1);
        assert!(!waker.is_announced());
        waker.announce(|| {});
        waker.retract();
        waker.wake_if_asleep();
        assert_eq!(calls.load(SeqCst), 1);
    }

    #[test]
    fn all_are_woken_up_to_the_bound() {
        let wakers = Wakers::default();
        wakers.wake_if_asleep();
        let counted: Vec<_> = (0..WAKERS_MAX).map(|_| counted()).collect();
        for (waker, _) in &counted {
            wakers.add(waker);
            waker.announce(|| {});
        }
        wakers.wake_if_asleep();
        assert!(counted.iter().all(|(_, calls)| calls.load(SeqCst) == 1));
    }
}
