//! A random number generator that uses integer arithmetic only.

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A random number generator; a seed yields the same sequence on every machine.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

/// ln 2 in units of 2^-32.
const LN2_Q32: u64 = 2_977_044_472;
/// Number of fractional bits of the logarithm in [`Rng::exponential`].
const LOG_BITS: u32 = 24;

impl Rng {
    /// Creates a generator from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Rng {
        Rng(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns the next 64 random bits.
    #[expect(clippy::should_implement_trait, reason = "it has no end")]
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in `0..bound`; 0 for a bound of 0. The relative error of each number's probability is
    /// below `bound` / 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.next()) * u128::from(bound);
        u64::try_from(product >> 64).expect("the product's upper half is below the bound")
    }

    /// True with a probability of `ppm` parts per million.
    #[inline]
    pub fn chance_ppm(&mut self, ppm: u32) -> bool {
        self.below(1_000_000) < u64::from(ppm)
    }

    /// An exponentially distributed number with this mean, rounded down, at most 45 times the mean.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        // -ln(u) with u uniform in (0, 1), from the base-2 logarithm in fixed point.
        let minus_ln_q32 = (u128::from(minus_log2(self.next())) * u128::from(LN2_Q32)) >> LOG_BITS;
        let product = minus_ln_q32 * u128::from(mean);
        u64::try_from(product >> 32).unwrap_or(u64::MAX)
    }

    /// A geometrically distributed number, 0 or more, with a mean near `mean_hundredths` / 100.
    pub fn geometric(&mut self, mean_hundredths: u32) -> u64 {
        // The floor of an exponential of mean m is geometric with mean 1 / (e^(1/m) - 1), about m - 1/2.
        self.exponential(u64::from(mean_hundredths) + 50) / 100
    }
}

/// -log2(x / 2^64) as a multiple of 2^-LOG_BITS, rounded up; 64 if `x` is 0.
fn minus_log2(x: u64) -> u64 {
    let whole = u64::from(x.leading_zeros());
    if whole == 64 {
        return 64 << LOG_BITS;
    }
    // The mantissa is in [1, 2), in units of 2^-63; each squaring yields one bit of its logarithm.
    let mut mantissa = x << whole;
    let mut fraction = 0_u64;
    for _ in 0..LOG_BITS {
        let square = u128::from(mantissa) * u128::from(mantissa);
        let is_two_or_more = square >> 127 == 1;
        fraction = fraction << 1 | u64::from(is_two_or_more);
        let shift = if is_two_or_more { 64 } else { 63 };
        mantissa = u64::try_from(square >> shift).expect("a mantissa stays below 2");
    }
    ((whole + 1) << LOG_BITS) - fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_matches_the_library() {
        let mut rng = Rng::new(1);
        for _ in 0..10_000 {
            let x = (rng.next() >> rng.below(60)).max(1);
            let exact = 64.0 - (x as f64).log2();
            let ours = minus_log2(x) as f64 / f64::from(1 << LOG_BITS);
            assert!((ours - exact).abs() < 1e-6, "{x}: {ours} {exact}");
        }
        assert_eq!(minus_log2(u64::MAX), 1, "the smallest, one unit above 0");
        assert_eq!(minus_log2(0), 64 << LOG_BITS);
    }

    #[test]
    fn distributions_have_the_expected_moments() {
        let mut rng = Rng::new(2);
        let count = 200_000_u64;
        let mean = |values: &[u64]| values.iter().sum::<u64>() as f64 / count as f64;

        let exponential: Vec<u64> = (0..count).map(|_| rng.exponential(50_000)).collect();
        assert!((mean(&exponential) - 50_000.0).abs() < 500.0);
        let above = exponential.iter().filter(|value| **value > 150_000).count() as f64 / count as f64;
        assert!((above - (-3.0_f64).exp()).abs() < 0.002, "{above}");

        let geometric: Vec<u64> = (0..count).map(|_| rng.geometric(300)).collect();
        assert!((mean(&geometric) - 3.0).abs() < 0.05, "{}", mean(&geometric));

        let even: Vec<u64> = (0..count).map(|_| rng.below(10)).collect();
        assert!((mean(&even) - 4.5).abs() < 0.03);
        let hits = (0..count).filter(|_| rng.chance_ppm(80_000)).count() as f64 / count as f64;
        assert!((hits - 0.08).abs() < 0.002);
        assert_eq!(rng.below(0), 0);
        assert!(!rng.chance_ppm(0) && rng.chance_ppm(1_000_000));
    }
}
