//! What the log counts.

use tickpath_agent::Counter;

/// What the log did, readable from outside.
#[derive(Debug, Default)]
pub struct LogCounters {
    /// Records that the duty cycle had.
    pub offered: Counter,
    /// Of those, lost because the ring was full or they were too long.
    pub lost_to_ring: Counter,
    /// Records in the files.
    pub written: Counter,
    /// Bytes in the files.
    pub bytes: Counter,
    /// Records lost because the disk did not take them.
    pub lost_to_disk: Counter,
    /// Writes that failed, and files that could not be made.
    pub disk_errors: Counter,
    /// Times that a file was forced to the disk.
    pub flushes: Counter,
    /// Times that it could not be.
    pub flush_errors: Counter,
}
