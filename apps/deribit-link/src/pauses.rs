//! How long to wait before connecting again.

use tickpath_types::Nanos;

/// A session that was ready so long was a good one: after its loss the first pause is the shortest again.
const GOOD_AFTER: Nanos = Nanos::from_secs(10);

/// Pauses that double, up to a longest one.
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

    /// The next pause is the shortest.
    pub(crate) const fn reset(&mut self) {
        self.next = self.min;
    }

    /// A connection ended whose session was ready since then.
    pub(crate) fn note_end(&mut self, now: Nanos, ready_at: Option<Nanos>) {
        if ready_at.is_some_and(|since| now.since(since) >= GOOD_AFTER) {
            self.reset();
        }
    }

    /// The pause before the next connection; the one after that is twice as long.
    pub(crate) fn next(&mut self, now: Nanos) -> Nanos {
        let pause = self.next;
        self.next = Nanos((pause.0.saturating_mul(2)).min(self.max.0));
        // Shorter by up to a quarter, so that many clients do not come back at once.
        Nanos(pause.0 - mixed(now.0 ^ self.seed) % (pause.0 / 4).max(1))
    }

    /// The longest one: what was refused for good is not tried often.
    pub(crate) const fn longest(&self) -> Nanos {
        self.max
    }
}

/// A number that looks random (the finaliser of SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
