//! The price levels of a side in order: a list of small sorted arrays.
//!
//! Arrays of a fixed size come from one pool, so all sides share one capacity. An update moves only the
//! contents of one array, whatever a peer sends. A look-up walks over the arrays from the best levels on, one
//! array for each 9 to 32 levels.

/// Maximum number of levels in an array. 32 keys are four cache lines; a liquid side has two or three arrays.
const CHUNK_LEN: usize = 32;

/// Neighbouring arrays are joined when together they hold at most this number of levels.
const JOIN_LEN: usize = CHUNK_LEN / 2;

/// Index of the null array, which stays empty, so that an empty side needs no special case.
const NIL: u32 = 0;

/// A sorted array of levels, by ascending key: the best level is the last.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Chunk {
    keys: [i64; CHUNK_LEN],
    levels: [u32; CHUNK_LEN],
    len: u32,
    better: u32,
    worse: u32,
}

const EMPTY: Chunk = Chunk { keys: [0; CHUNK_LEN], levels: [0; CHUNK_LEN], len: 0, better: NIL, worse: NIL };

impl Chunk {
    fn keys(&self) -> &[i64] {
        &self.keys[..(self.len as usize).min(CHUNK_LEN)]
    }

    /// Number of keys below `key`. Tries the last position first: usually the best level opens or closes.
    #[inline]
    fn position(&self, key: i64) -> usize {
        match self.keys() {
            [.., last] if *last < key => self.keys().len(),
            [worse @ .., last] if *last == key => worse.len(),
            keys => keys.partition_point(|other| *other < key),
        }
    }

    fn insert(&mut self, position: usize, key: i64, level: u32) {
        let len = self.len as usize;
        self.keys.copy_within(position..len, position + 1);
        self.levels.copy_within(position..len, position + 1);
        self.keys[position] = key;
        self.levels[position] = level;
        self.len += 1;
    }

    fn remove(&mut self, position: usize) {
        let len = self.len as usize;
        self.keys.copy_within(position + 1..len, position);
        self.levels.copy_within(position + 1..len, position);
        self.len -= 1;
    }

    /// Inserts the levels of `worse` before the levels of this array.
    fn prepend(&mut self, worse: &Chunk) {
        let (len, added) = (self.len as usize, worse.len as usize);
        self.keys.copy_within(..len, added);
        self.levels.copy_within(..len, added);
        self.keys[..added].copy_from_slice(&worse.keys[..added]);
        self.levels[..added].copy_from_slice(&worse.levels[..added]);
        self.len += worse.len;
    }
}

/// The list of arrays of one side: the index of its first array, which has the best levels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ladder {
    first: u32,
}

impl Ladder {
    pub(super) const EMPTY: Ladder = Ladder { first: NIL };
}

/// The position of a key, or its insertion point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    chunk: u32,
    position: usize,
}

/// The arrays of all sides.
#[derive(Clone, Debug)]
pub(super) struct Ladders {
    chunks: Vec<Chunk>,
    /// Maximum number of chunks, including the null chunk.
    max: usize,
    /// Free arrays, linked by `worse`.
    free: u32,
}

impl Ladders {
    /// Creates arrays for a total of `levels` levels on `sides` sides, with any distribution.
    pub(super) fn new(sides: usize, levels: usize) -> Ladders {
        let mut ladders = Ladders::untouched(sides, levels);
        ladders.prefault();
        ladders
    }

    /// As `new`, with memory that is touched at its first use.
    pub(super) fn untouched(sides: usize, levels: usize) -> Ladders {
        // k arrays of one side make k / 2 pairs of neighbours with more than JOIN_LEN levels each, so a
        // side of n levels has at most 2n / JOIN_LEN + 1 arrays.
        let count = 1 + sides.min(levels) + (2 * levels).div_ceil(JOIN_LEN);
        let mut chunks = Vec::with_capacity(count);
        // The null chunk.
        chunks.push(EMPTY);
        Ladders { chunks, max: count, free: NIL }
    }

    /// Touches all memory that has not been touched yet.
    pub(super) fn prefault(&mut self) {
        while self.chunks.len() < self.max {
            let free = Chunk { worse: self.free, ..EMPTY };
            self.free = self.chunks.len() as u32;
            self.chunks.push(free);
        }
    }

    fn chunk(&self, index: u32) -> &Chunk {
        &self.chunks[index as usize]
    }

    fn chunk_mut(&mut self, index: u32) -> &mut Chunk {
        &mut self.chunks[index as usize]
    }

    /// The level of `key` with its place; as an error the insertion point, if there is no such level.
    pub(super) fn find(&self, ladder: Ladder, key: i64) -> Result<(u32, Place), Place> {
        let mut index = ladder.first;
        let mut chunk = self.chunk(index);
        while chunk.keys[0] > key && chunk.worse != NIL {
            index = chunk.worse;
            chunk = self.chunk(index);
        }
        let position = chunk.position(key);
        let place = Place { chunk: index, position };
        match chunk.keys().get(position) {
            Some(found) if *found == key => Ok((chunk.levels[position], place)),
            _ => Err(place),
        }
    }

    /// Inserts a level at the place that [`Ladders::find`] returned for its key.
    pub(super) fn insert(&mut self, ladder: &mut Ladder, place: Place, key: i64, level: u32) {
        let Place { mut chunk, mut position } = place;
        if chunk == NIL {
            chunk = self.allocate();
            ladder.first = chunk;
        } else if self.chunk(chunk).len as usize == CHUNK_LEN {
            let worse = self.split(chunk);
            if position <= CHUNK_LEN / 2 {
                chunk = worse;
            } else {
                position -= CHUNK_LEN / 2;
            }
        }
        self.chunk_mut(chunk).insert(position, key, level);
    }

    /// Removes a level.
    pub(super) fn remove(&mut self, ladder: &mut Ladder, key: i64) {
        let Ok((_, Place { chunk, position })) = self.find(*ladder, key) else {
            unreachable!("a level that is open is in its ladder");
        };
        self.chunk_mut(chunk).remove(position);
        let Chunk { better, worse, .. } = *self.chunk(chunk);
        if self.chunk(chunk).len == 0 {
            self.unlink(ladder, chunk);
            self.join(ladder, better, worse);
        } else if self.chunk(chunk).len as usize <= JOIN_LEN && !self.join(ladder, chunk, worse) {
            self.join(ladder, better, chunk);
        }
    }

    /// The levels of a side from the best.
    pub(super) fn iter(&self, ladder: Ladder) -> impl Iterator<Item = u32> {
        let first = Some(ladder.first).filter(|first| *first != NIL);
        let chunks = std::iter::successors(first, |index| {
            Some(self.chunk(*index).worse).filter(|worse| *worse != NIL)
        });
        chunks.flat_map(|index| {
            let chunk = self.chunk(index);
            chunk.levels[..chunk.len as usize].iter().rev().copied()
        })
    }

    fn allocate(&mut self) -> u32 {
        if self.free == NIL {
            assert!(self.chunks.len() < self.max, "the pool has room for every spread of max_levels levels");
            self.free = self.chunks.len() as u32;
            self.chunks.push(EMPTY);
        }
        let index = self.free;
        self.free = self.chunk(index).worse;
        *self.chunk_mut(index) = EMPTY;
        index
    }

    /// Moves the worse half of a full array to a new one after it.
    fn split(&mut self, index: u32) -> u32 {
        let new = self.allocate();
        let mut upper = *self.chunk(index);
        let mut lower = EMPTY;
        const HALF: usize = CHUNK_LEN / 2;
        lower.keys[..HALF].copy_from_slice(&upper.keys[..HALF]);
        lower.levels[..HALF].copy_from_slice(&upper.levels[..HALF]);
        upper.keys.copy_within(HALF.., 0);
        upper.levels.copy_within(HALF.., 0);
        (lower.len, upper.len) = (HALF as u32, HALF as u32);
        (lower.better, lower.worse) = (index, upper.worse);
        if upper.worse != NIL {
            self.chunk_mut(upper.worse).better = new;
        }
        upper.worse = new;
        *self.chunk_mut(index) = upper;
        *self.chunk_mut(new) = lower;
        new
    }

    /// Joins two neighbouring arrays if they are small enough, and returns true. Returns false otherwise, and
    /// if one of them is the null array.
    fn join(&mut self, ladder: &mut Ladder, better: u32, worse: u32) -> bool {
        if better == NIL || worse == NIL {
            return false;
        }
        let small = (self.chunk(better).len + self.chunk(worse).len) as usize <= JOIN_LEN;
        if small {
            let absorbed = *self.chunk(worse);
            self.chunk_mut(better).prepend(&absorbed);
            self.unlink(ladder, worse);
        }
        small
    }

    fn unlink(&mut self, ladder: &mut Ladder, index: u32) {
        let Chunk { better, worse, .. } = *self.chunk(index);
        if better == NIL {
            ladder.first = worse;
        } else {
            self.chunk_mut(better).worse = worse;
        }
        if worse != NIL {
            self.chunk_mut(worse).better = better;
        }
        self.chunk_mut(index).worse = self.free;
        self.free = index;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// Compares random levels of two sides with ordered maps, using the smallest possible pool.
    #[test]
    fn a_ladder_is_an_ordered_map() {
        const LEVELS: usize = 300;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut ladders = Ladders::new(2, LEVELS);
        let mut fast = [Ladder::EMPTY; 2];
        let mut reference = [BTreeMap::new(), BTreeMap::new()];
        for step in 0..40_000_u32 {
            let side = random.next_u32() as usize % 2;
            // The first half of the steps fills the ladders up to the bound, so that arrays split. A low bound
            // in the second half drains them, so that arrays join.
            let bound = if step < 20_000 { LEVELS } else { LEVELS / 10 };
            let key = i64::from(random.next_u32() % 400);
            match ladders.find(fast[side], key) {
                Ok((level, _)) => {
                    assert_eq!(reference[side].remove(&key), Some(level));
                    ladders.remove(&mut fast[side], key);
                }
                Err(place) if reference.iter().map(BTreeMap::len).sum::<usize>() < bound => {
                    ladders.insert(&mut fast[side], place, key, step);
                    assert_eq!(reference[side].insert(key, step), None);
                }
                Err(_) => assert!(!reference[side].contains_key(&key)),
            }
            assert_eq!(ladders.iter(fast[side]).next(), reference[side].values().next_back().copied());
            if step % 64 == 0 {
                assert!(ladders.iter(fast[side]).eq(reference[side].values().rev().copied()));
            }
        }
    }

    /// The worst distribution: fills arrays, then leaves as few levels as possible in each.
    #[test]
    fn the_pool_suffices_for_the_emptiest_arrays() {
        const LEVELS: i64 = 640;
        let mut ladders = Ladders::new(1, LEVELS as usize);
        let mut ladder = Ladder::EMPTY;
        for round in 0..20 {
            for key in 0..LEVELS {
                if let Err(place) = ladders.find(ladder, key) {
                    ladders.insert(&mut ladder, place, key, key as u32 + 1);
                }
            }
            assert!(ladders.iter(ladder).eq((1..=LEVELS as u32).rev()));
            for key in (0..LEVELS).filter(|key| key % 9 != round % 9) {
                ladders.remove(&mut ladder, key);
            }
        }
    }
}
