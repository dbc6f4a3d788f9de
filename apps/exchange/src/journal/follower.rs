//! A replica that follows the log while it is written, and writes its snapshots.

use std::sync::Arc;

use tickpath_journal::{DurableView, OpenError, Reader, SessionName, Snapshots, Storage};
use tickpath_matching::CodecError;
use tickpath_types::Sequence;
use tickpath_venue::{LogCommand, Replica, ReplicaError};

use super::JournalCounters;

/// Commands taken at a time.
const COMMANDS_PER_RUN: usize = 1 << 14;

/// The log was not followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowerError {
    /// The log cannot be read, or a snapshot not be written.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// A snapshot cannot be restored.
    #[error(transparent)]
    Replica(#[from] ReplicaError),
    /// A record is no command.
    #[error("record {sequence} of the journal is no command: {source}")]
    Command {
        /// Which.
        sequence: Sequence,
        /// Why.
        source: CodecError,
    },
    /// No snapshot is there to begin with.
    #[error("the journal has no snapshot that can be used")]
    NoSnapshot,
    /// A snapshot was not written; the next is tried when it is due, unless the log cannot be synced.
    #[error("snapshot {sequence} was not written: {source}")]
    Snapshot {
        /// Of which command.
        sequence: Sequence,
        /// Why.
        source: OpenError,
    },
    /// A snapshot is there, and what only those before it needed is there too; it goes when the next is written.
    #[error(
        "snapshot {sequence} was written, and older files that it replaces were not all removed: {source}"
    )]
    Retention {
        /// Of which command.
        sequence: Sequence,
        /// Why.
        source: OpenError,
    },
}

impl FollowerError {
    /// True when trying again is of no use.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            FollowerError::Snapshot { source, .. } => matches!(source, OpenError::Unsynced { .. }),
            FollowerError::Retention { .. } => false,
            _ => true,
        }
    }
}

/// Follows a venue's journal as far as it is durable, and writes a snapshot every so many commands, off the venue's
/// duty cycles and without its help: it reads what the venue has written.
pub struct Follower<S: Storage> {
    storage: S,
    session: SessionName,
    snapshots: Snapshots<S>,
    durable: DurableView,
    every: u64,
    keep: usize,
    counters: Arc<JournalCounters>,
    /// Once it has begun.
    state: Option<(Replica, Reader<S>)>,
    payload: Vec<u8>,
}

impl<S: Storage> Follower<S> {
    pub(crate) fn new(
        storage: S,
        session: SessionName,
        durable: DurableView,
        [every, keep]: [u64; 2],
        counters: Arc<JournalCounters>,
    ) -> Follower<S> {
        let snapshots = Snapshots::new(storage.clone(), session);
        let keep = keep as usize;
        Follower { storage, session, snapshots, durable, every, keep, counters, state: None, payload: vec![] }
    }

    /// Takes some of what is durable and writes a snapshot if one is due; returns how many commands it took.
    ///
    /// # Errors
    /// [`FollowerError`] as it says.
    pub fn run_once(&mut self) -> Result<usize, FollowerError> {
        let limit = self.durable.durable();
        let (replica, reader) = match &mut self.state {
            Some(state) => state,
            state => {
                let newest = self.snapshots.newest(limit)?.snapshot.ok_or(FollowerError::NoSnapshot)?;
                let replica = Replica::decode(&newest.payload)?;
                let reader = Reader::open(&self.storage, self.session, newest.sequence.next())?;
                state.insert((replica, reader))
            }
        };
        let mut count = 0;
        while count < COMMANDS_PER_RUN
            && let Some(record) = reader.next(limit)?
        {
            let sequence = record.sequence;
            let command = LogCommand::decode(record.payload)
                .map_err(|source| FollowerError::Command { sequence, source })?;
            replica.apply(&command);
            count += 1;
            if sequence.0.is_multiple_of(self.every) {
                self.write_snapshot()?;
                break;
            }
        }
        Ok(count)
    }

    fn write_snapshot(&mut self) -> Result<(), FollowerError> {
        let Some((replica, _)) = &self.state else { return Ok(()) };
        let sequence = replica.last_command();
        self.payload.clear();
        replica.encode(&mut self.payload);
        self.snapshots
            .write(sequence, replica.state_hash(), &self.payload)
            .map_err(|source| FollowerError::Snapshot { sequence, source })?;
        self.counters.snapshots.add(1);
        self.counters.snapshot_sequence.set(sequence.0);
        if self.keep == usize::MAX {
            return Ok(());
        }
        let retained = self.snapshots.retain(self.keep);
        retained.map(|_| ()).map_err(|source| FollowerError::Retention { sequence, source })
    }
}
