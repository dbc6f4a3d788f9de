//! The duty-cycle contract between a role and whatever runs it.

use std::fmt;

use tickpath_lockfree::wake::Waker;
use tickpath_types::Nanos;

use crate::park::WaitSet;

/// One role that runs in short duty cycles on a thread it does not own.
pub trait Agent: Send {
    /// Does a bounded amount of work and returns how much; 0 lets the runner idle.
    ///
    /// `now` counts from the Unix epoch. It is read at the start of each cycle through the thread's agents and after
    /// each call that found work: only calls that found none lie between the reading and this call.
    ///
    /// # Errors
    /// A [fatal](AgentError::fatal) error stops the whole system; a
    /// [recoverable](AgentError::recoverable) one is counted and the agent is called again.
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError>;

    /// Does a bounded amount of work that can wait while any agent of the thread has something to do, such as a
    /// system call to see whether there is any. Called after a cycle in which none found work; an agent whose
    /// background work must not wait for ever does it in [`do_work`](Self::do_work) in the end.
    ///
    /// # Errors
    /// As [`do_work`](Self::do_work).
    fn do_background_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let _ = now;
        Ok(0)
    }

    /// Goes through the motions of the agent's work on data of its own, with no effect that anyone could see, so
    /// that the code of a rare path is in the processor's caches and its branches are predicted when it counts.
    /// Called now and then after a cycle in which no agent found work, where the plan
    /// [says so](crate::ThreadPlan::rehearse_interval). Bounded, and far shorter than the interval.
    fn rehearse(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Called once, before [`on_start`](Self::on_start), where the agent's thread
    /// [sleeps](crate::IdleStrategy::Park) while there is no work: whatever gives the agent something from another thread is
    /// to wake it by this, such as the rings that the agent reads.
    fn wake_by(&mut self, waker: &Waker) {
        let _ = waker;
    }

    /// Says what the agent waits for, beside what [wakes](Self::wake_by) it, after a duty cycle that found no work: adds its
    /// descriptors, and the time at which it has something to do without them. The thread then sleeps; where this is left
    /// out it looks again after a millisecond.
    fn wait_for(&mut self, now: Nanos, wait: &mut WaitSet) {
        let _ = now;
        wait.soon();
    }

    /// Name for threads, counters and logs, e.g. `"sequencer"`.
    fn role_name(&self) -> &'static str;

    /// Called once on the agent's own thread before any agent of the system does work.
    ///
    /// # Errors
    /// Any error here stops the whole system before it starts.
    fn on_start(&mut self) -> Result<(), AgentError> {
        Ok(())
    }

    /// Called in place of [`do_work`](Self::do_work) once the system is to stop, again and again until every agent
    /// of the thread is done or the [time](crate::FINISH_TIMEOUT) is up: does a bounded amount of what is left to do
    /// for what was taken, and takes nothing new. True when nothing is left. An agent that waits for another, on this
    /// thread or elsewhere, learns of its end by the ring between them.
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

/// Why a duty cycle failed.
///
/// One pointer wide, so that the result of a good duty cycle is returned in registers.
#[derive(Debug)]
pub struct AgentError(Box<Cause>);

#[derive(Debug)]
struct Cause {
    message: String,
    fatal: bool,
}

impl AgentError {
    /// An error after which the system cannot go on: it is stopped and the message is its outcome.
    #[must_use]
    pub fn fatal(message: impl fmt::Display) -> AgentError {
        AgentError(Box::new(Cause { message: message.to_string(), fatal: true }))
    }

    /// An error that the agent has already dealt with; it is counted and kept for reports.
    #[must_use]
    pub fn recoverable(message: impl fmt::Display) -> AgentError {
        AgentError(Box::new(Cause { message: message.to_string(), fatal: false }))
    }

    /// Whether the whole system has to stop.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.0.fatal
    }

    /// What went wrong and what to do about it, in one line.
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
    /// What it reported.
    #[source]
    pub error: AgentError,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_its_message_and_fits_registers() {
        let fatal = AgentError::fatal("journal: disk full: free some space");
        assert!(fatal.is_fatal());
        assert!(!AgentError::recoverable("one datagram refused").is_fatal());
        let failure = AgentFailure { role: "sequencer", error: fatal };
        assert_eq!(failure.to_string(), "sequencer: journal: disk full: free some space");
        assert_eq!(size_of::<Result<usize, AgentError>>(), 2 * size_of::<usize>());
    }
}
