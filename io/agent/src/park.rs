//! A thread's sleep in the kernel, until a descriptor is ready, its waker is used, or a deadline is reached.
#![allow(unsafe_code)] // membarrier(2) and ppoll(2) on a list of descriptors of changing length

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

use nix::libc;
use nix::sys::eventfd::{EfdFlags, EventFd};
use tickpath_lockfree::wake::Waker;
use tickpath_types::Nanos;

use crate::clock::TscClock;

/// Polling interval for events without a descriptor or waker, and for all events if the kernel lacks
/// membarrier(2).
const RECHECK_INTERVAL: Nanos = Nanos::from_millis(1);
/// Maximum number of descriptors that a thread waits for; with more, it polls every [`RECHECK_INTERVAL`].
const DESCRIPTORS_MAX: usize = 64;

/// After this number of consecutive sleeps that end early without work, a sleep lasts a millisecond.
const EMPTY_WAKEUPS_MAX: u32 = 3;

/// The descriptors and the deadline that end a thread's sleep, besides its [`Waker`].
#[derive(Debug)]
pub struct WaitSet {
    descriptors: Vec<libc::pollfd>,
    until: Option<Nanos>,
    now: Nanos,
}

impl WaitSet {
    fn new() -> WaitSet {
        WaitSet { descriptors: Vec::with_capacity(DESCRIPTORS_MAX + 1), until: None, now: Nanos::ZERO }
    }

    fn clear(&mut self, now: Nanos) {
        self.descriptors.clear();
        (self.until, self.now) = (None, now);
    }

    /// Ends the sleep when the descriptor of a socket, or of a poller of several sockets, is readable.
    /// Without a descriptor, as in a simulated network, the thread polls every millisecond.
    pub fn descriptor(&mut self, descriptor: Option<BorrowedFd<'_>>) {
        match descriptor {
            Some(fd) if self.descriptors.len() < DESCRIPTORS_MAX => {
                self.descriptors.push(libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
            }
            _ => self.soon(),
        }
    }

    /// Ends the sleep at `at` at the latest.
    pub fn until(&mut self, at: Nanos) {
        self.until = Some(self.until.map_or(at, |until| until.min(at)));
    }

    /// Ends the sleep after a millisecond at the latest: for events without a descriptor or [`Waker`].
    pub fn soon(&mut self) {
        self.until(self.now + RECHECK_INTERVAL);
    }
}

/// Puts one thread to sleep.
///
/// To sleep without missing work: [announce](Parker::announce) the sleep, check for work once more, and
/// [sleep](Parker::sleep) only if there is none.
#[derive(Debug)]
pub struct Parker {
    event: Arc<EventFd>,
    waker: Waker,
    wait: WaitSet,
    clock: TscClock,
    has_barrier: bool,
    /// Number of consecutive sleeps without work that ended early, at a ready descriptor or a past deadline.
    empty_wakeups: u32,
}

impl Parker {
    /// Creates a parker for the thread that owns it.
    ///
    /// # Errors
    /// The system's error, mostly the limit of open files.
    pub fn new(clock: TscClock) -> io::Result<Parker> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let event = Arc::new(EventFd::from_value_and_flags(0, flags)?);
        let bell = Arc::clone(&event);
        // The write fails only if the event's counter is full, after 2^64 wake-ups.
        let waker = Waker::new(move || _ = bell.write(1));
        Ok(Parker {
            event,
            waker,
            wait: WaitSet::new(),
            clock,
            has_barrier: register_barrier(),
            empty_wakeups: 0,
        })
    }

    /// The waker of the thread.
    #[must_use]
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Announces a sleep: from now on new work wakes the thread. Check once more for earlier work afterwards.
    pub fn announce(&self) {
        self.waker.announce(|| {
            if self.has_barrier {
                barrier();
            }
        });
    }

    /// True from the announcement of a sleep until the thread is woken or has work.
    #[must_use]
    pub fn is_announced(&self) -> bool {
        self.waker.is_announced()
    }

    /// Records that the thread has found work, and retracts an announced sleep.
    #[inline]
    pub fn note_work(&mut self) {
        self.empty_wakeups = 0;
        if self.is_announced() {
            self.waker.retract();
        }
    }

    /// Sleeps until one of the events that `fill` adds occurs, or the thread is woken. Allocates nothing. If
    /// a descriptor ended the sleep, the thread must announce its next sleep again.
    ///
    /// If descriptors ended the latest sleeps although there was no work, for example because the system
    /// refuses to accept a pending connection, this sleep lasts a millisecond: the thread never spins.
    pub fn sleep(&mut self, fill: impl FnOnce(Nanos, &mut WaitSet)) {
        let now = self.clock.now();
        self.wait.clear(now);
        fill(now, &mut self.wait);
        if self.empty_wakeups >= EMPTY_WAKEUPS_MAX {
            self.wait.clear(now);
            self.wait.soon();
        }
        if !self.has_barrier {
            self.wait.soon();
        }
        // The waker's event comes last; the list has capacity for it.
        let fd = self.event.as_fd().as_raw_fd();
        self.wait.descriptors.push(libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        let left = self.wait.until.map(|until| until.since(self.clock.now()));
        let ready = poll(&mut self.wait.descriptors, left.map(timespec));
        let is_rung = self.wait.descriptors.last().is_some_and(|event| event.revents != 0);
        if is_rung {
            let _ = self.event.read();
        }
        if ready > 0 {
            // There is probably work. The thread is awake, so work that it gives itself need not wake it.
            self.waker.retract();
        }
        let is_early = ready > usize::from(is_rung) || left == Some(Nanos::ZERO);
        self.empty_wakeups = if is_early { self.empty_wakeups.saturating_add(1) } else { 0 };
    }
}

/// Lets a thread without urgent work rest. While there is work, the thread is not woken for each item, but
/// checks again after an interval; while there is none, it sleeps until it is woken.
#[derive(Debug)]
pub struct Rest {
    parker: Parker,
    interval: Nanos,
    /// True when the thread has rested since its latest work.
    is_quiet: bool,
}

impl Rest {
    /// Creates a [`Rest`] for a thread that checks again `interval` after it has done its work.
    ///
    /// # Errors
    /// As [`Parker::new`].
    pub fn new(clock: TscClock, interval: Nanos) -> io::Result<Rest> {
        Ok(Rest { parker: Parker::new(clock)?, interval, is_quiet: false })
    }

    /// The thread's waker. It does not end the first rest after work.
    #[must_use]
    pub fn waker(&self) -> &Waker {
        self.parker.waker()
    }

    /// Records that there was work.
    pub fn note_work(&mut self) {
        self.is_quiet = false;
        self.parker.note_work();
    }

    /// Call this after a check without work. The first call after work rests for the interval, or until an
    /// event that `fill` adds. The second announces a sleep, so that the caller checks once more. The third
    /// sleeps until such an event or a wake-up.
    pub fn rest(&mut self, fill: impl FnOnce(Nanos, &mut WaitSet)) {
        if self.parker.is_announced() {
            self.parker.sleep(fill);
        } else if std::mem::replace(&mut self.is_quiet, true) {
            self.parker.announce();
        } else {
            let interval = self.interval;
            self.parker.sleep(|now, wait| {
                fill(now, wait);
                wait.until(now + interval);
            });
        }
    }
}

/// Waits, and returns the number of ready descriptors; 0 after the timeout or a signal.
fn poll(descriptors: &mut [libc::pollfd], timeout: Option<libc::timespec>) -> usize {
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = descriptors.len() as libc::nfds_t;
    // SAFETY: the list has `count` entries; the call borrows it and the timeout; no signal mask is given.
    let ready = unsafe { libc::ppoll(descriptors.as_mut_ptr(), count, timeout, std::ptr::null()) };
    if ready < 0 {
        descriptors.iter_mut().for_each(|descriptor| descriptor.revents = 0);
    }
    usize::try_from(ready).unwrap_or(0)
}

fn timespec(duration: Nanos) -> libc::timespec {
    const SECOND: u64 = 1_000_000_000;
    libc::timespec { tv_sec: (duration.0 / SECOND) as _, tv_nsec: (duration.0 % SECOND) as _ }
}

/// Commands of membarrier(2).
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

/// Registers the process for membarrier(2). Returns false if the kernel refuses.
fn register_barrier() -> bool {
    cfg!(not(miri)) && membarrier(REGISTER_PRIVATE_EXPEDITED)
}

fn barrier() {
    let is_done = membarrier(PRIVATE_EXPEDITED);
    debug_assert!(is_done, "what was registered is not refused");
}

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call takes three integers and touches no memory of the process.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn parker() -> Parker {
        Parker::new(TscClock::system()).unwrap()
    }

    #[test]
    fn a_ready_descriptor_a_deadline_and_a_waker_end_the_sleep() {
        let mut parker = parker();
        parker.announce();
        let other = EventFd::from_value(1).unwrap();
        parker.sleep(|_, wait| wait.descriptor(Some(other.as_fd())));
        assert!(!parker.is_announced(), "its own work must not ring for it");
        parker.announce();
        parker.sleep(|now, wait| {
            wait.until(Nanos::MAX);
            wait.until(now);
        });
        parker.sleep(|_, wait| wait.soon());
        assert!(parker.is_announced(), "a time that came tells of no work");
        parker.waker().wake_if_asleep();
        parker.sleep(|_, _| {});
        assert!(!parker.is_announced());
    }

    #[test]
    fn a_thread_woken_before_its_sleep_does_not_sleep() {
        let mut parker = parker();
        for _ in 0..100 {
            parker.announce();
            let waker = parker.waker().clone();
            let giver = thread::spawn(move || waker.wake_if_asleep());
            // Sleep without a deadline: only the waker ends it.
            parker.sleep(|_, _| {});
            giver.join().unwrap();
        }
    }

    #[test]
    fn descriptors_beyond_the_capacity_are_polled() {
        let mut parker = parker();
        let other = EventFd::from_value(0).unwrap();
        parker.sleep(|_, wait| (0..=DESCRIPTORS_MAX).for_each(|_| wait.descriptor(Some(other.as_fd()))));
        parker.sleep(|_, wait| wait.descriptor(None));
    }
}
