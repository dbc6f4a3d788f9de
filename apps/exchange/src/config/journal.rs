//! The configuration of the journal.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_config::{ByteSize, in_range};
use tickpath_journal::{Policy, SessionName};

use super::Result;
use crate::journal::JournalSettings;

/// Minimum length of a segment: two buffers of the journal must fit into it.
const SEGMENT_MIN: ByteSize = ByteSize(4 << 20);
const SEGMENT_MAX: ByteSize = ByteSize(16 << 30);
/// Minimum number of commands between snapshots.
const SNAPSHOT_EVERY_MIN: u64 = 1_000;
const KEEP_SNAPSHOTS_MAX: usize = 1_000;

/// The journal stores every command before it takes effect. No command is answered before it is durable.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct JournalConfig {
    /// Durability of a command when the venue answers it. `group`: the command is on the disk, in a batch,
    /// and survives a power loss. `sync`: the same, with one command per batch. `async`: the command is
    /// written to the file; it survives a process crash, NOT a power loss. `off`: NOTHING is stored, and a
    /// venue that stops or crashes LOSES every order, execution and message; for benchmarks and tests only.
    pub policy: PolicyConfig,
    /// Folder of the journal, used by this venue only; relative to this file, and created if missing.
    pub folder: PathBuf,
    /// Length of a segment file of the log.
    pub segment: ByteSize,
    /// Commands between snapshots; 0 for no snapshots, in which case a start reads the whole log.
    pub snapshot_every: u64,
    /// Number of snapshots kept. The log is kept from the oldest of them on.
    pub keep_snapshots: usize,
}

/// Durability of a command when the venue answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyConfig {
    /// The command is written to the file.
    Async,
    /// The command is on the disk, in a batch with others.
    Group,
    /// The command is on the disk, in a batch of one command.
    Sync,
    /// No guarantee: there is no journal.
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
