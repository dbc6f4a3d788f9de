//! The delay before the next attempt to connect.

use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;

/// The first delay, before jitter.
pub const DELAY_MIN: Duration = Duration::from_millis(100);
/// The longest delay, before jitter.
pub const DELAY_MAX: Duration = Duration::from_secs(30);

/// Delays that double from [`DELAY_MIN`] to [`DELAY_MAX`]. Each is shortened by up to a half, so that clients
/// which lost the same server do not reconnect at the same time.
#[derive(Clone, Debug)]
pub struct Backoff {
    random: SplitMix64,
    attempts: u32,
}

impl Backoff {
    /// Creates a sequence of delays that starts at [`DELAY_MIN`]; the same seed gives the same sequence.
    #[must_use]
    pub fn new(seed: u64) -> Backoff {
        Backoff { random: SplitMix64::seed_from_u64(seed), attempts: 0 }
    }

    /// Returns the delay before the next attempt to connect.
    pub fn next_delay(&mut self) -> Duration {
        let whole = DELAY_MIN.saturating_mul(1 << self.attempts.min(16)).min(DELAY_MAX);
        self.attempts = self.attempts.saturating_add(1);
        let half = (whole / 2).as_nanos() as u64;
        // The high half of the product is uniform enough over this small number of nanoseconds.
        let jitter = (u128::from(self.random.next_u64()) * u128::from(half + 1)) >> 64;
        whole - Duration::from_nanos(jitter as u64)
    }

    /// Restarts with the first delay, after a successful attempt.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_and_lose_up_to_a_half() {
        let mut backoff = Backoff::new(7);
        let mut whole = DELAY_MIN;
        for _ in 0..40 {
            let delay = backoff.next_delay();
            assert!(delay <= whole && delay >= whole / 2, "{delay:?} of {whole:?}");
            whole = (whole * 2).min(DELAY_MAX);
        }
        backoff.reset();
        assert!(backoff.next_delay() <= DELAY_MIN);
    }

    #[test]
    fn delays_depend_on_the_seed() {
        let delays = |seed| {
            let mut backoff = Backoff::new(seed);
            [(); 10].map(|()| backoff.next_delay())
        };
        assert_eq!(delays(1), delays(1));
        assert_ne!(delays(1), delays(2));
    }
}
