//! A thread's sleep in the kernel, until a descriptor is ready, it is given something, or a time has come.
#![allow(unsafe_code)] // membarrier(2) and ppoll(2) on a list of descriptors of changing length

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

use nix::libc;
use nix::sys::eventfd::{EfdFlags, EventFd};
use tickpath_lockfree::wake::Waker;
use tickpath_types::Nanos;

use crate::clock::TscClock;

/// How often one is looked at that cannot say what it waits for; and everybody, where the kernel has no heavy barrier.
const LOOK_INTERVAL: Nanos = Nanos::from_millis(1);
/// Descriptors that one thread waits for at most; with more of them it looks at all every [`LOOK_INTERVAL`].
const DESCRIPTORS_MAX: usize = 64;

/// Sleeps in a row that may end at once without work.
const FRUITLESS_MAX: u32 = 3;

/// The descriptors and the deadline that end a thread's sleep, beside its [`Waker`].
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

    /// Waits until the descriptor can be read: a socket, or a poller of several. A simulated network has none, and
    /// its agents never sleep.
    pub fn descriptor(&mut self, descriptor: Option<BorrowedFd<'_>>) {
        match descriptor {
            Some(fd) if self.descriptors.len() < DESCRIPTORS_MAX => {
                self.descriptors.push(libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
            }
            _ => self.soon(),
        }
    }

    /// Waits until `at` at most.
    pub fn until(&mut self, at: Nanos) {
        self.until = Some(self.until.map_or(at, |until| until.min(at)));
    }

    /// Waits a millisecond at most: for what no descriptor and no [`Waker`] tells of.
    pub fn soon(&mut self) {
        self.until(self.now + LOOK_INTERVAL);
    }
}

/// Puts one thread to sleep.
///
/// To sleep without missing anything: [announce](Parker::announce) it, look for work once more, and only when there is none
/// [sleep](Parker::sleep).
#[derive(Debug)]
pub struct Parker {
    event: Arc<EventFd>,
    waker: Waker,
    wait: WaitSet,
    clock: TscClock,
    has_barrier: bool,
    /// Sleeps in a row that a descriptor or a time in the past ended, since there was work.
    fruitless: u32,
}

impl Parker {
    /// A parker of the thread that will use it.
    ///
    /// # Errors
    /// The system's, mostly the limit of open files.
    pub fn new(clock: TscClock) -> io::Result<Parker> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let event = Arc::new(EventFd::from_value_and_flags(0, flags)?);
        let bell = Arc::clone(&event);
        // It is refused only where it has been rung 2^64 times.
        let waker = Waker::new(move || _ = bell.write(1));
        Ok(Parker {
            event,
            waker,
            wait: WaitSet::new(),
            clock,
            has_barrier: register_barrier(),
            fruitless: 0,
        })
    }

    /// Wakes the thread.
    #[must_use]
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// From here on every item given to the thread wakes it. One more look finds the items given before.
    pub fn announce(&self) {
        self.waker.announce(|| {
            if self.has_barrier {
                barrier();
            }
        });
    }

    /// True while the announcement holds: the thread was given nothing since.
    #[must_use]
    pub fn is_announced(&self) -> bool {
        self.waker.is_announced()
    }

    /// There was work: the thread stays awake.
    #[inline]
    pub fn note_work(&mut self) {
        self.fruitless = 0;
        if self.is_announced() {
            self.waker.retract();
        }
    }

    /// Sleeps until something of what `fill` adds is there, or the thread is woken. Allocates nothing. Where a descriptor
    /// ended it, the thread has to announce its next sleep again.
    ///
    /// If descriptors ended the latest sleeps and there was no work, such as a connection that waits while the
    /// system refuses to accept it, this one lasts a millisecond: nothing makes the thread spin.
    pub fn sleep(&mut self, fill: impl FnOnce(Nanos, &mut WaitSet)) {
        let now = self.clock.now();
        self.wait.clear(now);
        fill(now, &mut self.wait);
        if self.fruitless >= FRUITLESS_MAX {
            self.wait.clear(now);
            self.wait.soon();
        }
        if !self.has_barrier {
            self.wait.soon();
        }
        // Behind the others: it has its place in any case.
        let fd = self.event.as_fd().as_raw_fd();
        self.wait.descriptors.push(libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        let left = self.wait.until.map(|until| until.since(self.clock.now()));
        let ready = poll(&mut self.wait.descriptors, left.map(timespec));
        let is_rung = self.wait.descriptors.last().is_some_and(|event| event.revents != 0);
        if is_rung {
            let _ = self.event.read();
        }
        if ready > 0 {
            // There is work, most likely. What the thread gives itself while it does that is no reason to ring.
            self.waker.retract();
        }
        let is_early = ready > usize::from(is_rung) || left == Some(Nanos::ZERO);
        self.fruitless = if is_early { self.fruitless.saturating_add(1) } else { 0 };
    }
}

/// How a thread rests whose work is not urgent: while there is much of it, it is not woken for each piece, and looks again
/// after an interval; while there is none, it sleeps until it is woken.
#[derive(Debug)]
pub struct Rest {
    parker: Parker,
    interval: Nanos,
    /// A look after the interval found nothing.
    is_quiet: bool,
}

impl Rest {
    /// For a thread that looks again after `interval` when it has done what there was.
    ///
    /// # Errors
    /// As [`Parker::new`].
    pub fn new(clock: TscClock, interval: Nanos) -> io::Result<Rest> {
        Ok(Rest { parker: Parker::new(clock)?, interval, is_quiet: false })
    }

    /// Wakes the thread while there was nothing to do.
    #[must_use]
    pub fn waker(&self) -> &Waker {
        self.parker.waker()
    }

    /// There was work.
    pub fn note_work(&mut self) {
        self.is_quiet = false;
        self.parker.note_work();
    }

    /// There was none: rests for the interval, or until there is something of what `fill` adds; from then on sleeps, after
    /// one more look, until that or until it is woken.
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

/// Waits, and returns how many are ready. A signal ends it early.
fn poll(descriptors: &mut [libc::pollfd], timeout: Option<libc::timespec>) -> usize {
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = descriptors.len() as libc::nfds_t;
    // SAFETY: the list has `count` entries and is borrowed during the call, as the time is; no signal mask is given.
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

/// Whether the kernel has a barrier that acts on all running threads of the process.
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
    fn one_woken_between_its_announcement_and_its_sleep_does_not_sleep() {
        let mut parker = parker();
        for _ in 0..100 {
            parker.announce();
            let waker = parker.waker().clone();
            let giver = thread::spawn(move || waker.wake_if_asleep());
            // Without a deadline: only the waker ends it.
            parker.sleep(|_, _| {});
            giver.join().unwrap();
        }
    }

    #[test]
    fn more_descriptors_than_there_is_room_for_are_looked_at() {
        let mut parker = parker();
        let other = EventFd::from_value(0).unwrap();
        parker.sleep(|_, wait| (0..=DESCRIPTORS_MAX).for_each(|_| wait.descriptor(Some(other.as_fd()))));
        parker.sleep(|_, wait| wait.descriptor(None));
    }
}
