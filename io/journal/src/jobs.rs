//! The jobs that a journal gives to its disk worker, the worker's reports, and the state that both ends share.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::thread::Thread;

use tickpath_lockfree::wake::Wakers;
use tickpath_types::Sequence;

use crate::Failure;
use crate::acknowledged::Acknowledged;
use crate::batch::Batch;

/// The state that both ends of a journal share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Last sequence that may be acknowledged.
    pub(crate) durable: AtomicU64,
    /// The worker's thread, to be woken when there is work for the disk.
    pub(crate) thread: OnceLock<Thread>,
    /// Threads that sleep until more is durable, or the worker has reported something.
    pub(crate) wakers: Wakers,
}

/// Work for the disk.
pub(crate) enum Job<F> {
    /// Write it and sync it.
    Write(Box<Batch>),
    /// A segment is full: sync it, and give the next one, which has begun, its name.
    Finish { file: F, last: Sequence },
    /// The journal is no more: sync its last segment, and say that all of the log is on the disk.
    Close(Option<Closing<F>>),
}

/// The segment being written, and the last acknowledged record.
pub(crate) struct Output<F> {
    pub(crate) file: F,
    pub(crate) acknowledged: Acknowledged,
}

/// The end of a log that its journal wrote by itself.
pub(crate) struct Closing<F> {
    pub(crate) output: Output<F>,
    /// End of the last record.
    pub(crate) end: u64,
}

/// A report of the worker.
pub(crate) enum Report<F> {
    /// The batch is on the disk, and can be filled again.
    Written(Box<Batch>),
    /// Everything up to here is on the disk.
    Synced(Sequence),
    /// The next segment is ready; the file where the journal itself writes.
    Prepared(Option<F>),
    /// The next segment cannot be prepared now.
    NotPrepared(Failure),
    Failed(Failure),
}
