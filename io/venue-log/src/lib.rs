//! The venue's log on disk. The venue writes each command before it responds; recovery and other readers
//! read the log.
//!
//! This crate connects a journal of `tickpath_journal` with the replica of `tickpath_venue`. [`recover`]
//! opens a folder and replays the log; [`JournalLog`] is the sequencer's interface, and [`StoredJournal`]
//! that of readers. A [`Follower`] writes the snapshots; [`audit`] replays a whole log.

mod audit;
mod follower;
mod recovery;
mod stored_log;
mod trusted;
mod writer;

pub use audit::{Audit, audit};
pub use follower::{Follower, FollowerError};
pub use recovery::{Recovered, Recovery, RecoveryError, RecoveryOptions, recover};
pub use stored_log::StoredJournal;
pub use trusted::open_trusted_logins;
pub use writer::JournalLog;
