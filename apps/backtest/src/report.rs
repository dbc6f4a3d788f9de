//! The report of a back-test.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use tickpath_backtest_core::{BacktestFill, Latency, Outcome};
use tickpath_replay::ReplayReport;
use tickpath_trading::{Desk, EngineCounters, Money};
use tickpath_types::{Liquidity, Side};

use crate::options::BacktestOptions;

/// The report of a back-test. Its text has the results and the conditions under which they hold.
#[derive(Debug)]
pub struct BacktestReport {
    /// The options.
    pub options: BacktestOptions,
    /// Number of decimals of prices and amounts.
    pub decimals: u8,
    /// Number of book updates that the strategy's market consists of.
    pub updates: u64,
    /// Time of the whole run.
    pub elapsed: Duration,
    /// Report on the recording.
    pub replayed: ReplayReport,
    /// Executions, fees and the P&L curve.
    pub outcome: Outcome,
    /// The engine's counters.
    pub counters: EngineCounters,
    /// Realised and unrealised P&L without fees.
    pub gross_pnl: Money,
    /// Position of each symbol at the end.
    pub positions: Vec<i64>,
}

impl BacktestReport {
    pub(crate) fn new(
        options: BacktestOptions,
        decimals: u8,
        updates: u64,
        elapsed: Duration,
        replayed: ReplayReport,
        outcome: Outcome,
        desk: &Desk,
    ) -> BacktestReport {
        let positions = desk.positions();
        BacktestReport {
            options,
            decimals,
            updates,
            elapsed,
            replayed,
            outcome,
            counters: *desk.counters(),
            gross_pnl: positions.totals().pnl(),
            positions: positions.iter().map(|(_, position)| position.net_qty()).collect(),
        }
    }

    /// True if the back-test was stopped before the end of the recording.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.replayed.is_stopped()
    }

    /// P&L less fees.
    #[must_use]
    pub fn net_pnl(&self) -> Money {
        self.gross_pnl - self.outcome.fees
    }

    fn volume(&self, counts: impl Fn(&BacktestFill) -> bool) -> u64 {
        self.outcome.fills.iter().filter(|fill| counts(fill)).map(|fill| fill.qty.0).sum()
    }

    /// Returns the report as JSON. Prices and amounts are strings, because they are exact.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let amount = |money: Money| Amount(money.0, self.decimals).to_string();
        let fills: Vec<Value> = self
            .outcome
            .fills
            .iter()
            .map(|fill| {
                json!({
                    "ts_ns": fill.at.0,
                    "symbol": self.options.symbols.get(usize::from(fill.instrument.0) - 1),
                    "side": fill.side.to_string(),
                    "price": Amount(fill.price.0.into(), self.decimals).to_string(),
                    "qty": fill.qty.0,
                    "added_liquidity": fill.liquidity != Liquidity::Removed,
                    "net_qty": fill.net_qty,
                })
            })
            .collect();
        json!({
            "fill_model": "queue_position",
            "strategy": self.options.strategy.name(),
            "symbols": self.options.symbols,
            "messages": self.replayed.messages(),
            "updates": self.updates,
            "elapsed_s": self.elapsed.as_secs_f64(),
            "gross_pnl": amount(self.gross_pnl),
            "fees": amount(self.outcome.fees),
            "net_pnl": amount(self.net_pnl()),
            "drawdown": amount(self.outcome.drawdown),
            "positions": self.positions,
            "orders": self.counters.enters,
            "replacements": self.counters.replaces,
            "cancels": self.counters.cancels,
            "rejects": self.counters.rejects,
            "fills": fills,
            "curve": self.outcome.curve.iter().map(|point| json!([point.at.0, amount(point.pnl)])).collect::<Vec<_>>(),
        })
    }
}

/// An exact amount: units and the number of decimals.
struct Amount(i128, u8);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Amount(units, decimals) = *self;
        let scale = 10_u128.pow(decimals.into());
        let (whole, fraction) = (units.unsigned_abs() / scale, units.unsigned_abs() % scale);
        let digits = match decimals {
            0 => String::new(),
            _ => format!("{fraction:0width$}", width = decimals.into()),
        };
        // Two decimals at least, and no zeros after them.
        let kept = digits.trim_end_matches('0').len().max(2).min(digits.len());
        let (sign, point) = (if units < 0 { "-" } else { "" }, if decimals > 0 { "." } else { "" });
        f.pad(&format!("{sign}{whole}{point}{}", &digits[..kept]))
    }
}

/// A latency for people to read.
struct Words<'l>(&'l Latency);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |nanos: u64| nanos as f64 / 1_000.0;
        match self.0 {
            Latency::Constant(time) => write!(f, "{} us", micros(time.0)),
            Latency::Jitter { min, mean_extra } => {
                write!(f, "{} us and more, {} us in the mean", micros(min.0), micros(min.0 + mean_extra.0))
            }
            Latency::Sampled(times) => write!(f, "one of {} samples", times.len()),
        }
    }
}

impl fmt::Display for BacktestReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BacktestReport { options, counters, outcome, .. } = self;
        let amount = |money: Money| Amount(money.0, self.decimals).to_string();
        let added = self.volume(|fill| fill.liquidity != Liquidity::Removed);
        let bought = self.volume(|fill| fill.side == Side::Buy);
        let all = self.volume(|_| true);
        let rate = self.replayed.messages() as f64 / self.elapsed.as_secs_f64() / 1e6;
        writeln!(f, "Back-test of {} on {}", options.strategy.name(), options.symbols.join(", "))?;
        writeln!(f, "  P&L                {:>18}", amount(self.gross_pnl))?;
        writeln!(f, "  fees               {:>18}", amount(outcome.fees))?;
        writeln!(f, "  P&L less fees      {:>18}", amount(self.net_pnl()))?;
        writeln!(f, "  largest drawdown   {:>18}", amount(outcome.drawdown))?;
        for (symbol, position) in options.symbols.iter().zip(&self.positions) {
            writeln!(f, "  position at the end{position:>18}  {symbol}")?;
        }
        writeln!(f)?;
        writeln!(f, "  fills              {:>18}", outcome.fills.len())?;
        writeln!(
            f,
            "  volume             {all:>18}  bought {bought}, sold {}; added liquidity {added}",
            all - bought
        )?;
        writeln!(
            f,
            "  orders             {:>18}  replacements {}, cancels {}, rejected {}, refused by risk {}, by rate {}",
            counters.enters,
            counters.replaces,
            counters.cancels,
            counters.rejects,
            counters.refused_risk,
            counters.refused_rate
        )?;
        writeln!(f)?;
        writeln!(f, "Conditions")?;
        writeln!(
            f,
            "  fill model         queue position: own orders queue among the recorded ones; the recorded market does not react"
        )?;
        let latencies = &options.latencies;
        writeln!(
            f,
            "  latency            market data {}, request {}, answer {}",
            Words(&latencies.market_data),
            Words(&latencies.request),
            Words(&latencies.answer)
        )?;
        writeln!(f, "  tick, lot          {}, {}", options.tick, options.lot.0)?;
        writeln!(
            f,
            "  messages           {} in {:.2} s ({rate:.2} M/s), {} of them changed the books of these symbols",
            self.replayed.messages(),
            self.elapsed.as_secs_f64(),
            self.updates
        )?;
        if !self.replayed.is_trustworthy() {
            writeln!(f, "  the recording contradicts itself; tickpath replay shows where")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_and_have_two_decimals_at_least() {
        for (units, decimals, text) in [
            (0, 4, "0.00"),
            (-5, 4, "-0.0005"),
            (1_002_500, 4, "100.25"),
            (12_500_000_000, 9, "12.50"),
            (-1, 9, "-0.000000001"),
            (7, 0, "7"),
        ] {
            assert_eq!(Amount(units, decimals).to_string(), text, "{units} {decimals}");
        }
    }
}
