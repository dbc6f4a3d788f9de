//! A simulated price of an underlying.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A random walk of a price, within a factor of two of its start.
///
/// The same seed gives the same prices.
#[derive(Clone, Debug)]
pub struct IndexWalk {
    random: Xoshiro256PlusPlus,
    price: i64,
    bounds: (i64, i64),
    step_ppm: u32,
}

impl IndexWalk {
    /// A walk that starts at `price`, which is above 0. A step moves it by at most `step_ppm` millionths.
    #[must_use]
    pub fn new(seed: u64, price: i64, step_ppm: u32) -> IndexWalk {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let price = price.max(1);
        IndexWalk { random, price, bounds: ((price / 2).max(1), price.saturating_mul(2)), step_ppm }
    }

    /// The current price.
    #[must_use]
    pub const fn price(&self) -> i64 {
        self.price
    }

    /// Sets the current price, clamped to the walk's bounds; the walk continues from there.
    pub fn resume(&mut self, price: i64) {
        self.price = price.clamp(self.bounds.0, self.bounds.1);
    }

    /// Moves the price by one step and returns the new price.
    pub fn step(&mut self) -> i64 {
        let range = 2 * u64::from(self.step_ppm) + 1;
        let ppm = (self.random.next_u64() % range) as i128 - i128::from(self.step_ppm);
        let moved = i128::from(self.price) + i128::from(self.price) * ppm / 1_000_000;
        let (low, high) = self.bounds;
        self.price = moved.clamp(low.into(), high.into()) as i64;
        self.price
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_walk_within_its_bounds() {
        let walk = |seed| {
            let mut walk = IndexWalk::new(seed, 1_000_000_000, 2_000);
            (0..20_000).map(|_| walk.step()).collect::<Vec<_>>()
        };
        let prices = walk(7);
        assert_eq!(prices, walk(7));
        assert_ne!(prices, walk(8));
        assert!(prices.iter().all(|price| (500_000_000..=2_000_000_000).contains(price)));
        assert!(prices.windows(2).all(|pair| (pair[1] - pair[0]).abs() <= pair[0] / 500));
        let mut still = IndexWalk::new(1, 5, 0);
        assert_eq!(still.step(), 5);
        still.resume(7);
        assert_eq!(still.step(), 7);
        still.resume(70);
        assert_eq!(still.price(), 10);
    }
}
