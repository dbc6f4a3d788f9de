//! Exact division by a constant, without a division instruction.

/// Divides by a fixed number, and detects numbers that are not multiples of it.
///
/// ```
/// use tickpath_types::ExactDivisor;
///
/// let tick = ExactDivisor::new(100);
/// assert_eq!(tick.quotient(1_500), 15);
/// assert!(tick.quotient(1_501) > u64::MAX / 100);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactDivisor {
    /// The inverse of the divisor's odd factor, modulo 2^64.
    inverse: u64,
    /// Number of factors of two in the divisor.
    twos: u32,
}

impl ExactDivisor {
    /// Creates the divisor `divisor`.
    ///
    /// # Panics
    /// If `divisor` is zero.
    #[must_use]
    pub const fn new(divisor: u64) -> ExactDivisor {
        assert!(divisor != 0, "nothing is divided by zero");
        let twos = divisor.trailing_zeros();
        let odd = divisor >> twos;
        // Newton's iteration: each step doubles the number of correct bits. An odd number is its own inverse
        // modulo 8.
        let mut inverse = odd;
        let mut round = 0;
        while round < 5 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
            round += 1;
        }
        ExactDivisor { inverse, twos }
    }

    /// Returns `number` divided by the divisor. If there is a remainder, returns a number above `u64::MAX /
    /// divisor`, and thus above every possible quotient.
    ///
    /// Source: Granlund, Montgomery, "Division by Invariant Integers using Multiplication" (1994), section 9.
    #[inline(always)]
    #[must_use]
    pub const fn quotient(self, number: u64) -> u64 {
        number.wrapping_mul(self.inverse).rotate_right(self.twos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_exact_and_remainders_are_detected() {
        let numbers = (0..300).chain((0..64).map(|bit| 1 << bit)).chain((u64::MAX - 300)..=u64::MAX);
        let numbers: Vec<u64> = numbers.collect();
        for divisor in numbers.iter().filter(|divisor| **divisor > 0) {
            let exact = ExactDivisor::new(*divisor);
            for number in &numbers {
                let quotient = exact.quotient(*number);
                match number % divisor {
                    0 => assert_eq!(quotient, number / divisor, "{number} by {divisor}"),
                    _ => assert!(quotient > u64::MAX / divisor, "{number} by {divisor}"),
                }
            }
        }
    }
}
