//! A trader's positions match its executions; its orders and best prices match the venue's; its limits hold.
//!
//! Each instance is separate: it begins flat, and numbers its orders from the venue's next UserRefNum.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tickpath_book::Order;
use tickpath_trading::{Bbo, Position};
use tickpath_types::{InstrumentId, MatchId, Nanos, OrderEventKind, Price, Qty, Sequence, Side, UserRefNum};

use super::client_orders::Book;
use super::public_book::best;
use super::{Case, final_state};
use crate::{ClientEventKind, LoginOutcome, TraderEnd, TraderInstance};

pub(super) fn check(case: &Case<'_>) {
    let displayed = final_state::displayed(case);
    for instance in &case.observed.traders {
        // An instance that received messages of lost commands cannot be checked.
        if case.views.may_be_unknown(instance.started_at) {
            continue;
        }
        let name = &case.observed.setup.users[instance.user].name;
        case.about(format!("{name} from {} ns on", instance.started_at.0));
        let logged = logged_events(case, instance);
        check_positions(case, instance, &logged);
        check_limits(case, instance, &logged);
        check_requests(case, instance);
        match instance.ended {
            None => check_end(case, instance, &logged, &displayed),
            Some((_, TraderEnd::Stopped)) if instance.orders.is_empty() => {
                check_no_orders_left(case, &logged);
            }
            Some(_) => {}
        }
    }
}

/// The log's order events for an instance, from the answer to its account query on. The instance received the
/// first `received` of them.
#[derive(Default)]
struct LoggedEvents {
    events: Vec<OrderEventKind>,
    received: usize,
}

fn logged_events(case: &Case<'_>, instance: &TraderInstance) -> LoggedEvents {
    let Some(range) = ReceivedRange::of(case, instance) else { return LoggedEvents::default() };
    let mut logged = LoggedEvents::default();
    let mut is_numbered = false;
    let stream = (1..).map(Sequence).zip(&case.truth.streams[instance.user]);
    for (sequence, message) in stream.skip(range.first.0 as usize - 1) {
        match message.event {
            // After the answer to the next instance's query, messages concern that instance's orders.
            None if is_query_answer(&message.bytes) && range.next.is_some_and(|at| sequence >= at) => break,
            None if is_query_answer(&message.bytes) => is_numbered = true,
            Some(event) if is_numbered => logged.events.push(event.kind),
            _ => {}
        }
        if sequence <= range.last {
            logged.received = logged.events.len();
        }
    }
    logged
}

/// Returns true for OUCH's Account Query Response.
fn is_query_answer(message: &[u8]) -> bool {
    message.first() == Some(&b'Q')
}

/// Range of the messages that an instance received, by sequence number.
struct ReceivedRange {
    /// Sequence number of the first message that the instance could receive.
    first: Sequence,
    /// Sequence number of the last message that the instance received.
    last: Sequence,
    /// Sequence number of the first message that the next instance could receive.
    next: Option<Sequence>,
}

impl ReceivedRange {
    /// Returns the range of an instance; `None` if the instance never logged in.
    fn of(case: &Case<'_>, instance: &TraderInstance) -> Option<ReceivedRange> {
        let end = connections_of(case, instance).end;
        let (mut first, mut last, mut next) = (None, Sequence(0), None);
        let events = case.observed.clients[instance.user].events.iter();
        for event in events.filter(|event| event.connection >= instance.first_connection) {
            let is_own = event.connection < end;
            match event.kind {
                ClientEventKind::LoginAnswered(LoginOutcome::Accepted { sequence }) => {
                    let place = if is_own { &mut first } else { &mut next };
                    place.get_or_insert(sequence);
                }
                ClientEventKind::Received { sequence, .. } if is_own => last = last.max(sequence),
                _ => {}
            }
        }
        Some(ReceivedRange { first: first?, last, next })
    }
}

fn connections_of(case: &Case<'_>, instance: &TraderInstance) -> Range<u32> {
    let instances = case.observed.traders.iter().filter(|other| other.user == instance.user);
    let later =
        instances.map(|other| other.first_connection).filter(|first| *first > instance.first_connection);
    instance.first_connection..later.min().unwrap_or(u32::MAX)
}

/// Open orders, fills and accounts, recomputed from the received events.
#[derive(Default)]
struct Ledger {
    /// Instrument and side of each order that was accepted for this instance.
    known: BTreeMap<UserRefNum, (InstrumentId, Side)>,
    book: Book,
    fills: BTreeMap<(UserRefNum, MatchId), (Qty, Price)>,
    accounts: BTreeMap<InstrumentId, Account>,
    /// Instruments with a broken execution, which changes the position without an order.
    broken: BTreeSet<InstrumentId>,
}

/// The account of one instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Account {
    /// Quantity bought minus sold.
    net_qty: i128,
    /// Quantity, notional and number of fills, for purchases and for sales.
    traded: [[i128; 3]; 2],
    /// Net quantity times the position's average price; negative for a short position.
    cost: f64,
    /// Profit of the fills that reduced the position.
    realised: f64,
    /// Number of fills and reversals. Each may round the trader's profit by up to one unit.
    roundings: u64,
}

impl Account {
    /// Applies a fill, or reverses one if `sign` is -1.
    fn fill(&mut self, side: Side, qty: Qty, price: Price, sign: i128) {
        let traded = &mut self.traded[side.index()];
        let notional = i128::from(price.0) * i128::from(qty.0);
        [i128::from(qty.0), notional, 1].iter().zip(traded).for_each(|(part, sum)| *sum += sign * part);
        self.take(if sign < 0 { side.opposite() } else { side }, qty, price);
    }

    fn take(&mut self, side: Side, qty: Qty, price: Price) {
        let sign = i128::from(side.sign());
        let all = i128::from(qty.0);
        let closed = if self.net_qty.signum() == -sign { all.min(self.net_qty.abs()) } else { 0 };
        let average = if self.net_qty == 0 { 0.0 } else { self.cost / self.net_qty as f64 };
        self.realised += closed as f64 * (price.0 as f64 - average) * -sign as f64;
        self.cost += average * (sign * closed) as f64 + price.0 as f64 * (sign * (all - closed)) as f64;
        self.net_qty += sign * all;
        if self.net_qty == 0 {
            self.cost = 0.0;
        }
        self.roundings += 1;
    }

    /// Returns the notional sold minus the notional bought.
    fn cash(&self) -> i128 {
        self.traded[Side::Sell.index()][1] - self.traded[Side::Buy.index()][1]
    }

    /// Returns true if a position equals this account.
    fn matches(&self, position: &Position) -> bool {
        let traded: [[i128; 3]; 2] = [position.bought(), position.sold()]
            .map(|traded| [traded.qty.0.into(), traded.notional.0, traded.fill_count.into()]);
        let by_side = [self.traded[Side::Buy.index()], self.traded[Side::Sell.index()]];
        let error = (position.realised_pnl().0 as f64 - self.realised).abs();
        i128::from(position.net_qty()) == self.net_qty
            && traded == by_side
            && position.realised_pnl().0 - position.open_cost().0 == self.cash()
            && error <= self.roundings as f64 + 1.0
    }
}

impl Ledger {
    /// Applies one event; returns the order that it accepted and left open.
    fn on_event(&mut self, event: &OrderEventKind) -> Option<UserRefNum> {
        let user_ref = event.user_ref();
        // The book ignores events of an earlier instance's orders, since it does not hold them.
        self.book.on_event(Nanos::ZERO, event);
        match *event {
            OrderEventKind::Accepted { order, .. } | OrderEventKind::Replaced { order, .. } => {
                self.known.insert(user_ref, (order.instrument, order.side));
                return Some(user_ref);
            }
            OrderEventKind::Executed { qty, price, match_id, .. } => {
                if let Some((instrument, side)) = self.known.get(&user_ref).copied() {
                    self.fills.insert((user_ref, match_id), (qty, price));
                    self.accounts.entry(instrument).or_default().fill(side, qty, price, 1);
                }
            }
            OrderEventKind::Broken { match_id, .. } => {
                let fill = self.fills.remove(&(user_ref, match_id));
                if let (Some((qty, price)), Some((instrument, side))) = (fill, self.known.get(&user_ref)) {
                    self.broken.insert(*instrument);
                    self.accounts.entry(*instrument).or_default().fill(*side, qty, price, -1);
                }
            }
            _ => {}
        }
        None
    }

    fn account(&self, instrument: InstrumentId) -> Account {
        self.accounts.get(&instrument).copied().unwrap_or_default()
    }

    /// Returns the instruments whose positions differ from the ledger's accounts.
    fn differing<'a>(&self, instance: &'a TraderInstance) -> Vec<(InstrumentId, &'a Position, Account)> {
        let positions = (1..).map(InstrumentId).zip(&instance.positions);
        let accounts = positions.map(|(id, position)| (id, position, self.account(id)));
        accounts.filter(|(_, position, account)| !account.matches(position)).collect()
    }

    /// Returns the side and open quantity of each open order in an instrument.
    fn open_in(&self, instrument: InstrumentId) -> impl Iterator<Item = (Side, u64)> {
        self.book.orders.iter().filter_map(move |(user_ref, open)| {
            let (of, side) = self.known[user_ref];
            (of == instrument).then_some((side, open.leaves))
        })
    }
}

/// Positions and profits match the venue's executions. A killed instance may have processed only a prefix of
/// the received events: its positions must match those after some prefix.
fn check_positions(case: &Case<'_>, instance: &TraderInstance, logged: &LoggedEvents) {
    let mut ledger = Ledger::default();
    let end = if instance.ended.is_none() { logged.events.len() } else { logged.received };
    let may_be_behind = matches!(instance.ended, Some((_, TraderEnd::Killed)));
    let mut has_matched = may_be_behind && ledger.differing(instance).is_empty();
    for event in &logged.events[..end] {
        ledger.on_event(event);
        has_matched |= may_be_behind && ledger.differing(instance).is_empty();
    }
    if has_matched {
        return;
    }
    for (instrument, position, account) in ledger.differing(instance) {
        case.fail(|| {
            format!(
                "holds of instrument {instrument} {position:?}, and the venue's executions lead to {account:?}",
            )
        });
    }
}

/// When the venue accepts an order, the trader's open orders and position are within its limits.
fn check_limits(case: &Case<'_>, instance: &TraderInstance, logged: &LoggedEvents) {
    let limits = &instance.limits;
    let mut ledger = Ledger::default();
    for event in &logged.events {
        let Some(user_ref) = ledger.on_event(event) else { continue };
        let Some(open) = ledger.book.orders.get(&user_ref) else { continue };
        let (instrument, side) = ledger.known[&user_ref];
        case.expect(open.leaves <= limits.max_order_qty.0, || {
            format!("order {user_ref} has {}, and the limit is {}", open.leaves, limits.max_order_qty)
        });
        // A reopened order or a broken execution may exceed these limits without an error of the trader.
        if instance.reopened > 0 || ledger.broken.contains(&instrument) {
            continue;
        }
        let count = ledger.open_in(instrument).count();
        case.expect(count <= limits.max_open_orders as usize, || {
            format!("with order {user_ref} {count} are open, and the limit is {}", limits.max_open_orders)
        });
        let open_qty: u64 =
            ledger.open_in(instrument).filter(|(of, _)| *of == side).map(|(_, qty)| qty).sum();
        let worst = ledger.account(instrument).net_qty * i128::from(side.sign()) + i128::from(open_qty);
        case.expect(worst <= i128::from(limits.max_position.0), || {
            format!(
                "with order {user_ref} its position may reach {worst} of instrument {instrument}, {side:?}, and the limit is {}",
                limits.max_position
            )
        });
    }
}

/// The trader sent no more requests of a kind than its engine decided on.
fn check_requests(case: &Case<'_>, instance: &TraderInstance) {
    let connections = connections_of(case, instance);
    let events = case.observed.clients[instance.user].events.iter();
    let own_events = events.filter(|event| connections.contains(&event.connection));
    let sent = own_events.filter_map(|event| match &event.kind {
        ClientEventKind::Sent(bytes) => bytes.first().copied(),
        _ => None,
    });
    let sent: Vec<u8> = sent.collect();
    let counters = &instance.counters;
    for (letter, decided) in [(b'O', counters.enters), (b'U', counters.replaces), (b'X', counters.cancels)] {
        let count = sent.iter().filter(|sent| **sent == letter).count() as u64;
        case.expect(count <= decided, || {
            format!("sent {count} '{}' and decided on {decided}", char::from(letter))
        });
    }
}

/// At the end, the trader's open orders are those at the venue, and its best prices equal the venue's.
fn check_end(case: &Case<'_>, instance: &TraderInstance, logged: &LoggedEvents, displayed: &[Order<()>]) {
    let mut ledger = Ledger::default();
    logged.events.iter().for_each(|event| _ = ledger.on_event(event));
    let mut resting = resting(case, instance, &ledger);
    for order in &instance.orders {
        let rests = resting.remove(&order.user_ref);
        let expected = Some((order.cum_qty, order.leaves_qty()));
        case.expect(rests == expected, || {
            format!("has {expected:?} as executed and left of order {}, the venue {rests:?}", order.user_ref)
        });
    }
    for user_ref in resting.keys() {
        case.fail(|| format!("order {user_ref} rests and is unknown to the trader"));
    }
    for (instrument, open_qty) in (1..).map(InstrumentId).zip(&instance.open_qty) {
        for side in Side::BOTH {
            let open = ledger.open_in(instrument).filter(|(of, _)| *of == side).map(|(_, qty)| qty);
            let (counted, open) = (open_qty[side.index()], Qty(open.sum()));
            case.expect(counted == open, || {
                format!(
                    "counts {counted} of instrument {instrument}, {side:?}, as open at the end, and {open} is",
                )
            });
        }
    }
    for (instrument, market) in (1..).map(InstrumentId).zip(&instance.markets) {
        let actual =
            Bbo { bid: best(displayed, instrument, Side::Buy), ask: best(displayed, instrument, Side::Sell) };
        case.expect(market.is_none_or(|market| market == actual), || {
            format!("has {market:?} of instrument {instrument}, and it is {actual:?}")
        });
    }
}

/// A trader that stopped and counted no open orders has none at the venue.
fn check_no_orders_left(case: &Case<'_>, logged: &LoggedEvents) {
    let mut ledger = Ledger::default();
    logged.events[..logged.received].iter().for_each(|event| _ = ledger.on_event(event));
    for user_ref in ledger.book.orders.keys() {
        case.fail(|| format!("ended, and left order {user_ref}"));
    }
}

/// Returns the executed and open quantity of each of an instance's orders that is open at the end.
fn resting(case: &Case<'_>, instance: &TraderInstance, ledger: &Ledger) -> BTreeMap<UserRefNum, (Qty, Qty)> {
    let session = case.observed.clients[instance.user].session;
    let orders = case.truth.engine.open_orders().filter(|order| order.session == session);
    let own_orders = orders.filter(|open| ledger.known.contains_key(&open.order.user_ref));
    own_orders.map(|open| (open.order.user_ref, (Qty(open.executed), Qty(open.leaves())))).collect()
}
