//! For tests: market updates, answers of a venue, and [`Rig`], an engine with a record of its requests.

use tickpath_timing::NoTrace;
use tickpath_types::{
    CancelReason, ClientOrderId, EnterOrder, Instrument, InstrumentId, Liquidity, MarketUpdate, MatchId,
    Nanos, OrderEventKind, OrderId, OrderRequest, OrderState, Price, Qty, RejectReason, Side, Symbol,
    UpdateKind, UserRefNum,
};

pub use tickpath_test_support::quote;

use crate::{EngineConfig, Limits, Money, Strategy, TradeEngine};

pub const TICK: i64 = 1;

/// Returns an instrument with tick 1, lot 10, collar 1 to 1000.
pub fn instrument(id: u16) -> Instrument {
    Instrument {
        id: InstrumentId(id),
        symbol: Symbol::new("ALPHA").unwrap(),
        tick_size: Price(TICK),
        lot_size: Qty(10),
        max_qty: Qty(10_000),
        reference_price: Price(100),
        collar_low: Price(1),
        collar_high: Price(1_000),
    }
}

pub const LIMITS: Limits = Limits {
    clip: Qty(100),
    threshold: 3,
    max_order_qty: Qty(500),
    max_position: Qty(1_000),
    max_loss: Money(10_000),
    max_open_orders: 8,
};

/// Returns a trade of an incoming order of side `aggressor`; after it the best prices are 100 and 101, each
/// with quantity 100.
pub fn trade(instrument: u16, aggressor: Side, price: i64, qty: u64, ts_event: u64) -> MarketUpdate {
    MarketUpdate {
        ts_event,
        price,
        qty,
        kind: UpdateKind::Trade as u8,
        side: aggressor.opposite() as u8,
        ..quote(instrument, (100, 100), (101, 100))
    }
}

pub fn accepted(order: &EnterOrder) -> OrderEventKind {
    OrderEventKind::Accepted { order: *order, order_id: OrderId(9), state: OrderState::Live }
}

pub fn executed(user_ref: u32, qty: u64, price: i64) -> OrderEventKind {
    OrderEventKind::Executed {
        user_ref: UserRefNum(user_ref),
        qty: Qty(qty),
        price: Price(price),
        liquidity: Liquidity::Added,
        match_id: MatchId(1),
    }
}

pub fn canceled(user_ref: u32, decrement: u64, reason: CancelReason) -> OrderEventKind {
    OrderEventKind::Canceled { user_ref: UserRefNum(user_ref), decrement: Qty(decrement), reason }
}

pub fn rejected(user_ref: u32, reason: RejectReason) -> OrderEventKind {
    OrderEventKind::Rejected {
        user_ref: UserRefNum(user_ref),
        reason,
        client_order_id: ClientOrderId::default(),
    }
}

/// An engine for two instruments, and the requests that it sent.
pub struct Rig<S> {
    pub engine: TradeEngine<S, NoTrace>,
    pub now: Nanos,
    sent: Vec<OrderRequest>,
    /// Every new order and replacement sent, with the values that the venue would hold.
    entered: Vec<EnterOrder>,
}

impl<S: Strategy> Rig<S> {
    pub fn new(strategy: S) -> Rig<S> {
        Rig::with(EngineConfig::default(), LIMITS, strategy)
    }

    pub fn with(config: EngineConfig, limits: Limits, strategy: S) -> Rig<S> {
        let instruments = [instrument(1), instrument(2)];
        let engine = TradeEngine::new(&config, &instruments, &[limits, limits], strategy, NoTrace).unwrap();
        Rig { engine, now: Nanos::from_secs(1), sent: Vec::new(), entered: Vec::new() }
    }

    pub fn market(&mut self, update: MarketUpdate) -> String {
        self.engine.handle_market(&update, self.now, &mut self.sent);
        self.take()
    }

    pub fn event(&mut self, event: OrderEventKind) -> String {
        self.event_at(1, event)
    }

    /// Applies an answer with the venue time `ts_event`.
    pub fn event_at(&mut self, ts_event: u64, event: OrderEventKind) -> String {
        self.engine.handle_order_event(&event, Nanos(ts_event), self.now, &mut self.sent);
        self.take()
    }

    pub fn timer(&mut self, now: Nanos) -> String {
        self.now = now;
        self.engine.handle_timer(now, &mut self.sent);
        self.take()
    }

    pub fn stop(&mut self, reason: crate::StopReason) -> String {
        self.engine.stop(reason, self.now, &mut self.sent);
        self.take()
    }

    /// Applies the venue's acceptance of an order, with the values that were sent.
    pub fn accept(&mut self, user_ref: u32) -> String {
        let order = *self.entered.iter().find(|order| order.user_ref.0 == user_ref).unwrap();
        self.event(accepted(&order))
    }

    /// Applies the venue's acceptance of a replacement, with the values that were sent.
    pub fn accept_replace(&mut self, orig_user_ref: u32, user_ref: u32) -> String {
        let order = *self.entered.iter().find(|order| order.user_ref.0 == user_ref).unwrap();
        self.event(OrderEventKind::Replaced {
            order,
            orig_user_ref: UserRefNum(orig_user_ref),
            order_id: OrderId(10),
            state: OrderState::Live,
        })
    }

    /// Returns the requests sent since the last call, as short texts with commas between them.
    fn take(&mut self) -> String {
        let sent = std::mem::take(&mut self.sent);
        let texts: Vec<String> = sent.iter().map(|request| self.describe(request)).collect();
        texts.join(", ")
    }

    fn describe(&mut self, request: &OrderRequest) -> String {
        match request {
            OrderRequest::Enter(order) => {
                self.entered.push(*order);
                let ioc = if order.time_in_force == tickpath_types::TimeInForce::Ioc { " ioc" } else { "" };
                let post = if order.post_only { " post" } else { "" };
                format!("#{} {} {} @{}{ioc}{post}", order.user_ref, order.side, order.qty, order.price.0)
            }
            OrderRequest::Replace(order) => {
                let orig = *self.entered.iter().find(|entry| entry.user_ref == order.orig_user_ref).unwrap();
                self.entered.push(EnterOrder {
                    user_ref: order.user_ref,
                    qty: order.qty,
                    price: order.price,
                    ..orig
                });
                format!("#{}->#{} {} @{}", order.orig_user_ref, order.user_ref, order.qty, order.price.0)
            }
            OrderRequest::Cancel(order) if order.qty.is_zero() => format!("cancel #{}", order.user_ref),
            OrderRequest::Cancel(order) => format!("reduce #{} to {}", order.user_ref, order.qty),
            _ => unreachable!("no strategy asks for it"),
        }
    }
}
