//! The index from ids that clients choose, such as `UserRefNum`s, to handles.

use tickpath_lockfree::cpu::prefetch_index;

use crate::OrderHandle;
use crate::index::InsertError;
use crate::record::NIL;

/// Number of bits of an id that select an entry of one page.
const PAGE_BITS: u32 = 10;
/// Number of entries of a page.
const PAGE_LEN: usize = 1 << PAGE_BITS;
/// Number of an id's low bits that do not select its root entry: a root entry covers 2^20 ids.
const ROOT_SHIFT: u32 = 2 * PAGE_BITS;
/// Number of low bits of an id's offset that select the id within its block of 2^32 ids.
const BLOCK_SHIFT: u32 = 32;

/// Number of root entries of a block that are used.
const BLOCK_ROOTS: usize = 1 << (BLOCK_SHIFT - ROOT_SHIFT);
/// Number of unused entries behind each page, and behind the root entries of each block: one cache line. At a
/// distance of a power of two, the entries that clients in step use would compete for one set of the cache.
const GAP: usize = 16;

/// Index of a page's entry among the entries of all pages.
#[inline(always)]
const fn entry(page: u32, place: usize) -> usize {
    page as usize * (PAGE_LEN + GAP) + place
}

/// Index of the root entry for an id's offset; too large for one beyond the last block.
#[inline(always)]
const fn root_of(offset: u64) -> usize {
    ((offset >> ROOT_SHIFT) + (offset >> BLOCK_SHIFT) * GAP as u64) as usize
}

/// Bounds of a [`PageIndex`]; all memory is allocated at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimits {
    /// Number of blocks of 2^32 ids, from the base on. Ids outside these blocks are rejected.
    pub blocks: u32,
    /// Maximum number of pages of 1024 ids (4,160 bytes) in use. A group of 1024 ids with open orders takes one
    /// page, and a group of 2^20 ids one more for its directory.
    pub max_pages: u32,
    /// Maximum number of pages of one block: limits a single client if each client has its own block.
    pub max_pages_per_block: u32,
}

/// Index of open orders by ids that clients choose, for clients whose ids are nearly consecutive.
///
/// A tree of three levels with pages of 1024 entries, in which no client can slow down another's look-ups. A
/// look-up takes three loads; the entries of the upper two levels stay in the nearest cache. A page returns
/// to the pool when its last order is removed. Nothing is allocated after creation.
#[derive(Clone, Debug)]
pub struct PageIndex {
    limits: PageLimits,
    /// First id of the first block.
    base: u64,
    /// Directory page of each range of 2^20 ids: for each block [`BLOCK_ROOTS`] entries and a [`GAP`].
    root: Vec<u32>,
    /// All pages of [`PAGE_LEN`] entries and a [`GAP`]: page numbers in a directory page, slots in a leaf.
    pages: Vec<u32>,
    /// Number of used entries of each page.
    used: Vec<u16>,
    free: Vec<u32>,
    block_pages: Vec<u32>,
}

/// An id's path through the tree.
#[derive(Clone, Copy, Debug)]
struct Path {
    block: usize,
    root: usize,
    directory: usize,
    leaf: usize,
}

/// Writes each value back, since memory that was only read is still the kernel's shared page of zeroes.
fn touch<T: Copy>(entries: &mut [T]) {
    entries.iter_mut().for_each(|entry| *entry = std::hint::black_box(*entry));
}

impl PageIndex {
    /// An empty index whose blocks begin at `base`. Its pages are touched at their first use, or by
    /// [`prefault`](Self::prefault).
    #[must_use]
    pub fn untouched(limits: PageLimits, base: u64) -> PageIndex {
        let roots = limits.blocks as usize * (BLOCK_ROOTS + GAP);
        let pages = limits.max_pages as usize + 1;
        PageIndex {
            limits,
            base,
            // Zeroes, which the allocator returns untouched.
            root: vec![NIL; roots],
            used: vec![0; pages],
            pages: vec![NIL; pages * (PAGE_LEN + GAP)],
            free: (1..=limits.max_pages).rev().collect(),
            block_pages: vec![0; limits.blocks as usize],
        }
    }

    /// Touches all memory that has not been touched yet, so that no order costs a page fault.
    pub fn prefault(&mut self) {
        touch(&mut self.pages);
        touch(&mut self.root);
        touch(&mut self.used);
    }

    /// Handle of the open order with this id.
    #[inline(always)]
    #[must_use]
    pub fn find(&self, id: u64) -> Option<OrderHandle> {
        let path = self.path(id)?;
        OrderHandle::new(self.pages[entry(self.leaf(path), path.leaf)])
    }

    /// Prefetches the entry that [`find`](Self::find) and [`remove`](Self::remove) of this id read.
    #[inline(always)]
    pub fn prefetch(&self, id: u64) {
        if let Some(path) = self.path(id) {
            prefetch_index(&self.pages, entry(self.leaf(path), path.leaf));
        }
    }

    /// Enters an order.
    ///
    /// # Errors
    /// [`InsertError`] when a bound is reached or the id is already present; the index is then unchanged.
    #[inline(always)]
    pub fn insert(&mut self, id: u64, handle: OrderHandle) -> Result<(), InsertError> {
        let Some((path, leaf)) = self.path(id).and_then(|path| Some((path, self.open_leaf(path, id)?)))
        else {
            return Err(InsertError::IndexFull(id));
        };
        let index = entry(leaf, path.leaf);
        // Clients count up, so the entries of the next line will be entered soon.
        prefetch_index(&self.pages, index + GAP);
        let slot = &mut self.pages[index];
        if *slot != NIL {
            return Err(InsertError::Duplicate(id));
        }
        *slot = handle.slot();
        self.used[leaf as usize] += 1;
        Ok(())
    }

    /// Removes an order and returns its handle.
    #[inline(always)]
    pub fn remove(&mut self, id: u64) -> Option<OrderHandle> {
        let path = self.path(id)?;
        let leaf = self.leaf(path);
        let slot = std::mem::replace(&mut self.pages[entry(leaf, path.leaf)], NIL);
        if slot != NIL {
            self.release(id, leaf);
        }
        OrderHandle::new(slot)
    }

    /// True when `insert` of an id that is not present would find capacity.
    #[inline]
    #[must_use]
    pub fn has_capacity(&self, id: u64) -> bool {
        let block = (id.wrapping_sub(self.base) >> BLOCK_SHIFT) as usize;
        let is_plain =
            self.block_pages.get(block).is_some_and(|pages| pages + 2 <= self.limits.max_pages_per_block);
        (is_plain && self.free.len() >= 2) || self.has_capacity_at_bound(id)
    }

    #[cold]
    fn has_capacity_at_bound(&self, id: u64) -> bool {
        self.path(id).is_some_and(|path| self.free_pages(path.block) >= self.missing_pages(path))
    }

    /// Id and handle of the first open order with an id of at least `from`.
    #[must_use]
    pub fn first_from(&self, from: u64) -> Option<(u64, OrderHandle)> {
        let start = from.saturating_sub(self.base);
        let (root_from, directory_from, leaf_from) =
            (root_of(start), (start >> PAGE_BITS) as usize % PAGE_LEN, start as usize % PAGE_LEN);
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
                    let (block, root) = (root / (BLOCK_ROOTS + GAP), root % (BLOCK_ROOTS + GAP));
                    let offset = block << BLOCK_SHIFT | root << ROOT_SHIFT | directory << PAGE_BITS | leaf;
                    return Some((self.base + offset as u64, OrderHandle::new(entries[leaf])?));
                }
            }
        }
        None
    }

    /// Number of pages in use.
    #[must_use]
    pub fn page_count(&self) -> u32 {
        self.limits.max_pages - self.free.len() as u32
    }

    #[inline(always)]
    fn path(&self, id: u64) -> Option<Path> {
        // An id below the base becomes a very large offset, which is outside the blocks.
        let offset = id.wrapping_sub(self.base);
        let root = root_of(offset);
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

    /// Number of pages that a block can still take: limited by its own bound and by the pool.
    fn free_pages(&self, block: usize) -> u32 {
        (self.limits.max_pages_per_block - self.block_pages[block]).min(self.free.len() as u32)
    }

    fn missing_pages(&self, path: Path) -> u32 {
        match self.root[path.root] {
            NIL => 2,
            directory if self.pages[entry(directory, path.directory)] == NIL => 1,
            _ => 0,
        }
    }

    /// The leaf of a path, taken from the pool if absent; `None` at a bound.
    #[inline(always)]
    fn open_leaf(&mut self, path: Path, id: u64) -> Option<u32> {
        match self.leaf(path) {
            NIL => self.take_leaf(id),
            leaf => Some(leaf),
        }
    }

    // Takes the id and not its path, which would be stored in memory for each look-up.
    #[cold]
    fn take_leaf(&mut self, id: u64) -> Option<u32> {
        let path = self.path(id)?;
        if self.free_pages(path.block) < self.missing_pages(path) {
            return None;
        }
        if self.root[path.root] == NIL {
            self.root[path.root] = self.take_page(path.block)?;
        }
        let leaf = self.take_page(path.block)?;
        let directory = self.root[path.root];
        self.pages[entry(directory, path.directory)] = leaf;
        self.used[directory as usize] += 1;
        Some(leaf)
    }

    fn take_page(&mut self, block: usize) -> Option<u32> {
        let page = self.free.pop()?;
        self.block_pages[block] += 1;
        Some(page)
    }

    #[inline(always)]
    fn release(&mut self, id: u64, leaf: u32) {
        let used = &mut self.used[leaf as usize];
        *used -= 1;
        if *used == 0 {
            self.release_pages(id, leaf);
        }
    }

    /// Returns an empty leaf to the pool, and its directory if that is empty too. All entries of an empty
    /// page are `NIL`.
    #[cold]
    fn release_pages(&mut self, id: u64, leaf: u32) {
        let Some(path) = self.path(id) else { return };
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
}
