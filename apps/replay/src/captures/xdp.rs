//! Messages of NYSE XDP as books and tape take them.

use rustc_hash::FxHashMap;
use tickpath_book::BooksById;
use tickpath_feed::xdp::{self, Channel, trading_state};
use tickpath_feed::{BooksAlone, LOOK_AHEAD_LEN};
use tickpath_nyse::{
    Fields, Message, PriceScale, PrintableFlag, SendTime, SequenceNumberReset, SourceTimeReference,
    SymbolIndexMapping, decode,
};
use tickpath_types::{BookHealth, Nanos, Price, Qty, Sequence};

use super::market::Origin;
use super::refresh::{Refresh, Waits, behind, each};
use crate::apply::{ApplyMessages, Updates};
use crate::fold::Fold;
use crate::message::{RecordedMessage, Source, blank, see_execution, trade};
use crate::tape::{Seen, SeenTrade};

const NS_PER_SEC: u64 = 1_000_000_000;
/// Where messages have their time and symbol index, ...
const WITHIN_SECOND: usize = 4;
const INDEX: usize = 8;
/// ... and those with the whole time.
const INDEX_OF_FULL_TIME: usize = 12;
/// Where a time reference has its second.
const SECOND: usize = 12;
/// Where a mapping has the symbol and its market, and a reset the product.
const SYMBOL: std::ops::Range<usize> = 8..19;
const MARKET: usize = 20;
const PRODUCT: usize = 12;
const SYMBOL_CLEAR: u16 = tickpath_nyse::SymbolClear::TYPE;

/// A message with what its place in the recording tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct XdpMessage<'a> {
    bytes: &'a [u8],
    channel: Channel,
    /// When its packet was sent, of the first message of a packet.
    sent: Option<SendTime>,
    ts_ns: u64,
    /// The number of its symbol, 0 while none is mapped and of a message about none.
    instrument: u16,
    scale: PriceScale,
    /// It is about an order and its symbol is not known.
    is_unmapped: bool,
}

/// What is known of a symbol.
#[derive(Clone, Copy)]
struct Mapped {
    number: u16,
    scale: PriceScale,
    channel: u8,
}

/// Numbers symbols in the order of their mappings, follows the seconds of each channel, and keeps what refreshes need.
#[derive(Default)]
pub(super) struct XdpSymbols {
    by_index: FxHashMap<u32, Mapped>,
    /// By channel.
    clocks: FxHashMap<u8, Clock>,
    waits: Waits,
}

/// What time it is on a channel.
#[derive(Clone, Copy, Default)]
struct Clock {
    /// The second of its last time reference.
    second: Option<u32>,
    /// The time of its last message that has one, in nanoseconds since the Unix epoch.
    last_ns: u64,
}

impl Clock {
    /// The time of a message, and the index of the symbol that it is about. What has no time of its own is of the time of
    /// the message before; packets are sent later than what is in them happened.
    #[inline]
    fn place(&mut self, bytes: &[u8], message_type: u16, sent: SendTime) -> (u64, Option<u32>) {
        if message_type == SourceTimeReference::TYPE && bytes.len() >= SourceTimeReference::LEN {
            let second = word32(bytes, SECOND);
            self.second = Some(second);
            self.last_ns = self.last_ns.max(u64::from(second) * NS_PER_SEC);
        }
        let (ts_ns, index) = time_and_index(bytes, message_type, self.second, sent);
        match ts_ns {
            Some(ts_ns) => self.last_ns = ts_ns,
            None if self.last_ns == 0 => self.last_ns = u64::from(sent.secs) * NS_PER_SEC,
            None => {}
        }
        (self.last_ns, index)
    }
}

/// What makes the book of a symbol whole.
pub(super) struct Cure<'a> {
    refresh: &'a Refresh,
    /// What came behind the loss.
    held: Vec<u8>,
}

impl XdpSymbols {
    /// The messages of a packet in their places.
    pub(super) fn place<'a>(
        &mut self,
        messages: &[&'a [u8]],
        origin: &Origin,
        out: &mut Vec<XdpMessage<'a>>,
    ) {
        let channel = Channel(origin.channel);
        let mut sent = Some(origin.sent);
        let mut clock = self.clocks.get(&origin.channel).copied().unwrap_or_default();
        for bytes in messages {
            let message_type = word16(bytes, 2);
            let (ts_ns, index) = clock.place(bytes, message_type, origin.sent);
            let mapped = match (message_type, index) {
                (3, Some(index)) => self.map(bytes, index, origin.channel),
                (_, Some(index)) => self.by_index.get(&index).copied(),
                (_, None) => None,
            };
            if let Some(index) = index.filter(|_| mapped.is_none() || !self.waits.is_empty()) {
                match message_type {
                    // It says that nothing rests, and that the symbol's numbers go on from here.
                    SYMBOL_CLEAR if mapped.is_some() => self.waits.forget(index),
                    _ => self.waits.hold(index, origin.channel, bytes, mapped.is_some()),
                }
            }
            out.push(XdpMessage {
                bytes,
                channel,
                sent: sent.take(),
                ts_ns,
                instrument: mapped.map_or(0, |mapped| mapped.number),
                scale: mapped.map_or(PriceScale::FOUR_DECIMALS, |mapped| mapped.scale),
                is_unmapped: index.is_some() && mapped.is_none(),
            });
        }
        self.clocks.insert(origin.channel, clock);
    }

    /// Takes what a symbol index means, as the books do.
    #[cold]
    fn map(&mut self, bytes: &[u8], index: u32, channel: u8) -> Option<Mapped> {
        let Ok(Message::SymbolIndexMapping(mapping)) = Message::parse(bytes) else { return None };
        let scale = PriceScale::new(mapping.price_scale_code);
        let known = self.by_index.get(&index).map(|mapped| mapped.number);
        let number = known.or_else(|| u16::try_from(self.by_index.len() + 1).ok());
        let mapped = Mapped { number: number?, scale: scale?, channel };
        self.by_index.insert(index, mapped);
        Some(mapped)
    }

    /// What came before this number of a channel is not in the capture.
    pub(super) fn lose(&mut self, channel: u8, next: u32) {
        let symbols = self.by_index.iter().filter(|(_, mapped)| mapped.channel == channel);
        self.waits.lose(channel, next, symbols.map(|(index, _)| *index));
    }

    /// The numbers of a channel begin again: the numbers of its instruments.
    pub(super) fn restart(&mut self, channel: u8) -> impl Iterator<Item = u16> {
        self.waits.restart(channel);
        self.clocks.remove(&channel);
        self.by_index.values().filter(move |mapped| mapped.channel == channel).map(|mapped| mapped.number)
    }

    /// The channel of a symbol: that which mapped it, or on which it was heard.
    pub(super) fn channel_of(&self, index: u32) -> Option<u8> {
        let mapped = self.by_index.get(&index).map(|mapped| mapped.channel);
        mapped.or_else(|| self.waits.channel_of(index))
    }

    /// Takes a refresh on a channel: what it cures, if it is needed, and the number and the name of its instrument.
    pub(super) fn refresh<'a>(
        &mut self,
        channel: u8,
        refresh: &'a Refresh,
    ) -> Option<(Cure<'a>, u16, &'a [u8])> {
        let is_mapped = self.by_index.contains_key(&refresh.index);
        let held = self.waits.take(channel, refresh, is_mapped)?;
        let mut name: &[u8] = &[];
        for mapping in of_symbol(refresh).filter(|message| is_type(message, SymbolIndexMapping::TYPE)) {
            self.map(mapping, refresh.index, channel);
            name = mapping.get(SYMBOL).map(until_nul).unwrap_or_default();
        }
        let number = self.by_index.get(&refresh.index)?.number;
        Some((Cure { refresh, held }, number, name))
    }

    /// Takes the mapping of a symbol that a refresh consists of; its number and name when it was not known.
    pub(super) fn learn<'a>(&mut self, channel: u8, mapping: &'a [u8]) -> Option<(u16, &'a [u8])> {
        let index = index_of(mapping).filter(|index| !self.by_index.contains_key(index))?;
        let mapped = self.map(mapping, index, channel)?;
        Some((mapped.number, mapping.get(SYMBOL).map(until_nul)?))
    }
}

/// The messages of a refresh; those about other symbols do not belong there.
fn of_symbol(refresh: &Refresh) -> impl Iterator<Item = &[u8]> {
    each(&refresh.messages).filter(|message| index_of(message) == Some(refresh.index))
}

fn is_type(message: &[u8], message_type: u16) -> bool {
    word16(message, 2) == message_type
}

/// The index of the symbol that a message is about.
pub(super) fn index_of(message: &[u8]) -> Option<u32> {
    time_and_index(message, word16(message, 2), None, SendTime::default()).1
}

/// The market that a message names: by its product in a reset, by itself in a mapping.
pub(super) fn market_of(message: &[u8]) -> Option<u16> {
    match word16(message, 2) {
        SymbolIndexMapping::TYPE if message.len() >= MARKET + 2 => Some(word16(message, MARKET)),
        SequenceNumberReset::TYPE => match message.get(PRODUCT)? {
            11 => Some(1),
            59 => Some(9),
            109 => Some(10),
            157 => Some(3),
            209 => Some(11),
            _ => None,
        },
        _ => None,
    }
}

/// What a market is called.
pub(super) fn market_name(market: Option<u16>) -> String {
    let name = match market {
        None | Some(1) => "NYSE",
        Some(3) => "NYSE Arca",
        Some(9) => "NYSE American",
        Some(10) => "NYSE National",
        Some(11) => "NYSE Texas",
        Some(other) => return format!("NYSE market {other}, XDP Integrated Feed"),
    };
    format!("{name} XDP Integrated Feed")
}

/// The time of a message, if it has one, and the index of the symbol that it is about.
#[inline]
fn time_and_index(
    bytes: &[u8],
    message_type: u16,
    second: Option<u32>,
    sent: SendTime,
) -> (Option<u64>, Option<u32>) {
    let at = |seconds: u32, ns: u32| Some(u64::from(seconds) * NS_PER_SEC + u64::from(ns));
    match message_type {
        100..=104 | 110..=114 if bytes.len() >= INDEX + 4 => {
            let ns = word32(bytes, WITHIN_SECOND);
            // Before the first reference: the second in which the packet was sent, or the one before.
            let before = || sent.secs - u32::from(ns > sent.nanos && sent.secs > 0);
            (at(second.unwrap_or_else(before), ns), Some(word32(bytes, INDEX)))
        }
        32 | 34 | 105 | 106 | 223 if bytes.len() >= INDEX_OF_FULL_TIME + 4 => {
            (at(word32(bytes, 4), word32(bytes, 8)), Some(word32(bytes, INDEX_OF_FULL_TIME)))
        }
        3 if bytes.len() >= 8 => (None, Some(word32(bytes, 4))),
        1 if bytes.len() >= 12 => (at(word32(bytes, 4), word32(bytes, 8)), None),
        _ => (None, None),
    }
}

fn word16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |pair| u16::from_le_bytes([pair[0], pair[1]]))
}

fn word32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word))
}

impl XdpMessage<'_> {
    /// Takes all its fields into a checksum.
    #[inline]
    pub(super) fn fold(&self, fold: &mut Fold) {
        // What is malformed is counted where it is named.
        let _ = decode(self.bytes, &mut Fields(|fields: &[u64]| fold.fields(fields)));
    }

    fn price(&self, units: u32) -> Option<Price> {
        self.scale.price(units)
    }

    fn see_message<'s>(&'s self, message: &Message<'_>, seen: &mut Seen<'s>) {
        match message {
            Message::AddOrder(m) => {
                seen.is_add = true;
                seen.order_price = self.price(m.price.get());
            }
            Message::AddOrderRefresh(m) => {
                seen.is_add = true;
                seen.order_price = self.price(m.price.get());
            }
            Message::ModifyOrder(m) => {
                seen.needs_order = true;
                seen.order_price = self.price(m.price.get());
            }
            Message::ReplaceOrder(m) => {
                seen.needs_order = true;
                seen.replaced = m.order_id.get();
                seen.order_price = self.price(m.price.get());
            }
            Message::DeleteOrder(_) => seen.needs_order = true,
            Message::OrderExecution(m) => {
                // What is not printed by itself is printed as part of a cross.
                let counts = m.printable_flag == PrintableFlag::PRINTED;
                let executed = trade(self.price(m.price.get()), shares(m.volume.get()), "executed");
                see_execution(seen, SeenTrade { order_id: m.order_id.get(), counts, ..executed });
            }
            Message::NonDisplayedTrade(m) => {
                let counts = m.printable_flag == PrintableFlag::PRINTED;
                let hidden = trade(self.price(m.price.get()), shares(m.volume.get()), "hidden");
                seen.trade = Some(SeenTrade { counts, ..hidden });
            }
            Message::CrossTrade(m) => {
                seen.trade = Some(trade(self.price(m.price.get()), shares(m.volume.get()), "cross"));
            }
            Message::SecurityStatus(m) => seen.state = trading_state(m),
            _ => {}
        }
        // Counted by itself.
        seen.needs_order &= !self.is_unmapped;
    }
}

fn shares(volume: u32) -> Qty {
    Qty(u64::from(volume))
}

impl RecordedMessage for XdpMessage<'_> {
    #[inline]
    fn ts_ns(&self) -> u64 {
        self.ts_ns
    }

    fn see<'s>(&'s self, number: u64, _source: Source<'s>) -> Seen<'s> {
        let code = u8::try_from(word16(self.bytes, 2)).unwrap_or(0);
        let mut seen = Seen { channel: self.channel.0, ..blank(number, self.ts_ns, self.instrument, code) };
        let Ok(message) = Message::parse(self.bytes) else {
            return Seen { is_malformed: true, ..seen };
        };
        if let Message::SymbolIndexMapping(_) = message {
            seen.symbol = self.bytes.get(SYMBOL).map(until_nul).filter(|_| self.instrument != 0);
        }
        self.see_message(&message, &mut seen);
        seen
    }
}

fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

impl<B: BooksById> ApplyMessages<XdpMessage<'_>> for xdp::BookBuilder<B> {
    type Books = B;

    #[inline(never)]
    fn apply(&mut self, first: u64, messages: &[XdpMessage<'_>], updates: &mut Updates) {
        let mut start = 0;
        while start < messages.len() {
            let rest = &messages[start..];
            // The time of a packet holds for its messages.
            let next_packet = rest[1..].iter().position(|message| message.sent.is_some());
            let len = next_packet.map_or(rest.len(), |next| next + 1).min(LOOK_AHEAD_LEN);
            let group = &rest[..len];
            if let Some(sent) = group[0].sent {
                self.begin_packet(group[0].channel, sent);
            }
            let before = *self.instruments().counters();
            let known = updates.list.len();
            // Numbers of the file may be longer than those of the feed: they count from the group's beginning.
            let batch = (0..)
                .zip(group)
                .map(|(index, message)| xdp::Message::new(message.channel, index, message.bytes));
            self.handle_batch(batch, updates);
            for update in &mut updates.list[known..] {
                update.sequence += first + start as u64;
            }
            updates.note(&before, self.instruments().counters(), || start..=start + len - 1);
            start += len;
        }
    }

    fn books(&self) -> &B {
        self.instruments().books()
    }
}

/// Books of a day that begins at `midnight`.
pub(super) fn books<B: BooksById>(books: B, midnight: Nanos) -> xdp::BookBuilder<B> {
    xdp::BookBuilder::new(books, midnight)
}

/// Messages of a channel were lost for good.
pub(super) fn lose<B: BooksById>(books: &mut xdp::BookBuilder<B>, channel: u8) {
    books.handle_lost(Channel(channel), &mut BooksAlone);
}

/// The numbers of a channel begin again.
pub(super) fn restart<B: BooksById>(books: &mut xdp::BookBuilder<B>, channel: u8) {
    books.handle_restart(Channel(channel), &mut BooksAlone);
}

/// Takes a mapping that came beside a channel.
pub(super) fn learn<B: BooksById>(books: &mut xdp::BookBuilder<B>, channel: u8, mapping: &[u8]) {
    books.handle_message(Channel(channel), Sequence(0), mapping, &mut BooksAlone);
}

/// Reads the book of a symbol anew: true when it is whole then and nothing contradicted it.
pub(super) fn heal<B: BooksById>(books: &mut xdp::BookBuilder<B>, channel: u8, cure: &Cure<'_>) -> bool {
    let Cure { refresh, held } = cure;
    let channel = Channel(channel);
    let of = |wants_mappings: bool| {
        of_symbol(refresh).filter(move |message| is_type(message, SymbolIndexMapping::TYPE) == wants_mappings)
    };
    for message in of(true) {
        books.handle_message(channel, Sequence(0), message, &mut BooksAlone);
    }
    let Some(id) = books.instrument_of(refresh.index) else { return false };
    books.instruments_mut().clear(id);
    // Numbers of its own that do not join those of the stale book are no gap.
    books.instruments_mut().set_health(id, BookHealth::Stale, None);
    let before = books.instruments().contradictions();
    for message in of(false) {
        books.handle_message(channel, Sequence(0), message, &mut BooksAlone);
    }
    books.set_symbol_seq(id, refresh.last_symbol_seq);
    books.instruments_mut().set_health(id, BookHealth::Live, None);
    for message in behind(held, refresh.last_symbol_seq) {
        books.handle_message(channel, Sequence(0), message, &mut BooksAlone);
    }
    books.instruments().contradictions() == before
}

/// What a type of message is called.
pub(crate) const fn type_name(code: u8) -> &'static str {
    match code {
        1 => "Sequence Number Reset",
        2 => "Source Time Reference",
        3 => "Symbol Index Mapping",
        10 => "Retransmission Request",
        11 => "Request Response",
        12 => "Heartbeat Response",
        13 => "Symbol Index Mapping Request",
        15 => "Refresh Request",
        31 => "Message Unavailable",
        32 => "Symbol Clear",
        34 => "Security Status",
        35 => "Refresh Header",
        100 => "Add Order",
        101 => "Modify Order",
        102 => "Delete Order",
        103 => "Order Execution",
        104 => "Replace Order",
        105 => "Imbalance",
        106 => "Add Order Refresh",
        110 => "Non-Displayed Trade",
        111 => "Cross Trade",
        112 => "Trade Cancel",
        113 => "Cross Correction",
        114 => "Retail Price Improvement",
        223 => "Stock Summary",
        _ => "Unknown type",
    }
}
