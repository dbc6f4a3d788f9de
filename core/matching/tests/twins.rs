//! Engines on fast and on plain books on the same random commands: the same events, the same hash, and
//! an auditor who checks every event.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "common/auditor.rs"]
mod auditor;
mod common;

use auditor::Auditor;
use common::{Log, apply, instruments, numbered, order};
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_book::{FastBooks, PlainBooks};
use tickpath_matching::workload::{Workload, WorkloadConfig};
use tickpath_matching::{Command, CommandKind, Engine, EngineLimits, Owner};
use tickpath_types::*;

type Fast = Engine<FastBooks<Owner>>;
type Plain = Engine<PlainBooks<Owner>>;

const SESSIONS: u32 = 4;
const INSTRUMENTS: u16 = 3;

/// Commands as hostile and as muddled clients would send them, at few prices so that they meet.
struct Nasty {
    random: Xoshiro256PlusPlus,
    sequence: u64,
    last_user_ref: [u32; SESSIONS as usize + 1],
}

impl Nasty {
    fn new(seed: u64) -> Nasty {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Nasty { random, sequence: 0, last_user_ref: [0; SESSIONS as usize + 1] }
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.random.next_u32() % bound
    }

    fn one_in(&mut self, count: u32) -> bool {
        self.below(count) == 0
    }

    fn next(&mut self) -> Command {
        // One more than there are sessions: one is not authorised.
        let session = self.below(SESSIONS + 1) as u16;
        let kind = match self.below(1_000) {
            0..500 => CommandKind::Order(OrderRequest::Enter(self.enter(session))),
            500..700 => CommandKind::Order(OrderRequest::Cancel(self.cancel(session))),
            700..900 => CommandKind::Order(OrderRequest::Replace(self.replace(session))),
            900..960 => CommandKind::Order(OrderRequest::Modify(self.modify(session))),
            960..970 => CommandKind::Refuse {
                user_ref: self.new_number(session),
                reason: RejectReason::TimeInForceNotOffered,
                client_order_id: ClientOrderId::default(),
            },
            970..973 => CommandKind::CancelAll { reason: CancelReason::Supervisory },
            973..975 => CommandKind::System(SystemEventCode::StartOfMarketHours),
            975..995 => {
                CommandKind::SetTradingState { instrument: self.instrument(), state: TradingState::Trading }
            }
            995..998 => {
                CommandKind::SetTradingState { instrument: self.instrument(), state: TradingState::Halted }
            }
            _ => CommandKind::OpenInstrument { instrument: self.instrument(), state: TradingState::Trading },
        };
        numbered(&mut self.sequence, session, kind)
    }

    fn instrument(&mut self) -> InstrumentId {
        InstrumentId(
            if self.one_in(60) { self.below(20) } else { 1 + self.below(u32::from(INSTRUMENTS)) } as u16
        )
    }

    /// Mostly the next, sometimes one used before, sometimes one far off.
    fn new_number(&mut self, session: u16) -> UserRefNum {
        let last = self.last_user_ref[usize::from(session)];
        let number = match self.below(100) {
            0..4 => last.saturating_sub(self.below(5)),
            4..6 => last.saturating_add(self.below(3_000)),
            6 if self.one_in(20) => last.saturating_add(self.below(50_000_000)),
            _ => last.saturating_add(1),
        };
        self.last_user_ref[usize::from(session)] = number.max(last);
        UserRefNum(number)
    }

    fn old_number(&mut self, session: u16) -> UserRefNum {
        UserRefNum(self.last_user_ref[usize::from(session)].saturating_sub(self.below(25)))
    }

    fn price(&mut self) -> Price {
        match self.below(100) {
            0 => Price::MARKET,
            1 => Price(i64::from(self.below(200_000)) - 20_000),
            2 => Price(i64::MIN),
            _ => Price(99_500 + i64::from(self.below(11)) * 100),
        }
    }

    fn qty(&mut self) -> Qty {
        Qty(match self.below(100) {
            0 => 0,
            1 => u64::MAX,
            2 => 10_001,
            3..30 => u64::from(self.below(100)),
            _ => u64::from(1 + self.below(10)) * 10,
        })
    }

    fn enter(&mut self, session: u16) -> EnterOrder {
        let is_ioc = self.one_in(4);
        let qty = self.qty();
        EnterOrder {
            instrument: self.instrument(),
            qty,
            price: self.price(),
            time_in_force: if is_ioc { TimeInForce::Ioc } else { TimeInForce::Day },
            post_only: self.one_in(8),
            min_qty: self.min_qty(is_ioc, qty),
            ..order(self.new_number(session).0, Side::BOTH[self.below(2) as usize], 0, 0)
        }
    }

    /// None, some, all or too much; now and then where it has no place.
    fn min_qty(&mut self, is_ioc: bool, qty: Qty) -> Qty {
        match self.below(if is_ioc { 4 } else { 60 }) {
            0 => qty,
            1 => Qty(u64::from(self.below(60))),
            _ => Qty::ZERO,
        }
    }

    fn replace(&mut self, session: u16) -> ReplaceOrder {
        let is_ioc = self.one_in(6);
        let qty = self.qty();
        ReplaceOrder {
            orig_user_ref: self.old_number(session),
            user_ref: self.new_number(session),
            qty,
            price: self.price(),
            time_in_force: if is_ioc { TimeInForce::Ioc } else { TimeInForce::Day },
            post_only: self.one_in(8),
            min_qty: self.min_qty(is_ioc, qty),
            attributes: OrderAttributes::default(),
            client_order_id: ClientOrderId::default(),
        }
    }

    fn cancel(&mut self, session: u16) -> CancelOrder {
        let qty = if self.one_in(2) { Qty::ZERO } else { self.qty() };
        CancelOrder { user_ref: self.old_number(session), qty }
    }

    fn modify(&mut self, session: u16) -> ModifyOrder {
        let side_marking = b"BSTEX"[self.below(5) as usize];
        ModifyOrder { user_ref: self.old_number(session), side_marking, qty: self.qty() }
    }
}

/// Tight, so that every bound is met.
fn tight() -> EngineLimits {
    EngineLimits {
        max_open_orders: 60,
        max_open_orders_per_session: 25,
        max_sessions: SESSIONS as u16,
        max_index_pages: 14,
        max_index_pages_per_session: 6,
    }
}

fn roomy() -> EngineLimits {
    EngineLimits {
        max_open_orders: 5_000,
        max_open_orders_per_session: 5_000,
        max_index_pages: 1_000,
        max_index_pages_per_session: 500,
        ..tight()
    }
}

fn run(seed: u64, count: u32, limits: EngineLimits) -> (u64, EngineStatistics) {
    let mut nasty = Nasty::new(seed);
    let mut fast: Fast = Engine::new(&instruments(INSTRUMENTS), limits).unwrap();
    let mut plain: Plain = Engine::new(&instruments(INSTRUMENTS), limits).unwrap();
    let mut auditor = Auditor::new(INSTRUMENTS);
    let mut statistics = EngineStatistics::default();
    for instrument in (1..=INSTRUMENTS).map(InstrumentId) {
        let kind = CommandKind::OpenInstrument { instrument, state: TradingState::Trading };
        let command = numbered(&mut nasty.sequence, 0, kind);
        auditor.audit(&command, &apply(&mut fast, &command));
        apply(&mut plain, &command);
    }
    for step in 0..count {
        let command = nasty.next();
        let events = apply(&mut fast, &command);
        assert_eq!(events, apply(&mut plain, &command), "{command:?}");
        auditor.audit(&command, &events);
        auditor.check_uncrossed(&fast);
        statistics.events += events.len() as u64;
        statistics.most_open = statistics.most_open.max(tickpath_book::OrderBooks::order_count(fast.books()));
        if step % 200 == 0 {
            auditor.check_books(&fast);
            assert_eq!(fast.state_hash(), plain.state_hash());
        }
    }
    auditor.check_books(&fast);
    assert_eq!(fast.counters(), plain.counters());
    assert_eq!(fast.state_hash(), plain.state_hash());
    statistics.executions = fast.counters().executions;
    (fast.state_hash(), statistics)
}

/// That a run was worth something.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct EngineStatistics {
    events: u64,
    executions: u64,
    most_open: u32,
}

#[test]
fn both_books_give_the_same_events() {
    for seed in 1..=4 {
        let (_, statistics) = run(seed, 25_000, roomy());
        assert!(statistics.executions > 3_000 && statistics.most_open > 50, "{statistics:?}");
    }
}

#[test]
fn both_books_give_the_same_events_at_the_bounds() {
    for seed in 11..=13 {
        let (_, statistics) = run(seed, 15_000, tight());
        assert!(statistics.most_open <= 60 && statistics.executions > 500, "{statistics:?}");
    }
}

#[test]
fn the_same_commands_give_the_same_state() {
    assert_eq!(run(21, 3_000, roomy()), run(21, 3_000, roomy()));
    assert_ne!(run(21, 3_000, roomy()).0, run(22, 3_000, roomy()).0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 25, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_books_give_the_same_events_from_any_seed(seed: u64, is_tight: bool) {
        run(seed, 800, if is_tight { tight() } else { roomy() });
    }
}

/// Batches of every length give what single commands give.
#[test]
fn a_batch_is_the_same_as_its_commands() {
    for length in [1, 2, 7, 32, 33, 1_000] {
        let mut nasty = Nasty::new(31);
        let commands: Vec<Command> = (0..4_000).map(|_| nasty.next()).collect();
        let new = || -> Fast { Engine::new(&instruments(INSTRUMENTS), roomy()).unwrap() };
        let (mut single, mut batched) = (new(), new());
        let (mut expected, mut told) = (Log::default(), Log::default());
        for command in &commands {
            single.prefetch(command);
            single.apply(command, &mut expected);
        }
        for batch in commands.chunks(length) {
            batched.apply_batch(batch, &mut told);
        }
        assert_eq!(told, expected);
        assert_eq!(single.state_hash(), batched.state_hash());
        assert_eq!(single.counters(), batched.counters());
    }
}

#[test]
fn the_workload_passes_the_audit() {
    let config = WorkloadConfig {
        open_order_count: 2_000,
        command_count: 20_000,
        session_count: 5,
        ..WorkloadConfig::default()
    };
    let workload = Workload::generate(&config);
    let mut engine: Fast = Engine::new(&workload.instruments, workload.limits).unwrap();
    let mut auditor = Auditor::new(config.instrument_count);
    for command in workload.opening.iter().chain(&workload.commands) {
        auditor.audit(command, &apply(&mut engine, command));
    }
    auditor.check_books(&engine);
    auditor.check_uncrossed(&engine);
    assert_eq!(engine.state_hash(), workload.state_hash);
}
