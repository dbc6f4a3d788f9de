//! Request ordering: requests of a connection that depend on an in-flight order run in the order of arrival.
//!
//! A request about orders waits until the log contains the earlier requests on them. Later requests of the
//! same connection wait behind it. Requests that are queued when their connection ends are still executed.

use std::collections::VecDeque;

use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::method::Method;
use tickpath_deribit::request::Request;
use tickpath_deribit::scan::Value;
use tickpath_fix::{Message, Parsed};

use super::Front;
use super::fix::Caller;
use super::history::number_of;
use crate::fault::Fault;
use crate::json::{param, text_of};
use crate::order::{Order, Terms};
use crate::pending::{Pending, ReplyTo, Work};

/// Maximum number of queued requests per connection; more are rejected with `matching_engine_queue_full`.
const QUEUED_MAX: usize = 256;
/// Maximum total bytes of the queued requests of a connection; with the same rejection.
const QUEUED_BYTES_MAX: usize = 1 << 20;

/// Orders that a request depends on; their in-flight requests must complete first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Nothing,
    /// By the venue's order number.
    Order(u64),
    Label(String),
    /// By `ClOrdID`, over FIX.
    ClientId(String),
    All,
}

/// A queued request.
struct Queued {
    account: usize,
    look: Look,
    /// Latest request sequence to wait for; none until it is the oldest request of its connection.
    behind: Option<u64>,
    asked: Asked,
    bytes: Vec<u8>,
}

/// Source of a request.
pub(super) enum Asked {
    JsonRpc(ReplyTo),
    /// An HTTP query.
    Query(ReplyTo),
    Fix(Caller),
}

/// Queued requests of one connection, oldest first.
#[derive(Default)]
pub(super) struct InOrder {
    requests: VecDeque<Queued>,
    bytes: usize,
}

/// Returns the orders that a JSON-RPC request depends on.
pub(super) fn look_of(request: &Request<'_>) -> Look {
    let Ok(params) = request.params::<Value<'_>>() else { return Look::Nothing };
    let label = || text_of(&params, "label").map_or(Look::All, Look::Label);
    match request.method {
        // The reducible quantity is only known once the other requests are done.
        Method::Buy | Method::Sell | Method::Edit | Method::EditByLabel
            if param(&params, "reduce_only").ok().flatten() == Some(true) =>
        {
            Look::All
        }
        Method::Edit | Method::Cancel | Method::GetOrderState => {
            let number = text_of(&params, "order_id").and_then(|id| number_of(&id));
            number.map_or(Look::Nothing, Look::Order)
        }
        Method::EditByLabel
        | Method::CancelByLabel
        | Method::GetOrderStateByLabel
        | Method::GetOpenOrdersByLabel => label(),
        Method::CancelAll
        | Method::CancelAllByInstrument
        | Method::CancelAllByCurrency
        | Method::CancelAllByCurrencyPair
        | Method::CancelAllByKindOrType
        | Method::CancelQuotes
        | Method::ClosePosition
        | Method::GetOpenOrders
        | Method::GetOpenOrdersByInstrument
        | Method::GetOpenOrdersByCurrency => Look::All,
        _ => Look::Nothing,
    }
}

/// Returns true for methods that never wait, because they neither read nor change orders.
const fn is_apart(method: Method) -> bool {
    matches!(method, Method::PrivateSubscribe | Method::PrivateUnsubscribe | Method::PrivateUnsubscribeAll)
}

impl Front {
    /// Queues a JSON-RPC request if it must wait; returns false if it must run now.
    pub(super) fn queue_call(
        &mut self,
        account: usize,
        request: &Request<'_>,
        frame: &[u8],
        to: &ReplyTo,
    ) -> Result<bool, Fault> {
        if is_apart(request.method) || !self.may_wait(account, to.connection) {
            return Ok(false);
        }
        let look = match request.method {
            Method::Edit | Method::EditByLabel => self.look_of_edit(account, look_of(request)),
            _ => look_of(request),
        };
        let asked = if request.is_query { Asked::Query(to.clone()) } else { Asked::JsonRpc(to.clone()) };
        self.queue(to.connection, account, look, asked, frame)
    }

    /// Returns all orders for an edit of a reduce-only order, whose limit depends on all in-flight requests.
    pub(super) fn look_of_edit(&self, account: usize, look: Look) -> Look {
        let known = &self.accounts[account];
        let is_meant = |number: Option<u64>, terms: &Terms| match &look {
            Look::Order(wanted) => number == Some(*wanted),
            Look::Label(wanted) => self.labels.name(terms.label) == wanted,
            Look::ClientId(wanted) => self.labels.client_id(terms.label) == wanted,
            Look::Nothing | Look::All => false,
        };
        let mut pending = known.pending.iter().filter_map(|pending| match pending.work {
            Work::Place(intent) => Some((None, intent.terms)),
            Work::Edit { number, intent } => Some((Some(number), intent.terms)),
            Work::Cancel { .. } => None,
        });
        let reduces =
            |(number, terms): (Option<u64>, Terms)| terms.is_reduce_only && is_meant(number, &terms);
        let of_order = |order: &Order| reduces((Some(order.number), order.terms));
        let is_reducing = match &look {
            Look::Order(number) => known.open.get(number).is_some_and(of_order),
            _ => known.open.values().any(of_order),
        };
        if is_reducing || pending.any(reduces) { Look::All } else { look }
    }

    /// Returns true if a request of the account is in flight or the connection has queued requests.
    pub(super) fn may_wait(&self, account: usize, number: u64) -> bool {
        !self.accounts[account].pending.is_empty() || self.queued.contains_key(&number)
    }

    /// Queues a request if it must wait.
    pub(super) fn queue(
        &mut self,
        number: u64,
        account: usize,
        look: Look,
        asked: Asked,
        bytes: &[u8],
    ) -> Result<bool, Fault> {
        let is_first = !self.queued.contains_key(&number);
        if is_first && !self.is_on_its_way(account, &look, self.turns) {
            return Ok(false);
        }
        let behind = is_first.then_some(self.turns);
        let queue = self.queued.entry(number).or_default();
        if queue.requests.len() >= QUEUED_MAX || queue.bytes + bytes.len() > QUEUED_BYTES_MAX {
            return Err(Fault::because(ErrorCode::MatchingEngineQueueFull, "too many wait for an order"));
        }
        queue.bytes += bytes.len();
        queue.requests.push_back(Queued { account, look, behind, asked, bytes: bytes.to_vec() });
        self.counters.waited.add(1);
        Ok(true)
    }

    /// Returns true if a request on these orders, sent up to the sequence `behind`, is still in flight.
    fn is_on_its_way(&self, account: usize, look: &Look, behind: u64) -> bool {
        let mut pending = self.accounts[account].pending.iter();
        pending.any(|pending| pending.turn <= behind && self.is_about(account, look, pending))
    }

    fn is_about(&self, account: usize, look: &Look, pending: &Pending) -> bool {
        let number = match pending.work {
            Work::Place(_) => None,
            Work::Edit { number, .. } | Work::Cancel { number, .. } => Some(number),
        };
        let label = || match pending.work {
            Work::Place(intent) | Work::Edit { intent, .. } => intent.terms.label,
            Work::Cancel { number, .. } => {
                self.accounts[account].order(number).map_or(0, |order| order.terms.label)
            }
        };
        match look {
            Look::Nothing => false,
            Look::All => true,
            Look::Order(wanted) => number == Some(*wanted),
            Look::Label(wanted) => self.labels.name(label()) == wanted,
            Look::ClientId(wanted) => !wanted.is_empty() && self.labels.client_id(label()) == wanted,
        }
    }

    /// Runs the queued requests of an account after a log command of the account.
    pub(super) fn run_queued(&mut self, account: usize) {
        if self.queued.is_empty() {
            return;
        }
        let is_own = |queue: &InOrder| queue.requests.front().is_some_and(|head| head.account == account);
        let queues = self.queued.iter().filter(|(_, queue)| is_own(queue));
        let numbers: Vec<u64> = queues.map(|(number, _)| *number).collect();
        for number in numbers {
            while let Some(request) = self.next_queued(number) {
                self.do_queued(number, request);
            }
        }
    }

    /// Takes the oldest request of a connection if nothing it waits for is in flight.
    fn next_queued(&mut self, number: u64) -> Option<Queued> {
        let now = self.turns;
        let head = self.queued.get_mut(&number)?.requests.front_mut()?;
        head.behind.get_or_insert(now);
        self.take_queued(number, |front, head| {
            !front.is_on_its_way(head.account, &head.look, head.behind.unwrap_or(now))
        })
    }

    /// Takes the oldest request of a connection if it is wanted.
    fn take_queued(&mut self, number: u64, is_wanted: impl Fn(&Front, &Queued) -> bool) -> Option<Queued> {
        let head = self.queued.get(&number)?.requests.front()?;
        if !is_wanted(self, head) {
            return None;
        }
        let queue = self.queued.get_mut(&number)?;
        let head = queue.requests.pop_front()?;
        queue.bytes -= head.bytes.len();
        if queue.requests.is_empty() {
            self.queued.remove(&number);
        }
        Some(head)
    }

    fn do_queued(&mut self, number: u64, queued: Queued) {
        match queued.asked {
            Asked::JsonRpc(ref to) | Asked::Query(ref to) => {
                let is_query = matches!(queued.asked, Asked::Query(_));
                let parse = if is_query { Request::parse_query } else { Request::parse };
                let Ok(request) = parse(&queued.bytes) else { return };
                match self.call_private(number, queued.account, &request, to) {
                    Ok(Some(result)) => self.reply(to, Ok(result)),
                    Ok(None) => {}
                    Err(fault) => self.reply(to, Err(fault)),
                }
            }
            Asked::Fix(caller) => {
                if let Parsed::Complete { message, .. } = Message::parse(&queued.bytes) {
                    self.do_fix_request(caller, &message);
                }
            }
        }
    }

    /// Rejects requests that wait for an unconfirmed request; their clients must query the state.
    pub(super) fn give_up_queued(&mut self, account: usize, late: &Pending) {
        let numbers: Vec<u64> = self.queued.keys().copied().collect();
        for number in numbers {
            let waits = |front: &Front, head: &Queued| {
                let is_behind = head.behind.is_some_and(|behind| late.turn <= behind);
                head.account == account && is_behind && front.is_about(account, &head.look, late)
            };
            let Some(Queued { asked, bytes, .. }) = self.take_queued(number, waits) else { continue };
            self.counters.unanswered.add(1);
            match asked {
                Asked::JsonRpc(to) | Asked::Query(to) => self.reply(&to, Err(ErrorCode::TimedOut.into())),
                Asked::Fix(caller) => {
                    if let Parsed::Complete { message, .. } = Message::parse(&bytes) {
                        self.refuse_fix_late(caller, &message);
                    }
                }
            }
        }
    }
}
