//! The venue's log on disk: written before anything is answered, read at the start and by readers beside the venue.
//!
//! It joins a journal of `tickpath_journal` to the replica of `tickpath_venue`. [`recover`] opens a folder and leads the
//! replica to its end; [`JournalLog`] is the sequencer's end, [`StoredJournal`] that of each reader; a [`Follower`] writes
//! the snapshots; [`audit`] reads a whole log again.

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
