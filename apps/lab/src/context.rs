//! The context of every measurement: the clock, two cores, the amount of work, and how to wait for the other
//! core.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use tickpath_agent::{StopSignal, TscClock, pin_current_thread};
use tickpath_types::Nanos;

use crate::statistics::quantile;

/// Number of empty polls between two checks of the stop signal and the timeout.
const POLLS_PER_CHECK: u32 = 1 << 14;
/// Maximum time to wait for a result of the thread on the other core.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// The amount of work in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Just enough to check that a measurement works; the figures mean little.
    Smoke,
    /// A tenth of the full measurement: a first look.
    Quick,
    /// The full measurement: some seconds per round.
    #[default]
    Full,
}

impl Effort {
    /// Returns the name used in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Effort::Smoke => "smoke",
            Effort::Quick => "quick",
            Effort::Full => "full",
        }
    }

    /// Scales `full`, the count of a full round, to this effort.
    pub(crate) fn count(self, full: usize) -> usize {
        match self {
            Effort::Smoke => (full / 1_000).clamp(1, 1_000),
            Effort::Quick => (full / 10).max(1),
            Effort::Full => full,
        }
    }
}

/// The context of every measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub(crate) clock: TscClock,
    pub(crate) effort: Effort,
    /// Core of the thread that measures.
    pub(crate) near: usize,
    /// Core of the thread at the other end, such as a server; `None` if the process may use only one core.
    pub(crate) far: Option<usize>,
}

impl Context {
    /// Takes the first allowed core as `near`, and as `far` another one, preferably of another physical core.
    pub(crate) fn new(clock: TscClock, effort: Effort, cores_allowed: &[usize]) -> Context {
        let near = cores_allowed.first().copied().unwrap_or(0);
        let siblings = siblings(near);
        let others = || cores_allowed.iter().copied().filter(|core| *core != near);
        let far = others().find(|core| !siblings.contains(core)).or_else(|| others().next());
        Context { clock, effort, near, far }
    }

    /// Returns the core of the thread at the other end.
    ///
    /// # Errors
    /// The process may use only one core.
    pub(crate) fn far(&self) -> anyhow::Result<usize> {
        self.far.context("needs two cores, and this process may use one")
    }

    /// Runs `far` on a thread of the other core while `near` runs on this one.
    ///
    /// Both closures receive a stop signal, which is raised when one of them returns, and ends the waits of
    /// the other one.
    pub(crate) fn run_on_two_cores<T>(
        &self,
        far: impl FnOnce(&StopSignal) -> anyhow::Result<()> + Send,
        near: impl FnOnce(&StopSignal) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let (core, stop) = (self.far()?, StopSignal::new());
        thread::scope(|scope| {
            let far = scope.spawn(|| {
                let result =
                    pin_current_thread(core).map_err(|error| anyhow!(error)).and_then(|()| far(&stop));
                stop.stop();
                result
            });
            let near = near(&stop);
            stop.stop();
            match far.join() {
                Err(_) => bail!("the other end panicked"),
                Ok(Err(error)) if !error.is::<Ended>() => Err(error.context("the other end")),
                Ok(_) => near,
            }
        })
    }

    /// Returns the duration of `work` in ticks of the clock.
    #[inline(always)]
    pub(crate) fn timed(&self, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<u64> {
        let start = self.clock.ticks();
        work()?;
        Ok(self.clock.ticks() - start)
    }

    /// Returns the nanoseconds per item, for `count` items that took `ticks` together.
    pub(crate) fn nanos_each(&self, ticks: u64, count: u64) -> f64 {
        self.clock.ticks_to_nanos(ticks).0 as f64 / count as f64
    }

    /// Returns the quantile `wanted` (0 to 1) of times in ticks, converted to nanoseconds.
    pub(crate) fn quantile_ns(&self, ticks: &mut [u64], wanted: f64) -> f64 {
        self.clock.ticks_to_nanos(quantile(ticks, wanted)).0 as f64
    }

    /// Spins for `time`.
    pub(crate) fn spin(&self, time: Nanos) {
        let end = self.clock.ticks() + self.clock.nanos_to_ticks(time);
        while self.clock.ticks() < end {}
    }
}

/// Error of a wait: the thread at the other end has ended, so nothing more arrives.
#[derive(Debug, thiserror::Error)]
#[error("the other end has ended")]
pub(crate) struct Ended;

/// Polls until there is a result.
///
/// Yields the core now and then, because the other end may need it where there are more threads than cores.
///
/// # Errors
/// An error of `poll`; [`Ended`] once `stop` is raised; no answer for 20 s.
#[inline(always)]
pub(crate) fn wait_for<T>(
    stop: &StopSignal,
    mut poll: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let mut polls: u32 = 0;
    let mut timeout = WaitTimeout::default();
    loop {
        if let Some(found) = poll()? {
            return Ok(found);
        }
        polls = polls.wrapping_add(1);
        if polls.is_multiple_of(POLLS_PER_CHECK) {
            timeout.check(stop)?;
        }
    }
}

/// State of a wait: its deadline, set by the first check, and whether the last check found `stop` raised.
#[derive(Default)]
struct WaitTimeout {
    deadline: Option<Instant>,
    has_stopped: bool,
}

impl WaitTimeout {
    /// Yields the core. Fails after `ANSWER_TIMEOUT`, or if the previous check found `stop` raised.
    #[cold]
    fn check(&mut self, stop: &StopSignal) -> anyhow::Result<()> {
        // Fail only at the second check after the stop, because the polls in between may still find a result.
        if std::mem::replace(&mut self.has_stopped, stop.is_stopped()) {
            return Err(Ended.into());
        }
        if Instant::now() > *self.deadline.get_or_insert_with(|| Instant::now() + ANSWER_TIMEOUT) {
            bail!("no answer for {} s: is the host overloaded?", ANSWER_TIMEOUT.as_secs());
        }
        thread::yield_now();
        Ok(())
    }
}

/// Logical cores of the same physical core; empty if the system does not report them.
fn siblings(core: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    fs::read_to_string(path).map(|text| core_list(&text)).unwrap_or_default()
}

/// Parses a kernel list of cores, `0,64` or `0-1`; skips malformed parts.
fn core_list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> Context {
        let cores = tickpath_agent::Host::describe().cores_allowed;
        Context::new(TscClock::shared(), Effort::Smoke, &cores)
    }

    #[test]
    fn lists_of_cores_are_read() {
        assert_eq!(core_list("0-2,64\n"), [0, 1, 2, 64]);
        assert_eq!(core_list("7"), [7]);
        assert_eq!(core_list(""), [0; 0]);
    }

    #[test]
    fn one_core_has_no_other_end() {
        let alone = Context::new(TscClock::shared(), Effort::Full, &[3]);
        assert_eq!((alone.near, alone.far), (3, None));
        let error = alone.run_on_two_cores(|_| Ok(()), |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains("needs two cores"), "{error}");
    }

    #[test]
    fn the_error_of_the_other_end_is_reported() {
        if context().far.is_none() {
            return;
        }
        let result: anyhow::Result<()> =
            context().run_on_two_cores(|_| bail!("no socket"), |stop| wait_for(stop, || Ok(None)));
        assert_eq!(format!("{:#}", result.unwrap_err()), "the other end: no socket");
        let result = context().run_on_two_cores(|stop| wait_for(stop, || Ok(None)), |_| Ok(5));
        assert_eq!(result.unwrap(), 5, "waiting ends with the one that measures");
    }
}
