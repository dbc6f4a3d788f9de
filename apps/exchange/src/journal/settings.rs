//! How a venue keeps its journal.

use std::path::PathBuf;

use tickpath_journal::Policy;
use tickpath_nasdaq::moldudp64::Session;

use crate::drop_copy::DropCopySettings;

/// How a venue keeps its journal, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalSettings {
    /// The folder of segments and snapshots, for one venue alone.
    pub folder: PathBuf,
    /// What an answer means.
    pub policy: Policy,
    /// Length of a segment's file, in bytes.
    pub segment_len: u64,
    /// Length of each of the two buffers between duty cycle and disk, in bytes.
    pub buffer_len: usize,
    /// Commands from one snapshot to the next; none are written when 0.
    pub snapshot_every: u64,
    /// Snapshots that are kept, and with them the log from the oldest of them on; 1 at least, `usize::MAX` for
    /// all of them and the whole log.
    pub keep_snapshots: usize,
    /// The session must be this one.
    pub session: Option<Session>,
    /// Accepts that answered commands are lost, by damage or by the loss of power: the session has another name then.
    pub accept_loss: bool,
    /// Where what users are told is told again, read from the log.
    pub drop_copy: Option<DropCopySettings>,
}

impl JournalSettings {
    /// The defaults, in a folder.
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
