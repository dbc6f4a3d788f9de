//! Messages of NYSE XDP as books and tape take them.

use rustc_hash::FxHashMap;
use tickpath_book::BooksById;
use tickpath_feed::xdp::{self, Channel, trading_state};
use tickpath_feed::{BooksAlone, LOOK_AHEAD_LEN};
use tickpath_nyse::{Message, PriceScale, PrintableFlag, SendTime};
use tickpath_types::{Nanos, Price, Qty};

use super::market::Origin;
use crate::apply::{ApplyMessages, Updates};
use crate::message::{RecordedMessage, Source, blank, see_execution, trade};
use crate::tape::{Seen, SeenTrade};

const NS_PER_SEC: u64 = 1_000_000_000;
/// Where messages have their time and symbol index, ...
const WITHIN_SECOND: usize = 4;
const INDEX: usize = 8;
/// ... and those with the whole time.
const INDEX_OF_FULL_TIME: usize = 12;

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
}

/// Numbers symbols in the order of their mappings, and follows the seconds of each channel.
#[derive(Default)]
pub(super) struct XdpSymbols {
    by_index: FxHashMap<u32, Mapped>,
    /// By channel: the second of its last time reference.
    seconds: FxHashMap<u8, u32>,
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
        let mut second = self.seconds.get(&origin.channel).copied();
        for bytes in messages {
            let message_type = word16(bytes, 2);
            if message_type == 2 && bytes.len() >= 16 {
                second = Some(word32(bytes, 12));
                self.seconds.insert(origin.channel, word32(bytes, 12));
            }
            let (ts_ns, index) = times_and_index(bytes, message_type, second, origin.sent);
            let mapped = match (message_type, index) {
                (3, Some(index)) => self.map(bytes, index),
                (_, Some(index)) => self.by_index.get(&index).copied(),
                (_, None) => None,
            };
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
    }

    /// Takes what a symbol index means, as the books do.
    #[cold]
    fn map(&mut self, bytes: &[u8], index: u32) -> Option<Mapped> {
        let Ok(Message::SymbolIndexMapping(mapping)) = Message::parse(bytes) else { return None };
        let scale = PriceScale::new(mapping.price_scale_code);
        let known = self.by_index.get(&index).map(|mapped| mapped.number);
        let number = known.or_else(|| u16::try_from(self.by_index.len() + 1).ok());
        let mapped = Mapped { number: number?, scale: scale? };
        self.by_index.insert(index, mapped);
        Some(mapped)
    }
}

/// The time of a message, and the index of the symbol that it is about.
fn times_and_index(
    bytes: &[u8],
    message_type: u16,
    second: Option<u32>,
    sent: SendTime,
) -> (u64, Option<u32>) {
    let at = |seconds: u32, ns: u32| u64::from(seconds) * NS_PER_SEC + u64::from(ns);
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
        3 if bytes.len() >= 8 => (sent.as_nanos(), Some(word32(bytes, 4))),
        1 if bytes.len() >= 12 => (at(word32(bytes, 4), word32(bytes, 8)), None),
        _ => (sent.as_nanos(), None),
    }
}

fn word16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |pair| u16::from_le_bytes([pair[0], pair[1]]))
}

fn word32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word))
}

impl XdpMessage<'_> {
    pub(super) const fn bytes(&self) -> &[u8] {
        self.bytes
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
            seen.symbol = self.bytes.get(8..19).map(until_nul).filter(|_| self.instrument != 0);
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
