//! Clocks that a gateway and its clients share: all processes of a machine read the same values.

use nix::time::{ClockId, clock_gettime};
use tickpath_types::Nanos;

/// The machine's monotonic clock (`CLOCK_MONOTONIC`): the times of events and requests. A read takes some 20
/// ns if the kernel provides it in the vDSO.
#[inline]
#[must_use]
pub fn monotonic() -> Nanos {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Time since the Unix epoch, by the machine's clock.
#[must_use]
pub fn unix_time() -> Nanos {
    read(ClockId::CLOCK_REALTIME)
}

#[inline]
fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock).expect("Linux has these clocks");
    Nanos(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}
