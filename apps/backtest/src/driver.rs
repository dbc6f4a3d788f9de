//! Connects a recording with a back-test.

use std::time::Duration;

use tickpath_backtest_core::{Backtest, BacktestConfig, Fees, RecordedChange};
use tickpath_book::BooksById;
use tickpath_recording::{Calendar, Listener, MessageView};
use tickpath_replay::ReplayReport;
use tickpath_trading::{EngineConfig, Limits, Money, Strategy};
use tickpath_types::{Decimal, Instrument, InstrumentId, MarketUpdate, Nanos, Price, Qty, Symbol};

use crate::error::BacktestError;
use crate::options::{BacktestOptions, StrategyName};
use crate::report::BacktestReport;

/// Receives a recording and passes it to a back-test, which begins with the recording.
pub(crate) struct Driver<'o> {
    options: &'o BacktestOptions,
    run: Option<Result<Run, BacktestError>>,
}

struct Run {
    backtest: Backtest<Box<dyn Strategy>>,
    decimals: u8,
    /// The strategy's id of an instrument, by its id in the recorded books; 0 for one that is not traded.
    ids: Vec<u16>,
    last: Nanos,
    updates: u64,
}

impl<'o> Driver<'o> {
    pub(crate) fn new(options: &'o BacktestOptions) -> Driver<'o> {
        Driver { options, run: None }
    }

    fn run(&mut self) -> Option<&mut Run> {
        self.run.as_mut()?.as_mut().ok()
    }

    pub(crate) fn finish(
        self,
        replayed: ReplayReport,
        elapsed: Duration,
    ) -> Result<BacktestReport, BacktestError> {
        let Run { backtest, decimals, last, updates, .. } =
            self.run.unwrap_or_else(|| Run::new(self.options, Price::DECIMALS as u8))?;
        let (outcome, engine) = backtest.finish(last);
        let options = self.options.clone();
        Ok(BacktestReport::new(options, decimals, updates, elapsed, replayed, outcome, engine.desk()))
    }
}

impl Run {
    fn new(options: &BacktestOptions, decimals: u8) -> Result<Run, BacktestError> {
        let amount = |option: &str, text: &str| {
            Decimal::parse(text, decimals).map(|amount| amount.units).ok_or_else(|| {
                BacktestError::Option(format!(
                    "{option} {text}: write a decimal with at most {decimals} places"
                ))
            })
        };
        let tick_size = Price(amount("--tick", &options.tick)?);
        let max_loss = Money(amount("--max-loss", &options.max_loss)?.into());
        let fees = Fees {
            added: Money(amount("--fee-added", &options.fee_added)?.into()),
            removed: Money(amount("--fee-removed", &options.fee_removed)?.into()),
        };
        let instrument = |(index, symbol): (usize, &String)| Instrument {
            id: InstrumentId(index as u16 + 1),
            symbol: Symbol::new(symbol).or_else(|_| Symbol::new("-")).expect("one character is a symbol"),
            tick_size,
            lot_size: options.lot,
            max_qty: Qty(u64::from(u32::MAX)),
            reference_price: tick_size,
            collar_low: tick_size,
            collar_high: Price(i64::MAX >> 1),
        };
        let instruments: Vec<Instrument> = options.symbols.iter().enumerate().map(instrument).collect();
        let usual = if options.strategy == StrategyName::Taker { Limits::taker() } else { Limits::default() };
        let limits = Limits {
            clip: options.clip,
            threshold: options.threshold.unwrap_or(usual.threshold),
            max_order_qty: options.clip.max(options.max_position),
            max_position: options.max_position,
            max_loss,
            max_open_orders: usual.max_open_orders,
        };
        let config = BacktestConfig {
            engine: EngineConfig { disconnect_stop: None, ..EngineConfig::default() },
            latencies: options.latencies.clone(),
            fees,
            timer_interval: options.timer_interval,
            sample_interval: options.sample_interval,
            seed: options.seed,
        };
        let strategy = options.strategy.create(instruments.len(), options.seed);
        let limits = vec![limits; instruments.len()];
        let backtest = Backtest::new(config, &instruments, &limits, strategy)?;
        let ids = vec![0; usize::from(u16::MAX) + 1];
        Ok(Run { backtest, decimals, ids, last: Nanos::ZERO, updates: 0 })
    }
}

impl Listener for Driver<'_> {
    fn on_recording(&mut self, _recording: usize, _calendar: &Calendar, price_decimals: u8) {
        self.run.get_or_insert_with(|| Run::new(self.options, price_decimals));
    }

    fn wants_books(&self) -> bool {
        true
    }

    #[inline]
    fn before_message(&mut self, ts_ns: u64, books: &impl BooksById) {
        if let Some(run) = self.run() {
            run.last = run.last.max(Nanos(ts_ns));
            run.backtest.advance(run.last, books);
        }
    }

    #[inline]
    fn on_message(&mut self, view: &MessageView<'_>, symbol: &str, update: Option<&MarketUpdate>) {
        let Some(update) = update.filter(|_| !view.is_snapshot) else { return };
        let symbols = &self.options.symbols;
        let Some(Ok(run)) = &mut self.run else { return };
        let id = &mut run.ids[usize::from(view.instrument)];
        if *id == 0 {
            let Some(place) = symbols.iter().position(|wanted| wanted == symbol) else { return };
            *id = place as u16 + 1;
            run.backtest.set_recorded(InstrumentId(*id), InstrumentId(view.instrument));
        }
        run.updates += 1;
        let update = MarketUpdate { instrument: *id, ..*update };
        let change = RecordedChange { update: &update, replaced: view.order.replaced };
        run.backtest.handle_change(run.last, &change);
    }
}
