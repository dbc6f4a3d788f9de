//! How ticks are laid onto lanes.

use super::config::Step;

/// Ticks of a batch at most.
pub(super) const LANES: usize = 128;
/// Lanes of a tile at most, unless it has one step of more symbols: what fits into the first cache.
const TILE_LANES: usize = 4 * LANES;
/// Symbols of a tile at most.
const TILE_SYMBOLS: usize = 8 * LANES;

/// Some symbols, stepped in turn a few times: lane `i` is symbol `i % symbols`. Lanes are taken [`LANES`] at a time, and
/// those behind the last whole step are left over.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    /// The first symbol and how many.
    pub(super) first: usize,
    pub(super) symbols: usize,
    /// Lanes in use.
    used: usize,
    /// Draws below this are trades.
    pub(super) trade_below: u32,
    chunks: Vec<Lanes>,
}

/// What the arithmetic needs of each lane's symbol.
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
    /// Lays all symbols onto as few tiles as can be.
    pub(super) fn lay(trade_below: u32, first_symbol: u16, steps: &[Step]) -> Vec<Tile> {
        let tiles = steps.len().div_ceil(TILE_SYMBOLS);
        let bound = |at: usize| at * steps.len() / tiles;
        // Tiles of several steps only where there is one, so that symbols take turns.
        let rounds = if tiles == 1 { rounds(steps.len()) } else { 1 };
        let tile = |at: usize| {
            Tile::new(trade_below, first_symbol, bound(at), &steps[bound(at)..bound(at + 1)], rounds)
        };
        (0..tiles).map(tile).collect()
    }

    fn new(trade_below: u32, first_symbol: u16, first: usize, steps: &[Step], rounds: usize) -> Tile {
        let used = rounds * steps.len();
        let lanes = |chunk: usize| {
            let step = |lane: usize| &steps[(chunk * LANES + lane) % steps.len()];
            let symbol = |lane: usize| first + (chunk * LANES + lane) % steps.len();
            Lanes {
                symbol: std::array::from_fn(|lane| u32::from(first_symbol) + symbol(lane) as u32),
                // Below 2^24, so exact.
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

    /// Lanes in use of a chunk.
    pub(super) fn count(&self, chunk: usize) -> usize {
        (self.used - chunk * LANES).min(LANES)
    }
}

/// How often a tile steps so many symbols: as often as leaves the smallest part of its lanes over.
fn rounds(symbols: usize) -> usize {
    let most = (TILE_LANES / symbols).max(1);
    let left_over = |rounds: usize| {
        let used = rounds * symbols;
        let lanes = used.next_multiple_of(LANES);
        // As parts per million; of equals the longest.
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
