//! Instrument ids for feeds that use other identifiers.

use tickpath_types::InstrumentId;

/// Multiplier of the hash: odd, with well-distributed bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// An instrument's identifier in its feed.
pub(crate) trait Name: Copy + Eq {
    /// Table slots per identifier.
    const PLACES_PER_NAME: usize;

    /// Returns the slot of the identifier in a table of length `1 << (64 - shift)`.
    fn place(self, shift: u32) -> usize;
}

/// Symbol characters as the identifier. The slot is the high bits of the product with `FACTOR`, which depend
/// on all characters.
impl Name for u64 {
    const PLACES_PER_NAME: usize = 4;

    #[inline(always)]
    fn place(self, shift: u32) -> usize {
        (self.wrapping_mul(FACTOR) >> shift) as usize
    }
}

/// Symbol index as the identifier. A venue numbers its symbols consecutively, so the slot is the low bits. If
/// a venue chose colliding indexes, only look-ups of its symbols would become slow.
impl Name for u32 {
    const PLACES_PER_NAME: usize = 2;

    #[inline(always)]
    fn place(self, shift: u32) -> usize {
        (u64::from(self) << shift >> shift) as usize
    }
}

/// Assigns instrument ids from 1 on, in the order of first use, up to a limit. Allocates only at creation.
pub(crate) struct Numbering<K> {
    /// Identifiers and their instrument ids, 0 in a free slot. A colliding identifier takes the next free
    /// slot.
    places: Box<[(K, u16)]>,
    shift: u32,
    count: u16,
    last: InstrumentId,
}

impl<K: Name + Default> Numbering<K> {
    /// Creates a table for ids up to `last`.
    pub(crate) fn new(last: InstrumentId) -> Numbering<K> {
        let len = ((usize::from(last.0) + 1) * K::PLACES_PER_NAME).next_power_of_two();
        let places = vec![(K::default(), 0); len].into();
        Numbering { places, shift: u64::BITS - len.ilog2(), count: 0, last }
    }

    /// Returns the id of an identifier; 0 if it has none.
    #[inline(always)]
    pub(crate) fn find(&self, name: K) -> InstrumentId {
        InstrumentId(self.places[self.place(name)].1)
    }

    /// Returns the slot of an identifier, or the free slot for it. At least half of the slots are free.
    #[inline(always)]
    fn place(&self, name: K) -> usize {
        let mut place = name.place(self.shift);
        loop {
            let (found, number) = self.places[place];
            if found == name || number == 0 {
                return place;
            }
            place = (place + 1) & (self.places.len() - 1);
        }
    }

    /// Returns the id of an identifier, and assigns the next one if needed; `None` when none is left.
    #[cold]
    pub(crate) fn find_or_enter(&mut self, name: K) -> Option<InstrumentId> {
        let place = self.place(name);
        if self.places[place].1 == 0 {
            if self.count >= self.last.0 {
                return None;
            }
            self.count += 1;
            self.places[place] = (name, self.count);
        }
        Some(InstrumentId(self.places[place].1))
    }

    /// Returns the assigned ids.
    pub(crate) fn ids(&self) -> impl Iterator<Item = InstrumentId> + use<K> {
        (1..=self.count).map(InstrumentId)
    }

    /// Returns the number of assigned ids.
    pub(crate) const fn count(&self) -> u16 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_numbered_in_their_order_up_to_the_bound() {
        let mut symbols = Numbering::<u64>::new(InstrumentId(3_000));
        let symbol = |number: u64| u64::from_le_bytes(*b"S0000000") + (number << 16);
        for number in 1..=3_000 {
            assert_eq!(symbols.find(symbol(number)), InstrumentId(0));
            assert_eq!(symbols.find_or_enter(symbol(number)), Some(InstrumentId(number as u16)));
        }
        assert_eq!(
            (symbols.find_or_enter(symbol(3_001)), symbols.find(symbol(3_001))),
            (None, InstrumentId(0))
        );
        for number in 1..=3_000 {
            assert_eq!(symbols.find(symbol(number)), InstrumentId(number as u16));
        }
        assert_eq!(symbols.count(), 3_000);
    }

    #[test]
    fn the_last_number_of_all_can_be_given() {
        let mut symbols = Numbering::<u64>::new(InstrumentId(u16::MAX));
        for number in 0..u64::from(u16::MAX) {
            assert!(symbols.find_or_enter(number << 8).is_some());
        }
        assert_eq!(symbols.find_or_enter(1), None);
        assert_eq!(symbols.find(65_534 << 8), InstrumentId(u16::MAX));
    }

    #[test]
    fn indexes_are_numbered_as_they_come_up_to_the_bound() {
        let mut indexes = Numbering::<u32>::new(InstrumentId(3));
        assert_eq!(indexes.find(77), InstrumentId(0));
        // The first two indexes collide: the table has eight slots. Index 0 is an ordinary index.
        for (index, number) in [(77, Some(1)), (77 + 8, Some(2)), (0, Some(3)), (5, None), (77 + 8, Some(2))]
        {
            assert_eq!(indexes.find_or_enter(index), number.map(InstrumentId), "{index}");
        }
        assert_eq!([77, 85, 0, 5].map(|index| indexes.find(index).0), [1, 2, 3, 0]);
    }
}
