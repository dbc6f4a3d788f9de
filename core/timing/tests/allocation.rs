//! Neither a tracer nor the joiner allocates after its creation.

use tickpath_test_support::allocations::{CountingAllocator, thread_allocations};
use tickpath_timing::{
    Calibration, CommandId, Function, Hop, Joiner, JoinerConfig, MarketId, Token, Trace, Tracer,
};
use tickpath_types::{Nanos, Sequence, SessionId, UserRefNum};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Writes the stamps of one trade, from market event to response, 1 tick apart.
fn trade(trace: &mut Trace, number: u64, tsc: &mut u64) {
    let read = MarketId::new(Sequence(number)).via_feed(1);
    let order = Token::new(SessionId(number as u16 % 5), UserRefNum(number as u32), true);
    let command = CommandId(Sequence(number));
    let mut next = || {
        *tsc += 1;
        *tsc
    };
    for hop in [Hop::T4, Hop::T5, Hop::T6w, Hop::T6, Hop::T7, Hop::T8] {
        trace.stamp_at(hop, read, next());
    }
    trace.link(read, command);
    trace.stamp_at(Hop::T9, read.to_engine(2), next());
    trace.link(order, read.to_engine(2));
    for hop in [Hop::T10, Hop::T11, Hop::T12w, Hop::T12, Hop::T1k, Hop::T1] {
        trace.stamp_at(hop, order, next());
    }
    trace.link(command, order);
    for hop in [Hop::T2, Hop::T3, Hop::T4t, Hop::T5t, Hop::T6tw, Hop::T6t] {
        trace.stamp_at(hop, command, next());
    }
    for hop in [Hop::T7t, Hop::T8t, Hop::T9t] {
        trace.stamp_at(hop, order, next());
    }
    trace.time(Function::Match, number);
    trace.flush();
}

/// Returns a joiner that has joined 1,000 trades of 22 ticks each. Its tables hold `capacity` entries each,
/// and its age is 1,000 ticks. Fails if the joiner allocates after its creation.
fn joined(capacity: usize) -> Joiner {
    let config = JoinerConfig {
        market_capacity: capacity,
        command_capacity: capacity,
        token_capacity: capacity,
        age: Nanos(1_000),
    };
    let (mut trace, ring) = Trace::new(1 << 10);
    let mut rings = [ring];
    let mut joiner = Joiner::new(config, Calibration::identity());
    let before = thread_allocations();
    let mut tsc = 0;
    for number in 1..=1_000 {
        trade(&mut trace, number, &mut tsc);
        joiner.drain(&mut rings, 1 << 10, tsc);
        if number % 100 == 0 {
            assert!(joiner.live()[0].total_count > 0);
        }
    }
    joiner.finish();
    assert_eq!(thread_allocations() - before, 0);
    joiner
}

#[test]
fn neither_tracer_nor_joiner_allocates_after_creation() {
    let before = thread_allocations();
    let large = joined(128);
    assert!(thread_allocations() > before, "creating one does allocate, and is counted");
    assert_eq!(large.checks().map(|check| check.messages), [1_000; 3]);
    assert!(large.checks().iter().all(|check| check.holds()));
    assert_eq!((large.counters().tokens.complete, large.counters().tokens.displaced), (1_000, 0));

    let small = joined(16);
    assert!(small.counters().tokens.displaced > 900);
    assert_eq!(small.counters().tokens.finalised(), 1_000);
    assert!(small.checks().iter().all(|check| check.holds()));
}
