//! Recovery of the venue's state from its log.

use std::fmt;
use std::time::Instant;

use tickpath_journal::{
    ACKNOWLEDGED_FILE, DiskWorker, InspectOptions, Journal, JournalConfig, OpenError, Opened, Reader,
    SessionName, SkippedSnapshot, Snapshot, SnapshotDamage, Snapshots, Storage, TornTail, open, read_ahead,
    session_of, snapshot_name,
};
use tickpath_matching::LOOK_AHEAD_LEN;
use tickpath_types::Sequence;
use tickpath_venue::{Definition, LogCommand, LogReadError, Replica, ReplicaError};

use crate::stored_log::decode;

/// End of some error messages: the remedy for a user without a backup.
const REMEDY_WITHOUT_BACKUP: &str = ", or copy the folder and accept by --accept-loss that commands may now be decided otherwise than they \
                         were answered";

/// A venue cannot be recovered from its journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoveryError {
    /// The journal cannot be opened.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// The replica cannot be created or redefined.
    #[error(transparent)]
    Replica(#[from] ReplicaError),
    /// A snapshot cannot be restored. If it cannot be decoded, restore the file from a backup.
    #[error("{file}: {source}")]
    Snapshot {
        /// File name of the snapshot.
        file: String,
        /// Reason of the failure.
        source: ReplicaError,
    },
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogReadError),
    /// The journal has another session: configure that session or none, or begin a new session.
    #[error(
        "the journal is of session {found}, not {expected}: leave the session's name out to continue it, or begin \
         another by --new-session"
    )]
    Session {
        /// Session of the journal.
        found: SessionName,
        /// The configured session.
        expected: SessionName,
    },
    /// The log lost its end: restore it from a backup, or accept the loss.
    #[error(
        "the journal ends with command {last} and a snapshot covers {snapshot}: the log lost its end; restore it from a \
         copy, or accept the loss by --accept-loss"
    )]
    LostEnd {
        /// Last record of the log.
        last: Sequence,
        /// Last command covered by the newest snapshot.
        snapshot: Sequence,
    },
    /// No snapshot is usable: restore one, or the log's first segments, from a backup.
    #[error(
        "the journal begins with command {first} and no snapshot before it can be used: restore one from a copy{} ({skipped})",
        if *first == Sequence(1) { REMEDY_WITHOUT_BACKUP } else { "" }
    )]
    NoSnapshot {
        /// First record of the log.
        first: Sequence,
        /// Descriptions of the unusable snapshots.
        skipped: String,
    },
    /// A snapshot is unusable, and the configuration differs from that of the snapshot before it: restore the
    /// file from a backup, or start once with the configuration of the last start.
    #[error(
        "{file} cannot be used ({damage}), and the configuration differs from that of the snapshot before it: the commands \
         after it may have been decided with either; put the file back from a copy, or, if the configuration was changed \
         since the last start, start once with the previous one{REMEDY_WITHOUT_BACKUP}"
    )]
    DefinitionUnknown {
        /// File name of the unusable snapshot.
        file: String,
        /// Damage of the snapshot.
        damage: SnapshotDamage,
    },
    /// Replay does not reach the state hash of an unusable snapshot: restore that snapshot from a backup.
    #[error(
        "{file} cannot be used ({damage}), and the log does not lead from the snapshot before it to the state that it \
         recorded: other users or bounds, or another version of the program, decided the commands between; put the file \
         back from a copy{REMEDY_WITHOUT_BACKUP}"
    )]
    StateUnreached {
        /// File name of the snapshot.
        file: String,
        /// Damage of the snapshot.
        damage: SnapshotDamage,
    },
    /// The log and the snapshots are from different runs, or this program decides commands differently.
    #[error("after command {sequence} the state hash is {found:016x}, and {expected:016x} was recorded")]
    StateHash {
        /// Last command that the snapshot covers.
        sequence: Sequence,
        /// State hash recorded in the snapshot.
        expected: u64,
        /// State hash after the replay.
        found: u64,
    },
    /// A command causes a response to a user that the snapshot before it does not list: restore a newer
    /// snapshot from a backup.
    #[error(
        "command {sequence} caused an answer to a user that the snapshot before it does not name: a newer snapshot is \
         missing, put it back from a copy"
    )]
    Undeliverable {
        /// The command that caused the response.
        sequence: Sequence,
    },
    /// Another version of the program wrote the journal: use that version.
    #[error(
        "command {sequence} caused an event that market data cannot encode: use the version of the program that wrote the \
         journal"
    )]
    Unencodable {
        /// The command with an event that market data cannot encode.
        sequence: Sequence,
    },
}

/// The report of a recovery.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// The session, new or continued.
    pub session: SessionName,
    /// Generation of the session: number of its starts that may have lost answered commands.
    pub generation: u32,
    /// Last command of the log.
    pub last: Sequence,
    /// Last command covered by the snapshot from which the replay began, if any.
    pub snapshot: Option<Sequence>,
    /// Newer snapshots that are unusable, each with the reason.
    pub skipped: Vec<String>,
    /// Number of commands read from the log after the snapshot.
    pub replayed: u64,
    /// Segments with a damaged header, removed because the loss was accepted. The snapshot covers their
    /// commands.
    pub covered: Vec<String>,
    /// Torn tail that was cut off the log, if any.
    pub torn: Option<TornTail>,
    /// Snapshots removed because the log lost its end, and the loss was accepted.
    pub lost: Vec<String>,
    /// True when no file that records the acknowledged end of the log could be read.
    pub is_unrecorded: bool,
    /// Hash of the recovered state.
    pub state_hash: u64,
    /// Duration of the recovery.
    pub elapsed: std::time::Duration,
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Recovery { session, generation, last, replayed, state_hash, elapsed, .. } = self;
        if last.0 == 0 {
            write!(f, "session {session} begins")?;
        } else {
            write!(f, "session {session} continues after command {last}: ")?;
            match self.snapshot {
                Some(sequence) => write!(f, "snapshot {sequence}")?,
                None => write!(f, "no snapshot")?,
            }
            write!(f, " and {replayed} commands, state hash {state_hash:016x}, in {elapsed:.3?}")?;
        }
        if let Some(TornTail { file, offset, later_records, was_acknowledged, sequence, .. }) = &self.torn {
            let tail = if *was_acknowledged { "damage, which was accepted," } else { "a torn tail" };
            write!(
                f,
                "\n{file}: {tail} at byte {offset} was cut off from command {sequence} on, with {later_records} later \
                 records"
            )?;
        }
        if self.is_unrecorded && last.0 > 0 {
            write!(
                f,
                "\nno file {ACKNOWLEDGED_FILE} could be read: an earlier version wrote the journal, or the file was removed or \
                 damaged; only the journal's records show where it ends"
            )?;
        }
        if *generation > 0 {
            write!(
                f,
                "\nanswered commands may have been lost before this start or an earlier one: the session is in \
                 generation {generation}, under a name of its own"
            )?;
        }
        for file in &self.covered {
            write!(
                f,
                "\n{file} was removed: damage to a segment's header was accepted, and the snapshot covers it"
            )?;
        }
        for file in &self.lost {
            write!(f, "\n{file} was removed: it covers more than the log, which lost its end")?;
        }
        for snapshot in &self.skipped {
            write!(f, "\n{snapshot} was not used")?;
        }
        Ok(())
    }
}

/// An open journal and the recovered replica.
pub struct Recovered<S: Storage> {
    /// The journal, to which the sequencer appends.
    pub journal: Journal<S>,
    /// The journal's disk worker, to run on a separate thread.
    pub worker: DiskWorker<S>,
    /// The replica after the last command.
    pub replica: Replica,
    /// The report of the recovery.
    pub recovery: Recovery,
}

/// Options for opening a journal.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryOptions {
    /// Durability policy, segment and buffer lengths, and first sequence number of the journal.
    pub config: JournalConfig,
    /// Expected session of the journal; any session when `None`.
    pub session: Option<SessionName>,
    /// Name of the session to begin if the journal has none.
    pub new_session: SessionName,
    /// True to accept the loss of answered commands.
    pub accept_loss: bool,
}

/// Opens the journal in `storage` and replays the log from the newest usable snapshot. The journal's session
/// may differ from `new_session`. On return, a snapshot exists from which all later commands can be replayed
/// with the same results.
///
/// # Errors
/// [`RecoveryError`], each with its remedy.
pub fn recover<S: Storage>(
    storage: &S,
    options: &RecoveryOptions,
    definition: Definition,
) -> Result<Recovered<S>, RecoveryError> {
    let started = Instant::now();
    let found = session_of(storage)?;
    let session = found.unwrap_or(options.new_session);
    if let Some(expected) = options.session.filter(|expected| *expected != session) {
        return Err(RecoveryError::Session { found: session, expected });
    }
    let snapshots = Snapshots::new(storage.clone(), session);
    let mut lost = match found {
        Some(_) => Vec::new(),
        None => remove_without_log(&snapshots, options.accept_loss)?,
    };
    let newest = snapshots.newest(Sequence(u64::MAX))?;
    let snapshot = newest.snapshot.as_ref().map(|snapshot| snapshot.sequence);
    let inspected = InspectOptions {
        session: Some(session),
        from: snapshot.map_or(Sequence(0), Sequence::next),
        accept_loss: options.accept_loss,
    };
    let Opened { journal, worker, found, generation } = open(storage, session, options.config, &inspected)?;
    let last = journal.last_appended();
    if options.accept_loss {
        // Snapshots beyond the log's end cannot be used: their last commands are lost.
        lost.extend(snapshots.remove_after(last)?);
    } else if let Some(snapshot) = snapshot.filter(|snapshot| *snapshot > last) {
        return Err(RecoveryError::LostEnd { last, snapshot });
    }
    let skipped: Vec<String> =
        newest.skipped.iter().map(|skipped| format!("{}: {}", skipped.file, skipped.damage)).collect();
    // If all snapshots are unusable, the users and limits that applied to the first commands are unknown.
    let is_unknown = last > Sequence(0) && !skipped.is_empty() && !options.accept_loss;
    let first = found.first_sequence();
    let mut replica = match newest.snapshot {
        Some(snapshot) => restore(&snapshot)?,
        None if first <= Sequence(1) && !is_unknown => Replica::new(definition.clone())?,
        None => return Err(RecoveryError::NoSnapshot { first, skipped: skipped.join(", ") }),
    };
    let from = replica.last_command();
    // The replay does not reach snapshots beyond the log's end, so it cannot check their state hashes.
    let mut unusable = newest.skipped;
    unusable.retain(|skipped| skipped.sequence <= last && !options.accept_loss);
    advance(storage, session, last, &mut replica, &unusable)?;
    let is_changed = replica.redefine(definition)?;
    if is_changed && let Some(SkippedSnapshot { file, damage, .. }) = unusable.first() {
        return Err(RecoveryError::DefinitionUnknown { file: file.clone(), damage: *damage });
    }
    let state_hash = replica.state_hash();
    if is_changed || snapshot.is_none() || !skipped.is_empty() {
        write_snapshot(&snapshots, &replica, state_hash, &mut Vec::new())?;
    }
    let recovery = Recovery {
        session,
        generation,
        last,
        snapshot: snapshot.filter(|snapshot| snapshot.0 > 0),
        skipped,
        replayed: last.0 - from.0,
        covered: found.covered,
        torn: found.torn,
        lost,
        is_unrecorded: found.acknowledged.is_none(),
        state_hash,
        elapsed: started.elapsed(),
    };
    Ok(Recovered { journal, worker, replica, recovery })
}

/// Removes the snapshots of a journal without a log, or returns an error if the loss is not accepted. A new
/// journal has no snapshots.
fn remove_without_log<S: Storage>(
    snapshots: &Snapshots<S>,
    accept_loss: bool,
) -> Result<Vec<String>, RecoveryError> {
    match snapshots.list()?.last() {
        None => Ok(Vec::new()),
        Some(_) if accept_loss => Ok(snapshots.remove_after(Sequence(0))?),
        Some(&snapshot) => Err(RecoveryError::LostEnd { last: Sequence(0), snapshot }),
    }
}

/// Replays the log up to `last`. After the last command of each snapshot in `unusable` (newest first), the
/// state must have the hash recorded for that snapshot.
fn advance<S: Storage>(
    storage: &S,
    session: SessionName,
    last: Sequence,
    replica: &mut Replica,
    unusable: &[SkippedSnapshot],
) -> Result<(), RecoveryError> {
    let from = replica.last_command();
    if from >= last {
        return Ok(());
    }
    let mut reader = Reader::open(storage, session, from.next())?;
    for SkippedSnapshot { file, sequence, damage, state_hash } in unusable.iter().rev() {
        replay(&mut reader, *sequence, replica, |_| ())?;
        if state_hash.is_some_and(|recorded| recorded != replica.state_hash()) {
            return Err(RecoveryError::StateUnreached { file: file.clone(), damage: *damage });
        }
    }
    replay(&mut reader, last, replica, |_| ())
}

/// Writes a snapshot of a replica; `payload` is the buffer for its bytes.
pub(super) fn write_snapshot<S: Storage>(
    snapshots: &Snapshots<S>,
    replica: &Replica,
    state_hash: u64,
    payload: &mut Vec<u8>,
) -> Result<(), OpenError> {
    payload.clear();
    replica.encode(payload);
    snapshots.write(replica.last_command(), state_hash, payload)
}

/// Decodes the replica of a snapshot and checks its state hash.
pub(super) fn restore(snapshot: &Snapshot) -> Result<Replica, RecoveryError> {
    let replica = Replica::decode(&snapshot.payload)
        .map_err(|source| RecoveryError::Snapshot { file: snapshot_name(snapshot.sequence), source })?;
    check(&replica, snapshot.sequence, snapshot.state_hash)?;
    Ok(replica)
}

pub(super) fn check(replica: &Replica, sequence: Sequence, expected: u64) -> Result<(), RecoveryError> {
    match replica.state_hash() {
        found if found != expected => Err(RecoveryError::StateHash { sequence, expected, found }),
        _ => Ok(()),
    }
}

/// Applies the commands up to `last`; regularly calls `on_progress` with the last command applied.
pub(super) fn replay<S: Storage>(
    reader: &mut Reader<S>,
    last: Sequence,
    replica: &mut Replica,
    mut on_progress: impl FnMut(Sequence),
) -> Result<(), RecoveryError> {
    let mut next_progress = 0;
    read_ahead(
        reader,
        last,
        |record, commands| {
            commands.push(decode(record)?);
            Ok(())
        },
        |commands: &[LogCommand]| {
            for batch in commands.chunks(LOOK_AHEAD_LEN) {
                replica.look_ahead(batch);
                batch.iter().for_each(|command| replica.apply(command));
            }
            if let Some(end) = commands.last().map(|command| command.sequence())
                && end.0 >= next_progress
            {
                next_progress = end.0 + PROGRESS_EVERY;
                on_progress(end);
            }
            Ok::<_, RecoveryError>(())
        },
    )?;
    match (replica.streams.undeliverable, replica.streams.unencodable) {
        (Some(sequence), _) => Err(RecoveryError::Undeliverable { sequence }),
        (None, Some(sequence)) => Err(RecoveryError::Unencodable { sequence }),
        (None, None) => Ok(()),
    }
}

/// Number of commands between two progress reports.
const PROGRESS_EVERY: u64 = 1 << 18;
