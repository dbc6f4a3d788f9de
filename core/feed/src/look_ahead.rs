//! Prefetch of the orders that queued messages refer to.

use std::hint::select_unpredictable;

use tickpath_book::{BooksById, PrefetchRequest, PrefetchTicket};
use tickpath_nasdaq::itch50::{AddOrder, OrderDelete, OrderReplace};
use tickpath_types::{InstrumentId, OrderId, Price, Side};

/// Queued messages per group: enough to overlap their cache misses, few enough that prefetched data stays in
/// the nearest cache until it is used.
pub const LOOK_AHEAD_LEN: usize = 32;

/// Number of open orders below which a full prefetch costs more than it saves, since most of the books'
/// memory is cached anyway. Below it, only the index entry of the message's order is prefetched.
const OPEN_ORDERS_MIN: u32 = 1 << 16;

/// Applies queued messages in groups of [`LOOK_AHEAD_LEN`], and prefetches the memory that a group needs
/// before it is applied. `request_of` returns the order that a message refers to, `new_order` the order that
/// a replace message creates. Returns the number of messages.
#[inline(always)]
pub(crate) fn handle_in_groups<T, B: BooksById, M: Copy>(
    target: &mut T,
    messages: impl IntoIterator<Item = M>,
    none: M,
    books: impl Fn(&T) -> &B,
    request_of: impl Fn(&T, &mut M) -> PrefetchRequest,
    new_order: impl Fn(&M) -> Option<OrderId>,
    mut apply: impl FnMut(&mut T, &[M]),
) -> u64 {
    let mut messages = messages.into_iter();
    let mut group = [none; LOOK_AHEAD_LEN];
    let mut tickets = [PrefetchTicket::EMPTY; LOOK_AHEAD_LEN];
    let mut total = 0;
    loop {
        let is_large = books(target).order_count() >= OPEN_ORDERS_MIN;
        let mut count = 0;
        for ((place, ticket), message) in group.iter_mut().zip(&mut tickets).zip(&mut messages) {
            *place = message;
            let request = request_of(target, place);
            if is_large {
                *ticket = books(target).start_prefetch(&request);
                if let Some(id) = new_order(place) {
                    books(target).prefetch(id);
                }
            } else {
                books(target).prefetch(request.id);
            }
            count += 1;
        }
        if count == 0 {
            return total;
        }
        if is_large {
            books(target).look_ahead(&mut tickets[..count]);
        }
        apply(target, &group[..count]);
        total += count as u64;
    }
}

/// Returns the prefetch request for a message, without a test of its type. Arbitrary bytes do no harm.
///
/// No branch depends on the content, since a CPU cannot predict the order of message types. Each message is
/// read both as an add and as a message about an open order. The books have no order with an add's id, so for
/// an add the request's side and price are used.
#[inline(always)]
pub(crate) fn prefetch_request(message: &[u8]) -> PrefetchRequest {
    let Some((head, rest)) = message.split_first_chunk::<HEAD_LEN>() else { return PrefetchRequest::EMPTY };
    let add = rest.first_chunk();
    let add = select_unpredictable(add.is_some(), add.unwrap_or(&NO_ADD), &NO_ADD);
    PrefetchRequest {
        id: OrderId(u64::from_be_bytes(part(head, ORDER_REF))),
        instrument: InstrumentId(u16::from_be_bytes(part(head, 1))),
        side: Side::BOTH[usize::from(add[0] != b'B')],
        price: Price(i64::from(u32::from_be_bytes(part(add, PRICE)))),
    }
}

/// Returns the order that a replace message creates; `None` for other messages, most of which the length
/// check excludes.
#[inline(always)]
pub(crate) fn new_order_of(message: &[u8]) -> Option<OrderId> {
    let message: &[u8; OrderReplace::LEN] = message.try_into().ok()?;
    (message[0] == OrderReplace::TYPE).then(|| OrderId(u64::from_be_bytes(part(message, HEAD_LEN))))
}

/// Offsets and lengths in bytes. Every order message begins with type, locate, tracking number, time and
/// order reference. An add continues with its side, shares, symbol and price; `PRICE` counts from there.
const ORDER_REF: usize = 11;
const HEAD_LEN: usize = 19;
const PRICE: usize = 13;
const ADD_LEN: usize = 17;
const NO_ADD: [u8; ADD_LEN] = [0; ADD_LEN];

const _: () = assert!(OrderDelete::LEN == HEAD_LEN && AddOrder::LEN == HEAD_LEN + ADD_LEN);

/// Returns the `N` bytes of `bytes` from offset `at` on.
#[inline(always)]
pub(crate) fn part<const N: usize, const LEN: usize>(bytes: &[u8; LEN], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}
