//! The stored log, for readers other than the venue itself.

use tickpath_lockfree::wake::Waker;
use tickpath_matching::CodecError;
use tickpath_types::Sequence;

use crate::log_command::LogCommand;
use crate::replica::Replica;

/// A reader can no longer follow the log; the venue itself continues.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogReadError {
    /// The log cannot be read: check the file and the disk.
    #[error(transparent)]
    Storage(Box<dyn std::error::Error + Send + Sync>),
    /// A record is not a command: another version of the program wrote it.
    #[error("record {sequence} of the journal is not a command: {source}")]
    Command {
        /// Sequence number of the record.
        sequence: Sequence,
        /// Reason why the record is not a command.
        source: CodecError,
    },
    /// There is no usable snapshot: restore one from a copy.
    #[error("the journal has no snapshot that can be used")]
    NoSnapshot,
    /// A snapshot at which the users or bounds changed is unusable: restore it from a copy.
    #[error(
        "the snapshot of command {0} cannot be used, and the commands after it were decided with other users or bounds \
         than those before it"
    )]
    DefinitionUnknown(Sequence),
}

impl LogReadError {
    /// Creates a [`LogReadError::Storage`].
    pub fn storage(error: impl std::error::Error + Send + Sync + 'static) -> LogReadError {
        LogReadError::Storage(Box::new(error))
    }
}

pub(crate) type LogResult<T> = Result<T, LogReadError>;

/// A log and its snapshots, read while the venue writes them.
pub trait StoredLog: Send {
    /// Sequence number of the last durable command.
    fn durable(&self) -> Sequence;

    /// Sequence number of the last command in each snapshot, in ascending order.
    ///
    /// # Errors
    /// [`LogReadError::Storage`].
    fn snapshots(&self) -> Result<Vec<Sequence>, LogReadError>;

    /// Reads the replica of a snapshot; `None` when the snapshot is unusable or was removed.
    fn replica(&self, snapshot: Sequence) -> Option<Replica>;

    /// Reads the commands from `first` on; `None` when the log begins later.
    ///
    /// # Errors
    /// [`LogReadError::Storage`].
    fn commands_from(&self, first: Sequence) -> Result<Option<Box<dyn StoredCommands>>, LogReadError>;

    /// Makes newly durable commands wake the thread behind `waker`.
    fn wake_by(&self, waker: &Waker);
}

/// A reader of a log's commands in sequence.
pub trait StoredCommands: Send {
    /// The next command; `None` if there is none up to `limit`, which must be durable.
    ///
    /// # Errors
    /// [`LogReadError::Storage`] or [`LogReadError::Command`].
    fn next(&mut self, limit: Sequence) -> Result<Option<LogCommand>, LogReadError>;
}
