//! A trader's positions match the venue's executions, its orders and market are right, its limits kept.
//!
//! Each instance is separate: a trader begins flat, and numbers its orders from the venue's number.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tickpath_book::Order;
use tickpath_trading::{Bbo, Position};
use tickpath_types::{InstrumentId, MatchId, Nanos, OrderEventKind, Price, Qty, Sequence, Side, UserRefNum};

use super::client_orders::Book;
use super::public_book::best;
use super::{Case, final_state};
use crate::{ClientEventKind, LoginOutcome, TraderEnd, TraderLife};

pub(super) fn check(case: &Case<'_>) {
    let displayed = final_state::displayed(case);
    for life in &case.observed.traders {
        // An instance whose messages were partly reverted cannot be checked.
        if case.views.may_be_unknown(life.started_at) {
            continue;
        }
        let name = &case.observed.setup.users[life.user].name;
        case.about(format!("{name} from {} ns on", life.started_at.0));
        let told = told_of(case, life);
        check_positions(case, life, &told);
        check_limits(case, life, &told);
        check_requests(case, life);
        match life.ended {
            None => check_end(case, life, &told, &displayed),
            Some((_, TraderEnd::Stopped)) if life.orders.is_empty() => {
                check_nothing_left(case, &told);
            }
            Some(_) => {}
        }
    }
}

/// The log's messages to an instance after the answer to its number query; `received` of them arrived.
#[derive(Default)]
struct Told {
    events: Vec<OrderEventKind>,
    received: usize,
}

fn told_of(case: &Case<'_>, life: &TraderLife) -> Told {
    let Some(heard) = Heard::of(case, life) else { return Told::default() };
    let mut told = Told::default();
    let mut is_numbered = false;
    let stream = (1..).map(Sequence).zip(&case.truth.streams[life.user]);
    for (sequence, message) in stream.skip(heard.first.0 as usize - 1) {
        match message.event {
            // Messages after the next instance's first number concern that instance's orders.
            None if is_query_answer(&message.bytes) && heard.next.is_some_and(|at| sequence >= at) => break,
            None if is_query_answer(&message.bytes) => is_numbered = true,
            Some(event) if is_numbered => told.events.push(event.kind),
            _ => {}
        }
        if sequence <= heard.last {
            told.received = told.events.len();
        }
    }
    told
}

/// Returns true for OUCH's Account Query Response.
fn is_query_answer(message: &[u8]) -> bool {
    message.first() == Some(&b'Q')
}

/// The messages that an instance received.
struct Heard {
    /// The first message that it could receive.
    first: Sequence,
    /// The last message that it received.
    last: Sequence,
    /// The first message that the next instance could receive.
    next: Option<Sequence>,
}

impl Heard {
    /// Returns `None` if it was never logged in.
    fn of(case: &Case<'_>, life: &TraderLife) -> Option<Heard> {
        let end = connections_of(case, life).end;
        let (mut first, mut last, mut next) = (None, Sequence(0), None);
        let events = case.observed.clients[life.user].events.iter();
        for event in events.filter(|event| event.connection >= life.first_connection) {
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
        Some(Heard { first: first?, last, next })
    }
}

fn connections_of(case: &Case<'_>, life: &TraderLife) -> Range<u32> {
    let lives = case.observed.traders.iter().filter(|other| other.user == life.user);
    let later = lives.map(|other| other.first_connection).filter(|first| *first > life.first_connection);
    life.first_connection..later.min().unwrap_or(u32::MAX)
}

/// The received events, summed in the simplest way.
#[derive(Default)]
struct Ledger {
    /// Accepted orders of this instance.
    known: BTreeMap<UserRefNum, (InstrumentId, Side)>,
    book: Book,
    fills: BTreeMap<(UserRefNum, MatchId), (Qty, Price)>,
    accounts: BTreeMap<InstrumentId, Account>,
    /// Instruments with a broken execution: the position changed without an order.
    broken: BTreeSet<InstrumentId>,
}

/// The account of one instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Account {
    /// Quantity bought minus sold.
    held: i128,
    /// Quantity, money and number of purchases, and of sales.
    traded: [[i128; 3]; 2],
    /// Average cost of the open position, and the profit of closing fills.
    cost: f64,
    realised: f64,
    /// Number of fills and reversals: the maximum rounding difference, in units.
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
        let closed = if self.held.signum() == -sign { all.min(self.held.abs()) } else { 0 };
        let average = if self.held == 0 { 0.0 } else { self.cost / self.held as f64 };
        self.realised += closed as f64 * (price.0 as f64 - average) * -sign as f64;
        self.cost += average * (sign * closed) as f64 + price.0 as f64 * (sign * (all - closed)) as f64;
        self.held += sign * all;
        if self.held == 0 {
            self.cost = 0.0;
        }
        self.roundings += 1;
    }

    /// Returns the money received minus the money paid.
    fn cash(&self) -> i128 {
        self.traded[Side::Sell.index()][1] - self.traded[Side::Buy.index()][1]
    }

    /// Returns true if a position equals these sums.
    fn is(&self, position: &Position) -> bool {
        let traded: [[i128; 3]; 2] = [position.bought(), position.sold()]
            .map(|traded| [traded.qty.0.into(), traded.notional.0, traded.fill_count.into()]);
        let by_side = [self.traded[Side::Buy.index()], self.traded[Side::Sell.index()]];
        let error = (position.realised_pnl().0 as f64 - self.realised).abs();
        i128::from(position.net_qty()) == self.held
            && traded == by_side
            && position.realised_pnl().0 - position.open_cost().0 == self.cash()
            && error <= self.roundings as f64 + 1.0
    }
}

impl Ledger {
    /// Applies one event; returns the order that it accepted and left open.
    fn hear(&mut self, event: &OrderEventKind) -> Option<UserRefNum> {
        let user_ref = event.user_ref();
        // The book does not know the orders of an earlier instance.
        self.book.hear(Nanos::ZERO, event);
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

    /// Returns the instruments whose positions differ from these sums.
    fn differing<'a>(&self, life: &'a TraderLife) -> Vec<(InstrumentId, &'a Position, Account)> {
        let positions = (1..).map(InstrumentId).zip(&life.positions);
        let accounts = positions.map(|(id, position)| (id, position, self.account(id)));
        accounts.filter(|(_, position, account)| !account.is(position)).collect()
    }

    /// Returns the open orders of an instrument, with their sides.
    fn open_in(&self, instrument: InstrumentId) -> impl Iterator<Item = (Side, u64)> {
        self.book.orders.iter().filter_map(move |(user_ref, open)| {
            let (of, side) = self.known[user_ref];
            (of == instrument).then_some((side, open.leaves))
        })
    }
}

/// Positions, payments and profits match the venue's reports; for a killed instance, those up to some moment.
fn check_positions(case: &Case<'_>, life: &TraderLife, told: &Told) {
    let mut ledger = Ledger::default();
    let end = if life.ended.is_none() { told.events.len() } else { told.received };
    let may_be_behind = matches!(life.ended, Some((_, TraderEnd::Killed)));
    let mut was_so = may_be_behind && ledger.differing(life).is_empty();
    for event in &told.events[..end] {
        ledger.hear(event);
        was_so |= may_be_behind && ledger.differing(life).is_empty();
    }
    if was_so {
        return;
    }
    for (instrument, position, account) in ledger.differing(life) {
        case.say(|| {
            format!(
                "holds of instrument {instrument} {position:?}, and the venue's executions lead to {account:?}",
            )
        });
    }
}

/// Accepted orders stay within the limits, regardless of messages in flight.
fn check_limits(case: &Case<'_>, life: &TraderLife, told: &Told) {
    let limits = &life.limits;
    let mut ledger = Ledger::default();
    for event in &told.events {
        let Some(user_ref) = ledger.hear(event) else { continue };
        let Some(open) = ledger.book.orders.get(&user_ref) else { continue };
        let (instrument, side) = ledger.known[&user_ref];
        case.expect(open.leaves <= limits.max_order_qty.0, || {
            format!("order {user_ref} has {} and may have {}", open.leaves, limits.max_order_qty)
        });
        // Revived orders were not counted, and broken executions were not requested.
        if life.revived > 0 || ledger.broken.contains(&instrument) {
            continue;
        }
        let count = ledger.open_in(instrument).count();
        case.expect(count <= limits.max_open_orders as usize, || {
            format!("with order {user_ref} {count} are open, and {} may be", limits.max_open_orders)
        });
        let open_qty: u64 =
            ledger.open_in(instrument).filter(|(of, _)| *of == side).map(|(_, qty)| qty).sum();
        let worst = ledger.account(instrument).held * i128::from(side.sign()) + i128::from(open_qty);
        case.expect(worst <= i128::from(limits.max_position.0), || {
            format!(
                "with order {user_ref} it may come to hold {worst} of instrument {instrument}, {side:?}, and {} is its most",
                limits.max_position
            )
        });
    }
}

/// Every sent request came from the engine.
fn check_requests(case: &Case<'_>, life: &TraderLife) {
    let connections = connections_of(case, life);
    let events = case.observed.clients[life.user].events.iter();
    let of_life = events.filter(|event| connections.contains(&event.connection));
    let sent = of_life.filter_map(|event| match &event.kind {
        ClientEventKind::Sent(bytes) => bytes.first().copied(),
        _ => None,
    });
    let sent: Vec<u8> = sent.collect();
    let counters = &life.counters;
    for (letter, asked) in [(b'O', counters.enters), (b'U', counters.replaces), (b'X', counters.cancels)] {
        let count = sent.iter().filter(|sent| **sent == letter).count() as u64;
        case.expect(count <= asked, || {
            format!("sent {count} '{}' and decided on {asked}", char::from(letter))
        });
    }
}

/// At the end, the trader's open orders are the resting ones, and its market equals the venue's.
fn check_end(case: &Case<'_>, life: &TraderLife, told: &Told, displayed: &[Order<()>]) {
    let mut ledger = Ledger::default();
    told.events.iter().for_each(|event| _ = ledger.hear(event));
    let mut resting = resting(case, life, &ledger);
    for order in &life.orders {
        let rests = resting.remove(&order.user_ref);
        let expected = Some((order.cum_qty, order.leaves_qty()));
        case.expect(rests == expected, || {
            format!("has {expected:?} as executed and left of order {}, the venue {rests:?}", order.user_ref)
        });
    }
    for user_ref in resting.keys() {
        case.say(|| format!("order {user_ref} rests and is forgotten"));
    }
    for (instrument, open_qty) in (1..).map(InstrumentId).zip(&life.open_qty) {
        for side in Side::BOTH {
            let open = ledger.open_in(instrument).filter(|(of, _)| *of == side).map(|(_, qty)| qty);
            let (counted, open) = (open_qty[side.index()], Qty(open.sum()));
            case.expect(counted == open, || {
                format!(
                    "counts {counted} of instrument {instrument}, {side:?}, as open in the end, and {open} is",
                )
            });
        }
    }
    for (instrument, market) in (1..).map(InstrumentId).zip(&life.markets) {
        let is =
            Bbo { bid: best(displayed, instrument, Side::Buy), ask: best(displayed, instrument, Side::Sell) };
        case.expect(market.is_none_or(|market| market == is), || {
            format!("has {market:?} of instrument {instrument}, and it is {is:?}")
        });
    }
}

/// A trader that ended without open orders has left none at the venue.
fn check_nothing_left(case: &Case<'_>, told: &Told) {
    let mut ledger = Ledger::default();
    told.events[..told.received].iter().for_each(|event| _ = ledger.hear(event));
    for user_ref in ledger.book.orders.keys() {
        case.say(|| format!("ended, and left order {user_ref}"));
    }
}

/// Returns executed and open quantity of an instance's orders that rest at the end.
fn resting(case: &Case<'_>, life: &TraderLife, ledger: &Ledger) -> BTreeMap<UserRefNum, (Qty, Qty)> {
    let session = case.observed.clients[life.user].session;
    let orders = case.truth.engine.open_orders().filter(|order| order.session == session);
    let of_life = orders.filter(|open| ledger.known.contains_key(&open.order.user_ref));
    of_life.map(|open| (open.order.user_ref, (Qty(open.executed), Qty(open.leaves())))).collect()
}
