//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// `CLOCK_REALTIME` in nanoseconds since the Unix epoch.
#[must_use]
pub fn realtime_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}
