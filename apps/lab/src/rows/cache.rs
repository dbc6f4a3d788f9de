//! Writes and reads of a quote in the symbol cache in shared memory, without a concurrent writer and with one
//! on the other core.

use tempfile::TempDir;
use tickpath_lockfree::cpu;
use tickpath_shm::{Folder, SegmentConfig, SegmentName, SegmentReader, SegmentWriter};
use tickpath_types::{Nanos, PriceLevel, TopOfBook};

use super::prelude::*;

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_one_core(
        &[
            row("cache_write", "ns")
                .note(
                    "a quote of 56 bytes into the symbol cache in shared memory, 100 instruments, in batches \
                     of 4096",
                )
                .reference("20.5 ns published, 22.8 ns on this kind of host"),
            row("cache_read", "ns")
                .note(
                    "the same out of it by a reader that has it mapped read-only, every field added up and \
                     checked",
                )
                .reference("42.5 ns published, 7.7 ns on this kind of host"),
        ],
        open_alone,
    ),
    on_two_cores(
        &[row("cache_read_contended", "ns").note(
            "the same against a million writes a second on the other core - those that it misses while \
                 the host takes the core follow at once - in groups of 16 (a step of the counter is too \
                 coarse for one): p99 of a group's time per read; every read is checked",
        )],
        open_contended,
    ),
];

/// Number of instruments, as in the tick simulator.
const ROWS: usize = 100;
/// Number of writes or reads timed together when there is no contention.
const BATCH: usize = 4_096;
/// Number of batches in a full round.
const BATCHES: usize = 2_000;
/// Number of reads timed together against a writer: the resolution of the TSC is too coarse for a single one.
const GROUP: usize = 16;
/// Number of reads after each group that are checked and not timed.
const UNTIMED: usize = 400;
/// Number of groups in a full round: 200 million reads, including the untimed ones.
const GROUPS: usize = 480_000;
/// Time between two writes: a rate of a million a second.
const WRITE_INTERVAL: Nanos = Nanos(1_000);
/// Number of writes between two checks of whether the reader has ended.
const WRITES_PER_CHECK: u64 = 256;

/// A segment in shared memory, mapped twice, as by two processes.
struct CacheSetup {
    _temp_dir: TempDir,
    writer: SegmentWriter,
    reader: SegmentReader,
}

impl CacheSetup {
    fn open() -> anyhow::Result<CacheSetup> {
        let temp_dir = tempfile::Builder::new()
            .prefix("tickpath-lab-")
            .tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .context("cannot make a folder")?;
        let (folder, name) = (Folder::create(temp_dir.path())?, SegmentName::new("cache")?);
        let config = SegmentConfig { rows: ROWS as u64, stream_capacity: 0, ..SegmentConfig::default() };
        let mut writer = SegmentWriter::create(&folder, &name, &config, Nanos(1))?;
        for row in 0..ROWS {
            writer.write(row, &quote(row as u64))?;
        }
        let reader = SegmentReader::open(&folder, &name)?;
        Ok(CacheSetup { _temp_dir: temp_dir, writer, reader })
    }
}

/// Builds quote `number`. The XOR of its words is 0, and that of a mix of two quotes is not.
fn quote(number: u64) -> TopOfBook {
    let word = |odd: u64| number.wrapping_add(1).wrapping_mul(odd).rotate_left(17);
    let mut quote = TopOfBook {
        bid: PriceLevel { price: word(0x9e37_79b9_7f4a_7c15) as i64, qty: word(0xbf58_476d_1ce4_e5b9) },
        ask: PriceLevel { price: word(0x94d0_49bb_1331_11eb) as i64, qty: word(0xd6e8_feb8_6659_fd93) },
        last_price: number as i64,
        last_qty: word(0xa076_1d64_78bd_642f) as u32,
        ..TopOfBook::default()
    };
    quote.ts_event = sum(&quote);
    quote
}

/// Returns the XOR of a quote's words: 0 for a consistent quote.
#[inline(always)]
fn sum(quote: &TopOfBook) -> u64 {
    let state = u64::from(quote.last_qty)
        | u64::from(quote.health) << 32
        | u64::from(quote.trading_state) << 40
        | u64::from(quote.suspect_reason) << 48
        | u64::from(quote.reserved) << 56;
    quote.bid.price as u64
        ^ quote.bid.qty
        ^ quote.ask.price as u64
        ^ quote.ask.qty
        ^ quote.last_price as u64
        ^ quote.ts_event
        ^ state
}

/// Returns `len` row indexes in permuted order.
fn order(len: usize) -> Vec<usize> {
    (0..len).map(|place| place * 37 % ROWS).collect()
}

/// Measures writes and reads without contention.
fn open_alone(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let mut setup = CacheSetup::open()?;
    let order = order(BATCH);
    let quotes: Vec<TopOfBook> = (0..BATCH as u64).map(quote).collect();
    each_round(lab, move |context| {
        let batches = context.effort.count(BATCHES);
        let (mut writes, mut reads) = (Vec::with_capacity(batches), Vec::with_capacity(batches));
        // Alternate batches of writes and reads, so that a slow period of the host affects both.
        for _ in 0..batches {
            let start = cpu::rdtsc_ordered();
            for (row, quote) in order.iter().zip(&quotes) {
                // Cannot fail, because the row exists.
                let _ = setup.writer.write(*row, quote);
            }
            writes.push(cpu::rdtsc_ordered() - start);
            let start = cpu::rdtsc_ordered();
            let counts = read(&setup.reader, &order);
            reads.push(cpu::rdtsc_ordered() - start);
            ensure!(counts.whole == BATCH as u64, "{} of {BATCH} quotes were read", counts.whole);
        }
        for row in 0..ROWS {
            let last = order.iter().zip(&quotes).rfind(|(at, _)| **at == row).map(|(_, quote)| *quote);
            ensure!(setup.reader.try_read(row).ok() == last, "row {row} has not the quote written last");
        }
        let nanos = |ticks: &mut [u64]| context.quantile_ns(ticks, 0.5) / BATCH as f64;
        Ok([nanos(&mut writes), nanos(&mut reads)])
    })
}

/// Numbers of consistent, torn and failed reads.
#[derive(Default)]
struct ReadCounts {
    whole: u64,
    torn: u64,
    /// Reads that failed because a write was in progress at every attempt.
    busy: u64,
}

#[inline(always)]
fn read(reader: &SegmentReader, order: &[usize]) -> ReadCounts {
    let mut counts = ReadCounts::default();
    for row in order {
        match reader.try_read(black_box(*row)) {
            Ok(quote) if sum(&quote) == 0 => counts.whole += 1,
            Ok(_) => counts.torn += 1,
            Err(_) => counts.busy += 1,
        }
    }
    counts
}

/// Measures reads against a writer on the other core.
fn open_contended(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let CacheSetup { _temp_dir: temp_dir, mut writer, reader } = CacheSetup::open()?;
    let order = order(GROUP * ROWS);
    let between: Vec<usize> = order.iter().copied().cycle().take(UNTIMED).collect();
    // Totals over all rounds.
    let (mut reads, mut busy, mut written, mut time) = (0, 0, 0, Nanos(0));
    each_round(lab, move |context| {
        let _temp_dir = &temp_dir;
        let groups = context.effort.count(GROUPS);
        let (mut ticks, counts, took) = context.run_on_two_cores(
            |stop| write_paced(context, stop, &mut writer, &mut written),
            |_| {
                let start = context.clock.ticks();
                let mut ticks = Vec::with_capacity(groups);
                let mut all = ReadCounts::default();
                for group in order.chunks_exact(GROUP).cycle().take(groups) {
                    let start = cpu::rdtsc_ordered();
                    let timed = read(&reader, group);
                    ticks.push(cpu::rdtsc_ordered() - start);
                    for counts in [timed, read(&reader, &between)] {
                        all.whole += counts.whole;
                        all.torn += counts.torn;
                        all.busy += counts.busy;
                    }
                }
                Ok((ticks, all, context.clock.ticks() - start))
            },
        )?;
        let reads_now = (groups * (GROUP + UNTIMED)) as u64;
        ensure!(counts.torn == 0, "{} of {reads_now} quotes were torn", counts.torn);
        ensure!(
            counts.whole + counts.busy == reads_now,
            "{} of {reads_now} reads came back",
            counts.whole + counts.busy
        );
        (reads, busy) = (reads + reads_now, busy + counts.busy);
        time = time + context.clock.ticks_to_nanos(took);
        let note = format!(
            "{:.0} M reads, 0 torn, {busy} given up; p50 {:.1} ns; {:.2} M writes/s",
            reads as f64 / 1e6,
            context.quantile_ns(&mut ticks, 0.5) / GROUP as f64,
            written as f64 / time.as_secs_f64() / 1e6,
        );
        let p99 = context.quantile_ns(&mut ticks, 0.99) / GROUP as f64;
        Ok([Sample::with_note(p99, note)])
    })
}

/// Writes at [`WRITE_INTERVAL`] until the reader has ended. Makes up for writes that are late because the
/// thread lost its core.
fn write_paced(
    context: &Context,
    stop: &StopSignal,
    writer: &mut SegmentWriter,
    written: &mut u64,
) -> anyhow::Result<()> {
    let interval = context.clock.nanos_to_ticks(WRITE_INTERVAL);
    let mut due = context.clock.ticks();
    loop {
        if written.is_multiple_of(WRITES_PER_CHECK) && stop.is_stopped() {
            return Ok(());
        }
        let value = quote(*written);
        while context.clock.ticks() < due {}
        writer.write(*written as usize % ROWS, &value)?;
        *written += 1;
        due += interval;
    }
}
