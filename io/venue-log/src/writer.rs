//! The journal's interface for the sequencer.

use tickpath_journal::{Journal, State, Storage};
use tickpath_lockfree::wake::Waker;
use tickpath_types::Sequence;
use tickpath_venue::{CommandLog, LogCommand, LogState};

/// A journal as the command log of the sequencer.
pub struct JournalLog<S: Storage>(pub Journal<S>);

/// 1/`RESERVED_FOR_CANCELS` of a segment is reserved for cancels while no next segment can be created.
const RESERVED_FOR_CANCELS: u64 = 4;

impl<S: Storage> CommandLog for JournalLog<S> {
    #[inline]
    fn append(&mut self, command: &LogCommand) -> bool {
        // The error is not needed: `state` reports a permanent failure, and all others are temporary.
        self.0.append_with(command.sequence(), |out| command.encode(out)).is_ok()
    }

    #[inline]
    fn poll(&mut self) -> usize {
        self.0.poll()
    }

    #[inline]
    fn durable(&self) -> Sequence {
        self.0.durable()
    }

    fn state(&self) -> LogState {
        match self.0.state() {
            State::Running => LogState::Running,
            State::NoNextSegment(_) => LogState::Full,
            State::Failed(_) => LogState::Failed,
        }
    }

    fn failure(&self) -> Option<String> {
        match self.0.state() {
            State::Failed(failure) => Some(failure.to_string()),
            State::Running | State::NoNextSegment(_) => None,
        }
    }

    fn wake_by(&self, waker: &Waker) {
        self.0.durable_view().wake_by(waker);
    }

    fn has_space_for_refusals(&self) -> bool {
        self.0.remaining_len() > self.0.segment_len() / RESERVED_FOR_CANCELS
    }
}
