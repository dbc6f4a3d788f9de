//! A simple reference venue.

pub mod engine;

use std::collections::{BTreeMap, HashMap};

use tickpath_capture::flow::{FlowStep, Role};
use tickpath_types::{Instrument, OrderRequest, Price, Side, UserRefNum};

/// Priority of an order on its side: price key (the smallest trades first), then time of entry.
type Priority = (i64, u64);

#[derive(Clone, Copy)]
struct Order {
    instrument: usize,
    side: Side,
    priority: Priority,
    price: Price,
    /// Total quantity, including the executed quantity.
    total: u64,
    executed: u64,
}

/// A venue with simple price-time matching. It panics at any request that a venue would refuse, ignore or
/// cancel, since a mapper must not send one.
#[derive(Default)]
pub struct ReferenceVenue {
    instruments: Vec<Instrument>,
    /// The resting orders of each instrument: buys, then sells.
    books: Vec<[BTreeMap<Priority, UserRefNum>; 2]>,
    makers: HashMap<UserRefNum, Order>,
    last_user_ref: [u32; 2],
    time: u64,
}

impl ReferenceVenue {
    pub fn new(instruments: Vec<Instrument>) -> Self {
        let books = instruments.iter().map(|_| Default::default()).collect();
        ReferenceVenue { instruments, books, ..Default::default() }
    }

    /// Handles one request; asserts the execution that the mapper expects.
    pub fn handle(&mut self, step: &FlowStep) {
        let is_new = step.request.is_new_order();
        if is_new {
            let last = &mut self.last_user_ref[step.role as usize];
            assert!(step.request.user_ref().0 > *last, "{step:?}: numbers must increase");
            *last = step.request.user_ref().0;
        }
        match (step.role, step.request) {
            (Role::Maker, OrderRequest::Enter(order)) => {
                assert!(order.post_only);
                let index = usize::from(order.instrument.0) - 1;
                self.rest(order.user_ref, index, order.side, order.price, order.qty.0, 0);
            }
            (Role::Maker, OrderRequest::Replace(replace)) => {
                let old = self.remove_maker(replace.orig_user_ref);
                assert!(replace.qty.0 > old.executed, "{step:?}: nothing would be left");
                self.rest(
                    replace.user_ref,
                    old.instrument,
                    old.side,
                    replace.price,
                    replace.qty.0,
                    old.executed,
                );
            }
            (Role::Maker, OrderRequest::Cancel(cancel)) => {
                let order = self.makers.get_mut(&cancel.user_ref).expect("cancels name a live order");
                assert!(cancel.qty.0 < order.total, "{step:?}: a cancel must make the order smaller");
                order.total = cancel.qty.0;
                if cancel.qty.is_zero() {
                    self.remove_maker(cancel.user_ref);
                }
            }
            (Role::Taker, OrderRequest::Enter(order)) => {
                let expected = step.expected.expect("every request of the taker has an answer");
                let index = usize::from(order.instrument.0) - 1;
                let (_, user_ref) = self.books[index][order.side.opposite().index()]
                    .first_key_value()
                    .expect("there is an order to take");
                let user_ref = *user_ref;
                let resting = self.makers.get_mut(&user_ref).expect("it is live");
                assert!(order.side.crosses(order.price, resting.price));
                let qty = order.qty.0.min(resting.total - resting.executed);
                assert_eq!(
                    (user_ref, resting.price, qty),
                    (expected.resting, expected.price, expected.qty.0)
                );
                assert_eq!(qty, order.qty.0, "one order fills all of it");
                resting.executed += qty;
                if resting.executed == resting.total {
                    self.remove_maker(user_ref);
                }
            }
            _ => panic!("{step:?} is no request of a mapper"),
        }
    }

    fn rest(
        &mut self,
        user_ref: UserRefNum,
        index: usize,
        side: Side,
        price: Price,
        total: u64,
        executed: u64,
    ) {
        let instrument = &self.instruments[index];
        assert!(
            instrument.is_on_tick(price) && instrument.is_within_collar(price),
            "{price} at {instrument:?}"
        );
        assert!(instrument.is_tradable_qty(tickpath_types::Qty(total - executed)));
        assert!(total <= instrument.max_qty.0);
        if let Some((_, best)) = self.books[index][side.opposite().index()].first_key_value() {
            assert!(!side.crosses(price, self.makers[best].price), "a maker's order must not trade");
        }
        self.time += 1;
        let priority = (-side.sign() * price.0, self.time);
        self.makers.insert(user_ref, Order { instrument: index, side, priority, price, total, executed });
        self.books[index][side.index()].insert(priority, user_ref);
    }

    fn remove_maker(&mut self, user_ref: UserRefNum) -> Order {
        let order = self.makers.remove(&user_ref).expect("the order is live");
        self.books[order.instrument][order.side.index()].remove(&order.priority);
        order
    }

    /// UserRefNum, price and open quantity of each order on one side of an instrument, in priority order.
    pub fn resting(&self, index: usize, side: Side) -> Vec<(UserRefNum, Price, u64)> {
        self.books[index][side.index()]
            .values()
            .map(|user_ref| {
                let order = &self.makers[user_ref];
                (*user_ref, order.price, order.total - order.executed)
            })
            .collect()
    }
}
