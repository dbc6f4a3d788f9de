//! Counters of a running thread and its agents, readable from other threads at any time.

use std::sync::{Mutex, PoisonError};

use tickpath_lockfree::{CachePadded, Counter};

/// Counters of one agent.
#[derive(Debug, Default)]
pub struct AgentCounters {
    /// [`role_name`](crate::Agent::role_name) of the agent.
    pub role: &'static str,
    /// Duty cycles that found work.
    pub busy_calls: Counter,
    /// Sum of the work counts that the duty cycles returned.
    pub work: Counter,
    /// Ticks spent in duty cycles that found work. Includes preceding calls without work, of any agent in the
    /// same cycle, because their end is not measured. Counted by a [`Runner`](crate::Runner) only.
    pub busy_ticks: Counter,
    /// Longest time that one duty cycle added to `busy_ticks`, in ticks.
    pub call_ticks_max: Counter,
    /// Allocations in duty cycles, if the program counts allocations; counted by a [`Runner`](crate::Runner)
    /// only.
    pub allocations: Counter,
    /// Number of recoverable errors.
    pub errors: Counter,
    last_error: Mutex<Option<String>>,
}

impl AgentCounters {
    pub(crate) fn new(role: &'static str) -> AgentCounters {
        AgentCounters { role, ..AgentCounters::default() }
    }

    /// The message of the latest recoverable error, for observers to print when it changes; `None` if there
    /// was no error. Takes a lock only after an error.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        if self.errors.read() == 0 {
            return None;
        }
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[inline]
    pub(crate) fn count_work(&self, work: usize, ticks: u64) {
        self.busy_calls.add(1);
        self.work.add(work as u64);
        self.busy_ticks.add(ticks);
        self.call_ticks_max.raise_to(ticks);
    }

    #[cold]
    pub(crate) fn count_error(&self, message: &str) {
        self.errors.add(1);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(message.to_owned());
    }
}

/// Counters of one thread.
///
/// `cycles` and each entry of `agents` lie on separate cache lines: a poll by a reader costs the writer one
/// cache miss per line.
#[derive(Debug)]
pub struct ThreadCounters {
    /// Name of the thread.
    pub name: String,
    /// One entry per agent, in the order of the plan.
    pub agents: Vec<CachePadded<AgentCounters>>,
    /// Counters of the thread's cycles.
    pub cycles: CachePadded<CycleCounters>,
}

/// Counters of one thread's cycles through its agents.
#[derive(Debug, Default)]
pub struct CycleCounters {
    /// Cycles so far.
    pub count: Counter,
    pub(crate) start_ticks: Counter,
    pub(crate) latest_ticks: Counter,
    /// Longest cycle in ticks. A cycle begins at the end of the one before, or of the yield, sleep or warm-up
    /// between them. Long work of an agent or a preemption of the thread lengthens it.
    pub cycle_ticks_max: Counter,
    /// Stalls by the host: cycles without work that took over 10 us, although the thread did not yield.
    pub stalls: Counter,
    /// Total duration of the stalls, in ticks.
    pub stalled_ticks: Counter,
    /// Times that the thread slept because there was nothing to do.
    pub sleeps: Counter,
}

impl ThreadCounters {
    pub(crate) fn new(name: String, roles: impl Iterator<Item = &'static str>) -> ThreadCounters {
        let agents = roles.map(|role| CachePadded::new(AgentCounters::new(role))).collect();
        ThreadCounters { name, agents, cycles: CachePadded::default() }
    }

    /// Ticks from the start of the first cycle to the end of the latest; 0 before the first one.
    #[must_use]
    pub fn elapsed_ticks(&self) -> u64 {
        self.cycles.latest_ticks.read().saturating_sub(self.cycles.start_ticks.read())
    }

    /// Ticks spent in duty cycles that found work, all agents together; see [`AgentCounters::busy_ticks`].
    #[must_use]
    pub fn busy_ticks(&self) -> u64 {
        self.agents.iter().map(|agent| agent.busy_ticks.read()).sum()
    }

    /// Share of the thread's time spent in duty cycles that found work, 0 to 1, since its start.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        match self.elapsed_ticks() {
            0 => 0.0,
            elapsed => self.busy_ticks() as f64 / elapsed as f64,
        }
    }
}
