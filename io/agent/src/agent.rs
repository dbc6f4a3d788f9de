//! The duty-cycle contract between an agent and its runner.

use std::fmt;

use tickpath_lockfree::wake::Waker;
use tickpath_types::Nanos;

use crate::park::WaitSet;

/// A component that works in short duty cycles on a thread that its runner provides.
pub trait Agent: Send {
    /// Does a bounded amount of work and returns the amount; 0 lets the runner idle.
    ///
    /// `now` is the time since the Unix epoch. The runner reads it at the start of each cycle through the
    /// thread's agents, and again after each call that found work or failed.
    ///
    /// # Errors
    /// A [fatal](AgentError::fatal) error stops the whole system; a
    /// [recoverable](AgentError::recoverable) one is counted and the agent is called again.
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError>;

    /// Does a bounded amount of work that can wait while any agent of the thread is busy, such as a system
    /// call that checks for work. Called after a cycle in which no agent found work. If this work must not
    /// wait indefinitely, the agent eventually does it in [`do_work`](Self::do_work).
    ///
    /// # Errors
    /// As [`do_work`](Self::do_work).
    fn do_background_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let _ = now;
        Ok(0)
    }

    /// Warms up: runs the code of rare paths on separate data, without visible effects, so that this code is
    /// in the processor's caches and its branches are predicted when needed. If the
    /// [plan](crate::ThreadPlan::warm_up_interval) has an interval, the runner calls this at most that often,
    /// after a cycle in which no agent found work. A call is bounded, and much shorter than the interval.
    fn warm_up(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Called once, before [`on_start`](Self::on_start), if the agent's thread
    /// [sleeps](crate::IdleStrategy::Park) when idle. Each source of work on another thread, such as a ring,
    /// must wake the agent's thread through this waker.
    fn wake_by(&mut self, waker: &Waker) {
        let _ = waker;
    }

    /// Called after a duty cycle without work, before the thread sleeps. Registers the events that end the
    /// sleep, besides the agent's [waker](Self::wake_by): its descriptors, and the time of its next timed
    /// work. The default polls again after a millisecond.
    fn wait_for(&mut self, now: Nanos, wait: &mut WaitSet) {
        let _ = now;
        wait.soon();
    }

    /// Name of the agent in plans, counters and errors, e.g. `"sequencer"`.
    fn role_name(&self) -> &'static str;

    /// Called once on the agent's own thread before any agent of the system does work.
    ///
    /// # Errors
    /// Any error here stops the whole system before it starts.
    fn on_start(&mut self) -> Result<(), AgentError> {
        Ok(())
    }

    /// Called instead of [`do_work`](Self::do_work) once the system is stopping, repeatedly until every agent
    /// of the thread is done or the [time limit](crate::FINISH_TIMEOUT) is reached. Does a bounded amount of
    /// the remaining work for accepted input, and accepts no new input. Returns true when nothing remains. An
    /// agent that waits for another agent, on any thread, detects that agent's end by the ring between them.
    ///
    /// # Errors
    /// As [`do_work`](Self::do_work).
    fn finish(&mut self, now: Nanos) -> Result<bool, AgentError> {
        let _ = now;
        Ok(true)
    }

    /// Called once on the agent's own thread after its last duty cycle, in the order of the plan.
    fn on_close(&mut self) {}
}

/// The error of a duty cycle.
///
/// One pointer wide, so that the result of a successful duty cycle is returned in registers.
#[derive(Debug)]
pub struct AgentError(Box<Cause>);

#[derive(Debug)]
struct Cause {
    message: String,
    fatal: bool,
}

impl AgentError {
    /// Creates an error after which the system cannot continue: the runner stops it and returns this error.
    #[must_use]
    pub fn fatal(message: impl fmt::Display) -> AgentError {
        AgentError(Box::new(Cause { message: message.to_string(), fatal: true }))
    }

    /// Creates an error that the agent has handled; it is counted, and the latest one is kept for reports.
    #[must_use]
    pub fn recoverable(message: impl fmt::Display) -> AgentError {
        AgentError(Box::new(Cause { message: message.to_string(), fatal: false }))
    }

    /// True when the whole system must stop.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.0.fatal
    }

    /// The problem and its remedy, in one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for AgentError {}

/// The fatal error of one agent, with the agent's role.
#[derive(Debug, thiserror::Error)]
#[error("{role}: {error}")]
pub struct AgentFailure {
    /// [`Agent::role_name`] of the agent that failed.
    pub role: &'static str,
    /// The reported error.
    #[source]
    pub error: AgentError,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_displays_its_message_and_fits_in_registers() {
        let fatal = AgentError::fatal("journal: disk full: free some space");
        assert!(fatal.is_fatal());
        assert!(!AgentError::recoverable("one datagram refused").is_fatal());
        let failure = AgentFailure { role: "sequencer", error: fatal };
        assert_eq!(failure.to_string(), "sequencer: journal: disk full: free some space");
        assert_eq!(size_of::<Result<usize, AgentError>>(), 2 * size_of::<usize>());
    }
}
