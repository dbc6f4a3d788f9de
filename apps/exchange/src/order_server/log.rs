//! The journal beside the order server's duty cycle.

use tickpath_agent::AgentError;
use tickpath_nasdaq::soupbintcp::{HEADER_LEN, Packet};
use tickpath_net::Network;
use tickpath_timing::Tracer;
use tickpath_types::RejectReason;
use tickpath_venue::{LogState, Sequencer};

use super::OrderServer;

/// What a client is told of a request that has no record.
const UNLOGGED_REFUSAL: &[u8] = b"refused, and not logged: the journal is full, and cancels alone are taken";

/// True while requests that take no order away are not to have a record: what room is left is kept for those that do.
#[inline(always)]
pub(super) fn is_kept_for_cancels(state: LogState, sequencer: &Sequencer) -> bool {
    state == LogState::Full && !sequencer.has_room_for_refusals()
}

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

    /// Says in a packet without a number that a request was refused: what is not in the log must not be among the
    /// messages that can be sent again.
    #[cold]
    pub(super) fn refuse_without_record(&mut self, place: usize) {
        self.journal.unlogged_refusals.add(1);
        let Some(connection) = self.connections[place].as_mut() else { return };
        let mut bytes = [0; HEADER_LEN + UNLOGGED_REFUSAL.len()];
        if let Ok(len) = Packet::Debug(UNLOGGED_REFUSAL).encode(&mut bytes) {
            // To who does not read nothing more is said.
            let _ = connection.link.tcp.queue(&bytes[..len]);
            connection.is_behind = true;
        }
    }

    /// Without room for another segment new orders are refused, through what room there is; without a log nothing is
    /// answered any more.
    #[cold]
    fn take_log_state(&mut self, state: LogState) -> Result<(), AgentError> {
        self.log_state = state;
        let is_full = state == LogState::Full;
        self.journal.is_full.set(is_full.into());
        let refusal = is_full.then_some(RejectReason::JournalFull);
        self.users.iter_mut().for_each(|user| user.filter.set_refusal(refusal));
        match state {
            LogState::Running | LogState::Full => Ok(()),
            LogState::Failed => {
                self.journal.has_failed.set(1);
                let failure = self.sequencer.log_failure().unwrap_or_default();
                Err(AgentError::fatal(format!(
                    "{failure}: nothing more is answered; start the venue again once the disk works"
                )))
            }
        }
    }
}
