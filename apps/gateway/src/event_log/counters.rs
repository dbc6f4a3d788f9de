//! Counters of the log.

use tickpath_agent::Counter;

/// Counters of the log, readable from outside.
#[derive(Debug, Default)]
pub struct LogCounters {
    /// Records that the duty cycle offered.
    pub offered: Counter,
    /// Offered records that were lost because the ring was full or they were too long.
    pub lost_to_ring: Counter,
    /// Records in the files.
    pub written: Counter,
    /// Bytes in the files.
    pub bytes: Counter,
    /// Records lost because the disk did not accept them.
    pub lost_to_disk: Counter,
    /// Failed writes, and files that could not be created.
    pub disk_errors: Counter,
    /// Syncs of a file to disk.
    pub flushes: Counter,
    /// Failed syncs.
    pub flush_errors: Counter,
}
