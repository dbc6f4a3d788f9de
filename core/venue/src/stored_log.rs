//! The stored log, for readers beside the venue.

use tickpath_lockfree::wake::Waker;
use tickpath_matching::CodecError;
use tickpath_types::Sequence;

use crate::log_command::LogCommand;
use crate::replica::Replica;

/// The log cannot be followed any more by this reader; the venue itself continues.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogReadError {
    /// The log cannot be read: check the file and the disk.
    #[error(transparent)]
    Storage(Box<dyn std::error::Error + Send + Sync>),
    /// A record is not a command: another version of the program wrote it.
    #[error("record {sequence} of the journal is no command: {source}")]
    Command {
        /// Sequence of the record.
        sequence: Sequence,
        /// Reason of the failure.
        source: CodecError,
    },
    /// There is no usable snapshot: restore one from a copy.
    #[error("the journal has no snapshot that can be used")]
    NoSnapshot,
    /// Restore the snapshot from a copy.
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

    /// The replica of a snapshot; `None` when it is unusable or was removed meanwhile.
    fn replica(&self, snapshot: Sequence) -> Option<Replica>;

    /// The commands from `first`; `None` when the log begins later.
    ///
    /// # Errors
    /// [`LogReadError::Storage`].
    fn commands_from(&self, first: Sequence) -> Result<Option<Box<dyn StoredCommands>>, LogReadError>;

    /// Makes each command that becomes durable wake the thread behind `waker`.
    fn wake_by(&self, waker: &Waker);
}

/// The commands of a log, one after the other.
pub trait StoredCommands: Send {
    /// The next command, if it is available and at most `limit`, which is durable.
    ///
    /// # Errors
    /// [`LogReadError::Storage`] or [`LogReadError::Command`].
    fn next(&mut self, limit: Sequence) -> Result<Option<LogCommand>, LogReadError>;
}
