//! The receiver of the engine's events.

use tickpath_types::{MarketEvent, OrderEvent, SystemEventCode, UserRefNum};

use crate::Command;

/// Receives the events of a command, in order, while it is applied.
///
/// [`EngineLimits::max_events_per_command`](crate::EngineLimits::max_events_per_command) bounds their number.
pub trait EventListener {
    /// An event for one session: a response to its command, or a report about its order.
    fn on_order_event(&mut self, event: &OrderEvent);
    /// A public event, with its sequence number in the market data session.
    fn on_market_event(&mut self, event: &MarketEvent);
    /// The answer to the session's [`AccountQuery`](crate::CommandKind::AccountQuery): the least `UserRefNum`
    /// that it may use next, 0 when it has used the last. Does nothing by default.
    fn on_query_answer(&mut self, query: &Command, next: UserRefNum) {
        let _ = (query, next);
    }
    /// The trading day reached a phase, which is also published as a market event. Does nothing by default.
    fn on_session_phase(&mut self, command: &Command, phase: SystemEventCode) {
        let _ = (command, phase);
    }
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
    #[inline]
    fn on_query_answer(&mut self, query: &Command, next: UserRefNum) {
        (**self).on_query_answer(query, next);
    }
    #[inline]
    fn on_session_phase(&mut self, command: &Command, phase: SystemEventCode) {
        (**self).on_session_phase(command, phase);
    }
}

/// Collects the market events, and ignores order events.
impl EventListener for Vec<MarketEvent> {
    fn on_order_event(&mut self, _: &OrderEvent) {}

    fn on_market_event(&mut self, event: &MarketEvent) {
        self.push(*event);
    }
}
