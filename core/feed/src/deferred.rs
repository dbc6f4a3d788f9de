//! Messages of a packet that are deferred to a later duty cycle.

use crate::reorder_buffer::{BufferedMessage, MessageStorage};

/// Maximum number of messages of a packet that are deferred. If it has more, all are applied at once.
pub const DEFERRED_MAX: usize = 8;

/// A short queue of messages, in sequence.
pub(crate) struct Deferred<R> {
    messages: [BufferedMessage<R>; DEFERRED_MAX],
    next: usize,
    end: usize,
}

impl<R: MessageStorage> Deferred<R> {
    pub(crate) const fn new() -> Deferred<R> {
        Deferred { messages: [BufferedMessage::NONE; DEFERRED_MAX], next: 0, end: 0 }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.next == self.end
    }

    /// Appends a message; returns false if it is too long or the queue is full.
    #[inline]
    pub(crate) fn push(&mut self, sequence: u64, message: &[u8]) -> bool {
        if self.is_empty() {
            (self.next, self.end) = (0, 0);
        }
        let is_kept = self.messages.get_mut(self.end).is_some_and(|place| place.set(sequence, message));
        self.end += usize::from(is_kept);
        is_kept
    }

    /// Removes and returns the oldest message.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<BufferedMessage<R>> {
        if self.is_empty() {
            return None;
        }
        self.next += 1;
        Some(self.messages[self.next - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_in_order_and_the_bound_refuses_one_more() {
        let mut deferred = Deferred::<[u8; 54]>::new();
        for _ in 0..2 {
            for number in 0..DEFERRED_MAX {
                assert!(deferred.push(number as u64, &[7; 54][..number]));
            }
            assert!(!deferred.push(99, b"one more"));
            for number in 0..DEFERRED_MAX {
                let popped = deferred.pop().unwrap();
                assert_eq!((popped.sequence, popped.message()), (number as u64, &vec![7; number][..]));
            }
            assert!(deferred.is_empty() && deferred.pop().is_none());
        }
        assert!(!deferred.push(1, &[0; 55]), "too long");
        assert!(deferred.is_empty());
    }
}
