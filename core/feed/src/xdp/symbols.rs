//! What a symbol index means.

use tickpath_nyse::PriceScale;
use tickpath_types::InstrumentId;

/// What is known of a mapped symbol, by its instrument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub scale: PriceScale,
    /// The venue's index.
    pub index: u32,
    /// SymbolSeqNum of the next message, 0 until one came.
    pub next_seq: u32,
    /// The channel that mapped it.
    pub channel: u8,
}

impl Row {
    const UNKNOWN: Row = Row { scale: PriceScale::FOUR_DECIMALS, index: 0, next_seq: 0, channel: 0 };
}

/// A place of the hash table: an index and its instrument, which is 0 while the place is free.
#[derive(Clone, Copy, Debug)]
struct Place {
    index: u32,
    instrument: u16,
}

/// Symbol indexes with their instruments, which are numbered from 1 in the order in which they are mapped.
///
/// A venue numbers its symbols one after the other, so the place of an index is the index itself by the table's length;
/// of two for one place the later has the next. At most half of the places are taken, and nothing is allocated after
/// creation. Where a venue chose indexes that collide, a look-up would be a walk over its own symbols.
#[derive(Clone, Debug)]
pub(super) struct SymbolTable {
    places: Box<[Place]>,
    mask: u32,
    /// By instrument.
    rows: Box<[Row]>,
    count: u16,
}

impl SymbolTable {
    /// Room for instruments up to `last`.
    pub fn new(last: InstrumentId) -> SymbolTable {
        let len = (2 * (u32::from(last.0) + 1)).next_power_of_two();
        SymbolTable {
            places: vec![Place { index: 0, instrument: 0 }; len as usize].into(),
            mask: len - 1,
            rows: vec![Row::UNKNOWN; usize::from(last.0) + 1].into(),
            count: 0,
        }
    }

    /// The instrument of an index; 0 when none is mapped to it.
    #[inline(always)]
    pub fn find(&self, index: u32) -> InstrumentId {
        let mut at = index & self.mask;
        loop {
            let place = self.places[at as usize];
            if place.index == index || place.instrument == 0 {
                return InstrumentId(place.instrument);
            }
            at = (at + 1) & self.mask;
        }
    }

    /// The instrument of an index, a new one when it is mapped for the first time; `None` when there is no room.
    pub fn find_or_map(&mut self, index: u32) -> Option<InstrumentId> {
        let known = self.find(index);
        if known.0 != 0 {
            return Some(known);
        }
        if usize::from(self.count) + 1 >= self.rows.len() {
            return None;
        }
        self.count += 1;
        let mut at = index & self.mask;
        while self.places[at as usize].instrument != 0 {
            at = (at + 1) & self.mask;
        }
        self.places[at as usize] = Place { index, instrument: self.count };
        self.rows[usize::from(self.count)].index = index;
        Some(InstrumentId(self.count))
    }

    /// How many instruments are mapped: they have the numbers up to this.
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// The row of an instrument that was found; that of nobody for 0.
    #[inline(always)]
    pub fn row(&self, id: InstrumentId) -> &Row {
        &self.rows[usize::from(id.0)]
    }

    /// The same, to be changed.
    #[inline(always)]
    pub fn row_mut(&mut self, id: InstrumentId) -> &mut Row {
        &mut self.rows[usize::from(id.0)]
    }

    /// The instruments that a channel mapped.
    pub fn of_channel(&self, channel: u8) -> impl Iterator<Item = InstrumentId> {
        (1..=self.count).filter(move |id| self.rows[usize::from(*id)].channel == channel).map(InstrumentId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_numbered_as_they_come_up_to_the_bound() {
        let mut table = SymbolTable::new(InstrumentId(3));
        assert_eq!(table.find(77), InstrumentId(0));
        assert_eq!(table.find_or_map(77), Some(InstrumentId(1)));
        // They share a place: the table has eight.
        assert_eq!(table.find_or_map(77 + 8), Some(InstrumentId(2)));
        assert_eq!(table.find_or_map(u32::MAX), Some(InstrumentId(3)));
        assert_eq!(table.find_or_map(5), None, "one beyond the bound");
        assert_eq!(table.find_or_map(77 + 8), Some(InstrumentId(2)));
        let found = [77, 85, u32::MAX, 5].map(|index| table.find(index).0);
        assert_eq!(found, [1, 2, 3, 0]);
        assert_eq!(table.row(InstrumentId(2)).index, 85);
    }

    #[test]
    fn the_index_0_is_an_index_like_others() {
        let mut table = SymbolTable::new(InstrumentId(2));
        assert_eq!(table.find(0), InstrumentId(0));
        assert_eq!(table.find_or_map(0), Some(InstrumentId(1)));
        assert_eq!(table.find(0), InstrumentId(1));
    }
}
