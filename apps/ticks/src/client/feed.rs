//! The client's tick path: parses the received bytes and applies the ticks to the cache.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use tickpath_agent::TscClock;
use tickpath_lockfree::spsc;
use tickpath_shm::{Folder, SegmentConfig, SegmentName, SegmentWriter, TimeBase};
use tickpath_ticks::message::Message as _;
use tickpath_ticks::message::{
    EndOfStream, EndReason, Hello, Refused, Scope, Subscribed, SymbolDefinition, Tick, Trade,
};
use tickpath_ticks::parser::{Gap, StreamError, TickListener, TickParser};
use tickpath_types::Nanos;

use super::csv::CsvItem;
use super::latency::{self, Span};
use super::market::{Market, MarketWriter};
use super::shared::{Count, Shared};

/// A clock that reads the time stamp counter, corrected by its drift from the system's clock.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    tsc: TscClock,
    ahead_ns: i64,
}

impl Clock {
    pub(super) fn new() -> Clock {
        Clock { tsc: TscClock::shared(), ahead_ns: 0 }
    }

    #[inline]
    pub(super) fn now(&self) -> Nanos {
        Nanos(self.tsc.now().0.wrapping_add_signed(self.ahead_ns.wrapping_neg()))
    }

    /// Measures the drift from the system's clock, which the server uses for its time stamps.
    pub(super) fn correct(&mut self) {
        self.ahead_ns = self.tsc.drift().ahead_ns;
    }
}

/// Folder and name of a shared-memory segment.
#[derive(Clone, Debug)]
pub struct SegmentPlace {
    /// Folder that contains the segment.
    pub folder: PathBuf,
    /// The segment's name.
    pub name: SegmentName,
}

impl SegmentPlace {
    fn create(&self, rows: u64, now: Nanos) -> anyhow::Result<SegmentWriter> {
        let folder = Folder::create(&self.folder)?;
        let config = SegmentConfig { rows, stream_capacity: 0, time_base: TimeBase::Unix };
        Ok(SegmentWriter::create(&folder, &self.name, &config, now)?)
    }
}

/// Parses the bytes of a connection and applies the messages to the market.
pub struct Feed {
    parser: TickParser,
    pub(super) sink: Sink,
}

/// The next sequence numbers of a session when a connection to it ended.
struct SessionPosition {
    session: u64,
    /// The next sequence number of the session.
    sequence: u64,
    /// The next sequence number of each symbol, by instrument number; `None` if unknown. Empty if all symbols
    /// were subscribed.
    symbols: Vec<Option<u32>>,
}

impl Feed {
    /// Creates a feed before its first connection; the market is also written to `segment`, if any.
    #[must_use]
    pub fn new(shared: Arc<Shared>, segment: Option<SegmentPlace>) -> Feed {
        Feed { parser: TickParser::new(), sink: Sink::new(shared, segment) }
    }

    /// Makes the feed copy every tick to a CSV writer's ring, and wait while the ring is full.
    pub(super) fn copy_to(&mut self, csv: spsc::Producer<CsvItem>) {
        self.sink.csv = Some(csv);
    }

    /// Resets the parser and the state of the connection, for a new connection.
    pub fn restart(&mut self) {
        if let Some(hello) = self.sink.hello.filter(|_| self.sink.is_subscribed) {
            self.sink.previous = Some(self.session_position(&hello));
        }
        self.parser.restart();
        self.sink.restart();
    }

    fn session_position(&mut self, hello: &Hello) -> SessionPosition {
        let (session, sequence) = (hello.session.get(), self.parser.next_sequence());
        let mut symbols = Vec::new();
        if self.sink.scope == Some(Scope::Listed) {
            let last = u16::try_from(hello.symbol_count.get()).unwrap_or(u16::MAX);
            // For a symbol that this connection did not define, keep the number from the previous connection.
            let before = self.sink.previous.take().filter(|previous| previous.session == session);
            let before = before.map(|previous| previous.symbols).unwrap_or_default();
            symbols.extend((0..=last).map(|instrument| {
                let number = self.parser.next_symbol_sequence(instrument);
                number.or_else(|| before.get(usize::from(instrument)).copied().flatten())
            }));
        }
        SessionPosition { session, sequence, symbols }
    }

    /// Returns the buffer into which the next bytes of the connection are read.
    #[inline]
    pub fn buffer(&mut self) -> &mut [u8] {
        self.parser.free_space()
    }

    /// Processes the first `len` bytes of the [buffer](Feed::buffer), read at `received` in nanoseconds since
    /// the Unix epoch.
    ///
    /// # Errors
    /// [`StreamError`] when the connection must be closed.
    #[inline]
    pub fn commit(&mut self, len: usize, received: Nanos) -> Result<(), StreamError> {
        self.process(received, |parser, sink| parser.commit(len, sink))
    }

    /// Processes bytes from another buffer; otherwise like [`commit`](Feed::commit).
    ///
    /// # Errors
    /// As for [`commit`](Feed::commit).
    pub fn feed(&mut self, bytes: &[u8], received: Nanos) -> Result<(), StreamError> {
        self.process(received, |parser, sink| parser.feed(bytes, sink))
    }

    #[inline]
    fn process(
        &mut self,
        received: Nanos,
        parse: impl FnOnce(&mut TickParser, &mut Sink) -> Result<(), StreamError>,
    ) -> Result<(), StreamError> {
        self.sink.received = received;
        let result = parse(&mut self.parser, &mut self.sink);
        self.publish_counters();
        result
    }

    /// Publishes the parser's counters in the shared state.
    #[inline]
    fn publish_counters(&self) {
        let (stats, shared) = (self.parser.stats(), &self.sink.shared);
        shared.set(Count::Bytes, stats.bytes);
        shared.set(Count::Ticks, stats.ticks);
        shared.set(Count::Others, stats.others);
        shared.set(Count::Unknown, stats.unknown);
        shared.set(Count::Gaps, stats.gaps);
        shared.set(Count::Lost, stats.lost);
        shared.set(Count::Skipped, stats.skipped);
        shared.set(Count::Duplicates, stats.duplicates);
        shared.set(Count::Corrupt, stats.corrupt);
        shared.set(Count::ResyncBytes, stats.resync_bytes);
    }
}

/// Receives the parsed messages, and applies ticks to the market.
pub(super) struct Sink {
    pub(super) shared: Arc<Shared>,
    pub(super) clock: Clock,
    received: Nanos,
    market: Option<MarketWriter>,
    segment: Option<SegmentPlace>,
    csv: Option<spsc::Producer<CsvItem>>,
    /// Hello of the current connection.
    pub(super) hello: Option<Hello>,
    pub(super) is_subscribed: bool,
    scope: Option<Scope>,
    /// Position at the end of the last subscribed connection, kept until the messages missed since then are
    /// counted.
    previous: Option<SessionPosition>,
    pub(super) refused: Option<Refused>,
    pub(super) ended: Option<EndReason>,
    /// A failure that ends the client.
    pub(super) failure: Option<anyhow::Error>,
}

impl Sink {
    fn new(shared: Arc<Shared>, segment: Option<SegmentPlace>) -> Sink {
        Sink {
            shared,
            clock: Clock::new(),
            received: Nanos::ZERO,
            market: None,
            segment,
            csv: None,
            hello: None,
            is_subscribed: false,
            scope: None,
            previous: None,
            refused: None,
            ended: None,
            failure: None,
        }
    }

    /// Handles the loss of the connection: marks all symbols stale, since the cache may be wrong from now on.
    fn restart(&mut self) {
        if let Some(market) = &mut self.market {
            market.mark_stale(0);
        }
        (self.hello, self.is_subscribed, self.scope) = (None, false, None);
        (self.refused, self.ended) = (None, None);
    }

    /// Updates the segment's heartbeat, which shows its readers that this process is alive.
    pub(super) fn update_heartbeat(&mut self, now: Nanos) {
        if let Some(segment) = self.market.as_mut().and_then(MarketWriter::segment) {
            segment.heartbeat(now);
        }
    }

    /// Opens a market for the session, or keeps the current one if session and number of symbols are the
    /// same.
    fn open_market(&mut self, hello: &Hello) -> anyhow::Result<()> {
        let symbol_count = u16::try_from(hello.symbol_count.get())
            .context("the server announces more than 65,535 symbols, the maximum")?;
        let rows = usize::from(symbol_count) + 1;
        let is_same = |market: &Market| market.session() == hello.session.get() && market.rows_end() == rows;
        if self.market.as_ref().is_some_and(|writer| is_same(writer.market())) {
            return Ok(());
        }
        let old = self.market.as_mut().and_then(MarketWriter::take_segment);
        // Close the old segment first: its lock refuses every other writer of the same name.
        drop(old);
        let segment =
            self.segment.as_ref().map(|place| place.create(rows as u64, self.clock.now())).transpose()?;
        let market = MarketWriter::new(hello.session.get(), symbol_count, segment);
        self.shared.set_market(Arc::clone(market.market()));
        self.market = Some(market);
        Ok(())
    }

    /// Counts the messages missed between the previous connection to the session and this one, if all symbols
    /// are subscribed. Otherwise [`count_missed_by_symbol`](Sink::count_missed_by_symbol) counts them.
    fn count_missed(&mut self, next: u64) {
        let session = self.hello.map(|hello| hello.session.get());
        let Some(previous) = self
            .previous
            .take_if(|previous| Some(previous.session) != session || previous.symbols.is_empty())
        else {
            return;
        };
        if Some(previous.session) == session {
            self.shared.add(Count::Missed, next.saturating_sub(previous.sequence));
        }
    }

    fn count_missed_by_symbol(&mut self, definition: &SymbolDefinition) {
        let instrument = usize::from(definition.header.instrument.get());
        let number = self
            .previous
            .as_mut()
            .and_then(|previous| previous.symbols.get_mut(instrument))
            .and_then(Option::take);
        let missed =
            number.map_or(0, |previous| definition.header.symbol_sequence.get().wrapping_sub(previous));
        // A difference from 2^31 on is negative modulo 2^32: the message was received before.
        if missed < 1 << 31 {
            self.shared.add(Count::Missed, u64::from(missed));
        }
    }

    /// Copies ticks to the CSV writer's ring. Waits while the ring is full: a file with ticks missing is
    /// useless, and the server can detect the slow client.
    fn copy_to_csv(&mut self, ticks: &[Tick]) {
        let (Some(csv), Some(market)) = (&mut self.csv, &self.market) else { return };
        for tick in ticks {
            let item = CsvItem { tick: *tick, symbol: market.name(tick.header.instrument.get()) };
            while csv.try_push(item).is_err() {
                if self.shared.is_stop_requested() {
                    return;
                }
                std::thread::sleep(super::csv::FULL_WAIT);
            }
        }
    }

    #[inline]
    fn measure(&self, ticks: &[Tick], handed_over: Nanos) {
        let latencies = self.shared.latencies();
        let cached = self.clock.now();
        latencies.record(Span::Parse, self.received, handed_over);
        latencies.record(Span::Cache, handed_over, cached);
        for tick in ticks.iter().step_by(latency::step(ticks.len())) {
            let (made, sent) = (Nanos(tick.ts_generate.get()), tick.ts_send());
            latencies.record(Span::Server, made, sent);
            latencies.record(Span::Network, sent, self.received);
            latencies.record(Span::Total, made, cached);
        }
    }
}

impl TickListener for Sink {
    #[inline]
    fn on_ticks(&mut self, ticks: &[Tick]) {
        let handed_over = self.clock.now();
        let Some(market) = &mut self.market else { return };
        let (mut trades, mut unknown) = (0, 0);
        for tick in ticks {
            unknown += u64::from(!market.apply(tick));
            trades += u64::from(tick.header.message_type == Trade::TYPE);
        }
        self.shared.add(Count::Trades, trades);
        self.shared.add(Count::UnknownInstrument, unknown);
        self.measure(ticks, handed_over);
        if self.csv.is_some() {
            self.copy_to_csv(ticks);
        }
    }

    fn on_hello(&mut self, hello: &Hello) {
        match self.open_market(hello) {
            Ok(()) => self.hello = Some(*hello),
            Err(error) => self.failure = Some(error),
        }
    }

    fn on_symbol(&mut self, definition: &SymbolDefinition) {
        self.count_missed_by_symbol(definition);
        if let Some(market) = &mut self.market
            && !market.define(definition)
        {
            self.shared.add(Count::UnknownInstrument, 1);
        }
    }

    fn on_subscribed(&mut self, subscribed: &Subscribed) {
        (self.is_subscribed, self.scope) = (true, Some(subscribed.scope()));
        self.count_missed(subscribed.header.sequence.get());
    }

    fn on_refused(&mut self, refused: &Refused) {
        self.refused = Some(*refused);
    }

    fn on_end_of_stream(&mut self, end: &EndOfStream) {
        self.ended = Some(end.reason().unwrap_or(EndReason::ServerStops));
    }

    fn on_gap(&mut self, gap: Gap) {
        if let Some(market) = &mut self.market {
            market.mark_stale(gap.instrument);
        }
    }

    fn on_skipped(&mut self, _: &tickpath_ticks::message::Skipped) {
        if let Some(market) = &mut self.market {
            market.mark_stale(0);
        }
    }
}
