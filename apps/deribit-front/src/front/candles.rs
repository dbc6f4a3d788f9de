//! Candles: what an instrument traded at in equal spans of time.

use tickpath_deribit::messages::Candle as CandleMessage;
use tickpath_deribit::number::Number;
use tickpath_derivatives::{Contract, Money, Style};
use tickpath_types::Price;

use crate::json::json;
use crate::listing::{Listing, figure};
use crate::market::{Market, Trade};

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 86_400_000;
/// Spans that can be asked for, in minutes.
const RESOLUTIONS: [u64; 11] = [1, 3, 5, 10, 15, 30, 60, 120, 180, 360, 720];

/// The span of a resolution as clients name it: minutes, or `1D`. In milliseconds.
pub(super) fn span_of(resolution: &str) -> Option<u64> {
    if resolution == "1D" {
        return Some(DAY_MS);
    }
    let found = RESOLUTIONS.iter().find(|minutes| minutes.to_string() == resolution);
    found.map(|minutes| minutes * MINUTE_MS)
}

/// What was traded in a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candle {
    /// Its begin, in milliseconds since 1970.
    begin_ms: u64,
    open: Price,
    high: Price,
    low: Price,
    close: Price,
    /// In the base currency.
    volume: Money,
    /// In the quote currency.
    cost: Money,
}

impl Candle {
    fn begin(begin_ms: u64, price: Price) -> Candle {
        let (volume, cost) = (Money::ZERO, Money::ZERO);
        Candle { begin_ms, open: price, high: price, low: price, close: price, volume, cost }
    }

    /// The candle of the latest trade; none before the first.
    pub(super) fn latest(market: &Market, contract: &Contract, span_ms: u64) -> Option<Candle> {
        let begin_ms = market.trades.back()?.at_ms / span_ms * span_ms;
        let first = market.trades.partition_point(|trade| trade.at_ms < begin_ms);
        let mut candle = None;
        for trade in market.trades.range(first..) {
            Candle::take(&mut candle, trade, contract, span_ms);
        }
        candle
    }

    /// Takes a trade: into the candle of its time, or as the begin of another one.
    pub(super) fn take(candle: &mut Option<Candle>, trade: &Trade, contract: &Contract, span_ms: u64) {
        let begin_ms = trade.at_ms / span_ms * span_ms;
        let own = candle.filter(|candle| candle.begin_ms >= begin_ms);
        let mut now = own.unwrap_or_else(|| Candle::begin(begin_ms, trade.price));
        now.high = now.high.max(trade.price);
        now.low = now.low.min(trade.price);
        now.close = trade.price;
        let (amount, value) = (contract.amount(trade.qty), contract.value(trade.qty, trade.price));
        let is_inverse = contract.style == Style::Inverse;
        now.volume += if is_inverse { value } else { amount };
        now.cost += if is_inverse { amount } else { value };
        *candle = Some(now);
    }

    /// The candle as its channel tells it.
    pub(super) fn written(&self, listing: &Listing) -> Vec<u8> {
        let [volume, cost] = [self.volume, self.cost].map(|money| figure(money).to_string());
        let number = |text| Number::new(text).expect("money is written as a number");
        json(&CandleMessage {
            tick: self.begin_ms,
            open: listing.price(self.open),
            high: listing.price(self.high),
            low: listing.price(self.low),
            close: listing.price(self.close),
            volume: number(&volume),
            cost: number(&cost),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_those_of_the_venue() {
        assert_eq!(
            (span_of("1"), span_of("720"), span_of("1D")),
            (Some(60_000), Some(43_200_000), Some(DAY_MS))
        );
        for other in ["", "0", "2", "01", "1d", "1440", "-1"] {
            assert_eq!(span_of(other), None, "{other}");
        }
    }
}
