//! Loops that compute a batch of ticks.
//!
//! Each loop does one stage of the computation for all lanes; no vectorised loop has a branch.

use std::f32::consts::LN_2;
use std::ops::Range;

use super::config::StepParameters;
use super::normal::normals;
use super::streams::{STREAMS, Streams};
use super::tile::{LANES, Lanes, Tile};
use tickpath_lockfree::vectors::Work;
use zerocopy::FromZeros;

/// Adding this to a number below 2^51 puts the nearest integer into the sum's low bits; ties go to even.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// The same as [`ROUND`], for `f32` numbers below 2^22.
const ROUND_F32: f32 = 12_582_912.0;
/// Position of the exponent's lowest bit in an `f32`, and the biased exponent of 1.0.
const EXPONENT_SHIFT: u32 = 23;
const EXPONENT_OF_ONE: u32 = 127;
/// Maximum magnitude of the base-2 logarithm of a price relative to its start: a factor of 32 up or down.
const WANDER_LOG: f64 = 5.0;

/// Bit positions in a lane's 64 random bits: four bytes for quantities and spread, then 20 bits for jump, 11
/// for trade, 1 for side.
const SPREAD_SHIFT: u32 = 24;
const JUMP_SHIFT: u32 = 32;
const TRADE_SHIFT: u32 = 52;
const SIDE_SHIFT: u32 = 63;
const BYTE: u32 = 0xff;
const JUMP_MASK: u32 = (1 << (TRADE_SHIFT - JUMP_SHIFT)) - 1;
const TRADE_BITS: u32 = SIDE_SHIFT - TRADE_SHIFT;
const TRADE_MASK: u32 = (1 << TRADE_BITS) - 1;

/// Current state of each symbol.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// Base-2 logarithm of the price relative to its start, and its drift per tick.
    logs: Vec<f64>,
    drift: Vec<f64>,
    /// Price in ticks and quantity of the latest trade, and the total quantity of trades.
    last: Vec<u32>,
    last_qty: Vec<u32>,
    volume: Vec<u64>,
}

impl Walk {
    pub(super) fn new(steps: &[StepParameters]) -> Walk {
        Walk {
            logs: vec![0.0; steps.len()],
            drift: steps.iter().map(|step| step.drift).collect(),
            last: steps.iter().map(|step| step.start).collect(),
            last_qty: vec![0; steps.len()],
            volume: vec![0; steps.len()],
        }
    }
}

/// Words of a batch's ticks, one array per word: bid, ask, price of the latest trade, volume, both quantities
/// of the quote, and the quantity of the latest trade with symbol and kind.
pub(super) type Words = [[u64; LANES]; 6];

/// The lanes of a batch, and the words of the resulting ticks.
#[derive(Clone, Debug, FromZeros)]
#[repr(align(64))]
pub(super) struct Batch {
    pairs: [u64; STREAMS],
    normals: [[f32; STREAMS]; 2],
    bits: [u64; LANES],
    /// Changes of the prices' logarithms; `step` replaces them by the new logarithms.
    logs: [f64; LANES],
    /// Prices in ticks.
    bid: [u32; LANES],
    ask: [u32; LANES],
    /// Price if this tick is a trade; `update_totals` replaces it by the price of the latest trade.
    last: [u32; LANES],
    bid_qty: [u32; LANES],
    ask_qty: [u32; LANES],
    last_qty: [u32; LANES],
    kind: [u32; LANES],
    pub(super) words: Words,
}

/// Computation of the ticks of one chunk of a tile.
pub(super) struct Next<'a> {
    pub(super) streams: &'a mut Streams,
    pub(super) walk: &'a mut Walk,
    pub(super) tile: &'a Tile,
    pub(super) chunk: usize,
    pub(super) batch: &'a mut Batch,
}

impl Work for Next<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Next { streams, walk, tile, chunk, batch } = self;
        let lanes = tile.lanes(chunk);
        draw(streams, lanes, batch);
        step(walk, tile, chunk, &mut batch.logs);
        quote(lanes, batch);
        size(lanes, batch);
        trade(tile.trade_below, batch);
        update_totals(walk, tile, chunk, batch);
        pack(lanes, batch);
    }
}

/// Draws random bits for each lane, and the step of its price's logarithm without the drift.
#[inline(always)]
fn draw(streams: &mut Streams, lanes: &Lanes, batch: &mut Batch) {
    streams.fill(&mut batch.pairs);
    let [first, second] = &mut batch.normals;
    for ((first, second), bits) in first.iter_mut().zip(second).zip(&batch.pairs) {
        (*first, *second) = normals(*bits);
    }
    for half in batch.bits.as_chunks_mut::<STREAMS>().0 {
        streams.fill(half);
    }
    let normals = batch.normals.as_flattened();
    let normals: &[f32; LANES] = normals.try_into().expect("two halves of the lanes");
    for (lane, normal) in normals.iter().enumerate() {
        let is_jump = (batch.bits[lane] >> JUMP_SHIFT) as u32 & JUMP_MASK < lanes.jump_below[lane];
        let (sigma, jump_sigma) = (lanes.sigma[lane], lanes.jump_sigma[lane]);
        batch.logs[lane] = f64::from(normal * if is_jump { jump_sigma } else { sigma });
    }
}

/// Iterates over runs of lanes with adjacent symbols, as pairs of lane range and symbol range. Callers must
/// process a run in a loop: a closure would be compiled as a separate function without the wide vectors.
struct Runs {
    from: usize,
    place: usize,
    count: usize,
    symbols: Range<usize>,
}

impl Runs {
    #[inline(always)]
    fn new(tile: &Tile, chunk: usize) -> Runs {
        let symbols = tile.first..tile.first + tile.symbols;
        Runs { from: 0, place: chunk * LANES % tile.symbols, count: tile.count(chunk), symbols }
    }
}

impl Iterator for Runs {
    type Item = (Range<usize>, Range<usize>);

    #[inline(always)]
    fn next(&mut self) -> Option<(Range<usize>, Range<usize>)> {
        let Runs { from, place, count, ref symbols } = *self;
        let len = (symbols.len() - place).min(count - from);
        let first = symbols.start + place;
        (self.from, self.place) = (from + len, 0);
        (len > 0).then_some((from..from + len, first..first + len))
    }
}

/// Adds each lane's step and drift to the logarithm of its symbol's price, bounded by [`WANDER_LOG`].
#[inline(always)]
fn step(walk: &mut Walk, tile: &Tile, chunk: usize, logs: &mut [f64; LANES]) {
    for (lanes, symbols) in Runs::new(tile, chunk) {
        let logs = &mut logs[lanes];
        let walked = &mut walk.logs[symbols.clone()];
        let drift = &walk.drift[symbols];
        for at in 0..logs.len().min(walked.len()).min(drift.len()) {
            let next = walked[at] + (logs[at] + drift[at]);
            let next = if next < -WANDER_LOG { -WANDER_LOG } else { next };
            walked[at] = if next > WANDER_LOG { WANDER_LOG } else { next };
            logs[at] = walked[at];
        }
    }
}

/// Computes bid and ask around the price, rounded outwards to ticks.
#[inline(always)]
fn quote(lanes: &Lanes, batch: &mut Batch) {
    for lane in 0..LANES {
        let price = lanes.start[lane] * exp2(batch.logs[lane]);
        // Eight random bits as a number from 0.5 to 1.5.
        let random = (batch.bits[lane] >> SPREAD_SHIFT) as u32 & BYTE;
        let share = f32::from_bits(1.0_f32.to_bits() | random << 15) - 0.5;
        let half = price * lanes.half_spread[lane] * share;
        let (bid, ask) = (round(price - half - 0.5), round(price + half + 0.5));
        batch.bid[lane] = bid;
        // If bid and ask round to the same even tick, the ask is raised by one tick.
        batch.ask[lane] = ask.max(bid + 1);
    }
}

/// Computes the quantities of bid, ask and trade, uniform from 0.5 to 1.5 times the mean.
#[inline(always)]
fn size(lanes: &Lanes, batch: &mut Batch) {
    for lane in 0..LANES {
        let (bits, mean) = (batch.bits[lane] as u32, lanes.qty_mean[lane]);
        let qty = |random: u32| (mean * (128 + (random & BYTE))) >> 8;
        batch.bid_qty[lane] = qty(bits);
        batch.ask_qty[lane] = qty(bits >> 8);
        batch.last_qty[lane] = qty(bits >> 16);
    }
}

/// Decides which ticks are trades, and sets their prices. Values are selected by masks, so that the compiler
/// vectorises the loop.
#[inline(always)]
fn trade(trade_below: u32, batch: &mut Batch) {
    for lane in 0..LANES {
        let (bid, ask) = (batch.bid[lane], batch.ask[lane]);
        let bits = (batch.bits[lane] >> TRADE_SHIFT) as u32;
        let is_sell = bits >> TRADE_BITS;
        let is_trade = u32::from(bits & TRADE_MASK < trade_below);
        batch.last[lane] = ask ^ (ask ^ bid) & is_sell.wrapping_neg();
        batch.kind[lane] = (1 + is_sell) & is_trade.wrapping_neg();
    }
}

/// Updates the latest trade and the volume of each tick's symbol.
#[inline(always)]
fn update_totals(walk: &mut Walk, tile: &Tile, chunk: usize, batch: &mut Batch) {
    for (lanes, symbols) in Runs::new(tile, chunk) {
        let (price, qty) = (&mut batch.last[lanes.clone()], &mut batch.last_qty[lanes.clone()]);
        let (kind, volume) = (&batch.kind[lanes.clone()], &mut batch.words[3][lanes]);
        let (last, last_qty) = (&mut walk.last[symbols.clone()], &mut walk.last_qty[symbols.clone()]);
        let total = &mut walk.volume[symbols];
        let len = price.len().min(qty.len()).min(kind.len()).min(volume.len());
        for at in 0..len.min(last.len()).min(last_qty.len()).min(total.len()) {
            // Sets all bits for a trade (kind 1 or 2). A comparison would compile to slow masked stores.
            let mask = ((kind[at] + 1) >> 1).wrapping_neg();
            volume[at] = total[at] + u64::from(qty[at] & mask);
            price[at] = last[at] ^ (last[at] ^ price[at]) & mask;
            qty[at] = last_qty[at] ^ (last_qty[at] ^ qty[at]) & mask;
            (last[at], last_qty[at], total[at]) = (price[at], qty[at], volume[at]);
        }
    }
}

/// Packs the words of the ticks: multiplies prices by the tick size, and joins fields that share a word.
#[inline(always)]
fn pack(lanes: &Lanes, batch: &mut Batch) {
    let [bid, ask, last, _, sizes, about] = &mut batch.words;
    for lane in 0..LANES {
        let tick_size = u64::from(lanes.tick_size[lane]);
        bid[lane] = u64::from(batch.bid[lane]) * tick_size;
        ask[lane] = u64::from(batch.ask[lane]) * tick_size;
        last[lane] = u64::from(batch.last[lane]) * tick_size;
        sizes[lane] = u64::from(batch.bid_qty[lane]) | u64::from(batch.ask_qty[lane]) << 32;
        let symbol = lanes.symbol[lane] | batch.kind[lane] << 16;
        about[lane] = u64::from(batch.last_qty[lane]) | u64::from(symbol) << 32;
    }
}

/// Rounds a number from 0 to 2^22 to the nearest integer; ties round to even.
#[inline(always)]
fn round(x: f32) -> u32 {
    (x + ROUND_F32).to_bits().wrapping_sub(ROUND_F32.to_bits())
}

/// Two to the power of a number between -100 and 100, with a relative error of about 10^-7.
#[inline(always)]
fn exp2(x: f64) -> f32 {
    let whole = x + ROUND;
    let rest = (x - (whole - ROUND)) as f32;
    // Series of e^(rest ln 2).
    let fourth = 9.618_129e-3 + rest * (1.333_355_8e-3 + rest * 1.540_353e-4);
    let series = 1.0 + rest * (LN_2 + rest * (0.240_226_5 + rest * (5.550_41e-2 + rest * fourth)));
    series * f32::from_bits((whole.to_bits() as u32).wrapping_add(EXPONENT_OF_ONE) << EXPONENT_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_matches_the_library() {
        for thousandths in -20_000..20_000 {
            let x = f64::from(thousandths) / 1e3;
            assert!((f64::from(exp2(x)) / x.exp2() - 1.0).abs() < 4e-7, "{x}: {} {}", exp2(x), x.exp2());
        }
    }

    #[test]
    fn rounding_goes_to_the_nearest() {
        for (x, nearest) in [(0.4, 0), (0.6, 1), (1.5, 2), (2.5, 2), (4_194_303.5, 4_194_304)] {
            assert_eq!(round(x), nearest, "{x}");
        }
    }
}
