//! Cost of recording when a message passed an agent (a hop stamp): a read of the time-stamp counter and a
//! push of a 16-byte record.
//!
//! `cargo bench -p tickpath-lockfree --bench stamp`
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use tickpath_lockfree::{cpu, records};

/// Number of stamps in a batch. The ring is drained between batches, outside the measured time.
const BATCH: usize = 4096;

fn stamp(criterion: &mut Criterion) {
    let (mut producer, mut consumer) = records::channel::<[u64; 2]>(BATCH);
    for id in 0..BATCH as u64 {
        assert!(producer.push([id, cpu::rdtsc()]));
    }
    producer.flush();
    let mut expected = 0;
    consumer.drain(BATCH, |record| {
        assert_eq!(record[0], expected);
        expected += 1;
    });
    assert_eq!((expected, producer.dropped()), (BATCH as u64, 0));

    let mut group = criterion.benchmark_group("stamp");
    group.throughput(criterion::Throughput::Elements(BATCH as u64));
    group.bench_function("rdtsc", |bencher| {
        bencher.iter(|| (0..BATCH).for_each(|_| _ = black_box(cpu::rdtsc())));
    });
    group.bench_function("rdtsc_ordered", |bencher| {
        bencher.iter(|| (0..BATCH).for_each(|_| _ = black_box(cpu::rdtsc_ordered())));
    });
    let producer = core::cell::RefCell::new(producer);
    let mut drain = || {
        producer.borrow_mut().flush();
        consumer.drain(BATCH, |_| {})
    };
    group.bench_function("push", |bencher| {
        let push = |_| {
            let mut producer = producer.borrow_mut();
            (0..BATCH as u64).for_each(|id| _ = producer.push(black_box([id, id])));
        };
        bencher.iter_batched(&mut drain, push, BatchSize::PerIteration);
    });
    group.bench_function("rdtsc and push", |bencher| {
        let push = |_| {
            let mut producer = producer.borrow_mut();
            (0..BATCH as u64).for_each(|id| _ = producer.push([id, cpu::rdtsc()]));
        };
        bencher.iter_batched(&mut drain, push, BatchSize::PerIteration);
    });
    assert_eq!(producer.borrow().dropped(), 0);
}

criterion_group!(benches, stamp);
criterion_main!(benches);
