//! A seeded stream of commands like a venue's: the load for benches and the lab.
//!
//! The opening fills the books with orders near a mid. The commands that follow are those of a [`Flow`], and
//! keep the number of open orders nearly constant.

use std::collections::HashMap;

use tickpath_book::{FastBooks, OrderBooks};
use tickpath_types::{
    CancelOrder, EnterOrder, Instrument, InstrumentId, MarketEvent, Nanos, OrderEvent, OrderEventKind,
    OrderRequest, Price, Qty, ReplaceOrder, Rng, Sequence, SessionId, Side, Symbol, TimeInForce,
    TradingState, UserRefNum,
};

use crate::{Command, CommandKind, Engine, EngineLimits, EventListener, Owner};

/// Tick size of every instrument: 0.01, in units of 10^-4.
const TICK: i64 = 100;
/// Maximum distance of a passive order from the mid in [`Flow::Mixed`], in ticks.
const PASSIVE_TICKS: u64 = 50;
/// Maximum distance of a passive order from the mid in [`Flow::Moves`], in ticks: 1,000 orders have about 750
/// prices.
const MOVES_TICKS: u64 = 800;
/// Crossing orders reach fewer than this many ticks beyond the best opposite price.
const CROSSING_TICKS: u64 = 4;
/// Maximum quantity of an order; the minimum is 1.
const MAX_QTY: u64 = 10;
/// Maximum quantity of a day order in [`Flow::Moves`], and that of an IOC order, which rarely removes a resting
/// order.
const MOVES_MAX_QTY: u64 = 100;
const IOC_MAX_QTY: u64 = 5;
/// Average number of an instrument's new orders between moves of its mid, each by one tick.
const COMMANDS_PER_MOVE: u64 = 2_000;
/// Percentage of commands that are crossing orders.
const CROSSING_PERCENT: u64 = 10;
/// In [`Flow::Ladder`], one passive order in two is at one of the nearest levels of its side: one level in
/// this many. So the levels that orders trade with are refilled.
const NEAR_SHARE: u64 = 10;

/// Composition of the commands after the opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// The mid moves slowly, and orders rest within 50 ticks of it. Of 100 commands, 10 cross the spread by a
    /// few ticks. The others are passive orders and cancels of uniformly chosen open orders, about 48 and 42.
    #[default]
    Mixed,
    /// The mid is fixed. Of 100 commands, 60 are passive orders, 30 cancels of uniformly chosen open orders,
    /// and 10 orders that trade whole, each with about three resting orders.
    Ladder {
        /// Number of price levels of an instrument, half of them on each side, from 2 to 3,000.
        level_count: u16,
    },
    /// The mid is fixed. Of 100 commands, 9 are day orders, 3 IOC orders, 6 cancels, and 82 replacements that
    /// move an order to another price. Orders rest within 800 ticks of the mid. About 6 commands trade: the
    /// IOC orders, and those day orders that cross the spread.
    ///
    /// Source: exchange-core, README, "Benchmark configuration".
    Moves,
}

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
    /// Composition of the commands after the opening.
    pub flow: Flow,
}

impl Default for WorkloadConfig {
    fn default() -> Self {
        WorkloadConfig {
            seed: 1,
            instrument_count: 8,
            session_count: 16,
            open_order_count: 100_000,
            command_count: 1_000_000,
            flow: Flow::Mixed,
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
    flow: Flow,
    /// Intended number of open orders.
    target: usize,
}

impl Generator {
    fn new(config: &WorkloadConfig) -> Generator {
        let instruments = instruments(config.instrument_count);
        // Each session needs a page for its directory, and one or two for its orders.
        let index_pages = (1_000 + config.open_order_count / 16).max(4 * u32::from(config.session_count));
        let limits = EngineLimits {
            max_open_orders: config.open_order_count + 1_000,
            max_open_orders_per_session: config.open_order_count + 1_000,
            max_sessions: config.session_count,
            max_index_pages: index_pages,
            max_index_pages_per_session: index_pages,
            ..EngineLimits::default()
        };
        Generator {
            rng: Rng::new(config.seed),
            engine: new_engine(&instruments, limits),
            open: KnownOrders::default(),
            mids: instruments.iter().map(|instrument| instrument.reference_price.0).collect(),
            last_user_ref: vec![0; usize::from(config.session_count)],
            sequence: Sequence(0),
            flow: config.flow,
            target: config.open_order_count as usize,
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
        let passive_ticks = match self.flow {
            Flow::Mixed => PASSIVE_TICKS,
            Flow::Ladder { level_count } => u64::from(level_count / 2),
            Flow::Moves => MOVES_TICKS,
        };
        while !self.is_full() {
            opening.push(self.passive(passive_ticks));
        }
        self.open.event_count = 0;
        let mut commands = Vec::with_capacity(config.command_count);
        while commands.len() < config.command_count {
            commands.push(match self.flow {
                Flow::Mixed => self.mixed(),
                Flow::Ladder { .. } => self.ladder(passive_ticks),
                Flow::Moves => self.moves(),
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

    /// True if the number of open orders is the intended one.
    fn is_full(&self) -> bool {
        self.open.list.len() >= self.target
    }

    fn mixed(&mut self) -> Command {
        match self.rng.below(100) < CROSSING_PERCENT {
            true => self.crossing(),
            false if !self.is_full() => self.passive(PASSIVE_TICKS),
            false => self.cancel(),
        }
    }

    fn ladder(&mut self, levels_of_side: u64) -> Command {
        match self.rng.below(100) {
            0..60 => {
                let is_near = self.rng.below(2) == 0;
                self.passive(if is_near { levels_of_side.div_ceil(NEAR_SHARE) } else { levels_of_side })
            }
            60..90 if !self.open.list.is_empty() => self.cancel(),
            _ => self.whole_trade(levels_of_side),
        }
    }

    /// An order that trades its whole quantity with several resting orders; a passive order if none rests.
    fn whole_trade(&mut self, levels_of_side: u64) -> Command {
        let (book, side) = self.choose_book();
        let price = Price(self.mids[book] + side.sign() * levels_of_side as i64 * TICK);
        // Larger orders bring the number of open orders back to the intended one, smaller ones let it grow.
        let orders_max = if self.is_full() { 8 } else { 4 };
        let wanted = Qty(1 + self.rng.below(orders_max * (1 + MAX_QTY) / 2));
        let instrument = self.instruments[book].id;
        match self.engine.books().available(instrument, side.opposite(), price, wanted) {
            Qty::ZERO => self.passive(levels_of_side),
            qty => {
                let session = self.choose_session();
                self.enter_order(session, book, side, qty, price, TimeInForce::Day)
            }
        }
    }

    fn moves(&mut self) -> Command {
        match self.rng.below(100) {
            // A crossing order removes about as many orders as it adds.
            0..9 if self.is_full() => self.at_best(MOVES_MAX_QTY, TimeInForce::Day),
            0..9 => self.passive(MOVES_TICKS),
            9..12 => self.at_best(IOC_MAX_QTY, TimeInForce::Ioc),
            12..18 if !self.open.list.is_empty() => self.cancel(),
            _ => self.move_order(),
        }
    }

    /// An order of up to `max_qty` at the best opposite price; a passive order if there is none.
    fn at_best(&mut self, max_qty: u64, time_in_force: TimeInForce) -> Command {
        let (book, side) = self.choose_book();
        match self.engine.books().best_price(self.instruments[book].id, side.opposite()) {
            None => self.passive(MOVES_TICKS),
            Some(price) => {
                let (session, qty) = (self.choose_session(), Qty(1 + self.rng.below(max_qty)));
                self.enter_order(session, book, side, qty, price, time_in_force)
            }
        }
    }

    /// Moves a uniformly chosen open order to another price; its open quantity stays.
    fn move_order(&mut self) -> Command {
        if self.open.list.is_empty() {
            return self.passive(MOVES_TICKS);
        }
        let (session, orig_user_ref) = self.choose_order();
        let handle = self.engine.find_order(session, orig_user_ref);
        let order = handle.and_then(|handle| self.engine.books().order(handle)).expect("the order is open");
        let book = usize::from(order.instrument.0 - 1);
        let price = self.passive_price(book, order.side, MOVES_TICKS);
        let (user_ref, qty) = (self.next_user_ref(session), Qty(order.data.executed + order.qty.0));
        let request = ReplaceOrder::limit(orig_user_ref, user_ref, qty, price);
        self.apply(session, CommandKind::Order(OrderRequest::Replace(request)))
    }

    /// A uniformly chosen book and side. In [`Flow::Mixed`] the book's mid moves now and then.
    fn choose_book(&mut self) -> (usize, Side) {
        let book = self.rng.below(self.instruments.len() as u64) as usize;
        if self.flow == Flow::Mixed && self.rng.below(COMMANDS_PER_MOVE) == 0 {
            let Instrument { collar_low, collar_high, .. } = self.instruments[book];
            let margin = 2 * PASSIVE_TICKS as i64 * TICK;
            let step = if self.rng.below(2) == 0 { TICK } else { -TICK };
            self.mids[book] = (self.mids[book] + step).clamp(collar_low.0 + margin, collar_high.0 - margin);
        }
        (book, Side::BOTH[self.rng.below(2) as usize])
    }

    fn choose_session(&mut self) -> SessionId {
        SessionId(self.rng.below(self.last_user_ref.len() as u64) as u16)
    }

    fn choose_order(&mut self) -> (SessionId, UserRefNum) {
        self.open.list[self.rng.below(self.open.list.len() as u64) as usize]
    }

    /// The price of a bid below the mid, or of an ask above it, that does not trade.
    fn passive_price(&mut self, book: usize, side: Side, ticks_max: u64) -> Price {
        let distance = (1 + self.rng.below(ticks_max)) as i64 * TICK;
        let target_price = Price(self.mids[book] - side.sign() * distance);
        let other = self.engine.books().best_price(self.instruments[book].id, side.opposite());
        match other {
            Some(other) if side.crosses(target_price, other) => Price(other.0 - side.sign() * TICK),
            _ => target_price,
        }
    }

    /// An order up to `ticks_max` from the mid that does not trade.
    fn passive(&mut self, ticks_max: u64) -> Command {
        let (book, side) = self.choose_book();
        let price = self.passive_price(book, side, ticks_max);
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
        let (session, user_ref) = self.choose_order();
        let request = OrderRequest::Cancel(CancelOrder { user_ref, qty: Qty::ZERO });
        self.apply(session, CommandKind::Order(request))
    }

    fn enter(&mut self, book: usize, side: Side, price: Price) -> Command {
        let max_qty = if self.flow == Flow::Moves { MOVES_MAX_QTY } else { MAX_QTY };
        let (session, qty) = (self.choose_session(), Qty(1 + self.rng.below(max_qty)));
        self.enter_order(session, book, side, qty, price, TimeInForce::Day)
    }

    fn enter_order(
        &mut self,
        session: SessionId,
        book: usize,
        side: Side,
        qty: Qty,
        price: Price,
        time_in_force: TimeInForce,
    ) -> Command {
        let (user_ref, instrument) = (self.next_user_ref(session), self.instruments[book].id);
        let order = EnterOrder::limit(user_ref, instrument, side, qty, price);
        let order = EnterOrder { time_in_force, ..order };
        self.apply(session, CommandKind::Order(OrderRequest::Enter(order)))
    }

    fn next_user_ref(&mut self, session: SessionId) -> UserRefNum {
        let last = &mut self.last_user_ref[usize::from(session.0)];
        *last += 1;
        UserRefNum(*last)
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
            OrderEventKind::Replaced { orig_user_ref, .. } => {
                let entry = self.places.remove(&(event.session, orig_user_ref));
                let (place, left) = entry.expect("events are about open orders");
                self.list[place] = key;
                self.places.insert(key, (place, left));
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

    /// Generates 20,000 commands of a flow, and checks them with the reference model. Returns the workload and
    /// the number of commands that traded.
    fn checked(flow: Flow, session_count: u16) -> (Workload, u32) {
        let config = WorkloadConfig {
            instrument_count: 1,
            session_count,
            open_order_count: 1_000,
            command_count: 20_000,
            flow,
            ..Default::default()
        };
        let workload = Workload::generate(&config);
        let mut engine: Engine<ReferenceBooks<Owner>> = workload.opened();
        let (mut events, mut trading) = (Vec::new(), 0);
        for command in &workload.commands {
            let before = engine.counters().executions;
            engine.apply(command, &mut events);
            trading += u32::from(engine.counters().executions > before);
            let open = engine.books().order_count();
            assert!((950..=1_050).contains(&open), "{open} open orders");
        }
        assert_eq!(engine.state_hash(), workload.state_hash);
        assert_eq!((engine.counters().rejected, engine.counters().ignored), (0, 0));
        (workload, trading)
    }

    fn share(workload: &Workload, is_counted: impl Fn(&OrderRequest) -> bool) -> usize {
        let is_counted = |command: &&Command| match &command.kind {
            CommandKind::Order(request) => is_counted(request),
            _ => false,
        };
        100 * workload.commands.iter().filter(is_counted).count() / workload.commands.len()
    }

    #[test]
    fn a_ladder_keeps_its_levels_and_its_trades() {
        let (workload, trading) = checked(Flow::Ladder { level_count: 50 }, 16);
        assert!((1_900..=2_100).contains(&trading), "{trading} of 20,000 commands trade");
        let cancels = share(&workload, |request| matches!(request, OrderRequest::Cancel(_)));
        assert!((29..=31).contains(&cancels), "{cancels}% cancels");
        let (engine, _) = workload.published::<FastBooks<Owner>>();
        let levels = engine.books().level_count();
        assert!((45..=50).contains(&levels), "{levels} levels");
    }

    #[test]
    fn moves_have_the_published_shares() {
        let (workload, trading) = checked(Flow::Moves, 1_000);
        assert!((1_000..=1_300).contains(&trading), "{trading} of 20,000 commands trade");
        let moves = share(&workload, |request| matches!(request, OrderRequest::Replace(_)));
        assert!((81..=83).contains(&moves), "{moves}% moves");
        let (engine, _) = workload.published::<FastBooks<Owner>>();
        let levels = engine.books().level_count();
        assert!((700..=800).contains(&levels), "{levels} prices");
    }
}
