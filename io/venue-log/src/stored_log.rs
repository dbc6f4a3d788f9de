//! The journal's interface for readers other than the venue itself.

use tickpath_journal::{DurableView, OpenError, Reader, Record, SessionName, Snapshots, Storage};
use tickpath_lockfree::wake::Waker;
use tickpath_types::Sequence;
use tickpath_venue::{LogCommand, LogReadError, Replica, StoredCommands, StoredLog};

/// Access to the log and the snapshots in a journal's folder, also while the venue writes them.
#[derive(Clone)]
pub struct StoredJournal<S: Storage> {
    storage: S,
    session: SessionName,
    durable: DurableView,
}

impl<S: Storage> StoredJournal<S> {
    /// Creates a reader of a session's log up to its durable end.
    pub fn new(storage: S, session: SessionName, durable: DurableView) -> StoredJournal<S> {
        StoredJournal { storage, session, durable }
    }

    pub(super) fn snapshot_files(&self) -> Snapshots<S> {
        Snapshots::new(self.storage.clone(), self.session)
    }

    /// Reads the replica of the newest snapshot that covers no command after `limit`.
    pub(super) fn newest(&self, limit: Sequence) -> Result<Replica, LogReadError> {
        let newest = self.snapshot_files().newest(limit).map_err(LogReadError::storage)?;
        let snapshot = newest.snapshot.ok_or(LogReadError::NoSnapshot)?;
        Replica::decode(&snapshot.payload).map_err(LogReadError::storage)
    }
}

impl<S: Storage> StoredLog for StoredJournal<S> {
    fn durable(&self) -> Sequence {
        self.durable.durable()
    }

    fn snapshots(&self) -> Result<Vec<Sequence>, LogReadError> {
        self.snapshot_files().list().map_err(LogReadError::storage)
    }

    fn replica(&self, snapshot: Sequence) -> Option<Replica> {
        let snapshot = self.snapshot_files().read(snapshot).ok()?.ok()?;
        Replica::decode(&snapshot.payload).ok()
    }

    fn commands_from(&self, first: Sequence) -> Result<Option<Box<dyn StoredCommands>>, LogReadError> {
        match Reader::open(&self.storage, self.session, first) {
            Err(OpenError::OutOfRange { .. }) => Ok(None),
            Err(error) => Err(LogReadError::storage(error)),
            Ok(reader) => Ok(Some(Box::new(JournalCommands(reader)))),
        }
    }

    fn wake_by(&self, waker: &Waker) {
        self.durable.wake_by(waker);
    }
}

/// A reader of a journal's commands.
struct JournalCommands<S: Storage>(Reader<S>);

impl<S: Storage> StoredCommands for JournalCommands<S> {
    fn next(&mut self, limit: Sequence) -> Result<Option<LogCommand>, LogReadError> {
        self.0.next(limit).map_err(LogReadError::storage)?.map(decode).transpose()
    }
}

/// The command of a record.
pub(super) fn decode(record: Record<'_>) -> Result<LogCommand, LogReadError> {
    let Record { sequence, payload } = record;
    LogCommand::decode(payload).map_err(|source| LogReadError::Command { sequence, source })
}
