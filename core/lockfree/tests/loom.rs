//! Small scenarios of the rings and cells under loom, which runs every interleaving and every value that the
//! memory model allows a load to see.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p tickpath-lockfree --release --test loom`
#![cfg(loom)]

use loom::sync::Notify;
use loom::sync::atomic::{Ordering, fence};
use loom::thread::{spawn, yield_now};
use tickpath_lockfree::wake::Waker;
use tickpath_lockfree::{SharedLines, broadcast, records, seqlock, shared_spsc, spsc, table};

/// Maximum number of preemptions per execution; yields in wait loops do not count.
const PREEMPTIONS: usize = 3;

fn check(scenario: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(PREEMPTIONS);
    model.check(scenario);
}

fn spsc_passes(capacity: usize, count: u64) {
    check(move || {
        let (mut producer, mut consumer) = spsc::channel::<[u64; 2]>(capacity);
        let pushing = spawn(move || {
            for value in 1..=count {
                while producer.try_push([value, !value]).is_err() {
                    yield_now();
                }
            }
        });
        for value in 1..=count {
            let item = loop {
                match consumer.try_pop() {
                    Some(item) => break item,
                    None => yield_now(),
                }
            };
            assert_eq!(item, [value, !value]);
        }
        pushing.join().unwrap();
        assert_eq!(consumer.try_pop(), None);
    });
}

#[test]
fn spsc_keeps_order_in_one_slot() {
    spsc_passes(1, 3);
}

#[test]
fn spsc_keeps_order_over_wraps() {
    spsc_passes(2, 5);
}

#[test]
fn spsc_drain_frees_what_it_handed_out() {
    check(|| {
        let (mut producer, mut consumer) = spsc::channel::<u64>(2);
        let pushing = spawn(move || {
            for value in 1..=4 {
                while producer.try_push(value).is_err() {
                    yield_now();
                }
            }
        });
        let mut next = 1;
        while next <= 4 {
            let count = consumer.drain(2, |&value| {
                assert_eq!(value, next);
                next += 1;
            });
            if count == 0 {
                yield_now();
            }
        }
        pushing.join().unwrap();
    });
}

#[test]
fn spsc_disconnected_then_empty_is_the_end() {
    check(|| {
        let (mut producer, mut consumer) = spsc::channel::<u64>(2);
        let pushing = spawn(move || {
            producer.try_push(1).unwrap();
            producer.try_push(2).unwrap();
        });
        while !consumer.is_disconnected() {
            yield_now();
        }
        assert_eq!((consumer.len(), consumer.try_pop(), consumer.try_pop()), (2, Some(1), Some(2)));
        assert_eq!(consumer.try_pop(), None);
        pushing.join().unwrap();
    });
}

#[test]
fn spsc_lengths_bound_the_truth() {
    check(|| {
        let (mut producer, mut consumer) = spsc::channel::<u64>(2);
        producer.try_push(1).unwrap();
        let pushing = spawn(move || {
            let _ = producer.try_push(2);
            assert!((1..=2).contains(&producer.len()) || producer.len() == 0);
            let free = producer.free_slots();
            for value in 0..free {
                producer.try_push(value as u64).expect("promised");
            }
        });
        let len = consumer.len();
        assert!((1..=2).contains(&len));
        for _ in 0..len {
            consumer.try_pop().expect("counted");
        }
        pushing.join().unwrap();
    });
}

#[test]
fn records_pass_in_order_over_wraps() {
    check(|| {
        let (mut producer, mut consumer) = records::channel::<u64>(2);
        let pushing = spawn(move || {
            for value in 1..=4 {
                producer.push(value);
                producer.flush();
            }
            producer.dropped()
        });
        let mut seen = Vec::new();
        for _ in 0..2 {
            consumer.drain(2, |&value| seen.push(value));
            yield_now();
        }
        let dropped = pushing.join().unwrap();
        consumer.drain(2, |&value| seen.push(value));
        assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
        assert_eq!(seen.len() as u64 + dropped, 4);
        assert_eq!(consumer.dropped(), dropped);
    });
}

#[test]
fn records_are_published_when_the_producer_disconnects() {
    check(|| {
        let (mut producer, mut consumer) = records::channel::<u64>(8);
        let pushing = spawn(move || {
            producer.push(1);
            producer.push(2);
            producer.push(3);
        });
        while !consumer.is_disconnected() {
            yield_now();
        }
        assert_eq!(consumer.drain(8, |_| {}), 3);
        pushing.join().unwrap();
    });
}

/// Polls `polls` times during `count` sends, then until the ring is empty: every lost message is reported.
fn broadcast_reports_every_loss(capacity: usize, count: u64, polls: usize) {
    check(move || {
        let (mut sender, mut receiver) = broadcast::channel::<[u64; 2]>(capacity);
        let sending = spawn(move || {
            for value in 1..=count {
                sender.send([value, !value]);
            }
        });
        let mut next = 1;
        let mut poll = |receiver: &mut broadcast::Receiver<[u64; 2]>| match receiver.try_recv() {
            Ok(Some(item)) => {
                assert_eq!(item, [next, !next]);
                next += 1;
                true
            }
            Ok(None) => false,
            Err(broadcast::Lagged(lost)) => {
                assert!(lost > 0);
                next += lost;
                true
            }
        };
        for _ in 0..polls {
            poll(&mut receiver);
        }
        sending.join().unwrap();
        while poll(&mut receiver) {}
        assert_eq!(next, count + 1);
    });
}

#[test]
fn broadcast_is_never_torn_in_one_slot() {
    broadcast_reports_every_loss(1, 2, 2);
}

#[test]
fn broadcast_is_never_torn_over_wraps() {
    broadcast_reports_every_loss(2, 3, 2);
}

#[test]
fn broadcast_reaches_each_receiver() {
    check(|| {
        let (mut sender, mut first) = broadcast::channel::<u64>(2);
        let mut second = sender.subscribe();
        let receiving = spawn(move || {
            while !first.is_disconnected() {
                yield_now();
            }
            assert_eq!((first.try_recv(), first.try_recv()), (Ok(Some(1)), Ok(Some(2))));
        });
        sender.send(1);
        sender.send(2);
        drop(sender);
        assert_eq!((second.try_recv(), second.try_recv()), (Ok(Some(1)), Ok(Some(2))));
        receiving.join().unwrap();
    });
}

/// Reads `polls` times during `writes` writes, and once after them: no value is torn or older than the
/// previous one.
fn seqlock_is_whole(writes: u64, polls: usize) {
    check(move || {
        let (mut writer, reader) = seqlock::cell(0, &[!0_u64]);
        let writing = spawn(move || {
            for value in 1..=writes {
                writer.write(&value, [!value]);
            }
        });
        let mut last = 0;
        let mut poll = || {
            let mut rows = [0];
            if let Ok(value) = reader.try_read(&mut rows) {
                assert_eq!(rows, [!value], "torn");
                assert!(value >= last, "{value} came after {last}");
                last = value;
            }
            last
        };
        for _ in 0..polls {
            poll();
        }
        writing.join().unwrap();
        assert_eq!(poll(), writes, "the last value is there, and nothing keeps it from being read");
    });
}

#[test]
fn seqlock_is_never_torn_by_one_write() {
    seqlock_is_whole(1, 2);
}

#[test]
fn seqlock_is_never_torn_by_several_writes() {
    seqlock_is_whole(3, 1);
}

/// Reads entry 1 `polls` times while a thread writes entries 0 and 1, and once after that: no value is torn
/// or older than the previous one.
fn table_is_whole(writes: u64, polls: usize) {
    check(move || {
        let (mut writer, reader) = table::table::<[u64; 2]>(2);
        let writing = spawn(move || {
            for value in 1..=writes {
                writer.write(0, &[value; 2]).unwrap();
                writer.write(1, &[value, value + 1]).unwrap();
            }
        });
        let mut last = 0;
        let mut poll = || {
            let entry = reader.entry(1).unwrap();
            let before = entry.writes();
            if let Ok([value, next]) = entry.try_read() {
                assert!(next == value + 1 || (value, next) == (0, 0), "torn: {value} {next}");
                assert!(value >= last && value >= before, "{value} came after {last} or {before}");
                last = value;
            }
            last
        };
        for _ in 0..polls {
            poll();
        }
        writing.join().unwrap();
        assert_eq!(poll(), writes, "the last value is there, and nothing keeps it from being read");
    });
}

#[test]
fn table_is_never_torn_by_one_write() {
    table_is_whole(1, 2);
}

#[test]
fn table_is_never_torn_by_several_writes() {
    table_is_whole(3, 1);
}

fn shared_spsc_passes(capacity: usize, count: u64) {
    check(move || {
        let lines = SharedLines::zeroed(shared_spsc::lines_of::<[u64; 2]>(capacity));
        let mut producer = shared_spsc::Producer::<[u64; 2]>::over(lines.clone()).unwrap();
        let mut consumer = shared_spsc::Consumer::<[u64; 2]>::over(lines).unwrap();
        let pushing = spawn(move || {
            for value in 1..=count {
                while producer.try_push([value, !value]).is_err() {
                    yield_now();
                }
            }
            assert!(!producer.is_broken());
        });
        for value in 1..=count {
            let item = loop {
                match consumer.try_pop() {
                    Some(item) => break item,
                    None => yield_now(),
                }
            };
            assert_eq!(item, [value, !value]);
        }
        pushing.join().unwrap();
        assert!(consumer.is_disconnected());
        assert_eq!(consumer.try_pop(), None);
    });
}

#[test]
fn shared_spsc_keeps_order_in_one_slot() {
    shared_spsc_passes(1, 3);
}

#[test]
fn shared_spsc_keeps_order_over_wraps() {
    shared_spsc_passes(2, 5);
}

/// Runs a consumer that announces its sleep, checks once more and then sleeps until it is woken; loom reports
/// a deadlock if a wake-up is lost. `barrier` is the heavy barrier.
fn sleeper_gets_everything(barrier: fn(), count: u64) {
    check(move || {
        let bell = loom::sync::Arc::new(Notify::new());
        let ring = loom::sync::Arc::clone(&bell);
        let waker = Waker::new(move || ring.notify());
        let (mut producer, mut consumer) = spsc::channel::<u64>(2);
        consumer.wake_by(&waker);
        let pushing = spawn(move || {
            for value in 1..=count {
                producer.try_push(value).unwrap();
            }
        });
        let mut next = 1;
        while next <= count {
            if !waker.is_announced() {
                waker.announce(barrier);
            }
            match consumer.try_pop() {
                Some(value) => {
                    assert_eq!(value, next);
                    next += 1;
                    waker.retract();
                }
                // Sleep until the waker notifies.
                None => bell.wait(),
            }
        }
        pushing.join().unwrap();
    });
}

#[test]
fn a_sleeping_consumer_is_woken_for_every_item() {
    sleeper_gets_everything(|| fence(Ordering::SeqCst), 2);
}

/// Without the heavy barrier a wake-up can be lost, which loom finds.
#[test]
#[should_panic(expected = "deadlock")]
fn without_the_barrier_a_wake_up_is_lost() {
    sleeper_gets_everything(|| {}, 1);
}
