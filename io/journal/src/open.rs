//! Opening a log: what a crash left is put right, and a new segment begins.

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
use crate::promise::Promise;
use crate::segment::{PREPARED, SegmentReader, Step, name_empty, segment_name};
use crate::worker::{DiskWorker, Preparation};
use crate::{
    ACKNOWLEDGED_FILE, InspectOptions, Inspection, JournalConfig, OpenError, Policy, Segment, SessionName,
    Storage, StorageFile, inspect,
};

/// Reports and jobs that can be under way at once, and some.
const CHANNEL_LEN: usize = 16;
/// Bytes that are written again at once.
const COPY_LEN: usize = 1 << 20;

/// An open journal: its two ends, and what was found.
#[derive(Debug)]
pub struct Opened<S: Storage> {
    /// For the sequencer's duty cycle.
    pub journal: Journal<S>,
    /// For a thread of its own: see [`WorkerThread`](crate::WorkerThread).
    pub worker: DiskWorker<S>,
    /// The log as it was found, and what of it was put right. [`Journal::last_appended`] is the last record to replay.
    pub found: Inspection,
    /// How many starts there were before which acknowledged records may have been lost. What was heard of the session in
    /// an earlier generation may be about records that are no more: tell whoever heard it, before anything is acknowledged.
    pub generation: u32,
}

/// Opens the log in `storage` for appending, and only for this process.
///
/// Reads it first ([`inspect`]); cuts a torn tail off; makes sure that what is left is on the disk; and begins a new
/// segment after it.
///
/// # Errors
/// [`OpenError`] when the log is in use, damaged, another session's, or the disk refuses.
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
    let promise = Promise::of(storage, session, acknowledged::read(storage), options.accept_loss)?;
    // Before the log shows less than was acknowledged: afterwards nothing would tell.
    let generation = advance_generation(storage, session, &found, options.accept_loss, &promise)?;
    repair(storage, &mut found)?;
    let mut last = match found.segments.is_empty() {
        true => Sequence(config.first_sequence.0 - 1),
        false => found.last_sequence(),
    };
    if options.accept_loss && !continues(&found, last, options.from) {
        // A new one begins after the snapshot.
        for segment in found.segments.drain(..) {
            storage.remove(&segment.file).map_err(OpenError::io(&segment.file))?;
        }
        last = Sequence(options.from.0 - 1);
    }
    // In place of an empty one.
    let (file, layout) =
        name_empty(storage, session, &config, last, config.segment_len).map_err(OpenError::io(PREPARED))?;
    let slot = Slot {
        policy: config.policy,
        session,
        boot: generation.boot,
        generation: generation.number,
        sequence: last,
        state_hash: 0,
    };
    let snapshot = promise.recorded.and_then(|recorded| recorded.snapshot);
    let begins = found.segments.first().map_or(last.next(), |segment| segment.header.first_sequence);
    // A snapshot can exist without its note: a log that restarts after it must not be compared with an older one.
    let snapshot = snapshot.filter(|snapshot| (begins..=last.next()).contains(&snapshot.sequence.next()));
    let acknowledged =
        acknowledged::begin(storage, slot, snapshot).map_err(OpenError::io(ACKNOWLEDGED_FILE))?;
    let shared = Arc::new(Shared::default());
    shared.durable.store(last.0, Ordering::Release);
    let (job_sender, jobs) = sync_channel(CHANNEL_LEN);
    let (report_sender, reports) = sync_channel(CHANNEL_LEN);
    let output = Output { file, acknowledged };
    let (journals, workers) =
        if config.policy == Policy::Async { (Some(output), None) } else { (None, Some(output)) };
    let link = WorkerLink { shared: Arc::clone(&shared), jobs: job_sender, reports };
    let journal = Journal::new(session, config, link, layout, last, journals, Arc::clone(&lock));
    let worker = DiskWorker {
        storage: storage.clone(),
        config,
        session,
        generation,
        shared,
        jobs,
        reports: report_sender,
        output: workers,
        written: HEADER_LEN as u64,
        layout,
        next: Preparation::None,
        has_told_refusal: false,
        has_failed: false,
        _lock: lock,
    };
    Ok(Opened { journal, worker, found, generation: generation.number })
}

/// True when a log that ends with `last` follows the snapshot before `from`, or there is none.
fn continues(found: &Inspection, last: Sequence, from: Sequence) -> bool {
    from == Sequence(0) || last.next() >= from && found.first_sequence() <= from
}

/// The generation of a log that is opened now: another one than before if acknowledged records may have been lost. When
/// this returns it is on the disk.
///
/// They may have if that is accepted, and if they need not have been on the disk ([`Policy::Async`](crate::Policy::Async))
/// and the system has been started since, or that is not known: no trace of them need be left in the log. A log that was
/// closed in good order lacks nothing as long as it ends where it did then.
fn advance_generation<S: Storage>(
    storage: &S,
    session: SessionName,
    found: &Inspection,
    accepts_loss: bool,
    promise: &Promise,
) -> Result<Generation, OpenError> {
    let before = promise.generation;
    let boot = storage.boot().unwrap_or(0);
    let is_same_boot = boot != 0 && before.is_some_and(|before| before.boot == boot);
    let was_unsynced =
        found.segments.last().is_some_and(|segment| segment.header.policy.acknowledges_unsynced());
    let recorded = promise.recorded.map(|recorded| recorded.acknowledged.generation);
    let has_begun =
        before.is_some() || recorded.is_some() || !found.segments.is_empty() || found.torn.is_some();
    let closed_at = before.and_then(|before| before.closed_at);
    let is_as_closed = found.torn.is_none() && closed_at == Some(found.last_sequence());
    let may_lack = accepts_loss || was_unsynced && !is_same_boot && !is_as_closed;
    let step = u32::from(has_begun && may_lack);
    failpoint!(LossUnnamed: step = 0);
    // Either file may be an older one that was put back.
    let number = before.unwrap_or_default().number.max(recorded.unwrap_or(0)).saturating_add(step);
    let now = Generation { number, boot, closed_at: None };
    if before != Some(now) {
        generation::write(storage, session, now).map_err(OpenError::io(GENERATION_FILE))?;
    }
    Ok(now)
}

/// Leaves on the disk what was found good, and nothing else; a prepared segment with records gets its name.
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
        // At 0 it is itself the first of the later files.
        if torn.offset > 0 {
            let mut file = storage.open(&torn.file).map_err(OpenError::io(&torn.file))?;
            file.truncate(torn.offset).and_then(|()| file.sync()).map_err(OpenError::io(&torn.file))?;
        }
    }
    let synced = found.synced();
    for segment in &found.segments {
        settle(storage, segment, synced)?;
    }
    if let Some(last) = found.segments.last_mut() {
        give_room_back(storage, last)?;
        if last.file == PREPARED {
            last.file = segment_name(last.header.first_sequence);
            storage.rename(PREPARED, &last.file).map_err(OpenError::io(PREPARED))?;
        }
    }
    storage.sync_names().map_err(OpenError::io("the folder"))
}

/// Brings a segment to the disk as it was read.
///
/// What the process before could not bring to the disk may still be read from the cache and counts as written there, so
/// that a sync alone would do nothing for it: what no record calls safe is written again.
fn settle<S: Storage>(storage: &S, segment: &Segment, synced: Sequence) -> Result<(), OpenError> {
    let error = || OpenError::io(&segment.file);
    let from = unsynced_from(storage, segment, synced)?;
    let mut file = storage.open(&segment.file).map_err(error())?;
    write_again(&mut file, from..segment.end).and_then(|()| file.sync()).map_err(error())
}

fn write_again(file: &mut impl StorageFile, range: Range<u64>) -> io::Result<()> {
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

/// Where that begins in a segment which no record calls safe; its end where all of it is.
///
/// A segment gets its name when its header is on the disk. One whose records were not read is covered by a snapshot, and
/// that is made of what was safe.
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

/// Gives back the room that the last segment did not use.
fn give_room_back<S: Storage>(storage: &S, last: &Segment) -> Result<(), OpenError> {
    failpoint!(TornTailKept => return Ok(()));
    let truncated = storage.open(&last.file).and_then(|mut file| {
        file.truncate(last.end)?;
        file.sync()
    });
    truncated.map_err(OpenError::io(&last.file))
}
