//! The options of a back-test.

use tickpath_backtest_core::Latencies;
use tickpath_replay::Moment;
use tickpath_trading::{LiquidityTaker, MakerConfig, MarketMaker, RandomConfig, RandomStrategy, Strategy};
use tickpath_types::{Nanos, Qty};

/// A strategy that Tickpath includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrategyName {
    /// [`MarketMaker`].
    Maker,
    /// [`LiquidityTaker`].
    Taker,
    /// [`RandomStrategy`].
    Random,
}

impl StrategyName {
    /// All strategies.
    pub const ALL: [StrategyName; 3] = [StrategyName::Maker, StrategyName::Taker, StrategyName::Random];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            StrategyName::Maker => "maker",
            StrategyName::Taker => "taker",
            StrategyName::Random => "random",
        }
    }

    pub(crate) fn create(self, instruments: usize, seed: u64) -> Box<dyn Strategy> {
        match self {
            StrategyName::Maker => Box::new(MarketMaker::new(MakerConfig::default())),
            StrategyName::Taker => Box::new(LiquidityTaker::new(instruments)),
            StrategyName::Random => Box::new(RandomStrategy::new(seed, RandomConfig::default())),
        }
    }
}

/// The options of a back-test. Prices and amounts are decimals, such as `0.25`, in the currency of the instruments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BacktestOptions {
    /// Symbols to trade, in the venue's notation. Not empty.
    pub symbols: Vec<String>,
    /// The strategy.
    pub strategy: StrategyName,
    /// Start of the back-test; by default the first message.
    pub from: Option<Moment>,
    /// End of the back-test, exclusive; by default the end of the file.
    pub to: Option<Moment>,
    /// Latency of each leg.
    pub latencies: Latencies,
    /// Tick size.
    pub tick: String,
    /// Lot size.
    pub lot: Qty,
    /// Size of the strategy's orders.
    pub clip: Qty,
    /// Threshold at which the strategy acts, in a unit that it defines; its default if `None`.
    pub threshold: Option<u64>,
    /// Maximum position, long or short.
    pub max_position: Qty,
    /// Maximum loss.
    pub max_loss: String,
    /// Fee for each unit that added liquidity; negative for a rebate.
    pub fee_added: String,
    /// Fee for each unit that removed liquidity.
    pub fee_removed: String,
    /// Interval of the strategy's timer.
    pub timer_interval: Nanos,
    /// Interval between two points of the P&L curve.
    pub sample_interval: Nanos,
    /// Seed of random latencies and of the random strategy.
    pub seed: u64,
}

impl BacktestOptions {
    /// Options for one symbol: a market maker with 50 us of latency on each leg, in an instrument with a tick of a
    /// cent, without fees.
    #[must_use]
    pub fn new(symbol: &str) -> BacktestOptions {
        BacktestOptions {
            symbols: vec![symbol.to_owned()],
            strategy: StrategyName::Maker,
            from: None,
            to: None,
            latencies: Latencies::constant(Nanos::from_micros(50)),
            tick: "0.01".to_owned(),
            lot: Qty(1),
            clip: Qty(100),
            threshold: None,
            max_position: Qty(1_000),
            max_loss: "1000000".to_owned(),
            fee_added: "0".to_owned(),
            fee_removed: "0".to_owned(),
            timer_interval: Nanos::from_millis(10),
            sample_interval: Nanos::from_secs(1),
            seed: 1,
        }
    }
}
