//! Prefetch of the orders that queued messages refer to.

use tickpath_book::{BooksById, PrefetchRequest, PrefetchTicket};
use tickpath_types::OrderId;

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

/// Returns the `N` bytes of `bytes` from offset `at` on.
#[inline(always)]
pub(crate) fn part<const N: usize, const LEN: usize>(bytes: &[u8; LEN], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}
