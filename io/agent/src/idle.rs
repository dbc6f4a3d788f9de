//! The behaviour of a thread between duty cycles that found no work.

use std::thread;

use serde::{Deserialize, Serialize};
use tickpath_lockfree::cpu::pause;

/// Number of empty cycles spun before [`IdleStrategy::Yield`] and [`IdleStrategy::Park`] give up the core.
const SPINS_BEFORE_YIELD: u32 = 100;

/// Behaviour of a thread without work: strategies that react faster use more of the core. Configured as
/// `spin`, `yield` or `park`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IdleStrategy {
    /// Always spins. Reacts at once and takes a whole core: only for a thread with a core to itself.
    Spin,
    /// Spins 100 empty cycles, then calls `sched_yield` between cycles: reacts at once while no other thread
    /// needs the core, and shares the core otherwise. The core is never idle.
    Yield,
    /// As `Yield` until there was no work for a millisecond, then sleeps in the kernel until an agent of the
    /// thread has work: see [`wait_for`](crate::Agent::wait_for). So a thread with work every millisecond
    /// never sleeps, and one without work uses no time of its core and reacts after some tens of
    /// microseconds.
    #[default]
    Park,
}

/// The state of an [`IdleStrategy`] while the thread is awake: counts consecutive empty cycles.
#[derive(Clone, Debug)]
pub(crate) struct Idler {
    strategy: IdleStrategy,
    empty_cycles: u32,
}

impl Idler {
    /// Creates an idler that has counted no empty cycles yet.
    pub(crate) fn new(strategy: IdleStrategy) -> Idler {
        Idler { strategy, empty_cycles: 0 }
    }

    /// Idles after a cycle that did `work`; returns at once when there was work.
    ///
    /// Returns true if it yielded the core, so that other threads may have run meanwhile.
    #[inline]
    pub(crate) fn idle(&mut self, work: usize) -> bool {
        if work > 0 {
            self.empty_cycles = 0;
            return false;
        }
        if self.strategy == IdleStrategy::Spin || self.empty_cycles < SPINS_BEFORE_YIELD {
            self.empty_cycles = self.empty_cycles.saturating_add(1);
            pause();
            return false;
        }
        thread::yield_now();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle_times(idler: &mut Idler, cycles: u32) -> u32 {
        (0..cycles).map(|_| u32::from(idler.idle(0))).sum()
    }

    #[test]
    fn spin_keeps_the_core() {
        assert_eq!(idle_times(&mut Idler::new(IdleStrategy::Spin), 10 * SPINS_BEFORE_YIELD), 0);
    }

    #[test]
    fn other_strategies_yield_after_their_spins_and_work_resets_them() {
        let mut idler = Idler::new(IdleStrategy::Yield);
        assert_eq!(idle_times(&mut idler, SPINS_BEFORE_YIELD), 0);
        assert_eq!(idle_times(&mut idler, 5), 5);
        assert!(!idler.idle(1));
        assert_eq!(idle_times(&mut idler, SPINS_BEFORE_YIELD), 0);
        assert!(idler.idle(0));
    }
}
