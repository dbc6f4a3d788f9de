//! The securities of a day: names, activity, and reference prices that follow a random walk.

use tickpath_nasdaq::wire::Stock;
use tickpath_types::{Price, Rng, Side};

use super::weights::{WeightedChoice, power_law};

/// Tick of a security at one dollar or more: one cent, in units of 1/10,000 dollar.
pub(super) const TICK: i64 = 100;
/// Number of subticks, the units of the reference price, in a tick.
const SUBTICKS: i64 = 256;
/// A step of the reference price is its initial value divided by this: about 0.012%.
const STEPS_PER_REFERENCE: i64 = 8_192;
/// Median distance of a new order from the reference price: the initial reference price / this + 1 tick.
const REACHES_PER_REFERENCE: i64 = 4_000;

/// A security's share of messages is proportional to 1 / (rank + this), with rank 1 for the most active:
/// Zipf's law with exponent 1, in Mandelbrot's form, which makes the most active ranks more equal.
const RANK_SHIFT: u64 = 8;
const WEIGHT_UNIT: u64 = 1 << 40;

/// Number of letters of a symbol.
const SYMBOL_LEN: u32 = 4;
const LETTERS: u32 = 26;

#[derive(Clone, Debug)]
pub(super) struct Security {
    pub stock: Stock,
    /// Reference price in subticks.
    reference: i64,
    /// Bounds at which the reference price turns around, in subticks.
    low: i64,
    high: i64,
    /// Step in subticks.
    step: i64,
    /// Half of the new orders lie within this number of ticks of the reference price.
    reach: u64,
    /// Share of the day's live orders, in units of 2^-32.
    pub live_share_q32: u64,
}

impl Security {
    /// Reference price in ticks, rounded down: new bids lie at or below it, new asks above it.
    #[inline]
    pub fn front_tick(&self) -> i64 {
        self.reference / SUBTICKS
    }

    /// The reference price, rounded down to a whole tick.
    pub fn reference_price(&self) -> Price {
        Price(self.front_tick() * TICK)
    }

    /// Moves the reference price by a step.
    #[inline]
    pub fn walk(&mut self, is_up: bool) {
        let step = if is_up { self.step } else { -self.step };
        let moved = self.reference + step;
        self.reference = if (self.low..=self.high).contains(&moved) { moved } else { self.reference - step };
    }

    /// Draws a passive price, in ticks; its distance from the reference price follows a power law.
    #[inline]
    pub fn passive_tick(&self, side: Side, rng: &mut Rng) -> i64 {
        let front = self.front_tick();
        // The distance is at most half of the reference price.
        let distance = (power_law(rng, self.reach) % (front as u64 / 2)) as i64;
        if side == Side::Buy { front - distance } else { front + 1 + distance }
    }
}

/// All securities of a day, in alphabetical order; the index is the locate code minus one.
#[derive(Clone, Debug)]
pub(super) struct Securities {
    pub list: Box<[Security]>,
    /// Draws the security of a message in the market session.
    pub by_activity: WeightedChoice,
    /// Draws the security of a message while the books fill and empty.
    pub by_live: WeightedChoice,
}

impl Securities {
    /// Creates `count` securities with random activity and reference prices.
    pub fn new(count: u16, rng: &mut Rng) -> Securities {
        let mut ranks: Vec<u64> = (0..u64::from(count)).collect();
        for last in (1..ranks.len()).rev() {
            ranks.swap(last, rng.below(last as u64 + 1) as usize);
        }
        let activity: Vec<u64> = ranks.iter().map(|rank| WEIGHT_UNIT / (rank + 1 + RANK_SHIFT)).collect();
        // The number of live orders falls only with the root of the rank: inactive securities have many too.
        let live: Vec<u64> =
            ranks.iter().map(|rank| WEIGHT_UNIT / ((rank + 1 + RANK_SHIFT) << 16).isqrt()).collect();
        let live_total: u128 = live.iter().map(|weight| u128::from(*weight)).sum();
        let security = |(index, weight): (usize, &u64)| {
            let share = (u128::from(*weight) << 32) / live_total;
            let stock = symbol(index as u32, u32::from(count));
            Security::new(stock, u64::try_from(share).expect("a share is at most one"), rng)
        };
        let list = live.iter().enumerate().map(security).collect();
        Securities { list, by_activity: WeightedChoice::new(&activity), by_live: WeightedChoice::new(&live) }
    }
}

impl Security {
    fn new(stock: Stock, live_share_q32: u64, rng: &mut Rng) -> Security {
        // The reference price: 3 to 6 dollars, doubled up to seven times, usually three or four times.
        let doublings = rng.below(4) + rng.below(3) + rng.below(3);
        let cents = ((300 + rng.below(300)) << doublings) as i64;
        let reference = cents * SUBTICKS + SUBTICKS / 2;
        Security {
            stock,
            reference,
            low: reference / 2,
            high: reference * 2,
            step: (reference / STEPS_PER_REFERENCE).max(1),
            reach: 1 + (cents / REACHES_PER_REFERENCE) as u64,
            live_share_q32,
        }
    }
}

/// Returns symbol `index` of `count` four-letter symbols, which are evenly spaced in alphabetical order.
fn symbol(index: u32, count: u32) -> Stock {
    let mut rest = u64::from(LETTERS.pow(SYMBOL_LEN)) * u64::from(index) / u64::from(count);
    let mut field = Stock::BLANK;
    for letter in field.0[..SYMBOL_LEN as usize].iter_mut().rev() {
        *letter = b'A' + (rest % u64::from(LETTERS)) as u8;
        rest /= u64::from(LETTERS);
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_in_order_and_unique() {
        let securities = Securities::new(u16::MAX, &mut Rng::new(3));
        assert_eq!(securities.list.len(), 65_535);
        assert!(securities.list.windows(2).all(|pair| pair[0].stock.0 < pair[1].stock.0));
        let shares: u64 = securities.list.iter().map(|security| security.live_share_q32).sum();
        assert!(shares <= 1 << 32 && shares > (1 << 32) - 65_535);
    }

    #[test]
    fn activity_falls_with_the_rank() {
        let securities = Securities::new(1_000, &mut Rng::new(4));
        let mut rng = Rng::new(5);
        let mut counts = vec![0_u64; 1_000];
        for _ in 0..1_000_000 {
            counts[securities.by_activity.sample(&mut rng)] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        // Expected ratio of counts, rank 10 to rank r: (r + 8) / (10 + 8). A million draws approximate it.
        let ratio = |rank: usize| counts[9] / counts[rank - 1];
        assert!((5..=7).contains(&ratio(100)), "{}", ratio(100));
        assert!(ratio(900) >= 45, "{}", ratio(900));
    }

    #[test]
    fn the_reference_price_stays_within_a_factor_of_two() {
        let mut rng = Rng::new(6);
        for mut security in Securities::new(50, &mut rng).list {
            let start = security.reference_price();
            for is_up in [true, false] {
                for _ in 0..100_000 {
                    security.walk(is_up);
                    let price = security.reference_price();
                    assert!(price.0 * 2 + 2 * TICK >= start.0 && price.0 <= 2 * (start.0 + TICK));
                    assert!(security.passive_tick(Side::Buy, &mut rng) > 0);
                }
            }
        }
    }
}
