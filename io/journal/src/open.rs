//! Opening a log: repairs it after a crash, and begins a new segment.

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

/// Capacity for the reports and jobs in flight, with a margin.
const CHANNEL_LEN: usize = 16;
/// Number of bytes rewritten at once.
const COPY_LEN: usize = 1 << 20;

/// An open journal: its two ends, and the result of the inspection.
#[derive(Debug)]
pub struct Opened<S: Storage> {
    /// For the sequencer's duty cycle.
    pub journal: Journal<S>,
    /// For a separate thread: see [`WorkerThread`](crate::WorkerThread).
    pub worker: DiskWorker<S>,
    /// The log as found, with its repairs. [`Journal::last_appended`] is the last record to replay.
    pub found: Inspection,
    /// Number of earlier starts after which acknowledged records may have been lost. Messages from an earlier
    /// generation of the session may refer to lost records: inform its clients before anything is
    /// acknowledged.
    pub generation: u32,
}

/// Opens the log in `storage` for appending, exclusively for this process.
///
/// Inspects it first ([`inspect`]), cuts off a torn tail, makes sure that the rest is on the disk, and begins
/// a new segment after it.
///
/// # Errors
/// [`OpenError`] when the log is in use, damaged, of another session, or the disk refuses.
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
    // Before the log is cut below the acknowledged end: afterwards nothing would reveal the loss.
    let generation = advance_generation(storage, session, &found, options.accept_loss, &requirement)?;
    repair(storage, &mut found)?;
    let mut last = match found.segments.is_empty() {
        true => Sequence(config.first_sequence.0 - 1),
        false => found.last_sequence(),
    };
    if options.accept_loss && !continues(&found, last, options.from) {
        // The new segment begins after the snapshot.
        for segment in found.segments.drain(..) {
            storage.remove(&segment.file).map_err(OpenError::io(&segment.file))?;
        }
        last = Sequence(options.from.0 - 1);
    }
    // Replaces an empty one.
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
    // A snapshot can exist without its note. Never compare a log that restarts after it with an older one.
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

/// Returns whether a log that ends with `last` continues the snapshot before `from`, or there is none.
fn continues(found: &Inspection, last: Sequence, from: Sequence) -> bool {
    from == Sequence(0) || last.next() >= from && found.first_sequence() <= from
}

/// Returns the generation of the log being opened: a new one if acknowledged records may have been lost. It
/// is on the disk when this returns.
///
/// Records may have been lost if the loss is accepted. They may also have been lost if they need not have
/// been on the disk ([`Policy::Async`](crate::Policy::Async)) and the system was rebooted since, or that is
/// unknown: the log need not show it. A log that was closed normally lacks nothing as long as it ends where
/// it ended then.
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
    // Either file may be an older one that was restored.
    let number = before.unwrap_or_default().number.max(recorded.unwrap_or(0)).saturating_add(step);
    let now = Generation { number, boot, closed_at: None };
    if before != Some(now) {
        generation::write(storage, session, now).map_err(OpenError::io(GENERATION_FILE))?;
    }
    Ok(now)
}

/// Keeps only the valid part on the disk. A prepared segment with records gets its name.
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
/// Data that the earlier process failed to sync may still be read from the cache, which counts it as written.
/// A sync alone would do nothing for it, so data that no record reports as synced is rewritten.
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

/// Returns the offset in a segment from which no record reports the data as synced; its end if all of it is.
///
/// A segment gets its name when its header is on the disk. One whose records were not read is covered by a
/// snapshot, which was made from durable records.
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

/// Releases the unused space of the last segment.
fn release_unused_space<S: Storage>(storage: &S, last: &Segment) -> Result<(), OpenError> {
    failpoint!(TornTailKept => return Ok(()));
    let truncated = storage.open(&last.file).and_then(|mut file| {
        file.truncate(last.end)?;
        file.sync()
    });
    truncated.map_err(OpenError::io(&last.file))
}
