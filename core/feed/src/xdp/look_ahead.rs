//! Fetching what messages that already wait will need.

use std::hint::select_unpredictable;

use tickpath_book::{Announced, BooksById, Coming};
use tickpath_nyse::ReplaceOrder;
use tickpath_types::{InstrumentId, OrderId, Price, Sequence, Side};

use super::BookBuilder;
use super::message::Message;
use crate::LOOK_AHEAD_LEN;
use crate::instruments::UpdateListener;

/// Open orders below which looking ahead for all that a message needs costs more than it saves.
const OPEN_ORDERS_MIN: u32 = 1 << 16;

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
            let is_large = self.instruments().books().order_count() >= OPEN_ORDERS_MIN;
            let mut count = 0;
            for ((place, announced), message) in group.iter_mut().zip(&mut announced).zip(&mut messages) {
                let (coming, new_order) = self.coming_of(message.bytes);
                *place = (message, coming.instrument);
                let books = self.instruments().books();
                if is_large {
                    *announced = books.announce(&coming);
                    if let Some(id) = new_order {
                        books.prefetch(id);
                    }
                } else {
                    books.prefetch(coming.id);
                }
                count += 1;
            }
            if count == 0 {
                return total;
            }
            if is_large {
                self.instruments().books().look_ahead(&mut announced[..count]);
            }
            self.apply_all(&group[..count], out);
            total += count as u64;
        }
    }

    /// Applies messages whose instruments were looked up before.
    // A loop of its own, with the CPU's registers to itself.
    #[inline(never)]
    fn apply_all(&mut self, messages: &[(Message<'_>, InstrumentId)], out: &mut impl UpdateListener) {
        for (message, instrument) in messages {
            let sequence = Sequence(u64::from(message.sequence));
            self.apply(message.channel, sequence, message.bytes, *instrument, out);
        }
    }

    /// What a message is about, if it is about an order; else nothing. No branch depends on which of them it is, since they
    /// come in no order that a CPU could predict: each is taken for an add and for a message about an order at once. Only
    /// replaces, which are few, say more: the order that comes.
    #[inline(always)]
    fn coming_of(&self, message: &[u8]) -> (Coming, Option<OrderId>) {
        let Some((head, rest)) = message.split_first_chunk::<HEAD_LEN>() else {
            return (Coming::NOTHING, None);
        };
        let message_type = u16::from_le_bytes(part(head, 2));
        if message_type.wrapping_sub(ORDERS_FIRST) > ORDERS_LAST - ORDERS_FIRST {
            return (Coming::NOTHING, None);
        }
        let more = rest.first_chunk();
        let more = select_unpredictable(more.is_some(), more.unwrap_or(&NO_MORE), &NO_MORE);
        let instrument = self.symbols.find(u32::from_le_bytes(part(head, 8)));
        let price = self.symbols.row(instrument).scale.price(u32::from_le_bytes(part(more, 0)));
        let coming = Coming {
            id: OrderId(u64::from_le_bytes(part(head, 16))),
            instrument,
            side: Side::BOTH[usize::from(more[8] != b'B')],
            price: price.unwrap_or(Price(0)),
        };
        let new_order =
            (message_type == ReplaceOrder::TYPE).then(|| OrderId(u64::from_le_bytes(part(more, 0))));
        (coming, new_order)
    }
}

/// Every message about an order begins with size, type, time, symbol, the symbol's number and the order; an add goes on with
/// its price, volume and side, a replace with the order that comes.
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

fn part<const N: usize, const LEN: usize>(bytes: &[u8; LEN], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}
