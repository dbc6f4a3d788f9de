//! State of a user's order entry session: first login, lost connections, reconciliation of requests.

use tickpath_types::{Nanos, OrderEventKind, OrderRequest};

/// Time after a new login in which the venue may still answer requests of the lost connection. It is ample
/// for a venue that answers within milliseconds.
pub const RECONCILE_AFTER: Nanos = Nanos::from_secs(1);
/// Interval between queries for the first order's UserRefNum: a venue may drop a query that it cannot record.
const QUERY_INTERVAL: Nanos = Nanos::from_secs(1);

/// Events of an order gateway for its engine, in the order in which they happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayEvent {
    /// The venue answered, or reported an event of an order.
    Answer {
        /// The answer or report.
        kind: OrderEventKind,
        /// The venue's time of the answer, since midnight.
        ts: Nanos,
    },
    /// The request was not sent, and never will be: the gateway was not logged in.
    Unsent(OrderRequest),
    /// The connection is lost. Unanswered requests may have reached the venue or not.
    Disconnected,
    /// The gateway is logged in again. Reports of order events in the meantime follow, or came just before.
    Reconnected,
    /// The venue sent text instead of an answer, for example because it has no space to record a request.
    /// Which of the unanswered requests it dropped is unknown.
    Unresolved,
    /// The venue has answered all requests that it received before the connection was lost or a request was
    /// dropped. Requests still unanswered did not reach it or were dropped.
    Reconciled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first login, or before the first free UserRefNum is known. The gateway queries it at
    /// `query_at`, and again later, since the venue may drop a query.
    New {
        query_at: Nanos,
    },
    Up,
    Lost,
    /// Requests sent before the login, or before the notice of a dropped request, may still be answered. The
    /// state ends when, after `from`, one read found no data and a later read found some. TCP preserves the
    /// order, so all earlier messages have been read by then. A notice received in this state starts another
    /// reconciliation after this one.
    Reconciling {
        from: Nanos,
        is_drained: bool,
        has_dropped_request: bool,
    },
}

/// The state of a session. It reports lost connections, new logins and unanswered requests to the engine.
///
/// Performs no IO and reads no clock; events go to `publish`.
#[derive(Clone, Copy, Debug)]
pub struct OrderSession {
    reconcile_after: Nanos,
    state: State,
}

impl OrderSession {
    /// Creates a session that is not logged in. A reconciliation lasts at least `reconcile_after`.
    #[must_use]
    pub const fn new(reconcile_after: Nanos) -> OrderSession {
        OrderSession { reconcile_after, state: State::New { query_at: Nanos::ZERO } }
    }

    /// Returns true until the first login is complete and the UserRefNum of the user's next order is known.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        matches!(self.state, State::New { .. })
    }

    /// Returns true while logged in and no request has an unknown status.
    #[inline]
    #[must_use]
    pub const fn is_up(&self) -> bool {
        matches!(self.state, State::Up)
    }

    /// Handles a notice that the venue dropped a request without an answer.
    #[cold]
    pub fn handle_notice(&mut self, now: Nanos, mut publish: impl FnMut(GatewayEvent)) {
        match &mut self.state {
            State::Reconciling { has_dropped_request, .. } => *has_dropped_request = true,
            State::Up => {
                publish(GatewayEvent::Unresolved);
                self.state = self.reconciling(now);
            }
            State::New { .. } | State::Lost => {}
        }
    }

    /// Handles a read of the logged-in connection: `has_read` if it returned data, `is_number_known` once the
    /// user's next UserRefNum is known. Returns true if the venue must be queried for it.
    #[cold]
    pub fn handle_read(
        &mut self,
        now: Nanos,
        has_read: bool,
        is_number_known: bool,
        mut publish: impl FnMut(GatewayEvent),
    ) -> bool {
        match self.state {
            State::New { .. } if is_number_known => self.state = State::Up,
            State::New { query_at } if now >= query_at => {
                self.state = State::New { query_at: now + QUERY_INTERVAL };
                return true;
            }
            State::New { .. } | State::Up => {}
            State::Lost => {
                publish(GatewayEvent::Reconnected);
                self.state = self.reconciling(now);
            }
            State::Reconciling { is_drained: true, has_dropped_request, .. } if has_read => {
                publish(GatewayEvent::Reconciled);
                self.state = State::Up;
                if has_dropped_request {
                    self.handle_notice(now, publish);
                }
            }
            State::Reconciling { from, is_drained, has_dropped_request } => {
                let is_drained = is_drained || (now >= from && !has_read);
                self.state = State::Reconciling { from, is_drained, has_dropped_request };
            }
        }
        false
    }

    /// Handles a lost connection; returns true if the session was up or reconciling.
    #[cold]
    pub fn handle_disconnect(&mut self, mut publish: impl FnMut(GatewayEvent)) -> bool {
        match self.state {
            State::New { .. } => self.state = State::New { query_at: Nanos::ZERO },
            State::Up | State::Reconciling { .. } => {
                self.state = State::Lost;
                publish(GatewayEvent::Disconnected);
                return true;
            }
            State::Lost => {}
        }
        false
    }

    fn reconciling(&self, now: Nanos) -> State {
        State::Reconciling { from: now + self.reconcile_after, is_drained: false, has_dropped_request: false }
    }
}
