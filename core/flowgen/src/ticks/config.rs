//! Symbols of a tick generator, and the parameters of their prices.

use std::f64::consts::LOG2_E;

use tickpath_types::{Nanos, Price, Rng, Symbol};

use crate::ConfigError;

/// Maximum number of symbols of a generator, since a tick has 16 bits for its symbol.
const SYMBOLS_MAX: usize = 1 << 16;
/// Minimum starting price, in ticks.
const START_TICKS_MIN: i64 = 256;
/// Maximum starting price, in ticks.
const START_TICKS_MAX: i64 = 1 << 16;
const TICK_SIZE_MAX: i64 = 100 * Price::SCALE;
const QTY_MAX: u32 = 1 << 23;
/// Maximum drift and volatility per year (10,000%), and maximum deviation of a jump (50%), in basis points.
const YEARLY_BP_MAX: u32 = 1_000_000;
const JUMP_BP_MAX: u32 = 5_000;
const SPREAD_CBP_MAX: u32 = 100_000;
const PPM: u32 = 1_000_000;
/// Maximum of the standard deviation and of the drift, per tick, of the price's natural logarithm.
const SIGMA_MAX: f64 = 0.5;
/// Trading time per year: 252 days of six and a half hours.
const YEAR_NS: f64 = 252.0 * 6.5 * 3_600.0 * 1e9;
/// Number of random bits that decide whether a tick is a jump, and whether it is a trade.
const JUMP_BITS: u32 = 20;
const TRADE_BITS: u32 = 11;

/// Market regime of a generator: the drift and volatility of its symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarketRegime {
    /// Upward: drift of +50% per year.
    Bull,
    /// Downward: drift of -50% per year, with 1.5 times the volatility.
    Bear,
    /// No drift.
    #[default]
    Neutral,
}

/// Price parameters of one symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickSymbol {
    /// Name of the symbol.
    pub name: Symbol,
    /// Starting price, 256 to 2^16 ticks. The price is held between 1/32 and 32 times this value.
    pub price: Price,
    /// Tick size, from 0.0001 to 100 units of currency.
    pub tick_size: Price,
    /// Yearly growth of the expected price in basis points, compounded continuously; -1,000,000 to 1,000,000.
    pub drift_bp: i32,
    /// Standard deviation of the logarithm of yearly growth without jumps, in basis points; up to 1,000,000.
    pub volatility_bp: u32,
    /// Mean spread in hundredths of a basis point of the price, up to 10%. Each spread is uniform between 0.5
    /// and 1.5 times the mean, then rounded outwards to ticks; it is at least one tick.
    pub spread_cbp: u32,
    /// Mean quantity of a bid, ask or trade, 2 to 2^23. Each is uniform between 0.5 and 1.5 times the mean.
    pub qty_mean: u32,
    /// Share of ticks that are jumps, in parts per million; resolution 1 in 2^20.
    pub jump_ppm: u32,
    /// Standard deviation of the logarithm of a jump, in basis points, up to 5000. Jumps are symmetric.
    pub jump_bp: u32,
}

/// Settings of a [`TickGenerator`](super::TickGenerator).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TickGeneratorConfig {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Index of this generator's first symbol among all symbols; other generators may have those before it.
    pub first_symbol: u16,
    /// Symbols: at least 1, at most 65,536 - `first_symbol`.
    pub symbols: Vec<TickSymbol>,
    /// Trading time from one tick of a symbol to its next, regardless of when they are sent. It determines
    /// the drift and the volatility per tick.
    pub step: Nanos,
    /// Share of ticks that are trades, in parts per million; the others are quotes. Resolution 1 in 2048.
    pub trade_ppm: u32,
}

impl TickGeneratorConfig {
    /// Creates symbols with random price (5 to 500), volatility (15% to 60% a year), spread (2 to 20 basis
    /// points) and quantity (100 to 10,000). A symbol ticks once per trading second; 30% of ticks are trades.
    #[must_use]
    pub fn market(regime: MarketRegime, symbols: usize, seed: u64) -> TickGeneratorConfig {
        let mut rng = Rng::new(seed);
        let symbols = (0..symbols).map(|index| symbol(index, regime, &mut rng)).collect();
        let (seed, step) = (rng.next(), Nanos::from_secs(1));
        TickGeneratorConfig { seed, first_symbol: 0, symbols, step, trade_ppm: 300_000 }
    }

    /// Sets [`jump_ppm`](TickSymbol::jump_ppm) and [`jump_bp`](TickSymbol::jump_bp) of all symbols.
    #[must_use]
    pub fn with_jumps(mut self, jump_ppm: u32, jump_bp: u32) -> TickGeneratorConfig {
        for symbol in &mut self.symbols {
            (symbol.jump_ppm, symbol.jump_bp) = (jump_ppm, jump_bp);
        }
        self
    }

    /// Splits the symbols into `parts` configurations of similar size, or fewer if there are fewer symbols.
    #[must_use]
    pub fn split(&self, parts: usize) -> Vec<TickGeneratorConfig> {
        let parts = parts.clamp(1, self.symbols.len().max(1));
        let mut rng = Rng::new(self.seed);
        let part = |at: usize| {
            let bound = |at: usize| at * self.symbols.len() / parts;
            let symbols = self.symbols[bound(at)..bound(at + 1)].to_vec();
            let first_symbol = self.first_symbol.saturating_add(u16::try_from(bound(at)).unwrap_or(u16::MAX));
            TickGeneratorConfig { seed: rng.next(), first_symbol, symbols, ..self.clone() }
        };
        (0..parts).map(part).collect()
    }

    /// A tick is a trade if its random draw is below this.
    pub(super) fn trade_below(&self) -> u32 {
        share(self.trade_ppm, TRADE_BITS)
    }

    /// Validates the configuration, and returns the per-tick parameters of the symbols.
    pub(super) fn steps(&self) -> Result<Vec<StepParameters>, ConfigError> {
        let last = usize::from(self.first_symbol) + self.symbols.len();
        ConfigError::unless(!self.symbols.is_empty() && last <= SYMBOLS_MAX, || {
            format!("{last} symbols: give 1 to 65,536")
        })?;
        ConfigError::unless(self.trade_ppm <= PPM, || {
            format!("{} trades in a million ticks: give at most 1,000,000", self.trade_ppm)
        })?;
        let years = self.step.0 as f64 / YEAR_NS;
        self.symbols.iter().map(|symbol| StepParameters::new(symbol, years)).collect()
    }
}

/// Draws the parameters of one symbol.
fn symbol(index: usize, regime: MarketRegime, rng: &mut Rng) -> TickSymbol {
    let (drift_bp, volatility_scale) = match regime {
        MarketRegime::Bull => (5_000, 100),
        MarketRegime::Bear => (-5_000, 150),
        MarketRegime::Neutral => (0, 100),
    };
    let mut between = |low: u64, high: u64| low + rng.below(high - low + 1);
    // Price in cents. Two draws make low prices more frequent than high ones.
    let top = between(2_000, 50_000);
    let cents = between(500, top);
    TickSymbol {
        name: tick_symbol_name(index),
        price: Price(cents as i64 * 100),
        tick_size: Price(100),
        drift_bp,
        volatility_bp: (between(1_500, 6_000) * volatility_scale / 100) as u32,
        spread_cbp: between(200, 2_000) as u32,
        qty_mean: between(1, 100) as u32 * 100,
        jump_ppm: 0,
        jump_bp: 0,
    }
}

/// Returns a four-letter name: distinct for each index below 26^4, and dissimilar to that of the next index.
#[must_use]
pub fn tick_symbol_name(index: usize) -> Symbol {
    const NAMES: usize = 26_usize.pow(4);
    /// Coprime to 26, so that no name occurs twice.
    const STRIDE: usize = 283_721;
    let mut rest = (index % NAMES * STRIDE + 61_000) % NAMES;
    let mut name = [b' '; 8];
    for letter in name[..4].iter_mut().rev() {
        *letter = b'A' + (rest % 26) as u8;
        rest /= 26;
    }
    Symbol(name)
}

/// Returns the bound below which a random `bits`-bit number lies with a probability of `ppm` in a million.
fn share(ppm: u32, bits: u32) -> u32 {
    let below = ((u64::from(ppm) << bits) + u64::from(PPM / 2)) / u64::from(PPM);
    u32::try_from(below).expect("at most 2^bits")
}

/// Parameters of one symbol's step per tick. Model prices are real numbers; published ones are whole ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepParameters {
    /// Starting price in ticks.
    pub(super) start: u32,
    /// Drift per tick of the base-2 logarithm of the price.
    pub(super) drift: f64,
    /// Standard deviation per tick of the random step of the price's base-2 logarithm.
    pub(super) sigma: f32,
    /// As `sigma`, in a tick with a jump: step and jump are normal, so their sum is too.
    pub(super) jump_sigma: f32,
    /// A tick is a jump if its random draw is below this.
    pub(super) jump_below: u32,
    /// Half of the mean spread as a fraction of the price.
    pub(super) half_spread: f32,
    pub(super) qty_mean: u32,
    pub(super) tick_size: u32,
}

impl StepParameters {
    fn new(symbol: &TickSymbol, years: f64) -> Result<StepParameters, ConfigError> {
        let name = symbol.name;
        let check = |what, value: i64, least: i64, most: i64| {
            ConfigError::unless((least..=most).contains(&value), || {
                format!("symbol {name}: {what} is {value}: give {least} to {most}")
            })
        };
        check("tick size in 1/10000", symbol.tick_size.0, 1, TICK_SIZE_MAX)?;
        let ticks = symbol.price.0 / symbol.tick_size.0;
        check("price in ticks", ticks, START_TICKS_MIN, START_TICKS_MAX)?;
        check("drift in bp", symbol.drift_bp.into(), -i64::from(YEARLY_BP_MAX), YEARLY_BP_MAX.into())?;
        check("volatility in bp", symbol.volatility_bp.into(), 0, YEARLY_BP_MAX.into())?;
        check("spread in bp/100", symbol.spread_cbp.into(), 0, SPREAD_CBP_MAX.into())?;
        check("mean quantity", symbol.qty_mean.into(), 2, QTY_MAX.into())?;
        check("jumps in a million", symbol.jump_ppm.into(), 0, PPM.into())?;
        check("jump in bp", symbol.jump_bp.into(), 0, JUMP_BP_MAX.into())?;
        let volatility = f64::from(symbol.volatility_bp) / 1e4;
        let variance = volatility * volatility * years;
        let jump_variance = (f64::from(symbol.jump_bp) / 1e4) * (f64::from(symbol.jump_bp) / 1e4);
        let drift = f64::from(symbol.drift_bp) / 1e4 * years;
        ConfigError::unless(variance.sqrt() <= SIGMA_MAX && drift.abs() <= SIGMA_MAX, || {
            format!(
                "symbol {name} would move too far in one tick: give a shorter step, or less volatility or drift"
            )
        })?;
        let jump_below = share(symbol.jump_ppm, JUMP_BITS);
        // `jump_mean` is a series for e^(jump_variance / 2) - 1, by which a symmetric jump raises the mean.
        // `of_jumps` is a series for ln(1 + grown), the drift due to jumps. Both errors are below 10^-4.
        let half = jump_variance / 2.0;
        let jump_mean = half * (1.0 + half * (1.0 / 2.0 + half * (1.0 / 6.0)));
        let jump_share = f64::from(jump_below) / f64::from(1 << JUMP_BITS);
        let grown = jump_share * jump_mean;
        let of_jumps = grown * (1.0 - grown * (1.0 / 2.0 - grown * (1.0 / 3.0 - grown * (1.0 / 4.0))));
        Ok(StepParameters {
            start: u32::try_from(ticks).expect("at most START_TICKS_MAX"),
            drift: (drift - variance / 2.0 - of_jumps) * LOG2_E,
            sigma: (variance.sqrt() * LOG2_E) as f32,
            jump_sigma: ((variance + jump_variance).sqrt() * LOG2_E) as f32,
            jump_below,
            half_spread: f64::from(symbol.spread_cbp) as f32 / 2e6,
            qty_mean: symbol.qty_mean,
            tick_size: u32::try_from(symbol.tick_size.0).expect("at most TICK_SIZE_MAX"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_symbols_and_differ() {
        let mut names: Vec<_> = (0..SYMBOLS_MAX).map(tick_symbol_name).collect();
        assert!(names.iter().all(|name| Symbol::new(name.as_str()) == Ok(*name)));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SYMBOLS_MAX);
    }

    #[test]
    fn a_split_market_has_every_symbol_once() {
        let market = TickGeneratorConfig::market(MarketRegime::Neutral, 10, 7);
        for parts in [1, 3, 10, 11] {
            let split = market.split(parts);
            assert_eq!(split.len(), parts.min(10));
            let mut next = 0;
            for part in &split {
                assert_eq!(usize::from(part.first_symbol), next);
                assert_eq!(part.symbols, market.symbols[next..next + part.symbols.len()]);
                next += part.symbols.len();
            }
            assert_eq!(next, 10);
        }
    }

    /// If every tick is a jump, the drift of the price's logarithm is minus half of a jump's variance.
    #[test]
    fn jumps_alone_cause_no_drift() {
        for jump_bp in [100, 1_000, 5_000] {
            let mut market =
                TickGeneratorConfig::market(MarketRegime::Neutral, 1, 7).with_jumps(PPM, jump_bp);
            market.symbols[0].volatility_bp = 0;
            let deviation = f64::from(jump_bp) / 1e4;
            let drift = market.steps().unwrap()[0].drift / LOG2_E;
            assert!((drift + deviation * deviation / 2.0).abs() < 1e-4, "{jump_bp}: {drift}");
        }
    }

    #[test]
    fn invalid_settings_are_rejected_with_a_reason() {
        let market = TickGeneratorConfig::market(MarketRegime::Neutral, 1, 7);
        let with = |change: fn(&mut TickGeneratorConfig)| {
            let mut changed = market.clone();
            change(&mut changed);
            changed.steps().map(|_| ()).unwrap_err().to_string()
        };
        assert_eq!(with(|it| it.symbols.clear()), "0 symbols: give 1 to 65,536");
        assert_eq!(
            with(|it| it.trade_ppm = PPM + 1),
            "1000001 trades in a million ticks: give at most 1,000,000"
        );
        let name = market.symbols[0].name;
        assert_eq!(
            with(|it| it.symbols[0].price = Price(1_500)),
            format!("symbol {name}: price in ticks is 15: give 256 to 65536")
        );
        assert_eq!(
            with(|it| it.symbols[0].qty_mean = 1),
            format!("symbol {name}: mean quantity is 1: give 2 to 8388608")
        );
        assert!(with(|it| it.step = Nanos::MAX).contains("would move too far"));
        let mut full = market.clone();
        full.first_symbol = u16::MAX;
        assert!(full.steps().is_ok(), "at the bound");
        full.symbols.push(full.symbols[0]);
        assert_eq!(full.steps().unwrap_err().to_string(), "65537 symbols: give 1 to 65,536");
    }
}
