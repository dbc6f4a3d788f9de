//! The SPSC ring behaves like that of the `rtrb` crate on random pushes, pops, peeks and drains.

use proptest::{
    prelude::*,
    test_runner::{Config, RngSeed},
};
use tickpath_lockfree::{Full, spsc};

/// Number of steps per case; fewer under Miri, which takes a minute for the longer cases.
const STEPS: core::ops::Range<usize> = if cfg!(miri) { 40..80 } else { 0..200 };

#[derive(Clone, Copy, Debug)]
enum Operation {
    Push(u32),
    Pop,
    Peek,
    Drain(usize),
    Count,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        5 => any::<u32>().prop_map(Operation::Push),
        3 => Just(Operation::Pop),
        1 => Just(Operation::Peek),
        1 => (0_usize..6).prop_map(Operation::Drain),
        1 => Just(Operation::Count),
    ]
}

proptest! {
    #![proptest_config(Config {
        cases: if cfg!(miri) { 2 } else { 500 },
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..Config::default()
    })]

    #[test]
    fn spsc_matches_rtrb(power in 0_u32..5, steps in prop::collection::vec(operation(), STEPS)) {
        let capacity = 1_usize << power;
        let (mut producer, mut consumer) = spsc::channel(capacity);
        let (mut oracle_in, mut oracle_out) = rtrb::RingBuffer::new(capacity);
        for operation in steps {
            match operation {
                Operation::Push(item) => {
                    let expected = oracle_in.push(item).map_err(|rtrb::PushError::Full(item)| Full(item));
                    prop_assert_eq!(producer.try_push(item), expected);
                }
                Operation::Pop => prop_assert_eq!(consumer.try_pop(), oracle_out.pop().ok()),
                Operation::Peek => prop_assert_eq!(consumer.peek(), oracle_out.peek().ok()),
                Operation::Drain(max) => {
                    let mut items = Vec::new();
                    let count = consumer.drain(max, |&item| items.push(item));
                    let expected: Vec<u32> = (0..max).map_while(|_| oracle_out.pop().ok()).collect();
                    prop_assert_eq!(count, expected.len());
                    prop_assert_eq!(items, expected);
                }
                Operation::Count => {
                    prop_assert_eq!(consumer.len(), oracle_out.slots());
                    prop_assert_eq!(producer.free_slots(), oracle_in.slots());
                    prop_assert_eq!(producer.len(), capacity - oracle_in.slots());
                }
            }
        }
    }
}
