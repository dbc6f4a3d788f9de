//! Commands survive encoding, and an engine restored from a snapshot continues like the uninterrupted one.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::common;
use crate::common::{Log, apply, instruments, numbered, order};
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_book::{FastBooks, OrderBooks};
use tickpath_matching::workload::{Workload, WorkloadConfig};
use tickpath_matching::{
    COMMAND_LEN_MAX, CodecError, Command, CommandKind, Engine, EngineLimits, Owner, SnapshotError,
};
use tickpath_reference::ReferenceBooks;
use tickpath_types::*;

type Fast = Engine<FastBooks<Owner>>;
type Reference = Engine<ReferenceBooks<Owner>>;

const SESSIONS: u16 = 3;
const INSTRUMENTS: u16 = 3;

/// Random commands. Their fields have any value if `is_wide`, otherwise one of a few, so that orders trade.
struct Commands {
    random: Xoshiro256PlusPlus,
    sequence: u64,
    last_user_ref: u32,
    is_wide: bool,
}

impl Commands {
    fn new(seed: u64, is_wide: bool) -> Commands {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Commands { random, sequence: 0, last_user_ref: 0, is_wide }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    /// Any number if `is_wide`, otherwise one below `few`.
    fn number(&mut self, few: u64) -> u64 {
        if self.is_wide { self.random.next_u64() } else { self.below(few) }
    }

    fn user_ref(&mut self) -> UserRefNum {
        if !self.is_wide && self.below(3) > 0 {
            self.last_user_ref += 1;
            return UserRefNum(self.last_user_ref);
        }
        UserRefNum(self.number(u64::from(self.last_user_ref) + 2) as u32)
    }

    fn old_user_ref(&mut self) -> UserRefNum {
        let back = self.below(40) as u32;
        if self.is_wide { self.user_ref() } else { UserRefNum(self.last_user_ref.saturating_sub(back)) }
    }

    fn instrument(&mut self) -> InstrumentId {
        InstrumentId(self.number(u64::from(INSTRUMENTS) + 1) as u16)
    }

    fn price(&mut self) -> Price {
        if self.is_wide {
            Price(self.random.next_u64().cast_signed())
        } else {
            Price(99_500 + self.below(11) as i64 * 100)
        }
    }

    fn qty(&mut self) -> Qty {
        Qty(10 * self.number(10).min(u64::MAX / 10))
    }

    fn code<T>(&mut self, from_code: impl Fn(u8) -> Option<T>) -> T {
        loop {
            if let Some(value) = from_code(self.below(256) as u8) {
                return value;
            }
        }
    }

    fn text<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.below(256) as u8)
    }

    fn attributes(&mut self) -> OrderAttributes {
        let [display, capacity, intermarket_sweep, cross_type] = self.text();
        OrderAttributes { display, capacity, intermarket_sweep, cross_type }
    }

    fn enter(&mut self) -> EnterOrder {
        let time_in_force = self.code(TimeInForce::from_code);
        let is_ioc = time_in_force == TimeInForce::Ioc;
        EnterOrder {
            user_ref: self.user_ref(),
            instrument: self.instrument(),
            side: self.code(Side::from_code),
            qty: self.qty(),
            price: self.price(),
            time_in_force,
            post_only: self.below(8) == 0,
            min_qty: if is_ioc || self.is_wide { self.qty() } else { Qty::ZERO },
            attributes: self.attributes(),
            special: self.special(),
            client_order_id: ClientOrderId(self.text()),
        }
    }

    fn kind(&mut self) -> CommandKind {
        match self.below(if self.is_wide { 31 } else { 60 }) {
            kind if self.is_wide && kind >= 12 => self.venues_kind(kind),
            10 if self.is_wide => CommandKind::Order(OrderRequest::MassCancel(MassCancel {
                user_ref: self.user_ref(),
                instrument: self.instrument(),
                side: [None, Some(Side::Buy), Some(Side::Sell)][self.below(3) as usize],
                firm: self.text(),
            })),
            11 if self.is_wide => CommandKind::Order(OrderRequest::SetOrderEntry(SetOrderEntry {
                user_ref: self.user_ref(),
                is_enabled: self.below(2) == 0,
                firm: self.text(),
            })),
            1 => CommandKind::Order(OrderRequest::Modify(ModifyOrder {
                user_ref: self.old_user_ref(),
                side_marking: if self.is_wide {
                    self.below(256) as u8
                } else {
                    b"BST"[self.below(3) as usize]
                },
                qty: self.qty(),
            })),
            2 => CommandKind::GatewayReject {
                user_ref: self.user_ref(),
                reason: self.code(RejectReason::from_code),
                client_order_id: ClientOrderId(self.text()),
            },
            3 => CommandKind::AccountQuery,
            4 if self.is_wide || self.below(4) == 0 => {
                CommandKind::CancelAll { reason: self.code(CancelReason::from_code) }
            }
            5 => CommandKind::System(self.code(SystemEventCode::from_code)),
            6 => CommandKind::OpenInstrument {
                instrument: self.instrument(),
                state: self.code(TradingState::from_code),
            },
            7 | 10 | 11 => {
                CommandKind::SetTradingState { instrument: self.instrument(), state: TradingState::Trading }
            }
            8 | 12..16 => CommandKind::Order(OrderRequest::Replace(ReplaceOrder {
                orig_user_ref: self.old_user_ref(),
                user_ref: self.user_ref(),
                qty: self.qty(),
                price: self.price(),
                time_in_force: self.code(TimeInForce::from_code),
                post_only: self.below(8) == 0,
                min_qty: if self.is_wide { self.qty() } else { Qty::ZERO },
                special: self.special(),
                attributes: self.attributes(),
                client_order_id: ClientOrderId(self.text()),
            })),
            9 | 16..22 => CommandKind::Order(OrderRequest::Cancel(CancelOrder {
                user_ref: self.old_user_ref(),
                qty: if self.below(2) == 0 { Qty::ZERO } else { self.qty() },
            })),
            _ => CommandKind::Order(OrderRequest::Enter(self.enter())),
        }
    }

    /// A command that only the venue issues.
    fn venues_kind(&mut self, kind: u64) -> CommandKind {
        let (instrument, is_killed) = (self.instrument(), self.below(2) == 0);
        match kind {
            12 => CommandKind::Uncross {
                instrument,
                kind: self.code(CrossKind::from_code),
                state: self.code(TradingState::from_code),
            },
            13 => CommandKind::PublishImbalance { instrument, kind: self.code(CrossKind::from_code) },
            14 => CommandKind::SetPriceBand { instrument, reference: self.price(), width: self.price() },
            15 => CommandKind::AddInstrument(Instrument {
                id: instrument,
                symbol: Symbol(self.text()),
                tick_size: self.price(),
                lot_size: self.qty(),
                max_qty: self.qty(),
                reference_price: self.price(),
                collar_low: self.price(),
                collar_high: self.price(),
            }),
            16 => CommandKind::SuspendInstrument { instrument },
            17 => CommandKind::BreakTrade {
                match_id: MatchId(self.random.next_u64()),
                reason: self.code(BrokenReason::from_code),
            },
            18 => CommandKind::ExpireOrders,
            19 => CommandKind::EndDay,
            20 => CommandKind::SetLimits {
                open_orders: self.random.next_u32(),
                order_qty: self.qty(),
                order_notional: self.random.next_u64(),
            },
            21 => CommandKind::SetSelfTradePrevention {
                strategy: self.code(SelfTradePrevention::from_code),
                account: SessionId(self.random.next_u32() as u16),
            },
            22 => CommandKind::KillSession { is_killed },
            23 => CommandKind::KillVenue { is_killed },
            24 => CommandKind::Force(EnterOrder { special: None, ..self.enter() }),
            _ => CommandKind::Order(OrderRequest::Enter(self.enter())),
        }
    }

    fn special(&mut self) -> Option<OrderInstructions> {
        (self.is_wide && self.below(2) == 0).then(|| OrderInstructions {
            stop_price: self.price(),
            display_qty: self.qty(),
            expire_at: self.random.next_u32(),
            is_hidden: self.below(2) == 0,
        })
    }

    fn next(&mut self) -> Command {
        let session = self.number(u64::from(SESSIONS) + 1) as u16;
        let kind = self.kind();
        let command = numbered(&mut self.sequence, session, kind);
        if self.is_wide {
            let (sequence, ts) = (Sequence(self.random.next_u64()), Nanos(self.random.next_u64()));
            return Command { sequence, ts, ..command };
        }
        command
    }
}

fn encoded(command: &Command) -> Vec<u8> {
    let mut bytes = vec![0xee; COMMAND_LEN_MAX];
    let len = command.encode(&mut bytes);
    bytes.truncate(len);
    bytes
}

#[test]
fn commands_round_trip() {
    let mut commands = Commands::new(1, true);
    let mut kinds = [0; 256];
    for _ in 0..20_000 {
        let command = commands.next();
        let bytes = encoded(&command);
        kinds[usize::from(bytes[0])] += 1;
        assert_eq!(Command::decode(&bytes), Ok(command));
        let short = &bytes[..bytes.len() - 1];
        assert!(matches!(Command::decode(short), Err(CodecError::Length { .. })), "{command:?}");
        let long = [&bytes[..], &[0]].concat();
        assert!(matches!(Command::decode(&long), Err(CodecError::Length { .. })), "{command:?}");
    }
    assert_eq!(kinds.iter().filter(|count| **count > 100).count(), 27, "every kind, often");
}

#[test]
fn an_encoded_order_is_these_bytes() {
    let order = EnterOrder {
        instrument: InstrumentId(0x0102),
        client_order_id: ClientOrderId(*b"ABCDEFGHIJKLMN"),
        post_only: true,
        min_qty: Qty(5),
        ..order(7, Side::Sell, 10, -2)
    };
    let kind = CommandKind::Order(OrderRequest::Enter(order));
    let command = Command { sequence: Sequence(3), session: SessionId(4), ts: Nanos(0x0506), kind };
    let expected = [
        &[1, 1, 4, 0, 0, 0, 0, 0][..],
        &[3, 0, 0, 0, 0, 0, 0, 0],
        &[6, 5, 0, 0, 0, 0, 0, 0],
        &[7, 0, 0, 0, 2, 1, 1, 0],
        &[10, 0, 0, 0, 0, 0, 0, 0],
        &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[5, 0, 0, 0, 0, 0, 0, 0],
        b"YPNN\x01\x00ABCDEFGHIJKLMN",
    ]
    .concat();
    assert_eq!(encoded(&command), expected);
    assert_eq!(expected.len(), COMMAND_LEN_MAX - 21);
}

#[test]
fn bytes_of_a_later_version_are_rejected() {
    let bytes = encoded(&Commands::new(1, true).next());
    let with = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        Command::decode(&bytes)
    };
    assert_eq!(with(0, 200), Err(CodecError::Unknown { kind: 200, version: 1 }));
    assert_eq!(with(1, 2), Err(CodecError::Unknown { kind: bytes[0], version: 2 }));
    assert_eq!(with(4, 9), Err(CodecError::Value { field: "reserved", value: 9 }));
    assert_eq!(Command::decode(&[]), Err(CodecError::Length { kind: 0, expected: 24, len: 0 }));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Damaged or arbitrary bytes decode to an error or to another command, and never cause a panic. Decoded
    /// bytes have exactly one encoding.
    #[test]
    fn bytes_are_a_command_or_an_error(seed: u64, garbage: Vec<u8>, damage in prop::collection::vec((0..COMMAND_LEN_MAX, any::<u8>()), 0..4)) {
        let mut bytes = encoded(&Commands::new(seed, true).next());
        for (at, value) in damage {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        for bytes in [bytes, garbage] {
            if let Ok(command) = Command::decode(&bytes) {
                prop_assert_eq!(encoded(&command), bytes);
            }
        }
    }

    /// Damage to any byte is an error. If `fit`, the test recomputes the digest after the damage; then other
    /// checks fail, unless the damage is to the counters, on which nothing depends.
    #[test]
    fn a_damaged_snapshot_is_an_error(seed: u64, at: prop::sample::Index, value in 1..=255_u8, fit: bool) {
        let mut commands = Commands::new(seed, false);
        let mut engine = opened::<FastBooks<_>>(&mut commands);
        for _ in 0..60 {
            apply(&mut engine, &commands.next());
        }
        let mut bytes = snapshot(&engine);
        let damaged = at.index(bytes.len() - 8);
        bytes[damaged] ^= value;
        if fit {
            let digest = xxhash_rust::xxh3::xxh3_64(&bytes[..bytes.len() - 8]);
            let place = bytes.len() - 8;
            bytes[place..].copy_from_slice(&digest.to_le_bytes());
        }
        let restored = Fast::restore(&instruments(INSTRUMENTS), limits(), &bytes);
        if let Ok(restored) = restored {
            prop_assert!(fit && restored.counters() != engine.counters(), "{damaged} of {}", bytes.len());
        }
    }

    #[test]
    fn a_restored_engine_continues_identically(seed: u64, before in 0..600_usize) {
        check_continuation(seed, before, 400);
    }
}

fn limits() -> EngineLimits {
    EngineLimits {
        max_open_orders: 500,
        max_open_orders_per_session: 80,
        max_sessions: SESSIONS,
        max_index_pages: 20,
        max_index_pages_per_session: 7,
        max_special_orders: 400,
        max_recent_executions: 64,
        max_instruments: 0,
    }
}

fn opened<B: OrderBooks<Owner>>(commands: &mut Commands) -> Engine<B> {
    let mut engine = Engine::new(&instruments(INSTRUMENTS), limits()).unwrap();
    for instrument in (1..=INSTRUMENTS).map(InstrumentId) {
        let kind = CommandKind::OpenInstrument { instrument, state: TradingState::Trading };
        apply(&mut engine, &numbered(&mut commands.sequence, 0, kind));
    }
    engine
}

fn snapshot<B: OrderBooks<Owner>>(engine: &Engine<B>) -> Vec<u8> {
    let mut bytes = Vec::new();
    engine.snapshot(&mut bytes);
    bytes
}

/// Compares an engine with two engines restored from its snapshot, one on each kind of books. Returns the
/// number of executions.
fn check_continuation(seed: u64, before: usize, after: usize) -> u64 {
    let mut commands = Commands::new(seed, false);
    let mut engine = opened::<FastBooks<_>>(&mut commands);
    for _ in 0..before {
        apply(&mut engine, &commands.next());
    }
    let bytes = snapshot(&engine);
    let mut fast = Fast::restore(&instruments(INSTRUMENTS), limits(), &bytes).unwrap();
    let mut reference = Reference::restore(&instruments(INSTRUMENTS), limits(), &bytes).unwrap();
    assert_eq!((snapshot(&fast), snapshot(&reference)), (bytes.clone(), bytes));
    for _ in 0..after {
        let command = commands.next();
        let events = apply(&mut engine, &command);
        assert_eq!(apply(&mut fast, &command), events, "{command:?}");
        assert_eq!(apply(&mut reference, &command), events, "{command:?}");
    }
    assert_eq!((fast.state_hash(), reference.state_hash()), (engine.state_hash(), engine.state_hash()));
    assert_eq!(fast.counters(), engine.counters());
    engine.counters().executions
}

#[test]
fn a_long_run_continues_identically() {
    let executions = check_continuation(5, 5_000, 5_000);
    assert!(executions > 400, "{executions}");
}

#[test]
fn the_workload_continues_identically() {
    let config =
        WorkloadConfig { open_order_count: 3_000, command_count: 20_000, ..WorkloadConfig::default() };
    let workload = Workload::generate(&config);
    let mut engine: Fast = workload.opened();
    let (before, after) = workload.commands.split_at(7_000);
    let (mut log, mut restored_log) = (Log::default(), Log::default());
    engine.apply_batch(before, &mut log);
    let mut restored = Fast::restore(&workload.instruments, workload.limits, &snapshot(&engine)).unwrap();
    assert_eq!(restored.state_hash(), engine.state_hash());
    log.events.clear();
    for command in after {
        let decoded = Command::decode(&encoded(command)).unwrap();
        engine.apply(command, &mut log);
        restored.apply(&decoded, &mut restored_log);
    }
    assert_eq!(log, restored_log);
    assert_eq!(restored.state_hash(), workload.state_hash);
}

#[test]
fn a_snapshot_of_another_engine_is_rejected() {
    let mut commands = Commands::new(9, false);
    let mut engine = opened::<FastBooks<_>>(&mut commands);
    while engine.books().order_count() < 10 {
        apply(&mut engine, &commands.next());
    }
    let bytes = snapshot(&engine);
    let restore = |instruments: &[Instrument], limits| Fast::restore(instruments, limits, &bytes).err();
    let instruments = instruments(INSTRUMENTS);
    assert_eq!(restore(&instruments, limits()), None);
    let fewer = EngineLimits { max_sessions: SESSIONS - 1, ..limits() };
    let sessions = SnapshotError::Sessions { expected: SESSIONS, found: SESSIONS - 1 };
    assert_eq!(restore(&instruments, fewer), Some(sessions));
    let smaller = EngineLimits { max_open_orders: 3, max_special_orders: 0, ..limits() };
    assert_eq!(restore(&instruments, smaller), Some(SnapshotError::Limits));
    let mut other = instruments.clone();
    other[1].collar_high = Price(140_000);
    let changed = SnapshotError::Instrument(InstrumentId(2));
    assert_eq!(restore(&other, limits()), Some(changed));
    let missing = SnapshotError::Instrument(InstrumentId(3));
    assert_eq!(restore(&instruments[..2], limits()), Some(missing));
    let four = common::instruments(4);
    let new = restore(&four, limits());
    assert!(matches!(new, Some(SnapshotError::Instrument(_))), "{new:?}");
}

#[test]
fn a_later_snapshot_version_is_rejected() {
    let mut bytes = snapshot(&opened::<FastBooks<_>>(&mut Commands::new(9, false)));
    bytes[8] = 2;
    let place = bytes.len() - 8;
    let digest = xxhash_rust::xxh3::xxh3_64(&bytes[..place]);
    bytes[place..].copy_from_slice(&digest.to_le_bytes());
    let restored = Fast::restore(&instruments(INSTRUMENTS), limits(), &bytes).err();
    assert_eq!(restored, Some(SnapshotError::Version(2)));
    for len in [0, 8, 19, place] {
        let restored = Fast::restore(&instruments(INSTRUMENTS), limits(), &bytes[..len]).err();
        assert_eq!(restored, Some(SnapshotError::Damaged(len)));
    }
}
