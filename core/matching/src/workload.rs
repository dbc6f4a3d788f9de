//! A seeded stream of commands like a venue's: the load for benches and the lab.
//!
//! The opening fills the books with orders within 50 ticks of a slowly moving mid. Of 100 later commands, 10
//! are orders that cross the spread and trade with a few resting ones. The others are passive orders and
//! cancels of uniformly chosen open orders, in a proportion that keeps the number of open orders constant: by
//! default about 48 orders and 42 cancels.

use std::collections::HashMap;

use tickpath_book::{FastBooks, OrderBooks};
use tickpath_types::{
    CancelOrder, EnterOrder, Instrument, InstrumentId, MarketEvent, Nanos, OrderEvent, OrderEventKind,
    OrderRequest, Price, Qty, Rng, Sequence, SessionId, Side, Symbol, TradingState, UserRefNum,
};

use crate::{Command, CommandKind, Engine, EngineLimits, EventListener, Owner};

/// Tick size of every instrument: 0.01, in units of 10^-4.
const TICK: i64 = 100;
/// Maximum distance of a passive order from the mid, in ticks.
const PASSIVE_TICKS: u64 = 50;
/// Crossing orders reach fewer than this many ticks beyond the best opposite price.
const CROSSING_TICKS: u64 = 4;
/// Maximum quantity of an order; the minimum is 1.
const MAX_QTY: u64 = 10;
/// Average number of an instrument's new orders between moves of its mid, each by one tick.
const COMMANDS_PER_MOVE: u64 = 2_000;
/// Percentage of commands that are crossing orders.
const CROSSING_PERCENT: u64 = 10;

/// Parameters of the generated load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadConfig {
    /// Seed of the random numbers: equal configurations generate equal commands.
    pub seed: u64,
    /// Number of instruments, at least 1. Each has one book.
    pub instrument_count: u16,
    /// Number of sessions that enter orders, at least 1.
    pub session_count: u16,
    /// Number of open orders after the opening.
    pub open_order_count: u32,
    /// Number of commands after the opening.
    pub command_count: usize,
}

impl Default for WorkloadConfig {
    fn default() -> Self {
        WorkloadConfig {
            seed: 1,
            instrument_count: 8,
            session_count: 16,
            open_order_count: 100_000,
            command_count: 1_000_000,
        }
    }
}

/// A generated stream of commands and its expected result.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The traded instruments.
    pub instruments: Vec<Instrument>,
    /// Engine limits that suffice for the commands.
    pub limits: EngineLimits,
    /// Commands that open the instruments and fill the books.
    pub opening: Vec<Command>,
    /// Commands of the load, which follow `opening`.
    pub commands: Vec<Command>,
    /// Number of order events and market events that `commands` cause.
    pub event_count: u64,
    /// [`Engine::state_hash`] after the last command.
    pub state_hash: u64,
}

impl Workload {
    /// Generates the commands and applies each to an engine, since a cancel must name an open order.
    #[must_use]
    pub fn generate(config: &WorkloadConfig) -> Workload {
        Generator::new(config).run(config)
    }

    /// An engine with filled books, ready for the load.
    ///
    /// # Panics
    /// Never: this module defines the instruments.
    #[must_use]
    pub fn opened<B: OrderBooks<Owner>>(&self) -> Engine<B> {
        let mut engine = new_engine(&self.instruments, self.limits);
        for command in &self.opening {
            engine.apply(command, &mut KnownOrders::default());
        }
        engine
    }

    /// An engine after the load, and all market events that it published from the opening on.
    #[must_use]
    pub fn published<B: OrderBooks<Owner>>(&self) -> (Engine<B>, Vec<MarketEvent>) {
        let mut engine = new_engine(&self.instruments, self.limits);
        let mut events = Vec::new();
        for command in self.opening.iter().chain(&self.commands) {
            engine.apply(command, &mut events);
        }
        (engine, events)
    }
}

/// The instruments of a workload: reference price 100.00, collar 80.00 to 120.00.
fn instruments(count: u16) -> Vec<Instrument> {
    let instrument = |id| {
        let symbol = Symbol::new(&format!("SYM{id}")).expect("at most 8 characters");
        let in_cents = Instrument::in_cents(InstrumentId(id), symbol, Price(1_000_000));
        Instrument { collar_low: Price(800_000), collar_high: Price(1_200_000), ..in_cents }
    };
    (1..=count).map(instrument).collect()
}

fn new_engine<B: OrderBooks<Owner>>(instruments: &[Instrument], limits: EngineLimits) -> Engine<B> {
    Engine::new(instruments, limits).expect("this module's instruments are sound")
}

struct Generator {
    rng: Rng,
    engine: Engine<FastBooks<Owner>>,
    instruments: Vec<Instrument>,
    open: KnownOrders,
    mids: Vec<i64>,
    last_user_ref: Vec<u32>,
    sequence: Sequence,
}

impl Generator {
    fn new(config: &WorkloadConfig) -> Generator {
        let instruments = instruments(config.instrument_count);
        let limits = EngineLimits {
            max_open_orders: config.open_order_count + 1_000,
            max_open_orders_per_session: config.open_order_count + 1_000,
            max_sessions: config.session_count,
            max_index_pages: 1_000 + config.open_order_count / 16,
            max_index_pages_per_session: 1_000 + config.open_order_count / 16,
            ..EngineLimits::default()
        };
        Generator {
            rng: Rng::new(config.seed),
            engine: new_engine(&instruments, limits),
            open: KnownOrders::default(),
            mids: instruments.iter().map(|instrument| instrument.reference_price.0).collect(),
            last_user_ref: vec![0; usize::from(config.session_count)],
            sequence: Sequence(0),
            instruments,
        }
    }

    fn run(mut self, config: &WorkloadConfig) -> Workload {
        let mut opening = Vec::new();
        for instrument in self.instruments.clone() {
            let state = TradingState::Trading;
            let kind = CommandKind::OpenInstrument { instrument: instrument.id, state };
            opening.push(self.apply(SessionId(0), kind));
        }
        let target = config.open_order_count as usize;
        while self.open.list.len() < target {
            opening.push(self.passive());
        }
        self.open.event_count = 0;
        let mut commands = Vec::with_capacity(config.command_count);
        while commands.len() < config.command_count {
            let crosses = self.rng.below(100) < CROSSING_PERCENT;
            commands.push(match crosses {
                true => self.crossing(),
                false if self.open.list.len() < target => self.passive(),
                false => self.cancel(),
            });
        }
        Workload {
            limits: *self.engine.limits(),
            state_hash: self.engine.state_hash(),
            event_count: self.open.event_count,
            instruments: self.instruments,
            opening,
            commands,
        }
    }

    fn choose_book(&mut self) -> (usize, Side) {
        let book = self.rng.below(self.instruments.len() as u64) as usize;
        if self.rng.below(COMMANDS_PER_MOVE) == 0 {
            let Instrument { collar_low, collar_high, .. } = self.instruments[book];
            let margin = 2 * PASSIVE_TICKS as i64 * TICK;
            let step = if self.rng.below(2) == 0 { TICK } else { -TICK };
            self.mids[book] = (self.mids[book] + step).clamp(collar_low.0 + margin, collar_high.0 - margin);
        }
        (book, Side::BOTH[self.rng.below(2) as usize])
    }

    /// A bid below the mid, or an ask above it, that does not trade.
    fn passive(&mut self) -> Command {
        let (book, side) = self.choose_book();
        let distance = (1 + self.rng.below(PASSIVE_TICKS)) as i64 * TICK;
        let target_price = Price(self.mids[book] - side.sign() * distance);
        let other = self.engine.books().best_price(self.instruments[book].id, side.opposite());
        let price = match other {
            Some(other) if side.crosses(target_price, other) => Price(other.0 - side.sign() * TICK),
            _ => target_price,
        };
        self.enter(book, side, price)
    }

    /// An order with a limit up to a few ticks beyond the best opposite price; its remainder rests.
    fn crossing(&mut self) -> Command {
        let (book, side) = self.choose_book();
        let best = self.engine.books().best_price(self.instruments[book].id, side.opposite());
        let best = best.unwrap_or(Price(self.mids[book]));
        let reach = self.rng.below(CROSSING_TICKS) as i64 * TICK;
        self.enter(book, side, Price(best.0 + side.sign() * reach))
    }

    fn cancel(&mut self) -> Command {
        let chosen = self.rng.below(self.open.list.len() as u64) as usize;
        let (session, user_ref) = self.open.list[chosen];
        let request = OrderRequest::Cancel(CancelOrder { user_ref, qty: Qty::ZERO });
        self.apply(session, CommandKind::Order(request))
    }

    fn enter(&mut self, book: usize, side: Side, price: Price) -> Command {
        let session = self.rng.below(self.last_user_ref.len() as u64) as usize;
        self.last_user_ref[session] += 1;
        let (user_ref, instrument) = (UserRefNum(self.last_user_ref[session]), self.instruments[book].id);
        let order = EnterOrder::limit(user_ref, instrument, side, Qty(1 + self.rng.below(MAX_QTY)), price);
        self.apply(SessionId(session as u16), CommandKind::Order(OrderRequest::Enter(order)))
    }

    fn apply(&mut self, session: SessionId, kind: CommandKind) -> Command {
        self.sequence = self.sequence.next();
        let ts = Nanos(self.sequence.0 * 40);
        let command = Command { sequence: self.sequence, session, ts, kind };
        self.engine.apply(&command, &mut self.open);
        command
    }
}

/// The open orders according to the order events, in a list from which one can be chosen uniformly.
#[derive(Debug, Default)]
struct KnownOrders {
    list: Vec<(SessionId, UserRefNum)>,
    /// Position in `list`, and open quantity, of each order.
    places: HashMap<(SessionId, UserRefNum), (usize, u64)>,
    event_count: u64,
}

impl KnownOrders {
    fn take(&mut self, key: (SessionId, UserRefNum), qty: Qty) {
        let (place, left) = self.places.get_mut(&key).expect("events are about open orders");
        *left -= qty.0;
        if *left == 0 {
            let place = *place;
            self.places.remove(&key);
            self.list.swap_remove(place);
            if let Some(moved) = self.list.get(place) {
                self.places.entry(*moved).and_modify(|entry| entry.0 = place);
            }
        }
    }
}

impl EventListener for KnownOrders {
    fn on_order_event(&mut self, event: &OrderEvent) {
        self.event_count += 1;
        let key = (event.session, event.kind.user_ref());
        match event.kind {
            OrderEventKind::Accepted { order, .. } => {
                self.places.insert(key, (self.list.len(), order.qty.0));
                self.list.push(key);
            }
            OrderEventKind::Executed { qty, .. } => self.take(key, qty),
            OrderEventKind::Canceled { decrement, .. } => self.take(key, decrement),
            _ => {}
        }
    }

    fn on_market_event(&mut self, _event: &MarketEvent) {
        self.event_count += 1;
    }
}

#[cfg(test)]
mod tests {
    use tickpath_reference::ReferenceBooks;

    use super::*;

    #[test]
    fn a_workload_is_reproducible_and_keeps_its_shape() {
        let config = WorkloadConfig { open_order_count: 400, command_count: 5_000, ..Default::default() };
        let workload = Workload::generate(&config);
        assert_eq!(workload.commands, Workload::generate(&config).commands);
        let other = Workload::generate(&WorkloadConfig { seed: 2, ..config });
        assert_ne!(workload.state_hash, other.state_hash);

        let mut engine: Engine<ReferenceBooks<Owner>> = workload.opened();
        assert_eq!(engine.books().order_count(), 400);
        let mut open = KnownOrders::default();
        for (session, user_ref) in (0..16).flat_map(|id| {
            let session = SessionId(id);
            (1..=engine.last_user_ref(session).0).map(move |user_ref| (session, UserRefNum(user_ref)))
        }) {
            if let Some(order) = engine.find_order(session, user_ref).and_then(|at| engine.books().order(at))
            {
                open.places.insert((session, user_ref), (open.list.len(), order.qty.0));
                open.list.push((session, user_ref));
            }
        }
        for command in &workload.commands {
            engine.apply(command, &mut open);
            assert!((350..=450).contains(&engine.books().order_count()));
        }
        assert_eq!((engine.state_hash(), open.event_count), (workload.state_hash, workload.event_count));
        let (again, events) = workload.published::<ReferenceBooks<Owner>>();
        assert_eq!(again.state_hash(), workload.state_hash);
        assert!(events.iter().zip(1..).all(|(event, number)| event.sequence == Sequence(number)));
        assert_eq!((engine.counters().rejected, engine.counters().ignored), (0, 0));
        let crossing = engine.counters().executions;
        assert!((500..1_500).contains(&crossing), "{crossing}");
    }
}
