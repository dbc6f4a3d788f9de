//! The jobs that a journal gives its disk worker, the worker's reports, and the state that they share.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::thread::Thread;

use tickpath_lockfree::wake::Wakers;
use tickpath_types::Sequence;

use crate::Failure;
use crate::acknowledged::Acknowledged;
use crate::batch::Batch;

/// The state that a journal and its worker share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Last sequence that may be acknowledged.
    pub(crate) durable: AtomicU64,
    /// The worker's thread, which is woken when there is work for the disk.
    pub(crate) thread: OnceLock<Thread>,
    /// Wakers of the threads that sleep until more is durable or the worker has reported.
    pub(crate) wakers: Wakers,
}

/// Work for the disk.
pub(crate) enum Job<F> {
    /// Write the batch and sync it.
    Write(Box<Batch>),
    /// A segment is full: sync it, and name the next one, which has begun.
    Finish { file: F, last: Sequence },
    /// The journal was dropped: sync its last segment, and mark the whole log as synced.
    Close(Option<Closing<F>>),
}

/// The file of the segment being written, and the file with the last acknowledged record.
pub(crate) struct Output<F> {
    pub(crate) file: F,
    pub(crate) acknowledged: Acknowledged,
}

/// The files of a log that the journal itself wrote, to be closed.
pub(crate) struct Closing<F> {
    pub(crate) output: Output<F>,
    /// End offset of the last record.
    pub(crate) end: u64,
}

/// A report of the worker.
pub(crate) enum Report<F> {
    /// The batch is on the disk and can be reused.
    Written(Box<Batch>),
    /// Everything up to this sequence is on the disk.
    Synced(Sequence),
    /// The next segment is ready. Holds the segment's file if the journal itself writes it.
    Prepared(Option<F>),
    /// The next segment cannot be prepared now.
    NotPrepared(Failure),
    Failed(Failure),
}
