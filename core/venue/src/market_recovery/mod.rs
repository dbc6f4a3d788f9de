//! The recovery of market data: snapshots, and messages resent on request from memory or from the log.

mod archive;
mod counters;
mod requests;
mod snapshot_channel;
mod snapshot_turns;

pub use archive::{ArchiveAnswer, ArchiveLink, ArchivePort, ArchiveRequest, CatchUp, MessageArchive};
pub use counters::RecoveryCounters;
pub use requests::{Answer, REQUESTS_PER_POLL, RequestFault, RetransmissionQueue};
pub use snapshot_channel::SnapshotChannel;
pub use snapshot_turns::{SnapshotTurns, Stage};
