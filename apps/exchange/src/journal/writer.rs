//! The journal as the sequencer has it.

use tickpath_journal::{Failure, Journal, State, Storage};
use tickpath_lockfree::wake::Waker;
use tickpath_matching::Command;
use tickpath_types::Sequence;

/// How the log stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogState {
    Running,
    /// There is no room for another segment.
    Full,
    /// Nothing is written any more.
    Failed(Failure),
}

/// Where commands go before they take effect, whatever disk is below.
pub(crate) trait CommandLog: Send {
    /// Takes the next command; false when it must wait.
    fn append(&mut self, command: &Command) -> bool;
    /// Moves things on without waiting; returns how much there was to do.
    fn poll(&mut self) -> usize;
    /// The last command that may be answered.
    fn durable(&self) -> Sequence;
    fn state(&self) -> LogState;
    /// Has the thread behind `waker` woken when there is something to poll.
    fn wake_by(&self, waker: &Waker);
    /// False when what room there is, while there can be no other segment, is kept for what takes orders away.
    fn has_room_for_refusals(&self) -> bool;
}

/// The part of a segment, one in so many, that is kept for cancels while there can be no other segment.
const KEPT_FOR_CANCELS: u64 = 4;

impl<S: Storage> CommandLog for Journal<S> {
    #[inline]
    fn append(&mut self, command: &Command) -> bool {
        // Whatever the reason, it is in the state, or will have passed by the next duty cycle.
        self.append_with(command.sequence, |out| command.encode(out)).is_ok()
    }

    #[inline]
    fn poll(&mut self) -> usize {
        Journal::poll(self)
    }

    #[inline]
    fn durable(&self) -> Sequence {
        Journal::durable(self)
    }

    fn state(&self) -> LogState {
        match Journal::state(self) {
            State::Running => LogState::Running,
            State::NoNextSegment(_) => LogState::Full,
            State::Failed(failure) => LogState::Failed(failure),
        }
    }

    fn wake_by(&self, waker: &Waker) {
        self.durable_view().wake_by(waker);
    }

    fn has_room_for_refusals(&self) -> bool {
        self.room() > self.segment_len() / KEPT_FOR_CANCELS
    }
}
