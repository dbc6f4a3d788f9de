//! Round-trip time of a 56-byte message between two cores, compared with the physical limit: one bare cache
//! line in each direction.
//!
//! The limit is measured over as many line pairs as a ring has slots. A single pair is measured too, but its
//! time depends on the addresses of its two lines, so a ring can seem faster than a single pair.
//!
//! `cargo bench -p tickpath-lockfree --bench round_trip`
// A bench of two cores needs threads and a clock.
#![allow(clippy::disallowed_methods, missing_docs)]

mod interleaved;

use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Instant,
};

use tickpath_lockfree::{CachePadded, broadcast, records, spsc};

type Message = [u64; 7];

const CAPACITY: usize = 1024;

fn message(number: u64) -> Message {
    core::array::from_fn(|word| number + word as u64)
}

/// Returns the nanoseconds per round trip, over `count` trips after a warm-up: `trip` sends a number and
/// waits for its echo; on another thread, `echo` receives the number and sends it back.
fn time(count: u64, mut trip: impl FnMut(u64), mut echo: impl FnMut(u64) + Send) -> f64 {
    let warm_up = count / 4;
    thread::scope(|scope| {
        scope.spawn(move || (0..warm_up + count).for_each(&mut echo));
        (0..warm_up).for_each(&mut trip);
        let start = Instant::now();
        (warm_up..warm_up + count).for_each(&mut trip);
        start.elapsed().as_nanos() as f64 / count as f64
    })
}

/// Returns the nanoseconds per round trip over bare cache lines, using `pairs` pairs of lines in turn.
fn ping_pong(pairs: usize, count: u64) -> f64 {
    let lines = || (0..pairs).map(|_| CachePadded::new(AtomicU64::new(0))).collect::<Box<[_]>>();
    let (ping, pong) = (lines(), lines());
    let wait = |of: &[CachePadded<AtomicU64>], number: u64| {
        let line = &of[number as usize & (pairs - 1)];
        while line.load(Ordering::Acquire) != number + 1 {}
    };
    let mark = |of: &[CachePadded<AtomicU64>], number: u64| {
        of[number as usize & (pairs - 1)].store(number + 1, Ordering::Release);
    };
    time(
        count,
        |number| {
            mark(&ping, number);
            wait(&pong, number);
        },
        |number| {
            wait(&ping, number);
            mark(&pong, number);
        },
    )
}

/// Returns the nanoseconds per round trip over two channels, one per direction, and checks every answer.
fn channels<P, C>(
    count: u64,
    [there, back]: [(P, C); 2],
    push: impl Fn(&mut P, Message) + Send + Copy,
    pop: impl Fn(&mut C) -> Option<Message> + Send + Copy,
) -> f64
where
    P: Send,
    C: Send,
{
    let ((mut there_in, mut there_out), (mut back_in, mut back_out)) = (there, back);
    let wait = move |from: &mut C| {
        loop {
            if let Some(item) = pop(from) {
                break item;
            }
        }
    };
    time(
        count,
        move |number| {
            push(&mut there_in, black_box(message(number)));
            assert_eq!(wait(&mut back_out), message(number));
        },
        move |_| push(&mut back_in, wait(&mut there_out)),
    )
}

fn spsc(count: u64) -> f64 {
    channels(
        count,
        [0, 1].map(|_| spsc::channel(CAPACITY)),
        |to, item| to.try_push(item).expect("one message is on its way"),
        spsc::Consumer::try_pop,
    )
}

fn rtrb(count: u64) -> f64 {
    channels(
        count,
        [0, 1].map(|_| rtrb::RingBuffer::new(CAPACITY)),
        |to, item| to.push(item).expect("one message is on its way"),
        |from| from.pop().ok(),
    )
}

fn broadcast(count: u64) -> f64 {
    channels(count, [0, 1].map(|_| broadcast::channel(CAPACITY)), broadcast::Sender::send, |from| {
        from.try_recv().expect("one message is on its way")
    })
}

fn records(count: u64) -> f64 {
    channels(
        count,
        [0, 1].map(|_| records::channel(CAPACITY)),
        |to, item| {
            assert!(to.push(item), "one message is on its way");
            to.flush();
        },
        |from| {
            let mut item = None;
            from.drain(1, |&record| item = Some(record));
            item
        },
    )
}

fn main() {
    interleaved::compare(
        "round trip between two cores",
        20_000,
        vec![
            ("ping-pong, 1024 line pairs", Box::new(|count| ping_pong(CAPACITY, count))),
            ("ping-pong, 1 line pair", Box::new(|count| ping_pong(1, count))),
            ("spsc", Box::new(spsc)),
            ("rtrb", Box::new(rtrb)),
            ("broadcast", Box::new(broadcast)),
            ("records, flushed each", Box::new(records)),
        ],
    );
}
