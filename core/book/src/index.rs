//! From the number that a venue or a client gave an order to its handle.

mod hashed;

use tickpath_lockfree::cpu::prefetch_read;

use crate::OrderHandle;
use crate::record::NIL;
pub use hashed::Entry;
use hashed::Hashed;

/// Bits of an id that choose among the entries of one page.
const PAGE_BITS: u32 = 10;
/// Entries of a page.
const PAGE_LEN: usize = 1 << PAGE_BITS;
/// Bits of an id below its directory page: what one entry of the root covers.
const ROOT_SHIFT: u32 = 2 * PAGE_BITS;
/// Ids that share their upper 32 bits are a block.
const BLOCK_SHIFT: u32 = 32;

/// Place of a page's entry among those of all pages.
#[inline(always)]
const fn entry(page: u32, place: usize) -> usize {
    page as usize * PAGE_LEN + place
}

/// How large an [`OrderIndex`] may become; all memory is taken and touched at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexLimits {
    /// Ids from the base that pages cover, in blocks of 2^32.
    pub blocks: u32,
    /// Pages of 1024 ids (4 KiB) in use at once. 1024 consecutive ids take one page, up to 2^20 of them
    /// one directory page more.
    pub max_pages: u32,
    /// Pages of one block: what a single client can take if a block is a client's.
    pub max_pages_per_block: u32,
    /// Orders whose ids lie outside the blocks, or found no page left, kept in a hash table.
    /// Leave it at zero where a peer chooses the ids: it could choose ids that collide.
    pub max_hashed: u32,
}

impl IndexLimits {
    /// For `max_orders` open orders whose ids a venue chose: all of them in the hash table.
    #[must_use]
    pub const fn hashed(max_orders: u32) -> IndexLimits {
        IndexLimits { blocks: 0, max_pages: 0, max_pages_per_block: 0, max_hashed: max_orders }
    }
}

/// The id was not entered and nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InsertError {
    /// Refuse the order, or raise the limits.
    #[error("the index has no room for order {id}: its ids are too scattered, or raise its limits")]
    IndexFull {
        /// The id.
        id: u64,
    },
    /// Refuse the order: the id is that of an open one.
    #[error("order {id} is already in the index")]
    Duplicate {
        /// The id.
        id: u64,
    },
}

/// Open orders by id, in pages or in a hash table as [`IndexLimits`] says.
///
/// Pages are for ids that clients choose, dense for each of them: a tree of three levels with pages of 1024 entries, in
/// which nobody can make another's look-ups slow. A look-up is three loads, of which the upper two stay in the nearest
/// cache, and a page goes back to the pool when its last order leaves. The hash table is for ids that a venue chose, and
/// for what lies outside the pages: one load, 32 to 64 bytes for each order that it can hold. Nothing is allocated after
/// creation.
#[derive(Clone, Debug)]
pub struct OrderIndex {
    limits: IndexLimits,
    /// First id of the first block; before there is one nothing is in the index.
    base: u64,
    has_base: bool,
    /// Directory page of each 2^20 ids.
    root: Vec<u32>,
    /// Pages of [`PAGE_LEN`] entries, one behind the other: pages in a directory page, slots in a leaf.
    pages: Vec<u32>,
    /// Entries in use of each page.
    used: Vec<u16>,
    free: Vec<u32>,
    block_pages: Vec<u32>,
    hashed: Hashed,
}

/// An id's way through the tree.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    block: usize,
    root: usize,
    directory: usize,
    leaf: usize,
}

/// Writes what is there: a page that was only read is the system's page of zeroes.
fn touch<T: Copy>(entries: &mut [T]) {
    entries.iter_mut().for_each(|entry| *entry = std::hint::black_box(*entry));
}

impl OrderIndex {
    /// An empty index whose blocks begin with the first id entered, rounded down to a multiple of 2^20.
    #[must_use]
    pub fn new(limits: IndexLimits) -> OrderIndex {
        let mut index = OrderIndex::untouched(limits);
        index.prefault();
        index
    }

    /// The same whose pages are touched as they come into use, or by [`prefault`](Self::prefault).
    #[must_use]
    pub fn untouched(limits: IndexLimits) -> OrderIndex {
        let roots = (limits.blocks as usize) << (BLOCK_SHIFT - ROOT_SHIFT);
        let pages = limits.max_pages as usize + 1;
        OrderIndex {
            limits,
            base: 0,
            has_base: false,
            // Zeroes, which the allocator hands out untouched.
            root: vec![NIL; roots],
            used: vec![0; pages],
            pages: vec![NIL; pages * PAGE_LEN],
            free: (1..=limits.max_pages).rev().collect(),
            block_pages: vec![0; limits.blocks as usize],
            hashed: Hashed::of_handles(limits.max_hashed),
        }
    }

    /// The same with blocks that begin with `base`.
    #[must_use]
    pub fn with_base(self, base: u64) -> OrderIndex {
        OrderIndex { base, has_base: true, ..self }
    }

    /// Touches all memory that is not yet, so that no order costs a page fault.
    pub fn prefault(&mut self) {
        touch(&mut self.pages);
        touch(&mut self.root);
        touch(&mut self.used);
    }

    /// The open order of this id.
    #[inline(always)]
    #[must_use]
    pub fn find(&self, id: u64) -> Option<OrderHandle> {
        if self.root.is_empty() {
            return self.hashed.handle(id);
        }
        let entry = self.path(id).map_or(NIL, |path| self.pages[entry(self.leaf(path), path.leaf)]);
        if self.hashed.is_empty() { OrderHandle::new(entry) } else { self.find_with_hashed(id, entry) }
    }

    #[cold]
    fn find_with_hashed(&self, id: u64, entry: u32) -> Option<OrderHandle> {
        OrderHandle::new(entry).or_else(|| self.hashed.handle(id))
    }

    /// Starts to fetch what [`OrderIndex::find`] of this id will read; a hint without effect.
    #[inline]
    pub fn prefetch(&self, id: u64) -> Entry {
        if let Some(path) = self.path(id) {
            prefetch_read(&self.pages[entry(self.leaf(path), path.leaf)]);
        }
        self.hashed.entry(id)
    }

    /// Looks where [`OrderIndex::prefetch`] pointed: finds most of what is in the hash table, and nothing else.
    #[inline]
    #[must_use]
    pub fn peek(&self, entry: Entry) -> Option<OrderHandle> {
        OrderHandle::new(self.hashed.peek(entry))
    }

    /// Enters an order.
    ///
    /// # Errors
    /// [`InsertError`] when a bound is reached or the id is already there; nothing changed.
    #[inline(always)]
    pub fn insert(&mut self, id: u64, handle: OrderHandle) -> Result<(), InsertError> {
        if self.root.is_empty() {
            return self.insert_hashed(id, handle);
        }
        if !self.has_base {
            (self.base, self.has_base) = (id >> ROOT_SHIFT << ROOT_SHIFT, true);
        }
        if !self.hashed.is_empty() && self.hashed.handle(id).is_some() {
            return Err(InsertError::Duplicate { id });
        }
        let Some((path, leaf)) = self.path(id).and_then(|path| Some((path, self.open_leaf(path)?))) else {
            return self.insert_outside(id, handle);
        };
        let slot = &mut self.pages[entry(leaf, path.leaf)];
        if *slot != NIL {
            return Err(InsertError::Duplicate { id });
        }
        *slot = handle.slot();
        self.used[leaf as usize] += 1;
        Ok(())
    }

    /// Takes an order out.
    #[inline(always)]
    pub fn remove(&mut self, id: u64) -> Option<OrderHandle> {
        if self.root.is_empty() {
            return self.hashed.remove(id);
        }
        if let Some(path) = self.path(id) {
            let leaf = self.leaf(path);
            let slot = std::mem::replace(&mut self.pages[entry(leaf, path.leaf)], NIL);
            if slot != NIL {
                self.release(path, leaf);
                return OrderHandle::new(slot);
            }
        }
        if self.hashed.is_empty() { None } else { self.hashed.remove(id) }
    }

    /// True when an id that is not there now could be entered.
    #[inline]
    #[must_use]
    pub fn has_room(&self, id: u64) -> bool {
        let block = (id.wrapping_sub(self.base) >> BLOCK_SHIFT) as usize;
        let is_plain =
            self.block_pages.get(block).is_some_and(|pages| pages + 2 <= self.limits.max_pages_per_block);
        (is_plain && self.free.len() >= 2) || self.has_room_at_bound(id)
    }

    #[cold]
    fn has_room_at_bound(&self, id: u64) -> bool {
        if !self.hashed.is_full() {
            return true;
        }
        // The first id of all decides where the blocks begin, so it is always inside.
        let path = if self.has_base { self.path(id) } else { Some(Path::default()) };
        path.is_some_and(|path| self.room(path.block) >= self.missing_pages(path))
    }

    /// The first open order with an id of at least `from`, among those kept in pages.
    #[must_use]
    pub fn first_from(&self, from: u64) -> Option<(u64, OrderHandle)> {
        let start = from.saturating_sub(self.base);
        let (root_from, directory_from, leaf_from) = (
            (start >> ROOT_SHIFT) as usize,
            (start >> PAGE_BITS) as usize % PAGE_LEN,
            start as usize % PAGE_LEN,
        );
        for root in root_from..self.root.len() {
            let first = if root == root_from { directory_from } else { 0 };
            let directory_page = self.root[root];
            if directory_page == NIL {
                continue;
            }
            for directory in first..PAGE_LEN {
                let leaf_page = self.pages[entry(directory_page, directory)];
                if leaf_page == NIL {
                    continue;
                }
                let is_first = root == root_from && directory == directory_from;
                let skipped = if is_first { leaf_from } else { 0 };
                let entries = &self.pages[entry(leaf_page, 0)..][..PAGE_LEN];
                if let Some(leaf) = (skipped..PAGE_LEN).find(|leaf| entries[*leaf] != NIL) {
                    let offset = (root << ROOT_SHIFT | directory << PAGE_BITS | leaf) as u64;
                    return Some((self.base + offset, OrderHandle::new(entries[leaf])?));
                }
            }
        }
        None
    }

    /// Pages in use.
    #[must_use]
    pub fn page_count(&self) -> u32 {
        self.limits.max_pages - self.free.len() as u32
    }

    /// Orders kept in the hash table.
    #[must_use]
    pub fn hashed_count(&self) -> u32 {
        self.hashed.len()
    }

    #[inline(always)]
    fn path(&self, id: u64) -> Option<Path> {
        // An id below the base becomes a very large offset, which is outside too.
        let offset = id.wrapping_sub(self.base);
        let root = (offset >> ROOT_SHIFT) as usize;
        (root < self.root.len()).then_some(Path {
            block: (offset >> BLOCK_SHIFT) as usize,
            root,
            directory: (offset >> PAGE_BITS) as usize % PAGE_LEN,
            leaf: offset as usize % PAGE_LEN,
        })
    }

    #[inline(always)]
    fn leaf(&self, path: Path) -> u32 {
        self.pages[entry(self.root[path.root], path.directory)]
    }

    /// Pages that a block may still take.
    fn room(&self, block: usize) -> u32 {
        (self.limits.max_pages_per_block - self.block_pages[block]).min(self.free.len() as u32)
    }

    fn missing_pages(&self, path: Path) -> u32 {
        match self.root[path.root] {
            NIL => 2,
            directory if self.pages[entry(directory, path.directory)] == NIL => 1,
            _ => 0,
        }
    }

    /// The leaf of a path, taken from the pool if it is not there; `None` at a bound.
    #[inline(always)]
    fn open_leaf(&mut self, path: Path) -> Option<u32> {
        match self.leaf(path) {
            NIL => self.take_leaf(path),
            leaf => Some(leaf),
        }
    }

    #[cold]
    fn take_leaf(&mut self, path: Path) -> Option<u32> {
        if self.room(path.block) < self.missing_pages(path) {
            return None;
        }
        if self.root[path.root] == NIL {
            self.root[path.root] = self.take_page(path.block)?;
        }
        let leaf = self.take_page(path.block)?;
        let directory = self.root[path.root] as usize;
        self.pages[directory * PAGE_LEN + path.directory] = leaf;
        self.used[directory] += 1;
        Some(leaf)
    }

    fn take_page(&mut self, block: usize) -> Option<u32> {
        let page = self.free.pop()?;
        self.block_pages[block] += 1;
        Some(page)
    }

    #[inline(always)]
    fn release(&mut self, path: Path, leaf: u32) {
        self.used[leaf as usize] -= 1;
        if self.used[leaf as usize] == 0 {
            self.give_back(path, leaf);
        }
    }

    /// Returns a leaf that became empty, and its directory if that did too. Both are all `NIL` again.
    #[cold]
    fn give_back(&mut self, path: Path, leaf: u32) {
        let directory = self.root[path.root];
        self.pages[entry(directory, path.directory)] = NIL;
        self.used[directory as usize] -= 1;
        self.free.push(leaf);
        self.block_pages[path.block] -= 1;
        if self.used[directory as usize] == 0 {
            self.root[path.root] = NIL;
            self.free.push(directory);
            self.block_pages[path.block] -= 1;
        }
    }

    #[cold]
    fn insert_outside(&mut self, id: u64, handle: OrderHandle) -> Result<(), InsertError> {
        self.insert_hashed(id, handle)
    }

    #[inline(always)]
    fn insert_hashed(&mut self, id: u64, handle: OrderHandle) -> Result<(), InsertError> {
        if self.hashed.insert_directly(id, handle) { Ok(()) } else { self.insert_displaced(id, handle) }
    }

    #[cold]
    fn insert_displaced(&mut self, id: u64, handle: OrderHandle) -> Result<(), InsertError> {
        if self.hashed.handle(id).is_some() {
            return Err(InsertError::Duplicate { id });
        }
        if self.hashed.is_full() {
            return Err(InsertError::IndexFull { id });
        }
        self.hashed.insert(id, handle);
        Ok(())
    }
}
