//! Fetching what messages that already wait will need.

use std::hint::select_unpredictable;

use tickpath_book::{Announced, BooksById, Coming};
use tickpath_types::{InstrumentId, OrderId, Price, Sequence, Side};

use super::{BookBuilder, Channel};
use crate::LOOK_AHEAD_LEN;
use crate::instruments::UpdateListener;

/// Open orders below which looking ahead for all that a message needs costs more than it saves.
const OPEN_ORDERS_MIN: u32 = 1 << 16;

/// A message of a channel with its number.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The channel.
    pub channel: Channel,
    /// Its number in the channel.
    pub sequence: u32,
    /// Its bytes with its header.
    pub bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// A message of these.
    #[inline]
    #[must_use]
    pub const fn new(channel: Channel, sequence: u32, bytes: &'a [u8]) -> Message<'a> {
        Message { channel, sequence, bytes }
    }

    const NONE: Message<'a> = Message { channel: Channel(0), sequence: 0, bytes: &[] };
}

impl<B: BooksById> BookBuilder<B> {
    /// Applies messages that wait together, in order; the same as [`BookBuilder::handle_message`] for each, but the memory
    /// that they need is fetched beforehand. Returns how many there were.
    #[inline]
    pub fn handle_batch<'a>(
        &mut self,
        messages: impl IntoIterator<Item = Message<'a>>,
        out: &mut impl UpdateListener,
    ) -> u64 {
        let mut messages = messages.into_iter();
        let mut group = [(Message::NONE, InstrumentId(0)); LOOK_AHEAD_LEN];
        let mut announced = [Announced::NOTHING; LOOK_AHEAD_LEN];
        let mut total = 0;
        loop {
            let mut count = 0;
            for ((place, announced), message) in group.iter_mut().zip(&mut announced).zip(&mut messages) {
                let coming = self.coming_of(message.bytes);
                *place = (message, coming.instrument);
                *announced = self.instruments().books().announce(&coming);
                count += 1;
            }
            if count == 0 {
                return total;
            }
            if self.instruments().books().order_count() >= OPEN_ORDERS_MIN {
                self.instruments().books().look_ahead(&announced[..count]);
            }
            for (message, instrument) in &group[..count] {
                self.apply(
                    message.channel,
                    Sequence(u64::from(message.sequence)),
                    message.bytes,
                    *instrument,
                    out,
                );
            }
            total += count as u64;
        }
    }

    /// What a message is about, if it is about an order; else nothing. No branch depends on which of them it is, since they
    /// come in no order that a CPU could predict: each is taken for an add and for a message about an order at once.
    #[inline(always)]
    fn coming_of(&self, message: &[u8]) -> Coming {
        let Some((head, rest)) = message.split_first_chunk::<HEAD_LEN>() else { return Coming::NOTHING };
        let message_type = u16::from_le_bytes(part(head, 2));
        if message_type.wrapping_sub(ORDERS_FIRST) > ORDERS_LAST - ORDERS_FIRST {
            return Coming::NOTHING;
        }
        let add = rest.first_chunk();
        let add = select_unpredictable(add.is_some(), add.unwrap_or(&NO_ADD), &NO_ADD);
        let instrument = self.symbols.find(u32::from_le_bytes(part(head, 8)));
        let price = self.symbols.row(instrument).scale.price(u32::from_le_bytes(part(add, 0)));
        Coming {
            id: OrderId(u64::from_le_bytes(part(head, 16))),
            instrument,
            side: Side::BOTH[usize::from(add[8] != b'B')],
            price: price.unwrap_or(Price(0)),
        }
    }
}

/// Every message about an order begins with size, type, time, symbol, the symbol's number and the order; an add goes on with
/// its price, volume and side.
const HEAD_LEN: usize = 24;
const ADD_LEN: usize = 9;
const NO_ADD: [u8; ADD_LEN] = [0; ADD_LEN];
const ORDERS_FIRST: u16 = 100;
const ORDERS_LAST: u16 = 104;

const _: () = {
    use std::mem::offset_of;
    use tickpath_nyse::{AddOrder, DeleteOrder, ModifyOrder, OrderExecution, ReplaceOrder};
    assert!(AddOrder::TYPE == ORDERS_FIRST && ReplaceOrder::TYPE == ORDERS_LAST);
    assert!(offset_of!(AddOrder, order_id) == 16 && offset_of!(DeleteOrder, order_id) == 16);
    assert!(offset_of!(ModifyOrder, order_id) == 16 && offset_of!(OrderExecution, order_id) == 16);
    assert!(offset_of!(AddOrder, price) == HEAD_LEN && offset_of!(AddOrder, side) == HEAD_LEN + 8);
};

fn part<const N: usize, const LEN: usize>(bytes: &[u8; LEN], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}
