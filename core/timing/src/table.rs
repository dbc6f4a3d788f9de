//! A table in fixed memory that finds entries by id and finalises them in the order of entry.
//!
//! The table is set-associative: an id may use any of the [`WAYS`] slots of one set. Consecutive ids fill all
//! slots, and ids of several clients that share a set rarely displace one another. An entry is *live* until
//! it is finalised; a finalised entry remains readable until its slot is needed.

/// Number of slots that an id may use.
const WAYS: usize = 4;
/// Key of an empty slot: no id has more than 56 bits.
const EMPTY: u64 = u64::MAX;
const NIL: u32 = u32::MAX;

/// Index of a slot.
pub(crate) type Slot = u32;

/// The result of looking up or entering an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnterResult {
    /// The live entry of the id, possibly new.
    Live(Slot),
    /// The id's entry is finalised.
    Finalised,
    /// All slots of the id hold live entries; this is the oldest: finalise it and enter the id again.
    Full(Slot),
}

#[derive(Clone, Copy)]
struct Node {
    /// Time of entry, on the clock of the caller.
    entered_at: u64,
    /// Entry number; later entries have greater ones.
    order: u64,
    /// Neighbours in the list of live entries, which is in order of entry.
    older: u32,
    newer: u32,
    is_live: bool,
}

/// A table of entries `E`. All memory is allocated at creation.
pub(crate) struct Table<E> {
    keys: Vec<[u64; WAYS]>,
    nodes: Vec<Node>,
    entries: Vec<E>,
    oldest: u32,
    newest: u32,
    entered: u64,
}

impl<E: Clone + Default> Table<E> {
    /// A table of `capacity` entries, rounded up to a power of two and at least [`WAYS`].
    pub(crate) fn new(capacity: usize) -> Table<E> {
        let capacity = capacity.max(WAYS).next_power_of_two();
        assert!(capacity <= 1 << 28, "a table holds at most 2^28 entries");
        let node = Node { entered_at: 0, order: 0, older: NIL, newer: NIL, is_live: false };
        Table {
            keys: vec![[EMPTY; WAYS]; capacity / WAYS],
            nodes: vec![node; capacity],
            entries: vec![E::default(); capacity],
            oldest: NIL,
            newest: NIL,
            entered: 0,
        }
    }

    /// Returns the entry of `key`; creates it if there is none and the set has a slot without a live entry.
    pub(crate) fn enter(&mut self, key: u64, now: u64) -> EnterResult {
        let set = self.set(key);
        if let Some(slot) = self.find_in(set, key) {
            return if self.is_live(slot) { EnterResult::Live(slot) } else { EnterResult::Finalised };
        }
        let slot = self.slot_in(set);
        if self.is_live(slot) {
            return EnterResult::Full(slot);
        }
        self.occupy(slot, key, now);
        EnterResult::Live(slot)
    }

    /// The entry of `key`, live or finalised.
    pub(crate) fn find(&self, key: u64) -> Option<&E> {
        self.find_in(self.set(key), key).map(|slot| self.entry(slot))
    }

    pub(crate) fn entry(&self, slot: Slot) -> &E {
        &self.entries[slot as usize]
    }

    pub(crate) fn entry_mut(&mut self, slot: Slot) -> &mut E {
        &mut self.entries[slot as usize]
    }

    /// The id of the entry in a slot.
    pub(crate) fn key(&self, slot: Slot) -> u64 {
        self.keys[slot as usize / WAYS][slot as usize % WAYS]
    }

    /// The live entry that was entered first, if that was before `deadline`.
    pub(crate) fn oldest_before(&self, deadline: u64) -> Option<Slot> {
        (self.oldest != NIL && self.nodes[self.oldest as usize].entered_at < deadline).then_some(self.oldest)
    }

    /// Finalises a live entry.
    pub(crate) fn finalise(&mut self, slot: Slot) {
        let Node { older, newer, is_live, .. } = self.nodes[slot as usize];
        assert!(is_live, "an entry is finalised once");
        match older {
            NIL => self.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
        match newer {
            NIL => self.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        self.nodes[slot as usize].is_live = false;
    }

    /// Removes all entries, which must be finalised.
    pub(crate) fn clear(&mut self) {
        assert!(self.oldest == NIL, "live entries are finalised first");
        self.keys.fill([EMPTY; WAYS]);
    }

    fn is_live(&self, slot: Slot) -> bool {
        self.nodes[slot as usize].is_live
    }

    /// Index of the set of `key`. Consecutive ids use consecutive sets. A hash of a token's bits above its
    /// UserRefNum starts each session at another set.
    fn set(&self, key: u64) -> usize {
        let spread = (key >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        key.wrapping_add(spread) as usize & (self.keys.len() - 1)
    }

    fn find_in(&self, set: usize, key: u64) -> Option<Slot> {
        let way = self.keys[set].iter().position(|other| *other == key)?;
        Some((set * WAYS + way) as Slot)
    }

    /// Slot for a new entry of the set: an empty one, else the oldest finalised, else the oldest live one.
    fn slot_in(&self, set: usize) -> Slot {
        let first = set * WAYS;
        let way = (0..WAYS)
            .min_by_key(|way| {
                let node = self.nodes[first + way];
                (self.keys[set][*way] != EMPTY, node.is_live, node.order)
            })
            .expect("a set has ways");
        (first + way) as Slot
    }

    fn occupy(&mut self, slot: Slot, key: u64, now: u64) {
        self.keys[slot as usize / WAYS][slot as usize % WAYS] = key;
        self.entries[slot as usize] = E::default();
        self.nodes[slot as usize] =
            Node { entered_at: now, order: self.entered, older: self.newest, newer: NIL, is_live: true };
        self.entered += 1;
        match self.newest {
            NIL => self.oldest = slot,
            newest => self.nodes[newest as usize].newer = slot,
        }
        self.newest = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(table: &mut Table<u64>, key: u64, now: u64) -> Slot {
        match table.enter(key, now) {
            EnterResult::Live(slot) => slot,
            other => panic!("{key}: {other:?}"),
        }
    }

    #[test]
    fn dense_ids_fill_the_table() {
        let mut table: Table<u64> = Table::new(16);
        let slots: Vec<Slot> = (100..116).map(|key| live(&mut table, key, key)).collect();
        assert_eq!(table.enter(116, 116), EnterResult::Full(slots[0]));
        table.finalise(slots[0]);
        assert!(table.find(100).is_some(), "finalised entries stay readable");
        assert_eq!(table.enter(100, 116), EnterResult::Finalised);
        assert_eq!(live(&mut table, 116, 116), slots[0]);
        assert!(table.find(100).is_none());
        assert_eq!(table.find(116), Some(&0), "a new entry starts empty");
    }

    #[test]
    fn entries_are_returned_by_age() {
        let mut table: Table<u64> = Table::new(8);
        let slots: Vec<Slot> = (0..5).map(|key| live(&mut table, key, 10 * key)).collect();
        table.finalise(slots[2]);
        table.finalise(slots[4]);
        let mut order = Vec::new();
        assert_eq!(table.oldest_before(0), None);
        while let Some(slot) = table.oldest_before(30) {
            order.push(table.key(slot));
            table.finalise(slot);
        }
        assert_eq!(order, [0, 1]);
        assert_eq!(table.oldest_before(u64::MAX), Some(slots[3]));
        table.finalise(slots[3]);
        live(&mut table, 9, 90);
        assert_eq!(table.oldest_before(u64::MAX).map(|slot| table.key(slot)), Some(9));
    }

    #[test]
    fn finalised_slots_are_reused_before_live_ones() {
        let mut table: Table<u64> = Table::new(4);
        let slots: Vec<Slot> = (0..4).map(|key| live(&mut table, key, 0)).collect();
        table.finalise(slots[2]);
        table.finalise(slots[1]);
        assert_eq!(live(&mut table, 7, 0), slots[1], "the finalised entry that came first");
        assert_eq!(live(&mut table, 8, 0), slots[2]);
        assert_eq!(table.enter(9, 0), EnterResult::Full(slots[0]));
    }

    #[test]
    fn a_cleared_table_is_empty() {
        let mut table: Table<u64> = Table::new(4);
        let slot = live(&mut table, 5, 0);
        *table.entry_mut(slot) = 77;
        table.finalise(slot);
        table.clear();
        assert!(table.find(5).is_none());
        let slot = live(&mut table, 5, 0);
        assert_eq!(*table.entry(slot), 0);
    }
}
