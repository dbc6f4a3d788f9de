//! The owner of a resting order, and the order's key in the index.

use tickpath_types::{EnterOrder, OrderAttributes, SessionId, UserRefNum};

use crate::codec::orders::layout;

/// The owner of a resting order, kept beside it in the books.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// Executed quantity of the order and of those it replaced: the intended size less the open quantity.
    pub executed: u64,
    /// `UserRefNum` of the order in that session.
    pub user_ref: UserRefNum,
    /// The session that owns the order.
    pub session: SessionId,
    /// OUCH Capacity, which a replacement inherits.
    pub capacity: u8,
    /// OUCH CrossType, which a replacement inherits.
    pub cross_type: u8,
}

impl Owner {
    /// The owner of an order that `session` entered; `executed` is the order's executed quantity.
    #[inline(always)]
    pub(super) const fn of(order: &EnterOrder, session: SessionId, executed: u64) -> Owner {
        let OrderAttributes { capacity, cross_type, .. } = order.attributes;
        Owner { executed, user_ref: order.user_ref, session, capacity, cross_type }
    }
}

layout! { Owner { executed: u64, user_ref: UserRefNum, session: SessionId, capacity: u8, cross_type: u8 } }

// Four owners fill a cache line of 64 bytes.
const _: () = assert!(size_of::<Owner>() == 16);

/// Key of an order in the index: the session in the high half, the `UserRefNum` in the low one.
#[inline]
pub(super) fn order_key(session: SessionId, user_ref: UserRefNum) -> u64 {
    u64::from(session.0) << 32 | u64::from(user_ref.0)
}

/// The `UserRefNum` in an [`order_key`].
#[inline]
pub(super) fn user_ref_of(key: u64) -> UserRefNum {
    UserRefNum(key as u32)
}
