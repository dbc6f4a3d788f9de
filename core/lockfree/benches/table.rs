//! Cost of writing and of reading a quote in a table, without and with a writer on another core.
// The bench needs threads and a clock.
#![allow(clippy::disallowed_methods)]

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use tickpath_lockfree::table::{self, Reader, Writer};
use tickpath_types::{PriceLevel, TopOfBook};

/// Number of instruments of a typical trader: the table fits into the L1 cache.
const ENTRIES: usize = 100;

/// Returns a quote whose fields are all derived from `number`, so that a torn read is detected.
fn quote(number: u64) -> TopOfBook {
    TopOfBook {
        bid: PriceLevel { price: number as i64, qty: !number },
        ask: PriceLevel { price: number as i64 + 1, qty: number ^ 0xff },
        last_price: -(number as i64),
        ts_event: number << 1,
        last_qty: number as u32,
        ..TopOfBook::default()
    }
}

fn fold(quote: &TopOfBook) -> u64 {
    let prices = quote.bid.price ^ quote.ask.price ^ quote.last_price;
    prices as u64 ^ quote.bid.qty ^ quote.ask.qty ^ quote.ts_event ^ u64::from(quote.last_qty)
}

fn writes(writer: &mut Writer<TopOfBook>, count: u64) {
    let mut index = 0;
    for number in 0..count {
        writer.write(index, black_box(&quote(number))).expect("within the table");
        index = if index + 1 == ENTRIES { 0 } else { index + 1 };
    }
}

/// Reads `count` quotes. Returns the number of torn quotes, and the number of failed reads.
fn reads(reader: &Reader<TopOfBook>, count: u64) -> (u64, u64) {
    let (mut torn, mut busy, mut index) = (0, 0, 0);
    for _ in 0..count {
        match reader.try_read(black_box(index)) {
            Ok(read) => torn += u64::from(read != quote(read.ts_event >> 1)),
            Err(_) => busy += 1,
        }
        index = if index + 1 == ENTRIES { 0 } else { index + 1 };
    }
    (torn, busy)
}

fn table(c: &mut Criterion) {
    let mut group = c.benchmark_group("table");
    let (mut writer, reader) = table::table::<TopOfBook>(ENTRIES);
    (0..ENTRIES).for_each(|index| writer.write(index, &quote(7)).expect("within the table"));
    assert_eq!(reads(&reader, 1_000), (0, 0));
    group.bench_function("read", |b| {
        b.iter_custom(|count| {
            let started = Instant::now();
            let (mut sum, mut index) = (0, 0);
            for _ in 0..count {
                // Uses every field without storing the quote in memory.
                sum ^= fold(&reader.try_read(black_box(index)).expect("there is no writer"));
                index = if index + 1 == ENTRIES { 0 } else { index + 1 };
            }
            black_box(sum);
            started.elapsed()
        });
    });
    group.bench_function("write", |b| {
        b.iter_custom(|count| {
            let started = Instant::now();
            writes(&mut writer, count);
            started.elapsed()
        });
    });
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (start, mut number) = (Instant::now(), 0);
            while !stop.load(Ordering::Relaxed) {
                // Wait, so that there is one write per microsecond.
                while start.elapsed() < Duration::from_micros(number) {}
                writer.write(number as usize % ENTRIES, &quote(number)).expect("within the table");
                number += 1;
            }
        });
        group.bench_function("read_against_a_writer", |b| {
            b.iter_custom(|count| {
                let started = Instant::now();
                let (torn, _) = reads(&reader, count);
                assert_eq!(torn, 0, "torn");
                started.elapsed()
            });
        });
        stop.store(true, Ordering::Relaxed);
    });
    group.finish();
}

criterion_group!(benches, table);
criterion_main!(benches);
