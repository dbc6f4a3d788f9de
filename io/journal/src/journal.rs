//! The sequencer's end of the log: appends records, and reports which ones are durable.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};

use tickpath_lockfree::wake::Waker;
use tickpath_types::Sequence;

use crate::batch::Batch;
use crate::error::WRITE;
use crate::format::{HEADER_LEN, Layout, RECORD_HEADER_LEN, SegmentHeader, record_len};
use crate::jobs::{Closing, Job, Output, Report, Shared};
use crate::{AppendError, Failure, JournalConfig, Policy, SessionName, Storage, StorageFile};

/// State of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The journal accepts records.
    Running,
    /// The next segment cannot be created, for this reason; the journal keeps retrying. Appends succeed while
    /// [`Journal::remaining_len`] lasts: refuse new orders and reserve the capacity for cancels.
    NoNextSegment(Failure),
    /// The journal accepts and acknowledges nothing more, for this reason, until it is reopened.
    Failed(Failure),
}

/// State of the next segment, as the journal knows it.
enum Next<F> {
    /// The segment is being prepared.
    Awaited,
    /// The segment is ready. Holds the segment's file if the journal itself writes it.
    Ready(Option<F>),
    /// The segment cannot be prepared, for this reason.
    Refused(Failure),
}

/// An append-only log of records with dense sequences, open for appending.
///
/// Created by [`open`](crate::open). Neither [`append`](Journal::append) nor [`poll`](Journal::poll) waits
/// for the disk or allocates. Under [`Policy::Async`] `poll` writes to the file. Under the other policies the
/// only system call is the one that wakes the syncing thread.
pub struct Journal<S: Storage> {
    session: SessionName,
    config: JournalConfig,
    worker: WorkerLink<S::File>,
    /// First failure of the journal or of its worker; the journal then stays in `State::Failed`.
    failure: Option<Failure>,
    /// Records appended but not yet written or passed to the worker.
    current: Box<Batch>,
    /// The second batch, unless the worker holds it.
    spare: Option<Box<Batch>>,
    /// Offset of the next record in its segment, and the segment's layout.
    position: u64,
    layout: Layout,
    last_appended: Sequence,
    durable: Sequence,
    /// Last sequence known to be on the disk.
    synced: Sequence,
    next: Next<S::File>,
    /// Under [`Policy::Async`]: the segment being written, and the next one if the batch continues there.
    output: Option<Output<S::File>>,
    next_file: Option<S::File>,
    _lock: Arc<S::Lock>,
}

/// The journal's end of the channels to its worker.
pub(crate) struct WorkerLink<F> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) jobs: SyncSender<Job<F>>,
    pub(crate) reports: Receiver<Report<F>>,
}

impl<F> WorkerLink<F> {
    /// Sends the worker a job; false when the worker has ended.
    fn send(&self, job: Job<F>) -> bool {
        // The channel has capacity for all jobs in flight. An error means that the worker has ended.
        let is_sent = self.jobs.try_send(job).is_ok();
        if is_sent && let Some(thread) = self.shared.thread.get() {
            thread.unpark();
        }
        is_sent
    }
}

impl<S: Storage> Journal<S> {
    /// Creates a journal that appends after the record `last_appended`, in an empty segment.
    pub(crate) fn new(
        session: SessionName,
        config: JournalConfig,
        worker: WorkerLink<S::File>,
        layout: Layout,
        last_appended: Sequence,
        output: Option<Output<S::File>>,
        lock: Arc<S::Lock>,
    ) -> Journal<S> {
        let position = HEADER_LEN as u64;
        let mut current = Box::new(Batch::new(config.buffer_len));
        current.clear(position, last_appended);
        Journal {
            current,
            spare: Some(Box::new(Batch::new(config.buffer_len))),
            failure: None,
            position,
            durable: last_appended,
            synced: last_appended,
            next: Next::Awaited,
            next_file: None,
            session,
            config,
            worker,
            layout,
            last_appended,
            output,
            _lock: lock,
        }
    }

    /// Appends a record, which is durable once [`Journal::durable`] has reached its sequence.
    ///
    /// # Errors
    /// [`AppendError`] when the payload is empty or too long, the buffer or segment is full, the journal has
    /// failed, or `sequence` is not the next. Nothing is appended then.
    #[inline]
    pub fn append(&mut self, sequence: Sequence, payload: &[u8]) -> Result<(), AppendError> {
        let (len, max) = (payload.len(), self.config.payload_len_max);
        if len > max {
            return Err(AppendError::PayloadLen { len, max });
        }
        self.append_with(sequence, |out| {
            out[..len].copy_from_slice(payload);
            len
        })
    }

    /// Appends a record whose payload `encode` writes to the start of a buffer of the maximum payload length.
    /// `encode` returns the payload's length.
    ///
    /// # Errors
    /// As [`Journal::append`]. If the length is wrong, `encode` has already run.
    #[inline]
    pub fn append_with(
        &mut self,
        sequence: Sequence,
        encode: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<(), AppendError> {
        let expected = self.last_appended.next();
        if sequence != expected {
            return Err(AppendError::Sequence { expected, found: sequence });
        }
        if let Some(failure) = self.failure {
            return Err(AppendError::Failed(failure));
        }
        let max = self.config.payload_len_max;
        if self.position + record_len(max) as u64 > self.config.segment_len {
            self.begin_segment(sequence)?;
        }
        let Some(buffer) = self.current.free_bytes(record_len(max)) else {
            return Err(AppendError::Full);
        };
        let len = encode(&mut buffer[RECORD_HEADER_LEN..RECORD_HEADER_LEN + max]);
        if len == 0 || len > max {
            return Err(AppendError::PayloadLen { len, max });
        }
        let len = self.layout.finish_record(buffer, len, sequence, self.synced);
        self.current.commit(len, sequence);
        self.position += len as u64;
        self.last_appended = sequence;
        Ok(())
    }

    /// Continues in the next segment, and adds its header to the batch.
    #[cold]
    fn begin_segment(&mut self, first_sequence: Sequence) -> Result<(), AppendError> {
        // A batch holds the end of one segment and the start of at most one other.
        if self.current.begins_segment() || self.current.free_bytes(HEADER_LEN).is_none() {
            return Err(AppendError::Full);
        }
        let file = match &mut self.next {
            Next::Awaited => return Err(AppendError::Full),
            Next::Refused(failure) => return Err(AppendError::NoNextSegment(*failure)),
            Next::Ready(file) => file.take(),
        };
        self.next = Next::Awaited;
        self.next_file = file;
        let header = SegmentHeader {
            version: 2,
            session: self.session,
            policy: self.config.policy,
            first_sequence,
            synced: match self.config.policy.acknowledges_unsynced() {
                true => self.synced,
                // The worker syncs the previous segment before it writes this header.
                false => self.last_appended,
            },
            segment_len: self.config.segment_len,
        };
        let mut bytes = [0; HEADER_LEN];
        self.layout = header.encode(&mut bytes);
        self.current.begin_segment(&bytes);
        self.position = HEADER_LEN as u64;
        Ok(())
    }

    /// Makes progress without waiting: takes the worker's reports, and writes the records appended since the
    /// last call to the file or passes them to the worker. Returns 0 if there was nothing to do. Call this in
    /// every duty cycle, after its appends.
    #[inline]
    pub fn poll(&mut self) -> usize {
        let mut work = 0;
        loop {
            match self.worker.reports.try_recv() {
                Ok(report) => self.take(report),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.on_worker_lost();
                    break;
                }
            }
            work += 1;
        }
        if self.failure.is_none() && !self.current.is_empty() {
            work += if self.config.policy == Policy::Async { self.write() } else { self.submit_batch() };
        }
        if self.config.policy != Policy::Async {
            self.durable = Sequence(self.worker.shared.durable.load(Ordering::Acquire));
            self.synced = self.durable;
        }
        work
    }

    fn take(&mut self, report: Report<S::File>) {
        match report {
            Report::Written(batch) => self.spare = Some(batch),
            Report::Synced(sequence) => self.synced = self.synced.max(sequence),
            Report::Prepared(file) => self.next = Next::Ready(file),
            Report::NotPrepared(failure) => self.next = Next::Refused(failure),
            Report::Failed(failure) => self.fail(failure),
        }
    }

    /// Passes the current batch to the worker, if the worker has returned the previous one.
    fn submit_batch(&mut self) -> usize {
        let Some(mut spare) = self.spare.take() else {
            return 0;
        };
        spare.clear(self.position, self.last_appended);
        let batch = std::mem::replace(&mut self.current, spare);
        self.send(Job::Write(batch));
        1
    }

    /// Writes the current batch to the file.
    fn write(&mut self) -> usize {
        let Some(output) = &mut self.output else {
            return 0;
        };
        let before = self.current.before_segment();
        let last = before.last;
        let mut written = output.file.write_all_at(before.bytes, before.offset);
        let mut finished = None;
        if let (Ok(()), Some(after)) = (&written, self.current.after_segment())
            && let Some(mut next) = self.next_file.take()
        {
            written = next.write_all_at(after.bytes, after.offset);
            // The next segment gets its name only if its header was written.
            if written.is_ok() {
                finished = Some(std::mem::replace(&mut output.file, next));
            }
        }
        match written {
            Ok(()) => {
                output.acknowledged.set(self.last_appended);
                self.durable = self.last_appended;
                self.worker.shared.durable.store(self.durable.0, Ordering::Release);
                self.worker.shared.wakers.wake_if_asleep();
                self.current.clear(self.position, self.last_appended);
                if let Some(file) = finished {
                    self.send(Job::Finish { file, last });
                }
            }
            Err(error) => self.fail(Failure::of(WRITE)(error)),
        }
        1
    }

    fn send(&mut self, job: Job<S::File>) {
        if !self.worker.send(job) {
            self.on_worker_lost();
        }
    }

    #[cold]
    fn on_worker_lost(&mut self) {
        self.fail(Failure::of("the journal's thread has ended")(std::io::ErrorKind::BrokenPipe.into()));
    }

    #[cold]
    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Returns the last sequence that may be acknowledged, as of the last [`Journal::poll`].
    #[inline]
    #[must_use]
    pub fn durable(&self) -> Sequence {
        self.durable
    }

    /// Returns the last sequence appended.
    #[inline]
    #[must_use]
    pub fn last_appended(&self) -> Sequence {
        self.last_appended
    }

    /// Returns the state of the journal.
    #[inline]
    #[must_use]
    pub fn state(&self) -> State {
        match (self.failure, &self.next) {
            (Some(failure), _) => State::Failed(failure),
            (None, Next::Refused(failure)) => State::NoNextSegment(*failure),
            (None, Next::Awaited | Next::Ready(_)) => State::Running,
        }
    }

    /// Returns whether everything appended is durable.
    #[must_use]
    pub fn is_all_durable(&self) -> bool {
        self.durable == self.last_appended
    }

    /// Returns the number of bytes left in the current segment: the limit for appends without a next segment.
    #[must_use]
    pub fn remaining_len(&self) -> u64 {
        self.config.segment_len - self.position
    }

    /// Returns the length of a segment, including its header.
    #[must_use]
    pub fn segment_len(&self) -> u64 {
        self.config.segment_len
    }

    /// Returns a view of [`Journal::durable`] for readers on other threads.
    #[must_use]
    pub fn durable_view(&self) -> DurableView {
        DurableView { shared: Arc::clone(&self.worker.shared) }
    }
}

impl<S: Storage> Drop for Journal<S> {
    /// Makes the worker sync the log and mark it as closed. After a failure, does nothing.
    fn drop(&mut self) {
        if self.failure.is_none() {
            let end = self.current.before_segment().offset;
            let output = self.output.take();
            self.send(Job::Close(output.map(|output| Closing { output, end })));
        }
    }
}

impl<S: Storage> std::fmt::Debug for Journal<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal")
            .field("session", &self.session)
            .field("state", &self.state())
            .field("last_appended", &self.last_appended)
            .field("durable", &self.durable)
            .finish_non_exhaustive()
    }
}

/// A handle by which other threads read the durable sequence, the limit for a [`Reader`](crate::Reader).
#[derive(Clone, Debug)]
pub struct DurableView {
    shared: Arc<Shared>,
}

impl DurableView {
    /// Returns the last sequence that may be acknowledged.
    #[must_use]
    pub fn durable(&self) -> Sequence {
        Sequence(self.shared.durable.load(Ordering::Acquire))
    }

    /// Registers `waker`, which is woken when more records are durable or [`poll`](Journal::poll) has work.
    ///
    /// # Panics
    /// When there are already [the maximum number](tickpath_lockfree::wake::WAKERS_MAX) of wakers.
    pub fn wake_by(&self, waker: &Waker) {
        self.shared.wakers.add(waker);
    }
}
