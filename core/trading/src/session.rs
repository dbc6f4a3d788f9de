//! A user's session at a venue's order entry: first login, lost connections, reconciliation of requests.

use tickpath_types::{Nanos, OrderEventKind, OrderRequest};

/// Time after a new login in which requests of the lost connection may still be answered: ample where the
/// venue answers within milliseconds.
pub const SETTLE_AFTER: Nanos = Nanos::from_secs(1);
/// Interval between two queries for the first order's number. A venue that cannot record a query drops it.
const ASK_INTERVAL: Nanos = Nanos::from_secs(1);

/// Events of an order gateway for its engine, in the order in which they happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayEvent {
    /// The venue answered, or reported an event of an order.
    Answer {
        /// The answer or report.
        kind: OrderEventKind,
        /// Its time, since midnight.
        ts: Nanos,
    },
    /// The request was not sent, and never will be: the gateway was not logged in.
    Unsent(OrderRequest),
    /// The connection is lost. Unanswered requests may have reached the venue or not.
    Disconnected,
    /// The gateway is logged in again. Reports from the meantime follow, or came just before.
    Reconnected,
    /// The venue sent text instead of an answer, for example without space to record a request. Which of the
    /// unanswered requests it dropped is unknown.
    InDoubt,
    /// The venue has reported on all requests from before the connection loss or the notice. Requests still
    /// unanswered did not reach it or were dropped.
    Settled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first login, or before the first free order number is known. The gateway queries it at this
    /// time and repeatedly, since the venue may drop a query.
    New {
        ask_at: Nanos,
    },
    Up,
    Lost,
    /// Requests from before the login or the notice may still be answered. The state lasts until `from` has
    /// passed, the input was then read empty, and another message came. TCP keeps the order, so all earlier
    /// messages were read. A notice in the meantime takes effect after this state, so it ends on time however
    /// much is dropped.
    Settling {
        from: Nanos,
        is_dry: bool,
        is_doubted: bool,
    },
}

/// The state of a session. It reports lost connections, new logins and unanswered requests to the engine.
///
/// Performs no IO and reads no clock; events go to `tell`.
#[derive(Clone, Copy, Debug)]
pub struct OrderSession {
    settle_after: Nanos,
    state: State,
}

impl OrderSession {
    /// Creates a session without a login. It reconciles `settle_after` after a login ([`SETTLE_AFTER`]).
    #[must_use]
    pub const fn new(settle_after: Nanos) -> OrderSession {
        OrderSession { settle_after, state: State::New { ask_at: Nanos::ZERO } }
    }

    /// Returns true until the first login is complete, with the number of the user's next order.
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
    pub fn handle_notice(&mut self, now: Nanos, mut tell: impl FnMut(GatewayEvent)) {
        match &mut self.state {
            State::Settling { is_doubted, .. } => *is_doubted = true,
            State::Up => {
                tell(GatewayEvent::InDoubt);
                self.state = self.settling(now);
            }
            State::New { .. } | State::Lost => {}
        }
    }

    /// Handles a read of the logged-in connection: `has_read` if it brought data, `is_number_known` once the
    /// user's next order number is known. Returns true if the venue must be asked for that number.
    #[cold]
    pub fn handle_read(
        &mut self,
        now: Nanos,
        has_read: bool,
        is_number_known: bool,
        mut tell: impl FnMut(GatewayEvent),
    ) -> bool {
        match self.state {
            State::New { .. } if is_number_known => self.state = State::Up,
            State::New { ask_at } if now >= ask_at => {
                self.state = State::New { ask_at: now + ASK_INTERVAL };
                return true;
            }
            State::New { .. } | State::Up => {}
            State::Lost => {
                tell(GatewayEvent::Reconnected);
                self.state = self.settling(now);
            }
            State::Settling { is_dry: true, is_doubted, .. } if has_read => {
                tell(GatewayEvent::Settled);
                self.state = State::Up;
                if is_doubted {
                    self.handle_notice(now, tell);
                }
            }
            State::Settling { from, is_dry, is_doubted } => {
                let is_dry = is_dry || (now >= from && !has_read);
                self.state = State::Settling { from, is_dry, is_doubted };
            }
        }
        false
    }

    /// Handles a lost connection; returns true if there was a login.
    #[cold]
    pub fn handle_disconnect(&mut self, mut tell: impl FnMut(GatewayEvent)) -> bool {
        match self.state {
            State::New { .. } => self.state = State::New { ask_at: Nanos::ZERO },
            State::Up | State::Settling { .. } => {
                self.state = State::Lost;
                tell(GatewayEvent::Disconnected);
                return true;
            }
            State::Lost => {}
        }
        false
    }

    fn settling(&self, now: Nanos) -> State {
        State::Settling { from: now + self.settle_after, is_dry: false, is_doubted: false }
    }
}
