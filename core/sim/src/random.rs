//! Draws from a seeded generator, in whole numbers alone: the same on every machine.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Steps of the table of exponential gaps.
const STEPS: u64 = 64;

/// A seeded source of whole numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A number in `0..bound`, which must not be 0. The bias is below `bound / 2^64`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with probability `ppm` in a million.
    pub(crate) fn chance(&mut self, ppm: u64) -> bool {
        self.below(1_000_000) < ppm
    }

    /// 0 with probability `1 - ppm`, else 1 more than another such draw; at most `max`.
    pub(crate) fn geometric(&mut self, ppm: u64, max: u64) -> u64 {
        (0..max).find(|_| !self.chance(ppm)).unwrap_or(max)
    }

    /// A number with this mean, distributed about exponentially: the sum of a geometric number of steps
    /// of a 64th of the mean. No logarithm, whose last digit differs between machines.
    pub(crate) fn exponential(&mut self, mean: u64) -> u64 {
        // -ln(u) = k ln 2 - ln(u'), u' in [1/2, 1): k by counting leading zeros, the rest by its
        // chord, which is off by less than 9% of ln 2 anywhere and by nothing in the mean that is kept.
        let draw = self.0.next_u64();
        let halvings = u64::from(draw.leading_zeros().min(63));
        let fraction = (draw << (halvings + 1).min(63)) >> 58;
        let in_64ths = halvings * STEPS + (STEPS - 1 - fraction);
        // The mean of `in_64ths` is 64 + 31.5; 10^6 / 95.5 rounds to 10471.
        ((u128::from(mean) * u128::from(in_64ths) * 10_471) / 1_000_000) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_draws_have_their_mean_and_their_tail() {
        let mut random = Random::new(1);
        let draws: Vec<u64> = (0..200_000).map(|_| random.exponential(1_000)).collect();
        let mean = draws.iter().sum::<u64>() / draws.len() as u64;
        assert!((985..1_015).contains(&mean), "{mean}");
        let beyond_3 = draws.iter().filter(|draw| **draw > 3_000).count();
        assert!((8_000..12_000).contains(&beyond_3), "e^-3 of 200,000 is 9,957, {beyond_3}");
    }

    #[test]
    fn geometric_draws_are_bounded() {
        let mut random = Random::new(2);
        assert!((0..10_000).all(|_| random.geometric(900_000, 12) <= 12));
        let zeros = (0..10_000).filter(|_| random.geometric(500_000, 12) == 0).count();
        assert!((4_700..5_300).contains(&zeros));
    }
}
