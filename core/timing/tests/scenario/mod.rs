//! Scenarios: stamps written as text, and the joiner's reports of them.
//!
//! A line that ends in `:` starts the ring of an agent. A record is `HOP ID TSC`, `ID <- ID` or
//! `FUNCTION TICKS`. An id is `m5` (market data message), `m5..8` (messages 5 to 7 in one record), `m5f0` (at a feed handler), `m5f0e1` (at an
//! engine), `c3` (command), `o2.42` (session 2 enters or replaces order 42) or `x2.42` (it cancels or
//! modifies it). One tick is one nanosecond.
#![allow(dead_code)] // Each test program uses only some of these items.

use tickpath_timing::{
    Calibration, CommandId, Function, Hop, IdSpace, Joiner, JoinerConfig, MarketId, Report, Stamp, Token,
};
use tickpath_types::{Nanos, Sequence, SessionId, UserRefNum};

/// Tables of 16 entries; tokens are finalised after 1,000 ns, other messages after 500 ns.
pub const SMALL: JoinerConfig =
    JoinerConfig { market_capacity: 16, command_capacity: 16, token_capacity: 16, age: Nanos(1_000) };

pub fn joiner(config: JoinerConfig) -> Joiner {
    Joiner::new(config, Calibration::identity())
}

/// The report of a scenario, read ring by ring.
pub fn report(text: &str) -> Report {
    report_of(rings(text).concat())
}

/// The report of records in the given order.
pub fn report_of(records: Vec<Stamp>) -> Report {
    let mut joiner = joiner(SMALL);
    records.into_iter().for_each(|record| joiner.handle_stamp(record));
    joiner.finish();
    joiner.report()
}

/// Checks all rows of a scenario, as `name count mean`, for many interleavings of its rings.
pub fn check(text: &str, expected: &str) {
    let expected: Vec<String> = expected.split_whitespace().map(str::to_owned).collect();
    for seed in 0..64 {
        let report = report_of(interleave(rings(text), seed));
        let rows = report.rows.iter().flat_map(|row| {
            [row.name.to_owned(), row.summary.count.to_string(), row.summary.mean_ns.to_string()]
        });
        assert_eq!(rows.collect::<Vec<_>>(), expected, "interleaving {seed}");
        assert!(report.checks.iter().all(|check| check.holds()), "{:?}", report.checks);
    }
}

/// Merges the rings in an order chosen by `seed`.
pub fn interleave(mut rings: Vec<Vec<Stamp>>, seed: u64) -> Vec<Stamp> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut records = Vec::new();
    rings.iter_mut().for_each(|ring| ring.reverse());
    while rings.iter().any(|ring| !ring.is_empty()) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let count = rings.len() as u64;
        records.extend(rings[(state % count) as usize].pop());
    }
    records
}

/// The records of each ring.
pub fn rings(text: &str) -> Vec<Vec<Stamp>> {
    let mut rings = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.strip_suffix(':') {
            Some(_) => rings.push(Vec::new()),
            None => rings.last_mut().expect("a ring's name comes first").push(record(line)),
        }
    }
    rings
}

/// Parses one record.
pub fn record(line: &str) -> Stamp {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |text: &str| text.parse::<u64>().expect(line);
    match words[..] {
        [child, "<-", parent] => match &child[..1] {
            "m" => Stamp::link(market(child), command(parent)),
            "c" => Stamp::link(command(child), token(parent)),
            _ => Stamp::link(token(child), market(parent)),
        },
        [hop, id, tsc] => {
            let hop = *Hop::ALL.iter().find(|other| other.code() == hop).expect(line);
            match hop.space() {
                IdSpace::Market if id.contains("..") => {
                    let (first, end) =
                        id[1..].split_once("..").map(|(a, b)| (number(a), number(b))).expect(line);
                    Stamp::hop_range(hop, Sequence(first), end - first, number(tsc))
                }
                IdSpace::Market => Stamp::hop(hop, market(id), number(tsc)),
                IdSpace::Command => Stamp::hop(hop, command(id), number(tsc)),
                IdSpace::Token => Stamp::hop(hop, token(id), number(tsc)),
            }
        }
        [name, ticks] => {
            let function = *Function::ALL.iter().find(|function| function.name() == name).expect(line);
            Stamp::time(function, number(ticks))
        }
        _ => panic!("not a record: {line}"),
    }
}

fn market(text: &str) -> MarketId {
    let mut parts = text.split(['m', 'f', 'e']).skip(1).map(|part| part.parse::<u64>().expect(text));
    let mut id = MarketId::new(Sequence(parts.next().expect(text)));
    if let Some(feed) = parts.next() {
        id = id.via_feed(feed as u8);
    }
    match parts.next() {
        Some(engine) => id.to_engine(engine as u8),
        None => id,
    }
}

fn command(text: &str) -> CommandId {
    CommandId(Sequence(text.strip_prefix('c').and_then(|number| number.parse().ok()).expect(text)))
}

fn token(text: &str) -> Token {
    let (session, user_ref) = text[1..].split_once('.').expect(text);
    let is_new_order = text.starts_with('o');
    Token::new(
        SessionId(session.parse().expect(text)),
        UserRefNum(user_ref.parse().expect(text)),
        is_new_order,
    )
}

/// Message 5, caused by order 1 of session 9, triggers order 42 of session 2; order 42 causes message 6.
pub const ONE_TRADE: &str = "
    order-server:
        T1k o9.1 900
        T1 o9.1 1000
        c3 <- o9.1
        T2 c3 1010
        T5t c3 1080
        T6tw c3 1095
        T6t c3 2095
        T1k o2.42 2000
        T1 o2.42 2500
        T2 c4 2520
        c4 <- o2.42
        T5t c4 2600
        T6tw c4 2620
        T6t c4 3600
    matcher:
        T3 c3 1030
        match 25
        T4 m5 1035
        m5 <- c3
        T4t c3 1060
        T3 c4 2540
        match 35
        m6 <- c4
        T4 m6 2555
        T4t c4 2570
    publisher:
        T5 m5 1050
        T6w m5 1070
        T6 m5 1570
        T5 m6 2605
        T6w m6 2650
        T6 m6 3100
    feed-handler:
        T7k m5f0 1300
        T7 m5f0 1500
        T8 m5f0 1540
    engine:
        T9 m5f0e0 1560
        T10 o2.42 1600
        o2.42 <- m5f0e0
        T9t o2.42 3050
    gateway:
        T11 o2.42 1615
        T12w o2.42 1630
        T12 o2.42 2630
        T7t o2.42 3000
        T8t o2.42 3020
";
