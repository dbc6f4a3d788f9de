//! The log to which commands are written before they take effect.

use tickpath_lockfree::wake::Waker;
use tickpath_types::Sequence;

use crate::log_command::LogCommand;

/// The state of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogState {
    /// The log accepts commands.
    Running,
    /// There is no space for another segment of the log.
    Full,
    /// Writing has stopped; [`CommandLog::failure`] gives the reason.
    Failed,
}

/// The log to which commands are written before they take effect, independent of its storage.
pub trait CommandLog: Send {
    /// Appends the next command. Returns false if the log cannot take it yet: append it again later.
    fn append(&mut self, command: &LogCommand) -> bool;
    /// Does pending work of the log without blocking; returns the amount of work.
    fn poll(&mut self) -> usize;
    /// Sequence number of the last durable command; responses to commands up to it may be sent.
    fn durable(&self) -> Sequence;
    /// The state of the log.
    fn state(&self) -> LogState;
    /// Description of the failure that stopped the log, if any.
    fn failure(&self) -> Option<String>;
    /// Registers `waker`: the log wakes the waker's thread when [`poll`](Self::poll) has work to do.
    fn wake_by(&self, waker: &Waker);
    /// False while the current segment's free space is reserved for cancels: append no refusals then.
    fn has_space_for_refusals(&self) -> bool;
}
