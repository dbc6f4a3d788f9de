//! The venue's log on disk: written before anything is answered, read at the start.

mod archive;
mod audit;
mod follower;
mod recovery;
mod settings;
mod writer;

pub use archive::archive;
pub use audit::{Audit, audit};
pub use follower::{Follower, FollowerError};
pub(crate) use recovery::{Recovered, recover};
pub use recovery::{Recovery, RecoveryError, ReplayError, replay};
pub use settings::JournalSettings;
pub(crate) use writer::{CommandLog, LogState};

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tickpath_agent::Counter;
use tickpath_journal::{DiskWorker, Storage, WorkerThread};

/// How long the follower's thread rests when it has read all there is.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(10);

/// How the journal stands, readable from outside while the venue runs.
#[derive(Default)]
#[repr(align(128))] // on cache lines of its own: another thread's writes beside it would cost its writer
pub struct JournalCounters {
    /// The last command that may be answered.
    pub durable: Counter,
    /// Times that a command had to wait because the journal's buffer was full.
    pub delayed: Counter,
    /// 1 while there is no room for another segment: new orders are refused.
    pub is_full: Counter,
    /// 1 once nothing more can be written: nothing more is answered.
    pub has_failed: Counter,
    /// Snapshots written since the start.
    pub snapshots: Counter,
    /// The last command that the newest of them covers.
    pub snapshot_sequence: Counter,
    /// Snapshots that could not be written, and reads of the log that failed.
    pub snapshot_errors: Counter,
}

/// What a venue with a journal needs beside its agents, off their duty cycles: start its threads, and keep them until
/// the agents have ended.
pub struct VenueJournal {
    /// What was found at the start.
    pub recovery: Recovery,
    disk: Box<dyn Disk>,
    follower: Option<Box<dyn Follow>>,
    counters: Arc<JournalCounters>,
}

/// The threads of a venue's journal. Dropped, they end; what was answered is in the log by then.
pub struct JournalThreads {
    _disk: WorkerThread,
    follower: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

trait Disk: Send {
    fn run_once(&mut self) -> usize;
    fn start(self: Box<Self>) -> io::Result<WorkerThread>;
}

impl<S: Storage> Disk for DiskWorker<S> {
    fn run_once(&mut self) -> usize {
        DiskWorker::run_once(self)
    }

    fn start(self: Box<Self>) -> io::Result<WorkerThread> {
        WorkerThread::start(*self)
    }
}

trait Follow: Send {
    fn run_once(&mut self) -> Result<usize, FollowerError>;
}

impl<S: Storage> Follow for Follower<S> {
    fn run_once(&mut self) -> Result<usize, FollowerError> {
        Follower::run_once(self)
    }
}

impl VenueJournal {
    pub(crate) fn new<S: Storage>(
        recovery: Recovery,
        worker: DiskWorker<S>,
        follower: Option<Follower<S>>,
        counters: Arc<JournalCounters>,
    ) -> VenueJournal {
        let follower = follower.map(|follower| -> Box<dyn Follow> { Box::new(follower) });
        VenueJournal { recovery, disk: Box::new(worker), follower, counters }
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// The system refused one.
    pub fn start(self) -> io::Result<JournalThreads> {
        let disk = self.disk.start()?;
        let start = |mut follower: Box<dyn Follow>| {
            let stop = Arc::new(AtomicBool::new(false));
            let (stopped, counters) = (Arc::clone(&stop), self.counters);
            let handle = thread::Builder::new().name("snapshots".to_owned()).spawn(move || {
                while !stopped.load(Ordering::Acquire) {
                    match follower.run_once() {
                        Ok(0) => thread::park_timeout(FOLLOW_INTERVAL),
                        Ok(_) => {}
                        Err(error) => {
                            counters.snapshot_errors.add(1);
                            if error.is_final() {
                                return;
                            }
                        }
                    }
                }
            })?;
            Ok::<_, io::Error>((stop, handle))
        };
        Ok(JournalThreads { _disk: disk, follower: self.follower.map(start).transpose()? })
    }

    /// Does one piece of the disk's work in the caller's thread, in place of [`VenueJournal::start`]; 0 when there is
    /// none.
    pub fn work_on_disk(&mut self) -> usize {
        self.disk.run_once()
    }

    /// Does one piece of the follower's work in the caller's thread; 0 when there is none.
    ///
    /// # Errors
    /// [`FollowerError`] when the log cannot be read or the snapshot not be written.
    pub fn follow(&mut self) -> Result<usize, FollowerError> {
        self.follower.as_mut().map_or(Ok(0), |follower| follower.run_once())
    }
}

impl Drop for JournalThreads {
    fn drop(&mut self) {
        if let Some((stop, handle)) = self.follower.take() {
            stop.store(true, Ordering::Release);
            handle.thread().unpark();
            handle.join().ok(); // a panic there has been told there
        }
    }
}
