//! Numbers of instruments that a feed names otherwise.

use tickpath_types::InstrumentId;

/// An odd number whose ones are spread.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A name of an instrument in its feed.
pub(crate) trait Name: Copy + Eq {
    /// Places of the table for each name.
    const PLACES_PER_NAME: usize;

    /// The place of the name in a table whose length is `1 << (64 - shift)`.
    fn place(self, shift: u32) -> usize;
}

/// The characters of a symbol. The high bits of the product depend on all of them.
impl Name for u64 {
    const PLACES_PER_NAME: usize = 4;

    #[inline(always)]
    fn place(self, shift: u32) -> usize {
        (self.wrapping_mul(FACTOR) >> shift) as usize
    }
}

/// The index of a symbol. A venue numbers its symbols one after the other, so the place of an index is its low bits. Where a venue chose indexes
/// that collide, a look-up would be a walk over its own symbols.
impl Name for u32 {
    const PLACES_PER_NAME: usize = 2;

    #[inline(always)]
    fn place(self, shift: u32) -> usize {
        (u64::from(self) << shift >> shift) as usize
    }
}

/// Numbers names from 1 on in the order of their first naming, up to a bound. Nothing is allocated after creation.
pub(crate) struct Numbering<K> {
    /// Names and their numbers, 0 in a free place. Of two names for one place the later has the next place.
    places: Box<[(K, u16)]>,
    shift: u32,
    count: u16,
    last: InstrumentId,
}

impl<K: Name + Default> Numbering<K> {
    /// Numbers up to `last`.
    pub(crate) fn new(last: InstrumentId) -> Numbering<K> {
        let len = ((usize::from(last.0) + 1) * K::PLACES_PER_NAME).next_power_of_two();
        let places = vec![(K::default(), 0); len].into();
        Numbering { places, shift: u64::BITS - len.ilog2(), count: 0, last }
    }

    /// The number of a name; 0 when it has none.
    #[inline(always)]
    pub(crate) fn find(&self, name: K) -> InstrumentId {
        InstrumentId(self.places[self.place(name)].1)
    }

    /// The place of a name: its own, or the free one where it would be entered. At least half of the places are free.
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

    /// The number of a name, the next one if it has none; `None` when there is none left.
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

    /// The numbers that are taken.
    pub(crate) fn ids(&self) -> impl Iterator<Item = InstrumentId> + use<K> {
        (1..=self.count).map(InstrumentId)
    }

    /// How many numbers are taken.
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
        // The first two share a place: the table has eight. The index 0 is one like others.
        for (index, number) in [(77, Some(1)), (77 + 8, Some(2)), (0, Some(3)), (5, None), (77 + 8, Some(2))]
        {
            assert_eq!(indexes.find_or_enter(index), number.map(InstrumentId), "{index}");
        }
        assert_eq!([77, 85, 0, 5].map(|index| indexes.find(index).0), [1, 2, 3, 0]);
    }
}
