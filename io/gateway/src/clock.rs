//! The clocks that a gateway and its clients share: all processes of a machine read the same.

use nix::time::{ClockId, clock_gettime};
use tickpath_types::Nanos;

/// The machine's monotonic clock (`CLOCK_MONOTONIC`): the times of events and requests. Some 20 ns where the kernel keeps
/// it in the vDSO.
#[inline]
#[must_use]
pub fn monotonic() -> Nanos {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Time since the Unix epoch, as the machine believes it.
#[must_use]
pub fn unix_time() -> Nanos {
    read(ClockId::CLOCK_REALTIME)
}

#[inline]
fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock).expect("Linux has these clocks");
    Nanos(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}
