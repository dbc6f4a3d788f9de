//! The venue's clock.

pub(super) const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Midnight in New York at the start of 20 November 2026, in seconds since the Unix epoch.
pub(super) const MIDNIGHT_SECS: u64 = 1_795_150_800;
/// Resolution of the venue's clock, in nanoseconds.
const CLOCK_STEP_NS: u64 = 256;

/// Rounds a time down to the resolution of the venue's clock.
pub(super) const fn round_down(ns: u64) -> u64 {
    ns - ns % CLOCK_STEP_NS
}
