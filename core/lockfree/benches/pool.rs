//! Allocate and free a 64-byte object: the same slot again, and in shuffled order from a warm pool.
//!
//! `cargo bench -p tickpath-lockfree --bench pool`
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tickpath_lockfree::pool::{Pool, Slot};

type Order = [u64; 7];

const CAPACITY: usize = 512;

fn pool(criterion: &mut Criterion) {
    let mut pool = Pool::<Order>::with_capacity(CAPACITY);
    let slot = pool.allocate([3; 7]).expect("the pool is empty");
    assert_eq!(pool[slot], [3; 7]);
    assert_eq!(pool.free(slot), [3; 7]);

    let mut group = criterion.benchmark_group("pool");
    group.bench_function("allocate and free", |bencher| {
        bencher.iter(|| {
            let slot = pool.allocate([black_box(3); 7]).expect("there is one object at most");
            pool.free(black_box(slot))[0]
        });
    });

    let mut held: Vec<Slot> = (0..CAPACITY).map(|_| pool.allocate([1; 7]).expect("it is empty")).collect();
    let order: Vec<usize> = (0..CAPACITY).map(|index| index * 167 % CAPACITY).collect();
    group.throughput(Throughput::Elements(CAPACITY as u64));
    group.bench_function("free and allocate all, shuffled", |bencher| {
        bencher.iter(|| {
            for &index in &order {
                black_box(pool.free(held[index])[0]);
            }
            for &index in &order {
                held[index] = pool.allocate([black_box(1); 7]).expect("all were freed");
            }
        });
    });
    assert_eq!(pool.len(), CAPACITY);
}

criterion_group!(benches, pool);
criterion_main!(benches);
