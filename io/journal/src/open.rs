//! Opens a log: repairs it after a crash, and begins a new segment.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;

use tickpath_faults::failpoint;
use tickpath_types::Sequence;

use crate::acknowledged::{self, Slot};
use crate::format::HEADER_LEN;
use crate::generation::{self, GENERATION_FILE, Generation};
use crate::jobs::{Output, Shared};
use crate::journal::{Journal, WorkerLink};
use crate::log_requirement::LogRequirement;
use crate::segment::{PREPARED, SegmentReader, Step, create_empty, segment_name};
use crate::worker::{DiskWorker, Preparation};
use crate::{
    ACKNOWLEDGED_FILE, InspectOptions, Inspection, JournalConfig, OpenError, Policy, Segment, SessionName,
    Storage, StorageFile, inspect,
};

/// Capacity of each channel between journal and worker: the jobs or reports in flight, with a margin.
const CHANNEL_LEN: usize = 16;
/// Chunk size of `rewrite`, in bytes.
const COPY_LEN: usize = 1 << 20;

/// An open journal, its worker, and the result of the inspection.
#[derive(Debug)]
pub struct Opened<S: Storage> {
    /// The journal, for the sequencer's duty cycle.
    pub journal: Journal<S>,
    /// The worker, for a separate thread: see [`WorkerThread`](crate::WorkerThread).
    pub worker: DiskWorker<S>,
    /// The log after its repair. [`Journal::last_appended`] is the last record to replay.
    pub found: Inspection,
    /// Number of starts, including this one, before which acknowledged records may have been lost. Messages
    /// sent in an earlier generation may refer to lost records: inform the session's clients before anything
    /// is acknowledged.
    pub generation: u32,
}

/// Opens the log in `storage` for appending, exclusively for this process.
///
/// Inspects the log first ([`inspect`]), cuts off a torn tail, makes sure that what remains is on the disk,
/// and begins a new segment after it.
///
/// # Errors
/// [`OpenError`] when `config` is invalid, the log is in use, damaged or of another session, or a disk
/// operation fails.
pub fn open<S: Storage>(
    storage: &S,
    session: SessionName,
    config: JournalConfig,
    options: &InspectOptions,
) -> Result<Opened<S>, OpenError> {
    config.check()?;
    let lock = storage.lock().map_err(OpenError::io("the lock"))?.ok_or(OpenError::InUse)?;
    let lock = Arc::new(lock);
    let mut found = inspect(storage, &InspectOptions { session: Some(session), ..*options })?;
    let requirement = LogRequirement::of(storage, session, acknowledged::read(storage), options.accept_loss)?;
    // Change the generation before the log is cut: afterwards nothing would reveal the loss.
    let generation = advance_generation(storage, session, &found, options.accept_loss, &requirement)?;
    repair(storage, &mut found)?;
    let mut last = match found.segments.is_empty() {
        true => Sequence(config.first_sequence.0 - 1),
        false => found.last_sequence(),
    };
    if options.accept_loss && !continues(&found, last, options.from) {
        // The log ends before the snapshot or has a gap after it: remove it, and begin after the snapshot.
        for segment in found.segments.drain(..) {
            storage.remove(&segment.file).map_err(OpenError::io(&segment.file))?;
        }
        last = Sequence(options.from.0 - 1);
    }
    // The new segment replaces an empty one at the end of the log, if there is one.
    let (file, layout) =
        create_empty(storage, session, &config, last, config.segment_len).map_err(OpenError::io(PREPARED))?;
    let slot = Slot {
        policy: config.policy,
        session,
        boot: generation.boot,
        generation: generation.number,
        sequence: last,
        state_hash: 0,
    };
    let snapshot = requirement.recorded.and_then(|recorded| recorded.snapshot);
    let begins = found.segments.first().map_or(last.next(), |segment| segment.header.first_sequence);
    // Ignore a recorded snapshot that the log does not continue: a newer, unrecorded one may cover the gap.
    let snapshot = snapshot.filter(|snapshot| (begins..=last.next()).contains(&snapshot.sequence.next()));
    let acknowledged =
        acknowledged::begin(storage, slot, snapshot).map_err(OpenError::io(ACKNOWLEDGED_FILE))?;
    let shared = Arc::new(Shared::default());
    shared.durable.store(last.0, Ordering::Release);
    let (job_sender, jobs) = sync_channel(CHANNEL_LEN);
    let (report_sender, reports) = sync_channel(CHANNEL_LEN);
    let output = Output { file, acknowledged };
    let (journal_output, worker_output) =
        if config.policy == Policy::Async { (Some(output), None) } else { (None, Some(output)) };
    let link = WorkerLink { shared: Arc::clone(&shared), jobs: job_sender, reports };
    let journal = Journal::new(session, config, link, layout, last, journal_output, Arc::clone(&lock));
    let worker = DiskWorker {
        storage: storage.clone(),
        config,
        session,
        generation,
        shared,
        jobs,
        reports: report_sender,
        output: worker_output,
        written: HEADER_LEN as u64,
        layout,
        next: Preparation::None,
        has_reported_refusal: false,
        has_failed: false,
        _lock: lock,
    };
    Ok(Opened { journal, worker, found, generation: generation.number })
}

/// Returns whether the log, which ends with `last`, reaches a snapshot and continues it without a gap. `from`
/// is the first record after the snapshot; 0 means that there is no snapshot, and returns true.
fn continues(found: &Inspection, last: Sequence, from: Sequence) -> bool {
    from == Sequence(0) || last.next() >= from && found.first_sequence() <= from
}

/// Returns the generation of the log being opened: a new one if acknowledged records may have been lost. It
/// is on the disk when this returns.
///
/// Records may have been lost if `accepts_loss` is set. They may also have been lost if the policy
/// acknowledges unsynced records ([`Policy::Async`](crate::Policy::Async)) and the system may have been
/// rebooted since; the log need not show such a loss. A log that was closed normally lost nothing if it still
/// ends with the record at which it was closed.
fn advance_generation<S: Storage>(
    storage: &S,
    session: SessionName,
    found: &Inspection,
    accepts_loss: bool,
    requirement: &LogRequirement,
) -> Result<Generation, OpenError> {
    let before = requirement.generation;
    let boot = storage.boot().unwrap_or(0);
    let is_same_boot = boot != 0 && before.is_some_and(|before| before.boot == boot);
    let was_unsynced =
        found.segments.last().is_some_and(|segment| segment.header.policy.acknowledges_unsynced());
    let recorded = requirement.recorded.map(|recorded| recorded.acknowledged.generation);
    let has_begun =
        before.is_some() || recorded.is_some() || !found.segments.is_empty() || found.torn.is_some();
    let closed_at = before.and_then(|before| before.closed_at);
    let is_as_closed = found.torn.is_none() && closed_at == Some(found.last_sequence());
    let may_lack = accepts_loss || was_unsynced && !is_same_boot && !is_as_closed;
    let step = u32::from(has_begun && may_lack);
    failpoint!(LossUnnamed: step = 0);
    // Use the higher number: either file may be an older one that was restored.
    let number = before.unwrap_or_default().number.max(recorded.unwrap_or(0)).saturating_add(step);
    let now = Generation { number, boot, closed_at: None };
    if before != Some(now) {
        generation::write(storage, session, now).map_err(OpenError::io(GENERATION_FILE))?;
    }
    Ok(now)
}

/// Removes everything but the valid part of the log, and syncs that part. Gives a prepared segment that was
/// in use its final name.
fn repair<S: Storage>(storage: &S, found: &mut Inspection) -> Result<(), OpenError> {
    for file in &found.covered {
        storage.remove(file).map_err(OpenError::io(file))?;
    }
    let torn = found.torn.as_ref();
    failpoint!(TornTailKept: torn = None);
    if let Some(torn) = torn {
        for file in torn.later_files.iter().rev() {
            storage.remove(file).map_err(OpenError::io(file))?;
        }
        // With offset 0, the torn segment is itself the first of the later files.
        if torn.offset > 0 {
            let mut file = storage.open(&torn.file).map_err(OpenError::io(&torn.file))?;
            file.truncate(torn.offset).and_then(|()| file.sync()).map_err(OpenError::io(&torn.file))?;
        }
    }
    let synced = found.synced();
    for segment in &found.segments {
        ensure_durable(storage, segment, synced)?;
    }
    if let Some(last) = found.segments.last_mut() {
        release_unused_space(storage, last)?;
        if last.file == PREPARED {
            last.file = segment_name(last.header.first_sequence);
            storage.rename(PREPARED, &last.file).map_err(OpenError::io(PREPARED))?;
        }
    }
    storage.sync_names().map_err(OpenError::io("the folder"))
}

/// Makes sure that a segment is on the disk as it was read.
///
/// After a failed sync, the page cache may hold unwritten data marked clean, which another sync would not
/// write. So data that no record or header reports as synced is rewritten.
fn ensure_durable<S: Storage>(storage: &S, segment: &Segment, synced: Sequence) -> Result<(), OpenError> {
    let error = || OpenError::io(&segment.file);
    let from = unsynced_from(storage, segment, synced)?;
    let mut file = storage.open(&segment.file).map_err(error())?;
    rewrite(&mut file, from..segment.end).and_then(|()| file.sync()).map_err(error())
}

fn rewrite(file: &mut impl StorageFile, range: Range<u64>) -> io::Result<()> {
    let mut bytes = vec![0; COPY_LEN.min((range.end - range.start) as usize)];
    let mut at = range.start;
    while at < range.end {
        let len = bytes.len().min((range.end - at) as usize);
        match file.read_at(&mut bytes[..len], at)? {
            0 => break,
            more => {
                file.write_all_at(&bytes[..more], at)?;
                at += more as u64;
            }
        }
    }
    Ok(())
}

/// Returns the offset up to which a segment's data is known to be on the disk.
///
/// The header of a named segment is on the disk. A segment with `end` 0 was not read, because it is covered
/// by a snapshot, which was made from durable records.
fn unsynced_from<S: Storage>(storage: &S, segment: &Segment, synced: Sequence) -> Result<u64, OpenError> {
    if segment.file == PREPARED {
        return Ok(0);
    }
    if segment.end == 0 || segment.last_sequence <= synced {
        return Ok(segment.end);
    }
    let error = || OpenError::io(&segment.file);
    let file = storage.open(&segment.file).map_err(error())?;
    let read = SegmentReader::new(file).map_err(error())?;
    let mut reader = read.map_err(|damage| OpenError::Header { file: segment.file.clone(), damage })?;
    let mut expected = segment.header.first_sequence;
    while expected <= synced
        && let Step::Record(_) = reader.step(expected).map_err(error())?
    {
        expected = expected.next();
    }
    Ok(reader.offset())
}

/// Truncates the last segment after its last record.
fn release_unused_space<S: Storage>(storage: &S, last: &Segment) -> Result<(), OpenError> {
    failpoint!(TornTailKept => return Ok(()));
    let truncated = storage.open(&last.file).and_then(|mut file| {
        file.truncate(last.end)?;
        file.sync()
    });
    truncated.map_err(OpenError::io(&last.file))
}
