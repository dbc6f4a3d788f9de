//! The interface of a strategy.

use tickpath_types::{MarketUpdate, Nanos};

use crate::{Context, OrderUpdate};

/// Decides which orders to send. It reads the engine's state and sends requests through its [`Context`].
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

    /// Runs after a market update was applied: the context shows best prices, features and P&L after it.
    fn on_market(&mut self, update: &MarketUpdate, cx: &mut Context<'_>);

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

    fn on_market(&mut self, update: &MarketUpdate, cx: &mut Context<'_>) {
        (**self).on_market(update, cx);
    }

    fn on_order(&mut self, update: &OrderUpdate, cx: &mut Context<'_>) {
        (**self).on_order(update, cx);
    }

    fn on_timer(&mut self, now: Nanos, cx: &mut Context<'_>) {
        (**self).on_timer(now, cx);
    }
}
