//! Where every command is kept.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_config::{ByteSize, in_range};
use tickpath_journal::{Policy, SessionName};

use super::Result;
use crate::journal::JournalSettings;

/// Least length of a segment: two buffers fit.
const SEGMENT_MIN: ByteSize = ByteSize(4 << 20);
const SEGMENT_MAX: ByteSize = ByteSize(16 << 30);
/// Fewest commands from one snapshot to the next.
const SNAPSHOT_EVERY_MIN: u64 = 1_000;
const KEEP_SNAPSHOTS_MAX: usize = 1_000;

/// The journal: every command is written here before it takes effect, and nothing is answered before it is safe.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct JournalConfig {
    /// What an answer means. `group`: a batch that holds the command is on the disk; it survives the loss of power.
    /// `sync`: the same, one command a batch. `async`: it is written to the file; it survives the death of the
    /// process, NOT the loss of power. `off`: NOTHING is kept, and a venue that stops or dies FORGETS every order,
    /// execution and message; for benchmarks and tests alone.
    pub policy: PolicyConfig,
    /// The folder of this venue alone; relative to this file, and made if there is none.
    pub folder: PathBuf,
    /// Length of a file of the log.
    pub segment: ByteSize,
    /// Commands from one snapshot to the next; 0 for none, and a start that reads the whole log.
    pub snapshot_every: u64,
    /// Snapshots that are kept, and the log from the oldest of them on.
    pub keep_snapshots: usize,
}

/// What an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyConfig {
    /// The command is in the file.
    Async,
    /// The command is on the disk, with others.
    Group,
    /// The command is on the disk, alone.
    Sync,
    /// Nothing: there is no journal.
    Off,
}

impl Default for JournalConfig {
    fn default() -> Self {
        let JournalSettings { segment_len, snapshot_every, keep_snapshots, .. } =
            JournalSettings::new("", Policy::Group);
        JournalConfig {
            policy: PolicyConfig::Group,
            folder: PathBuf::from("journal"),
            segment: ByteSize(segment_len),
            snapshot_every,
            keep_snapshots,
        }
    }
}

impl JournalConfig {
    pub(super) fn settings(&self, session: Option<SessionName>) -> Result<Option<JournalSettings>> {
        let policy = match self.policy {
            PolicyConfig::Off => return Ok(None),
            PolicyConfig::Async => Policy::Async,
            PolicyConfig::Group => Policy::Group,
            PolicyConfig::Sync => Policy::Sync,
        };
        in_range("journal.segment", self.segment, SEGMENT_MIN..=SEGMENT_MAX)?;
        if self.snapshot_every != 0 && self.snapshot_every < SNAPSHOT_EVERY_MIN {
            bail!("journal.snapshot_every must be at least {SNAPSHOT_EVERY_MIN}, or 0 for none");
        }
        in_range("journal.keep_snapshots", self.keep_snapshots, 1..=KEEP_SNAPSHOTS_MAX)?;
        Ok(Some(JournalSettings {
            segment_len: self.segment.0,
            snapshot_every: self.snapshot_every,
            keep_snapshots: self.keep_snapshots,
            session,
            ..JournalSettings::new(&self.folder, policy)
        }))
    }
}
