//! The log that commands are written to before they take effect.

use tickpath_lockfree::wake::Waker;
use tickpath_types::Sequence;

use crate::log_command::LogCommand;

/// The state of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogState {
    /// Commands are written.
    Running,
    /// There is no room for another segment.
    Full,
    /// Nothing is written any more; [`CommandLog::failure`] says why.
    Failed,
}

/// The log that commands are written to before they take effect, on whatever storage.
pub trait CommandLog: Send {
    /// Takes the next command; false when it must wait.
    fn append(&mut self, command: &LogCommand) -> bool;
    /// Does the work that is due without waiting; returns how much there was to do.
    fn poll(&mut self) -> usize;
    /// The last command that may be answered.
    fn durable(&self) -> Sequence;
    /// The state of the log.
    fn state(&self) -> LogState;
    /// The reason of a failure, where there was one.
    fn failure(&self) -> Option<String>;
    /// Has the thread behind `waker` woken when there is something to poll.
    fn wake_by(&self, waker: &Waker);
    /// False when the room that is left, while there can be no other segment, is kept for cancels.
    fn has_room_for_refusals(&self) -> bool;
}
