//! A user's session at a venue's order entry: first login, lost connections, requests in doubt.

use tickpath_types::{Nanos, OrderEventKind, OrderRequest};

/// Time after a new login in which requests of the lost connection may still be answered: ample where the venue answers
/// within milliseconds.
pub const SETTLE_AFTER: Nanos = Nanos::from_secs(1);
/// Interval between two queries for the number of the first order: a venue without room for a record drops the query.
const ASK_INTERVAL: Nanos = Nanos::from_secs(1);

/// Events of an order gateway for its engine, in the order in which they happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayEvent {
    /// The venue answered, or reports about an order.
    Answer {
        /// The answer or report.
        kind: OrderEventKind,
        /// Its time, since midnight.
        ts: Nanos,
    },
    /// The request was not sent, and never will be: it came while the gateway was not logged in.
    Unsent(OrderRequest),
    /// The connection is lost. What was sent and is not answered may have reached the venue or not.
    Disconnected,
    /// The gateway is logged in again. What the venue had to say meanwhile follows, or came just before.
    Reconnected,
    /// The venue has sent text for people in place of an answer, as where it has no room to record a request: which of
    /// those that are not answered it dropped is not known.
    InDoubt,
    /// The venue has said what it had to say of everything that was sent before the connection was lost or before the
    /// doubt: what is not answered by now did not reach it, or was dropped.
    Settled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There was no login yet, or it is not known yet which numbers the user has used: the venue is asked at this time, and
    /// again and again, for it may drop the question.
    New {
        ask_at: Nanos,
    },
    Up,
    Lost,
    /// Requests that were sent before the login or before a doubt may still be answered: until `from`, and until another
    /// message comes after everything that had come by then was read. TCP keeps the order: the messages before it were
    /// read too. A doubt that comes meanwhile begins when this is over: so this ends at its time, however
    /// much is dropped.
    Settling {
        from: Nanos,
        is_dry: bool,
        is_doubted: bool,
    },
}

/// The state of a session, which tells the engine of lost connections, new logins and doubts.
///
/// Performs no IO and reads no clock; what happened goes to `tell`.
#[derive(Clone, Copy, Debug)]
pub struct OrderSession {
    settle_after: Nanos,
    state: State,
}

impl OrderSession {
    /// A session without a login. Requests count as settled `settle_after` after a new login, such as [`SETTLE_AFTER`].
    #[must_use]
    pub const fn new(settle_after: Nanos) -> OrderSession {
        OrderSession { settle_after, state: State::New { ask_at: Nanos::ZERO } }
    }

    /// True until the first login is known to be one, with the number of the user's next order.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        matches!(self.state, State::New { .. })
    }

    /// True while there is a login and no request is in doubt.
    #[inline]
    #[must_use]
    pub const fn is_up(&self) -> bool {
        matches!(self.state, State::Up)
    }

    /// The venue dropped something without an answer.
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

    /// The connection was read while it is logged in: whether that brought something, and whether the number of the
    /// user's next order is known. True when the venue is to be asked for that number.
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

    /// The connection is lost; true when there was a login.
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
