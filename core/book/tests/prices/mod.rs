//! Price distributions of random tests.

use tickpath_types::Price;

/// Distribution of order prices.
#[derive(Clone, Copy, Debug)]
pub enum Prices {
    /// Prices from 0 to below this number.
    UpTo(u32),
    /// Prices near a mid price that moves in steps of this size and sometimes jumps. A few are between the
    /// steps, far from the mid or at the ends of the price range.
    Wander(i64),
}

impl Prices {
    pub fn draw(self, step: u32, mut below: impl FnMut(u32) -> u32) -> Price {
        match self {
            Prices::UpTo(bound) => Price(i64::from(below(bound))),
            Prices::Wander(tick) => {
                let round = i64::from(step / 3_000);
                let mid = 1_000_000 + (round % 5) * 700 * tick + i64::from(step / 40 % 60) * tick;
                let near = mid + (i64::from(below(160)) - 80) * tick;
                Price(match below(60) {
                    0 => near + i64::from(below(7)),
                    1 => mid + (i64::from(below(9_000)) - 4_500) * tick,
                    2 => [i64::MAX, i64::MIN, i64::MAX - 300, i64::MIN + 300, 0][below(5) as usize],
                    _ => near,
                })
            }
        }
    }
}
