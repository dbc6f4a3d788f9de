//! Application of XDP messages to books.

use std::mem::offset_of;

use arrayvec::ArrayVec;
use tickpath_book::{BooksById, OrderGroup, Step};
use tickpath_nyse::{
    AddOrder, DeleteOrder, DeliveryFlag, Header, ModifyOrder, OrderExecution, Packet, ReplaceOrder, SendTime,
    SourceTimeReference, decode,
};
use tickpath_types::{BookHealth, InstrumentId, Nanos, OrderId, Price, Qty, Sequence, Side, UpdateKind};
use zerocopy::FromBytes;

use super::apply::{Apply, Known};
use super::message::{Channel, Message};
use super::orders::{Decoded, Layout, ORDER_ID, XdpOrders};
use super::state::State;
use crate::builder::bytes_at;
use crate::instruments::{Change, Instruments, UpdateListener};
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
/// The books hold orders under the keys that [`order_key`](super::order_key) makes from their ids. Books have
/// prices of four decimals. An order with more decimals makes its book suspect. For books of
/// several channels, call the methods with a channel argument. Through [`MessageBooks`] all messages belong
/// to channel 0, and a loss or a restart affects every book.
pub struct BookBuilder<B> {
    pub(super) state: State<B>,
    group: OrderGroup,
}

/// The index of each message of a group in its batch, and the message's symbol.
type InGroup = ArrayVec<(u8, Known), { OrderGroup::LEN_MAX }>;

/// The channel of all messages that arrive through [`MessageBooks`].
const SINGLE_CHANNEL: Channel = Channel(0);

impl<B: BooksById> BookBuilder<B> {
    /// Creates a builder with empty books. `midnight` is the start of the exchange's day, since the Unix
    /// epoch; times in updates are relative to it.
    #[must_use]
    pub fn new(books: B, midnight: Nanos) -> BookBuilder<B> {
        BookBuilder { state: State::new(books, midnight), group: OrderGroup::default() }
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
    pub fn handle_batch<'a, L: UpdateListener>(
        &mut self,
        messages: impl IntoIterator<Item = Message<'a>>,
        out: &mut L,
    ) -> u64 {
        let mut messages = messages.into_iter();
        let mut batch = [Message::NONE; OrderGroup::LEN_MAX];
        let mut total = 0;
        loop {
            let (mut count, mut alone) = (0, None);
            for (place, message) in batch.iter_mut().zip(&mut messages) {
                if Layout::of(message.bytes).is_none() {
                    alone = Some(message);
                    break;
                }
                *place = message;
                count += 1;
            }
            if count > 0 {
                let in_group = self.prepare_group::<L>(&batch[..count]);
                self.apply_group(&batch[..count], &in_group, out);
            }
            total += count as u64;
            if let Some(Message { channel, sequence, bytes }) = alone {
                self.handle_message_on(channel, Sequence(sequence.into()), bytes, out);
                total += 1;
            } else if count < batch.len() {
                return total;
            }
        }
    }

    /// Looks up the messages' symbols, records their SymbolSeqNums, decodes the messages into the group, and
    /// prefetches the memory that they need. Returns the index and the symbol of each message in the group; it
    /// leaves out those that have no further effect.
    // Not inlined, so that the loop can use all CPU registers, as in `apply_group`.
    #[inline(never)]
    fn prepare_group<L: UpdateListener>(&mut self, messages: &[Message<'_>]) -> InGroup {
        let State { instruments, symbols, rows, shared, clocks, midnight_secs, .. } = &mut self.state;
        let mut in_group = InGroup::new();
        let has_shared = shared.additions() > 0;
        let decoded = (0..).zip(messages).filter_map(|(index, message)| -> Option<Option<Decoded>> {
            let Message { channel, bytes, .. } = *message;
            let layout = Layout::of_usual(bytes)?;
            let Some((symbol_index, symbol_seq_num)) = layout.symbol(bytes) else {
                // Only updates need the time.
                if !L::WANTS_UPDATES
                    && let Ok((reference, _)) = SourceTimeReference::ref_from_prefix(bytes)
                {
                    clocks[usize::from(channel.0)].refer(reference.source_time.get(), *midnight_secs);
                    return None;
                }
                in_group.push((index, Known::NONE));
                return Some(None);
            };
            let id = symbols.find(symbol_index);
            if id.0 == 0 {
                in_group.push((index, Known::NONE));
                return Some(None);
            }
            let row = &mut rows[usize::from(id.0)];
            let expected_seq = std::mem::replace(&mut row.next_seq, symbol_seq_num.wrapping_add(1));
            let is_in_sequence = expected_seq == symbol_seq_num;
            if is_in_sequence && !layout.has_effect(L::WANTS_UPDATES) {
                return None;
            }
            in_group.push((index, Known { instrument: id, expected_seq }));
            let decoded = layout.change(bytes, id, row.scale).filter(|decoded| {
                let is_shared =
                    has_shared && (shared.may_have(decoded.change.id) || shared.may_have(decoded.new_key()));
                is_in_sequence && !is_shared
            });
            Some(decoded)
        });
        instruments.books().prepare(&mut self.group, decoded, &XdpOrders);
        in_group
    }

    /// Applies the messages of the prepared group.
    #[inline(never)]
    fn apply_group<L: UpdateListener>(&mut self, messages: &[Message<'_>], in_group: &InGroup, out: &mut L) {
        self.state.instruments.count_messages(messages.len());
        let shared = self.state.shared.additions();
        loop {
            // The later messages were decoded as if no symbols shared the id.
            if self.state.shared.additions() != shared {
                self.group.except_rest();
            }
            let books = self.state.instruments.books_mut();
            let step = match L::WANTS_UPDATES {
                true => books.advance::<true>(&mut self.group),
                false => books.advance::<false>(&mut self.group),
            };
            let Some(index) = step.index() else { break };
            let (index, known) = in_group[index];
            let message = &messages[usize::from(index)];
            self.state.instruments.set_sequence(Sequence(message.sequence.into()));
            match step {
                Step::Applied { side, price, qty, is_added, crosses, .. } => {
                    if crosses {
                        self.state.instruments.check_crossed(known.instrument);
                    }
                    if L::WANTS_UPDATES {
                        let change = self.applied(message, known, (side, price, qty), is_added);
                        self.state.instruments.report(&change, out);
                    }
                    self.state.instruments.end_message(out);
                }
                Step::NewOrderException { side, .. } => self.add_new_order(message, known, side, out),
                _ => self.apply(message.channel, message.bytes, known, out),
            }
        }
        let last = messages.last().map_or(0, |message| message.sequence);
        self.state.instruments.set_sequence(Sequence(last.into()));
    }

    /// Returns the effect of an order message that a group applied to an order of this side and price, to
    /// which `qty` was added or from which it was removed.
    #[inline(always)]
    fn applied(
        &self,
        message: &Message<'_>,
        known: Known,
        (side, price, qty): (Side, Price, Qty),
        is_added: bool,
    ) -> Change {
        let Message { channel, bytes, .. } = *message;
        let (kind, price, id_at) = match u16::from(bytes[2]) {
            AddOrder::TYPE => (UpdateKind::Add, price, ORDER_ID),
            DeleteOrder::TYPE => (UpdateKind::Delete, price, ORDER_ID),
            OrderExecution::TYPE => {
                let units = u32::from_le_bytes(bytes_at(bytes, offset_of!(OrderExecution, price)));
                // Updates cannot represent a price with more than four decimals, so report a reduction.
                match self.state.row(known.instrument).scale.price(units) {
                    Some(price) => (UpdateKind::Trade, price, ORDER_ID),
                    None => (UpdateKind::Reduce, price, ORDER_ID),
                }
            }
            ModifyOrder::TYPE if is_added => (UpdateKind::Replace, price, ORDER_ID),
            ModifyOrder::TYPE => (UpdateKind::Reduce, price, ORDER_ID),
            _ => (UpdateKind::Replace, price, offset_of!(ReplaceOrder, new_order_id)),
        };
        let source_time_ns = u32::from_le_bytes(bytes_at(bytes, offset_of!(AddOrder, source_time_ns)));
        Change {
            instrument: known.instrument,
            ts: self.state.clocks[usize::from(channel.0)].time(source_time_ns),
            kind,
            order_id: OrderId(u64::from_le_bytes(bytes_at(bytes, id_at))),
            side,
            price,
            qty,
        }
    }

    /// Adds the new order of a replacement, or an order with another price, after the old order on `side` was
    /// removed.
    #[cold]
    #[inline(never)]
    fn add_new_order(
        &mut self,
        message: &Message<'_>,
        known: Known,
        side: Side,
        out: &mut impl UpdateListener,
    ) {
        let Message { channel, bytes, .. } = *message;
        let mut apply = Apply { state: &mut self.state, channel, known, out: &mut *out };
        if let Ok((modify, _)) = ModifyOrder::ref_from_prefix(bytes)
            && u16::from(bytes[2]) == ModifyOrder::TYPE
        {
            apply.add_modified(modify, side);
        } else if let Ok((replace, _)) = ReplaceOrder::ref_from_prefix(bytes) {
            apply.add_replacement(replace, side);
        }
        self.state.instruments.end_message(out);
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
        self.state.instruments.begin_message(sequence);
        self.apply(channel, message, Known::NONE, out);
    }

    /// Applies a message by itself.
    fn apply(&mut self, channel: Channel, message: &[u8], known: Known, out: &mut impl UpdateListener) {
        let state = &mut self.state;
        if decode(message, &mut Apply { state: &mut *state, channel, known, out }).is_err() {
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
