//! The broadcast sequence from which on broadcast events are newer than the download.

use tickpath_gateway_protocol::{Event, EventKind, Ready, ReadyScope};

/// Maximum number of instruments that are followed; their numbers start at 1.
pub const SYMBOLS_MAX: u32 = 1 << 16;
/// Value for an instrument whose download is incomplete.
const NOT_YET: u64 = u64::MAX;

/// Broadcast sequence that the download covers, for each instrument.
///
/// The gateway puts an instrument's state into the client's ring, followed by [`Ready`] with the current
/// broadcast sequence. A broadcast event of an instrument that is not ready is covered by the state still to
/// come. One up to the sequence of [`Ready`] is covered by the state received. This requires polling the
/// client's ring after a broadcast event is read and before it is returned.
#[derive(Debug)]
pub(crate) struct Joined {
    upto: Vec<u64>,
    /// Broadcast events up to this sequence were lost: an earlier state does not cover them.
    lost: u64,
}

impl Joined {
    /// No instrument is ready. Capacity for all is reserved now, and takes memory only as it is used.
    pub(crate) fn new() -> Joined {
        Joined { upto: Vec::with_capacity(SYMBOLS_MAX as usize), lost: 0 }
    }

    /// Records that broadcast events up to `lost` are missing: no instrument is ready.
    pub(crate) fn lose(&mut self, lost: u64) {
        self.lost = lost;
        self.upto.fill(NOT_YET);
    }

    /// Processes an event of the client's ring.
    #[inline]
    pub(crate) fn note(&mut self, event: &Event) {
        if event.header.kind == EventKind::READY {
            self.note_ready(event);
        }
    }

    #[cold]
    fn note_ready(&mut self, event: &Event) {
        let symbol = event.header.symbol;
        let Some(ready) = event.body::<Ready>().filter(|ready| ready.scope == ReadyScope::INSTRUMENT) else {
            return;
        };
        // A ready event queued before the loss does not cover the lost events.
        if symbol >= SYMBOLS_MAX || ready.broadcast_sequence < self.lost {
            return;
        }
        if symbol as usize >= self.upto.len() {
            self.upto.resize(symbol as usize + 1, NOT_YET);
        }
        self.upto[symbol as usize] = ready.broadcast_sequence;
    }

    /// Whether a broadcast event is to be returned; always true for events without an instrument.
    #[inline]
    pub(crate) fn follows(&self, event: &Event) -> bool {
        let symbol = event.header.symbol;
        symbol == 0 || self.upto.get(symbol as usize).is_some_and(|upto| event.header.sequence > *upto)
    }
}

#[cfg(test)]
mod tests {
    use tickpath_gateway_protocol::TopOfBook;

    use super::*;

    fn broadcast(symbol: u32, sequence: u64) -> Event {
        let mut event = Event::of(&TopOfBook::default());
        (event.header.symbol, event.header.sequence) = (symbol, sequence);
        event
    }

    fn ready(symbol: u32, scope: ReadyScope, broadcast_sequence: u64) -> Event {
        let mut event = Event::of(&Ready { scope, broadcast_sequence, ..Ready::default() });
        event.header.symbol = symbol;
        event
    }

    #[test]
    fn only_what_the_download_does_not_cover_follows() {
        let mut joined = Joined::new();
        assert!(joined.follows(&broadcast(0, 1)) && !joined.follows(&broadcast(3, 9)));
        joined.note(&ready(3, ReadyScope::MARKET_DATA, 1));
        assert!(!joined.follows(&broadcast(3, 9)));
        joined.note(&ready(3, ReadyScope::INSTRUMENT, 9));
        assert!(!joined.follows(&broadcast(3, 9)) && joined.follows(&broadcast(3, 10)));
        assert!(!joined.follows(&broadcast(2, 10)) && !joined.follows(&broadcast(u32::MAX, 10)));
        joined.note(&ready(u32::MAX, ReadyScope::INSTRUMENT, 0));
        assert_eq!(joined.upto.len(), 4, "a number beyond the bound takes no memory");
    }

    #[test]
    fn after_a_loss_a_state_of_before_leads_nowhere() {
        let mut joined = Joined::new();
        joined.note(&ready(3, ReadyScope::INSTRUMENT, 9));
        joined.lose(50);
        assert!(!joined.follows(&broadcast(3, 51)));
        joined.note(&ready(3, ReadyScope::INSTRUMENT, 49));
        assert!(!joined.follows(&broadcast(3, 51)), "the 50th is missing");
        joined.note(&ready(3, ReadyScope::INSTRUMENT, 50));
        assert!(joined.follows(&broadcast(3, 51)));
    }
}
