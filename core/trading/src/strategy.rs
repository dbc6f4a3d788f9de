//! What a strategy is.

use tickpath_types::{MarketUpdate, Nanos};

use crate::{Context, OrderUpdate};

/// Decides what to trade. Everything it sees and does goes through the [`Context`] of the call.
///
/// It is called only while the engine runs, except for `on_order`, which goes on after a stop so that its
/// own books stay right. To be repeatable it takes time and random seeds as arguments, and it does not
/// allocate after start.
pub trait Strategy {
    /// Name for counters and reports, e.g. `"maker"`.
    fn name(&self) -> &str;

    /// The engine starts; no market data came yet.
    fn on_start(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }

    /// A market update was applied: the context shows best prices, features and P&L after it.
    fn on_market(&mut self, update: &MarketUpdate, cx: &mut Context<'_>);

    /// An own order changed; orders and positions in the context show the change.
    fn on_order(&mut self, update: &OrderUpdate, cx: &mut Context<'_>) {
        let _ = (update, cx);
    }

    /// Time passed; how often is the program's choice, usually every few milliseconds.
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
