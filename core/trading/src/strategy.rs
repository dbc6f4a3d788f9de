//! The interface of a strategy.

use tickpath_types::{InstrumentId, MarketUpdate, Nanos};

use crate::{Context, Desk, OrderUpdate};

/// Decides which orders to send. It reads the engine's state and sends requests through its [`Context`].
///
/// # Market data
///
/// Market data arrives in packets of one or several messages. The engine first applies all messages of a
/// packet; meanwhile it calls [`on_trade`](Strategy::on_trade) for each trade. Then it calls
/// [`on_market`](Strategy::on_market) once for each instrument that the packet changed, in the order of their
/// first changes. A decision therefore never rests on a state that a later message of the same packet has
/// already replaced. States between the messages of a packet are not visible in `on_market`. A strategy that
/// needs every trade collects them in `on_trade` and decides in `on_market`.
///
/// The calls of one packet see the same market, also if the engine reads the packet's messages one by one.
/// Only `on_order` and `on_timer` may run between the messages of a packet.
///
/// # State
///
/// After a stop, the engine calls only `on_order`, so that the strategy's state stays correct. To be
/// repeatable, a strategy takes time and random seeds as arguments. It does not allocate after the start.
pub trait Strategy {
    /// Returns the name for counters and reports, e.g. `"maker"`.
    fn name(&self) -> &str;

    /// Runs when the engine starts, before any market data.
    fn on_start(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }

    /// Runs for each trade, after it was applied: `desk` shows best prices and features just after it. Cannot
    /// send requests, because later messages of the packet may follow; `on_market` runs after them.
    fn on_trade(&mut self, trade: &MarketUpdate, desk: &Desk) {
        let _ = (trade, desk);
    }

    /// Runs once per packet for each instrument that the packet changed, after all of its messages were
    /// applied: the context shows best prices, features and P&L after the packet. A change of a book's health
    /// counts as a change.
    fn on_market(&mut self, instrument: InstrumentId, cx: &mut Context<'_>);

    /// Runs after an own order changed; orders and positions in the context include the change.
    fn on_order(&mut self, update: &OrderUpdate, cx: &mut Context<'_>) {
        let _ = (update, cx);
    }

    /// Runs on the timer. The program chooses the interval, usually every few milliseconds.
    fn on_timer(&mut self, now: Nanos, cx: &mut Context<'_>) {
        let _ = (now, cx);
    }
}

impl<S: Strategy + ?Sized> Strategy for Box<S> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn on_start(&mut self, cx: &mut Context<'_>) {
        (**self).on_start(cx);
    }

    fn on_trade(&mut self, trade: &MarketUpdate, desk: &Desk) {
        (**self).on_trade(trade, desk);
    }

    fn on_market(&mut self, instrument: InstrumentId, cx: &mut Context<'_>) {
        (**self).on_market(instrument, cx);
    }

    fn on_order(&mut self, update: &OrderUpdate, cx: &mut Context<'_>) {
        (**self).on_order(update, cx);
    }

    fn on_timer(&mut self, now: Nanos, cx: &mut Context<'_>) {
        (**self).on_timer(now, cx);
    }
}
