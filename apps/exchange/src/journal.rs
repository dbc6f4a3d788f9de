//! The journal settings of a venue, and the threads of its journal.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tickpath_admin::TrustedLogins;
use tickpath_agent::{Agent, AgentError, BackgroundThread, TscClock};
use tickpath_journal::{DiskWorker, Policy, SessionName, Storage, WorkerThread};
use tickpath_types::Nanos;
use tickpath_venue::JournalCounters;
use tickpath_venue_log::{Follower, FollowerError, Recovery};

use crate::background_agent::start_background_agent;
use crate::drop_copy::DropCopySettings;

/// Time for which the follower's thread, which writes snapshots, sleeps once it has read the whole log.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(10);
/// Interval at which new trusted logins are written to their file.
const TRUST_INTERVAL: Duration = Duration::from_secs(1);

/// The checked journal settings of a venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalSettings {
    /// Folder of segments and snapshots, used by one venue only.
    pub folder: PathBuf,
    /// Durability that a command must have before it is answered.
    pub policy: Policy,
    /// Length of a segment file, in bytes.
    pub segment_len: u64,
    /// Length of each of the two buffers between the duty cycle and the disk thread, in bytes.
    pub buffer_len: usize,
    /// Number of commands between snapshots; 0 for no snapshots.
    pub snapshot_every: u64,
    /// Number of snapshots kept, at least 1; the log is kept from the oldest on. `usize::MAX` keeps all.
    pub keep_snapshots: usize,
    /// Name that the session in the journal must have; `None` for any name.
    pub session: Option<SessionName>,
    /// True to start even if damage or a power loss has removed answered commands. The session then has
    /// another name on the wire.
    pub accept_loss: bool,
    /// Settings of the drop copy endpoint, which reads the log; `None` for no endpoint.
    pub drop_copy: Option<DropCopySettings>,
}

impl JournalSettings {
    /// Returns the default settings for a journal in `folder`.
    pub fn new(folder: impl Into<PathBuf>, policy: Policy) -> JournalSettings {
        JournalSettings {
            folder: folder.into(),
            policy,
            segment_len: 64 << 20,
            buffer_len: 1 << 20,
            snapshot_every: 1_000_000,
            keep_snapshots: 2,
            session: None,
            accept_loss: false,
            drop_copy: None,
        }
    }
}

/// The parts of the journal that run on separate threads. Keep the [started](VenueJournal::start) threads
/// until the agents have ended.
pub struct VenueJournal {
    /// Report of the recovery from the journal when the venue was built.
    pub recovery: Recovery,
    disk: Box<dyn Disk>,
    follower: Option<RunFollower>,
    trusted: TrustedLogins,
    drop_copy: Option<Box<dyn Agent>>,
    counters: Arc<JournalCounters>,
}

/// [`Follower::run_once`] for any type of storage.
type RunFollower = Box<dyn FnMut() -> Result<usize, FollowerError> + Send>;

/// The threads of a venue's journal. Dropping this ends the threads; the log then has all answered commands.
pub struct JournalThreads {
    // Declared in shutdown order: fields are dropped in order of declaration.
    _drop_copy: Option<BackgroundThread>,
    _follower: Option<BackgroundThread>,
    _trusted: BackgroundThread,
    _disk: WorkerThread,
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

impl VenueJournal {
    pub(crate) fn new<S: Storage>(
        recovery: Recovery,
        worker: DiskWorker<S>,
        follower: Option<Follower<S>>,
        trusted: TrustedLogins,
        drop_copy: Option<Box<dyn Agent>>,
        counters: Arc<JournalCounters>,
    ) -> VenueJournal {
        let follower = follower.map(|mut follower| -> RunFollower { Box::new(move || follower.run_once()) });
        VenueJournal { recovery, disk: Box::new(worker), follower, trusted, drop_copy, counters }
    }

    /// Starts the threads of the disk worker, snapshots, trusted logins and drop copies.
    ///
    /// # Errors
    /// The system could not start a thread.
    pub fn start(self) -> io::Result<JournalThreads> {
        let disk = self.disk.start()?;
        let start = |mut run_follower: RunFollower| {
            let counters = self.counters;
            BackgroundThread::repeat("snapshots", move || match run_follower() {
                Ok(0) => Some(FOLLOW_INTERVAL),
                Ok(_) => Some(Duration::ZERO),
                Err(error) => {
                    counters.snapshot_errors.add(1);
                    (!error.is_final()).then_some(Duration::ZERO)
                }
            })
        };
        let follower = self.follower.map(start).transpose()?;
        let mut trusted = self.trusted;
        // If a write fails, the next run repeats it. A crash before that loses only the new trusted logins.
        let trusted = BackgroundThread::repeat("trusted-logins", move || {
            trusted.run_once().ok();
            Some(TRUST_INTERVAL)
        })?;
        let start = |agent| start_background_agent(agent, TscClock::shared());
        let drop_copy = self.drop_copy.map(start).transpose()?;
        Ok(JournalThreads { _drop_copy: drop_copy, _follower: follower, _trusted: trusted, _disk: disk })
    }

    /// Does one piece of the disk worker's work on the calling thread; returns 0 if there is none. For a
    /// caller that does not [`start`](VenueJournal::start) the threads.
    pub fn work_on_disk(&mut self) -> usize {
        self.disk.run_once()
    }

    /// Does one piece of the follower's work on the caller's thread; returns 0 if there is none.
    ///
    /// # Errors
    /// [`FollowerError`] when the log cannot be read or the snapshot cannot be written.
    pub fn follow(&mut self) -> Result<usize, FollowerError> {
        self.follower.as_mut().map_or(Ok(0), |run| run())
    }

    /// Writes new trusted logins on the caller's thread; returns their number.
    ///
    /// # Errors
    /// The system's error when writing. The next call retries.
    pub fn save_trusted_logins(&mut self) -> io::Result<usize> {
        self.trusted.run_once()
    }

    /// Does one run of the drop copy endpoint on the caller's thread; returns 0 if there is no work.
    ///
    /// # Errors
    /// [`AgentError`] when the log cannot be followed any more.
    pub fn run_drop_copy(&mut self, now: Nanos) -> Result<usize, AgentError> {
        self.drop_copy.as_mut().map_or(Ok(0), |copies| copies.do_work(now))
    }
}
