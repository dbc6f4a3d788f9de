//! A crowd of traders: seeded order flow that is sent whatever the market does.

use std::collections::VecDeque;

use tickpath_types::{
    CancelOrder, EnterOrder, Instrument, Nanos, OrderRequest, Price, Qty, ReplaceOrder, SessionId, Side,
    TimeInForce, UserRefNum,
};

use crate::random::Random;

/// How a crowd behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrowdConfig {
    /// New orders a second; cancels, reductions and replacements come in addition.
    pub orders_per_second: u64,
    /// Sessions that the crowd trades by; actions are dealt to them at random.
    pub sessions: usize,
    /// Orders that rest in one book at a time; the oldest leaves for each one beyond.
    pub resting_per_instrument: usize,
    /// Orders of each side that open the books before the flow begins.
    pub opening_orders: usize,
    /// Of the new orders, parts in a million that cross the market.
    pub aggressive_ppm: u64,
}

impl Default for CrowdConfig {
    fn default() -> Self {
        CrowdConfig {
            orders_per_second: 20_000,
            sessions: 2,
            resting_per_instrument: 1_500,
            opening_orders: 200,
            aggressive_ppm: 80_000,
        }
    }
}

/// One thing that the crowd does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrowdAction {
    /// When it is meant to be sent, from the start of the flow: response times are counted from here.
    pub due: Nanos,
    /// By which of the crowd's sessions, from 0.
    pub session: usize,
    /// What is sent.
    pub request: OrderRequest,
}

/// An order that rests, as far as the crowd knows: it may have traded.
#[derive(Clone, Copy, Debug)]
struct Resting {
    session: usize,
    user_ref: UserRefNum,
    qty: Qty,
    price: Price,
}

struct Book {
    instrument: Instrument,
    /// What the crowd believes that the instrument is worth, in ticks.
    value: i64,
    resting: VecDeque<Resting>,
}

/// Generates the crowd's actions in the order of their times.
///
/// Each instrument has a value that wanders one tick at a time; passive orders stand around it at
/// distances that get rarer by steps, some orders cross it, resting orders are cancelled, reduced and
/// replaced after a while. The flow depends on the seed alone and not on what the venue answers: an order
/// that traded meanwhile is cancelled all the same, which the venue ignores. Whole numbers only, so
/// that a seed gives the same flow on every machine.
pub struct Crowd {
    config: CrowdConfig,
    random: Random,
    books: Vec<Book>,
    next_refs: Vec<u32>,
    due: Nanos,
    opening: usize,
    /// Actions that go with the last new order.
    pending: VecDeque<CrowdAction>,
}

/// Most ticks between a passive order and the value.
const DISTANCE_MAX: u64 = 60;
/// Ticks by which an aggressive order reaches beyond the value.
const REACH: i64 = 4;

impl Crowd {
    /// A crowd for these instruments.
    ///
    /// # Panics
    /// When there is no instrument, no session or no rate.
    #[must_use]
    pub fn new(config: CrowdConfig, instruments: &[Instrument], seed: u64) -> Crowd {
        assert!(!instruments.is_empty(), "a crowd needs something to trade");
        assert!(config.sessions > 0 && config.orders_per_second > 0, "a crowd needs a session and a rate");
        let book = |instrument: &Instrument| Book {
            instrument: *instrument,
            value: instrument.reference_price.0 / instrument.tick_size.0,
            resting: VecDeque::with_capacity(config.resting_per_instrument + 1),
        };
        Crowd {
            config,
            random: Random::new(seed),
            books: instruments.iter().map(book).collect(),
            next_refs: vec![0; config.sessions],
            due: Nanos::ZERO,
            opening: 0,
            pending: VecDeque::with_capacity(8),
        }
    }

    /// Orders that open the books: sent at once, before the flow.
    #[must_use]
    pub fn opening_orders(&self) -> usize {
        2 * self.config.opening_orders * self.books.len()
    }

    /// The next action. Never ends.
    pub fn next_action(&mut self) -> CrowdAction {
        if let Some(action) = self.pending.pop_front() {
            return action;
        }
        if self.opening < self.opening_orders() {
            return self.open();
        }
        self.due = self.due + Nanos(self.random.exponential(1_000_000_000 / self.config.orders_per_second));
        let book = self.random.below(self.books.len() as u64) as usize;
        self.wander(book);
        let side = if self.random.chance(500_000) { Side::Buy } else { Side::Sell };
        let aggressive = self.random.chance(self.config.aggressive_ppm);
        let distance = if aggressive {
            -(self.random.below(REACH as u64 + 1) as i64)
        } else {
            1 + self.random.geometric(850_000, DISTANCE_MAX) as i64
        };
        let time_in_force = if aggressive { TimeInForce::Ioc } else { TimeInForce::Day };
        let action = self.enter(book, side, distance, time_in_force);
        self.follow_up(book);
        action
    }

    /// Builds the books from the outside in, both sides in turn.
    fn open(&mut self) -> CrowdAction {
        let book = self.opening % self.books.len();
        let round = self.opening / self.books.len();
        self.opening += 1;
        let side = if round.is_multiple_of(2) { Side::Buy } else { Side::Sell };
        let distance = 1 + self.random.geometric(900_000, DISTANCE_MAX) as i64;
        self.enter(book, side, distance, TimeInForce::Day)
    }

    /// The value moves a tick now and then, and turns back at three quarters of the way to the collar.
    fn wander(&mut self, book: usize) {
        if !self.random.chance(30_000) {
            return;
        }
        let book = &mut self.books[book];
        let Instrument { tick_size, reference_price, collar_low, collar_high, .. } = book.instrument;
        let centre = reference_price.0 / tick_size.0;
        let (low, high) = (collar_low.0 / tick_size.0, collar_high.0 / tick_size.0);
        let up = self.random.chance(500_000);
        let step = if up { 1 } else { -1 };
        let next = book.value + step;
        let (floor, ceiling) = (centre - (centre - low) * 3 / 4, centre + (high - centre) * 3 / 4);
        book.value = next.clamp(floor, ceiling);
    }

    fn enter(&mut self, book: usize, side: Side, distance: i64, time_in_force: TimeInForce) -> CrowdAction {
        let session = self.random.below(self.config.sessions as u64) as usize;
        let lots = 1 + self.random.geometric(700_000, 40);
        let user_ref = self.next_ref(session);
        let book = &mut self.books[book];
        let instrument = &book.instrument;
        let ticks = book.value - side.sign() * distance;
        let price =
            Price((ticks * instrument.tick_size.0).clamp(instrument.collar_low.0, instrument.collar_high.0));
        let hundred_lots = if instrument.max_qty.0 / instrument.lot_size.0 >= 41 * 100 { 100 } else { 1 };
        let qty = Qty((lots * hundred_lots * instrument.lot_size.0).min(instrument.max_qty.0));
        if time_in_force == TimeInForce::Day {
            book.resting.push_back(Resting { session, user_ref, qty, price });
        }
        let order = EnterOrder {
            user_ref,
            instrument: instrument.id,
            side,
            qty,
            price,
            time_in_force,
            post_only: false,
            min_qty: Qty::ZERO,
            attributes: Default::default(),
            client_order_id: Default::default(),
        };
        CrowdAction { due: self.due, session, request: OrderRequest::Enter(order) }
    }

    /// What happens to resting orders of the book meanwhile.
    fn follow_up(&mut self, book: usize) {
        let resting = self.books[book].resting.len();
        if resting > self.config.resting_per_instrument {
            self.cancel_at(book, 0);
        } else if resting > 0 {
            // Recent orders are touched most, as people change their minds at once or not at all.
            let age = self.random.geometric(980_000, resting as u64 - 1) as usize;
            let place = resting - 1 - age.min(resting - 1);
            match self.random.below(100) {
                0..55 => self.cancel_at(book, place),
                55..60 => self.reduce_at(book, place),
                60..70 => self.replace_at(book, place),
                _ => {}
            }
        }
    }

    fn cancel_at(&mut self, book: usize, place: usize) {
        if let Some(order) = self.books[book].resting.remove(place) {
            let cancel = CancelOrder { user_ref: order.user_ref, qty: Qty::ZERO };
            self.send(order.session, OrderRequest::Cancel(cancel));
        }
    }

    fn reduce_at(&mut self, book: usize, place: usize) {
        let book = &mut self.books[book];
        let lot = book.instrument.lot_size.0;
        let order = &mut book.resting[place];
        let half = order.qty.0 / 2 / lot * lot;
        if half > 0 {
            order.qty = Qty(half);
            let (session, user_ref) = (order.session, order.user_ref);
            self.send(session, OrderRequest::Cancel(CancelOrder { user_ref, qty: Qty(half) }));
        }
    }

    /// The order moves one tick away from where it was.
    fn replace_at(&mut self, book: usize, place: usize) {
        let Some(mut order) = self.books[book].resting.remove(place) else { return };
        let orig_user_ref = order.user_ref;
        order.user_ref = self.next_ref(order.session);
        let book = &mut self.books[book];
        let instrument = &book.instrument;
        let away = if order.price.0 < book.value * instrument.tick_size.0 { -1 } else { 1 };
        let price = order.price.0 + away * instrument.tick_size.0;
        order.price = Price(price.clamp(instrument.collar_low.0, instrument.collar_high.0));
        book.resting.push_back(order);
        let replace = ReplaceOrder {
            orig_user_ref,
            user_ref: order.user_ref,
            qty: order.qty,
            price: order.price,
            time_in_force: TimeInForce::Day,
            post_only: false,
            min_qty: Qty::ZERO,
            attributes: Default::default(),
            client_order_id: Default::default(),
        };
        self.send(order.session, OrderRequest::Replace(replace));
    }

    fn send(&mut self, session: usize, request: OrderRequest) {
        self.pending.push_back(CrowdAction { due: self.due, session, request });
    }

    fn next_ref(&mut self, session: usize) -> UserRefNum {
        self.next_refs[session] += 1;
        UserRefNum(self.next_refs[session])
    }
}

/// The venue's session of a crowd's session, given the first one's.
#[must_use]
pub const fn session_id(first: SessionId, session: usize) -> SessionId {
    SessionId(first.0 + session as u16)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tickpath_types::{InstrumentId, Symbol};

    use super::*;

    fn instruments() -> Vec<Instrument> {
        (1..=3)
            .map(|id| Instrument {
                id: InstrumentId(id),
                symbol: Symbol::new("A").unwrap(),
                tick_size: Price(50),
                lot_size: Qty(10),
                max_qty: Qty(500),
                reference_price: Price(100_000),
                collar_low: Price(98_000),
                collar_high: Price(102_000),
            })
            .collect()
    }

    fn crowd(seed: u64) -> Crowd {
        Crowd::new(CrowdConfig { resting_per_instrument: 50, ..CrowdConfig::default() }, &instruments(), seed)
    }

    #[test]
    fn a_seed_gives_the_same_flow_on_every_machine() {
        let digest = |seed| {
            let mut crowd = crowd(seed);
            (0..20_000).fold(0_u64, |digest, _| {
                let action = crowd.next_action();
                let (kind, price, qty) = match action.request {
                    OrderRequest::Enter(order) => (1, order.price.0, order.qty.0),
                    OrderRequest::Replace(order) => (2, order.price.0, order.qty.0),
                    OrderRequest::Cancel(order) => (3, 0, order.qty.0),
                    OrderRequest::Modify(_) => (4, 0, 0),
                };
                let words = [
                    action.due.0,
                    action.session as u64,
                    kind,
                    price as u64,
                    qty,
                    u64::from(action.request.user_ref().0),
                ];
                words.iter().fold(digest, |digest, word| {
                    (digest ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(17)
                })
            })
        };
        assert_eq!(digest(1), GOLDEN, "the flow of seed 1 has changed");
        assert_ne!(digest(1), digest(2));
    }

    const GOLDEN: u64 = 16_624_951_531_602_459_204;

    #[test]
    fn every_request_is_one_that_the_venue_takes() {
        let mut crowd = crowd(3);
        let mut last_refs = [0; 2];
        let mut open = HashSet::new();
        let (mut entered, mut last_due) = (0_u64, Nanos::ZERO);
        for _ in 0..50_000 {
            let action = crowd.next_action();
            assert!(action.due >= last_due, "in the order of their times");
            last_due = action.due;
            let mut is_new = |user_ref: UserRefNum| {
                assert!(user_ref.0 > last_refs[action.session], "numbers rise");
                last_refs[action.session] = user_ref.0;
            };
            match action.request {
                OrderRequest::Enter(order) => {
                    is_new(order.user_ref);
                    let instrument = &instruments()[usize::from(order.instrument.0) - 1];
                    assert!(instrument.is_on_tick(order.price) && instrument.is_within_collar(order.price));
                    assert!(instrument.is_tradable_qty(order.qty));
                    if order.time_in_force == TimeInForce::Day {
                        open.insert((action.session, order.user_ref));
                    }
                    entered += 1;
                }
                OrderRequest::Replace(order) => {
                    is_new(order.user_ref);
                    assert!(open.remove(&(action.session, order.orig_user_ref)));
                    open.insert((action.session, order.user_ref));
                }
                OrderRequest::Cancel(cancel) if cancel.qty.is_zero() => {
                    assert!(open.remove(&(action.session, cancel.user_ref)), "of an order that was entered");
                }
                OrderRequest::Cancel(cancel) => assert!(open.contains(&(action.session, cancel.user_ref))),
                OrderRequest::Modify(_) => panic!("a crowd does not modify"),
            }
            assert!(open.len() <= 3 * 51 + crowd.opening_orders());
        }
        let flow = entered - crowd.opening_orders() as u64;
        let per_second = flow as u128 * 1_000_000_000 / u128::from(last_due.0);
        assert!((19_400..20_600).contains(&per_second), "{per_second} new orders a second");
    }
}
