//! Application of XDP messages to books.

use std::hint::select_unpredictable;

use tickpath_book::{BooksById, PrefetchRequest};
use tickpath_nyse::{DeliveryFlag, Header, Packet, ReplaceOrder, SendTime, decode};
use tickpath_types::{BookHealth, InstrumentId, Nanos, OrderId, Price, Sequence, Side};
use zerocopy::FromBytes;

use super::apply::Apply;
use super::message::{Channel, Message};
use super::state::State;
use crate::instruments::{Instruments, UpdateListener};
use crate::look_ahead::{handle_in_groups, part};
use crate::message_books::MessageBooks;

/// Builds order-by-order books from the messages of any number of channels, each in sequence, and tracks
/// whether each book can be trusted.
///
/// Symbol indexes get instrument ids in the order of their first mapping. Messages about other indexes count
/// as unmapped. A message that contradicts its book is counted and applied as far as possible. It makes the
/// book [`Suspect`](BookHealth::Suspect), as does a gap in a symbol's own sequence numbers. Lost messages
/// make their channel's books [`Stale`](BookHealth::Stale). A symbol clear empties the book and makes it
/// live: the feed then sends its orders again. At the close, the remaining orders expire.
///
/// Books have prices of four decimals. An order with more decimals makes its book suspect. For books of
/// several channels, call the methods with a channel argument. Through [`MessageBooks`] all messages belong
/// to channel 0, and a loss or a restart affects every book.
pub struct BookBuilder<B> {
    pub(super) state: State<B>,
}

/// The channel of all messages that arrive through [`MessageBooks`].
const SINGLE_CHANNEL: Channel = Channel(0);

impl<B: BooksById> BookBuilder<B> {
    /// Creates a builder with empty books. `midnight` is the start of the exchange's day, since the Unix
    /// epoch; times in updates are relative to it.
    #[must_use]
    pub fn new(books: B, midnight: Nanos) -> BookBuilder<B> {
        BookBuilder { state: State::new(books, midnight) }
    }

    /// Applies all messages of a packet of a channel, in sequence, and reports their effects.
    pub fn handle_packet(&mut self, channel: Channel, packet: &Packet<'_>, out: &mut impl UpdateListener) {
        self.begin_packet(channel, packet.send_time());
        let messages = packet.messages();
        self.handle_batch(messages.map(|(sequence, message)| Message::new(channel, sequence, message)), out);
    }

    /// Applies queued messages in order. The result is the same as with
    /// [`handle_message_on`](Self::handle_message_on) for each message, but memory is prefetched. Returns the
    /// number of messages.
    #[inline]
    pub fn handle_batch<'a>(
        &mut self,
        messages: impl IntoIterator<Item = Message<'a>>,
        out: &mut impl UpdateListener,
    ) -> u64 {
        handle_in_groups(
            self,
            messages.into_iter().map(|message| (message, InstrumentId(0))),
            (Message::NONE, InstrumentId(0)),
            |builder| builder.state.instruments.books(),
            |builder, (message, instrument)| {
                let request = builder.prefetch_request(message.bytes);
                *instrument = request.instrument;
                request
            },
            |(message, _)| new_order_of(message.bytes),
            |builder, messages| builder.apply_all(messages, out),
        )
    }

    /// Applies messages, each with its instrument, or with 0 if that was not looked up.
    // A separate loop, so that all CPU registers are available to it.
    #[inline(never)]
    fn apply_all(&mut self, messages: &[(Message<'_>, InstrumentId)], out: &mut impl UpdateListener) {
        for (message, instrument) in messages {
            let sequence = Sequence(u64::from(message.sequence));
            self.apply(message.channel, sequence, message.bytes, *instrument, out);
        }
    }

    /// Returns the prefetch request for an order message, else an empty one. Reads each message both as an
    /// add and as one about an existing order, since the CPU could not predict a branch on the type.
    #[inline(always)]
    fn prefetch_request(&self, message: &[u8]) -> PrefetchRequest {
        let Some((head, rest)) = message.split_first_chunk::<HEAD_LEN>() else {
            return PrefetchRequest::EMPTY;
        };
        let message_type = u16::from_le_bytes(part(head, 2));
        if message_type.wrapping_sub(ORDERS_FIRST) > ORDERS_LAST - ORDERS_FIRST {
            return PrefetchRequest::EMPTY;
        }
        let more = rest.first_chunk();
        let more = select_unpredictable(more.is_some(), more.unwrap_or(&NO_MORE), &NO_MORE);
        let instrument = self.state.symbols.find(u32::from_le_bytes(part(head, 8)));
        let price = self.state.row(instrument).scale.price(u32::from_le_bytes(part(more, 0)));
        PrefetchRequest {
            id: OrderId(u64::from_le_bytes(part(head, 16))),
            instrument,
            side: Side::BOTH[usize::from(more[8] != b'B')],
            price: price.unwrap_or(Price(0)),
        }
    }

    /// Begins a packet. Its messages use its send time until the channel's first time reference.
    #[inline]
    pub fn begin_packet(&mut self, channel: Channel, sent: SendTime) {
        self.state.clocks[usize::from(channel.0)].begin_packet(sent, self.state.midnight_secs);
    }

    /// Applies a channel's message with the number `sequence` and reports its effect.
    #[inline]
    pub fn handle_message_on(
        &mut self,
        channel: Channel,
        sequence: Sequence,
        message: &[u8],
        out: &mut impl UpdateListener,
    ) {
        self.apply(channel, sequence, message, InstrumentId(0), out);
    }

    /// Applies a message. `instrument` is that of an order message, or 0 if it was not looked up.
    #[inline(always)]
    fn apply(
        &mut self,
        channel: Channel,
        sequence: Sequence,
        message: &[u8],
        instrument: InstrumentId,
        out: &mut impl UpdateListener,
    ) {
        let state = &mut self.state;
        state.instruments.begin_message(sequence);
        if decode(message, &mut Apply { state: &mut *state, channel, instrument, out }).is_err() {
            state.instruments.handle_malformed(state.named_by(message), out);
        }
        state.instruments.end_message(out);
    }

    /// Handles the loss of messages of a channel: its books become stale.
    pub fn handle_lost_on(&mut self, channel: Channel, out: &mut impl UpdateListener) {
        for id in self.state.symbols.ids() {
            if self.state.row(id).channel == channel.0 {
                self.state.instruments.handle_lost_of(id, out);
            }
        }
    }

    /// Handles a sequence reset of a channel: the SymbolSeqNums of its symbols restart, their books are empty
    /// and live, and their trading states unknown.
    pub fn handle_restart_on(&mut self, channel: Channel, out: &mut impl UpdateListener) {
        for id in self.state.symbols.ids() {
            let row = self.state.row_mut(id);
            if row.channel != channel.0 {
                continue;
            }
            row.next_seq = 0;
            self.state.instruments.clear(id);
            self.state.instruments.note_trading(id, None);
            self.state.instruments.set_health(id, BookHealth::Live, None);
            self.state.instruments.report_status(id, out);
        }
    }

    /// Returns the instrument of a symbol index; `None` while it is unmapped.
    #[must_use]
    pub fn find(&self, symbol_index: u32) -> Option<InstrumentId> {
        self.state.instrument_of(symbol_index)
    }

    /// Returns the symbol index that was mapped to an instrument; `None` if no index was.
    #[must_use]
    pub fn symbol_index(&self, id: InstrumentId) -> Option<u32> {
        (1..=self.state.symbols.count()).contains(&id.0).then(|| self.state.row(id).index)
    }

    /// Returns the SymbolSeqNum of the next message about an instrument; 0 before the first.
    #[must_use]
    pub fn next_symbol_seq(&self, id: InstrumentId) -> u32 {
        self.state.row(id).next_seq
    }

    /// Sets the SymbolSeqNum of the last message that an instrument's state includes, as a refresh states it.
    pub fn set_symbol_seq(&mut self, id: InstrumentId, last: u32) {
        if self.symbol_index(id).is_some() {
            self.state.row_mut(id).next_seq = last.wrapping_add(1);
        }
    }

    /// Returns the instrument that a message of any type names; 0 if it names none or an unmapped symbol.
    pub(super) fn named_by(&self, message: &[u8]) -> InstrumentId {
        match message.get(2..8) {
            Some(&[3, 0, a, b, c, d]) => self.state.symbols.find(u32::from_le_bytes([a, b, c, d])),
            _ => self.state.named_by(message),
        }
    }
}

impl<B: BooksById> MessageBooks for BookBuilder<B> {
    type Books = B;

    fn instruments(&self) -> &Instruments<B> {
        &self.state.instruments
    }

    fn instruments_mut(&mut self) -> &mut Instruments<B> {
        &mut self.state.instruments
    }

    /// Admits every packet. Messages use the packet's send time until there is a time reference.
    #[inline]
    fn admits(&mut self, datagram: &[u8]) -> bool {
        if let Ok((header, _)) = Header::ref_from_prefix(datagram)
            && header.delivery_flag == DeliveryFlag::ORIGINAL
        {
            let sent = SendTime { secs: header.send_time.get(), nanos: header.send_time_ns.get() };
            self.begin_packet(SINGLE_CHANNEL, sent);
        }
        true
    }

    #[inline]
    fn handle_message(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener) {
        self.handle_message_on(SINGLE_CHANNEL, sequence, message, out);
    }

    #[inline]
    fn handle_messages<'a>(
        &mut self,
        first: Sequence,
        messages: impl Iterator<Item = &'a [u8]>,
        out: &mut impl UpdateListener,
    ) {
        let mut sequence = first.0 as u32;
        let numbered = messages.map(|message| {
            let numbered = Message::new(SINGLE_CHANNEL, sequence, message);
            sequence = sequence.wrapping_add(1);
            numbered
        });
        self.handle_batch(numbered, out);
    }

    /// Handles a sequence reset: books are emptied, and the SymbolSeqNums restart too.
    fn handle_restart(&mut self, out: &mut impl UpdateListener) {
        self.state.instruments.restart(out);
        for id in self.state.symbols.ids() {
            self.state.row_mut(id).next_seq = 0;
        }
    }

    /// Returns 0 for a symbol index mapping, which must be applied even while its book waits for a refresh:
    /// without it, messages about the symbol are unreadable. A symbol clear is held: it is no refresh.
    #[inline]
    fn instrument_of(&mut self, message: &[u8]) -> InstrumentId {
        match message.get(2..4) {
            Some([3, 0]) => InstrumentId(0),
            _ => self.named_by(message),
        }
    }
}

/// Returns the id of the order that a replace message creates; `None` for other messages.
#[inline(always)]
fn new_order_of(message: &[u8]) -> Option<OrderId> {
    let (head, rest) = message.split_first_chunk::<HEAD_LEN>()?;
    let id = rest.first_chunk()?;
    (u16::from_le_bytes(part(head, 2)) == ReplaceOrder::TYPE).then(|| OrderId(u64::from_le_bytes(*id)))
}

/// Every order message begins with size, type, time, symbol index, SymbolSeqNum and order id: `HEAD_LEN`
/// bytes. The next `MORE_LEN` bytes of an add are price, volume and side; a replace has the new id there.
const HEAD_LEN: usize = 24;
const MORE_LEN: usize = 9;
const NO_MORE: [u8; MORE_LEN] = [0; MORE_LEN];
const ORDERS_FIRST: u16 = 100;
const ORDERS_LAST: u16 = 104;

const _: () = {
    use std::mem::offset_of;
    use tickpath_nyse::{AddOrder, DeleteOrder, ModifyOrder, OrderExecution};
    assert!(AddOrder::TYPE == ORDERS_FIRST && ReplaceOrder::TYPE == ORDERS_LAST);
    assert!(offset_of!(AddOrder, order_id) == 16 && offset_of!(DeleteOrder, order_id) == 16);
    assert!(offset_of!(ModifyOrder, order_id) == 16 && offset_of!(OrderExecution, order_id) == 16);
    assert!(offset_of!(ReplaceOrder, order_id) == 16 && offset_of!(ReplaceOrder, new_order_id) == HEAD_LEN);
    assert!(offset_of!(AddOrder, price) == HEAD_LEN && offset_of!(AddOrder, side) == HEAD_LEN + 8);
};
