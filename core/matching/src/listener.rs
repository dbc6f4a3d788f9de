//! Where events go.

use tickpath_types::{MarketEvent, OrderEvent};

/// Receives the events of a command, in order, while it is applied.
///
/// One command may cause many: see [`EngineLimits::max_events_per_command`](crate::EngineLimits::max_events_per_command).
pub trait EventListener {
    /// An answer to one session.
    fn on_order_event(&mut self, event: &OrderEvent);
    /// A public event, numbered for the market data session.
    fn on_market_event(&mut self, event: &MarketEvent);
}

impl<L: EventListener + ?Sized> EventListener for &mut L {
    #[inline]
    fn on_order_event(&mut self, event: &OrderEvent) {
        (**self).on_order_event(event);
    }

    #[inline]
    fn on_market_event(&mut self, event: &MarketEvent) {
        (**self).on_market_event(event);
    }
}
