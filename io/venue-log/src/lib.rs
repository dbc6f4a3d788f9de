//! The venue's log on disk: written before any answer, and read at the start and by readers beside the venue.
//!
//! It connects a journal of `tickpath_journal` with the replica of `tickpath_venue`. [`recover`] opens a
//! folder and replays it to its end; [`JournalLog`] is the sequencer's end, [`StoredJournal`] that of each
//! reader. A [`Follower`] writes the snapshots; [`audit`] replays a whole log.

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
