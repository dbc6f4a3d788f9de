//! The log where it is kept, for those who read it beside the venue.

use tickpath_lockfree::wake::Waker;
use tickpath_matching::CodecError;
use tickpath_types::Sequence;

use crate::log_command::LogCommand;
use crate::replica::Replica;

/// The log cannot be followed any more by this reader; the venue itself continues.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogReadError {
    /// The log cannot be read: look at the file, or at the disk.
    #[error(transparent)]
    Storage(Box<dyn std::error::Error + Send + Sync>),
    /// A record is no command: another version of the program wrote it.
    #[error("record {sequence} of the journal is no command: {source}")]
    Command {
        /// Which.
        sequence: Sequence,
        /// Why.
        source: CodecError,
    },
    /// No snapshot is there to begin with: restore one from a copy.
    #[error("the journal has no snapshot that can be used")]
    NoSnapshot,
    /// Restore it from a copy.
    #[error(
        "the snapshot of command {0} cannot be used, and what follows it was decided by other users or bounds than what \
         came before"
    )]
    DefinitionUnknown(Sequence),
}

impl LogReadError {
    /// A [`LogReadError::Storage`].
    pub fn storage(error: impl std::error::Error + Send + Sync + 'static) -> LogReadError {
        LogReadError::Storage(Box::new(error))
    }
}

pub(crate) type LogResult<T> = Result<T, LogReadError>;

/// A log and its snapshots, read while the venue writes them.
pub trait StoredLog: Send {
    /// The last command that is durable.
    fn durable(&self) -> Sequence;

    /// The last command of each snapshot, in order.
    ///
    /// # Errors
    /// [`LogReadError::Storage`].
    fn snapshots(&self) -> Result<Vec<Sequence>, LogReadError>;

    /// The replica of a snapshot; `None` when it cannot be used, or was removed meanwhile.
    fn replica(&self, snapshot: Sequence) -> Option<Replica>;

    /// The commands from `first` on; `None` when the log begins later.
    ///
    /// # Errors
    /// [`LogReadError::Storage`].
    fn commands_from(&self, first: Sequence) -> Result<Option<Box<dyn StoredCommands>>, LogReadError>;

    /// Has each command that becomes durable wake the thread behind `waker`.
    fn wake_by(&self, waker: &Waker);
}

/// The commands of a log, one after the other.
pub trait StoredCommands: Send {
    /// The next command, if it is there and at most `limit`, which is durable.
    ///
    /// # Errors
    /// [`LogReadError::Storage`] or [`LogReadError::Command`].
    fn next(&mut self, limit: Sequence) -> Result<Option<LogCommand>, LogReadError>;
}
