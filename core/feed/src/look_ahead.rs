//! Fetching what messages that already wait will need.

use std::hint::select_unpredictable;

use tickpath_book::{Entry, Hint, OrderBooks};
use tickpath_nasdaq::itch50::{AddOrder, OrderDelete};
use tickpath_types::{InstrumentId, Price, Sequence, Side};

use crate::{BookBuilder, UpdateListener};

/// Messages that [`BookBuilder::handle_batch`] looks at together: enough for their cache misses to run side by
/// side, few enough for what was fetched to stay in the nearest cache until its turn comes.
pub const LOOK_AHEAD_LEN: usize = 32;

/// Open orders below which looking ahead for all that a message needs costs more than it saves, since most of the books
/// is in the caches anyway; then only the entry of the message's order is fetched.
const OPEN_ORDERS_MIN: u32 = 1 << 18;

/// Messages between one that is applied and the one whose order's entry is fetched meanwhile.
const NEAR_AHEAD: usize = 8;

impl<B: OrderBooks<()>> BookBuilder<B> {
    /// Applies messages that wait together, in order, the first with the number `first`; the same as
    /// [`BookBuilder::handle_message`] for each, but the memory that they need is fetched beforehand.
    pub fn handle_batch(&mut self, first: Sequence, messages: &[&[u8]], out: &mut impl UpdateListener) {
        let mut sequence = first;
        let mut handle = |builder: &mut Self, message| {
            builder.handle_message(sequence, message, out);
            sequence = sequence.next();
        };
        if self.books().order_count() < OPEN_ORDERS_MIN {
            for (index, message) in messages.iter().enumerate() {
                if let Some(ahead) = messages.get(index + NEAR_AHEAD) {
                    self.prefetch(ahead);
                }
                handle(self, message);
            }
            return;
        }
        for group in messages.chunks(LOOK_AHEAD_LEN) {
            self.look_ahead(group);
            group.iter().for_each(|message| handle(self, message));
        }
    }

    /// Starts to fetch what the first [`LOOK_AHEAD_LEN`] of these messages are about, step by step, each step for
    /// all of them; a hint without effect. Bytes that are no message do no harm.
    ///
    /// No branch depends on what the messages are, since they come in no order that a CPU could predict. Each is taken
    /// for an add and for a message about an order at once: an add's reference leads to no order, and then the hint is
    /// about its place.
    #[inline]
    pub fn look_ahead(&self, messages: &[&[u8]]) {
        let mut hints = [Hint::NONE; LOOK_AHEAD_LEN];
        let mut entries = [Entry::default(); LOOK_AHEAD_LEN];
        let count = messages.len().min(LOOK_AHEAD_LEN);
        for ((hint, entry), message) in hints.iter_mut().zip(&mut entries).zip(messages) {
            let Some((head, rest)) = message.split_first_chunk::<HEAD_LEN>() else { continue };
            let add = rest.first_chunk();
            let add = select_unpredictable(add.is_some(), add.unwrap_or(&NO_ADD), &NO_ADD);
            let instrument = InstrumentId(u16::from_be_bytes(part(head, 1)));
            let side = Side::BOTH[usize::from(add[0] != b'B')];
            let price = Price(i64::from(u32::from_be_bytes(part(add, PRICE))));
            *hint = self.books().hint(instrument, side, price);
            *entry = self.index().prefetch(u64::from_be_bytes(part(head, ORDER_REF)));
        }
        for (hint, entry) in hints.iter_mut().zip(&entries).take(count) {
            hint.name_order(self.index().peek(*entry));
        }
        self.books().look_ahead(&mut hints[..count]);
    }
}

/// Every message about an order begins with type, locate, tracking number, time and reference; an add goes on with
/// its side, shares, symbol and price.
const ORDER_REF: usize = 11;
const HEAD_LEN: usize = 19;
const PRICE: usize = 13;
const ADD_LEN: usize = 17;
const NO_ADD: [u8; ADD_LEN] = [0; ADD_LEN];

const _: () = assert!(OrderDelete::LEN == HEAD_LEN && AddOrder::LEN == HEAD_LEN + ADD_LEN);

fn part<const N: usize, const LEN: usize>(bytes: &[u8; LEN], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}
