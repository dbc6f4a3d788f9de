//! Reorder buffer for messages that arrive before earlier ones.

/// Maximum bytes of a held ITCH message: ITCH 5.0 needs 50, and 54 fill a 64-byte slot.
pub const MAX_BUFFERED_MESSAGE: usize = 54;

/// Storage for one message: an array with the length of the protocol's longest message.
pub trait MessageStorage: Copy + AsRef<[u8]> + AsMut<[u8]> {
    /// Storage without a message.
    const EMPTY: Self;
}

impl<const N: usize> MessageStorage for [u8; N] {
    const EMPTY: Self = [0; N];
}

/// A slot for one message; may be empty.
#[derive(Clone, Copy)]
pub(crate) struct BufferedMessage<R> {
    /// Sequence number of the message; 0 if the slot is empty.
    pub(crate) sequence: u64,
    len: u16,
    bytes: R,
}

impl<R: MessageStorage> BufferedMessage<R> {
    pub(crate) const NONE: BufferedMessage<R> = BufferedMessage { sequence: 0, len: 0, bytes: R::EMPTY };

    /// Stores a message; returns false and changes nothing if it is too long.
    #[inline]
    pub(crate) fn set(&mut self, sequence: u64, message: &[u8]) -> bool {
        let Some(bytes) = self.bytes.as_mut().get_mut(..message.len()) else { return false };
        bytes.copy_from_slice(message);
        (self.sequence, self.len) = (sequence, message.len() as u16);
        true
    }

    #[inline]
    pub(crate) fn message(&self) -> &[u8] {
        &self.bytes.as_ref()[..usize::from(self.len)]
    }
}

/// A fixed-size window of messages, indexed by sequence number.
///
/// Slot `sequence mod capacity` holds a message, so insertion, look-up and the check for a duplicate take one
/// access each. A message beyond the window is refused and requested again later.
pub(crate) struct ReorderBuffer<R> {
    slots: Box<[BufferedMessage<R>]>,
    count: usize,
    /// Lower bound of the held sequence numbers. `first_held` starts here, so it does not rescan a long gap.
    lowest: u64,
}

impl<R: MessageStorage> ReorderBuffer<R> {
    /// Creates a buffer of `capacity` messages, at least one.
    pub(crate) fn new(capacity: usize) -> ReorderBuffer<R> {
        ReorderBuffer { slots: vec![BufferedMessage::NONE; capacity.max(1)].into(), count: 0, lowest: 0 }
    }

    /// Holds `message` unless it lies beyond the window that starts at `next`, or is too long. Returns true
    /// if it was not held before and is held now.
    pub(crate) fn hold(&mut self, next: u64, sequence: u64, message: &[u8]) -> bool {
        if sequence - next >= self.slots.len() as u64 {
            return false;
        }
        let index = self.index(sequence);
        let slot = &mut self.slots[index];
        let held = slot.sequence;
        if held == sequence || !slot.set(sequence, message) {
            return false;
        }
        self.lowest = if self.count == 0 { sequence } else { self.lowest.min(sequence) };
        self.count += usize::from(held == 0);
        true
    }

    /// Removes all messages.
    pub(crate) fn clear(&mut self) {
        if self.count > 0 {
            self.slots.iter_mut().for_each(|slot| slot.sequence = 0);
            self.count = 0;
        }
    }

    /// Returns the message of `sequence` if it is held; does not remove it.
    pub(crate) fn peek(&self, sequence: u64) -> Option<&[u8]> {
        let slot = &self.slots[self.index(sequence)];
        (slot.sequence == sequence && sequence != 0).then(|| slot.message())
    }

    /// Removes and returns the message of `sequence` if it is held.
    pub(crate) fn take(&mut self, sequence: u64) -> Option<&[u8]> {
        if self.count == 0 {
            return None;
        }
        let index = self.index(sequence);
        let slot = &mut self.slots[index];
        if slot.sequence != sequence {
            return None;
        }
        slot.sequence = 0;
        self.count -= 1;
        self.lowest += u64::from(self.lowest == sequence);
        Some(slot.message())
    }

    /// Returns the lowest sequence number in `next..end` whose message is held.
    pub(crate) fn first_held(&mut self, next: u64, end: u64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let window_end = end.min(next.saturating_add(self.slots.len() as u64));
        let mut candidates = next.max(self.lowest)..window_end;
        self.lowest = candidates.find(|&sequence| self.slots[self.index(sequence)].sequence == sequence)?;
        Some(self.lowest)
    }

    fn index(&self, sequence: u64) -> usize {
        (sequence % self.slots.len() as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_window_is_bounded() {
        let mut buffer = ReorderBuffer::<[u8; MAX_BUFFERED_MESSAGE]>::new(4);
        assert!(buffer.hold(10, 13, b"d"));
        assert!(!buffer.hold(10, 14, b"e"), "one beyond the window");
        assert!(!buffer.hold(10, 13, b"d"), "already held");
        assert!(!buffer.hold(10, 12, &[0; MAX_BUFFERED_MESSAGE + 1]), "too long");
        assert!(buffer.hold(10, 12, &[7; MAX_BUFFERED_MESSAGE]));
        assert_eq!(buffer.first_held(10, 14), Some(12));
        assert_eq!(buffer.first_held(10, 12), None);
        assert_eq!(buffer.take(12).map(<[u8]>::len), Some(MAX_BUFFERED_MESSAGE));
        assert_eq!(buffer.take(12), None);
        assert_eq!(buffer.take(13), Some(&b"d"[..]));
        assert_eq!(buffer.first_held(10, 14), None);
    }

    proptest! {
        /// Messages arrive in any order, some beyond the window, which advances past delivered and lost ones.
        #[test]
        fn the_lowest_held_message_is_found(
            steps in prop::collection::vec((0_u64..40, 0_u8..8), 1..400)
        ) {
            const CAPACITY: u64 = 24;
            let mut buffer = ReorderBuffer::<[u8; 8]>::new(CAPACITY as usize);
            let mut expected = BTreeSet::new();
            let (mut next, mut end) = (1_u64, 1_u64);
            for (ahead, action) in steps {
                let sequence = next + ahead;
                match action {
                    0..5 if sequence > next => {
                        end = end.max(sequence + 1);
                        let is_new = sequence < next + CAPACITY && expected.insert(sequence);
                        prop_assert_eq!(buffer.hold(next, sequence, b"m"), is_new);
                    }
                    // The next message arrives in sequence.
                    5 | 6 => next += 1,
                    // The missing messages are lost.
                    _ => next = expected.first().copied().unwrap_or(end),
                }
                while buffer.take(next).is_some() {
                    prop_assert!(expected.remove(&next));
                    next += 1;
                }
                end = end.max(next);
                prop_assert_eq!(buffer.first_held(next, end), expected.first().copied());
            }
        }
    }
}
