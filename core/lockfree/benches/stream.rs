//! Time per message when one core streams messages to another at the ring's maximum rate.
//!
//! `cargo bench -p tickpath-lockfree --bench stream`
// A bench of two cores needs threads and a clock.
#![allow(clippy::disallowed_methods, missing_docs)]

mod interleaved;

use std::{hint::black_box, thread, time::Instant};

use tickpath_lockfree::{records, spsc};

type Message = [u64; 7];

const CAPACITY: usize = 1024;

fn message(number: u64) -> Message {
    core::array::from_fn(|word| number + word as u64)
}

/// Returns the nanoseconds per message, over `count` messages. `push` tries once and returns whether it
/// succeeded; `pop` returns the number of messages popped.
fn time(count: u64, mut push: impl FnMut(u64) -> bool + Send, mut pop: impl FnMut(u64) -> u64) -> f64 {
    thread::scope(|scope| {
        let start = Instant::now();
        scope.spawn(move || (0..count).for_each(|number| while !push(number) {}));
        let mut popped = 0;
        while popped < count {
            popped += pop(popped);
        }
        start.elapsed().as_nanos() as f64 / count as f64
    })
}

fn spsc(count: u64) -> f64 {
    let (mut producer, mut consumer) = spsc::channel(CAPACITY);
    time(
        count,
        move |number| producer.try_push(black_box(message(number))).is_ok(),
        |number| {
            let Some(item) = consumer.try_pop() else { return 0 };
            assert_eq!(item, message(number));
            1
        },
    )
}

fn spsc_drained(count: u64) -> f64 {
    let (mut producer, mut consumer) = spsc::channel(CAPACITY);
    time(
        count,
        move |number| producer.try_push(black_box(message(number))).is_ok(),
        |mut number| {
            consumer.drain(64, |item| {
                assert_eq!(*item, message(number));
                number += 1;
            }) as u64
        },
    )
}

fn rtrb(count: u64) -> f64 {
    let (mut producer, mut consumer) = rtrb::RingBuffer::new(CAPACITY);
    time(
        count,
        move |number| producer.push(black_box(message(number))).is_ok(),
        |number| {
            let Ok(item) = consumer.pop() else { return 0 };
            assert_eq!(item, message(number));
            1
        },
    )
}

fn records(count: u64) -> f64 {
    let (mut producer, mut consumer) = records::channel(CAPACITY);
    time(
        count,
        move |number| producer.push(black_box(message(number))),
        |mut number| {
            consumer.drain(64, |item| {
                assert_eq!(*item, message(number));
                number += 1;
            }) as u64
        },
    )
}

fn main() {
    interleaved::compare(
        "stream between two cores, 56 bytes a message",
        200_000,
        vec![
            ("rtrb", Box::new(rtrb)),
            ("spsc", Box::new(spsc)),
            ("spsc, drained by 64", Box::new(spsc_drained)),
            ("records, drained by 64", Box::new(records)),
        ],
    );
}
