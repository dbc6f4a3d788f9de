//! Candles: the last ones of each instrument are asked for once its channels stand, and each change comes by its channel.

use std::collections::VecDeque;

use tickpath_deribit::envelope::Response;
use tickpath_deribit::messages::{Candle, ChartData, GetTradingviewChartData};
use tickpath_deribit::method::Method;
use tickpath_deribit::number::{Decimal, Number};
use tickpath_deribit::scan::{ScanError, Value};
use tickpath_deribit::text::Text as VenueText;
use tickpath_gateway_protocol::{ConnectionStatus, Fixed, TimeSeries, UpdateKind};
use tickpath_types::Nanos;

use super::Core;
use super::market_data::RETRY;
use super::news::{NewsFault, cut, units};
use super::out::{Cause, Door, Venue};

/// Pause between two requests for candles: they share the credits of all requests that do not trade.
const PAUSE: Nanos = Nanos::from_millis(100);

/// The candles of one instrument and one length.
#[derive(Debug)]
pub struct Series {
    /// The oldest first; as many as there may be fit without more memory.
    candles: VecDeque<TimeSeries>,
    length: usize,
    /// Those that were are to be asked for.
    is_wanted: bool,
    /// They were told since the connection stands.
    is_known: bool,
}

impl Series {
    /// Nothing yet, with room for `length` candles.
    #[must_use]
    pub fn new(length: usize) -> Series {
        Series { candles: VecDeque::with_capacity(length), length, is_wanted: false, is_known: false }
    }

    /// The candles, the oldest first.
    pub fn all(&self) -> impl ExactSizeIterator<Item = &TimeSeries> {
        self.candles.iter()
    }

    /// Takes a candle as it is now: another one, or a change of one that is kept.
    fn take(&mut self, candle: TimeSeries) {
        let is_empty = self.candles.is_empty();
        let known = self.candles.iter_mut().rev().find(|known| known.begin_utc_ns <= candle.begin_utc_ns);
        match known {
            Some(known) if known.begin_utc_ns == candle.begin_utc_ns => *known = candle,
            // One that is older than all that are kept.
            None if !is_empty => {}
            _ => self.push(candle),
        }
    }

    fn push(&mut self, candle: TimeSeries) {
        if self.candles.len() == self.length {
            self.candles.pop_front();
        }
        self.candles.push_back(candle);
    }

    /// Takes a candle of the venue's list. What the channel told of the same one stays where it says more: the list may be older.
    fn merge(&mut self, candle: TimeSeries) {
        let place = self.candles.partition_point(|known| known.begin_utc_ns < candle.begin_utc_ns);
        if let Some(known) = self.candles.get_mut(place)
            && known.begin_utc_ns == candle.begin_utc_ns
        {
            if known.volume <= candle.volume {
                *known = candle;
            }
        } else if self.candles.len() < self.length {
            self.candles.insert(place, candle);
        } else if place > 0 {
            self.candles.pop_front();
            self.candles.insert(place - 1, candle);
        }
    }
}

/// Which candles are to be asked for.
#[derive(Debug, Default)]
pub(super) struct Charts {
    /// Instruments, with the place of the length.
    wanted: VecDeque<(u32, usize)>,
    /// The one request that is on its way.
    asked: Option<(i64, u32, usize)>,
    /// The next one leaves not before this time.
    at: Nanos,
}

impl Core {
    /// An instrument has series as the configuration says.
    pub(super) fn make_series(&mut self, symbol: u32) {
        let feeds = &self.settings.feeds;
        let Some(instrument) = self.instruments.get_mut(symbol) else { return };
        if instrument.series.len() != feeds.time_series.len() {
            let length = feeds.time_series_length as usize;
            instrument.series = feeds.time_series.iter().map(|_| Series::new(length)).collect();
        }
    }

    /// Has the candles asked for that are not known.
    pub(super) fn want_candles(&mut self, symbol: u32) {
        let Some(instrument) = self.instruments.get_mut(symbol) else { return };
        for (place, series) in instrument.series.iter_mut().enumerate() {
            if !series.is_known && !std::mem::replace(&mut series.is_wanted, true) {
                self.charts.wanted.push_back((symbol, place));
            }
        }
    }

    /// A connection of market data stands again: the candles of its instruments are not known.
    pub(super) fn want_candles_of(&mut self, stream: usize) {
        if self.settings.feeds.time_series.is_empty() {
            return;
        }
        for symbol in 1..=self.instruments.len() as u32 {
            if self.market_stream(symbol) == Some(stream) {
                self.want_candles(symbol);
            }
        }
    }

    /// Asks for candles, one series after the other.
    pub(super) fn poll_candles(&mut self, now: Nanos, venue: &mut impl Venue) -> usize {
        let charts = &self.charts;
        if charts.wanted.is_empty() || charts.asked.is_some() || now < charts.at || !self.is_market_ready() {
            return 0;
        }
        self.charts.at = now + PAUSE;
        let Some((symbol, place)) = self.charts.wanted.pop_front() else { return 0 };
        let stream = self.market_stream(symbol);
        let Some(instrument) = self.instruments.get_mut(symbol) else { return 1 };
        let Some(series) = instrument.series.get_mut(place) else { return 1 };
        if !instrument.is_listed {
            series.is_wanted = false;
            return 1;
        }
        // Not before the channel stands: nothing is missed between the two.
        let stream = stream.filter(|stream| self.streams[*stream].status == ConnectionStatus::READY);
        let is_settled = stream.is_some_and(|stream| venue.settled_channels(stream).is_some());
        let asked = if is_settled { self.ask_candles(symbol, place, now, venue) } else { None };
        match asked {
            Some(id) => self.charts.asked = Some((id, symbol, place)),
            None => self.charts.wanted.push_back((symbol, place)),
        }
        1
    }

    fn ask_candles(&self, symbol: u32, place: usize, now: Nanos, venue: &mut impl Venue) -> Option<i64> {
        let name = &self.instruments.get(symbol)?.name;
        let resolution = self.settings.feeds.time_series.get(place)?;
        let span_ms = u64::from(resolution.secs()) * 1_000;
        let end_ms = self.venue_ms(now);
        let count = u64::from(self.settings.feeds.time_series_length);
        let params = GetTradingviewChartData {
            instrument_name: VenueText::new(name),
            start_timestamp: (end_ms / span_ms).saturating_sub(count - 1) * span_ms,
            end_timestamp: end_ms,
            resolution: VenueText::new(resolution.name()),
        };
        venue.request(now, 0, Method::GetTradingviewChartData, &params).ok()
    }

    /// Whether a request was for candles; it is over then.
    fn end_chart(&mut self, id: i64) -> Option<(u32, usize)> {
        let (_, symbol, place) = self.charts.asked.take_if(|(asked, ..)| *asked == id)?;
        Some((symbol, place))
    }

    /// The reply to a request for candles; false where it is to none.
    pub(super) fn take_chart_reply(
        &mut self,
        id: i64,
        response: &Response<'_>,
        received: Nanos,
        door: &mut impl Door,
    ) -> bool {
        let Some((symbol, place)) = self.end_chart(id) else { return false };
        let stream = self.market_stream(symbol);
        if stream.is_some_and(|stream| self.streams[stream].status != ConnectionStatus::READY) {
            // Nothing would tell what follows: it is asked for again when the connection stands.
            self.charts.wanted.push_back((symbol, place));
            return true;
        }
        let is_retryable = response
            .outcome
            .err()
            .and_then(|error| error.error_code())
            .is_some_and(|code| code.is_retryable());
        if is_retryable {
            self.charts.wanted.push_back((symbol, place));
            self.charts.at = received + RETRY;
            return true;
        }
        let taken = match response.outcome {
            Ok(value) => self.take_chart(symbol, place, &value),
            Err(_) => Err(NewsFault::Code),
        };
        if taken.is_err() {
            self.counters.faults += 1;
        }
        let about = self.about_symbol(symbol);
        let Some(instrument) = self.instruments.get_mut(symbol) else { return true };
        let Some(series) = instrument.series.get_mut(place) else { return true };
        (series.is_wanted, series.is_known) = (false, true);
        for candle in series.all() {
            let body = TimeSeries { update: UpdateKind::SNAPSHOT, ..*candle };
            door.broadcast(self.stamp.event(&body, about, Cause { received, ..Cause::default() }));
        }
        true
    }

    /// No reply came to a request for candles, as far as it was for some: it is asked again.
    pub(super) fn handle_chart_unanswered(&mut self, id: i64, now: Nanos) {
        if let Some((symbol, place)) = self.end_chart(id) {
            self.charts.wanted.push_back((symbol, place));
            self.charts.at = now + RETRY;
        }
    }

    fn take_chart(&mut self, symbol: u32, place: usize, value: &Value<'_>) -> Result<(), NewsFault> {
        let data: ChartData<'_> = value.parse().map_err(|_| NewsFault::Code)?;
        let Some(period_secs) = self.settings.feeds.time_series.get(place).map(|one| one.secs()) else {
            return Ok(());
        };
        // Nothing is taken of lists that are of different lengths.
        let count = data.ticks.iter().count();
        let lens = [&data.open, &data.high, &data.low, &data.close].map(|list| list.iter().count());
        let sums = [&data.volume, &data.cost].map(|list| list.iter().count());
        if lens.iter().chain(&sums).any(|len| *len != count) {
            return Err(NewsFault::Code);
        }
        let Some(instrument) = self.instruments.get_mut(symbol) else { return Ok(()) };
        let Some(series) = instrument.series.get_mut(place) else { return Ok(()) };
        let (mut open, mut high, mut low) = (data.open.iter(), data.high.iter(), data.low.iter());
        let (mut close, mut volume, mut cost) = (data.close.iter(), data.volume.iter(), data.cost.iter());
        let mut is_whole = true;
        for tick in data.ticks.iter() {
            let candle = Candle {
                tick: next(Some(tick))?,
                open: next(open.next())?,
                high: next(high.next())?,
                low: next(low.next())?,
                close: next(close.next())?,
                volume: next(volume.next())?,
                cost: next(cost.next())?,
            };
            // One that has a figure too large for its field is left out.
            match body_of(&candle, period_secs) {
                Ok(candle) => series.merge(candle),
                Err(_) => is_whole = false,
            }
        }
        if is_whole { Ok(()) } else { Err(NewsFault::Number) }
    }

    /// A candle as it is now.
    pub(super) fn take_candle(
        &mut self,
        channel: &str,
        data: &Value<'_>,
        received: Nanos,
        door: &mut impl Door,
    ) -> Result<(), NewsFault> {
        let place_of = |text: &str| {
            let mut all = self.settings.feeds.time_series.iter();
            all.position(|one| one.name() == text)
        };
        let names = channel.strip_prefix("chart.trades.").and_then(|rest| rest.rsplit_once('.'));
        let known = names.and_then(|(name, text)| Some((self.instruments.number(name)?, place_of(text)?)));
        let Some((symbol, place)) = known else { return Ok(()) };
        let candle: Candle<'_> = data.parse().map_err(|_| NewsFault::Code)?;
        let body = body_of(&candle, self.settings.feeds.time_series[place].secs())?;
        let Some(series) = self.instruments.get_mut(symbol).and_then(|it| it.series.get_mut(place)) else {
            return Ok(());
        };
        series.take(body);
        let cause = Cause { received, ..Cause::default() };
        door.broadcast(self.stamp.event(&body, self.about_symbol(symbol), cause));
        Ok(())
    }

    /// The connection is lost: candles that were told may be others by now.
    pub(super) fn lose_candles(&mut self, symbol: u32, now: Nanos, door: &mut impl Door) {
        let about = self.about_symbol(symbol);
        let Some(instrument) = self.instruments.get_mut(symbol) else { return };
        for series in &mut instrument.series {
            series.is_known = false;
            let Some(last) = series.candles.back().copied() else { continue };
            series.candles.clear();
            let body = TimeSeries { update: UpdateKind::STALE, ..last };
            door.broadcast(self.stamp.event(&body, about, Cause { received: now, ..Cause::default() }));
        }
    }
}

/// The next element of a list that has as many as the others.
fn next<T>(element: Option<Result<T, ScanError>>) -> Result<T, NewsFault> {
    element.ok_or(NewsFault::Code)?.map_err(|_| NewsFault::Number)
}

fn body_of(candle: &Candle<'_>, period_secs: u32) -> Result<TimeSeries, NewsFault> {
    let price = |price: Decimal| units(price).map(Fixed);
    let sum = |sum: Number<'_>| {
        cut(sum, 8).and_then(|sum| i64::try_from(sum).map_err(|_| NewsFault::Number)).map(Fixed)
    };
    Ok(TimeSeries {
        begin_utc_ns: candle.tick.saturating_mul(1_000_000),
        period_secs,
        update: UpdateKind::INCREMENTAL,
        open: price(candle.open)?,
        high: price(candle.high)?,
        low: price(candle.low)?,
        close: price(candle.close)?,
        volume: sum(candle.volume)?,
        cost: sum(candle.cost)?,
        ..TimeSeries::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candle(begin: u64, volume: i64) -> TimeSeries {
        TimeSeries { begin_utc_ns: begin, volume: Fixed(volume), ..TimeSeries::default() }
    }

    fn told(series: &Series) -> Vec<(u64, i64)> {
        series.all().map(|candle| (candle.begin_utc_ns, candle.volume.0)).collect()
    }

    #[test]
    fn the_last_candles_are_kept_each_as_it_is_now() {
        let mut series = Series::new(3);
        for (begin, volume) in [(10, 1), (10, 2), (20, 1), (10, 3), (30, 1), (5, 9)] {
            series.take(candle(begin, volume));
        }
        assert_eq!(told(&series), [(10, 3), (20, 1), (30, 1)]);
        series.take(candle(40, 1));
        assert_eq!(told(&series), [(20, 1), (30, 1), (40, 1)]);
    }

    #[test]
    fn those_that_were_do_not_hide_what_came_since() {
        for (came, expected) in [
            (vec![], vec![(10, 1), (20, 2)]),
            (vec![(20, 1)], vec![(10, 1), (20, 2)]),
            (vec![(20, 3)], vec![(10, 1), (20, 3)]),
            (vec![(30, 1)], vec![(10, 1), (20, 2), (30, 1)]),
            // Also of one that is over by now.
            (vec![(20, 9), (30, 1)], vec![(10, 1), (20, 9), (30, 1)]),
            (vec![(20, 9), (30, 1), (40, 1)], vec![(20, 9), (30, 1), (40, 1)]),
        ] {
            let mut series = Series::new(3);
            came.into_iter().for_each(|(begin, volume)| series.take(candle(begin, volume)));
            [candle(10, 1), candle(20, 2)].into_iter().for_each(|candle| series.merge(candle));
            assert_eq!(told(&series), expected);
            assert_eq!(series.candles.capacity(), 3);
        }
    }
}
