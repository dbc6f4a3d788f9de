//! Jobs from a journal to its disk worker, reports from the worker, and the state that both ends share.

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
    /// Wakers of the threads that sleep until more records are durable or the worker has reported.
    pub(crate) wakers: Wakers,
}

/// A job for the disk worker.
pub(crate) enum Job<F> {
    /// Write the batch and sync it.
    Write(Box<Batch>),
    /// Sync a full segment, whose last record is `last`, and give the next segment its final name.
    Finish { file: F, last: Sequence },
    /// Close the log of a dropped journal. Holds the log's files if the journal, not the worker, wrote them.
    Close(Option<Closing<F>>),
}

/// The file of the segment being written, and the acknowledged file.
pub(crate) struct Output<F> {
    pub(crate) file: F,
    pub(crate) acknowledged: Acknowledged,
}

/// The open files of a log that is to be closed.
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
