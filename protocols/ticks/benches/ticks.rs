//! Benchmarks on one thread, in memory: filling the checksums of ticks, and parsing a stream in pieces of
//! several lengths.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tickpath_ticks::checksum::{fill_checksums, with_checksum};
use tickpath_ticks::message::{Hello, Message, Place, Quote, TICK_LEN, Tick, Trade};
use tickpath_ticks::parser::{TickListener, TickParser};
use tickpath_types::{InstrumentId, Nanos, Price};
use zerocopy::IntoBytes;

const TICKS: usize = 20_000;

fn ticks() -> Vec<Tick> {
    (1..=TICKS as u64)
        .map(|sequence| {
            let instrument = InstrumentId((sequence * 7919 % 100) as u16 + 1);
            let place = Place { instrument, symbol_sequence: sequence as u32, sequence };
            let (price, ts) = (Price(1_000_000 + sequence as i64 % 1000), Nanos(sequence));
            match sequence * 2_654_435_761 % 10 {
                0..3 => Trade::new(place, ts, price, 100, None, sequence * 100, 7).into(),
                _ => Quote::new(place, ts, (price, 300), (price, 200), 7).into(),
            }
        })
        .collect()
}

struct Sum(u64);

impl TickListener for Sum {
    fn on_ticks(&mut self, ticks: &[Tick]) {
        self.0 += ticks.len() as u64;
    }
}

fn parse(c: &mut Criterion) {
    let mut sealed = ticks();
    fill_checksums(&mut sealed);
    let hello = with_checksum(Hello::server(1, 1, 1000, 100, Nanos(0)));
    let stream = [hello.as_bytes(), sealed.as_bytes()].concat();
    let mut group = c.benchmark_group("parse");
    group.throughput(Throughput::Elements(TICKS as u64));
    for len in [65_536, 4096, 1448, 100] {
        // The parser's buffer already holds the whole stream, so nothing is copied; each `commit` parses the
        // next piece of it.
        group.bench_with_input(BenchmarkId::from_parameter(len), &len, |b, len| {
            let received = || {
                let mut parser = TickParser::with_buffer(2 * stream.len() + 2);
                parser.free_space()[..stream.len()].copy_from_slice(&stream);
                parser
            };
            b.iter_batched_ref(
                received,
                |parser| {
                    let mut sum = Sum(0);
                    for piece in black_box(&stream).chunks(*len) {
                        black_box(parser.free_space());
                        parser.commit(piece.len(), &mut sum).expect("the stream is good");
                    }
                    assert_eq!((sum.0, parser.stats().lost), (TICKS as u64, 0));
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

fn write(c: &mut Criterion) {
    let mut group = c.benchmark_group("write");
    group.throughput(Throughput::Elements(TICKS as u64));
    let mut written = ticks();
    group.bench_function("seal", |b| {
        b.iter(|| fill_checksums(black_box(&mut written)));
    });
    assert_eq!(written.as_bytes().len(), TICKS * TICK_LEN);
    assert_eq!(Hello::LEN, TICK_LEN);
    group.finish();
}

criterion_group!(benches, parse, write);
criterion_main!(benches);
