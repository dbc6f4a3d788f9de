//! A read of the time stamp counter, and a hop stamp, which is one such read and a store.

use tickpath_lockfree::cpu;
use tickpath_timing::{Hop, MarketId, StampKind, Trace, Tracer};
use tickpath_types::Sequence;

use super::prelude::*;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[
        row("tsc_read", "ns").note("one read of the time-stamp counter, in batches of 4096"),
        row("stamp", "ns")
            .note(
                "one hop stamp, its counter read included, in batches of 4096 between which the ring is \
                 drained",
            )
            .limit("tsc_read")
            .goal(Goal::RatioAtMost(1.6))
            .reference(
                "a C++ tick simulator 50 ns; Packt's trading ecosystem, a formatted log line, 232 cycles at \
                 best",
            ),
    ],
    open,
)];

/// Number of reads or stamps timed together; a busy agent makes as many stamps between two drains.
const BATCH: u64 = 4_096;
/// Capacity of the trace ring in records.
const RING: usize = 16_384;
/// Number of batches in a full round.
const BATCHES: usize = 500;

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let (mut trace, mut ring) = Trace::new(RING);
    each_round(lab, move |context| {
        let batches = context.effort.count(BATCHES);
        let (mut reads, mut stamps) = (Vec::with_capacity(batches), Vec::with_capacity(batches));
        // Alternate batches of reads and stamps, so that a slow period of the host affects both.
        for _ in 0..batches {
            reads.push(batch_ticks(|_| black_box(cpu::rdtsc())));
            stamps.push(batch_ticks(|number| trace.stamp(Hop::T9, MarketId::new(Sequence(number)))));
            trace.flush();
            let mut expected = 0;
            ring.drain(RING, |stamp| {
                let is_next =
                    matches!(stamp.decode(), Some(StampKind::Hop { hop: Hop::T9, id, .. }) if id == expected);
                expected += u64::from(is_next);
            });
            ensure!(expected == BATCH, "{expected} of {BATCH} stamps came through the ring");
        }
        let nanos = |ticks: &mut [u64]| context.quantile_ns(ticks, 0.5) / BATCH as f64;
        Ok([nanos(&mut reads), nanos(&mut stamps)])
    })
}

fn batch_ticks(mut work: impl FnMut(u64) -> u64) -> u64 {
    let start = cpu::rdtsc_ordered();
    for number in 0..BATCH {
        black_box(work(black_box(number)));
    }
    cpu::rdtsc_ordered() - start
}
