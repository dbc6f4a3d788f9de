//! The disk work of a journal, outside the duty cycle.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::sync::mpsc::{Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use tickpath_agent::BackgroundThread;
use tickpath_faults::failpoint;
use tickpath_types::Sequence;

use crate::batch::{Batch, Part};
use crate::error::{NAME, PREPARE, SYNC, WRITE};
use crate::format::{HEADER_LEN, Layout, Parsed, SegmentHeader};
use crate::generation::{self, Generation};
use crate::jobs::{Closing, Job, Output, Report, Shared};
use crate::segment::{PREPARED, create_empty, segment_name};
use crate::{Failure, JournalConfig, Policy, SessionName, Storage, StorageFile};

/// Number of zero bytes written to the next segment per sync. Small, because batches wait for the sync.
const FILL_LEN: usize = 256 * 1024;
/// Interval at which an idle worker thread tries again to prepare the next segment: a full disk may have
/// space by then.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Does a [`Journal`](crate::Journal)'s disk work: writes and syncs batches, prepares and names segments.
///
/// Created by [`open`](crate::open). In production it has a separate thread, a [`WorkerThread`]; a simulation
/// calls [`DiskWorker::run_once`] at any time.
pub struct DiskWorker<S: Storage> {
    pub(crate) storage: S,
    pub(crate) config: JournalConfig,
    pub(crate) session: SessionName,
    pub(crate) generation: Generation,
    pub(crate) shared: Arc<Shared>,
    pub(crate) jobs: Receiver<Job<S::File>>,
    pub(crate) reports: SyncSender<Report<S::File>>,
    /// The files being written; `None` under [`Policy::Async`], where the journal writes them.
    pub(crate) output: Option<Output<S::File>>,
    /// End offset, in the segment's file, of the last batch written.
    pub(crate) written: u64,
    /// Layout of the records in the batches, for [`Policy::Sync`].
    pub(crate) layout: Layout,
    pub(crate) next: Preparation<S::File>,
    pub(crate) has_reported_refusal: bool,
    pub(crate) has_failed: bool,
    pub(crate) _lock: Arc<S::Lock>,
}

/// Progress in preparing the next segment.
pub(crate) enum Preparation<F> {
    /// The segment does not exist yet.
    None,
    /// Zeroes are written up to this offset.
    Filling(F, u64),
    /// The segment is ready. Holds the segment's file unless the journal holds it.
    Ready(Option<F>),
}

impl<S: Storage> DiskWorker<S> {
    /// Does one piece of work and waits for the disk: a job of the journal, or else a step in preparing the
    /// next segment. Returns 0 when there is nothing to do, or the next segment cannot be prepared.
    pub fn run_once(&mut self) -> usize {
        match self.run_job() {
            true => 1,
            false if self.has_failed => 0,
            false => self.prepare(),
        }
    }

    /// Does a job of the journal; false when there is none. After a failure all jobs are dropped.
    fn run_job(&mut self) -> bool {
        let Ok(job) = self.jobs.try_recv() else {
            return false;
        };
        if !self.has_failed
            && let Err(failure) = self.run(job)
        {
            self.has_failed = true;
            self.send_report(Report::Failed(failure));
        }
        true
    }

    fn run(&mut self, job: Job<S::File>) -> Result<(), Failure> {
        match job {
            Job::Write(batch) => {
                self.write(&batch)?;
                self.written = batch.end();
                self.send_report(Report::Written(batch));
                // Batches may arrive without a pause, so the next segment is also prepared between them.
                while self.prepare() > 0 && self.is_behind() {}
            }
            Job::Finish { mut file, last } => {
                file.sync().map_err(Failure::of(SYNC))?;
                self.send_report(Report::Synced(last));
                self.name_next(last.next())?;
            }
            Job::Close(closing) => self.close(closing)?,
        }
        Ok(())
    }

    /// Syncs the log and marks its end: with an empty segment, whose header reports everything before it as
    /// synced, and in the generation file.
    fn close(&mut self, closing: Option<Closing<S::File>>) -> Result<(), Failure> {
        let own = self.output.take().map(|output| Closing { output, end: self.written });
        let Some(Closing { output: Output { mut file, mut acknowledged }, end }) = closing.or(own) else {
            return Ok(());
        };
        let synced = file.truncate(end).and_then(|()| file.sync()).and_then(|()| acknowledged.sync());
        synced.map_err(Failure::of(SYNC))?;
        let last = Sequence(self.shared.durable.load(Ordering::Acquire));
        let (storage, session) = (&self.storage, self.session);
        create_empty(storage, session, &self.config, last, HEADER_LEN as u64)
            .and_then(|_| {
                // All records are on the disk: no power loss can lose them before the next open.
                let closed = Generation { closed_at: Some(last), ..self.generation };
                generation::write(storage, session, closed)
            })
            .map_err(Failure::of(NAME))
    }

    /// Syncs the acknowledged file to the disk, while idle. Does nothing under [`Policy::Async`], where the
    /// journal itself writes that file.
    fn sync_acknowledged(&mut self) {
        if let Some(output) = &mut self.output
            && let Err(error) = output.acknowledged.sync()
            && !std::mem::replace(&mut self.has_failed, true)
        {
            self.send_report(Report::Failed(Failure::of(SYNC)(error)));
        }
    }

    fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        self.write_part(batch.before_segment())?;
        let Some(after) = batch.after_segment() else {
            return Ok(());
        };
        let Preparation::Ready(next) = &mut self.next else {
            return Err(Failure::of(PREPARE)(io::ErrorKind::NotFound.into()));
        };
        if let (Some(output), Some(file)) = (&mut self.output, next.take()) {
            output.file = file;
        }
        if let Ok((_, layout)) = SegmentHeader::decode(after.bytes) {
            self.layout = layout;
        }
        // No record in the new segment may be acknowledged before the segment has its final name.
        let last = batch.before_segment().last;
        self.write_and_sync(Part { bytes: &after.bytes[..HEADER_LEN], offset: 0, last })?;
        self.name_next(last.next())?;
        let rest = Part { bytes: &after.bytes[HEADER_LEN..], offset: HEADER_LEN as u64, last: after.last };
        self.write_part(rest)
    }

    /// Writes and syncs part of a batch, under [`Policy::Sync`] record by record, and publishes `durable`.
    fn write_part(&mut self, part: Part<'_>) -> Result<(), Failure> {
        if self.config.policy != Policy::Sync {
            return self.write_and_sync(part);
        }
        let mut at = 0;
        while let Parsed::Record(record) = self.layout.parse(&part.bytes[at..]) {
            let offset = part.offset + at as u64;
            let bytes = &part.bytes[at..at + record.len];
            self.write_and_sync(Part { bytes, offset, last: record.sequence })?;
            at += record.len;
        }
        Ok(())
    }

    fn write_and_sync(&mut self, part: Part<'_>) -> Result<(), Failure> {
        if let Some(Output { file, acknowledged }) = &mut self.output
            && !part.bytes.is_empty()
        {
            file.write_all_at(part.bytes, part.offset).map_err(Failure::of(WRITE))?;
            Self::sync(file)?;
            acknowledged.set(part.last);
            self.shared.durable.store(part.last.0, Ordering::Release);
            self.shared.wakers.wake_if_asleep();
        }
        Ok(())
    }

    /// Syncs the data written to a segment.
    fn sync(file: &mut S::File) -> Result<(), Failure> {
        failpoint!(DurableBeforeSync => return Ok(()));
        file.sync().map_err(Failure::of(SYNC))
    }

    /// Gives the next segment, which begins with `first`, its final name, after its header is on the disk.
    fn name_next(&mut self, first: Sequence) -> Result<(), Failure> {
        let name = segment_name(first);
        let named = (|| {
            if self.config.policy == Policy::Async {
                self.storage.open(PREPARED)?.sync()?;
            }
            self.storage.rename(PREPARED, &name)?;
            failpoint!(NamesUnsynced => return Ok(()));
            self.storage.sync_names()
        })();
        self.next = Preparation::None;
        named.map_err(Failure::of(NAME))
    }

    /// Prepares a part of the next segment, in proportion to the data in this one; returns 0 if none is due.
    /// Does not prepare more while idle, because the next batch would have to wait.
    fn prepare(&mut self) -> usize {
        // Zeroes are due up to 3/2 of the length of the data written, plus a margin for the data in flight.
        let due = self.written + self.written / 2 + 2 * self.config.buffer_len as u64;
        let step = match &mut self.next {
            Preparation::Ready(_) => return 0,
            Preparation::Filling(_, filled) if *filled >= due => return 0,
            Preparation::None => self.begin_preparation(),
            Preparation::Filling(file, filled) => {
                let len = (FILL_LEN as u64).min(self.config.segment_len - *filled) as usize;
                *filled += len as u64;
                let from = *filled - len as u64;
                file.write_all_at(&ZEROES[..len], from).and_then(|()| file.sync())
            }
        };
        match step {
            Ok(()) => {
                self.finish_preparation();
                1
            }
            Err(error) => {
                // Restart the preparation from the beginning.
                self.next = Preparation::None;
                if !std::mem::replace(&mut self.has_reported_refusal, true) {
                    self.send_report(Report::NotPrepared(Failure::of(PREPARE)(error)));
                }
                0
            }
        }
    }

    /// Returns whether the next segment has fewer zeroes, in bytes, than 3/2 of the data in this one.
    fn is_behind(&self) -> bool {
        matches!(self.next, Preparation::Filling(_, filled) if filled < self.written + self.written / 2)
    }

    fn begin_preparation(&mut self) -> io::Result<()> {
        let mut file = self.storage.create(PREPARED)?;
        file.allocate(self.config.segment_len)?;
        // The first sync of a block also writes the file's extents, which takes longer. If the policy syncs
        // records, zeroes are therefore written and synced before them.
        let filled = if self.config.policy == Policy::Async { self.config.segment_len } else { 0 };
        if filled > 0 {
            file.sync()?;
        }
        self.next = Preparation::Filling(file, filled);
        Ok(())
    }

    fn finish_preparation(&mut self) {
        self.next = match std::mem::replace(&mut self.next, Preparation::None) {
            Preparation::Filling(file, filled) if filled == self.config.segment_len => {
                self.has_reported_refusal = false;
                let is_worker_file = self.config.policy != Policy::Async;
                let (worker_file, journal_file) =
                    if is_worker_file { (Some(file), None) } else { (None, Some(file)) };
                self.send_report(Report::Prepared(journal_file));
                Preparation::Ready(worker_file)
            }
            other => other,
        };
    }

    fn send_report(&self, report: Report<S::File>) {
        // The channel has capacity for all reports in flight. An error means that the journal was dropped.
        self.reports.try_send(report).ok();
        self.shared.wakers.wake_if_asleep();
    }
}

static ZEROES: [u8; FILL_LEN] = [0; FILL_LEN];

impl<S: Storage> std::fmt::Debug for DiskWorker<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskWorker").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A thread that runs a [`DiskWorker`] and sleeps while idle.
///
/// Dropping it waits until everything that [`poll`](crate::Journal::poll) passed to it is on the disk, then
/// ends the thread. Poll until everything is durable before dropping it. If the journal was dropped earlier,
/// the log is closed normally and cannot lose anything until it is opened again, under any policy.
#[derive(Debug)]
pub struct WorkerThread(#[expect(dead_code, reason = "dropped, it ends")] BackgroundThread);

impl WorkerThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system cannot start a thread.
    pub fn start<S: Storage>(mut worker: DiskWorker<S>) -> io::Result<WorkerThread> {
        let thread = BackgroundThread::start("journal", move |stop| {
            // Register the thread before the first check for work, so that later work wakes it.
            worker.shared.thread.set(thread::current()).ok();
            while !stop.is_stopped() {
                if worker.run_once() == 0 {
                    thread::park_timeout(RETRY_AFTER);
                    // Sync only after an idle interval, because a batch would have to wait for the sync.
                    if worker.run_once() == 0 && !worker.has_failed {
                        worker.sync_acknowledged();
                    }
                }
            }
            // Make the jobs that were sent before the stop signal visible, so that all of them are done.
            fence(Ordering::Acquire);
            while worker.run_job() {}
        })?;
        Ok(WorkerThread(thread))
    }
}
