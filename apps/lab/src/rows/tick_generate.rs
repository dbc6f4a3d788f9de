//! Time to generate ticks in batches.

use tickpath_flowgen::{MarketRegime, Tick, TickGenerator, TickGeneratorConfig, TickStamps, Ticks};
use tickpath_lockfree::vectors::{Width, Work};

use super::prelude::*;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[row("tick_generate", "ns")
        .note("a tick of 100 symbols made in batches, jumps included, every field folded")
        .reference("245 ns; 57 ns measured on a host of this kind")],
    open,
)];

/// Number of ticks in a full round.
const TICKS: usize = 20_000_000;
const SYMBOLS: usize = 100;
/// Number of ticks compared before timing: the widest and the narrowest vectors must generate the same ones.
const COMPARED: usize = 100_000;

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let market = TickGeneratorConfig::market(MarketRegime::Neutral, SYMBOLS, 7).with_jumps(10, 100);
    check(&market)?;
    let mut generator = TickGenerator::new(&market)?;
    let width = Width::widest();
    each_round(lab, move |context| {
        let count = context.effort.count(TICKS) as u64;
        let (mut made, mut sum) = (0, 0);
        let ticks = context.timed(|| {
            while made < count {
                let stamps = TickStamps { sequence: made, ts: Nanos(made * 10), interval: Nanos(10) };
                let batch = generator.next_batch(stamps);
                made += batch.len() as u64;
                sum = width.run(Digest { ticks: batch, sum });
            }
            Ok(())
        })?;
        let last = generator.batch().iter().next_back().map(|tick| tick.sequence());
        ensure!(last == Some(made - 1) && black_box(sum) != 0, "ticks are missing");
        let value = context.nanos_each(ticks, made);
        let note = format!("vectors of {} bytes", width.bytes());
        Ok([Sample::with_note(value, note)])
    })
}

/// Digest of every field of every tick, so that the compiler cannot omit a field.
struct Digest<'a> {
    ticks: Ticks<'a>,
    sum: u64,
}

impl Work for Digest<'_> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        self.ticks.iter().fold(self.sum, fold)
    }
}

/// Folds every field of a tick into `sum`.
#[inline(always)]
fn fold(sum: u64, tick: Tick) -> u64 {
    let prices = (tick.bid().0 ^ tick.ask().0 ^ tick.last().0).cast_unsigned();
    let quantities = u64::from(tick.bid_qty() ^ tick.ask_qty() ^ tick.last_qty());
    let about = u64::from(tick.symbol()) ^ u64::from(tick.kind().is_trade());
    sum.wrapping_add(prices ^ quantities ^ tick.volume() ^ tick.sequence() ^ tick.ts().0 ^ about)
}

/// Checks that the ticks are valid, and equal for all vector widths.
fn check(market: &TickGeneratorConfig) -> anyhow::Result<()> {
    let mut widest = TickGenerator::new(market)?;
    let mut baseline = TickGenerator::with_width(market, Width::BASELINE)?;
    let mut compared = 0;
    while compared < COMPARED {
        let stamps = TickStamps { sequence: compared as u64, ..TickStamps::default() };
        let batch = widest.next_batch(stamps);
        ensure!(batch == baseline.next_batch(stamps), "vectors of two widths made different ticks");
        ensure!(batch.iter().all(|tick| tick.bid() < tick.ask() && tick.bid_qty() > 0), "a quote is invalid");
        compared += batch.len();
    }
    Ok(())
}
