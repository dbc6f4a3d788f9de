//! The queue of events whose ring is full.

use tickpath_lockfree::spsc;

/// Events that wait for capacity in their ring, in order.
///
/// Its bound is the number of events that one command can cause
/// ([`max_events_per_command`](tickpath_matching::EngineLimits::max_events_per_command)): the matcher applies
/// no other command before it is empty. Capacity for all is allocated at the start. It is always filled from
/// its beginning, so that sweeps reuse the same pages; the system provides the pages of a larger sweep when
/// that occurs.
pub struct OverflowQueue<E> {
    events: Vec<E>,
    /// Number of events that are already in the ring.
    flushed: usize,
}

impl<E: Copy + Send> OverflowQueue<E> {
    /// A queue with capacity for `capacity` events.
    pub fn new(capacity: usize) -> OverflowQueue<E> {
        OverflowQueue { events: Vec::with_capacity(capacity), flushed: 0 }
    }

    /// True when no event waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Appends an event.
    ///
    /// # Panics
    /// When the queue is full: the bound is the engine's, and no peer can change it.
    #[cold]
    pub fn push(&mut self, event: E) {
        assert!(
            self.events.len() < self.events.capacity(),
            "one command causes no more events than its bound"
        );
        self.events.push(event);
    }

    /// Moves as many events into the ring as it accepts.
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
    // A ring without a reader has nothing to notify, and may have ended already.
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
