//! Fetching what messages that already wait will need.

use tickpath_book::OrderBooks;
use tickpath_nasdaq::itch50::{
    AddOrder, AddOrderMpid, OrderCancel, OrderDelete, OrderExecuted, OrderExecutedWithPrice, OrderReplace,
};
use tickpath_types::{InstrumentId, Price, Sequence, Side};

use crate::{BookBuilder, UpdateListener};

/// Messages that [`BookBuilder::handle_batch`] looks at together: enough for their cache misses to run side by
/// side, few enough for what was fetched to stay in the nearest cache until its turn comes.
pub const LOOK_AHEAD_LEN: usize = 32;

/// Where a new order will rest, as far as the message says it.
#[derive(Clone, Copy)]
struct Place {
    instrument: InstrumentId,
    side: Side,
    price: Price,
}

impl<B: OrderBooks<()>> BookBuilder<B> {
    /// Applies messages that wait together, in order, the first with the number `first`; the same as
    /// [`BookBuilder::handle_message`] for each, but the memory that they need is fetched beforehand.
    pub fn handle_batch(&mut self, first: Sequence, messages: &[&[u8]], out: &mut impl UpdateListener) {
        let mut sequence = first;
        for group in messages.chunks(LOOK_AHEAD_LEN) {
            self.look_ahead(group);
            for message in group {
                self.handle_message(sequence, message, out);
                sequence = sequence.next();
            }
        }
    }

    /// Starts to fetch what the first [`LOOK_AHEAD_LEN`] of these messages are about, step by step, each step for
    /// all of them; a hint without effect. Bytes that are no message do no harm.
    #[inline]
    pub fn look_ahead(&self, messages: &[&[u8]]) {
        let mut refs = [0; LOOK_AHEAD_LEN];
        let mut places =
            [Place { instrument: InstrumentId(0), side: Side::Buy, price: Price(0) }; LOOK_AHEAD_LEN];
        let (mut ref_count, mut place_count) = (0, 0);
        for message in messages.iter().take(LOOK_AHEAD_LEN) {
            let Some((head, rest)) = message.split_first_chunk::<HEAD_LEN>() else { continue };
            let order_ref = u64::from_be_bytes(eight(head, ORDER_REF));
            let (is_ref, is_place) = (names_order(head[0]), is_add(head[0]));
            // No branch: messages come in no order that a CPU could predict.
            refs[ref_count] = order_ref;
            ref_count += usize::from(is_ref);
            self.index().prefetch(order_ref);
            if is_place && let Some(add) = rest.first_chunk::<ADD_LEN>() {
                let price = u32::from_be_bytes([add[13], add[14], add[15], add[16]]);
                let place = Place {
                    instrument: InstrumentId(u16::from_be_bytes([head[1], head[2]])),
                    side: if add[0] == b'B' { Side::Buy } else { Side::Sell },
                    price: Price(i64::from(price)),
                };
                self.books().prefetch_side(place.instrument, place.side, place.price);
                places[place_count] = place;
                place_count += 1;
            }
        }
        let mut orders = [None; LOOK_AHEAD_LEN];
        for (order, order_ref) in orders.iter_mut().zip(&refs[..ref_count]) {
            *order = self.index().find(*order_ref);
            self.books().prefetch(*order);
        }
        for place in &places[..place_count] {
            self.books().prefetch_level(place.instrument, place.side, place.price);
        }
        for order in &orders[..ref_count] {
            self.books().prefetch_neighbours(*order);
        }
        for place in &places[..place_count] {
            self.books().prefetch_tail(place.instrument, place.side, place.price);
        }
    }
}

/// Every message about an order begins with type, locate, tracking number, time and reference; an add goes on with
/// its side, shares, symbol and price.
const ORDER_REF: usize = 11;
const HEAD_LEN: usize = 19;
const ADD_LEN: usize = 17;

const _: () = assert!(OrderDelete::LEN == HEAD_LEN && AddOrder::LEN == HEAD_LEN + ADD_LEN);

fn eight(bytes: &[u8; HEAD_LEN], at: usize) -> [u8; 8] {
    std::array::from_fn(|index| bytes[at + index])
}

#[inline(always)]
fn names_order(message_type: u8) -> bool {
    const TYPES: [u8; 5] = [
        OrderExecuted::TYPE,
        OrderExecutedWithPrice::TYPE,
        OrderCancel::TYPE,
        OrderDelete::TYPE,
        OrderReplace::TYPE,
    ];
    TYPES.iter().fold(false, |found, known| found | (*known == message_type))
}

#[inline(always)]
fn is_add(message_type: u8) -> bool {
    (message_type == AddOrder::TYPE) | (message_type == AddOrderMpid::TYPE)
}
