//! One account at the venue: how far its connection is, what was asked and has no answer, what it holds.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rustc_hash::{FxBuildHasher, FxHashSet};
use tickpath_gateway_protocol::{FundsUpdate, PositionUpdate, RateLimitsUpdate, Text};
use tickpath_types::Nanos;

use super::fix::OrderEntry;
use super::foreign::Foreign;
use super::quotes::Quotes;

/// Requests of one connection that may be without a reply at once.
pub const PENDING_MAX: usize = 1_024;
/// Questions about single orders that are on their way at once.
pub const QUESTIONS_MAX: usize = 8;

/// What must be known of an account before clients may trade with it, in the order in which it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// There is no connection.
    Down,
    /// The login is done; channels are being subscribed.
    Channels,
    /// The open orders.
    Orders,
    /// The positions.
    Positions,
    /// The money.
    Funds,
    /// Orders that are not certain, one by one.
    Doubts,
    /// Nothing more is asked: the FIX session that orders go by does not stand.
    Entry,
    /// Everything is known.
    Ready,
}

impl Step {
    /// All of them, in their order.
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

    /// As JSON names it.
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

    /// What an account at this step does, for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Step::Down => "has no connection",
            Step::Channels => "waits for its channels",
            Step::Orders => "asks for open orders",
            Step::Positions => "asks for positions",
            Step::Funds => "asks for its money",
            Step::Doubts => "settles uncertain orders",
            Step::Entry => "waits for its FIX session",
            Step::Ready => "is ready",
        }
    }
}

/// What an account does, for people.
#[must_use]
pub const fn words(step: Step, may_trade: bool) -> &'static str {
    match step {
        Step::Ready if !may_trade => "is ready, and its login may not trade",
        step => step.words(),
    }
}

/// Who asked, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asker {
    /// The client; none when the gateway itself asked.
    pub client: Option<u32>,
    /// The client's id of the request.
    pub request_id: u64,
    /// When the client made it, by the monotonic clock.
    pub create_ns: u64,
}

/// What a request without a reply was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// An order, at its place.
    Create {
        /// Its place.
        slot: u32,
    },
    /// Another price or quantity of an order.
    Modify {
        /// Its place.
        slot: u32,
    },
    /// The end of an order.
    Cancel {
        /// Its place.
        slot: u32,
        /// It was named by its label: the answer is how many ended, rather than the order.
        is_by_label: bool,
    },
    /// The end of all orders of the account.
    CancelAll,
    /// The same, since every one of them waited for it.
    CancelWaiting,
    /// Both sides of a quote, or one.
    Quotes {
        /// The instrument's number.
        symbol: u32,
        /// Which sides: 1 the bid, 2 the ask.
        sides: u8,
        /// The client's id of the quotes.
        set: u64,
    },
    /// The end of quotes.
    CancelQuotes {
        /// The instrument's number; 0 for all.
        symbol: u32,
        /// The client's id of the quotes; 0 for all.
        set: u64,
    },
    /// The step of the download.
    Step(Step),
    /// What became of an order.
    State {
        /// Its place.
        slot: u32,
        /// The gateway's id, so that another order at the same place is not meant.
        gateway_id: u64,
    },
    /// The trades of an order.
    Trades {
        /// Its place.
        slot: u32,
        /// As above.
        gateway_id: u64,
    },
    /// How long the venue takes to answer.
    Ping,
}

impl Purpose {
    /// The place of the order that the request enters, changes or cancels.
    #[must_use]
    pub const fn changes(&self) -> Option<u32> {
        match *self {
            Purpose::Create { slot } | Purpose::Modify { slot } | Purpose::Cancel { slot, .. } => Some(slot),
            _ => None,
        }
    }
}

/// A request without a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its id on the connection.
    pub id: i64,
    /// What for.
    pub purpose: Purpose,
    /// Who asked.
    pub asker: Asker,
    /// When it was handed to the connection.
    pub sent: Nanos,
    /// The gateway's id of the order that it changes, so that another order at the same place is not meant; 0 where it
    /// changes none.
    pub gateway_id: u64,
}

/// What is to be asked about an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// Its place.
    pub slot: u32,
    /// The gateway's id.
    pub gateway_id: u64,
    /// Not before this time.
    pub at: Nanos,
    /// Its trades, rather than its state.
    pub is_of_trades: bool,
}

/// What is to be asked about single orders: each question once, the first to be asked first.
#[derive(Debug)]
pub struct Questions {
    /// By their times, and of one time in the order in which they came.
    queue: BinaryHeap<Reverse<(Nanos, u64, Question)>>,
    known: FxHashSet<(u64, bool)>,
    next: u64,
}

impl Questions {
    /// None, with room for `max`.
    #[must_use]
    pub fn new(max: usize) -> Questions {
        Questions {
            queue: BinaryHeap::with_capacity(max),
            known: FxHashSet::with_capacity_and_hasher(max, FxBuildHasher),
            next: 0,
        }
    }

    /// Adds a question, unless it waits already.
    pub fn ask(&mut self, question: Question) {
        if self.known.insert((question.gateway_id, question.is_of_trades)) {
            self.queue.push(Reverse((question.at, self.next, question)));
            self.next += 1;
        }
    }

    /// The first question, if its time has come.
    pub fn take_due(&mut self, now: Nanos) -> Option<Question> {
        let Reverse((at, ..)) = self.queue.peek()?;
        if *at > now {
            return None;
        }
        let Reverse((_, _, question)) = self.queue.pop()?;
        self.known.remove(&(question.gateway_id, question.is_of_trades));
        Some(question)
    }

    /// All that wait, in no order.
    pub fn all(&self) -> impl ExactSizeIterator<Item = &Question> {
        self.queue.iter().map(|Reverse((_, _, question))| question)
    }
}

/// A position that is known.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// The instrument's number.
    pub symbol: u32,
    /// What clients are told.
    pub body: PositionUpdate,
}

/// One account.
#[derive(Debug)]
pub struct Account {
    /// Its name in the configuration.
    pub name: Text<32>,
    /// The number of its own connection, which tells what becomes of it.
    pub stream: usize,
    /// The FIX session that its orders go by; none where they go by its own connection.
    pub entry: Option<OrderEntry>,
    /// The venue lets its login trade, as far as is known.
    pub may_trade: bool,
    /// How far it is.
    pub step: Step,
    /// The step's request is on its way.
    pub is_asked: bool,
    /// Why the venue refused what the step asks for; empty where it did not.
    pub refusal: Text<48>,
    /// The next request of a step leaves not before this time.
    pub ask_at: Nanos,
    /// Requests without a reply, in the order of their ids.
    pending: VecDeque<Pending>,
    /// What is to be asked about single orders.
    pub questions: Questions,
    /// Of these so many are on their way.
    pub asked_questions: usize,
    /// Orders that are to be cancelled, with their gateway ids.
    pub cancels: VecDeque<(u32, u64)>,
    /// The next of them leaves not before this time.
    pub cancel_at: Nanos,
    /// All orders of the account are to be cancelled.
    pub is_cancel_all_wanted: bool,
    /// The same once more when no order is in doubt any more: before that some may still come to light.
    pub is_cancel_all_due: bool,
    /// Orders of this gateway's clients that are not over.
    pub open_orders: u32,
    /// Open orders that others made, and those that cannot be read.
    pub foreign: Foreign,
    /// What is quoted.
    pub quotes: Quotes,
    /// What was told to be left of the venue's credits; nothing at most before anything was told.
    pub told_left: RateLimitsUpdate,
    /// Positions as they were told last.
    pub positions: Vec<Position>,
    /// Money as it was told last.
    pub funds: Vec<FundsUpdate>,
}

impl Account {
    /// An account without a connection.
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

    /// What it does, for people.
    #[must_use]
    pub const fn words(&self) -> &'static str {
        words(self.step, self.may_trade)
    }

    /// Goes on to another step, to be asked for at once.
    pub fn enter(&mut self, step: Step, now: Nanos) {
        (self.step, self.is_asked, self.ask_at) = (step, false, now);
    }

    /// A request left.
    pub fn push(&mut self, pending: Pending) {
        self.pending.push_back(pending);
    }

    /// A request about orders left by the connection that they go by.
    pub fn push_order(&mut self, pending: Pending) {
        match &mut self.entry {
            Some(entry) => entry.push(pending),
            None => self.push(pending),
        }
    }

    /// The number of the connection that orders go by.
    #[must_use]
    pub fn order_stream(&self) -> usize {
        self.entry.as_ref().map_or(self.stream, |entry| entry.stream)
    }

    /// Whether orders go by FIX, and its session stands.
    #[must_use]
    pub fn has_fix(&self) -> bool {
        self.entry.as_ref().is_some_and(|entry| entry.is_up)
    }

    /// Whether the connection that orders go by stands, as far as that is another one than its own.
    #[must_use]
    pub fn can_enter(&self) -> bool {
        self.entry.as_ref().is_none_or(|entry| entry.is_up)
    }

    /// Whether a connection stands that cancellations can go by: its own, logged in as one that may trade, or the FIX session
    /// that orders go by.
    #[must_use]
    pub fn can_cancel(&self) -> bool {
        self.step >= Step::Orders && self.may_trade || self.has_fix()
    }

    /// The request that a reply is to.
    pub fn take(&mut self, id: i64) -> Option<Pending> {
        let place = self.pending.binary_search_by_key(&id, |pending| pending.id).ok()?;
        self.pending.remove(place)
    }

    /// The request that a reply is to, left where it is.
    #[must_use]
    pub fn purpose(&self, id: i64) -> Option<Purpose> {
        let place = self.pending.binary_search_by_key(&id, |pending| pending.id).ok()?;
        Some(self.pending[place].purpose)
    }

    /// Whether the cancellation of an order is on its way.
    #[must_use]
    pub fn is_cancelling(&self, slot: u32) -> bool {
        let is_it = |pending: &Pending| matches!(pending.purpose, Purpose::Cancel { slot: other, .. } if other == slot);
        self.pending.iter().any(is_it) || self.entry.as_ref().is_some_and(|entry| entry.pending().any(is_it))
    }

    /// The connection is lost: no reply comes any more.
    pub fn forget_pending(&mut self) {
        self.pending.clear();
    }

    /// Whether cancellations wait, to be handed over or for their replies.
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

    /// All open orders, as far as the venue has told of them, and quotes that are on their way.
    #[must_use]
    pub fn all_open_orders(&self) -> u32 {
        self.open_orders.saturating_add(self.foreign.count()).saturating_add(self.quotes.sent())
    }

    /// Whether another request may be without a reply.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.pending.len() < PENDING_MAX
    }

    /// Whether another request about an order may be without a reply.
    #[must_use]
    pub fn has_order_room(&self) -> bool {
        self.entry.as_ref().map_or_else(|| self.has_room(), OrderEntry::has_room)
    }

    /// Asks about an order, unless that is asked already.
    pub fn ask(&mut self, question: Question) {
        self.questions.ask(question);
    }

    /// Keeps a position.
    pub fn keep_position(&mut self, position: Position) {
        match self.positions.iter_mut().find(|known| known.symbol == position.symbol) {
            Some(known) => *known = position,
            None => self.positions.push(position),
        }
    }

    /// Keeps what is held of a currency.
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
        // One that was taken may be asked again.
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
