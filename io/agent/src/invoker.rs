//! Runs a list of agents in turn, on the caller's thread.

use std::sync::Arc;

use tickpath_lockfree::wake::Waker;
use tickpath_types::Nanos;

use crate::agent::{Agent, AgentError, AgentFailure};
use crate::allocations::thread_allocations;
use crate::clock::TscClock;
use crate::counters::ThreadCounters;
use crate::park::WaitSet;

/// A plan that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The cycle names an agent that does not exist: use indices below the number of agents.
    #[error("thread {thread}: cycle names agent {index} but there are only {agent_count}")]
    NoSuchAgent {
        /// Name of the thread.
        thread: String,
        /// The index in the cycle.
        index: usize,
        /// Number of agents of the thread.
        agent_count: usize,
    },
    /// An agent would never run: name it in the cycle, or leave the cycle empty to run each agent once.
    #[error("thread {thread}: agent {role} is not in the cycle and would never run")]
    AgentNotInCycle {
        /// Name of the thread.
        thread: String,
        /// Role of the agent.
        role: &'static str,
    },
    /// A thread without agents: remove it.
    #[error("thread {thread} has no agents")]
    NoAgents {
        /// Name of the thread.
        thread: String,
    },
}

/// Agents that share a thread, and the order of their duty cycles.
///
/// An agent may appear more than once in the cycle, so that, for example, a response leaves before slower
/// work that can wait: `["order-server", "matcher", "order-server", "publisher"]`.
pub struct Invoker {
    agents: Vec<Box<dyn Agent>>,
    cycle: Vec<usize>,
    counters: Arc<ThreadCounters>,
    started_count: usize,
}

impl Invoker {
    /// Creates an invoker. `cycle` orders the calls by indices into `agents`; if empty, each is called once.
    ///
    /// # Errors
    /// [`PlanError`] when the cycle does not match the agents.
    pub fn new(name: &str, agents: Vec<Box<dyn Agent>>, cycle: &[usize]) -> Result<Invoker, PlanError> {
        let thread = || name.to_owned();
        if agents.is_empty() {
            return Err(PlanError::NoAgents { thread: thread() });
        }
        let cycle = if cycle.is_empty() { (0..agents.len()).collect() } else { cycle.to_vec() };
        if let Some(&index) = cycle.iter().find(|index| **index >= agents.len()) {
            return Err(PlanError::NoSuchAgent { thread: thread(), index, agent_count: agents.len() });
        }
        if let Some(index) = (0..agents.len()).find(|index| !cycle.contains(index)) {
            return Err(PlanError::AgentNotInCycle { thread: thread(), role: agents[index].role_name() });
        }
        let counters = ThreadCounters::new(thread(), agents.iter().map(|agent| agent.role_name()));
        Ok(Invoker { agents, cycle, counters: Arc::new(counters), started_count: 0 })
    }

    /// Calls [`Agent::on_start`] of each agent.
    ///
    /// # Errors
    /// The error of the first agent that fails; [`close`](Invoker::close) then closes the agents before it.
    pub fn start(&mut self) -> Result<(), AgentFailure> {
        for agent in &mut self.agents[self.started_count..] {
            agent.on_start().map_err(|error| AgentFailure { role: agent.role_name(), error })?;
            self.started_count += 1;
        }
        Ok(())
    }

    /// Runs one cycle through the agents, all at the same `now`, and their background work if none found
    /// work. Returns the sum of their work counts.
    ///
    /// # Errors
    /// The first fatal error of an agent.
    #[inline]
    pub fn run_once(&mut self, now: Nanos) -> Result<usize, AgentFailure> {
        let mut work_sum = 0;
        for &index in &self.cycle {
            let result = self.agents[index].do_work(now);
            work_sum += record_result(&self.counters, index, result, 0)?;
        }
        if work_sum == 0 {
            for index in 0..self.agents.len() {
                let result = self.agents[index].do_background_work(now);
                work_sum += record_result(&self.counters, index, result, 0)?;
            }
        }
        Ok(work_sum)
    }

    /// Runs one cycle through the agents, each at its own time, starting at `ticks`, and their background
    /// work if none found work.
    ///
    /// Reads the clock after each call that found work or failed, as the start of the next call, and at the
    /// end. After a call without work it does not read the clock: the next call gets the same time. The
    /// duration of a call without work is added to that of the next call in the cycle that finds work, if
    /// any. Returns the sum of the work counts and the ticks at the end.
    ///
    /// # Errors
    /// The first fatal error of an agent.
    #[inline]
    pub fn run_timed(&mut self, clock: &TscClock, ticks: u64) -> Result<(usize, u64), AgentFailure> {
        let mut timer = Timer { clock, ticks, now: clock.at(ticks), allocated: thread_allocations() };
        let mut work_sum = 0;
        for &index in &self.cycle {
            let result = self.agents[index].do_work(timer.now);
            work_sum += timer.record_result(&self.counters, index, result)?;
        }
        if work_sum == 0 {
            for (index, agent) in self.agents.iter_mut().enumerate() {
                let result = agent.do_background_work(timer.now);
                work_sum += timer.record_result(&self.counters, index, result)?;
            }
        }
        Ok((work_sum, clock.ticks()))
    }

    /// Calls [`Agent::warm_up`] of each agent.
    pub fn warm_up(&mut self, now: Nanos) {
        for agent in &mut self.agents {
            agent.warm_up(now);
        }
    }

    /// Calls [`Agent::wake_by`] of each agent.
    pub fn wake_by(&mut self, waker: &Waker) {
        for agent in &mut self.agents {
            agent.wake_by(waker);
        }
    }

    /// Calls [`Agent::wait_for`] of each agent.
    pub fn wait_for(&mut self, now: Nanos, wait: &mut WaitSet) {
        for agent in &mut self.agents {
            agent.wait_for(now, wait);
        }
    }

    pub(crate) fn count_sleep(&self) {
        self.counters.cycles.sleeps.add(1);
    }

    /// Calls [`Agent::finish`] of each agent in the order of the cycle; true when none has remaining work.
    ///
    /// # Errors
    /// The first fatal error of an agent.
    pub fn finish(&mut self, now: Nanos) -> Result<bool, AgentFailure> {
        let mut is_done = true;
        for &index in &self.cycle {
            match self.agents[index].finish(now) {
                Ok(is_agent_done) => is_done &= is_agent_done,
                Err(error) => {
                    record_result(&self.counters, index, Err(error), 0)?;
                    is_done = false;
                }
            }
        }
        Ok(is_done)
    }

    /// Calls [`Agent::on_close`] of each agent that was started.
    pub fn close(&mut self) {
        for agent in &mut self.agents[..self.started_count] {
            agent.on_close();
        }
        self.started_count = 0;
    }

    /// The agents' counters, which other threads may keep and read.
    #[must_use]
    pub fn counters(&self) -> Arc<ThreadCounters> {
        Arc::clone(&self.counters)
    }
}

/// Divides the time of a cycle among its calls.
struct Timer<'a> {
    clock: &'a TscClock,
    /// End of the latest call that found work or failed, in ticks; before that, the start of the cycle.
    ticks: u64,
    /// The moment of `ticks`, as time since the Unix epoch.
    now: Nanos,
    allocated: u64,
}

impl Timer<'_> {
    /// Updates the agent's counters with the result of its call. Reads the clock after work or an error.
    #[inline]
    fn record_result(
        &mut self,
        counters: &ThreadCounters,
        index: usize,
        result: Result<usize, AgentError>,
    ) -> Result<usize, AgentFailure> {
        let allocated = thread_allocations();
        if allocated != self.allocated {
            counters.agents[index].allocations.add(allocated - self.allocated);
            self.allocated = allocated;
        }
        if matches!(result, Ok(0)) {
            return Ok(0);
        }
        let end = self.clock.ticks();
        let ticks = end.saturating_sub(std::mem::replace(&mut self.ticks, end));
        self.now = self.clock.at(end);
        record_result(counters, index, result, ticks)
    }
}

/// Adds a call's work or recoverable error to its agent's counters. Returns the work, or a fatal error.
#[inline]
fn record_result(
    counters: &ThreadCounters,
    index: usize,
    result: Result<usize, AgentError>,
    ticks: u64,
) -> Result<usize, AgentFailure> {
    let agent = &counters.agents[index];
    match result {
        Ok(0) => Ok(0),
        Ok(work) => {
            agent.count_work(work, ticks);
            Ok(work)
        }
        Err(error) if error.is_fatal() => Err(AgentFailure { role: agent.role, error }),
        Err(error) => {
            agent.count_error(error.message());
            Ok(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// An agent that appends its role and the time of each call to a shared list, and returns preset results.
    struct ScriptedAgent {
        role: &'static str,
        calls: Arc<Mutex<Vec<(&'static str, Nanos)>>>,
        results: Vec<Result<usize, AgentError>>,
    }

    impl Agent for ScriptedAgent {
        fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
            self.calls.lock().unwrap().push((self.role, now));
            self.results.pop().unwrap_or(Ok(0))
        }

        fn role_name(&self) -> &'static str {
            self.role
        }

        fn on_start(&mut self) -> Result<(), AgentError> {
            self.calls.lock().unwrap().push((self.role, Nanos::ZERO));
            if self.role == "broken" { Err(AgentError::recoverable("no socket")) } else { Ok(()) }
        }

        fn on_close(&mut self) {
            self.calls.lock().unwrap().push((self.role, Nanos::MAX));
        }
    }

    #[derive(Default)]
    struct CallLog(Arc<Mutex<Vec<(&'static str, Nanos)>>>);

    impl CallLog {
        fn agent(&self, role: &'static str, results: Vec<Result<usize, AgentError>>) -> Box<dyn Agent> {
            Box::new(ScriptedAgent { role, calls: Arc::clone(&self.0), results })
        }

        fn take_calls(&self) -> Vec<(&'static str, Nanos)> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    #[test]
    fn agents_run_in_the_order_of_the_cycle() {
        let log = CallLog::default();
        let agents = vec![log.agent("server", vec![Ok(2), Ok(1)]), log.agent("matcher", vec![Ok(3)])];
        let mut invoker = Invoker::new("venue", agents, &[0, 1, 0]).unwrap();
        assert_eq!(invoker.run_once(Nanos(7)).unwrap(), 6);
        assert_eq!(log.take_calls(), [("server", Nanos(7)), ("matcher", Nanos(7)), ("server", Nanos(7))]);
        let counters = invoker.counters();
        assert_eq!(counters.agents[0].work.read(), 3);
        assert_eq!(counters.agents[0].busy_calls.read(), 2);
        assert_eq!(counters.agents[1].work.read(), 3);
    }

    #[test]
    fn a_timed_cycle_accounts_only_calls_that_found_work() {
        let log = CallLog::default();
        let agents = vec![log.agent("idle", vec![]), log.agent("busy", vec![Ok(1)])];
        let mut invoker = Invoker::new("venue", agents, &[]).unwrap();
        let clock = TscClock::shared();
        let start = clock.ticks();
        let (work, end) = invoker.run_timed(&clock, start).unwrap();
        assert_eq!(work, 1);
        let counters = invoker.counters();
        assert_eq!(counters.agents[0].busy_ticks.read(), 0);
        let busy_ticks = counters.agents[1].busy_ticks.read();
        assert!(0 < busy_ticks && busy_ticks <= end - start);
        assert_eq!(counters.agents[1].call_ticks_max.read(), busy_ticks);
        assert_eq!(counters.busy_ticks(), busy_ticks);
    }

    #[test]
    fn a_recoverable_error_is_counted_and_a_fatal_one_ends_the_cycle() {
        let log = CallLog::default();
        let failing = vec![Err(AgentError::fatal("disk full")), Err(AgentError::recoverable("refused"))];
        let agents = vec![log.agent("first", failing), log.agent("second", vec![])];
        let mut invoker = Invoker::new("venue", agents, &[]).unwrap();
        assert_eq!(invoker.run_once(Nanos(1)).unwrap(), 0);
        assert_eq!(invoker.counters().agents[0].errors.read(), 1);
        assert_eq!(invoker.counters().agents[0].last_error().as_deref(), Some("refused"));
        log.take_calls();
        let failure = invoker.run_once(Nanos(2)).unwrap_err();
        assert_eq!(failure.to_string(), "first: disk full");
        assert_eq!(log.take_calls(), [("first", Nanos(2))]);
    }

    #[test]
    fn only_agents_that_started_are_closed_and_once() {
        let log = CallLog::default();
        let agents = ["first", "broken", "third"].map(|role| log.agent(role, vec![])).into();
        let mut invoker = Invoker::new("venue", agents, &[]).unwrap();
        assert_eq!(invoker.start().unwrap_err().to_string(), "broken: no socket");
        invoker.close();
        invoker.close();
        assert_eq!(
            log.take_calls(),
            [("first", Nanos::ZERO), ("broken", Nanos::ZERO), ("first", Nanos::MAX)]
        );
    }

    #[test]
    fn invalid_plans_are_rejected_with_a_message() {
        let log = CallLog::default();
        let agents = || vec![log.agent("one", vec![]), log.agent("two", vec![])];
        let refusal =
            |agents, cycle: &[usize]| Invoker::new("venue", agents, cycle).err().unwrap().to_string();
        assert_eq!(refusal(agents(), &[0, 1, 2]), "thread venue: cycle names agent 2 but there are only 2");
        assert_eq!(
            refusal(agents(), &[0, 0]),
            "thread venue: agent two is not in the cycle and would never run"
        );
        assert_eq!(refusal(vec![], &[]), "thread venue has no agents");
    }
}
