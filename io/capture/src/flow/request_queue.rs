//! The queue of the requests of the two sessions, which also assigns their UserRefNums.

use std::collections::VecDeque;

use tickpath_types::{
    CancelOrder, EnterOrder, InstrumentId, OrderRequest, Price, Qty, ReplaceOrder, Side, TimeInForce,
    UserRefNum,
};

use super::{Expected, FlowStep, Role};
use crate::Level;

/// Assigns UserRefNums to requests and queues the requests for the caller.
pub(crate) struct RequestQueue {
    /// Time of the event being mapped, in the recording's time base.
    pub(crate) ts_ns: u64,
    pub(crate) steps: VecDeque<FlowStep>,
    /// Next UserRefNum of each [`Role`].
    next: [u32; 2],
}

impl RequestQueue {
    pub(crate) fn new() -> Self {
        RequestQueue { ts_ns: 0, steps: VecDeque::new(), next: [1; 2] }
    }

    /// True when either session has used its last UserRefNum.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.next.contains(&u32::MAX)
    }

    fn push(&mut self, role: Role, request: OrderRequest, expected: Option<Expected>) {
        self.steps.push_back(FlowStep { ts_ns: self.ts_ns, role, request, expected });
    }

    fn next(&mut self, role: Role) -> UserRefNum {
        let next = &mut self.next[role as usize];
        *next += 1;
        UserRefNum(*next - 1)
    }

    /// Queues a new post-only order of the maker.
    pub(crate) fn enter(&mut self, instrument: InstrumentId, level: Level, qty: Qty) -> UserRefNum {
        let user_ref = self.next(Role::Maker);
        let order = EnterOrder {
            post_only: true,
            ..EnterOrder::limit(user_ref, instrument, level.side, qty, level.price)
        };
        self.push(Role::Maker, OrderRequest::Enter(order), None);
        user_ref
    }

    /// Queues an immediate-or-cancel order of the taker, which executes a resting order.
    pub(crate) fn take(&mut self, instrument: InstrumentId, side: Side, expected: Expected) {
        let user_ref = self.next(Role::Taker);
        let order = EnterOrder {
            time_in_force: TimeInForce::Ioc,
            ..EnterOrder::limit(user_ref, instrument, side, expected.qty, expected.price)
        };
        self.push(Role::Taker, OrderRequest::Enter(order), Some(expected));
    }

    /// Queues the replacement of a resting order; `qty` includes the executed quantity.
    pub(crate) fn replace(&mut self, orig_user_ref: UserRefNum, price: Price, qty: Qty) -> UserRefNum {
        let user_ref = self.next(Role::Maker);
        let order =
            ReplaceOrder { post_only: true, ..ReplaceOrder::limit(orig_user_ref, user_ref, qty, price) };
        self.push(Role::Maker, OrderRequest::Replace(order), None);
        user_ref
    }

    /// Queues the reduction of a resting order to `qty`, which includes the executed quantity; 0 cancels it.
    pub(crate) fn cancel(&mut self, user_ref: UserRefNum, qty: Qty) {
        self.push(Role::Maker, OrderRequest::Cancel(CancelOrder { user_ref, qty }), None);
    }
}
