//! Candles: the latest are queried once an instrument's channels are subscribed; channels bring updates.

use std::collections::VecDeque;

use tickpath_deribit::envelope::Response;
use tickpath_deribit::field::List;
use tickpath_deribit::messages::{Candle, ChartData, GetTradingviewChartData};
use tickpath_deribit::method::Method;
use tickpath_deribit::number::{Decimal, Number};
use tickpath_deribit::resolution::Resolution;
use tickpath_deribit::scan::{ScanError, Value};
use tickpath_deribit::text::Text as VenueText;
use tickpath_gateway_protocol::{ConnectionStatus, Fixed, TimeSeries, UpdateKind};
use tickpath_types::Nanos;

use super::Core;
use super::instruments::Instrument;
use super::market_data::RETRY;
use super::news::{NewsFault, cut, units};
use super::out::{Cause, EventSink, Venue};

/// Pause between two candle requests: they share the credits of all non-trading requests.
const PAUSE: Nanos = Nanos::from_millis(100);

/// Prefix of candle channel names.
const CHANNEL: &str = "chart.trades.";

/// State of a series' past candles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Past {
    /// Not queried since the connection came up.
    Unknown,
    /// To be queried, or in flight.
    Wanted,
    /// The venue has answered, or has no candles.
    Settled,
}

/// Effect of an operation on a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// No change.
    None,
    /// The last candle has changed.
    Last,
    /// Another candle has changed, or one was added.
    Other,
}

/// The candles of one instrument and one length.
#[derive(Debug)]
pub struct Series {
    /// Oldest first, each start time once; capacity for `length` candles.
    candles: VecDeque<TimeSeries>,
    length: usize,
    past: Past,
}

impl Series {
    /// An empty series with capacity for `length` candles.
    #[must_use]
    pub fn new(length: usize) -> Series {
        Series { candles: VecDeque::with_capacity(length), length, past: Past::Unknown }
    }

    /// All candles, oldest first.
    pub fn all(&self) -> impl ExactSizeIterator<Item = &TimeSeries> + DoubleEndedIterator {
        self.candles.iter()
    }

    fn find(&self, begin_utc_ns: u64) -> Result<usize, usize> {
        self.candles.binary_search_by_key(&begin_utc_ns, |candle| candle.begin_utc_ns)
    }

    /// Stores a current candle: a new one, or an update of a stored one.
    fn take(&mut self, candle: TimeSeries) -> Change {
        match self.find(candle.begin_utc_ns) {
            Ok(at) => {
                self.candles[at] = candle;
                if at + 1 == self.candles.len() { Change::Last } else { Change::Other }
            }
            Err(at) => self.insert(at, candle),
        }
    }

    /// Merges a candle from the reply to a query. If the channel has brought the same candle, the one with
    /// the higher volume is kept, as it is the later one.
    fn merge(&mut self, candle: TimeSeries) -> Change {
        match self.find(candle.begin_utc_ns) {
            Ok(at) if self.candles[at].volume >= candle.volume => Change::None,
            _ => self.take(candle),
        }
    }

    /// Inserts a candle at its position. A full series drops its oldest, or the new one if that is older.
    fn insert(&mut self, at: usize, candle: TimeSeries) -> Change {
        let is_full = self.candles.len() == self.length;
        match at.checked_sub(usize::from(is_full)) {
            None => Change::None,
            Some(at) => {
                if is_full {
                    self.candles.pop_front();
                }
                self.candles.insert(at, candle);
                Change::Other
            }
        }
    }

    /// Removes a candle.
    fn remove(&mut self, begin_utc_ns: u64) -> Change {
        match self.find(begin_utc_ns) {
            Ok(at) => {
                self.candles.remove(at);
                Change::Other
            }
            Err(_) => Change::None,
        }
    }
}

/// A candle request in flight.
#[derive(Clone, Copy, Debug)]
struct Asked {
    id: i64,
    symbol: u32,
    /// Index of the length.
    place: usize,
    /// The channel was lost since: updates between the reply and the new subscription would be missing.
    is_void: bool,
}

/// Candle requests waiting and in flight.
#[derive(Debug, Default)]
pub(super) struct Charts {
    /// Instruments and indexes of lengths; each series once.
    wanted: VecDeque<(u32, usize)>,
    /// The one request in flight.
    asked: Option<Asked>,
    /// Earliest time of the next request.
    at: Nanos,
}

impl Core {
    /// Creates the configured series of an instrument whose channels have a connection.
    pub(super) fn make_series(&mut self, symbol: u32) {
        let feeds = &self.settings.feeds;
        let Some(instrument) = self.instruments.get_mut(symbol) else { return };
        if instrument.series.len() != feeds.time_series.len() {
            let length = feeds.time_series_length as usize;
            instrument.series = feeds.time_series.iter().map(|_| Series::new(length)).collect();
            instrument.revise();
        }
    }

    /// Removes an instrument's candles when its channels end: they are no longer sent and take no memory.
    pub(super) fn give_up_candles(&mut self, symbol: u32) {
        let Some(instrument) = self.instruments.get_mut(symbol) else { return };
        instrument.series = Box::default();
        instrument.revise();
        self.charts.wanted.retain(|(wanted, _)| *wanted != symbol);
        self.void_chart(symbol);
    }

    /// Queues requests for the unknown candles of an instrument.
    pub(super) fn want_candles(&mut self, symbol: u32) {
        let Some(instrument) = self.instruments.get_mut(symbol) else { return };
        for (place, series) in instrument.series.iter_mut().enumerate() {
            if series.past == Past::Unknown {
                series.past = Past::Wanted;
                self.charts.wanted.push_back((symbol, place));
            }
        }
    }

    /// Queues requests for the candles of all instruments on a market data connection that is up again.
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

    /// Requests candles, one series at a time.
    pub(super) fn poll_candles(&mut self, now: Nanos, venue: &mut impl Venue) -> usize {
        let charts = &self.charts;
        if charts.wanted.is_empty() || charts.asked.is_some() || now < charts.at || !self.is_market_ready() {
            return 0;
        }
        self.charts.at = now + PAUSE;
        let Some((symbol, place)) = self.charts.wanted.pop_front() else { return 0 };
        let is_listed = self.instruments.get(symbol).is_some_and(|instrument| instrument.is_listed);
        let stream = self.market_stream(symbol);
        let is_up = stream.is_some_and(|stream| self.streams[stream].status == ConnectionStatus::READY);
        let Some(past) = self.past(symbol, place) else { return 1 };
        // Not before the channel is subscribed, so that no update is missed.
        let is_settled = is_up && stream.is_some_and(|stream| venue.settled_channels(stream).is_some());
        match stream {
            _ if *past != Past::Wanted => {}
            Some(stream) if is_listed && is_settled => self.ask_candles(stream, symbol, place, now, venue),
            _ if is_listed => self.charts.wanted.push_back((symbol, place)),
            _ => *past = Past::Unknown,
        }
        1
    }

    /// Requests a subscribed series' candles, unless the venue refused its channel: they would go stale.
    fn ask_candles(&mut self, stream: usize, symbol: u32, place: usize, now: Nanos, venue: &mut impl Venue) {
        let Some(instrument) = self.instruments.get_mut(symbol) else { return };
        let Some(resolution) = self.settings.feeds.time_series.get(place) else { return };
        let name = &instrument.name;
        if venue.is_refused(stream, &channel_of(name, *resolution)) {
            instrument.series[place].past = Past::Settled;
            return;
        }
        let span_ms = u64::from(resolution.secs()) * 1_000;
        let end_ms = (now.0 / 1_000_000).saturating_add_signed(self.venue_ahead_ms);
        let count = u64::from(self.settings.feeds.time_series_length);
        let params = GetTradingviewChartData {
            instrument_name: VenueText::new(name),
            start_timestamp: (end_ms / span_ms).saturating_sub(count - 1) * span_ms,
            end_timestamp: end_ms,
            resolution: VenueText::new(resolution.name()),
        };
        match venue.request(now, 0, Method::GetTradingviewChartData, &params) {
            Ok(id) => self.charts.asked = Some(Asked { id, symbol, place, is_void: false }),
            Err(_) => self.charts.wanted.push_back((symbol, place)),
        }
    }

    fn past(&mut self, symbol: u32, place: usize) -> Option<&mut Past> {
        Some(&mut self.instruments.get_mut(symbol)?.series.get_mut(place)?.past)
    }

    /// Marks the request in flight for an instrument as void.
    fn void_chart(&mut self, symbol: u32) {
        if let Some(asked) = self.charts.asked.as_mut().filter(|asked| asked.symbol == symbol) {
            asked.is_void = true;
        }
    }

    /// Queues another request for a series, due at `at` or later.
    fn ask_again(&mut self, asked: &Asked, at: Nanos) {
        let Asked { symbol, place, .. } = *asked;
        if self.past(symbol, place).is_some_and(|past| *past == Past::Wanted) {
            self.charts.wanted.push_back((symbol, place));
            self.charts.at = at;
        }
    }

    /// Handles the reply to a candle request; false if the reply belongs to another request.
    pub(super) fn take_chart_reply(
        &mut self,
        id: i64,
        response: &Response<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) -> bool {
        let Some(asked) = self.charts.asked.take_if(|asked| asked.id == id) else { return false };
        let refusal = response.outcome.err();
        let code = refusal.as_ref().and_then(|error| error.error_code());
        if asked.is_void {
            self.ask_again(&asked, received + PAUSE);
            return true;
        }
        if code.is_some_and(|code| code.is_retryable()) {
            self.ask_again(&asked, received + RETRY);
            return true;
        }
        let Asked { symbol, place, .. } = asked;
        let taken = match response.outcome {
            Ok(value) => self.take_chart(symbol, place, &value),
            Err(_) => Err(NewsFault::Code),
        };
        if taken.is_err() {
            self.counters.faults += 1;
        }
        let about = self.about_symbol(symbol);
        let series = self.instruments.get_mut(symbol).and_then(|it| it.series.get_mut(place));
        let Some(series) = series else { return true };
        series.past = Past::Settled;
        for candle in series.all() {
            let body = TimeSeries { update: UpdateKind::SNAPSHOT, ..*candle };
            door.broadcast(self.stamp.event(&body, about, Cause { received, ..Cause::default() }));
        }
        true
    }

    /// Requests candles again if the unanswered request was for some.
    pub(super) fn handle_chart_unanswered(&mut self, id: i64, now: Nanos) {
        if let Some(asked) = self.charts.asked.take_if(|asked| asked.id == id) {
            self.ask_again(&asked, now + RETRY);
        }
    }

    /// Merges all candles of a reply. One with an unrepresentable figure is omitted and counted.
    fn take_chart(&mut self, symbol: u32, place: usize, value: &Value<'_>) -> Result<(), NewsFault> {
        let data: ChartData<'_> = value.parse().map_err(|_| NewsFault::Code)?;
        let period_secs = self.settings.feeds.time_series[place].secs();
        let prices = [&data.open, &data.high, &data.low, &data.close];
        let count = data.ticks.count();
        let is_even = prices.iter().all(|list| list.count() == count)
            && [&data.volume, &data.cost].iter().all(|list| list.count() == count);
        if !is_even {
            return Err(NewsFault::Code);
        }
        let Some(instrument) = self.instruments.get_mut(symbol) else { return Ok(()) };
        let [mut open, mut high, mut low, mut close] = prices.map(List::iter);
        let (mut volume, mut cost) = (data.volume.iter(), data.cost.iter());
        for tick in data.ticks.iter() {
            let candle = Candle {
                tick: tick.map_err(|_| NewsFault::Number)?,
                open: next_of(&mut open)?,
                high: next_of(&mut high)?,
                low: next_of(&mut low)?,
                close: next_of(&mut close)?,
                volume: next_of(&mut volume)?,
                cost: next_of(&mut cost)?,
            };
            match body_of(&candle, period_secs) {
                Ok(body) => instrument.change(place, |series| series.merge(body)),
                Err(_) => self.counters.faults += 1,
            }
        }
        Ok(())
    }

    /// Handles a candle update of a channel.
    pub(super) fn take_candle(
        &mut self,
        channel: &str,
        data: &Value<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) -> Result<(), NewsFault> {
        let all = &self.settings.feeds.time_series;
        let names = channel.strip_prefix(CHANNEL).and_then(|rest| rest.rsplit_once('.'));
        let known = names.and_then(|(name, text)| {
            Some((self.instruments.number(name)?, all.iter().position(|one| one.name() == text)?))
        });
        let Some((symbol, place)) = known else { return Ok(()) };
        let candle: Candle<'_> = data.parse().map_err(|_| NewsFault::Code)?;
        let about = self.about_symbol(symbol);
        let Some(instrument) = self.instruments.get_mut(symbol).filter(|it| place < it.series.len()) else {
            return Ok(());
        };
        let body = body_of(&candle, all[place].secs()).inspect_err(|_| {
            // The values sent for it earlier no longer hold.
            instrument.change(place, |series| series.remove(begin_of(&candle)));
        })?;
        instrument.change(place, |series| series.take(body));
        let cause = Cause { received, ..Cause::default() };
        door.broadcast(self.stamp.event(&body, about, cause));
        Ok(())
    }

    /// Marks candles as stale after the connection is lost.
    pub(super) fn lose_candles(&mut self, symbol: u32, now: Nanos, door: &mut impl EventSink) {
        let about = self.about_symbol(symbol);
        self.void_chart(symbol);
        let Some(instrument) = self.instruments.get_mut(symbol) else { return };
        for series in &mut instrument.series {
            if series.past == Past::Settled {
                series.past = Past::Unknown;
            }
            let Some(last) = series.candles.back().copied() else { continue };
            series.candles.clear();
            let body = TimeSeries { update: UpdateKind::STALE, ..last };
            door.broadcast(self.stamp.event(&body, about, Cause { received: now, ..Cause::default() }));
        }
        instrument.revise();
    }
}

impl Instrument {
    /// Applies a change to the series of one length.
    fn change(&mut self, place: usize, how: impl FnOnce(&mut Series) -> Change) {
        if self.series.get_mut(place).map(how) == Some(Change::Other) {
            self.revise();
        }
    }
}

/// Name of the channel for an instrument's candles of one length.
pub(super) fn channel_of(name: &str, resolution: Resolution) -> String {
    format!("{CHANNEL}{name}.{resolution}")
}

/// Returns the next element of one of several lists that are read in parallel.
fn next_of<T>(list: &mut impl Iterator<Item = Result<T, ScanError>>) -> Result<T, NewsFault> {
    list.next().and_then(Result::ok).ok_or(NewsFault::Number)
}

fn begin_of(candle: &Candle<'_>) -> u64 {
    candle.tick.saturating_mul(1_000_000)
}

fn body_of(candle: &Candle<'_>, period_secs: u32) -> Result<TimeSeries, NewsFault> {
    let price = |price: Decimal| units(price).map(Fixed);
    let sum = |sum: Number<'_>| {
        cut(sum, 8).and_then(|sum| i64::try_from(sum).map_err(|_| NewsFault::Number)).map(Fixed)
    };
    Ok(TimeSeries {
        begin_utc_ns: begin_of(candle),
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
    fn a_candle_that_comes_late_has_its_place_among_the_others() {
        let mut series = Series::new(3);
        assert_eq!(series.take(candle(10, 1)), Change::Other);
        assert_eq!(series.take(candle(30, 1)), Change::Other);
        assert_eq!(series.take(candle(30, 2)), Change::Last);
        assert_eq!(series.take(candle(20, 1)), Change::Other);
        assert_eq!(series.take(candle(15, 1)), Change::Other);
        assert_eq!(series.take(candle(5, 1)), Change::None);
        assert_eq!(told(&series), [(15, 1), (20, 1), (30, 2)]);
        assert_eq!((series.remove(20), series.remove(21)), (Change::Other, Change::None));
        assert_eq!(told(&series), [(15, 1), (30, 2)]);
    }

    #[test]
    fn those_that_were_do_not_hide_what_came_since() {
        for (latest, expected) in [
            (vec![], vec![(10, 1), (20, 2)]),
            (vec![(20, 1)], vec![(10, 1), (20, 2)]),
            (vec![(20, 3)], vec![(10, 1), (20, 3)]),
            (vec![(30, 1)], vec![(10, 1), (20, 2), (30, 1)]),
            (vec![(15, 9)], vec![(10, 1), (15, 9), (20, 2)]),
            // The reply's last candle was updated since, and a new one has started.
            (vec![(20, 3), (30, 1)], vec![(10, 1), (20, 3), (30, 1)]),
            (vec![(20, 3), (30, 1), (40, 1)], vec![(20, 3), (30, 1), (40, 1)]),
        ] {
            let mut series = Series::new(3);
            latest.into_iter().for_each(|(begin, volume)| {
                series.take(candle(begin, volume));
            });
            for were in [candle(10, 1), candle(20, 2)] {
                series.merge(were);
            }
            assert_eq!(told(&series), expected);
        }
    }
}
