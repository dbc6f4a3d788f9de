//! The rings between real threads: every item arrives once, in order and complete. Reads of the seqlock cell
//! and the table are never torn.
// The tests need threads.
#![allow(clippy::disallowed_methods)]

use std::thread;

use tickpath_lockfree::{broadcast, records, seqlock, spsc, table};

const COUNT: u64 = if cfg!(miri) { 60 } else { 50_000 };

/// Returns a message longer than a cache line, whose words are all derived from `number`.
fn message(number: u64) -> [u64; 10] {
    core::array::from_fn(|word| number.wrapping_mul(2 * word as u64 + 1))
}

#[test]
fn spsc_passes_everything_in_order() {
    for capacity in [1, 2, 64] {
        let (mut producer, mut consumer) = spsc::channel(capacity);
        thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..COUNT {
                    while producer.try_push(message(number)).is_err() {
                        thread::yield_now();
                    }
                }
            });
            for number in 0..COUNT {
                let item = loop {
                    match consumer.try_pop() {
                        Some(item) => break item,
                        None => thread::yield_now(),
                    }
                };
                assert_eq!(item, message(number));
            }
            while !consumer.is_disconnected() {
                thread::yield_now();
            }
            assert_eq!(consumer.try_pop(), None);
        });
    }
}

#[test]
fn records_pass_in_order_and_each_loss_is_counted() {
    let (mut producer, mut consumer) = records::channel(16);
    thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..COUNT {
                producer.push([number, !number]);
                if number % 7 == 0 {
                    producer.flush();
                }
            }
        });
        let (mut seen, mut next) = (0, 0);
        loop {
            let finished = consumer.is_disconnected();
            let count = consumer.drain(5, |&[number, inverse]| {
                assert!(number >= next);
                assert_eq!(inverse, !number);
                next = number + 1;
            });
            seen += count as u64;
            match (count, finished) {
                (0, true) => break,
                (0, false) => thread::yield_now(),
                _ => {}
            }
        }
        assert_eq!(seen + consumer.dropped(), COUNT);
        assert!(seen > 0);
    });
}

#[test]
fn broadcast_is_whole_and_reports_each_loss() {
    let (mut sender, first) = broadcast::channel(8);
    let receivers = [first.clone(), first];
    thread::scope(|scope| {
        for mut receiver in receivers {
            scope.spawn(move || {
                let mut next = 0;
                loop {
                    let finished = receiver.is_disconnected();
                    match receiver.try_recv() {
                        Ok(Some(item)) => {
                            assert_eq!(item, message(next));
                            next += 1;
                        }
                        Ok(None) if finished => break,
                        Ok(None) => thread::yield_now(),
                        Err(broadcast::Lagged(lost)) => next += lost,
                    }
                }
                assert_eq!(next, COUNT);
            });
        }
        for number in 0..COUNT {
            sender.send(message(number));
            if number % 8 == 0 {
                thread::yield_now();
            }
        }
        drop(sender);
    });
}

#[test]
fn seqlock_is_whole_and_monotonic() {
    let (mut writer, reader) = seqlock::cell(0, &[message(0), message(1), message(2)]);
    thread::scope(|scope| {
        for reader in [reader.clone(), reader] {
            scope.spawn(move || {
                let (mut rows, mut last, mut seen) = ([message(0); 3], 0, 0);
                while last < COUNT {
                    let Ok(number) = reader.try_read(&mut rows) else {
                        thread::yield_now();
                        continue;
                    };
                    assert_eq!(rows, [message(number), message(number + 1), message(number + 2)], "torn");
                    assert!(number >= last);
                    if number == last {
                        thread::yield_now();
                    }
                    seen += u64::from(number > last);
                    last = number;
                }
                assert!(seen > 0);
            });
        }
        for number in 0..=COUNT {
            writer.write(&number, (number..).take(3).map(message));
            if number % 8 == 0 {
                thread::yield_now();
            }
        }
    });
}

#[test]
fn table_is_whole_and_monotonic() {
    const ENTRIES: u64 = 3;
    let value = |number: u64| -> [u64; 7] { core::array::from_fn(|word| message(number)[word]) };
    let (mut writer, reader) = table::table::<[u64; 7]>(ENTRIES as usize);
    thread::scope(|scope| {
        for reader in [reader.clone(), reader] {
            scope.spawn(move || {
                let mut last = [0; ENTRIES as usize];
                while last[0] < COUNT {
                    for (index, last) in last.iter_mut().enumerate() {
                        let Ok(read) = reader.try_read(index) else {
                            thread::yield_now();
                            continue;
                        };
                        let number = read[0];
                        assert_eq!(read, value(number), "torn");
                        assert!(number >= *last);
                        if number == *last {
                            thread::yield_now();
                        }
                        *last = number;
                    }
                }
            });
        }
        for number in 1..=COUNT {
            for index in (0..ENTRIES as usize).rev() {
                writer.write(index, &value(number)).unwrap();
            }
            if number % 8 == 0 {
                thread::yield_now();
            }
        }
    });
}
