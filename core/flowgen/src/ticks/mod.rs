//! Ticks of many symbols whose prices follow geometric Brownian motion, computed in batches.
//!
//! A batch is computed by loops over arrays of [`LANES`] that the compiler vectorises to the widest
//! instructions of the CPU: random numbers, normals, the walk of the logarithms, prices and quantities. The
//! loops use only IEEE 754 additions, multiplications, divisions and square roots, none of them fused, so a
//! seed gives the same ticks on every machine.

mod config;
mod kernel;
mod normal;
mod streams;
mod tile;

use std::fmt;

use tickpath_lockfree::vectors::Width;
use tickpath_types::{Nanos, Price};
use zerocopy::FromZeros;

use crate::ConfigError;

pub use config::{MarketRegime, TickGeneratorConfig, TickSymbol, tick_symbol_name};
use kernel::{Batch, Walk, Words};
use streams::Streams;
use tile::{LANES, Tile};

/// Kind of a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct TickKind(u8);

impl TickKind {
    /// A quote: prices or quantities changed, without a trade.
    pub const QUOTE: TickKind = TickKind(0);
    /// A trade at the ask: the buyer was the aggressor.
    pub const TRADE_AT_ASK: TickKind = TickKind(1);
    /// A trade at the bid: the seller was the aggressor.
    pub const TRADE_AT_BID: TickKind = TickKind(2);

    /// True for a trade.
    #[inline]
    #[must_use]
    pub const fn is_trade(self) -> bool {
        self.0 != 0
    }
}

/// State of a symbol after a quote or trade, in one cache line.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[repr(align(64))]
pub struct Tick(
    /// Sequence number, time, bid, ask, price of the latest trade, volume, quantities of bid and ask, then
    /// the latest trade's quantity with symbol and kind. A shared word has its first field in the low bits.
    [u64; 8],
);

/// Declares the accessors of the fields in a tick's words.
macro_rules! tick_fields {
    ($($(#[$doc:meta])* $name:ident: $type:ty = |$words:ident| $value:expr;)*) => {
        impl Tick {
            $(
                $(#[$doc])*
                #[inline]
                #[must_use]
                pub const fn $name(&self) -> $type {
                    let $words = &self.0;
                    $value
                }
            )*
        }

        impl fmt::Debug for Tick {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct("Tick")$(.field(stringify!($name), &self.$name()))*.finish()
            }
        }
    };
}

tick_fields! {
    /// Sequence number of the tick, as set by the caller.
    sequence: u64 = |words| words[0];
    /// Time of the tick, by the caller's clock.
    ts: Nanos = |words| Nanos(words[1]);
    /// Best bid; a positive multiple of the symbol's tick size.
    bid: Price = |words| Price(words[2].cast_signed());
    /// Best ask, above the bid.
    ask: Price = |words| Price(words[3].cast_signed());
    /// Price of the latest trade; before the first trade, the starting price of the symbol.
    last: Price = |words| Price(words[4].cast_signed());
    /// Total quantity of the symbol's trades up to this tick.
    volume: u64 = |words| words[5];
    /// Quantity at the bid.
    bid_qty: u32 = |words| words[6] as u32;
    /// Quantity at the ask.
    ask_qty: u32 = |words| (words[6] >> 32) as u32;
    /// Quantity of the latest trade; 0 before the first one.
    last_qty: u32 = |words| words[7] as u32;
    /// Index of the symbol: [`TickGeneratorConfig::first_symbol`] plus its position in the configuration.
    symbol: u16 = |words| (words[7] >> 32) as u16;
    /// Kind of the tick.
    kind: TickKind = |words| TickKind((words[7] >> 48) as u8);
}

/// Sequence numbers and times of the ticks of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickStamps {
    /// Sequence number of the first tick; each following tick has one more.
    pub sequence: u64,
    /// Time of the first tick.
    pub ts: Nanos,
    /// Interval between ticks.
    pub interval: Nanos,
}

/// The ticks of a batch, stored as one array per word; iteration assembles each tick.
#[derive(Clone, Copy)]
pub struct Ticks<'a> {
    words: &'a Words,
    stamps: TickStamps,
    from: usize,
    end: usize,
}

impl<'a> Ticks<'a> {
    /// Number of ticks.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.end - self.from
    }

    /// True if there are no ticks.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.from == self.end
    }

    /// Skips the first `count` ticks, or all if there are fewer.
    #[inline]
    #[must_use]
    pub fn skip(self, count: usize) -> Ticks<'a> {
        Ticks { from: self.end.min(self.from + count), ..self }
    }

    /// Iterates over the ticks.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = Tick> + DoubleEndedIterator + use<'a> {
        let Ticks { words: [bid, ask, last, volume, sizes, about], stamps, from, end } = self;
        let end = end.min(LANES);
        let words = bid[from..end].iter().zip(&ask[from..end]).zip(&last[from..end]);
        let words = words.zip(&volume[from..end]).zip(&sizes[from..end]).zip(&about[from..end]);
        words.enumerate().map(move |(at, (((((bid, ask), last), volume), sizes), about))| {
            let place = (from + at) as u64;
            let ts = stamps.ts.0.wrapping_add(place.wrapping_mul(stamps.interval.0));
            Tick([stamps.sequence.wrapping_add(place), ts, *bid, *ask, *last, *volume, *sizes, *about])
        })
    }
}

impl PartialEq for Ticks<'_> {
    fn eq(&self, other: &Ticks<'_>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Ticks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// An endless generator of ticks.
///
/// Symbols take turns in the order of the configuration, so all tick equally often. The logarithm of a
/// symbol's price moves by normal steps around its drift; a jump is a step with a larger standard deviation.
/// The published bid and ask lie around the price, rounded to ticks. Quantities are uniform around the
/// symbol's mean. All random numbers are from xoshiro256++, with 64 parallel streams.
#[derive(Clone, Debug)]
pub struct TickGenerator {
    width: Width,
    streams: Streams,
    walk: Walk,
    tiles: Vec<Tile>,
    /// Index of the next tile, and of the next chunk in it.
    next: (usize, usize),
    /// Number of ticks of the latest batch, and their sequence numbers and times.
    len: usize,
    stamps: TickStamps,
    batch: Box<Batch>,
}

impl TickGenerator {
    /// Creates a generator at its first tick.
    ///
    /// # Errors
    /// [`ConfigError`] names the invalid value.
    pub fn new(config: &TickGeneratorConfig) -> Result<TickGenerator, ConfigError> {
        TickGenerator::with_width(config, Width::widest())
    }

    /// As [`new`](TickGenerator::new), with vectors of a given width. The ticks are the same.
    ///
    /// # Errors
    /// As for [`new`](TickGenerator::new).
    pub fn with_width(config: &TickGeneratorConfig, width: Width) -> Result<TickGenerator, ConfigError> {
        let steps = config.steps()?;
        Ok(TickGenerator {
            width,
            streams: Streams::new(config.seed),
            walk: Walk::new(&steps),
            tiles: Tile::build(config.trade_below(), config.first_symbol, &steps),
            next: (0, 0),
            len: 0,
            stamps: TickStamps::default(),
            batch: Box::new(Batch::new_zeroed()),
        })
    }

    /// Computes the next ticks, 1 to 128; their number depends on the number of symbols.
    #[inline]
    pub fn next_batch(&mut self, stamps: TickStamps) -> Ticks<'_> {
        let (tile, chunk) = self.next;
        let tile = &self.tiles[tile];
        let count = tile.count(chunk);
        let TickGenerator { width, streams, walk, batch, .. } = self;
        width.run(kernel::Next { streams, walk, tile, chunk, batch });
        self.next = if chunk + 1 < tile.chunks() {
            (self.next.0, chunk + 1)
        } else if self.next.0 + 1 < self.tiles.len() {
            (self.next.0 + 1, 0)
        } else {
            (0, 0)
        };
        (self.len, self.stamps) = (count, stamps);
        self.batch()
    }

    /// The ticks of the latest batch; none before the first batch.
    #[inline]
    #[must_use]
    pub fn batch(&self) -> Ticks<'_> {
        Ticks { words: &self.batch.words, stamps: self.stamps, from: 0, end: self.len }
    }

    /// Number of ticks in the next batch.
    #[must_use]
    pub fn next_len(&self) -> usize {
        self.tiles[self.next.0].count(self.next.1)
    }
}
