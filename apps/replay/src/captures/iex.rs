//! Messages of IEX as books and tape take them.

use rustc_hash::FxHashMap;
use tickpath_book::BooksById;
use tickpath_feed::{BooksAlone, LOOK_AHEAD_LEN, iex};
use tickpath_iex::{Feed, Fields, Message, OperationalHalt, SystemEventCode as Stage, decode};
use tickpath_types::{InstrumentId, Sequence, Symbol, SystemEventCode, TradingState};

use crate::apply::{ApplyMessages, Updates};
use crate::fold::Fold;
use crate::message::{RecordedMessage, Source, blank, see_execution, trade};
use crate::tape::{Seen, SeenTrade};

/// Where every message has its time, ...
const TIME: std::ops::Range<usize> = 2..10;
/// ... and all but the System Event their symbol.
const SYMBOL: std::ops::Range<usize> = 10..18;

/// A message with what its place in the recording tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct IexMessage<'a> {
    bytes: &'a [u8],
    /// The number of its symbol, 0 of a message about none.
    instrument: u16,
    /// It is the first about its symbol.
    is_first: bool,
    /// The state of trading that follows from it.
    state: Option<TradingState>,
    feed: Feed,
}

/// What is known of a symbol.
#[derive(Clone, Copy, Default)]
struct Known {
    told: Option<TradingState>,
    is_halted_here: bool,
    /// The channel that named it first.
    channel: u8,
}

/// Numbers symbols in the order of their first naming, and follows what halts them.
pub(super) struct IexSymbols {
    feed: Feed,
    by_symbol: FxHashMap<[u8; 8], u16>,
    /// Index by number.
    known: Vec<Known>,
}

impl IexSymbols {
    pub(super) fn new(feed: Feed) -> IexSymbols {
        IexSymbols { feed, by_symbol: FxHashMap::default(), known: vec![Known::default()] }
    }

    /// A message in its place.
    #[inline]
    pub(super) fn place<'a>(&mut self, bytes: &'a [u8], channel: u8) -> IexMessage<'a> {
        let feed = self.feed;
        let mut message = IexMessage { bytes, instrument: 0, is_first: false, state: None, feed };
        let Some((&[message_type], symbol)) = bytes.first_chunk().zip(bytes.get(SYMBOL)) else {
            return message;
        };
        if message_type == b'S' || !feed.lists(message_type) {
            return message;
        }
        let symbol: [u8; 8] = symbol.try_into().expect("eight bytes");
        (message.instrument, message.is_first) = match self.by_symbol.get(&symbol) {
            Some(number) => (*number, false),
            None => match u16::try_from(self.known.len()) {
                Ok(number) => {
                    self.by_symbol.insert(symbol, number);
                    self.known.push(Known { channel, ..Known::default() });
                    (number, true)
                }
                Err(_) => (0, false),
            },
        };
        if matches!(message_type, b'H' | b'O') {
            message.state = self.follow(message.instrument, bytes);
        }
        message
    }

    /// The numbering of a channel began anew: nothing is known of its symbols but their numbers, which are these.
    pub(super) fn restart(&mut self, channel: u8) -> Vec<u16> {
        let known = (0..).zip(&mut self.known).skip(1).filter(|(_, known)| known.channel == channel);
        known
            .map(|(number, known)| {
                *known = Known { channel, ..Known::default() };
                number
            })
            .collect()
    }

    fn follow(&mut self, instrument: u16, bytes: &[u8]) -> Option<TradingState> {
        let known = &mut self.known[usize::from(instrument)];
        match Message::parse(bytes) {
            Ok(Message::TradingStatus(m)) => known.told = m.status.state(),
            Ok(Message::OperationalHaltStatus(m)) => known.is_halted_here = m.halt == OperationalHalt::HALTED,
            _ => return None,
        }
        if known.is_halted_here { Some(TradingState::Halted) } else { known.told }
    }
}

impl IexMessage<'_> {
    /// Takes all its fields into a checksum.
    #[inline]
    pub(super) fn fold(&self, fold: &mut Fold) {
        // What is malformed is counted where it is named.
        let _ = decode(self.bytes, &mut Fields(|fields: &[u64]| fold.fields(fields)));
    }
}

impl RecordedMessage for IexMessage<'_> {
    #[inline]
    fn ts_ns(&self) -> u64 {
        self.bytes.get(TIME).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    fn see<'s>(&'s self, number: u64, _source: Source<'s>) -> Seen<'s> {
        let code = self.bytes.first().copied().unwrap_or_default();
        let mut seen = blank(number, self.ts_ns(), self.instrument, code);
        if self.bytes.is_empty() {
            return seen;
        }
        let Ok(message) = Message::parse(self.bytes) else {
            return Seen { is_malformed: true, ..seen };
        };
        if !self.feed.lists(code) {
            seen.instrument = 0;
            return seen;
        }
        seen.symbol = self.bytes.get(SYMBOL).filter(|_| self.instrument != 0);
        seen.state = self.state;
        match message {
            Message::SystemEvent(m) => seen.stage = stage(m.event),
            Message::AddOrder(m) => {
                seen.is_add = true;
                seen.order_price = Some(m.price.get());
            }
            Message::OrderModify(m) => {
                seen.needs_order = true;
                seen.order_price = Some(m.price.get());
            }
            Message::OrderDelete(_) => seen.needs_order = true,
            Message::OrderExecuted(m) => {
                let executed = trade(Some(m.price.get()), m.size.get(), "executed");
                see_execution(&mut seen, SeenTrade { order_id: m.order_id.get().0, ..executed });
            }
            Message::PriceLevelUpdate(m) => seen.order_price = Some(m.price.get()),
            Message::TradeReport(m) => {
                // Of DEEP+ between orders that are not displayed; of the others any.
                let kind = if self.feed == Feed::DeepPlus10 { "hidden" } else { "trade" };
                seen.trade = Some(trade(Some(m.price.get()), m.size.get(), kind));
            }
            _ => {}
        }
        seen
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

/// The feed's books, whose numbers of symbols are those of [`IexSymbols`].
pub(super) struct IexBooks<B> {
    /// Taken out only while a symbol is entered.
    builder: Option<iex::BookBuilder<B>>,
}

impl<B: BooksById> IexBooks<B> {
    pub(super) fn new(feed: Feed, books: B) -> IexBooks<B> {
        IexBooks { builder: Some(iex::BookBuilder::new(feed, books)) }
    }

    /// The books of these instruments are empty, and nothing is known of them.
    pub(super) fn restart(&mut self, instruments: &[u16]) {
        for number in instruments {
            self.builder_mut().restart(InstrumentId(*number), &mut BooksAlone);
        }
    }

    pub(super) fn lose(&mut self) {
        self.builder_mut().handle_lost(&mut BooksAlone);
    }

    fn builder_mut(&mut self) -> &mut iex::BookBuilder<B> {
        self.builder.as_mut().expect("it is put back at once")
    }

    #[cold]
    fn enter(&mut self, message: &[u8]) {
        if let Some(symbol) = message.get(SYMBOL).and_then(|bytes| bytes.try_into().ok()) {
            self.builder = self.builder.take().map(|builder| builder.naming(&[Symbol(symbol)]));
        }
    }
}

impl<B: BooksById> ApplyMessages<IexMessage<'_>> for IexBooks<B> {
    type Books = B;

    #[inline(never)]
    fn apply(&mut self, first: u64, messages: &[IexMessage<'_>], updates: &mut Updates) {
        let mut start = 0;
        for group in messages.chunks(LOOK_AHEAD_LEN) {
            let before = *self.builder_mut().counters();
            for (at, message) in (start..).zip(group) {
                if message.is_first {
                    self.enter(message.bytes);
                }
                let (sequence, next) = (Sequence(first + at as u64), messages.get(at + 1));
                let waiting = next.map(|next| next.bytes);
                self.builder_mut().handle_next(sequence, message.bytes, waiting, updates);
            }
            updates.note(&before, self.builder_mut().counters(), || start..=start + group.len() - 1);
            start += group.len();
        }
    }

    fn books(&self) -> &B {
        self.builder.as_ref().expect("it is put back at once").books()
    }
}

/// What a type of message is called.
pub(crate) const fn type_name(code: u8) -> &'static str {
    match code {
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
        _ => "Unknown type",
    }
}
