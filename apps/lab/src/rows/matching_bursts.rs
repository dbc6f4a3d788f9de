//! The matching engine alone with much work at once: waiting commands, an order that trades with many others,
//! and a cancel of many orders.

use tickpath_book::{FastBooks, OrderBooks};
use tickpath_matching::workload::WorkloadConfig;
use tickpath_matching::{Command, CommandKind, Engine, EngineLimits, Owner};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{
    CancelOrder, EnterOrder, Instrument, InstrumentId, MassCancel, OrderRequest, Price, Qty, Rng, Sequence,
    SessionId, Side, Symbol, TradingState, UserRefNum,
};

use super::matching::{Rings, SLICE, check};
use super::matching_series::{Case, open_orders};
use super::prelude::*;

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_one_core(
        &[
            row("matching_burst_warm", "ns").note(
                "a command of 10 k that wait at once, of the matching row's load, every event pushed to a ring \
                 with room for all; p50 of the bursts; caches as the burst before left them",
            ),
            row("matching_burst", "ns")
                .note("the same after a walk through 64 MiB, which evicts commands, books and rings")
                .limit("matching_burst_warm"),
        ],
        open_burst,
    ),
    on_one_core(
        &[
            row("matching_single_fills", "ns").note(
                "a fill by 1,000 orders that each trade with one resting order, 100 levels of 10 orders, every \
                 event pushed to a ring; p50",
            ),
            row("matching_sweep", "ns")
                .note("a fill by one order that trades with all 1,000 resting orders of the same book; p50")
                .limit("matching_single_fills"),
        ],
        open_sweep,
    ),
    on_one_core(
        &[
            row("matching_single_cancels", "ns").note(
                "an order of one session's 10,000, cancelled by a command each, among 100 k open orders in 8 \
                 books, every event pushed to a ring; p50",
            ),
            row("matching_mass_cancel", "ns")
                .note("the same orders, cancelled by one command; p50")
                .limit("matching_single_cancels"),
        ],
        open_mass_cancel,
    ),
];

/// Number of commands of a burst.
const BURST: usize = 10_000;
/// Number of commands in a full round of bursts.
const COMMANDS: usize = 1_000_000;
/// Slots of each ring: all events of a burst and of a mass cancel.
const BURST_RING: usize = 1 << 15;
/// Size of the memory whose walk evicts the caches, in bytes.
const WALK_LEN: usize = 64 << 20;
/// Bytes of a cache line.
const LINE: usize = 64;

fn open_burst(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let command_count = lab.context.effort.count(COMMANDS).max(2 * SLICE);
    let config = WorkloadConfig { command_count, ..WorkloadConfig::default() };
    let Case { workload, opened } = Case::prepare(&config)?;
    let burst_len = BURST.min(command_count / 2);
    let mut walked = vec![0_u8; WALK_LEN];
    let mut rounds = 0;
    each_round(lab, move |context| {
        rounds += 1;
        let (mut engine, mut rings) = (opened.clone(), Rings::new(BURST_RING));
        let mut waiting: Vec<Command> = Vec::with_capacity(burst_len);
        let mut ticks = [Vec::new(), Vec::new()];
        for (number, burst) in workload.commands.chunks(burst_len).enumerate() {
            waiting.clear();
            waiting.extend_from_slice(burst);
            let is_cold = (number + rounds) % 2 == 0;
            if is_cold {
                walked.iter_mut().step_by(LINE).for_each(|byte| *byte = black_box(byte.wrapping_add(1)));
            }
            let spent = context.timed(|| {
                engine.apply_batch(black_box(&waiting), &mut rings);
                Ok(())
            })?;
            // The last burst may be shorter and is then not counted.
            if burst.len() == burst_len {
                ticks[usize::from(is_cold)].push(spent);
            }
            rings.drain();
        }
        check(&workload, &engine, &rings)?;
        Ok(ticks.map(|mut ticks| {
            let total = context.quantile_ns(&mut ticks, 0.5);
            let note = format!("the last command was done after {:.0} us", total / 1_000.0);
            Sample::with_note(total / burst_len as f64, note)
        }))
    })
}

/// Number of resting orders that a sweep trades with.
const SWEPT: usize = 1_000;
/// Number of orders of each level.
const ORDERS_OF_LEVEL: usize = 10;
/// Number of sweeps in a full round.
const SWEEPS: usize = 400;
/// Slots of each ring: all events of a sweep, or of as many single fills.
const SWEEP_RING: usize = 1 << 12;
/// Number of sessions that own the resting orders; the one after them sends the incoming orders.
const OWNERS: u16 = 10;

fn open_sweep(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let sweeps = lab.context.effort.count(SWEEPS).max(2);
    let mut script = Script::new(1, OWNERS + 1);
    let opened: Engine<FastBooks<Owner>> = script.engine()?;
    // Every step refills the book, and empties it again.
    let steps: Vec<[Vec<Command>; 2]> = (0..sweeps).map(|step| sweep_step(&mut script, step)).collect();
    let mut expected: Engine<ReferenceBooks<Owner>> = script.engine()?;
    steps.iter().flatten().flatten().for_each(|command| expected.apply(command, &mut Vec::new()));
    let expected = expected.state_hash();
    each_round(lab, move |context| {
        let (mut engine, mut rings) = (opened.clone(), Rings::new(SWEEP_RING));
        let mut ticks = [Vec::new(), Vec::new()];
        for (step, [refill, incoming]) in steps.iter().enumerate() {
            engine.apply_batch(refill, &mut rings);
            rings.drain();
            let before = engine.counters().executions;
            ticks[step % 2].push(context.timed(|| {
                engine.apply_batch(black_box(incoming), &mut rings);
                Ok(())
            })?);
            rings.drain();
            ensure!(engine.counters().executions == before + SWEPT as u64, "a number of fills is wrong");
            ensure!(engine.books().order_count() == 0, "an order is left after a sweep");
        }
        ensure!(!rings.has_lost_events(), "a ring was full");
        ensure!(engine.state_hash() == expected, "the engine's state differs from the reference model's");
        Ok(ticks.map(|mut ticks| context.quantile_ns(&mut ticks, 0.5) / SWEPT as f64))
    })
}

/// Orders that fill an empty book, and then incoming orders that trade with all of them: one for each resting
/// order in an even step, one for all in an odd step.
fn sweep_step(script: &mut Script, step: usize) -> [Vec<Command>; 2] {
    let incoming_session = SessionId(OWNERS);
    let sides = [Side::Sell, Side::Buy];
    // Both kinds of steps empty both sides of the book alike.
    let side = sides[step / 2 % 2];
    let mut refill = Vec::with_capacity(SWEPT);
    let mut singles = Vec::with_capacity(SWEPT);
    let mut total = 0;
    let mut price = script.mid();
    for number in 0..SWEPT {
        if number % ORDERS_OF_LEVEL == 0 {
            price = Price(price.0 - side.sign() * TICK);
        }
        let qty = 1 + script.rng.below(10);
        total += qty;
        let owner = SessionId((number % usize::from(OWNERS)) as u16);
        refill.push(script.enter(owner, InstrumentId(1), side, Qty(qty), price));
        singles.push((Qty(qty), price));
    }
    let mut enter =
        |(qty, price)| script.enter(incoming_session, InstrumentId(1), side.opposite(), qty, price);
    let incoming = match step % 2 {
        0 => singles.into_iter().map(enter).collect(),
        _ => vec![enter((Qty(total), price))],
    };
    [refill, incoming]
}

/// Number of open orders before a mass cancel, in a full round.
const OPEN_ORDERS: usize = 100_000;
/// Number of sessions that own equally many of them.
const SESSIONS: u16 = 10;
/// Number of books.
const BOOKS: u16 = 8;
/// Number of mass cancels in a full round.
const MASS_CANCELS: usize = 50;

fn open_mass_cancel(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let open_orders = open_orders(&lab.context, OPEN_ORDERS);
    let repeats = lab.context.effort.count(MASS_CANCELS);
    let own_orders = open_orders / usize::from(SESSIONS);
    let mut script = Script::new(BOOKS, SESSIONS);
    let mut opened: Engine<FastBooks<Owner>> = script.engine()?;
    let mut reference: Engine<ReferenceBooks<Owner>> = script.engine()?;
    for number in 0..open_orders {
        let command = script.passive(SessionId((number % usize::from(SESSIONS)) as u16));
        opened.apply(&command, &mut Vec::new());
        reference.apply(&command, &mut Vec::new());
    }
    ensure!(opened.state_hash() == reference.state_hash(), "the engine differs from the reference model");
    let work = (0..SESSIONS).map(|session| {
        let session = SessionId(session);
        let cancels: Vec<Command> =
            (1..=own_orders as u32).map(|user_ref| script.cancel(session, UserRefNum(user_ref))).collect();
        let mass_cancel = vec![script.mass_cancel(session)];
        let mut after = reference.clone();
        after.apply(&mass_cancel[0], &mut Vec::new());
        ([cancels, mass_cancel], after.books().state_hash())
    });
    let work: Vec<([Vec<Command>; 2], u64)> = work.collect();
    let mut turn = 0;
    each_round(lab, move |context| {
        let (mut rings, mut ticks) = (Rings::new(BURST_RING), [Vec::new(), Vec::new()]);
        for _ in 0..repeats {
            let (commands, expected) = &work[turn % work.len()];
            // Each kind is first as often as second.
            for step in 0..2 {
                let kind = (turn + step) % 2;
                let mut engine = opened.clone();
                ticks[kind].push(context.timed(|| {
                    engine.apply_batch(black_box(&commands[kind]), &mut rings);
                    Ok(())
                })?);
                rings.drain();
                let left = engine.books().order_count() as usize;
                ensure!(left == open_orders - own_orders, "{left} orders are left");
                ensure!(!rings.has_lost_events(), "a ring was full");
                ensure!(
                    engine.books().state_hash() == *expected,
                    "the books differ from the reference model's"
                );
            }
            turn += 1;
        }
        Ok(ticks.map(|mut ticks| context.quantile_ns(&mut ticks, 0.5) / own_orders as f64))
    })
}

/// Tick size of the instruments: 0.01, in units of 10^-4.
const TICK: i64 = 100;
/// Maximum distance of a passive order from the mid, in ticks.
const PASSIVE_TICKS: u64 = 50;

/// Generates commands of a seeded script, whose instruments have one mid.
struct Script {
    rng: Rng,
    instruments: Vec<Instrument>,
    last_user_ref: Vec<u32>,
    sequence: Sequence,
}

impl Script {
    fn new(instrument_count: u16, session_count: u16) -> Script {
        let instrument = |id| {
            let symbol = Symbol::new(&format!("SYM{id}")).expect("at most 8 characters");
            Instrument::in_cents(InstrumentId(id), symbol, Price(1_000_000))
        };
        Script {
            rng: Rng::new(1),
            instruments: (1..=instrument_count).map(instrument).collect(),
            last_user_ref: vec![0; usize::from(session_count)],
            sequence: Sequence(0),
        }
    }

    /// An engine with empty books in which all instruments trade.
    fn engine<B: OrderBooks<Owner>>(&self) -> anyhow::Result<Engine<B>> {
        let mut engine = Engine::new(&self.instruments, EngineLimits::default())?;
        for instrument in &self.instruments {
            let state = TradingState::Trading;
            let kind = CommandKind::OpenInstrument { instrument: instrument.id, state };
            let command = Command { sequence: Sequence(0), session: SessionId(0), ts: Nanos(0), kind };
            engine.apply(&command, &mut Vec::new());
        }
        Ok(engine)
    }

    fn mid(&self) -> Price {
        self.instruments[0].reference_price
    }

    fn enter(
        &mut self,
        session: SessionId,
        instrument: InstrumentId,
        side: Side,
        qty: Qty,
        price: Price,
    ) -> Command {
        let user_ref = self.next_user_ref(session);
        self.request(session, OrderRequest::Enter(EnterOrder::limit(user_ref, instrument, side, qty, price)))
    }

    /// An order near the mid that does not trade.
    fn passive(&mut self, session: SessionId) -> Command {
        let instrument = InstrumentId(1 + self.rng.below(self.instruments.len() as u64) as u16);
        let side = Side::BOTH[self.rng.below(2) as usize];
        let distance = (1 + self.rng.below(PASSIVE_TICKS)) as i64 * TICK;
        let (qty, price) = (Qty(1 + self.rng.below(10)), Price(self.mid().0 - side.sign() * distance));
        self.enter(session, instrument, side, qty, price)
    }

    fn cancel(&mut self, session: SessionId, user_ref: UserRefNum) -> Command {
        self.request(session, OrderRequest::Cancel(CancelOrder { user_ref, qty: Qty::ZERO }))
    }

    /// Cancels all orders of a session.
    fn mass_cancel(&mut self, session: SessionId) -> Command {
        let user_ref = self.next_user_ref(session);
        let instrument = InstrumentId(0);
        self.request(
            session,
            OrderRequest::MassCancel(MassCancel { user_ref, instrument, side: None, firm: *b"    " }),
        )
    }

    fn next_user_ref(&mut self, session: SessionId) -> UserRefNum {
        let last = &mut self.last_user_ref[usize::from(session.0)];
        *last += 1;
        UserRefNum(*last)
    }

    fn request(&mut self, session: SessionId, request: OrderRequest) -> Command {
        self.sequence = self.sequence.next();
        let ts = Nanos(self.sequence.0 * 40);
        Command { sequence: self.sequence, session, ts, kind: CommandKind::Order(request) }
    }
}
