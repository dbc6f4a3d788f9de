//! XDP, the protocol of the Integrated Feeds of NYSE's markets, in captures.

mod fields;
mod packets;
mod refresh;

pub(crate) use packets::packets;

use rustc_hash::FxHashMap;
use tickpath_book::{BooksById, OrderGroup};
use tickpath_feed::xdp::{self, Channel, trading_state};
use tickpath_feed::{IgnoreUpdates, MessageBooks};
use tickpath_nyse::{
    Fields, Message, PriceScale, PrintableFlag, SendTime, SourceTimeReference, SymbolClear,
    SymbolIndexMapping, decode,
};
use tickpath_types::{BookHealth, Nanos, Price, Qty, Sequence};

use self::fields::{
    NS_PER_SEC, SECOND, SYMBOL, index_of, is_type, time_and_index, until_nul, word16, word32,
};
use self::refresh::{IncompleteSymbols, Refresh, not_covered, split_messages};
use crate::captures::Origin;
use crate::digest::Checksums;
use crate::protocol::{RecordedProtocol, Source};
use crate::updates::Updates;
use crate::view::{MessageView, TradeInfo};
use crate::{RecordingInfo, TimeBase};

/// A message, with its time, and the number and price scale of its symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct XdpMessage<'a> {
    bytes: &'a [u8],
    channel: Channel,
    /// Send time of the packet, in its first message only; `None` in the others.
    sent: Option<SendTime>,
    ts_ns: u64,
    /// Number of the message's symbol; 0 if its symbol index is not mapped, or if it has no symbol index.
    instrument: u16,
    scale: PriceScale,
    /// True when the message has a symbol index that is not mapped.
    is_unmapped: bool,
}

/// The mapping of a symbol index.
#[derive(Clone, Copy)]
struct MappedSymbol {
    number: u16,
    scale: PriceScale,
    channel: u8,
}

/// One recording of a market: numbers symbols in the order of their mappings, tracks the clocks of channels,
/// and holds the messages of symbols whose books are incomplete.
#[derive(Default)]
pub(crate) struct Xdp {
    by_index: FxHashMap<u32, MappedSymbol>,
    /// Clocks, indexed by channel.
    clocks: FxHashMap<u8, Clock>,
    incomplete: IncompleteSymbols,
}

/// The clock of a channel.
#[derive(Clone, Copy, Default)]
struct Clock {
    /// Second in the channel's last Source Time Reference, since the Unix epoch; `None` before the first one.
    second: Option<u32>,
    /// Time of the channel's last message with a time, in nanoseconds since the Unix epoch.
    last_ns: u64,
}

impl Clock {
    /// Returns the time of a message, and the index of its symbol. A message without a time gets the time of
    /// the previous message, since the send time of its packet is later than its event.
    #[inline]
    fn stamp(&mut self, bytes: &[u8], message_type: u16, sent: SendTime) -> (u64, Option<u32>) {
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

/// A refresh of a symbol, and the messages to apply after it.
struct BookRecovery<'a> {
    refresh: &'a Refresh,
    /// Messages about the symbol since the loss, concatenated.
    held: Vec<u8>,
}

impl Xdp {
    /// Appends the messages of a packet to `out`, with their times and symbols.
    fn messages<'a>(&mut self, messages: &[&'a [u8]], origin: &Origin, out: &mut Vec<XdpMessage<'a>>) {
        let channel = Channel(origin.channel);
        let mut sent = Some(origin.sent);
        let mut clock = self.clocks.get(&origin.channel).copied().unwrap_or_default();
        for bytes in messages {
            let message_type = word16(bytes, 2);
            let (ts_ns, index) = clock.stamp(bytes, message_type, origin.sent);
            let mapped = match (message_type, index) {
                (3, Some(index)) => self.map(bytes, index, origin.channel),
                (_, Some(index)) => self.by_index.get(&index).copied(),
                (_, None) => None,
            };
            if let Some(index) = index.filter(|_| mapped.is_none() || !self.incomplete.is_empty()) {
                match message_type {
                    // After a Symbol Clear the book is complete: no order rests in it.
                    SymbolClear::TYPE if mapped.is_some() => self.incomplete.remove(index),
                    _ => self.incomplete.hold(index, origin.channel, bytes, mapped.is_some()),
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

    /// Records a symbol index mapping. Gives a new symbol the same number as the books do.
    #[cold]
    fn map(&mut self, bytes: &[u8], index: u32, channel: u8) -> Option<MappedSymbol> {
        let Ok(Message::SymbolIndexMapping(mapping)) = Message::parse(bytes) else { return None };
        let scale = PriceScale::new(mapping.price_scale_code);
        let known = self.by_index.get(&index).map(|mapped| mapped.number);
        let number = known.or_else(|| u16::try_from(self.by_index.len() + 1).ok());
        let mapped = MappedSymbol { number: number?, scale: scale?, channel };
        self.by_index.insert(index, mapped);
        Some(mapped)
    }

    /// Handles the loss of a channel's messages before `next`: the books of its symbols are incomplete.
    fn handle_symbols_loss(&mut self, channel: u8, next: u32) {
        let symbols = self.by_index.iter().filter(|(_, mapped)| mapped.channel == channel);
        self.incomplete.handle_loss(channel, next, symbols.map(|(index, _)| *index));
    }

    /// Removes a channel's clock and its entries in `incomplete` when its numbering restarts; returns the ids
    /// of its instruments.
    fn reset_channel(&mut self, channel: u8) -> impl Iterator<Item = u16> {
        self.incomplete.restart(channel);
        self.clocks.remove(&channel);
        self.by_index.values().filter(move |mapped| mapped.channel == channel).map(|mapped| mapped.number)
    }

    /// The channel of a symbol: the one with its mapping, or, if it is not mapped, the one with its messages.
    fn channel_of(&self, index: u32) -> Option<u8> {
        let mapped = self.by_index.get(&index).map(|mapped| mapped.channel);
        mapped.or_else(|| self.incomplete.channel_of(index))
    }

    /// Records the symbol mappings in a refresh. Returns the recovery that it makes possible, if any, and the
    /// instrument's id and name.
    fn refresh<'a>(
        &mut self,
        channel: u8,
        refresh: &'a Refresh,
    ) -> Option<(BookRecovery<'a>, u16, &'a [u8])> {
        let is_mapped = self.by_index.contains_key(&refresh.index);
        let held = self.incomplete.take(channel, refresh, is_mapped)?;
        let mut name: &[u8] = &[];
        for mapping in of_symbol(refresh).filter(|message| is_type(message, SymbolIndexMapping::TYPE)) {
            self.map(mapping, refresh.index, channel);
            name = mapping.get(SYMBOL).map(until_nul).unwrap_or_default();
        }
        let number = self.by_index.get(&refresh.index)?.number;
        Some((BookRecovery { refresh, held }, number, name))
    }

    /// Handles a symbol mapping that arrived out of band; returns the symbol's number and name if it is new.
    fn add_mapping<'a>(&mut self, channel: u8, mapping: &'a [u8]) -> Option<(u16, &'a [u8])> {
        let index = index_of(mapping).filter(|index| !self.by_index.contains_key(index))?;
        let mapped = self.map(mapping, index, channel)?;
        Some((mapped.number, mapping.get(SYMBOL).map(until_nul)?))
    }
}

/// The messages of a refresh that are about its symbol.
fn of_symbol(refresh: &Refresh) -> impl Iterator<Item = &[u8]> {
    split_messages(&refresh.messages).filter(|message| index_of(message) == Some(refresh.index))
}

impl XdpMessage<'_> {
    fn price(&self, units: u32) -> Option<Price> {
        self.scale.price(units)
    }

    fn view_fields<'s>(&'s self, message: &Message<'_>, view: &mut MessageView<'s>) {
        match message {
            Message::AddOrder(m) => {
                view.order.is_add = true;
                view.order.price = self.price(m.price.get());
            }
            Message::AddOrderRefresh(m) => {
                view.order.is_add = true;
                view.order.price = self.price(m.price.get());
            }
            Message::ModifyOrder(m) => {
                view.order.must_rest = true;
                view.order.price = self.price(m.price.get());
            }
            Message::ReplaceOrder(m) => {
                view.order.must_rest = true;
                view.order.replaced = m.order_id.get();
                view.order.price = self.price(m.price.get());
            }
            Message::DeleteOrder(_) => view.order.must_rest = true,
            Message::OrderExecution(m) => {
                // Do not count an execution that is not printed: it is part of a cross, which is printed.
                let counts = m.printable_flag == PrintableFlag::PRINTED;
                let executed = TradeInfo::new(self.price(m.price.get()), shares(m.volume.get()), "executed");
                view.execute(TradeInfo { order_id: m.order_id.get(), counts, ..executed });
            }
            Message::NonDisplayedTrade(m) => {
                let counts = m.printable_flag == PrintableFlag::PRINTED;
                let hidden = TradeInfo::new(self.price(m.price.get()), shares(m.volume.get()), "hidden");
                view.trade = Some(TradeInfo { counts, ..hidden });
            }
            Message::CrossTrade(m) => {
                view.trade = Some(TradeInfo::new(self.price(m.price.get()), shares(m.volume.get()), "cross"));
            }
            Message::SecurityStatus(m) => view.state = trading_state(m),
            _ => {}
        }
        // A message of an unmapped symbol counts as unmapped, not as an unknown reference.
        view.order.must_rest &= !self.is_unmapped;
    }
}

fn shares(volume: u32) -> Qty {
    Qty(u64::from(volume))
}

impl RecordedProtocol for Xdp {
    type Message<'a> = XdpMessage<'a>;
    type Books<B: BooksById> = xdp::BookBuilder<B>;
    /// Each channel has a separate clock, so times may run backwards from one channel to another.
    const IS_ORDERED_BY_TIME: bool = false;

    fn info(&self) -> RecordingInfo {
        RecordingInfo { time_base: TimeBase::UnixEpoch, ..RecordingInfo::ORDER_BY_ORDER }
    }

    fn books<B: BooksById>(&self, empty: B, midnight: Nanos) -> xdp::BookBuilder<B> {
        xdp::BookBuilder::new(empty, midnight)
    }

    fn orders<B: BooksById>(books: &xdp::BookBuilder<B>) -> &B {
        books.instruments().books()
    }

    #[inline(never)]
    fn apply<B: BooksById>(
        books: &mut xdp::BookBuilder<B>,
        first: u64,
        messages: &[XdpMessage<'_>],
        updates: &mut Updates,
    ) {
        let mut start = 0;
        while start < messages.len() {
            let rest = &messages[start..];
            // Apply at most one packet at a time, since the books need the send time of each packet.
            let next_packet = rest[1..].iter().position(|message| message.sent.is_some());
            let len = next_packet.map_or(rest.len(), |next| next + 1).min(OrderGroup::LEN_MAX);
            let group = &rest[..len];
            if let Some(sent) = group[0].sent {
                books.begin_packet(group[0].channel, sent);
            }
            let before = *books.instruments().counters();
            let known = updates.list.len();
            // Number messages by their index in the group: message numbers of the file may exceed 32 bits.
            let batch = (0..)
                .zip(group)
                .map(|(index, message)| xdp::Message::new(message.channel, index, message.bytes));
            books.handle_batch(batch, updates);
            for update in &mut updates.list[known..] {
                update.sequence += first + start as u64;
            }
            updates.record(&before, books.instruments().counters(), || start..=start + len - 1);
            start += len;
        }
    }

    #[inline]
    fn ts_ns(message: &XdpMessage<'_>) -> u64 {
        message.ts_ns
    }

    #[inline]
    fn view<'s>(message: &'s XdpMessage<'_>, number: u64, _source: Source<'s>) -> MessageView<'s> {
        let XdpMessage { bytes, channel, ts_ns, instrument, .. } = *message;
        let code = u8::try_from(word16(bytes, 2)).unwrap_or(0);
        let mut view =
            MessageView { channel: channel.0, ..MessageView::new(number, ts_ns, instrument, code) };
        let Ok(parsed) = Message::parse(bytes) else {
            return MessageView { is_malformed: true, ..view };
        };
        if let Message::SymbolIndexMapping(_) = parsed {
            view.symbol = bytes.get(SYMBOL).map(until_nul).filter(|_| instrument != 0);
        }
        message.view_fields(&parsed, &mut view);
        view
    }

    #[inline]
    fn digest(message: &XdpMessage<'_>, checksums: &mut Checksums) {
        // Ignore errors: `view` reports malformed messages.
        let _ = decode(message.bytes, &mut Fields(|fields: &[u64]| checksums.others.fields(fields)));
    }

    fn type_name(code: u8) -> Option<&'static str> {
        Some(match code {
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
            _ => return None,
        })
    }

    fn type_code(code: u8) -> String {
        code.to_string()
    }
}

/// Rebuilds the book of a symbol from a refresh. Returns true if the symbol has a book and no message
/// contradicted it.
fn recover<B: BooksById>(books: &mut xdp::BookBuilder<B>, channel: u8, recovery: &BookRecovery<'_>) -> bool {
    let BookRecovery { refresh, held } = recovery;
    let channel = Channel(channel);
    let of = |wants_mappings: bool| {
        of_symbol(refresh).filter(move |message| is_type(message, SymbolIndexMapping::TYPE) == wants_mappings)
    };
    for message in of(true) {
        books.handle_message_on(channel, Sequence(0), message, &mut IgnoreUpdates);
    }
    let Some(id) = books.find(refresh.index) else { return false };
    books.instruments_mut().clear(id);
    // In a stale book, the jump to the symbol sequence numbers of the refresh does not count as a gap.
    books.instruments_mut().set_health(id, BookHealth::Stale, None);
    let before = books.instruments().contradictions();
    for message in of(false) {
        books.handle_message_on(channel, Sequence(0), message, &mut IgnoreUpdates);
    }
    books.set_symbol_seq(id, refresh.last_symbol_seq);
    books.instruments_mut().set_health(id, BookHealth::Live, None);
    for message in not_covered(held, refresh.last_symbol_seq) {
        books.handle_message_on(channel, Sequence(0), message, &mut IgnoreUpdates);
    }
    books.instruments().contradictions() == before
}
