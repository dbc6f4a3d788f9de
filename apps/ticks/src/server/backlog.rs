//! The ticks of the session, encoded once for all subscribers.

use tickpath_ticks::checksum::fill_delays_and_checksums;
use tickpath_ticks::message::{TICK_LEN, Tick};
use tickpath_types::Nanos;
use zerocopy::{FromZeros, IntoBytes};

/// The smallest capacity of a backlog, in ticks.
const CAPACITY_MIN: usize = 1 << 12;

/// A ring of ticks. The place of a tick is its position in the session, counted from 0: its sequence number
/// less one.
///
/// Ticks are written first and sealed later: sealing adds the time of sending and the checksum. Each
/// subscriber reads from its own place. The ring never waits for subscribers, so each first checks that its
/// lag is at most [`retained`](Backlog::retained).
#[derive(Debug)]
pub(super) struct Backlog {
    ticks: Box<[Tick]>,
    /// Place of the next tick to be written.
    written: u64,
    /// Place of the next tick to be sealed.
    sealed: u64,
}

impl Backlog {
    /// Creates a ring of `capacity` ticks, rounded up to a power of two.
    pub(super) fn new(capacity: usize) -> Backlog {
        let capacity = capacity.max(CAPACITY_MIN).next_power_of_two();
        let ticks = vec![Tick::new_zeroed(); capacity].into();
        Backlog { ticks, written: 0, sealed: 0 }
    }

    /// Returns the maximum lag of a subscriber in ticks: half of the ring.
    pub(super) fn retained(&self) -> u64 {
        self.ticks.len() as u64 / 2
    }

    /// Returns the maximum number of ticks that are written before they are sealed: a quarter of the ring.
    pub(super) fn burst_max(&self) -> u64 {
        self.ticks.len() as u64 / 4
    }

    /// Returns the place of the next tick to be written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Returns the place of the next tick to be sealed; subscribers may read the ticks before it.
    pub(super) fn sealed(&self) -> u64 {
        self.sealed
    }

    /// Returns space for the next `count` ticks, or for fewer of them at the ring's end.
    #[inline]
    pub(super) fn write_space(&mut self, count: usize) -> &mut [Tick] {
        let at = self.index(self.written);
        let end = self.ticks.len().min(at + count);
        &mut self.ticks[at..end]
    }

    /// Marks the first `count` ticks of the [space](Backlog::write_space) as written.
    #[inline]
    pub(super) fn commit(&mut self, count: usize) {
        self.written += count as u64;
    }

    /// Writes the time of sending and the checksum into the ticks written since the last call.
    #[inline]
    pub(super) fn seal(&mut self, now: Nanos) {
        while self.sealed < self.written {
            let at = self.index(self.sealed);
            let end = self.ticks.len().min(at + (self.written - self.sealed) as usize);
            fill_delays_and_checksums(&mut self.ticks[at..end], now);
            self.sealed += (end - at) as u64;
        }
    }

    /// Returns the ticks at the places `from..end`, or fewer of them at the ring's end.
    #[inline]
    pub(super) fn ticks(&self, from: u64, end: u64) -> &[Tick] {
        debug_assert!(self.written - from <= self.ticks.len() as u64 && end <= self.sealed);
        let at = self.index(from);
        let len = self.ticks.len().min(at + (end - from) as usize);
        &self.ticks[at..len]
    }

    /// Returns the bytes of the tick at `place`.
    pub(super) fn bytes(&self, place: u64) -> [u8; TICK_LEN] {
        let mut bytes = [0; TICK_LEN];
        bytes.copy_from_slice(self.ticks[self.index(place)].as_bytes());
        bytes
    }

    #[inline]
    fn index(&self, place: u64) -> usize {
        place as usize & (self.ticks.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use tickpath_ticks::message::{Place, Quote};
    use tickpath_types::{InstrumentId, Price};

    use super::*;

    fn quote(sequence: u64) -> Tick {
        let place = Place { instrument: InstrumentId(1), symbol_sequence: 0, sequence };
        Quote::new(place, Nanos(sequence), (Price(1), 1), (Price(2), 1), 0).into()
    }

    fn make(backlog: &mut Backlog, mut count: usize) {
        while count > 0 {
            let next = backlog.written() + 1;
            let room = backlog.write_space(count);
            room.iter_mut().zip(next..).for_each(|(tick, sequence)| *tick = quote(sequence));
            let made = room.len();
            backlog.commit(made);
            count -= made;
        }
    }

    #[test]
    fn ticks_are_read_in_order_around_the_end_of_the_ring() {
        let mut backlog = Backlog::new(1);
        let mut place = 0;
        for burst in [1_000, 1, 1_024, 777, 1_024, 1_024, 1_024] {
            make(&mut backlog, burst);
            assert_eq!(backlog.sealed() + burst as u64, backlog.written());
            backlog.seal(Nanos(backlog.written() + 5));
            while place < backlog.sealed() {
                let ticks = backlog.ticks(place, backlog.sealed());
                for tick in ticks {
                    place += 1;
                    assert_eq!(tick.header.sequence.get(), place);
                    assert_eq!(u64::from(tick.send_delay_ns.get()), backlog.written() + 5 - place);
                }
                assert_eq!(backlog.bytes(place - 1), ticks.last().unwrap().as_bytes());
            }
        }
    }

    #[test]
    fn bounds_are_parts_of_the_ring() {
        let backlog = Backlog::new(5_000);
        assert_eq!((backlog.retained(), backlog.burst_max()), (4_096, 2_048));
    }
}
