//! A follower of the log, which applies the commands while the venue writes them, and takes the snapshots.

use std::sync::Arc;

use tickpath_journal::{OpenError, Storage};
use tickpath_types::Sequence;
use tickpath_venue::{JournalCounters, LogReadError, Replica, StoredCommands, StoredLog};

use crate::recovery::write_snapshot;
use crate::stored_log::StoredJournal;

/// Maximum number of commands that one call of `run_once` applies.
const COMMANDS_PER_RUN: usize = 1 << 14;

/// The log cannot be followed, or a snapshot cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowerError {
    /// The log cannot be followed any more.
    #[error(transparent)]
    Log(#[from] LogReadError),
    /// A snapshot was not written. Later snapshots are tried when due, unless the log cannot be synced.
    #[error("snapshot {sequence} was not written: {source}")]
    Snapshot {
        /// Last command that the snapshot covers.
        sequence: Sequence,
        /// Reason of the failure.
        source: OpenError,
    },
    /// A snapshot was written, but some older files were not removed. The next snapshot removes them.
    #[error(
        "snapshot {sequence} was written, and older files that it replaces were not all removed: {source}"
    )]
    Retention {
        /// Last command that the snapshot covers.
        sequence: Sequence,
        /// Reason of the failure.
        source: OpenError,
    },
}

impl FollowerError {
    /// Returns whether all further calls of `run_once` are useless.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            FollowerError::Snapshot { source, .. } => matches!(source, OpenError::Unsynced { .. }),
            FollowerError::Retention { .. } => false,
            _ => true,
        }
    }
}

/// Follows a venue's journal up to its durable end, and writes a snapshot after each `every` commands.
/// Runs outside the venue's duty cycles and reads only durable commands.
pub struct Follower<S: Storage> {
    log: StoredJournal<S>,
    every: u64,
    keep: usize,
    counters: Arc<JournalCounters>,
    /// The replica and the reader of the log's commands; `None` until the first run.
    state: Option<(Replica, Box<dyn StoredCommands>)>,
    payload: Vec<u8>,
}

impl<S: Storage> Follower<S> {
    /// Creates a follower that writes a snapshot after each `every` commands and keeps the newest `keep`
    /// snapshots.
    #[must_use]
    pub fn new(
        log: StoredJournal<S>,
        every: u64,
        keep: usize,
        counters: Arc<JournalCounters>,
    ) -> Follower<S> {
        Follower { log, every, keep, counters, state: None, payload: vec![] }
    }

    /// Applies a bounded number of durable commands and returns their number; writes a snapshot when due.
    ///
    /// # Errors
    /// [`FollowerError`] when the log cannot be followed or a snapshot not be written.
    pub fn run_once(&mut self) -> Result<usize, FollowerError> {
        let limit = self.log.durable();
        let (replica, commands) = match &mut self.state {
            Some(state) => state,
            state => {
                let newest = self.log.newest(limit)?;
                let commands = self.log.commands_from(newest.last_command().next())?;
                state.insert((newest, commands.ok_or(LogReadError::NoSnapshot)?))
            }
        };
        let mut count = 0;
        while count < COMMANDS_PER_RUN
            && let Some(command) = commands.next(limit)?
        {
            replica.apply(&command);
            count += 1;
            if command.sequence().0.is_multiple_of(self.every) {
                self.write_snapshot()?;
                break;
            }
        }
        Ok(count)
    }

    fn write_snapshot(&mut self) -> Result<(), FollowerError> {
        let Some((replica, _)) = &self.state else { return Ok(()) };
        let sequence = replica.last_command();
        let snapshots = self.log.snapshot_files();
        write_snapshot(&snapshots, replica, replica.state_hash(), &mut self.payload)
            .map_err(|source| FollowerError::Snapshot { sequence, source })?;
        self.counters.snapshots.add(1);
        self.counters.snapshot_sequence.set(sequence.0);
        if self.keep == usize::MAX {
            return Ok(());
        }
        snapshots.retain(self.keep).map_err(|source| FollowerError::Retention { sequence, source })
    }
}
