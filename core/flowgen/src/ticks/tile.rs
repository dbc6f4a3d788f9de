//! Assignment of ticks to lanes.

use super::config::StepParameters;

/// Maximum number of ticks in a batch.
pub(super) const LANES: usize = 128;
/// Maximum number of lanes in a tile with several steps per symbol, so that it fits into the L1 cache.
const TILE_LANES: usize = 4 * LANES;
/// Maximum number of symbols in a tile.
const TILE_SYMBOLS: usize = 8 * LANES;

/// A group of symbols, with lanes for one or more steps of each: lane `i` is a step of symbol `i % symbols`.
/// Lanes are processed [`LANES`] at a time; those after the last step are unused.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    /// Index of the first symbol, and the number of symbols.
    pub(super) first: usize,
    pub(super) symbols: usize,
    /// Number of lanes in use.
    used: usize,
    /// A tick is a trade if its random draw is below this.
    pub(super) trade_below: u32,
    chunks: Vec<Lanes>,
}

/// Parameters of each lane's symbol.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    pub(super) symbol: [u32; LANES],
    pub(super) start: [f32; LANES],
    pub(super) sigma: [f32; LANES],
    pub(super) jump_sigma: [f32; LANES],
    pub(super) jump_below: [u32; LANES],
    pub(super) half_spread: [f32; LANES],
    pub(super) qty_mean: [u32; LANES],
    pub(super) tick_size: [u32; LANES],
}

impl Tile {
    /// Distributes all symbols over the minimum number of tiles.
    pub(super) fn build(trade_below: u32, first_symbol: u16, steps: &[StepParameters]) -> Vec<Tile> {
        let tiles = steps.len().div_ceil(TILE_SYMBOLS);
        let bound = |at: usize| at * steps.len() / tiles;
        // With several tiles, a tile steps each symbol once, so that all symbols take turns.
        let rounds = if tiles == 1 { rounds(steps.len()) } else { 1 };
        let tile = |at: usize| {
            Tile::new(trade_below, first_symbol, bound(at), &steps[bound(at)..bound(at + 1)], rounds)
        };
        (0..tiles).map(tile).collect()
    }

    fn new(
        trade_below: u32,
        first_symbol: u16,
        first: usize,
        steps: &[StepParameters],
        rounds: usize,
    ) -> Tile {
        let used = rounds * steps.len();
        let lanes = |chunk: usize| {
            let step = |lane: usize| &steps[(chunk * LANES + lane) % steps.len()];
            let symbol = |lane: usize| first + (chunk * LANES + lane) % steps.len();
            Lanes {
                symbol: std::array::from_fn(|lane| u32::from(first_symbol) + symbol(lane) as u32),
                // The conversion is exact, because the start is below 2^24.
                start: std::array::from_fn(|lane| step(lane).start as f32),
                sigma: std::array::from_fn(|lane| step(lane).sigma),
                jump_sigma: std::array::from_fn(|lane| step(lane).jump_sigma),
                jump_below: std::array::from_fn(|lane| step(lane).jump_below),
                half_spread: std::array::from_fn(|lane| step(lane).half_spread),
                qty_mean: std::array::from_fn(|lane| step(lane).qty_mean),
                tick_size: std::array::from_fn(|lane| step(lane).tick_size),
            }
        };
        let chunks = (0..used.div_ceil(LANES)).map(lanes).collect();
        Tile { first, symbols: steps.len(), used, trade_below, chunks }
    }

    pub(super) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    pub(super) fn lanes(&self, chunk: usize) -> &Lanes {
        &self.chunks[chunk]
    }

    /// Number of lanes in use in a chunk.
    pub(super) fn count(&self, chunk: usize) -> usize {
        (self.used - chunk * LANES).min(LANES)
    }
}

/// Number of steps per symbol that leaves the smallest fraction of a tile's lanes unused.
fn rounds(symbols: usize) -> usize {
    let most = (TILE_LANES / symbols).max(1);
    let left_over = |rounds: usize| {
        let used = rounds * symbols;
        let lanes = used.next_multiple_of(LANES);
        // Sort key: unused lanes in parts per million, then more steps first.
        ((lanes - used) * 1_000_000 / lanes, most - rounds)
    };
    (1..=most).min_by_key(|rounds| left_over(*rounds)).expect("one at least")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_lanes_are_left_over() {
        for symbols in (1..=100).chain([128, 200, 256, 300, 384, 500, 512, 1_000, 1_024]) {
            let used = rounds(symbols) * symbols;
            let lanes = used.next_multiple_of(LANES);
            assert!(used * 100 >= lanes * 78, "{symbols} symbols use {used} of {lanes} lanes");
        }
        assert_eq!(rounds(1), 512);
        assert_eq!(rounds(100), 5);
    }
}
