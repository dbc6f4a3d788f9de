//! Exponential backoff of reconnects.

use tickpath_types::Nanos;

/// Time for which a session must have been ready to reset the backoff after its loss.
const GOOD_AFTER: Nanos = Nanos::from_secs(10);

/// Pauses that double up to a maximum.
#[derive(Debug)]
pub(crate) struct Pauses {
    min: Nanos,
    max: Nanos,
    next: Nanos,
    seed: u64,
}

impl Pauses {
    pub(crate) const fn new(min: Nanos, max: Nanos, seed: u64) -> Pauses {
        Pauses { min, max, next: min, seed }
    }

    /// Resets the next pause to the shortest.
    pub(crate) const fn reset(&mut self) {
        self.next = self.min;
    }

    /// Records the end of a connection whose session was ready since `ready_at`.
    pub(crate) fn note_end(&mut self, now: Nanos, ready_at: Option<Nanos>) {
        if ready_at.is_some_and(|since| now.since(since) >= GOOD_AFTER) {
            self.reset();
        }
    }

    /// Returns the pause before the next connection, and doubles the one after it.
    pub(crate) fn next(&mut self, now: Nanos) -> Nanos {
        let pause = self.next;
        self.next = Nanos((pause.0.saturating_mul(2)).min(self.max.0));
        // Shortened by up to a quarter, so that many clients do not reconnect at once.
        Nanos(pause.0 - mixed(now.0 ^ self.seed) % (pause.0 / 4).max(1))
    }

    /// The longest pause, used after a permanent refusal.
    pub(crate) const fn longest(&self) -> Nanos {
        self.max
    }
}

/// A pseudo-random number (the finaliser of SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
