//! Weighted choices in constant time, and heavy-tailed draws, in integer arithmetic.

use tickpath_types::Rng;

/// Draws an index in proportion to its weight, with one random number and one table access.
///
/// Walker's alias method in Vose's form. The upper half of the random number selects a place, each with the
/// same probability. If the lower half is below the place's threshold, the result is the place's own index,
/// otherwise its alias.
#[derive(Clone, Debug)]
pub(super) struct WeightedChoice(Box<[Place]>);

#[derive(Clone, Copy, Debug)]
struct Place {
    /// Probability of the place's own index, in units of 2^-32; `alias` has the rest.
    threshold: u32,
    alias: u16,
}

impl WeightedChoice {
    /// Builds the table for at most 2^16 weights, each below 2^47, at least one of them above zero.
    pub fn new(weights: &[u64]) -> WeightedChoice {
        let count = weights.len() as u64;
        let total: u64 = weights.iter().sum();
        // Scales the weights so that their mean, which fills exactly one place, is `total`.
        let mut shares: Vec<u64> = weights.iter().map(|weight| weight * count).collect();
        let mut places: Box<[Place]> =
            (0..weights.len()).map(|index| Place { threshold: u32::MAX, alias: index as u16 }).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|index| shares[*index] < total);
        while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
            small.pop();
            let threshold = (u128::from(shares[poor]) << 32) / u128::from(total);
            let threshold = u32::try_from(threshold).expect("a share below the total gives a part of one");
            places[poor] = Place { threshold, alias: rich as u16 };
            shares[rich] -= total - shares[poor];
            if shares[rich] < total {
                large.pop();
                small.push(rich);
            }
        }
        WeightedChoice(places)
    }

    #[inline]
    pub fn sample(&self, rng: &mut Rng) -> usize {
        let random = rng.next();
        let index = upper_below(random, self.0.len() as u64) as usize;
        let Place { threshold, alias } = self.0[index];
        if (random as u32) < threshold { index } else { usize::from(alias) }
    }
}

/// Maps the upper half of a random number to a uniform number in `0..bound`, for a bound below 2^32. The
/// lower half is left for other choices.
#[inline]
pub(super) fn upper_below(random: u64, bound: u64) -> u64 {
    ((random >> 32) * bound) >> 32
}

/// Draws from a power law of exponent 1: P(at least `x`) = `scale` / (`scale` + `x`). The mean is infinite,
/// so the caller must bound the result. `scale` is below 2^31.
#[inline]
pub(super) fn power_law(rng: &mut Rng, scale: u64) -> u64 {
    let uniform = (rng.next() >> 32) + 1;
    (scale << 32) / uniform - scale
}

/// Draws an order quantity: half are 100 shares, the others are 1 to 10 lots of 100, odd lots or blocks.
#[inline]
pub(super) fn qty(rng: &mut Rng) -> u64 {
    let choice = rng.next();
    match choice & 0xf {
        0..8 => 100,
        8..12 => 100 * (1 + upper_below(choice, 10)),
        12..15 => 1 + upper_below(choice, 99),
        _ => 100 * (10 + (power_law(rng, 10) % 1_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_come_in_proportion_to_their_weights() {
        let weights = [5, 0, 1, 94, 300];
        let choice = WeightedChoice::new(&weights);
        let mut rng = Rng::new(5);
        let mut counts = [0_u64; 5];
        for _ in 0..400_000 {
            counts[choice.sample(&mut rng)] += 1;
        }
        for (count, weight) in counts.iter().zip(weights) {
            assert!(count.abs_diff(weight * 1_000) <= 40 + weight * 20, "{counts:?}");
        }
        assert_eq!(WeightedChoice::new(&[7]).sample(&mut rng), 0);
    }

    #[test]
    fn the_tail_falls_with_the_distance() {
        let mut rng = Rng::new(6);
        let draws: Vec<u64> = (0..100_000).map(|_| power_law(&mut rng, 4)).collect();
        for (bound, expected) in [(4, 50_000), (12, 25_000), (396, 1_000)] {
            let count = draws.iter().filter(|value| **value >= bound).count();
            assert!(count.abs_diff(expected) < expected / 20 + 100, "{bound}: {count}");
        }
    }
}
