//! Opening a log: what a crash left is put right, and a new segment begins.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;

use tickpath_faults::{Fault, is_planted};
use tickpath_types::Sequence;

use crate::acknowledged::{self, Slot};
use crate::format::{HEADER_LEN, Layout, PAYLOAD_LEN_MAX, SegmentHeader, record_len};
use crate::generation;
use crate::journal::{Journal, Output, Shared, Start};
use crate::segment::{PREPARED, SegmentReader, Step, segment_name};
use crate::worker::{DiskWorker, WorkerStart};
use crate::{
    ACKNOWLEDGED_FILE, InspectOptions, Inspection, OpenError, Policy, Segment, SessionName, Storage,
    StorageFile, inspect,
};

/// Reports and jobs that can be under way at once, and some.
const CHANNEL_LEN: usize = 16;
/// Bytes that are written again at once.
const COPY_LEN: usize = 1 << 20;

/// How a journal is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalConfig {
    /// What an acknowledgement means.
    pub policy: Policy,
    /// Length of a segment's file, in bytes.
    pub segment_len: u64,
    /// Length of each of the two buffers between duty cycle and disk, in bytes. When both are full `append` refuses
    /// with [`AppendError::Full`](crate::AppendError::Full).
    pub buffer_len: usize,
    /// The longest payload, in bytes.
    pub payload_len_max: usize,
    /// The first sequence of a log that is empty.
    pub first_sequence: Sequence,
}

impl Default for JournalConfig {
    /// Segments of 64 MiB, buffers of 1 MiB, payloads of 256 bytes.
    fn default() -> Self {
        JournalConfig {
            policy: Policy::Group,
            segment_len: 64 << 20,
            buffer_len: 1 << 20,
            payload_len_max: 256,
            first_sequence: Sequence(1),
        }
    }
}

impl JournalConfig {
    fn check(&self) -> Result<(), OpenError> {
        let payload_fits = (1..=PAYLOAD_LEN_MAX).contains(&self.payload_len_max);
        let buffer_fits =
            self.buffer_len >= 2 * (HEADER_LEN + record_len(self.payload_len_max.min(PAYLOAD_LEN_MAX)));
        let segment_fits = self.segment_len >= 2 * self.buffer_len as u64;
        let begins = self.first_sequence > Sequence(0);
        if payload_fits && buffer_fits && segment_fits && begins { Ok(()) } else { Err(OpenError::Config) }
    }
}

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
    let promise = acknowledged::promise(storage, session, acknowledged::read(storage), options.accept_loss)?;
    // Before the log shows less than was acknowledged: afterwards nothing would tell.
    let generation = generation::advance(storage, session, &found, options.accept_loss, &promise)?;
    repair(storage, &found)?;
    let mut last = match found.segments.is_empty() {
        true => Sequence(config.first_sequence.0 - 1),
        false => found.last_sequence(),
    };
    let from = options.from;
    if options.accept_loss && from > Sequence(0) && (last.next() < from || found.first_sequence() > from) {
        // The log that is left does not follow the snapshot: a new one begins after it.
        for segment in found.segments.drain(..) {
            storage.remove(&segment.file).map_err(OpenError::io(&segment.file))?;
        }
        last = Sequence(from.0 - 1);
    }
    let (file, layout) = begin(storage, session, &config, last)?;
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
    let journal = Journal::new(Start {
        session,
        config,
        shared: Arc::clone(&shared),
        jobs: job_sender,
        reports,
        layout,
        last_appended: last,
        output: journals,
        lock: Arc::clone(&lock),
    });
    let worker = DiskWorker::new(WorkerStart {
        storage: storage.clone(),
        config,
        session,
        generation,
        shared,
        jobs,
        reports: report_sender,
        output: workers,
        layout,
        lock,
    });
    Ok(Opened { journal, worker, found, generation: generation.number })
}

/// Leaves on the disk what was found good, and nothing else.
fn repair<S: Storage>(storage: &S, found: &Inspection) -> Result<(), OpenError> {
    for file in &found.covered {
        storage.remove(file).map_err(OpenError::io(file))?;
    }
    if let Some(torn) = found.torn.as_ref().filter(|_| !is_planted(Fault::TornTailKept)) {
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
    if let Some(last) = found.segments.last() {
        give_room_back(storage, last)?;
        if last.file == PREPARED {
            let name = segment_name(last.header.first_sequence);
            storage.rename(PREPARED, &name).map_err(OpenError::io(PREPARED))?;
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
    if is_planted(Fault::TornTailKept) {
        return Ok(());
    }
    let truncated = storage.open(&last.file).and_then(|mut file| {
        file.truncate(last.end)?;
        file.sync()
    });
    truncated.map_err(OpenError::io(&last.file))
}

/// Makes and names the segment that follows `last`, in place of an empty one.
fn begin<S: Storage>(
    storage: &S,
    session: SessionName,
    config: &JournalConfig,
    last: Sequence,
) -> Result<(S::File, Layout), OpenError> {
    name_empty(storage, session, config, last, config.segment_len).map_err(OpenError::io(PREPARED))
}

/// Makes and names a segment of `len` bytes without records, whose header says that everything up to `last` is on the
/// disk.
pub(crate) fn name_empty<S: Storage>(
    storage: &S,
    session: SessionName,
    config: &JournalConfig,
    last: Sequence,
    len: u64,
) -> io::Result<(S::File, Layout)> {
    let header = SegmentHeader {
        version: 2,
        session,
        policy: config.policy,
        first_sequence: last.next(),
        synced: last,
        segment_len: config.segment_len,
    };
    let mut bytes = [0; HEADER_LEN];
    let layout = header.encode(&mut bytes);
    let mut file = storage.create(PREPARED)?;
    file.allocate(len)?;
    file.write_all_at(&bytes, 0)?;
    file.sync()?;
    storage.rename(PREPARED, &segment_name(header.first_sequence))?;
    storage.sync_names()?;
    Ok((file, layout))
}
