//! TOPS, DEEP and DEEP+ of IEX, in captures of IEX-TP, whose segments name their feed, channel and session.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use tickpath_book::{BooksById, OrderGroup};
use tickpath_feed::{IgnoreUpdates, MessageBooks, iex};
use tickpath_iex::{
    Feed, Fields, Header, Message, OperationalHalt, Segment, SystemEventCode as Stage, decode,
};
use tickpath_nyse::SendTime;
use tickpath_types::{InstrumentId, Nanos, Sequence, Symbol, SystemEventCode, TradingState};

use crate::books::{BookPair, in_both};
use crate::captures::{
    ChannelLine, Delivery, MessageRun, Origin, PacketFormat, PacketNumbers, PacketProtocol, PacketReader,
    Recordings, is_countable, state_of,
};
use crate::digest::Checksums;
use crate::error::{Error, Result};
use crate::listener::Listener;
use crate::protocol::{RecordedProtocol, Source};
use crate::protocol_name::Protocol;
use crate::selection::Tables;
use crate::updates::Updates;
use crate::view::{MessageView, TradeInfo};
use crate::{Depth, Packet, RecordingInfo, TimeBase};

/// Byte range of the time, in every message.
const TIME: std::ops::Range<usize> = 2..10;
/// Byte range of the symbol, in all messages except System Event.
const SYMBOL: std::ops::Range<usize> = 10..18;

/// Registry entry of the IEX feeds.
pub(crate) const fn packets<L: Listener>() -> PacketFormat<L> {
    PacketFormat {
        protocol: Iex::PROTOCOL,
        is_datagram: is_iex,
        is_stream: |_, _| false,
        reader: |_| Box::new(IexPackets::default()),
    }
}

/// A message, with the number and state of its symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IexMessage<'a> {
    bytes: &'a [u8],
    /// Number of the message's symbol; 0 for a message without one.
    instrument: u16,
    /// True for the first message about the symbol.
    is_first: bool,
    /// Trading state of the symbol after a status message; `None` for other messages.
    state: Option<TradingState>,
    feed: Feed,
}

/// Trading state of a symbol: the published one, and whether IEX itself has halted the symbol.
#[derive(Clone, Copy, Default)]
struct SymbolState {
    published: Option<TradingState>,
    is_halted_here: bool,
    /// Channel of the symbol's first message.
    channel: u8,
}

/// One recording of a feed: numbers symbols in the order of their first message, and tracks trading halts.
pub(crate) struct Iex {
    feed: Feed,
    by_symbol: FxHashMap<[u8; 8], u16>,
    /// State of each symbol, indexed by its number.
    known: Vec<SymbolState>,
}

impl Iex {
    fn new(feed: Feed) -> Iex {
        Iex { feed, by_symbol: FxHashMap::default(), known: vec![SymbolState::default()] }
    }

    /// Returns a message with the number and trading state of its symbol.
    #[inline]
    fn message<'a>(&mut self, bytes: &'a [u8], channel: u8) -> IexMessage<'a> {
        let feed = self.feed;
        let mut message = IexMessage { bytes, instrument: 0, is_first: false, state: None, feed };
        let Some((&[message_type], symbol)) = bytes.first_chunk().zip(bytes.get(SYMBOL)) else {
            return message;
        };
        if message_type == b'S' || !feed.has_message_type(message_type) {
            return message;
        }
        let symbol: [u8; 8] = symbol.try_into().expect("eight bytes");
        (message.instrument, message.is_first) = match self.by_symbol.get(&symbol) {
            Some(number) => (*number, false),
            None => match u16::try_from(self.known.len()) {
                Ok(number) => {
                    self.by_symbol.insert(symbol, number);
                    self.known.push(SymbolState { channel, ..SymbolState::default() });
                    (number, true)
                }
                Err(_) => (0, false),
            },
        };
        if matches!(message_type, b'H' | b'O') {
            message.state = self.update_state(message.instrument, bytes);
        }
        message
    }

    /// Resets the state of a channel's symbols when the channel's numbering restarts. Returns their numbers,
    /// which do not change.
    fn reset_channel(&mut self, channel: u8) -> Vec<u16> {
        let known = (0..).zip(&mut self.known).skip(1).filter(|(_, known)| known.channel == channel);
        known
            .map(|(number, known)| {
                *known = SymbolState { channel, ..SymbolState::default() };
                number
            })
            .collect()
    }

    fn update_state(&mut self, instrument: u16, bytes: &[u8]) -> Option<TradingState> {
        let known = &mut self.known[usize::from(instrument)];
        match Message::parse(bytes) {
            Ok(Message::TradingStatus(m)) => known.published = m.status.state(),
            Ok(Message::OperationalHaltStatus(m)) => known.is_halted_here = m.halt == OperationalHalt::HALTED,
            _ => return None,
        }
        if known.is_halted_here { Some(TradingState::Halted) } else { known.published }
    }
}

impl RecordedProtocol for Iex {
    type Message<'a> = IexMessage<'a>;
    /// The books use the symbol numbers of [`Iex`].
    type Books<B: BooksById> = iex::BookBuilder<B>;
    /// Messages about different symbols, or of different types, need not be in order of time.
    const IS_ORDERED_BY_TIME: bool = false;

    fn info(&self) -> RecordingInfo {
        let depth = match self.feed {
            Feed::Tops15 | Feed::Tops16 => Depth::Partial { levels: Some(1) },
            Feed::Deep10 | Feed::DeepPlus10 => Depth::Full,
        };
        RecordingInfo { time_base: TimeBase::UnixEpoch, depth, ..RecordingInfo::ORDER_BY_ORDER }
    }

    /// Always true: even TOPS, which covers only the best level, publishes every change of it.
    fn is_full_depth(&self) -> bool {
        true
    }

    fn books<B: BooksById>(&self, empty: B, _midnight: Nanos) -> iex::BookBuilder<B> {
        iex::BookBuilder::new(self.feed, empty)
    }

    fn orders<B: BooksById>(books: &iex::BookBuilder<B>) -> &B {
        books.books()
    }

    #[inline(never)]
    fn apply<B: BooksById>(
        books: &mut iex::BookBuilder<B>,
        first: u64,
        messages: &[IexMessage<'_>],
        updates: &mut Updates,
    ) {
        let mut start = 0;
        for group in messages.chunks(OrderGroup::LEN_MAX) {
            let before = *books.counters();
            for (at, message) in (start..).zip(group) {
                if message.is_first
                    && let Some(symbol) = message.bytes.get(SYMBOL).and_then(|bytes| bytes.try_into().ok())
                {
                    books.name(Symbol(symbol));
                }
                let (sequence, next) = (Sequence(first + at as u64), messages.get(at + 1));
                let waiting = next.map(|next| next.bytes);
                books.handle_next(sequence, message.bytes, waiting, updates);
            }
            updates.record(&before, books.counters(), || start..=start + group.len() - 1);
            start += group.len();
        }
    }

    fn check_tables(&self, tables: Tables<bool>) -> Result {
        match self.feed {
            Feed::DeepPlus10 => Ok(()),
            feed if tables.orders => Err(Error::NoOrders { feed: feed.name() }),
            _ => Ok(()),
        }
    }

    #[inline]
    fn ts_ns(message: &IexMessage<'_>) -> u64 {
        message.bytes.get(TIME).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    #[inline]
    fn view<'s>(message: &'s IexMessage<'_>, number: u64, _source: Source<'s>) -> MessageView<'s> {
        let IexMessage { bytes, instrument, feed, .. } = *message;
        let code = bytes.first().copied().unwrap_or_default();
        let mut view = MessageView::new(number, Iex::ts_ns(message), instrument, code);
        if bytes.is_empty() {
            return view;
        }
        let Ok(parsed) = Message::parse(bytes) else {
            return MessageView { is_malformed: true, ..view };
        };
        if !feed.has_message_type(code) {
            view.instrument = 0;
            return view;
        }
        view.symbol = bytes.get(SYMBOL).filter(|_| instrument != 0);
        view.state = message.state;
        match parsed {
            Message::SystemEvent(m) => view.stage = stage(m.event),
            Message::AddOrder(m) => {
                view.order.is_add = true;
                view.order.price = Some(m.price.get());
            }
            Message::OrderModify(m) => {
                view.order.must_rest = true;
                view.order.price = Some(m.price.get());
            }
            Message::OrderDelete(_) => view.order.must_rest = true,
            Message::OrderExecuted(m) => {
                let executed = TradeInfo::new(Some(m.price.get()), m.size.get(), "executed");
                view.execute(TradeInfo { order_id: m.order_id.get().0, ..executed });
            }
            Message::PriceLevelUpdate(m) => view.order.price = Some(m.price.get()),
            Message::TradeReport(m) => {
                // In DEEP+, a Trade Report is a trade between non-displayed orders; in the other feeds, any
                // trade.
                let kind = if feed == Feed::DeepPlus10 { "hidden" } else { "trade" };
                view.trade = Some(TradeInfo::new(Some(m.price.get()), m.size.get(), kind));
            }
            _ => {}
        }
        view
    }

    #[inline]
    fn digest(message: &IexMessage<'_>, checksums: &mut Checksums) {
        // Ignore errors: `view` reports malformed messages.
        let _ = decode(message.bytes, &mut Fields(|fields: &[u64]| checksums.others.fields(fields)));
    }

    fn type_name(code: u8) -> Option<&'static str> {
        Some(match code {
            b'S' => "System Event",
            b'D' => "Security Directory",
            b'H' => "Trading Status",
            b'I' => "Retail Liquidity Indicator",
            b'O' => "Operational Halt Status",
            b'P' => "Short Sale Price Test Status",
            b'E' => "Security Event",
            b'Q' => "Quote Update",
            b'8' => "Price Level Update, buy",
            b'5' => "Price Level Update, sell",
            b'T' => "Trade Report",
            b'B' => "Trade Break",
            b'X' => "Official Price",
            b'A' => "Auction Information",
            b'a' => "Add Order",
            b'M' => "Order Modify",
            b'R' => "Order Delete",
            b'L' => "Order Executed",
            b'C' => "Clear Book",
            _ => return None,
        })
    }
}

fn stage(event: Stage) -> Option<SystemEventCode> {
    Some(match event {
        Stage::START_OF_MESSAGES => SystemEventCode::StartOfMessages,
        Stage::START_OF_SYSTEM_HOURS => SystemEventCode::StartOfSystemHours,
        Stage::START_OF_REGULAR_HOURS => SystemEventCode::StartOfMarketHours,
        Stage::END_OF_REGULAR_HOURS => SystemEventCode::EndOfMarketHours,
        Stage::END_OF_SYSTEM_HOURS => SystemEventCode::EndOfSystemHours,
        Stage::END_OF_MESSAGES => SystemEventCode::EndOfMessages,
        _ => return None,
    })
}

/// True for a segment of a known feed. The header identifies the feed even without messages.
fn is_iex(payload: &[u8], _is_requested: bool) -> bool {
    Segment::parse(payload).is_ok_and(|segment| segment.feed().is_some())
}

impl PacketProtocol for Iex {
    const PROTOCOL: Protocol = Protocol::new("iex", "TOPS, DEEP and DEEP+ of IEX");

    fn messages_of<'r, 'a>(&mut self, run: &'r MessageRun<'a>) -> Cow<'r, [IexMessage<'a>]> {
        let mut messages = Vec::with_capacity(run.messages.len());
        for (Origin { channel, .. }, packet) in run.by_packet() {
            messages.extend(packet.iter().map(|message| self.message(message, channel)));
        }
        Cow::Owned(messages)
    }

    fn unpack(payload: &[u8]) -> (SendTime, Vec<&[u8]>) {
        let segment = Segment::parse(payload).expect("it was read before it was held");
        (SendTime::default(), segment.messages().map(|(_, message)| message).collect())
    }

    fn handle_loss(&mut self, books: &mut BookPair<Iex>, _channel: u8, _next: u64) {
        in_both!(books, books => books.handle_lost(&mut IgnoreUpdates));
    }

    fn restart(&mut self, books: &mut BookPair<Iex>, channel: u8) -> Vec<u16> {
        let instruments = self.reset_channel(channel);
        for number in &instruments {
            in_both!(books, books => books.restart(InstrumentId(*number), &mut IgnoreUpdates));
        }
        instruments
    }
}

/// Key of a channel: its feed and its channel number.
type Key = (Feed, u32);

/// Packet reader of IEX-TP.
#[derive(Default)]
struct IexPackets {
    /// Feed, channel and line of the latest segment of each flow.
    flows: Vec<Option<(Key, ChannelLine)>>,
    channels: FxHashMap<Key, usize>,
    /// Index of the recording of each feed.
    feeds: FxHashMap<Feed, usize>,
}

impl IexPackets {
    /// Returns the channel and line of a segment, and adds them if they are new; `None` at the maximum number
    /// of channels.
    fn find_line<L: Listener>(
        &mut self,
        flow: usize,
        key: Key,
        packet: &Packet<'_>,
        out: &mut Recordings<L>,
    ) -> Option<ChannelLine> {
        let (feed, channel) = key;
        let feeds = &mut self.feeds;
        let add = |out: &mut Recordings<L>| {
            let recording = *feeds
                .entry(feed)
                .or_insert_with(|| out.add(format!("IEX {}", feed.name()), Iex::new(feed), packet.ts_ns));
            let known = out.channels.iter().filter(|entry| entry.recording == recording);
            let ordinal = u8::try_from(known.count()).unwrap_or(u8::MAX);
            out.add_channel(recording, ordinal, format!("channel {channel}"))
        };
        let channel_line = out.find_line(&mut self.channels, key, packet.dst, add)?;
        self.flows[flow] = Some((key, channel_line));
        Some(channel_line)
    }
}

impl<L: Listener> PacketReader<L> for IexPackets {
    fn datagram<'a>(&mut self, flow: usize, packet: &Packet<'a>, out: &mut Delivery<'_, 'a, L>) -> Result {
        let last = *state_of(&mut self.flows, flow);
        let segment = Segment::parse(packet.payload).ok();
        let segment = segment.filter(|segment| is_countable(segment.sequence(), segment.message_count()));
        let Some((segment, feed)) = segment.and_then(|segment| Some((segment, segment.feed()?))) else {
            out.count_malformed(flow, last.map(|(_, channel_line)| channel_line));
            return Ok(());
        };
        let key = (feed, segment.channel());
        let known = last.filter(|(known, _)| *known == key).map(|(_, channel_line)| channel_line);
        let Some(channel_line) = known.or_else(|| self.find_line(flow, key, packet, out)) else {
            return Ok(());
        };
        let entry = &mut out.channels[channel_line.channel];
        entry.channel.count_packet(channel_line.line);
        let (first, count) = (segment.sequence().0, u64::from(segment.message_count()));
        let (session, sent) = (segment.session(), segment.send_time().0);
        let (known, latest) = entry.session;
        if let Some(next) = entry.channel.next() {
            // Reject a packet of an earlier session, which the other line may still deliver.
            if session != known && sent <= latest {
                entry.channel.report.malformed += 1;
                return Ok(());
            }
            let restarts = segment.is_first() && sent > latest && next > first + count;
            if session != known || restarts {
                // The session begins with message 1: messages before this segment count as missing.
                out.restart(channel_line.channel, 1)?;
            }
        }
        out.channels[channel_line.channel].session = (session, latest.max(sent));
        if count == 0 {
            return out.heartbeat(channel_line.channel, first, packet.ts_ns);
        }
        let numbers = PacketNumbers { first, count, header_len: Header::LEN, sent: SendTime::default() };
        out.take(channel_line, numbers, packet, segment.messages().map(|(_, message)| message))
    }
}
