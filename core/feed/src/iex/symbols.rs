//! The numbers of symbols, which IEX's messages name by their characters alone.

use tickpath_types::{InstrumentId, Symbol};

/// An odd number whose ones are spread: the high bits of a product by it depend on every bit of the symbol.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Slots for each symbol that there may be, so that a search takes hardly more than one step.
const SLOTS_PER_SYMBOL: usize = 4;

#[derive(Clone, Copy)]
struct Slot {
    symbol: u64,
    /// 0 in an empty slot.
    id: u16,
}

/// Numbers symbols from 1 on in the order of their first naming, up to a bound.
pub(super) struct Symbols {
    slots: Box<[Slot]>,
    shift: u32,
    count: u16,
    max: InstrumentId,
}

impl Symbols {
    /// Numbers up to `max`; all memory is taken now.
    pub(super) fn new(max: InstrumentId) -> Symbols {
        let len = ((usize::from(max.0) + 1) * SLOTS_PER_SYMBOL).next_power_of_two();
        Symbols {
            slots: vec![Slot { symbol: 0, id: 0 }; len].into_boxed_slice(),
            shift: u64::BITS - len.ilog2(),
            count: 0,
            max,
        }
    }

    /// Symbols that have a number.
    pub(super) const fn count(&self) -> u16 {
        self.count
    }

    /// The slot of a symbol: its own, or the empty one where it would be entered.
    #[inline(always)]
    fn slot(&self, symbol: u64) -> usize {
        let mut slot = (symbol.wrapping_mul(FACTOR) >> self.shift) as usize;
        // Three quarters of the slots are empty whatever comes, so a walk ends.
        while self.slots[slot].id != 0 && self.slots[slot].symbol != symbol {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    /// The number of a symbol, if it has one.
    #[inline(always)]
    pub(super) fn find(&self, symbol: Symbol) -> Option<InstrumentId> {
        match self.slots[self.slot(u64::from_le_bytes(symbol.0))].id {
            0 => None,
            id => Some(InstrumentId(id)),
        }
    }

    /// Gives a symbol the next number; `None` when there is none left. It must have none yet.
    #[cold]
    pub(super) fn enter(&mut self, symbol: Symbol) -> Option<InstrumentId> {
        if self.count >= self.max.0 {
            return None;
        }
        self.count += 1;
        let symbol = u64::from_le_bytes(symbol.0);
        self.slots[self.slot(symbol)] = Slot { symbol, id: self.count };
        Some(InstrumentId(self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_numbered_in_their_order_up_to_the_bound() {
        let mut symbols = Symbols::new(InstrumentId(3_000));
        let symbol = |number: u32| Symbol::new(&format!("S{number}")).expect("short");
        for number in 1..=3_000 {
            assert_eq!(symbols.find(symbol(number)), None);
            assert_eq!(symbols.enter(symbol(number)), Some(InstrumentId(number as u16)));
        }
        assert_eq!((symbols.enter(symbol(3_001)), symbols.find(symbol(3_001))), (None, None));
        for number in 1..=3_000 {
            assert_eq!(symbols.find(symbol(number)), Some(InstrumentId(number as u16)));
        }
        assert_eq!(symbols.count(), 3_000);
    }

    #[test]
    fn the_last_number_of_all_can_be_given() {
        let mut symbols = Symbols::new(InstrumentId(u16::MAX));
        for number in 0..u64::from(u16::MAX) {
            assert!(symbols.enter(Symbol((number << 8).to_le_bytes())).is_some());
        }
        assert_eq!(symbols.enter(Symbol([1; 8])), None);
        assert_eq!(symbols.find(Symbol((65_534_u64 << 8).to_le_bytes())), Some(InstrumentId(u16::MAX)));
    }
}
