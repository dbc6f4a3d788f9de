//! One account at the venue: state of its connection, requests in flight, and holdings.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rustc_hash::{FxBuildHasher, FxHashSet};
use tickpath_gateway_protocol::{FundsUpdate, PositionUpdate, RateLimitsUpdate, Text};
use tickpath_types::Nanos;

use super::fix::OrderEntry;
use super::foreign::Foreign;
use super::quotes::Quotes;

/// Maximum number of requests in flight on one connection.
pub const PENDING_MAX: usize = 1_024;
/// Maximum number of order status queries in flight.
pub const QUESTIONS_MAX: usize = 8;

/// Steps of an account's download, in order; clients may trade with it after the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Not connected.
    Down,
    /// Logged in; subscribing channels.
    Channels,
    /// Fetching open orders.
    Orders,
    /// Fetching positions.
    Positions,
    /// Fetching funds.
    Funds,
    /// Reconciling orders of unknown status, one by one.
    Doubts,
    /// All fetched; waiting for the FIX session that carries the orders.
    Entry,
    /// Everything is known.
    Ready,
}

impl Step {
    /// All steps in order.
    pub const ALL: [Step; 8] = [
        Step::Down,
        Step::Channels,
        Step::Orders,
        Step::Positions,
        Step::Funds,
        Step::Doubts,
        Step::Entry,
        Step::Ready,
    ];

    /// Name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Step::Down => "down",
            Step::Channels => "channels",
            Step::Orders => "orders",
            Step::Positions => "positions",
            Step::Funds => "funds",
            Step::Doubts => "doubts",
            Step::Entry => "entry",
            Step::Ready => "ready",
        }
    }

    /// Description of the step for users.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Step::Down => "has no connection",
            Step::Channels => "waits for its channels",
            Step::Orders => "requests open orders",
            Step::Positions => "requests positions",
            Step::Funds => "requests its funds",
            Step::Doubts => "resolves uncertain orders",
            Step::Entry => "waits for its FIX session",
            Step::Ready => "is ready",
        }
    }
}

/// Description of an account's state for users.
#[must_use]
pub const fn words(step: Step, may_trade: bool) -> &'static str {
    match step {
        Step::Ready if !may_trade => "is ready, and its login may not trade",
        step => step.words(),
    }
}

/// Client and time of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asker {
    /// The client; none if the gateway itself sent the request.
    pub client: Option<u32>,
    /// The client's id of the request.
    pub request_id: u64,
    /// Time when the client created the request, by the monotonic clock.
    pub create_ns: u64,
}

/// Kind of an in-flight request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A new order.
    Create {
        /// Slot of the order.
        slot: u32,
    },
    /// A change of an order's price or quantity.
    Modify {
        /// Slot of the order.
        slot: u32,
    },
    /// The cancellation of an order.
    Cancel {
        /// Slot of the order.
        slot: u32,
        /// The request named the order by its label: the reply is a count instead of the order.
        is_by_label: bool,
    },
    /// The cancellation of all orders of the account.
    CancelAll,
    /// The same in place of single cancellations, because every order waits for one.
    CancelWaiting,
    /// One or both sides of a quote.
    Quotes {
        /// The instrument's number.
        symbol: u32,
        /// Sides as bits: 1 the bid, 2 the ask.
        sides: u8,
        /// The client's id of the quotes.
        set: u64,
    },
    /// The cancellation of quotes.
    CancelQuotes {
        /// The instrument's number; 0 for all.
        symbol: u32,
        /// The client's id of the quotes; 0 for all.
        set: u64,
    },
    /// The query of a download step.
    Step(Step),
    /// The status of an order.
    State {
        /// Slot of the order.
        slot: u32,
        /// The gateway's order id, which detects that another order has taken the slot.
        gateway_id: u64,
    },
    /// The trades of an order.
    Trades {
        /// Slot of the order.
        slot: u32,
        /// The gateway's order id, as in `State`.
        gateway_id: u64,
    },
    /// A ping that measures the venue's response time.
    Ping,
}

impl Purpose {
    /// Returns the slot of the order that the request enters, changes or cancels.
    #[must_use]
    pub const fn changes(&self) -> Option<u32> {
        match *self {
            Purpose::Create { slot } | Purpose::Modify { slot } | Purpose::Cancel { slot, .. } => Some(slot),
            _ => None,
        }
    }
}

/// A request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Request id on the connection.
    pub id: i64,
    /// Kind of request.
    pub purpose: Purpose,
    /// Client and time of the request.
    pub asker: Asker,
    /// Time when the request was passed to the connection.
    pub sent: Nanos,
    /// The gateway's id of the order that the request changes, which detects that another order has taken the
    /// slot; 0 if it changes none.
    pub gateway_id: u64,
}

/// One order status query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// Slot of the order.
    pub slot: u32,
    /// The gateway's order id.
    pub gateway_id: u64,
    /// Earliest time to send the query.
    pub at: Nanos,
    /// The query asks for the order's trades instead of its status.
    pub is_of_trades: bool,
}

/// Queue of order status queries, without duplicates, earliest due first.
#[derive(Debug)]
pub struct Questions {
    /// Ordered by due time, then by arrival.
    queue: BinaryHeap<Reverse<(Nanos, u64, Question)>>,
    known: FxHashSet<(u64, bool)>,
    next: u64,
}

impl Questions {
    /// An empty queue with capacity for `max`.
    #[must_use]
    pub fn new(max: usize) -> Questions {
        Questions {
            queue: BinaryHeap::with_capacity(max),
            known: FxHashSet::with_capacity_and_hasher(max, FxBuildHasher),
            next: 0,
        }
    }

    /// Adds a query unless it is queued already.
    pub fn ask(&mut self, question: Question) {
        if self.known.insert((question.gateway_id, question.is_of_trades)) {
            self.queue.push(Reverse((question.at, self.next, question)));
            self.next += 1;
        }
    }

    /// Removes and returns the first query, if it is due.
    pub fn take_due(&mut self, now: Nanos) -> Option<Question> {
        let Reverse((at, ..)) = self.queue.peek()?;
        if *at > now {
            return None;
        }
        let Reverse((_, _, question)) = self.queue.pop()?;
        self.known.remove(&(question.gateway_id, question.is_of_trades));
        Some(question)
    }

    /// All queued queries, in no order.
    pub fn all(&self) -> impl ExactSizeIterator<Item = &Question> {
        self.queue.iter().map(|Reverse((_, _, question))| question)
    }
}

/// A known position.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// The instrument's number.
    pub symbol: u32,
    /// Position as sent to clients.
    pub body: PositionUpdate,
}

/// One account.
#[derive(Debug)]
pub struct Account {
    /// Name in the configuration.
    pub name: Text<32>,
    /// Number of the account's WebSocket connection, which reports on orders.
    pub stream: usize,
    /// The FIX session for orders; none if they use the account's WebSocket connection.
    pub entry: Option<OrderEntry>,
    /// Whether the venue lets the login trade, as far as known.
    pub may_trade: bool,
    /// Current step of the download.
    pub step: Step,
    /// The step's query is in flight.
    pub is_asked: bool,
    /// Reason why the venue rejected the step's query; empty if it did not.
    pub refusal: Text<48>,
    /// Earliest time of a step's next query.
    pub ask_at: Nanos,
    /// Requests in flight, in the order of their ids.
    pending: VecDeque<Pending>,
    /// Queued order status queries.
    pub questions: Questions,
    /// Number of order status queries in flight.
    pub asked_questions: usize,
    /// Slots and gateway ids of orders waiting to be cancelled.
    pub cancels: VecDeque<(u32, u64)>,
    /// Earliest time of the next cancellation.
    pub cancel_at: Nanos,
    /// A request to cancel all orders of the account is due.
    pub is_cancel_all_wanted: bool,
    /// Cancel all once more after all orders are reconciled: before that, further orders may appear.
    pub is_cancel_all_due: bool,
    /// Number of open orders of this gateway's clients.
    pub open_orders: u32,
    /// External orders, and open orders that cannot be decoded.
    pub foreign: Foreign,
    /// Quotes of the account.
    pub quotes: Quotes,
    /// Remaining credits of the venue as last sent; its maximum is 0 before the first update.
    pub told_left: RateLimitsUpdate,
    /// Positions as last sent.
    pub positions: Vec<Position>,
    /// Funds as last sent.
    pub funds: Vec<FundsUpdate>,
}

impl Account {
    /// Creates an account without a connection.
    #[must_use]
    pub fn new(name: &str, stream: usize, orders_max: usize) -> Account {
        Account {
            name: Text::cut(name),
            stream,
            entry: None,
            may_trade: true,
            step: Step::Down,
            is_asked: false,
            refusal: Text::EMPTY,
            ask_at: Nanos::ZERO,
            pending: VecDeque::with_capacity(PENDING_MAX),
            questions: Questions::new(orders_max),
            asked_questions: 0,
            cancels: VecDeque::with_capacity(orders_max),
            cancel_at: Nanos::ZERO,
            is_cancel_all_wanted: false,
            is_cancel_all_due: false,
            open_orders: 0,
            foreign: Foreign::new(),
            quotes: Quotes::of(None),
            told_left: RateLimitsUpdate::default(),
            positions: Vec::with_capacity(64),
            funds: Vec::with_capacity(16),
        }
    }

    /// Description of the account's state for users.
    #[must_use]
    pub const fn words(&self) -> &'static str {
        words(self.step, self.may_trade)
    }

    /// Enters another step, whose query is due at once.
    pub fn enter(&mut self, step: Step, now: Nanos) {
        (self.step, self.is_asked, self.ask_at) = (step, false, now);
    }

    /// Records a request sent on the account's WebSocket connection.
    #[inline]
    pub fn push(&mut self, pending: Pending) {
        self.pending.push_back(pending);
    }

    /// Records a request about orders, on the connection that carries them.
    #[inline]
    pub fn push_order(&mut self, pending: Pending) {
        match &mut self.entry {
            Some(entry) => entry.push(pending),
            None => self.push(pending),
        }
    }

    /// Number of the connection that carries orders.
    #[inline]
    #[must_use]
    pub fn order_stream(&self) -> usize {
        self.entry.as_ref().map_or(self.stream, |entry| entry.stream)
    }

    /// Whether orders use FIX and its session is up.
    #[must_use]
    pub fn has_fix(&self) -> bool {
        self.entry.as_ref().is_some_and(|entry| entry.is_up)
    }

    /// Whether the FIX session is up, or orders do not use one.
    #[must_use]
    pub fn can_enter(&self) -> bool {
        self.entry.as_ref().is_none_or(|entry| entry.is_up)
    }

    /// Whether a connection for cancellations is up: the account's WebSocket with a login that may trade, or
    /// the FIX session.
    #[must_use]
    pub fn can_cancel(&self) -> bool {
        self.step >= Step::Orders && self.may_trade || self.has_fix()
    }

    /// Removes and returns the request that a reply belongs to.
    pub fn take(&mut self, id: i64) -> Option<Pending> {
        let place = self.pending.binary_search_by_key(&id, |pending| pending.id).ok()?;
        self.pending.remove(place)
    }

    /// Returns the kind of the request that a reply belongs to, without removing the request.
    #[must_use]
    pub fn purpose(&self, id: i64) -> Option<Purpose> {
        let place = self.pending.binary_search_by_key(&id, |pending| pending.id).ok()?;
        Some(self.pending[place].purpose)
    }

    /// Whether a cancellation of the order is in flight.
    #[must_use]
    pub fn is_cancelling(&self, slot: u32) -> bool {
        let is_it = |pending: &Pending| matches!(pending.purpose, Purpose::Cancel { slot: other, .. } if other == slot);
        self.pending.iter().any(is_it) || self.entry.as_ref().is_some_and(|entry| entry.pending().any(is_it))
    }

    /// Drops all in-flight requests after the connection is lost.
    pub fn forget_pending(&mut self) {
        self.pending.clear();
    }

    /// Whether cancellations are queued or in flight.
    #[must_use]
    pub fn has_cancels(&self) -> bool {
        let is_cancel = |pending: &Pending| {
            matches!(
                pending.purpose,
                Purpose::Cancel { .. }
                    | Purpose::CancelAll
                    | Purpose::CancelWaiting
                    | Purpose::CancelQuotes { .. }
            )
        };
        let by_fix = self.entry.as_ref().is_some_and(|entry| entry.pending().any(is_cancel));
        self.is_cancel_all_wanted
            || self.is_cancel_all_due
            || !self.cancels.is_empty()
            || by_fix
            || self.pending.iter().any(is_cancel)
    }

    /// All known open orders, including external ones, and quotes in flight.
    #[must_use]
    pub fn all_open_orders(&self) -> u32 {
        self.open_orders.saturating_add(self.foreign.count()).saturating_add(self.quotes.sent())
    }

    /// Whether there is capacity for another request in flight.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.pending.len() < PENDING_MAX
    }

    /// Whether there is capacity for another request about an order in flight.
    #[must_use]
    pub fn has_order_room(&self) -> bool {
        self.entry.as_ref().map_or_else(|| self.has_room(), OrderEntry::has_room)
    }

    /// Queues an order status query unless it is queued already.
    pub fn ask(&mut self, question: Question) {
        self.questions.ask(question);
    }

    /// Stores a position.
    pub fn keep_position(&mut self, position: Position) {
        match self.positions.iter_mut().find(|known| known.symbol == position.symbol) {
            Some(known) => *known = position,
            None => self.positions.push(position),
        }
    }

    /// Stores the funds in one currency.
    pub fn keep_funds(&mut self, funds: FundsUpdate) {
        match self.funds.iter_mut().find(|known| known.currency == funds.currency) {
            Some(known) => *known = funds,
            None => self.funds.push(funds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_waits_once_and_for_its_time() {
        let mut questions = Questions::new(4);
        let of = |gateway_id, at, is_of_trades| Question { slot: 1, gateway_id, at: Nanos(at), is_of_trades };
        for question in [of(1, 5, false), of(2, 3, false), of(1, 0, false), of(1, 5, true), of(3, 5, false)] {
            questions.ask(question);
        }
        assert_eq!(questions.all().len(), 4);
        assert_eq!(questions.take_due(Nanos(2)), None);
        let mut order = Vec::new();
        while let Some(question) = questions.take_due(Nanos(5)) {
            order.push((question.gateway_id, question.is_of_trades));
        }
        assert_eq!(order, [(2, false), (1, false), (1, true), (3, false)]);
        // A query that was taken can be queued again.
        questions.ask(of(1, 9, false));
        assert_eq!(questions.all().len(), 1);
    }

    #[test]
    fn sixteen_thousand_doubts_are_asked_once_each() {
        let mut account = Account::new("A1", 0, 1 << 14);
        for _ in 0..4 {
            for gateway_id in 0..1 << 14 {
                account.ask(Question { slot: 0, gateway_id, at: Nanos(1), is_of_trades: false });
            }
        }
        assert_eq!(account.questions.all().len(), 1 << 14);
    }
}
