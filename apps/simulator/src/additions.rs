//! Instruments added while the venue runs. They are drawn from a separate random stream, so that the run's
//! other random choices stay the same.

use tickpath_types::{Instrument, InstrumentTable, Nanos, Rng};

use crate::faults::FaultEvent;
use crate::venue::instrument;

/// Symbols of the added instruments: one more than the venue has capacity for.
const SYMBOLS: [&str; 2] = ["DELTA", "ECHO"];
/// Number of instruments that the venue has capacity to add.
const ADDED_CAPACITY: u16 = 1;
/// Argument of [`FaultEvent::Admin`] for the command that opens all instruments.
const OPEN_ALL: u64 = 13;

/// The added instruments and the times of their addition.
#[derive(Clone, Debug)]
pub(crate) struct Additions {
    /// Number of instruments at the start.
    first: u16,
    pub(crate) fault_events: Vec<(Nanos, FaultEvent)>,
}

impl Additions {
    /// Draws the additions: none in half of the runs, otherwise 1 to 3, sometimes one instrument twice.
    pub(crate) fn new(seed: u64, first: u16, active: Nanos) -> Additions {
        let rng = &mut Rng::new(seed ^ 0x61_6464);
        let mut fault_events = Vec::new();
        if rng.below(2) == 0 {
            for _ in 0..=rng.below(3) {
                let at = Nanos(rng.below(active.0));
                let opened_at = at + Nanos::from_millis(30 + rng.below(60));
                fault_events.push((at, FaultEvent::AddInstrument(rng.below(SYMBOLS.len() as u64) as usize)));
                fault_events.push((opened_at, FaultEvent::Admin(OPEN_ALL)));
            }
        }
        Additions { first, fault_events }
    }

    /// Returns the maximum id of the run's instruments.
    pub(crate) fn max_id(&self) -> u16 {
        self.first + if self.fault_events.is_empty() { 0 } else { ADDED_CAPACITY }
    }

    pub(crate) fn instrument(&self, place: usize) -> Instrument {
        instrument(self.first + 1 + place as u16, SYMBOLS[place])
    }

    /// Returns the instruments that clients know: those at the start, then those that may be added.
    pub(crate) fn table(&self, first: &InstrumentTable) -> InstrumentTable {
        let later =
            (0..SYMBOLS.len()).filter(|_| !self.fault_events.is_empty()).map(|place| self.instrument(place));
        let all: Vec<Instrument> = first.iter().copied().chain(later).collect();
        InstrumentTable::new(&all)
    }
}
