//! A queue of the events for which a ring has no capacity.

use tickpath_lockfree::spsc;

/// Events that wait in order for capacity in their ring.
///
/// The queue holds the events of one command, at most
/// [`max_events_per_command`](tickpath_matching::EngineLimits::max_events_per_command): the matcher applies
/// no further command until it is empty. The capacity is allocated at the start. The queue always fills from
/// its beginning and so reuses its memory pages; only more events than ever before cause page faults.
pub struct OverflowQueue<E> {
    events: Vec<E>,
    /// Number of `events` that have been moved into the ring.
    flushed: usize,
}

impl<E: Copy + Send> OverflowQueue<E> {
    /// A queue for up to `capacity` events.
    pub fn new(capacity: usize) -> OverflowQueue<E> {
        OverflowQueue { events: Vec::with_capacity(capacity), flushed: 0 }
    }

    /// True when no event is waiting.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Appends an event.
    ///
    /// # Panics
    /// When the queue is full, which the engine's bound on events rules out.
    #[cold]
    pub fn push(&mut self, event: E) {
        assert!(
            self.events.len() < self.events.capacity(),
            "one command causes no more events than its bound"
        );
        self.events.push(event);
    }

    /// Moves events into the ring until it is full or the queue is empty.
    #[inline]
    pub fn flush(&mut self, ring: &mut spsc::Producer<E>) {
        if !self.is_empty() {
            self.flush_waiting(ring);
        }
    }

    #[cold]
    fn flush_waiting(&mut self, ring: &mut spsc::Producer<E>) {
        while let Some(event) = self.events.get(self.flushed) {
            if ring.try_push(*event).is_err() {
                return;
            }
            self.flushed += 1;
        }
        self.events.clear();
        self.flushed = 0;
    }
}

/// Ends a ring: its reader finds the producer disconnected once it has read the remaining elements.
pub fn end_ring<E: Copy + Send>(ring: &mut spsc::Producer<E>) {
    // Without a reader there is nothing to end.
    if !ring.is_abandoned() {
        *ring = spsc::channel(1).0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_wait_in_order_up_to_the_bound() {
        let (mut ring, mut read) = spsc::channel(2);
        let mut overflow = OverflowQueue::new(5);
        let bound = overflow.events.capacity() as u32;
        for round in 0..3 {
            (0..bound).for_each(|event| overflow.push(round * 100 + event));
            let mut received = vec![];
            while !overflow.is_empty() {
                overflow.flush(&mut ring);
                received.extend(std::iter::from_fn(|| read.try_pop()));
            }
            assert_eq!(received, (0..bound).map(|event| round * 100 + event).collect::<Vec<_>>());
        }
    }

    #[test]
    #[should_panic(expected = "no more events than its bound")]
    fn exceeding_the_bound_panics() {
        let mut overflow = OverflowQueue::new(5);
        (0..=overflow.events.capacity()).for_each(|event| overflow.push(event));
    }

    #[test]
    fn an_ended_ring_is_disconnected_once_it_is_read() {
        let (mut ring, mut read) = spsc::channel(2);
        ring.try_push(1).unwrap();
        end_ring(&mut ring);
        end_ring(&mut ring);
        assert!(read.is_disconnected());
        assert_eq!((read.try_pop(), read.try_pop()), (Some(1), None));
    }
}
