//! What is done to the disk off the duty cycle.

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
use crate::segment::{PREPARED, name_empty, segment_name};
use crate::{Failure, JournalConfig, Policy, SessionName, Storage, StorageFile};

/// Zeroes written and synced at once while a segment is prepared: short, because batches wait behind it.
const FILL_LEN: usize = 256 * 1024;
/// A thread without work looks at the disk again after this: there may be room for the next segment by now.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// The disk's side of a [`Journal`](crate::Journal): writes and syncs batches, prepares segments and names them.
///
/// Made by [`open`](crate::open). In production it has a thread of its own, a [`WorkerThread`]; a simulation calls
/// [`DiskWorker::run_once`] when it likes.
pub struct DiskWorker<S: Storage> {
    pub(crate) storage: S,
    pub(crate) config: JournalConfig,
    pub(crate) session: SessionName,
    pub(crate) generation: Generation,
    pub(crate) shared: Arc<Shared>,
    pub(crate) jobs: Receiver<Job<S::File>>,
    pub(crate) reports: SyncSender<Report<S::File>>,
    /// Except under [`Policy::Async`] the file being written.
    pub(crate) output: Option<Output<S::File>>,
    /// Where in it the last batch ended.
    pub(crate) written: u64,
    /// How to read the records of the batches, for [`Policy::Sync`].
    pub(crate) layout: Layout,
    pub(crate) next: Preparation<S::File>,
    pub(crate) has_told_refusal: bool,
    pub(crate) has_failed: bool,
    pub(crate) _lock: Arc<S::Lock>,
}

/// The progress of the next segment.
pub(crate) enum Preparation<F> {
    /// There is nothing of it.
    None,
    /// Its zeroes are written up to here.
    Filling(F, u64),
    /// It is ready; the file unless the journal has it.
    Ready(Option<F>),
}

impl<S: Storage> DiskWorker<S> {
    /// Does one piece of work, waiting for the disk as long as that takes: a batch, else a step towards the next
    /// segment. Returns 0 when there is nothing to do, or the disk refuses the next segment.
    pub fn run_once(&mut self) -> usize {
        match self.run_job() {
            true => 1,
            false if self.has_failed => 0,
            false => self.prepare(),
        }
    }

    /// Does what the journal asked for; false when it asked for nothing. After a failure everything is dropped.
    fn run_job(&mut self) -> bool {
        let Ok(job) = self.jobs.try_recv() else {
            return false;
        };
        if !self.has_failed
            && let Err(failure) = self.run(job)
        {
            self.has_failed = true;
            self.tell(Report::Failed(failure));
        }
        true
    }

    fn run(&mut self, job: Job<S::File>) -> Result<(), Failure> {
        match job {
            Job::Write(batch) => {
                self.write(&batch)?;
                self.written = batch.end();
                self.tell(Report::Written(batch));
                // A batch may always be waiting, behind which the next segment cannot wait for ever.
                while self.prepare() > 0 && self.is_behind() {}
            }
            Job::Finish { mut file, last } => {
                file.sync().map_err(Failure::of(SYNC))?;
                self.tell(Report::Synced(last));
                self.name_next(last.next())?;
            }
            Job::Close(closing) => self.close(closing)?,
        }
        Ok(())
    }

    /// Brings the log to the disk as it is and marks its end: an empty segment, whose header says that everything before it
    /// is on the disk, and the file of the generation say so.
    fn close(&mut self, closing: Option<Closing<S::File>>) -> Result<(), Failure> {
        let own = self.output.take().map(|output| Closing { output, end: self.written });
        let Some(Closing { output: Output { mut file, mut acknowledged }, end }) = closing.or(own) else {
            return Ok(());
        };
        let synced = file.truncate(end).and_then(|()| file.sync()).and_then(|()| acknowledged.sync());
        synced.map_err(Failure::of(SYNC))?;
        let last = Sequence(self.shared.durable.load(Ordering::Acquire));
        let (storage, session) = (&self.storage, self.session);
        name_empty(storage, session, &self.config, last, HEADER_LEN as u64)
            .and_then(|_| {
                // Until it is opened again a loss of power takes nothing of it.
                let closed = Generation { closed_at: Some(last), ..self.generation };
                generation::write(storage, session, closed)
            })
            .map_err(Failure::of(NAME))
    }

    /// Brings the highest acknowledged sequence to the disk, when nothing else is to be done. Under [`Policy::Async`] the
    /// log itself need not be there.
    fn sync_acknowledged(&mut self) {
        if let Some(output) = &mut self.output
            && let Err(error) = output.acknowledged.sync()
            && !std::mem::replace(&mut self.has_failed, true)
        {
            self.tell(Report::Failed(Failure::of(SYNC)(error)));
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
        // Nothing of the new segment is acknowledged before it can be found under its name.
        let last = batch.before_segment().last;
        self.write_whole(Part { bytes: &after.bytes[..HEADER_LEN], offset: 0, last })?;
        self.name_next(last.next())?;
        let rest = Part { bytes: &after.bytes[HEADER_LEN..], offset: HEADER_LEN as u64, last: after.last };
        self.write_part(rest)
    }

    /// Writes and syncs, whole or record by record, and says what is durable then.
    fn write_part(&mut self, part: Part<'_>) -> Result<(), Failure> {
        if self.config.policy != Policy::Sync {
            return self.write_whole(part);
        }
        let mut at = 0;
        while let Parsed::Record(record) = self.layout.parse(&part.bytes[at..]) {
            let offset = part.offset + at as u64;
            let bytes = &part.bytes[at..at + record.len];
            self.write_whole(Part { bytes, offset, last: record.sequence })?;
            at += record.len;
        }
        Ok(())
    }

    fn write_whole(&mut self, part: Part<'_>) -> Result<(), Failure> {
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

    /// Syncs what was written to a segment.
    fn sync(file: &mut S::File) -> Result<(), Failure> {
        failpoint!(DurableBeforeSync => return Ok(()));
        file.sync().map_err(Failure::of(SYNC))
    }

    /// Gives the segment that has begun its name, once its header is on the disk.
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

    /// Takes a step towards the next segment, which keeps pace with this one; 0 when there is none to take. What would be done
    /// sooner, in a moment without a batch, the next batch would wait for.
    fn prepare(&mut self) -> usize {
        // Ahead of where it must be, by what may be under way.
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
                // What is there of it is made anew.
                self.next = Preparation::None;
                if !std::mem::replace(&mut self.has_told_refusal, true) {
                    self.tell(Report::NotPrepared(Failure::of(PREPARE)(error)));
                }
                0
            }
        }
    }

    /// True while the next segment would not be whole when this one is two thirds full.
    fn is_behind(&self) -> bool {
        matches!(self.next, Preparation::Filling(_, filled) if filled < self.written + self.written / 2)
    }

    fn begin_preparation(&mut self) -> io::Result<()> {
        let mut file = self.storage.create(PREPARED)?;
        file.allocate(self.config.segment_len)?;
        // A sync of what was never written before writes the file's extents as well, so where records are synced the
        // zeroes are written first.
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
                self.has_told_refusal = false;
                let is_mine = self.config.policy != Policy::Async;
                let (mine, journals) = if is_mine { (Some(file), None) } else { (None, Some(file)) };
                self.tell(Report::Prepared(journals));
                Preparation::Ready(mine)
            }
            other => other,
        };
    }

    fn tell(&self, report: Report<S::File>) {
        // There is room for all that can be under way. If the journal is gone nobody need know.
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

/// A thread that runs a [`DiskWorker`], asleep while there is nothing to do.
///
/// Dropping it waits until what the journal has handed over by [`poll`](crate::Journal::poll) is on the disk, and ends it:
/// poll until the journal is settled before. Where the journal was dropped before, the log is closed in good order, and
/// nothing of it can be lost until it is opened again, whatever the policy.
#[derive(Debug)]
pub struct WorkerThread(#[expect(dead_code, reason = "dropped, it ends")] BackgroundThread);

impl WorkerThread {
    /// Starts it.
    ///
    /// # Errors
    /// The system refused a thread.
    pub fn start<S: Storage>(mut worker: DiskWorker<S>) -> io::Result<WorkerThread> {
        let thread = BackgroundThread::start("journal", move |stop| {
            // Before the first look for work, so that work that comes after it wakes this thread.
            worker.shared.thread.set(thread::current()).ok();
            while !stop.is_stopped() {
                if worker.run_once() == 0 {
                    thread::park_timeout(RETRY_AFTER);
                    // A batch would wait for it, so it is done once there was none for a while.
                    if worker.run_once() == 0 && !worker.has_failed {
                        worker.sync_acknowledged();
                    }
                }
            }
            // With this the jobs that were handed over before the stop are seen.
            fence(Ordering::Acquire);
            while worker.run_job() {}
        })?;
        Ok(WorkerThread(thread))
    }
}
