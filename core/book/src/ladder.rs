//! The price levels of a side in order: a B+ tree.
//!
//! The nodes come from one pool, so all sides share one capacity. The work of a look-up, an insertion or a
//! removal grows with the logarithm of the number of levels, whatever a peer sends. The best leaf is tried first,
//! without the inner nodes: most levels open and close near the best.

use arrayvec::ArrayVec;
use tickpath_lockfree::cpu::prefetch_lines_read;

/// Maximum number of entries in a node: as many as fit into seven cache lines with the other fields.
const CAPACITY: usize = 36;

/// Number of entries that a full node passes to the new node when it splits.
const HALF: usize = CAPACITY / 2;

/// Minimum number of entries in every node except a root. It is less than `HALF`, so that a node loses three
/// entries between a split and a join.
const MIN_LEN: usize = 16;

/// Two neighbours are joined when one has less than `MIN_LEN` entries and both together have at most this
/// number. It is less than `CAPACITY`, so that a joined node gets five entries before it splits.
const JOIN_LEN: usize = 2 * MIN_LEN;

/// Maximum number of inner nodes above a leaf. A tree with one more would have at least 2 x 16^8 levels, but
/// levels have indices of 32 bits.
const HEIGHT_MAX: usize = 7;

/// Index of the null node, which stays empty, so that an empty side needs no special case.
const NIL: u32 = 0;

/// Entries by ascending key: the best is the last.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Node {
    /// In a leaf: keys of levels. In an inner node: upper bounds of the keys below each child, which the keys
    /// below the next child exceed. The bound of the last child is the bound of the node itself, and
    /// `i64::MAX` for the nodes with the best levels. `PADDING` behind the last entry.
    keys: [i64; CAPACITY],
    /// In a leaf: levels. In an inner node: indices of its children.
    values: [u32; CAPACITY],
    len: u32,
    /// Number of inner nodes on the way down to a leaf; 0 for a leaf.
    height: u16,
    /// In a leaf: index of the leaf with the next worse levels. In a free node: index of the next free node.
    worse: u32,
    /// In the leaf with the best levels: index of the tree's root, which may be this leaf.
    root: u32,
}

const _: () = assert!(size_of::<Node>() == 7 * 64);

/// No key is greater, so a search need not consider the number of entries.
const PADDING: i64 = i64::MAX;

const EMPTY: Node =
    Node { keys: [PADDING; CAPACITY], values: [0; CAPACITY], len: 0, height: 0, worse: NIL, root: NIL };

impl Node {
    #[inline(always)]
    fn keys(&self) -> &[i64] {
        &self.keys[..self.len()]
    }

    /// Number of entries; at most `CAPACITY`, which the compiler cannot know.
    #[inline(always)]
    fn len(&self) -> usize {
        (self.len as usize).min(CAPACITY)
    }

    /// Number of keys below `key`: first of those that end a part, then of those in one part. Without a branch: a CPU
    /// could not predict it.
    #[inline(always)]
    fn position(&self, key: i64) -> usize {
        const PART: usize = 6;
        const _: () = assert!(PART * PART == CAPACITY);
        let (parts, _) = self.keys.as_chunks::<PART>();
        let part: usize = parts[..PART - 1].iter().map(|part| usize::from(part[PART - 1] < key)).sum();
        let below: usize = parts[part].iter().map(|other| usize::from(*other < key)).sum();
        part * PART + below
    }

    /// As [`Ladders::find`], in this leaf, which has the index `own`.
    #[inline(always)]
    fn find(&self, own: u32, key: i64) -> Result<(u32, Place), Place> {
        let position = self.position(key);
        let place = Place { leaf: own, position: position as u32 };
        match self.keys().get(position) {
            Some(found) if *found == key => Ok((self.values[position], place)),
            _ => Err(place),
        }
    }

    /// The greatest key, or bound of keys below; 0 in an empty node.
    fn last_key(&self) -> i64 {
        self.keys().last().copied().unwrap_or(0)
    }

    #[inline(always)]
    fn insert(&mut self, position: usize, key: i64, value: u32) {
        let len = self.len();
        self.keys.copy_within(position..len, position + 1);
        self.values.copy_within(position..len, position + 1);
        self.keys[position] = key;
        self.values[position] = value;
        self.len += 1;
    }

    #[inline(always)]
    fn remove(&mut self, position: usize) {
        let len = self.len();
        self.keys.copy_within(position + 1..len, position);
        self.values.copy_within(position + 1..len, position);
        self.keys[len - 1] = PADDING;
        self.len = len as u32 - 1;
    }

    /// Removes the last entries, so that `len` are left.
    fn shorten(&mut self, len: usize) {
        let old = self.len();
        self.keys[len..old].fill(PADDING);
        self.len = len as u32;
    }

    /// Moves the last `count` entries of `worse` to the start of this node.
    fn take_last(&mut self, worse: &mut Node, count: usize) {
        let (len, left) = (self.len(), worse.len() - count);
        self.keys.copy_within(..len, count);
        self.values.copy_within(..len, count);
        self.keys[..count].copy_from_slice(&worse.keys[left..][..count]);
        self.values[..count].copy_from_slice(&worse.values[left..][..count]);
        self.len += count as u32;
        worse.shorten(left);
    }

    /// Moves the first `count` entries to the end of `worse`.
    fn give_first(&mut self, worse: &mut Node, count: usize) {
        let (len, end) = (self.len(), worse.len());
        worse.keys[end..][..count].copy_from_slice(&self.keys[..count]);
        worse.values[end..][..count].copy_from_slice(&self.values[..count]);
        self.keys.copy_within(count..len, 0);
        self.values.copy_within(count..len, 0);
        self.shorten(len - count);
        worse.len += count as u32;
    }
}

/// The tree of one side: the index of its leaf with the best levels, which has the index of the root.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ladder {
    best: u32,
}

impl Ladder {
    pub(super) const EMPTY: Ladder = Ladder { best: NIL };
}

/// The position of a key in a leaf, or its insertion point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    leaf: u32,
    position: u32,
}

/// A search for a key in a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    /// First the tree's best leaf; at the end the leaf where the key is or would be.
    node: u32,
    key: i64,
}

/// The inner nodes above a leaf, from the root, each with the position of its child on this path.
type Path = ArrayVec<(u32, usize), HEIGHT_MAX>;

/// Base-2 logarithm of the number of nodes in a block.
const BLOCK_BITS: u32 = 12;

/// Nodes in blocks of less than 2 MiB. In one large block, an allocator would use a huge page for the few nodes that
/// most books need.
#[derive(Clone, Debug)]
struct Nodes {
    /// All blocks but the last used one are full or empty.
    blocks: Vec<Vec<Node>>,
    len: usize,
}

const _: () = assert!(size_of::<Node>() << BLOCK_BITS < 2 << 20);

impl Nodes {
    fn with_capacity(max: usize) -> Nodes {
        const LEN: usize = 1 << BLOCK_BITS;
        let blocks = (0..max).step_by(LEN).map(|first| Vec::with_capacity(LEN.min(max - first)));
        Nodes { blocks: blocks.collect(), len: 0 }
    }

    /// Block and place of a node.
    #[inline]
    const fn place(index: u32) -> (usize, usize) {
        ((index >> BLOCK_BITS) as usize, (index & ((1 << BLOCK_BITS) - 1)) as usize)
    }

    #[inline]
    fn get(&self, index: u32) -> &Node {
        let (block, place) = Nodes::place(index);
        &self.blocks[block][place]
    }

    #[inline]
    fn get_mut(&mut self, index: u32) -> &mut Node {
        let (block, place) = Nodes::place(index);
        &mut self.blocks[block][place]
    }

    /// Adds a node; returns its index.
    fn push(&mut self, node: Node) -> u32 {
        let index = self.len as u32;
        self.blocks[Nodes::place(index).0].push(node);
        self.len += 1;
        index
    }

    /// Two different nodes.
    fn pair(&mut self, first: u32, second: u32) -> [&mut Node; 2] {
        let [(block, place), (other_block, other_place)] = [first, second].map(Nodes::place);
        let pair = if block == other_block {
            self.blocks[block].get_disjoint_mut([place, other_place]).ok()
        } else {
            let blocks = self.blocks.get_disjoint_mut([block, other_block]).ok();
            blocks.map(|[block, other]| [&mut block[place], &mut other[other_place]])
        };
        pair.expect("neighbours are two nodes of the pool")
    }
}

/// The nodes of all sides.
#[derive(Clone, Debug)]
pub(super) struct Ladders {
    nodes: Nodes,
    /// Maximum number of nodes, including the null node.
    max: usize,
    /// Free nodes, linked by `worse`.
    free: u32,
}

impl Ladders {
    /// Creates nodes for a total of `levels` levels on `sides` sides, with any distribution. Their memory is touched at
    /// its first use.
    pub(super) fn untouched(sides: usize, levels: usize) -> Ladders {
        let max = nodes_max(sides, levels);
        let mut nodes = Nodes::with_capacity(max);
        // The null node.
        nodes.push(EMPTY);
        Ladders { nodes, max, free: NIL }
    }

    /// Touches all memory that has not been touched yet.
    pub(super) fn prefault(&mut self) {
        while self.nodes.len < self.max {
            self.free = self.nodes.push(Node { worse: self.free, ..EMPTY });
        }
    }

    #[inline(always)]
    fn node(&self, index: u32) -> &Node {
        self.nodes.get(index)
    }

    #[inline(always)]
    fn node_mut(&mut self, index: u32) -> &mut Node {
        self.nodes.get_mut(index)
    }

    fn root(&self, ladder: Ladder) -> u32 {
        self.node(ladder.best).root
    }

    /// The level of `key` with its place; as an error the insertion point, if there is no such level.
    // Inlined, since a CPU can predict at each caller whether the level exists.
    #[inline(always)]
    pub(super) fn find(&self, ladder: Ladder, key: i64) -> Result<(u32, Place), Place> {
        let mut node = self.first_node(ladder.best, key);
        while let Some(child) = self.child(node, key) {
            node = child;
        }
        self.node(node).find(node, key)
    }

    /// The node where the search for a key begins: `best`, the best leaf of its tree, or the root.
    #[inline(always)]
    fn first_node(&self, best: u32, key: i64) -> u32 {
        let leaf = self.node(best);
        if leaf.keys[0] <= key || leaf.worse == NIL { best } else { leaf.root }
    }

    /// The child of an inner node that leads to a key; `None` for a leaf.
    #[inline(always)]
    fn child(&self, node: u32, key: i64) -> Option<u32> {
        let node = self.node(node);
        (node.height > 0).then(|| node.values[node.position(key)])
    }

    /// Begins a search for a key.
    pub(super) fn search(&self, ladder: Ladder, key: i64) -> Search {
        self.prefetch(ladder.best);
        Search { node: ladder.best, key }
    }

    /// Brings all searches to the leaves of their keys, a node at a time, so that their cache misses overlap.
    pub(super) fn descend(&self, searches: &mut [Search]) {
        for search in &mut *searches {
            search.node = self.first_node(search.node, search.key);
        }
        let mut is_inside = true;
        while is_inside {
            is_inside = false;
            for search in &mut *searches {
                if let Some(child) = self.child(search.node, search.key) {
                    if self.node(search.node).height == 1 {
                        self.prefetch(child);
                    }
                    search.node = child;
                    is_inside = true;
                }
            }
        }
    }

    /// The level that a search has found, after `descend`.
    pub(super) fn found(&self, search: Search) -> Option<u32> {
        self.node(search.node).find(search.node, search.key).ok().map(|(level, _)| level)
    }

    fn prefetch(&self, node: u32) {
        prefetch_lines_read(self.node(node));
    }

    /// The best level of a side.
    pub(super) fn best(&self, ladder: Ladder) -> Option<u32> {
        let leaf = self.node(ladder.best);
        Some(leaf.values[leaf.len().checked_sub(1)?])
    }

    /// The inner nodes above the leaf of a key.
    fn path(&self, ladder: Ladder, key: i64) -> Path {
        let mut path = Path::new();
        let mut index = self.root(ladder);
        while self.node(index).height > 0 {
            let position = self.node(index).position(key);
            path.push((index, position));
            index = self.node(index).values[position];
        }
        path
    }

    /// Inserts a level at the place that [`Ladders::find`] returned for its key.
    pub(super) fn insert(&mut self, ladder: &mut Ladder, place: Place, key: i64, level: u32) {
        let Place { mut leaf, position } = place;
        if leaf == NIL {
            leaf = self.allocate();
            self.node_mut(leaf).root = leaf;
            ladder.best = leaf;
        }
        if self.node(leaf).len() == CAPACITY {
            return self.insert_splitting(*ladder, place, key, level);
        }
        self.node_mut(leaf).insert(position as usize, key, level);
    }

    /// Inserts a level in a full leaf.
    #[inline(never)]
    fn insert_splitting(&mut self, ladder: Ladder, place: Place, mut key: i64, level: u32) {
        let mut path = self.path(ladder, key);
        let (mut node, mut position) = (place.leaf, place.position as usize);
        let mut value = level;
        while self.node(node).len() == CAPACITY {
            let worse = self.split(node);
            if position <= HALF {
                self.node_mut(worse).insert(position, key, value);
            } else {
                self.node_mut(node).insert(position - HALF, key, value);
            }
            // The new node's parent gets an entry for it, before the entry of `node`.
            (key, value) = (self.node(worse).last_key(), worse);
            (node, position) = path.pop().unwrap_or_else(|| (self.add_root(ladder), 0));
        }
        self.node_mut(node).insert(position, key, value);
    }

    /// Adds a root, whose only child is the old one.
    fn add_root(&mut self, ladder: Ladder) -> u32 {
        let (old, new) = (self.root(ladder), self.allocate());
        let height = self.node(old).height + 1;
        let root = self.node_mut(new);
        root.height = height;
        root.insert(0, i64::MAX, old);
        self.node_mut(ladder.best).root = new;
        new
    }

    /// Removes a level.
    pub(super) fn remove(&mut self, ladder: &mut Ladder, key: i64) {
        let Ok((_, Place { leaf, position })) = self.find(*ladder, key) else {
            unreachable!("a level that is open is in its ladder");
        };
        let node = self.node_mut(leaf);
        node.remove(position as usize);
        let len = node.len();
        if len >= MIN_LEN {
            return;
        }
        if self.root(*ladder) != leaf {
            self.refill(*ladder, key);
        } else if len == 0 {
            self.release(leaf);
            *ladder = Ladder::EMPTY;
        }
    }

    /// Restores `MIN_LEN` above the leaf of a removed key, and in that leaf. The leaf has one entry too few.
    #[inline(never)]
    fn refill(&mut self, ladder: Ladder, key: i64) {
        let mut path = self.path(ladder, key);
        while let Some((parent, position)) = path.pop() {
            let siblings = self.node(parent);
            // A parent has at least two children. The best child has only a worse neighbour.
            let at = position.min(siblings.len() - 2);
            let (worse, better) = (siblings.values[at], siblings.values[at + 1]);
            if !self.join(better, worse) {
                let bound = self.node(worse).last_key();
                self.node_mut(parent).keys[at] = bound;
                return;
            }
            self.node_mut(parent).remove(at);
            let len = self.node(parent).len();
            if path.is_empty() && len == 1 {
                self.node_mut(ladder.best).root = better;
                self.release(parent);
            }
            if len >= MIN_LEN {
                return;
            }
        }
    }

    /// The levels of a side from the best.
    pub(super) fn iter(&self, ladder: Ladder) -> impl Iterator<Item = u32> {
        let first = Some(ladder.best).filter(|best| *best != NIL);
        let leaves =
            std::iter::successors(first, |index| Some(self.node(*index).worse).filter(|worse| *worse != NIL));
        leaves.flat_map(|index| {
            let leaf = self.node(index);
            leaf.values[..leaf.len()].iter().rev().copied()
        })
    }

    fn allocate(&mut self) -> u32 {
        if self.free == NIL {
            assert!(self.nodes.len < self.max, "the pool has room for every spread of max_levels levels");
            self.free = self.nodes.push(EMPTY);
        }
        let index = self.free;
        self.free = self.node(index).worse;
        *self.node_mut(index) = EMPTY;
        index
    }

    fn release(&mut self, index: u32) {
        self.node_mut(index).worse = self.free;
        self.free = index;
    }

    /// Moves the worse half of a full node to a new one, so that the best leaf stays the best.
    fn split(&mut self, index: u32) -> u32 {
        let new = self.allocate();
        let [better, worse] = self.nodes.pair(index, new);
        (worse.height, worse.worse) = (better.height, better.worse);
        better.worse = new;
        better.give_first(worse, HALF);
        new
    }

    /// Joins two neighbours and returns true, if together they are small enough. Otherwise divides their
    /// entries equally, so that each has `MIN_LEN`, and returns false.
    fn join(&mut self, better: u32, worse: u32) -> bool {
        let absorbed = worse;
        let [better, worse] = self.nodes.pair(better, worse);
        let (len, worse_len) = (better.len(), worse.len());
        let equal = (len + worse_len) / 2;
        if len + worse_len <= JOIN_LEN {
            better.take_last(worse, worse_len);
            better.worse = worse.worse;
            self.release(absorbed);
            return true;
        }
        if worse_len > equal {
            better.take_last(worse, worse_len - equal);
        } else {
            better.give_first(worse, equal - worse_len);
        }
        false
    }
}

/// Maximum number of nodes, including the null node, for `levels` levels with any distribution over `sides`
/// sides.
///
/// A side of n levels has at most (n + 14) / 15 nodes. Without a level it has no node. If its root is a leaf,
/// it has one node, and n + 14 is at least 15. Otherwise let it have L leaves and I inner nodes. Each leaf has
/// at least 16 levels, so L is at most n / 16. Each node except the root is a child. The root has at least 2
/// children and each other inner node at least 16, so L + I - 1 >= 2 + 16 (I - 1), or 15 I <= L + 13. The side
/// then has L + I <= (16 L + 13) / 15 <= (n + 13) / 15 nodes.
///
/// At most min(sides, levels) sides have levels, and the sum of their bounds is linear in n. An insertion
/// allocates only nodes that the tree has afterwards, and a removal allocates none. So the bound also holds
/// during an update.
const fn nodes_max(sides: usize, levels: usize) -> usize {
    const _: () = assert!(MIN_LEN == 16);
    let used_sides = if sides < levels { sides } else { levels };
    1 + (levels + (MIN_LEN - 2) * used_sides) / (MIN_LEN - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// `count`, or a hundredth of it under Miri.
    const fn scaled(count: usize) -> usize {
        if cfg!(miri) { count.div_ceil(100) } else { count }
    }

    fn shuffled(mut keys: Vec<i64>, seed: u64) -> Vec<i64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for index in (1..keys.len()).rev() {
            keys.swap(index, random.next_u64() as usize % (index + 1));
        }
        keys
    }

    /// The invariants of one tree, whose nodes are collected from the best levels.
    struct Check<'a> {
        ladders: &'a Ladders,
        leaves: Vec<u32>,
        levels: Vec<u32>,
        node_count: usize,
    }

    impl Check<'_> {
        /// Checks the nodes below `index`, whose keys exceed `below` and are at most `bound`.
        fn node(&mut self, index: u32, is_root: bool, below: Option<i64>, bound: i64) {
            let node = *self.ladders.node(index);
            let least = if !is_root {
                MIN_LEN
            } else if node.height > 0 {
                2
            } else {
                1
            };
            assert!((least..=CAPACITY).contains(&node.len()), "{} entries", node.len());
            assert!(node.keys().is_sorted_by(|worse, better| worse < better));
            assert!(below.is_none_or(|below| below < node.keys[0]));
            self.node_count += 1;
            if node.height == 0 {
                assert!(node.last_key() <= bound);
                self.leaves.push(index);
                self.levels.extend(node.values[..node.len()].iter().rev());
                return;
            }
            assert_eq!(node.last_key(), bound);
            for at in (0..node.len()).rev() {
                let child = node.values[at];
                assert_eq!(self.ladders.node(child).height + 1, node.height);
                let below = at.checked_sub(1).map(|worse| node.keys[worse]).or(below);
                self.node(child, false, below, node.keys[at]);
            }
        }
    }

    /// Checks all invariants of the trees, and that the pool has no other nodes except free ones.
    fn check(ladders: &Ladders, sides: &[Ladder]) {
        let mut node_count = 1;
        for side in sides.iter().filter(|side| side.best != NIL) {
            let mut tree = Check { ladders, leaves: Vec::new(), levels: Vec::new(), node_count: 0 };
            tree.node(ladders.root(*side), true, None, i64::MAX);
            let links = std::iter::successors(Some(side.best), |leaf| {
                Some(ladders.node(*leaf).worse).filter(|worse| *worse != NIL)
            });
            assert!(links.eq(tree.leaves.iter().copied()), "the leaves are linked from the best");
            assert!(ladders.iter(*side).eq(tree.levels.iter().copied()));
            assert!(tree.node_count <= tree.levels.len().div_ceil(15));
            node_count += tree.node_count;
        }
        let free = std::iter::successors(Some(ladders.free), |free| Some(ladders.node(*free).worse));
        node_count += free.take_while(|free| *free != NIL).count();
        assert_eq!(node_count, ladders.nodes.len);
        let capacity: usize = ladders.nodes.blocks.iter().map(Vec::capacity).sum();
        assert!(ladders.nodes.len <= ladders.max && capacity == ladders.max);
        assert_eq!(ladders.node(NIL).len(), 0);
    }

    fn insert(ladders: &mut Ladders, side: &mut Ladder, key: i64, level: u32) {
        let place = ladders.find(*side, key).expect_err("a new key");
        ladders.insert(side, place, key, level);
    }

    /// Compares random levels of several sides with ordered maps, using the smallest possible pool.
    fn compare_with_maps<const SIDES: usize>(levels: usize, steps: usize, check_interval: usize) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut ladders = Ladders::untouched(SIDES, levels);
        let mut fast = [Ladder::EMPTY; SIDES];
        let mut reference = [const { BTreeMap::new() }; SIDES];
        for step in 0..steps {
            let side = random.next_u32() as usize % SIDES;
            // The first half of the steps fills the trees up to the bound, so that nodes split. A low bound
            // in the second half drains them, so that nodes are joined.
            let bound = if step < steps / 2 { levels } else { levels / 10 };
            let key = i64::from(random.next_u32()) % (3 * levels / SIDES) as i64;
            let level = step as u32;
            match ladders.find(fast[side], key) {
                Ok((level, _)) => {
                    assert_eq!(reference[side].remove(&key), Some(level));
                    ladders.remove(&mut fast[side], key);
                }
                Err(place) if reference.iter().map(BTreeMap::len).sum::<usize>() < bound => {
                    ladders.insert(&mut fast[side], place, key, level);
                    assert_eq!(reference[side].insert(key, level), None);
                }
                Err(_) => assert!(!reference[side].contains_key(&key)),
            }
            assert_eq!(ladders.iter(fast[side]).next(), reference[side].values().next_back().copied());
            if step % check_interval == 0 {
                check(&ladders, &fast);
                for (fast, reference) in fast.iter().zip(&reference) {
                    assert!(ladders.iter(*fast).eq(reference.values().rev().copied()));
                }
            }
        }
    }

    #[test]
    fn a_ladder_is_an_ordered_map() {
        compare_with_maps::<2>(300, scaled(40_000), 64);
        compare_with_maps::<1>(scaled(5_000), scaled(60_000), 4_096);
    }

    #[test]
    fn every_update_keeps_the_invariants() {
        compare_with_maps::<1>(700, scaled(6_000), 1);
        compare_with_maps::<5>(900, scaled(6_000), 1);
    }

    /// Inserts `keys` on one side in their order, then removes them in the order of `removed`.
    fn fill_and_drain(keys: &[i64], removed: &[i64]) {
        let mut ladders = Ladders::untouched(1, keys.len());
        let mut side = Ladder::EMPTY;
        let base = *keys.iter().min().unwrap();
        let level = |key: i64| (key - base + 1) as u32;
        let interval = keys.len() / 4 + 1;
        for (count, key) in keys.iter().enumerate() {
            insert(&mut ladders, &mut side, *key, level(*key));
            if count % interval == 0 {
                check(&ladders, &[side]);
            }
        }
        check(&ladders, &[side]);
        assert_eq!(ladders.iter(side).count(), keys.len());
        for key in keys {
            assert_eq!(ladders.find(side, *key).ok().map(|(level, _)| level), Some(level(*key)));
        }
        for (count, key) in removed.iter().enumerate() {
            ladders.remove(&mut side, *key);
            assert!(ladders.find(side, *key).is_err());
            if count % interval == 0 {
                check(&ladders, &[side]);
            }
        }
        check(&ladders, &[side]);
        assert_eq!(side.best, NIL);
    }

    #[test]
    fn two_hundred_thousand_levels_open_and_close_in_any_order() {
        let count = scaled(200_000) as i64;
        let ascending: Vec<i64> = (-count / 2..count / 2).collect();
        let descending: Vec<i64> = ascending.iter().rev().copied().collect();
        let alternating: Vec<i64> = ascending
            .iter()
            .zip(&descending)
            .flat_map(|(low, high)| [*low, *high])
            .take(count as usize)
            .collect();
        let random = shuffled(ascending.clone(), 3);
        fill_and_drain(&ascending, &random);
        fill_and_drain(&descending, &ascending);
        fill_and_drain(&random, &alternating);
        fill_and_drain(&alternating, &descending);
        fill_and_drain(&shuffled(ascending, 4), &random);
    }

    #[test]
    fn the_least_and_the_greatest_key_are_keys_like_others() {
        let mut ladders = Ladders::untouched(1, 1_002);
        let mut side = Ladder::EMPTY;
        let inner = shuffled((-500..500).collect(), 5);
        for round in 0..2 {
            let mut keys = inner.clone();
            keys.insert(if round == 0 { 0 } else { 900 }, i64::MAX);
            keys.insert(if round == 0 { 0 } else { 950 }, i64::MIN);
            for (level, key) in keys.iter().enumerate() {
                insert(&mut ladders, &mut side, *key, level as u32);
                check(&ladders, &[side]);
            }
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            assert!(ladders.iter(side).map(|level| keys[level as usize]).eq(sorted.iter().rev().copied()));
            for key in [i64::MIN, i64::MAX] {
                ladders.remove(&mut side, key);
                assert!(ladders.find(side, key).is_err());
                insert(&mut ladders, &mut side, key, 0);
                check(&ladders, &[side]);
            }
            for key in shuffled(keys, 6) {
                ladders.remove(&mut side, key);
                check(&ladders, &[side]);
            }
            assert_eq!(side.best, NIL);
        }
    }

    /// Removes levels until every leaf has the minimum, and returns the number of levels left.
    fn thin(ladders: &mut Ladders, side: &mut Ladder) -> usize {
        let mut leaf = side.best;
        while leaf != NIL {
            while ladders.node(leaf).len() > MIN_LEN {
                ladders.remove(side, ladders.node(leaf).keys[MIN_LEN / 2]);
            }
            leaf = ladders.node(leaf).worse;
        }
        ladders.iter(*side).count()
    }

    /// Removes all levels, the best first.
    fn drain(ladders: &mut Ladders, side: &mut Ladder) {
        while side.best != NIL {
            ladders.remove(side, ladders.node(side.best).last_key());
        }
    }

    /// The worst distribution on one side: the emptiest leaves, filled and emptied repeatedly.
    #[test]
    fn the_pool_suffices_for_the_emptiest_leaves() {
        const LEVELS: usize = scaled(20_000).next_multiple_of(CAPACITY);
        let mut ladders = Ladders::untouched(1, LEVELS);
        let (mut side, mut count, mut next) = (Ladder::EMPTY, 0, 0);
        // Ascending insertions leave nodes that are half full. Levels removed there open again at the best.
        while count + MIN_LEN < LEVELS {
            for _ in count..LEVELS {
                insert(&mut ladders, &mut side, next, next as u32);
                next += 1;
            }
            check(&ladders, &[side]);
            count = thin(&mut ladders, &mut side);
            check(&ladders, &[side]);
        }
        let used = ladders.nodes.len;
        assert!(used <= ladders.max && used * 100 >= ladders.max * 98, "{used} of {} nodes", ladders.max);
        drain(&mut ladders, &mut side);
        check(&ladders, &[side]);
    }

    /// Sides of one level each, and sides of two leaves and a root, use every node of the pool.
    #[test]
    fn several_sides_reach_the_bound_of_the_pool() {
        let mut ladders = Ladders::untouched(50, 50);
        let mut sides = [Ladder::EMPTY; 50];
        for side in &mut sides {
            insert(&mut ladders, side, 7, 1);
        }
        check(&ladders, &sides);
        assert_eq!(ladders.nodes.len, ladders.max);

        // Before levels are removed, the last side has one level more than the capacity of a leaf.
        const EACH: usize = 2 * MIN_LEN;
        let mut ladders = Ladders::untouched(5, 4 * EACH + CAPACITY + 1);
        for step in [1, -1] {
            let mut sides = [Ladder::EMPTY; 5];
            for side in &mut sides {
                for key in 0..=CAPACITY as i64 {
                    insert(&mut ladders, side, key * step, key as u32);
                }
                assert_eq!(thin(&mut ladders, side), EACH);
            }
            check(&ladders, &sides);
            assert_eq!((ladders.nodes.len, ladders.free), (ladders.max, NIL));
            for side in &mut sides {
                drain(&mut ladders, side);
            }
            check(&ladders, &sides);
        }
    }

    #[test]
    #[should_panic = "the pool has room for every spread"]
    fn a_pool_never_grows() {
        let mut ladders = Ladders::untouched(1, 1);
        let mut side = Ladder::EMPTY;
        for key in 0..=CAPACITY as i64 {
            insert(&mut ladders, &mut side, key, 1);
        }
    }
}
