//! Measures tick generation in batches; a digest of all fields keeps the compiler from removing the work.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tickpath_flowgen::{MarketRegime, Tick, TickGenerator, TickGeneratorConfig, TickStamps};
use tickpath_lockfree::vectors::Width;
use tickpath_types::Nanos;

const TICKS: u64 = 100_000;

fn fold(sum: u64, tick: Tick) -> u64 {
    let prices = (tick.bid().0 ^ tick.ask().0 ^ tick.last().0) as u64;
    let sizes = u64::from(tick.bid_qty() ^ tick.ask_qty() ^ tick.last_qty());
    sum.wrapping_add(
        prices
            ^ sizes
            ^ tick.sequence()
            ^ tick.ts().0
            ^ u64::from(tick.symbol())
            ^ u64::from(tick.kind().is_trade())
            ^ tick.volume(),
    )
}

fn ticks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tick_generate");
    group.throughput(Throughput::Elements(TICKS));
    for symbols in [100, 1, 10, 1_000, 10_000] {
        for width in Width::available() {
            let config = TickGeneratorConfig::market(MarketRegime::Neutral, symbols, 7);
            let mut generator = TickGenerator::with_width(&config, width).expect("a market of ours");
            group.bench_function(format!("{symbols} symbols, {} bytes", width.bytes()), |bencher| {
                let (mut sequence, mut sum) = (0, 0);
                bencher.iter(|| {
                    let end = sequence + TICKS;
                    while sequence < end {
                        let stamps = TickStamps { sequence, ts: Nanos(sequence), interval: Nanos(1) };
                        let batch = generator.next_batch(stamps);
                        assert_eq!(batch.iter().next().map(|tick| tick.sequence()), Some(sequence));
                        sequence += batch.len() as u64;
                        sum = batch.iter().fold(sum, fold);
                    }
                    black_box(sum)
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, ticks);
criterion_main!(benches);
