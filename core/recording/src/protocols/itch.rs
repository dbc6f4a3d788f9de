//! Nasdaq TotalView-ITCH 5.0: messages of files, and of MoldUDP64 and SoupBinTCP in captures.

mod packets;
mod soup;

pub(crate) use packets::packets;

use tickpath_book::{BooksById, OrderGroup};
use tickpath_feed::{BookBuilder, MessageBooks};
use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::itch50::{self, Message, YesNo, message_len};
use tickpath_nasdaq::wire::Stock;
use tickpath_types::{InstrumentId, Nanos, Price, Sequence};

use crate::RecordingInfo;
use crate::books::BookSize;
use crate::digest::Checksums;
use crate::protocol::{RecordedProtocol, Source};
use crate::updates::Updates;
use crate::view::{MessageView, TradeInfo};

/// The ITCH protocol, with the decoding state of one recording.
#[derive(Default)]
pub struct Itch {
    /// True once it is known in which time zone a capture's times count from midnight.
    is_midnight_known: bool,
}

/// Byte range of a message's time.
const TIME: std::ops::Range<usize> = 5..11;
/// Byte range of a message's stock locate.
const LOCATE: std::ops::Range<usize> = 1..3;

impl RecordedProtocol for Itch {
    type Message<'a> = &'a [u8];
    type Books<B: BooksById> = BookBuilder<B>;
    const IS_ORDERED_BY_TIME: bool = true;

    fn info(&self) -> RecordingInfo {
        RecordingInfo::ORDER_BY_ORDER
    }

    fn books<B: BooksById>(&self, empty: B, _midnight: Nanos) -> BookBuilder<B> {
        BookBuilder::new(empty)
    }

    fn orders<B: BooksById>(books: &BookBuilder<B>) -> &B {
        books.books()
    }

    #[inline(never)]
    fn apply<B: BooksById>(
        books: &mut BookBuilder<B>,
        first: u64,
        messages: &[&[u8]],
        updates: &mut Updates,
    ) {
        let mut start = 0;
        for group in messages.chunks(OrderGroup::LEN_MAX) {
            let before = *books.counters();
            books.handle_batch(Sequence(first + start as u64), group.iter().copied(), updates);
            updates.record(&before, books.counters(), || start..=start + group.len() - 1);
            start += group.len();
        }
    }

    #[inline]
    fn ts_ns(message: &&[u8]) -> u64 {
        match message.get(TIME) {
            // The message that ends a snapshot has no time.
            _ if is_end_of_snapshot(message) => 0,
            Some([a, b, c, d, e, f]) => u64::from_be_bytes([0, 0, *a, *b, *c, *d, *e, *f]),
            _ => 0,
        }
    }

    #[inline]
    fn view<'s>(message: &'s &[u8], number: u64, _source: Source<'s>) -> MessageView<'s> {
        let (code, ts_ns) = (message.first().copied().unwrap_or_default(), Itch::ts_ns(message));
        if is_end_of_snapshot(message) {
            return MessageView { is_snapshot: true, ..MessageView::new(number, 0, 0, code) };
        }
        if message_len(code) != Some(message.len()) {
            return MessageView { is_malformed: true, ..MessageView::new(number, ts_ns, 0, code) };
        }
        let instrument = match message.get(LOCATE) {
            Some([high, low]) => u16::from_be_bytes([*high, *low]),
            _ => 0,
        };
        let mut view = MessageView::new(number, ts_ns, instrument, code);
        match code {
            // Do not parse deletes and cancels: they are frequent, and their other fields are not needed.
            b'D' | b'X' => view.order.must_rest = true,
            _ => view_fields(message, &mut view),
        }
        view
    }

    #[inline]
    fn digest(message: &&[u8], checksums: &mut Checksums) {
        // Ignore errors: `view` reports malformed messages.
        let _ = itch50::decode(message, &mut checksums.itch);
    }

    fn type_name(code: u8) -> Option<&'static str> {
        Some(match code {
            b'S' => "System Event",
            b'R' => "Stock Directory",
            b'H' => "Stock Trading Action",
            b'Y' => "Reg SHO Restriction",
            b'L' => "Market Participant Position",
            b'V' => "MWCB Decline Level",
            b'W' => "MWCB Status",
            b'K' => "IPO Quoting Period Update",
            b'J' => "LULD Auction Collar",
            b'h' => "Operational Halt",
            b'A' => "Add Order",
            b'F' => "Add Order with MPID",
            b'E' => "Order Executed",
            b'C' => "Order Executed with Price",
            b'X' => "Order Cancel",
            b'D' => "Order Delete",
            b'U' => "Order Replace",
            b'P' => "Trade (hidden order)",
            b'Q' => "Cross Trade",
            b'B' => "Broken Trade",
            b'I' => "Net Order Imbalance",
            b'N' => "Retail Price Improvement",
            b'O' => "Direct Listing Price Discovery",
            b'G' => "End of Snapshot",
            _ => return None,
        })
    }
}

/// True for GLIMPSE's end-of-snapshot message, `G`, which ends a snapshot of ITCH messages.
#[inline]
fn is_end_of_snapshot(message: &[u8]) -> bool {
    matches!(message, [b'G', ..] if message.len() == EndOfSnapshot::LEN)
}

fn view_fields<'s>(message: &'s [u8], view: &mut MessageView<'s>) {
    let Ok(message) = Message::parse(message) else { return };
    match message {
        Message::AddOrder(m) => view_add(view, &m.stock, m.price.get()),
        Message::AddOrderMpid(m) => view_add(view, &m.stock, m.price.get()),
        Message::OrderReplace(m) => {
            view.order.must_rest = true;
            view.order.price = Some(m.price.get());
            view.order.replaced = m.original_order_ref.get().0;
        }
        Message::OrderExecuted(m) => {
            let trade = TradeInfo::new(None, m.executed_shares.get(), "executed");
            view.execute(TradeInfo { order_id: m.order_ref.get().0, ..trade });
        }
        Message::OrderExecutedWithPrice(m) => {
            let trade =
                TradeInfo::new(Some(m.execution_price.get()), m.executed_shares.get(), "executed_with_price");
            let counts = m.printable != YesNo::NO;
            view.execute(TradeInfo { order_id: m.order_ref.get().0, counts, ..trade });
        }
        Message::NonCrossTrade(m) => {
            view.symbol = Some(&m.stock.0);
            view.trade = Some(TradeInfo::new(Some(m.price.get()), m.shares.get(), "hidden"));
        }
        Message::CrossTrade(m) => {
            view.symbol = Some(&m.stock.0);
            view.trade = Some(TradeInfo::new(Some(m.cross_price.get()), m.shares.get(), "cross"));
        }
        Message::StockTradingAction(m) => {
            view.symbol = Some(&m.stock.0);
            view.state = m.trading_state.state();
        }
        Message::StockDirectory(m) => view.symbol = Some(&m.stock.0),
        Message::SystemEvent(m) => view.stage = m.event_code.stage(),
        _ => {}
    }
}

fn view_add<'s>(view: &mut MessageView<'s>, stock: &'s Stock, price: Price) {
    view.symbol = Some(&stock.0);
    view.order.price = Some(price);
    view.order.is_add = true;
}

/// Book capacity that suffices if `messages` are all messages of the file.
#[must_use]
pub fn size_of_messages(messages: &[&[u8]]) -> BookSize {
    let locates = messages.iter().filter_map(|message| message.get(LOCATE)?.try_into().ok());
    let last = locates.map(u16::from_be_bytes).max().unwrap_or_default();
    BookSize { max_instrument: InstrumentId(last), max_orders: messages.len() as u32 + 1 }
}

/// True when a message has a known type and the length of that type.
fn is_whole(message: &[u8]) -> bool {
    is_end_of_snapshot(message)
        || message.first().is_some_and(|message_type| message_len(*message_type) == Some(message.len()))
}

/// True for a message that may be part of an instrument's snapshot: directory, state, auction or orders.
fn is_of_snapshot(message: &[u8]) -> bool {
    matches!(message.first(), Some(b'R' | b'H' | b'J' | b'I' | b'A'))
}

#[cfg(test)]
mod tests {
    use tickpath_book::{BookLimits, FastBooks, Indexed};
    use tickpath_nasdaq::itch50::{AddOrder, BuySell, OrderDelete, OrderExecuted};
    use zerocopy::IntoBytes;

    use super::*;

    fn messages() -> Vec<Vec<u8>> {
        let stock = Stock::new("ABC").unwrap();
        let mut messages: Vec<Vec<u8>> = (1..=100_u64)
            .map(|id| {
                let price = 10_000 + id as u32;
                AddOrder::new(1, 0, Nanos(id), id, BuySell::BUY, 10, stock, price).as_bytes().to_vec()
            })
            .collect();
        let executed =
            (1..=50).map(|id| OrderExecuted::new(1, 0, Nanos(200 + id), id, 11, 1).as_bytes().to_vec());
        messages.extend(executed);
        messages.extend((51..=60).map(|id| OrderDelete::new(1, 0, Nanos(300), id).as_bytes().to_vec()));
        messages
    }

    fn builder() -> BookBuilder<Indexed<FastBooks>> {
        BookBuilder::new(Indexed::new(BookLimits::new(InstrumentId(1), 1_000)))
    }

    #[test]
    fn contradictions_have_the_place_of_their_group() {
        let messages = messages();
        let slices: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let mut updates = Updates::default();
        Itch::apply(&mut builder(), 1, &slices, &mut updates);
        let places: Vec<_> = updates.contradictions.iter().map(|found| found.messages.clone()).collect();
        assert_eq!(places, [96..=127, 128..=159]);
        assert_eq!(updates.contradictions.iter().map(|found| found.counts[0]).sum::<u64>(), 50);
    }
}
