//! One recording in a capture: its books, and what is known of its messages.

use std::path::Path;
use std::time::{Duration, Instant};

use tickpath_book::{FastBooks, Indexed, PlainBooks};
use tickpath_capture::{Depth, Format, InputMeter, RecordingInfo, TimeBase};
use tickpath_config::{Date, Zone};
use tickpath_feed::xdp::BookBuilder as XdpBooks;
use tickpath_feed::{BookBuilder, BooksAlone, MessageBooks};
use tickpath_iex::Feed;
use tickpath_nasdaq::itch50;
use tickpath_nyse::SendTime;
use tickpath_types::{InstrumentId, Nanos};

use super::iex::{IexBooks, IexMessage, IexSymbols};
use super::protocol::Protocol;
use super::refresh::Refresh;
use super::xdp::{self, XdpMessage, XdpSymbols};
use crate::apply::ApplyMessages;
use crate::check::{Twin, TwinReport};
use crate::exports::ExportedRows;
use crate::integrity::Judgement;
use crate::itch::INFO;
use crate::message::{RecordedMessage, Source, Types, is_end_of_snapshot};
use crate::moment::Calendar;
use crate::options::ReplayOptions;
use crate::report::FileReport;
use crate::run::ReplayError;
use crate::session::{BookSize, Ended, PassState, Session};

const NS_PER_DAY: u64 = 86_400_000_000_000;
/// Messages are captured so soon after what they tell, but for the clocks' differences: far less than zones differ by.
const SAME_TIME_NS: u64 = 600_000_000_000;

/// Messages of one market that follow each other in the file, and the packets that they came in.
#[derive(Debug, Default)]
pub(super) struct Run<'a> {
    pub(super) market: usize,
    pub(super) messages: Vec<&'a [u8]>,
    /// The packets that they came in.
    pub(super) packets: Vec<PacketMark>,
    /// True when they are a snapshot.
    pub(super) is_snapshot: bool,
}

/// A packet of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketMark {
    /// Its first message, counted in the run.
    pub(super) first: usize,
    /// Its number in the file.
    pub(super) number: u64,
    /// When it was captured; `None` of one that was held.
    pub(super) ts_ns: Option<u64>,
    pub(super) origin: Origin,
}

/// What a packet says about its messages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Origin {
    /// The channel, counted in the capture; of ITCH 0.
    pub(super) channel: u8,
    /// Of XDP.
    pub(super) sent: SendTime,
}

impl<'a> Run<'a> {
    /// The messages of each packet, with what that says about them.
    fn by_packet(&self) -> impl Iterator<Item = (Origin, &[&'a [u8]])> {
        self.packets.iter().enumerate().map(|(index, packet)| {
            let end = self.packets.get(index + 1).map_or(self.messages.len(), |next| next.first);
            (packet.origin, &self.messages[packet.first..end])
        })
    }

    /// The packet that a message came in, in words.
    fn place(&self, index: usize) -> String {
        let at = self.packets.partition_point(|packet| packet.first <= index);
        let number = at.checked_sub(1).map_or(0, |at| self.packets[at].number);
        format!("packet {number}")
    }
}

/// One recording in a capture.
pub(super) struct Market {
    /// What it is, for people.
    pub(super) name: String,
    pub(super) kind: Kind,
    state: PassState,
    calendar: Calendar,
    books: Books,
    read: u64,
    exported: ExportedRows,
    /// True when its window is over.
    pub(super) is_ended: bool,
    /// Of ITCH: whose midnight its times count from was found out.
    is_midnight_known: bool,
}

type ItchPair = Pair<BookBuilder<Indexed<FastBooks>>, BookBuilder<Indexed<PlainBooks>>>;
type IexPair = Pair<IexBooks<Indexed<FastBooks>>, IexBooks<Indexed<PlainBooks>>>;
type XdpPair = Pair<XdpBooks<Indexed<FastBooks>>, XdpBooks<Indexed<PlainBooks>>>;

/// The books of a protocol.
enum Books {
    Itch(Box<ItchPair>),
    Iex(IexSymbols, Feed, Box<IexPair>),
    Xdp(XdpSymbols, Box<XdpPair>),
}

/// What a recording is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Itch,
    Iex(Feed),
    /// With the number of the market, once a message has told it.
    Xdp(Option<u16>),
}

impl Kind {
    pub(super) const fn protocol(self) -> Protocol {
        match self {
            Kind::Itch => Protocol::Itch,
            Kind::Iex(_) => Protocol::Iex,
            Kind::Xdp(_) => Protocol::Xdp,
        }
    }

    /// For people.
    pub(super) fn name(self) -> String {
        match self {
            Kind::Itch => "ITCH 5.0".to_owned(),
            Kind::Iex(feed) => format!("IEX {}", feed.name()),
            Kind::Xdp(market) => xdp::market_name(market),
        }
    }

    const fn time_base(self) -> TimeBase {
        match self {
            Kind::Itch => TimeBase::Midnight,
            Kind::Iex(_) | Kind::Xdp(_) => TimeBase::UnixEpoch,
        }
    }
}

/// Books and their plain twin; nothing before the first message, and nothing at all where only decoding is asked for.
struct Pair<F, P> {
    books: Option<F>,
    twin: Option<Twin<P>>,
}

impl<F, P> Pair<F, P> {
    const NONE: Pair<F, P> = Pair { books: None, twin: None };

    /// Makes the books, where there are none yet and they are wanted.
    fn create(&mut self, session: &Session<'_>, fast: impl FnOnce() -> F, plain: impl FnOnce() -> P) {
        if self.books.is_none() && !session.options.decode_only {
            self.books = Some(fast());
            self.twin = session.options.check_every.map(|every| Twin::new(plain(), every));
        }
    }

    /// Does something to the books and to their twin.
    fn change(&mut self, fast: impl FnOnce(&mut F), plain: impl FnOnce(&mut P)) {
        if let Some(books) = &mut self.books {
            fast(books);
        }
        if let Some(twin) = &mut self.twin {
            twin.also(plain);
        }
    }
}

impl Market {
    /// A market whose first packet was captured at `ts_ns`.
    pub(super) fn new(name: String, kind: Kind, session: &Session<'_>, ts_ns: u64) -> Market {
        let books = match kind {
            Kind::Itch => Books::Itch(Box::new(Pair::NONE)),
            Kind::Iex(feed) => Books::Iex(IexSymbols::new(feed), feed, Box::new(Pair::NONE)),
            Kind::Xdp(_) => Books::Xdp(XdpSymbols::default(), Box::new(Pair::NONE)),
        };
        let mut calendar = session.options.calendar(kind.time_base(), Zone::EASTERN);
        calendar.date.get_or_insert(calendar.zone.date_at(ts_ns));
        Market {
            name,
            kind,
            state: PassState::new(),
            calendar,
            books,
            read: 0,
            exported: ExportedRows::default(),
            is_ended: false,
            is_midnight_known: kind != Kind::Itch,
        }
    }

    /// Finds out whose midnight the times of ITCH count from: that of UTC where messages are then of the time at which they
    /// were captured, and not of New York's; our own venue's are. Old messages leave it open, and the end of a snapshot
    /// tells that it is our venue's.
    fn learn_midnight(&mut self, options: &ReplayOptions, run: &Run<'_>) {
        let captured = run.packets.iter().map(|packet| packet.ts_ns);
        for (captured_ns, (_, messages)) in captured.zip(run.by_packet()) {
            let newest = messages.iter().map(RecordedMessage::ts_ns).max().filter(|ts_ns| *ts_ns > 0);
            let Some((captured_ns, ts_ns)) = captured_ns.zip(newest) else { continue };
            let is_near = |zone: Zone| {
                let of_day = zone.local_ns(captured_ns) % NS_PER_DAY;
                let apart = of_day.abs_diff(ts_ns % NS_PER_DAY);
                apart.min(NS_PER_DAY - apart) < SAME_TIME_NS
            };
            if is_near(Zone::EASTERN) {
                self.is_midnight_known = true;
                return;
            }
            if is_near(Zone::UTC) {
                return self.count_from_utc(options, Some(captured_ns));
            }
        }
        if run.messages.iter().any(|message| is_end_of_snapshot(message)) {
            self.count_from_utc(options, run.packets.iter().find_map(|packet| packet.ts_ns));
        }
    }

    fn count_from_utc(&mut self, options: &ReplayOptions, captured_ns: Option<u64>) {
        self.is_midnight_known = true;
        let first_day = self.calendar.date;
        let calendar = options.calendar(self.calendar.base, Zone::UTC);
        self.calendar = Calendar { midnight: Zone::UTC, ..calendar };
        self.calendar.date = self.calendar.date.or(captured_ns.map(|ns| Zone::UTC.date_at(ns))).or(first_day);
    }

    /// What it is of is known from now on.
    pub(super) fn rename(&mut self, kind: Kind) {
        (self.kind, self.name) = (kind, kind.name());
    }

    /// Messages of a channel were lost for good before this one, its next.
    pub(super) fn lose(&mut self, channel: u8, next: u64) {
        match &mut self.books {
            Books::Itch(pair) => pair.change(
                |books| books.handle_lost(&mut BooksAlone),
                |books| books.handle_lost(&mut BooksAlone),
            ),
            Books::Iex(_, _, pair) => pair.change(IexBooks::lose, IexBooks::lose),
            Books::Xdp(symbols, pair) => {
                symbols.lose(channel, next as u32);
                pair.change(|books| xdp::lose(books, channel), |books| xdp::lose(books, channel));
            }
        }
    }

    /// The numbering of a channel began anew, and its books with it.
    pub(super) fn restart(&mut self, channel: u8) {
        let instruments: Vec<u16> = match &mut self.books {
            Books::Itch(pair) => {
                pair.change(
                    |books| books.handle_restart(&mut BooksAlone),
                    |books| books.handle_restart(&mut BooksAlone),
                );
                (0..=u16::MAX).collect()
            }
            Books::Iex(symbols, _, pair) => {
                let instruments = symbols.restart(channel);
                pair.change(|books| books.restart(&instruments), |books| books.restart(&instruments));
                instruments
            }
            Books::Xdp(symbols, pair) => {
                pair.change(|books| xdp::restart(books, channel), |books| xdp::restart(books, channel));
                symbols.restart(channel).collect()
            }
        };
        self.state.forget(&instruments);
    }

    /// The channel of XDP on which a symbol is known, by its index.
    pub(super) fn channel_of(&self, index: u32) -> Option<u8> {
        match &self.books {
            Books::Xdp(symbols, _) => symbols.channel_of(index),
            _ => None,
        }
    }

    /// The whole of a symbol came beside a channel of XDP: true when its book was not whole and is now.
    pub(super) fn refresh(
        &mut self,
        session: &mut Session<'_>,
        meter: &InputMeter,
        channel: u8,
        refresh: &Refresh,
    ) -> bool {
        let Books::Xdp(symbols, pair) = &mut self.books else { return false };
        if self.is_ended || session.ended.is_some() {
            return false;
        }
        create_xdp(pair, session, meter, &self.calendar);
        let Some((cure, number, name)) = symbols.refresh(channel, refresh) else { return false };
        let mut is_whole = false;
        pair.change(
            |books| is_whole = xdp::heal(books, channel, &cure),
            |books| _ = xdp::heal(books, channel, &cure),
        );
        self.state.learn(session, number, name);
        is_whole
    }

    /// What a symbol index means was told beside a channel of XDP.
    pub(super) fn learn(
        &mut self,
        session: &mut Session<'_>,
        meter: &InputMeter,
        channel: u8,
        mapping: &[u8],
    ) {
        let Books::Xdp(symbols, pair) = &mut self.books else { return };
        create_xdp(pair, session, meter, &self.calendar);
        if let Some((number, name)) = symbols.learn(channel, mapping) {
            pair.change(
                |books| xdp::learn(books, channel, mapping),
                |books| xdp::learn(books, channel, mapping),
            );
            self.state.learn(session, number, name);
        }
    }

    /// Takes messages to the books and the tape; `framing` is what it took to find them.
    pub(super) fn apply(
        &mut self,
        session: &mut Session<'_>,
        run: &Run<'_>,
        meter: &InputMeter,
        framing: Duration,
    ) -> Result<(), ReplayError> {
        if self.is_ended || session.ended.is_some() {
            return Ok(());
        }
        if !self.is_midnight_known {
            self.learn_midnight(session.options, run);
        }
        session.tape.exporter.go_to(run.market);
        session.tape.exporter.count_from(&self.calendar);
        session.swap(&mut self.state);
        let applied = self.apply_here(session, run, meter, framing);
        session.swap(&mut self.state);
        applied
    }

    fn apply_here(
        &mut self,
        session: &mut Session<'_>,
        run: &Run<'_>,
        meter: &InputMeter,
        framing: Duration,
    ) -> Result<(), ReplayError> {
        let (number, rows) = (session.number, session.tape.exporter.rows());
        let source = Source { is_snapshot: run.is_snapshot, ..self.source() };
        let size = || book_size(session, meter);
        let place = |index| run.place(index);
        match &mut self.books {
            Books::Itch(pair) => {
                pair.create(
                    session,
                    || BookBuilder::new(size().empty()),
                    || BookBuilder::new(size().empty()),
                );
                let decode = |session: &mut Session<'_>, messages: &[&[u8]]| {
                    for message in messages {
                        // What is malformed is counted where it is named.
                        let _ = itch50::decode(message, &mut session.itch);
                    }
                };
                apply(session, &run.messages, source, pair, framing, decode, place)?;
            }
            Books::Iex(_, feed, _) if *feed != Feed::DeepPlus10 && session.tape.exporter.wants_orders() => {
                return Err(ReplayError::NoOrders { feed: feed.name() });
            }
            Books::Iex(symbols, feed, pair) => {
                pair.create(
                    session,
                    || IexBooks::new(*feed, size().empty()),
                    || IexBooks::new(*feed, size().empty()),
                );
                let begin = Instant::now();
                let mut messages = Vec::with_capacity(run.messages.len());
                for (Origin { channel, .. }, packet) in run.by_packet() {
                    messages.extend(packet.iter().map(|message| symbols.place(message, channel)));
                }
                let framing = framing + begin.elapsed();
                let decode = |session: &mut Session<'_>, messages: &[IexMessage<'_>]| {
                    messages.iter().for_each(|message| message.fold(&mut session.fold));
                };
                apply(session, &messages, source, pair, framing, decode, place)?;
            }
            Books::Xdp(symbols, pair) => {
                create_xdp(pair, session, meter, &source.calendar);
                let begin = Instant::now();
                let mut messages = Vec::with_capacity(run.messages.len());
                for (origin, packet) in run.by_packet() {
                    symbols.place(packet, &origin, &mut messages);
                }
                let framing = framing + begin.elapsed();
                let decode = |session: &mut Session<'_>, messages: &[XdpMessage<'_>]| {
                    messages.iter().for_each(|message| message.fold(&mut session.fold));
                };
                apply(session, &messages, source, pair, framing, decode, place)?;
            }
        }
        self.read += session.number - number;
        self.exported.add(&session.tape.exporter.rows().since(&rows));
        // The other markets go on to the end of their windows.
        if session.ended == Some(Ended::Window) {
            self.is_ended = true;
            session.ended = None;
        }
        Ok(())
    }

    fn source(&self) -> Source<'static> {
        let types = match self.kind {
            Kind::Itch => Types::Itch,
            Kind::Iex(_) => Types::Iex,
            Kind::Xdp(_) => Types::Xdp,
        };
        let depth = match self.kind {
            Kind::Iex(Feed::Tops15 | Feed::Tops16) => Depth::Partial { levels: Some(1) },
            _ => Depth::Full,
        };
        let info = RecordingInfo { time_base: self.calendar.base, depth, ..INFO };
        Source {
            format: Format::Pcap,
            types,
            info,
            calendar: self.calendar,
            symbols: &[],
            is_snapshot: false,
        }
    }

    /// What was found, when all is over.
    pub(super) fn finish(mut self, path: &Path, format: Format, session: &mut Session<'_>) -> FileReport {
        session.swap(&mut self.state);
        if self.is_ended && session.ended.is_none() {
            session.ended = Some(Ended::Window);
        }
        let source = self.source();
        let mut report = match self.books {
            Books::Itch(pair) => finish::<&[u8], _, _>(path, source, session, *pair, true),
            // Times of different symbols and types are in no order.
            Books::Iex(_, _, pair) => finish::<IexMessage<'_>, _, _>(path, source, session, *pair, false),
            // Each channel has a clock of its own.
            Books::Xdp(_, pair) => finish::<XdpMessage<'_>, _, _>(path, source, session, *pair, false),
        };
        session.swap(&mut self.state);
        report.format = format;
        report.messages_read = self.read;
        report.exported = self.exported;
        report
    }
}

/// Room for every instrument that a number can name.
fn book_size(session: &Session<'_>, meter: &InputMeter) -> BookSize {
    BookSize::of_file(session.options, meter, InstrumentId(u16::MAX))
}

/// Makes the books of XDP, where there are none yet and they are wanted.
fn create_xdp(
    pair: &mut Pair<XdpBooks<Indexed<FastBooks>>, XdpBooks<Indexed<PlainBooks>>>,
    session: &Session<'_>,
    meter: &InputMeter,
    calendar: &Calendar,
) {
    let (size, midnight) = (|| book_size(session, meter), midnight(calendar));
    pair.create(session, || xdp::books(size().empty(), midnight), || xdp::books(size().empty(), midnight));
}

/// The beginning of the session's day.
fn midnight(calendar: &Calendar) -> Nanos {
    let day = calendar.date.map_or(0, Date::day);
    Nanos(calendar.zone.utc_ns(day * NS_PER_DAY))
}

/// Takes messages to decoding, books and tape.
fn apply<M, F, P>(
    session: &mut Session<'_>,
    messages: &[M],
    source: Source<'_>,
    pair: &mut Pair<F, P>,
    framing: Duration,
    decode: impl FnOnce(&mut Session<'_>, &[M]),
    place: impl Fn(usize) -> String,
) -> Result<(), ReplayError>
where
    M: RecordedMessage,
    F: ApplyMessages<M>,
    P: ApplyMessages<M, Books = Indexed<PlainBooks>>,
{
    let wanted = session.wanted(messages, &source)?;
    let messages = &messages[..wanted];
    let begin = Instant::now();
    decode(session, messages);
    session.decode.record(framing + begin.elapsed(), messages.len());
    session.apply(messages, source, &mut pair.books, &mut pair.twin, framing, place)
}

/// The report of some books.
fn finish<M, F, P>(
    path: &Path,
    source: Source<'_>,
    session: &mut Session<'_>,
    pair: Pair<F, P>,
    is_ordered_by_time: bool,
) -> FileReport
where
    F: ApplyMessages<M>,
    P: ApplyMessages<M, Books = Indexed<PlainBooks>>,
{
    let Pair { books, twin } = pair;
    let judgement = Judgement { is_full_depth: true, is_ordered_by_time, has_books: books.is_some() };
    let names = |instrument| session.tape.name(instrument);
    let books = books.as_ref().map(ApplyMessages::books);
    let twin: Option<TwinReport> = twin.zip(books).map(|(twin, books)| twin.finish::<M>(books, &names));
    FileReport::of(path, source, session, books, twin, None, judgement)
}
