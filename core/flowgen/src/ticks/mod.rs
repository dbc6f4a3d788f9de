//! Ticks of many symbols whose prices follow geometric Brownian motion, made a batch at a time.
//!
//! A batch goes through loops over arrays of [`LANES`] that the compiler turns into the widest vector instructions
//! that the CPU has: random numbers, normals, the walk of the logarithms, prices and quantities. Only additions,
//! multiplications, divisions and square roots of IEEE 754 are used, none of them fused, so a
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

pub use config::{MarketMood, TickGeneratorConfig, TickSymbol, tick_symbol_name};
use kernel::{Batch, Walk, Words};
use streams::Streams;
use tile::{LANES, Tile};

/// What a tick is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct TickKind(u8);

impl TickKind {
    /// Prices or quantities changed.
    pub const QUOTE: TickKind = TickKind(0);
    /// A trade at the ask: the buyer came to the market.
    pub const TRADE_AT_ASK: TickKind = TickKind(1);
    /// A trade at the bid: the seller came to the market.
    pub const TRADE_AT_BID: TickKind = TickKind(2);

    /// Whether somebody traded.
    #[inline]
    #[must_use]
    pub const fn is_trade(self) -> bool {
        self.0 != 0
    }
}

/// The state of a symbol after an event; a cache line.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[repr(align(64))]
pub struct Tick(
    /// Sequence, time, bid, ask, price of the latest trade, volume, then the quantities of bid and ask, and the
    /// latest quantity with symbol and kind, the first of each in the lowest bits.
    [u64; 8],
);

/// Declares what is read out of a tick's words.
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
    /// Number of the tick, as the caller counts.
    sequence: u64 = |words| words[0];
    /// When it happened, as the caller's clock goes.
    ts: Nanos = |words| Nanos(words[1]);
    /// Best bid; a multiple of the symbol's tick size, above 0.
    bid: Price = |words| Price(words[2].cast_signed());
    /// Best ask, above the bid.
    ask: Price = |words| Price(words[3].cast_signed());
    /// Price of the latest trade; before the first one the price that the symbol began with.
    last: Price = |words| Price(words[4].cast_signed());
    /// Quantity of all trades of the symbol, this one included.
    volume: u64 = |words| words[5];
    /// Quantity at the bid.
    bid_qty: u32 = |words| words[6] as u32;
    /// Quantity at the ask.
    ask_qty: u32 = |words| (words[6] >> 32) as u32;
    /// Quantity of the latest trade; 0 before the first one.
    last_qty: u32 = |words| words[7] as u32;
    /// Which symbol: its place in the configuration, counted from [`TickGeneratorConfig::first_symbol`].
    symbol: u16 = |words| (words[7] >> 32) as u16;
    /// What happened.
    kind: TickKind = |words| TickKind((words[7] >> 48) as u8);
}

/// Number and time of the ticks of a batch: those of the first, and the time from one to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickStamps {
    /// Number of the first tick; each that follows has one more.
    pub sequence: u64,
    /// Time of the first tick.
    pub ts: Nanos,
    /// Time from one tick to the next.
    pub interval: Nanos,
}

/// The ticks of a batch. They lie field by field, as vectors make them; each is put together when it is looked at.
#[derive(Clone, Copy)]
pub struct Ticks<'a> {
    words: &'a Words,
    stamps: TickStamps,
    from: usize,
    end: usize,
}

impl<'a> Ticks<'a> {
    /// How many.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.end - self.from
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.from == self.end
    }

    /// Without the first `count`, or as many as there are.
    #[inline]
    #[must_use]
    pub fn skip(self, count: usize) -> Ticks<'a> {
        Ticks { from: self.end.min(self.from + count), ..self }
    }

    /// One after another.
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

/// Makes ticks without end.
///
/// Symbols take turns in the order of the configuration, so each ticks equally often. The logarithm of a symbol's
/// price walks by normal steps around its drift; a step may be a jump, which is a wider normal. The published bid and
/// ask lie around the price on the tick, and quantities are even around the symbol's mean. All is drawn from
/// xoshiro256++, 64 streams side by side.
#[derive(Clone, Debug)]
pub struct TickGenerator {
    width: Width,
    streams: Streams,
    walk: Walk,
    tiles: Vec<Tile>,
    /// The tile and its chunk that come next.
    next: (usize, usize),
    /// Number of ticks of the batch, and their numbers and times.
    len: usize,
    stamps: TickStamps,
    batch: Box<Batch>,
}

impl TickGenerator {
    /// A generator at its first tick.
    ///
    /// # Errors
    /// [`ConfigError`] says which value cannot be.
    pub fn new(config: &TickGeneratorConfig) -> Result<TickGenerator, ConfigError> {
        TickGenerator::with_width(config, Width::widest())
    }

    /// As [`new`](TickGenerator::new), with vectors of a given width. The ticks are the same.
    ///
    /// # Errors
    /// As there.
    pub fn with_width(config: &TickGeneratorConfig, width: Width) -> Result<TickGenerator, ConfigError> {
        let steps = config.steps()?;
        Ok(TickGenerator {
            width,
            streams: Streams::new(config.seed),
            walk: Walk::new(&steps),
            tiles: Tile::lay(config.trade_below(), config.first_symbol, &steps),
            next: (0, 0),
            len: 0,
            stamps: TickStamps::default(),
            batch: Box::new(Batch::new_zeroed()),
        })
    }

    /// The next ticks: one at least, 128 at most. How many it is follows from the number of symbols.
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

    /// The ticks that were made last; none before the first batch.
    #[inline]
    #[must_use]
    pub fn batch(&self) -> Ticks<'_> {
        Ticks { words: &self.batch.words, stamps: self.stamps, from: 0, end: self.len }
    }

    /// How many ticks the next batch has.
    #[must_use]
    pub fn next_len(&self) -> usize {
        self.tiles[self.next.0].count(self.next.1)
    }
}
