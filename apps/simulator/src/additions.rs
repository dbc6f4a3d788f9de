//! Instruments added while the venue runs, by draws of their own: the rest of a seed does not depend on them.

use tickpath_types::{Draw, Instrument, InstrumentTable, Nanos};

use crate::faults::FaultEvent;
use crate::venue::instrument;

/// Their symbols: one more than the venue has room for.
const SYMBOLS: [&str; 2] = ["DELTA", "ECHO"];
/// Added instruments that the venue has room for.
const ROOM: u16 = 1;
/// The order of the administrator that opens everything.
const OPEN_ALL: u64 = 13;

/// What is added when.
#[derive(Clone, Debug)]
pub(crate) struct Additions {
    /// Instruments that are there from the beginning.
    first: u16,
    pub(crate) fault_events: Vec<(Nanos, FaultEvent)>,
}

impl Additions {
    /// In every other run nothing is added; in the others something once at least, and sometimes again.
    pub(crate) fn new(seed: u64, first: u16, active: Nanos) -> Additions {
        let draw = &mut Draw::new(seed ^ 0x61_6464);
        let mut fault_events = Vec::new();
        if draw.below(2) == 0 {
            for _ in 0..=draw.below(3) {
                let at = Nanos(draw.below(active.0));
                let opened_at = at + Nanos::from_millis(30 + draw.below(60));
                fault_events.push((at, FaultEvent::AddInstrument(draw.below(SYMBOLS.len() as u64) as usize)));
                fault_events.push((opened_at, FaultEvent::Admin(OPEN_ALL)));
            }
        }
        Additions { first, fault_events }
    }

    /// The greatest id that there may be.
    pub(crate) fn max_id(&self) -> u16 {
        self.first + if self.fault_events.is_empty() { 0 } else { ROOM }
    }

    pub(crate) fn instrument(&self, place: usize) -> Instrument {
        instrument(self.first + 1 + place as u16, SYMBOLS[place])
    }

    /// What clients know of: those that are there from the beginning, then those that may come.
    pub(crate) fn table(&self, first: &InstrumentTable) -> InstrumentTable {
        let later =
            (0..SYMBOLS.len()).filter(|_| !self.fault_events.is_empty()).map(|place| self.instrument(place));
        let all: Vec<Instrument> = first.iter().copied().chain(later).collect();
        InstrumentTable::new(&all)
    }
}
