//! An auditor that checks an engine from outside, by its events and books.

use std::collections::BTreeMap;

use tickpath_book::{BookLimits, Order, OrderBooks, OrderHandle};
use tickpath_matching::{Command, CommandKind, Engine, Owner};
use tickpath_reference::ReferenceBooks;
use tickpath_types::*;

use crate::common::Event;

/// Checks the events of an engine against each other and against its books, without other knowledge of it.
///
/// It keeps every session's orders as the session would, and a book as a feed handler would.
pub struct Auditor {
    /// Open orders as their sessions see them.
    orders: BTreeMap<(SessionId, UserRefNum), OrderView>,
    /// The book as the public sees it.
    public: ReferenceBooks,
    references: BTreeMap<OrderId, OrderHandle>,
    last_market: u64,
    last_order_id: u64,
    last_match_id: u64,
    /// Total quantities since the start: entered, traded (counted once per side) and cancelled.
    entered: u128,
    traded: u128,
    canceled: u128,
}

/// A session's view of its order.
#[derive(Clone, Copy, Debug)]
struct OrderView {
    leaves: u64,
    executed: u64,
    order_id: OrderId,
}

impl Auditor {
    pub fn new(max_instrument: u16) -> Auditor {
        Auditor {
            orders: BTreeMap::new(),
            public: ReferenceBooks::new(BookLimits::new(InstrumentId(max_instrument), u32::MAX)),
            references: BTreeMap::new(),
            last_market: 0,
            last_order_id: 0,
            last_match_id: 0,
            entered: 0,
            traded: 0,
            canceled: 0,
        }
    }

    /// Checks the events of one command.
    pub fn audit(&mut self, command: &Command, events: &[Event]) {
        let mut may_reply = true;
        if command.kind == CommandKind::EndDay {
            (self.last_order_id, self.last_match_id) = (0, 0);
        }
        for (position, event) in events.iter().enumerate() {
            match event {
                Event::Order(event) => {
                    assert_eq!((event.command, event.ts), (command.sequence, command.ts));
                    if event.is_reply {
                        assert_eq!(event.session, command.session);
                        assert!(std::mem::replace(&mut may_reply, false), "one reply for a command");
                    }
                    self.order_event(event);
                    if let OrderEventKind::Executed { match_id, .. } = event.kind
                        && match_id.0 > self.last_match_id
                    {
                        self.execution(&events[position..]);
                    }
                }
                Event::Market(event) => {
                    assert_eq!((event.command, event.ts), (command.sequence, command.ts));
                    self.last_market += 1;
                    assert_eq!(event.sequence, Sequence(self.last_market));
                    self.market_event(event);
                }
            }
        }
        let first_to_sender = events.iter().find_map(|event| match event {
            Event::Order(event) if event.session == command.session => Some(event.is_reply),
            _ => None,
        });
        let is_request = matches!(
            command.kind,
            CommandKind::Order(_) | CommandKind::GatewayReject { .. } | CommandKind::CancelAll { .. }
        );
        assert!(!is_request || first_to_sender != Some(false), "the sender's first event is the reply");
    }

    /// Checks that the sessions' and the public's views agree with the books, and that quantities add up.
    pub fn check_books<B: OrderBooks<Owner>>(&self, engine: &Engine<B>) {
        assert_eq!(self.public.state_hash(), engine.books().state_hash(), "the public sees the book");
        assert_eq!(self.orders.len() as u64, engine.open_order_count());
        let mut resting = 0_u128;
        for ((session, user_ref), view) in &self.orders {
            let (executed, leaves) = engine.open_qty(*session, *user_ref).expect("the session has it open");
            assert_eq!((leaves.0, executed.0), (view.leaves, view.executed));
            if let Some(handle) = engine.find_order(*session, *user_ref) {
                let Order { id, qty, data, .. } = engine.books().order(handle).unwrap();
                assert_eq!(id, view.order_id);
                assert!(qty <= leaves && data.executed == executed.0);
                assert_eq!((data.session, data.user_ref), (*session, *user_ref));
            }
            resting += u128::from(leaves.0);
        }
        assert_eq!(self.entered, self.traded + self.canceled + resting);
    }

    /// Checks that the best prices of trading instruments do not cross, undisplayed orders included.
    pub fn check_uncrossed<B: OrderBooks<Owner>>(&self, engine: &Engine<B>) {
        for id in (1..=engine.books().limits().max_instrument.0).map(InstrumentId) {
            if engine.trading_state(id) != Some(TradingState::Trading) {
                continue;
            }
            let best = |side: Side| {
                let prices = [engine.books(), engine.hidden_books()].map(|books| books.best_price(id, side));
                prices.into_iter().flatten().reduce(|a, b| if side.is_better(a, b) { a } else { b })
            };
            if let (Some(bid), Some(ask)) = (best(Side::Buy), best(Side::Sell)) {
                assert!(bid < ask, "{id}: {bid} is not below {ask}");
            }
        }
    }

    fn order_event(&mut self, event: &OrderEvent) {
        let key = (event.session, event.kind.user_ref());
        match event.kind {
            OrderEventKind::Accepted { order, order_id, state } => {
                assert_eq!(state, OrderState::Live);
                self.new_order(order_id);
                self.entered += u128::from(order.qty.0);
                let view = OrderView { leaves: order.qty.0, executed: 0, order_id };
                assert!(self.orders.insert(key, view).is_none(), "numbers are not reused");
            }
            OrderEventKind::Replaced { order, orig_user_ref, order_id, state } => {
                assert_eq!(state, OrderState::Live);
                self.new_order(order_id);
                let old = self.orders.remove(&(event.session, orig_user_ref)).expect("it was open");
                let leaves = order.qty.0 - old.executed;
                // The open quantity of the old order counts as cancelled, that of the new order as entered.
                self.canceled += u128::from(old.leaves);
                self.entered += u128::from(leaves);
                let view = OrderView { leaves, executed: old.executed, order_id };
                assert!(self.orders.insert(key, view).is_none(), "numbers are not reused");
            }
            OrderEventKind::Executed { qty, .. } => {
                let order = self.orders.get_mut(&key).expect("only open orders trade");
                order.executed += qty.0;
                self.traded += u128::from(qty.0);
                self.reduce_order(key, qty.0);
            }
            OrderEventKind::Canceled { decrement, .. }
            | OrderEventKind::SelfTradePrevented { decrement, .. } => {
                self.canceled += u128::from(decrement.0);
                self.reduce_order(key, decrement.0);
            }
            OrderEventKind::Modified { qty, .. } => {
                let order = self.orders[&key];
                let decrement = order.leaves - (qty.0 - order.executed);
                self.canceled += u128::from(decrement);
                self.reduce_order(key, decrement);
            }
            OrderEventKind::Restated { order_id, .. } | OrderEventKind::Triggered { order_id, .. } => {
                self.new_order(order_id);
                self.orders.get_mut(&key).expect("only open orders are reported").order_id = order_id;
            }
            OrderEventKind::Broken { .. }
            | OrderEventKind::MassCanceled(_)
            | OrderEventKind::OrderEntrySet(_)
            | OrderEventKind::Rejected { .. } => {}
        }
    }

    fn new_order(&mut self, order_id: OrderId) {
        self.last_order_id += 1;
        assert_eq!(order_id, OrderId(self.last_order_id));
    }

    fn reduce_order(&mut self, key: (SessionId, UserRefNum), qty: u64) {
        let order = self.orders.get_mut(&key).expect("events are about open orders");
        order.leaves = order.leaves.checked_sub(qty).expect("no more goes than there is");
        if order.leaves == 0 {
            self.orders.remove(&key);
        }
    }

    /// Checks that an execution is reported identically to both sides and, outside crosses, to the public.
    fn execution(&mut self, events: &[Event]) {
        let (Event::Order(first), Event::Order(second)) = (&events[0], &events[1]) else {
            panic!("{events:?} is not an execution");
        };
        let (
            OrderEventKind::Executed { qty, price, match_id, liquidity, .. },
            OrderEventKind::Executed {
                qty: qty_2,
                price: price_2,
                match_id: match_id_2,
                liquidity: rested,
                ..
            },
        ) = (first.kind, second.kind)
        else {
            panic!("{events:?} is not an execution");
        };
        assert!(match_id.0 > self.last_match_id);
        self.last_match_id = match_id.0;
        assert_eq!((qty, price, match_id), (qty_2, price_2, match_id_2));
        if liquidity != Liquidity::Removed {
            assert!(
                liquidity == rested && matches!(rested, Liquidity::OpeningCross | Liquidity::ClosingCross)
            );
            return;
        }
        let Event::Market(public) = &events[2] else { panic!("{events:?} is not an execution") };
        match public.kind {
            MarketEventKind::Executed { order_id, qty: qty_3, match_id: match_id_3 } => {
                assert_eq!((rested, qty_3, match_id_3), (Liquidity::Added, qty, match_id));
                let book = self.public.order(self.references[&order_id]).unwrap();
                assert_eq!((book.price, book.instrument), (price, public.instrument));
                let front = self.public.front(public.instrument, book.side);
                assert_eq!(front, Some(self.references[&order_id]), "the first of the best level trades");
            }
            MarketEventKind::Traded { side, price: price_3, qty: qty_3, match_id: match_id_3 } => {
                assert_eq!((rested, qty_3, match_id_3), (Liquidity::AddedHidden, qty, match_id));
                assert_eq!(price, price_3);
                let displayed = self.public.best_price(public.instrument, side);
                assert!(
                    displayed.is_none_or(|best| side.is_better(price, best)),
                    "what is displayed goes first"
                );
            }
            other => panic!("{other:?} is not an execution"),
        }
    }

    fn market_event(&mut self, event: &MarketEvent) {
        match event.kind {
            MarketEventKind::Add { order_id, side, price, qty } => {
                self.add(event.instrument, order_id, side, price, qty);
            }
            MarketEventKind::Executed { order_id, qty, .. }
            | MarketEventKind::ExecutedAt { order_id, qty, .. }
            | MarketEventKind::Reduced { order_id, qty } => {
                let left = self.public.reduce(self.references[&order_id], qty);
                let is_reduction = matches!(event.kind, MarketEventKind::Reduced { .. });
                assert!(!(is_reduction && left.is_zero()), "an order that goes is Deleted");
                if left.is_zero() {
                    self.references.remove(&order_id);
                }
            }
            MarketEventKind::Deleted { order_id } => {
                self.public.remove(self.references.remove(&order_id).expect("it was added"));
            }
            MarketEventKind::Replaced { old_order_id, order_id, price, qty } => {
                let old = self.references.remove(&old_order_id).expect("it was added");
                let side = self.public.remove(old).side;
                self.add(event.instrument, order_id, side, price, qty);
            }
            MarketEventKind::Cross { match_id, .. } => {
                assert_eq!(match_id.0, self.last_match_id + 1);
                self.last_match_id += 1;
            }
            MarketEventKind::System(_)
            | MarketEventKind::Directory
            | MarketEventKind::TradingAction(_)
            | MarketEventKind::Traded { .. }
            | MarketEventKind::TradeBroken { .. }
            | MarketEventKind::Imbalance(_)
            | MarketEventKind::PriceBand { .. } => {}
        }
    }

    fn add(&mut self, instrument: InstrumentId, id: OrderId, side: Side, price: Price, qty: Qty) {
        let order = Order { id, instrument, side, price, qty, data: () };
        let handle = self.public.add(order).expect("the public's book has no bound");
        assert!(self.references.insert(id, handle).is_none(), "ids are not reused");
    }
}
