//! Benchmark: the costs of writing a stamp and of joining it off the hot path, compared with reading the
//! time-stamp counter.
//!
//! Run it with `cargo bench -p tickpath-timing`. Without `--bench`, as in `cargo test --benches`, a few
//! rounds only check the results. The cases are interleaved round by round, and the median of each is
//! printed. Rounds are timed in ticks of the counter.
#![allow(clippy::disallowed_methods)] // reads the arguments, to find `--bench`

use std::hint::black_box;

use tickpath_lockfree::{cpu, records};
use tickpath_timing::{
    Calibration, CommandId, Hop, Joiner, JoinerConfig, MarketId, NoTrace, Stamp, Token, Trace, TraceId,
    Tracer,
};
use tickpath_types::{Nanos, Sequence, SessionId, UserRefNum};

/// Stamps per round: a quarter of the ring, about as many as a busy agent writes between two drains.
const STAMPS: u64 = 4_096;
const RING: usize = 16_384;

/// A benchmark case, and the measured ticks of each of its rounds.
struct Case<'a> {
    name: &'static str,
    round: Box<dyn FnMut() -> u64 + 'a>,
    ticks: Vec<u64>,
}

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let rounds = if is_bench { 2_001 } else { 3 };
    let (mut trace, mut ring) = Trace::new(RING);
    let (mut linked, mut linked_ring) = Trace::new(RING);
    let mut joined = joined_trades();
    let mut cases = [
        case("rdtsc", || ticks_of(|_| black_box(cpu::rdtsc()))),
        case("stamp", || traced(&mut trace, &mut ring, |trace, id| trace.stamp(Hop::T9, id))),
        case("stamp_at", || {
            traced(&mut linked, &mut linked_ring, |trace, id| {
                trace.stamp_at(Hop::T8, id, 7);
                7
            })
        }),
        case("stamp, off", || ticks_of(|number| NoTrace.stamp(Hop::T9, MarketId::new(Sequence(number))))),
        case("join", &mut joined),
    ];
    for _ in 0..rounds {
        for case in &mut cases {
            let ticks = (case.round)();
            case.ticks.push(ticks);
        }
    }
    let medians = cases.map(|mut case| {
        case.ticks.sort_unstable();
        (case.name, case.ticks[case.ticks.len() / 2] as f64 / STAMPS as f64)
    });
    for (name, ticks) in medians {
        println!("{name:<12}{ticks:>8.1} ticks{:>8.2} x rdtsc", ticks / medians[0].1);
    }
}

fn case<'a>(name: &'static str, round: impl FnMut() -> u64 + 'a) -> Case<'a> {
    Case { name, round: Box::new(round), ticks: Vec::new() }
}

fn ticks_of(mut work: impl FnMut(u64) -> u64) -> u64 {
    let start = cpu::rdtsc_ordered();
    for number in 0..STAMPS {
        black_box(work(black_box(number)));
    }
    cpu::rdtsc_ordered() - start
}

/// Measures the ticks of a round of stamps, then flushes them and checks that the drain receives all.
fn traced(
    trace: &mut Trace,
    ring: &mut records::Consumer<Stamp>,
    mut stamp: impl FnMut(&mut Trace, MarketId) -> u64,
) -> u64 {
    let ticks = ticks_of(|number| stamp(trace, MarketId::new(Sequence(number)).to_engine(1)));
    trace.flush();
    let mut expected = 0;
    ring.drain(RING, |stamp| {
        let [head, tsc] = stamp.0;
        let id = MarketId::new(Sequence(expected)).to_engine(1);
        assert_eq!(head & ((1 << 56) - 1), id.bits());
        assert!(tsc > 0);
        expected += 1;
    });
    assert_eq!(expected, STAMPS);
    ticks
}

/// Returns a benchmark round: it joins the stamps of whole trades and finalises trades of earlier rounds,
/// like a drain in a busy system.
fn joined_trades() -> impl FnMut() -> u64 {
    const RECORDS: u64 = 25;
    let trades = STAMPS / RECORDS;
    let age = Nanos(3 * trades * RECORDS);
    let mut joiner = Joiner::new(JoinerConfig { age, ..JoinerConfig::default() }, Calibration::identity());
    let mut records = Vec::with_capacity(STAMPS as usize);
    let (mut next, mut tsc) = (0, 0);
    move || {
        records.clear();
        for _ in 0..trades {
            next += 1;
            push_trade(&mut records, next, &mut tsc);
        }
        assert_eq!(records.len() as u64, trades * RECORDS);
        let start = cpu::rdtsc_ordered();
        records.iter().for_each(|record| joiner.handle_stamp(*record));
        joiner.handle_timeout(tsc);
        let ticks = cpu::rdtsc_ordered() - start;
        let finalised = joiner.counters().tokens.finalised();
        assert!(next - finalised <= 5 * trades, "settling keeps pace");
        assert!(joiner.checks().iter().all(|check| check.messages == finalised && check.holds()));
        ticks * STAMPS / (trades * RECORDS)
    }
}

/// Appends the records of one trade, from market event to response: 22 stamps, 1 tick apart, and 3 links.
fn push_trade(records: &mut Vec<Stamp>, number: u64, tsc: &mut u64) {
    let read = MarketId::new(Sequence(number));
    let order = Token::new(SessionId(1), UserRefNum(number as u32), true);
    let command = CommandId(Sequence(number));
    let mut next = || {
        *tsc += 1;
        *tsc
    };
    let market = [Hop::T4, Hop::T5, Hop::T6w, Hop::T6, Hop::T7, Hop::T8, Hop::T9];
    records.extend(market.map(|hop| Stamp::hop(hop, read, next())));
    let order_out = [Hop::T10, Hop::T11, Hop::T12w, Hop::T12, Hop::T1k, Hop::T1];
    records.extend(order_out.map(|hop| Stamp::hop(hop, order, next())));
    let venue = [Hop::T2, Hop::T3, Hop::T4t, Hop::T5t, Hop::T6tw, Hop::T6t];
    records.extend(venue.map(|hop| Stamp::hop(hop, command, next())));
    let response = [Hop::T7t, Hop::T8t, Hop::T9t];
    records.extend(response.map(|hop| Stamp::hop(hop, order, next())));
    records.extend([Stamp::link(order, read), Stamp::link(command, order), Stamp::link(read, command)]);
}
