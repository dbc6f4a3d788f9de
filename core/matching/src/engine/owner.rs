//! The owner of a resting order, and the order's key in the index.

use tickpath_types::{EnterOrder, OrderAttributes, SessionId, UserRefNum};

use crate::codec::orders::layout;

/// The owner of a resting order, kept beside it in the books.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// Executed quantity of the order and of those that it replaced; with its quantity, its intended size.
    pub executed: u64,
    /// The session's number of the order.
    pub user_ref: UserRefNum,
    /// The session.
    pub session: SessionId,
    /// OUCH Capacity, which an order that replaces it takes over.
    pub capacity: u8,
    /// OUCH CrossType, likewise.
    pub cross_type: u8,
}

impl Owner {
    /// The owner of a session's order, with its executed quantity.
    #[inline(always)]
    pub(super) const fn of(order: &EnterOrder, session: SessionId, executed: u64) -> Owner {
        let OrderAttributes { capacity, cross_type, .. } = order.attributes;
        Owner { executed, user_ref: order.user_ref, session, capacity, cross_type }
    }
}

layout! { Owner { executed: u64, user_ref: UserRefNum, session: SessionId, capacity: u8, cross_type: u8 } }

// Four orders' owners fill a cache line.
const _: () = assert!(size_of::<Owner>() == 16);

/// One key space for all sessions: a block of 2^32 numbers for each.
#[inline]
pub(super) fn order_key(session: SessionId, user_ref: UserRefNum) -> u64 {
    u64::from(session.0) << 32 | u64::from(user_ref.0)
}

/// The session's number in an [`order_key`].
#[inline]
pub(super) fn user_ref_of(key: u64) -> UserRefNum {
    UserRefNum(key as u32)
}
