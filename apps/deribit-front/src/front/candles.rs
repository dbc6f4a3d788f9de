//! Candles: prices and volumes of an instrument in equal time spans.

use std::io::Write as _;

use tickpath_deribit::field::Field;
use tickpath_deribit::messages::Candle as CandleMessage;
use tickpath_deribit::number::Number;
use tickpath_deribit::request::Request;
use tickpath_deribit::resolution::Resolution;
use tickpath_deribit::scan::Value;
use tickpath_deribit::text::Text;
use tickpath_derivatives::{Contract, Money, Style};
use tickpath_types::Price;

use super::{Answer, Front};
use crate::fault::Fault;
use crate::json::{Json, Object, json, list, param, text_param};
use crate::listing::{Listing, figure};
use crate::market::{Market, Trade};

/// Maximum number of candles of one answer; the latest are kept. Orders wait while an answer is written.
const CANDLES_MAX: u64 = 1_000;

/// Returns the span of a resolution in milliseconds; clients name it in minutes, or as `1D`.
pub(super) fn span_of(resolution: &str) -> Option<u64> {
    Resolution::named(resolution).map(|found| u64::from(found.secs()) * 1_000)
}

/// The trades of one span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candle {
    /// Start of the span, in milliseconds since 1970.
    begin_ms: u64,
    open: Price,
    high: Price,
    low: Price,
    close: Price,
    /// Volume in the base currency.
    volume: Money,
    /// Value in the quote currency.
    cost: Money,
}

impl Candle {
    fn begin(begin_ms: u64, price: Price) -> Candle {
        let (volume, cost) = (Money::ZERO, Money::ZERO);
        Candle { begin_ms, open: price, high: price, low: price, close: price, volume, cost }
    }

    /// Returns the candle of the latest trade; none before the first.
    pub(super) fn latest(market: &Market, contract: &Contract, span_ms: u64) -> Option<Candle> {
        let begin_ms = market.trades.back()?.at_ms / span_ms * span_ms;
        let first = market.trades.partition_point(|trade| trade.at_ms < begin_ms);
        let mut candle = None;
        for trade in market.trades.range(first..) {
            Candle::take(&mut candle, trade, contract, span_ms);
        }
        candle
    }

    /// Adds a trade to the candle of its time, or starts a new candle.
    pub(super) fn take(candle: &mut Option<Candle>, trade: &Trade, contract: &Contract, span_ms: u64) {
        let begin_ms = trade.at_ms / span_ms * span_ms;
        let own = candle.filter(|candle| candle.begin_ms >= begin_ms);
        let mut now = own.unwrap_or_else(|| Candle::begin(begin_ms, trade.price));
        now.high = now.high.max(trade.price);
        now.low = now.low.min(trade.price);
        now.close = trade.price;
        let (volume, cost) = volume_of(trade, contract);
        now.volume += volume;
        now.cost += cost;
        *candle = Some(now);
    }

    /// Returns the candles with starts from `first` to `last`, which are both starts of spans. A span without
    /// a trade repeats the price before it; before the first trade there are no candles.
    fn all(market: &Market, contract: &Contract, span_ms: u64, first: u64, last: u64) -> Vec<Candle> {
        let mut place = market.trades.partition_point(|trade| trade.at_ms < first);
        let mut close = place.checked_sub(1).map(|before| market.trades[before].price);
        let mut all = Vec::new();
        let mut begin_ms = first;
        while begin_ms <= last {
            let mut traded = None;
            while let Some(trade) = market.trades.get(place).filter(|trade| trade.at_ms < begin_ms + span_ms)
            {
                Candle::take(&mut traded, trade, contract, span_ms);
                place += 1;
            }
            let candle = traded.or_else(|| close.map(|price| Candle::begin(begin_ms, price)));
            close = candle.map(|candle| candle.close);
            all.extend(candle);
            begin_ms += span_ms;
        }
        all
    }

    /// Writes the candle as its channel publishes it.
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

/// Returns the volume of a trade in the base and in the quote currency.
pub(super) fn volume_of(trade: &Trade, contract: &Contract) -> (Money, Money) {
    let (amount, value) = (contract.amount(trade.qty), contract.value(trade.qty, trade.price));
    if contract.style == Style::Inverse { (value, amount) } else { (amount, value) }
}

impl Front {
    /// Returns the candles of a time range.
    pub(super) fn chart_data(&self, request: &Request<'_>) -> Answer {
        let params: Value<'_> = request.params()?;
        let place = self.find_named(&params)?;
        let required = |name| param::<u64>(&params, name)?.ok_or(Fault::param(name, "value required"));
        let (from, to) = (required("start_timestamp")?, required("end_timestamp")?);
        let span_ms = text_param(&params, "resolution")?.as_deref().and_then(span_of).ok_or(Fault::param(
            "resolution",
            "value must be 1, 3, 5, 10, 15, 30, 60, 120, 180, 360, 720 or 1D",
        ))?;
        let last = to.min(self.now_ms()) / span_ms * span_ms;
        let earliest = last.saturating_sub((CANDLES_MAX - 1) * span_ms);
        let first = from.div_ceil(span_ms).saturating_mul(span_ms).max(earliest);
        let listing = &self.settings.listings[place];
        let candles = Candle::all(&self.markets[place], &listing.contract, span_ms, first, last);
        Ok(Some(chart(&candles, listing)))
    }
}

/// Writes candles as a [`ChartData`] answer. The lists are written one by one, because they may be long.
///
/// [`ChartData`]: tickpath_deribit::messages::ChartData
fn chart(candles: &[Candle], listing: &Listing) -> Vec<u8> {
    let prices =
        |of: fn(&Candle) -> Price| Json(list(candles, |candle, out| listing.price(of(candle)).write(out)));
    let sums = |of: fn(&Candle) -> Money| Json(list(candles, |candle, out| write_sum(of(candle), out)));
    Object::new()
        .with("status", Text::new(if candles.is_empty() { "no_data" } else { "ok" }))
        .with("ticks", Json(list(candles, |candle, out| candle.begin_ms.write(out))))
        .with("open", prices(|it| it.open))
        .with("high", prices(|it| it.high))
        .with("low", prices(|it| it.low))
        .with("close", prices(|it| it.close))
        .with("volume", sums(|it| it.volume))
        .with("cost", sums(|it| it.cost))
        .end()
}

/// Writes zero directly: most spans of a quiet market have no trade.
fn write_sum(sum: Money, out: &mut Vec<u8>) {
    match sum == Money::ZERO {
        true => out.push(b'0'),
        false => write!(out, "{}", figure(sum)).expect("a vector takes all"),
    }
}
