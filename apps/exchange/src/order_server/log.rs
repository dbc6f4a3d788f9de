//! The journal beside the order server's duty cycle.

use tickpath_agent::AgentError;
use tickpath_net::Network;
use tickpath_timing::Tracer;
use tickpath_types::RejectReason;

use super::OrderServer;
use crate::journal::LogState;

impl<T: Tracer, N: Network> OrderServer<T, N> {
    /// Moves the journal on; returns how much there was to do.
    #[inline]
    pub(super) fn move_log_on(&mut self) -> Result<usize, AgentError> {
        let mut work = self.sequencer.poll_journal();
        if work > 0 {
            self.note_log_state()?;
        }
        if self.held_answer.is_some() {
            work += self.release_answer();
        }
        Ok(work)
    }

    fn note_log_state(&mut self) -> Result<(), AgentError> {
        self.journal.durable.set(self.sequencer.durable().0);
        self.journal.delayed.set(self.sequencer.delayed());
        let state = self.sequencer.log_state();
        if state == self.log_state { Ok(()) } else { self.take_log_state(state) }
    }

    /// Without room for another segment new orders are refused, through what room there is; without a log nothing is
    /// answered any more.
    #[cold]
    fn take_log_state(&mut self, state: LogState) -> Result<(), AgentError> {
        self.log_state = state;
        let is_full = state == LogState::Full;
        self.journal.is_full.set(is_full.into());
        let refusal = is_full.then_some(RejectReason::JournalFull);
        self.users.iter_mut().for_each(|user| user.gate.set_refusal(refusal));
        match state {
            LogState::Running | LogState::Full => Ok(()),
            LogState::Failed(failure) => {
                self.journal.has_failed.set(1);
                Err(AgentError::fatal(format!(
                    "{failure}: nothing more is answered; start the venue again once the disk works"
                )))
            }
        }
    }
}
