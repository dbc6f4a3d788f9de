//! Replay of a whole log, and comparison of the replayed states with the log's snapshots.

use tickpath_journal::{OpenError, Reader, SessionName, SkippedSnapshot, Snapshots, Storage};
use tickpath_types::Sequence;
use tickpath_venue::Replica;

use crate::recovery::{RecoveryError, check, replay, restore};

/// The result of replaying a log.
pub struct Audit {
    /// The replica after the last command.
    pub replica: Replica,
    /// Last command covered by the snapshot from which the replay began.
    pub from: Sequence,
    /// Number of snapshots whose state hash was checked, including the first.
    pub snapshots_checked: u64,
    /// Snapshots that are unusable.
    pub skipped: Vec<SkippedSnapshot>,
}

/// Replays the log in `storage` up to `last`, from the newest snapshot that covers no command after `from`,
/// or else the oldest snapshot. Compares the replayed state with each snapshot's. Changes no files.
///
/// # Errors
/// [`RecoveryError`] when no snapshot is usable, a record is damaged, or a state differs.
pub fn audit<S: Storage>(
    storage: &S,
    session: SessionName,
    from: Sequence,
    last: Sequence,
    mut on_progress: impl FnMut(Sequence),
) -> Result<Audit, RecoveryError> {
    let snapshots = Snapshots::new(storage.clone(), session);
    let listed = snapshots.list()?;
    let start = listed.partition_point(|sequence| *sequence <= from).saturating_sub(1);
    let mut audit: Option<Audit> = None;
    let mut skipped = Vec::new();
    for sequence in listed.into_iter().skip(start).filter(|sequence| *sequence <= last) {
        let snapshot = match snapshots.read(sequence)? {
            Ok(snapshot) => snapshot,
            Err(damage) => {
                skipped.push(snapshots.skipped(sequence, damage));
                continue;
            }
        };
        let recorded = restore(&snapshot)?;
        match &mut audit {
            None => {
                audit = Some(Audit {
                    replica: recorded,
                    from: sequence,
                    snapshots_checked: 1,
                    skipped: Vec::new(),
                });
            }
            Some(audit) => {
                advance(storage, session, &mut audit.replica, sequence, &mut on_progress)?;
                // The snapshot may have other limits or users, configured at a later start: adopt them. If
                // `redefine` fails, `check` reports a different hash.
                audit.replica.redefine(recorded.definition().clone()).ok();
                check(&audit.replica, sequence, snapshot.state_hash)?;
                audit.replica = recorded;
                audit.snapshots_checked += 1;
            }
        }
    }
    let mut audit = audit.ok_or_else(|| RecoveryError::NoSnapshot {
        first: from,
        skipped: skipped.iter().map(|skipped| skipped.file.as_str()).collect::<Vec<_>>().join(", "),
    })?;
    advance(storage, session, &mut audit.replica, last, &mut on_progress)?;
    audit.skipped = skipped;
    Ok(audit)
}

fn advance<S: Storage>(
    storage: &S,
    session: SessionName,
    replica: &mut Replica,
    to: Sequence,
    on_progress: &mut impl FnMut(Sequence),
) -> Result<(), RecoveryError> {
    let next = replica.last_command().next();
    if next > to {
        return Ok(());
    }
    let mut reader = match Reader::open(storage, session, next) {
        Err(OpenError::OutOfRange { first, .. }) if first > next => {
            return Err(RecoveryError::NoSnapshot { first, skipped: "none reaches it".to_owned() });
        }
        opened => opened?,
    };
    replay(&mut reader, to, replica, on_progress)
}
