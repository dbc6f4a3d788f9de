//! Messages of a packet that wait for their turn.

use tickpath_feed::MAX_HELD_MESSAGE;
use tickpath_types::Sequence;

/// Messages that can wait: a packet with more of them is a burst, in which the sum counts and not the first.
pub(crate) const DEFERRED_MAX: usize = 8;

#[derive(Clone, Copy)]
struct Message {
    sequence: Sequence,
    len: u16,
    bytes: [u8; MAX_HELD_MESSAGE],
}

/// A short queue of messages, in sequence.
pub(crate) struct Deferred {
    messages: [Message; DEFERRED_MAX],
    next: usize,
    end: usize,
}

impl Deferred {
    pub(crate) fn new() -> Deferred {
        let none = Message { sequence: Sequence(0), len: 0, bytes: [0; MAX_HELD_MESSAGE] };
        Deferred { messages: [none; DEFERRED_MAX], next: 0, end: 0 }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.end
    }

    /// Keeps a message; false when it is too long, or too many wait.
    #[inline]
    pub(crate) fn push(&mut self, sequence: Sequence, message: &[u8]) -> bool {
        if self.is_empty() {
            (self.next, self.end) = (0, 0);
        }
        let Some(place) = self.messages.get_mut(self.end) else { return false };
        let Some(bytes) = place.bytes.get_mut(..message.len()) else { return false };
        bytes.copy_from_slice(message);
        place.sequence = sequence;
        place.len = message.len() as u16;
        self.end += 1;
        true
    }

    /// Takes the oldest message out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Sequence, [u8; MAX_HELD_MESSAGE], usize)> {
        if self.is_empty() {
            return None;
        }
        let message = &self.messages[self.next];
        self.next += 1;
        Some((message.sequence, message.bytes, usize::from(message.len)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_in_order_and_the_bound_refuses_one_more() {
        let mut deferred = Deferred::new();
        for _ in 0..2 {
            for number in 0..DEFERRED_MAX {
                assert!(deferred.push(Sequence(number as u64), &[7; MAX_HELD_MESSAGE][..number]));
            }
            assert!(!deferred.push(Sequence(99), b"one more"));
            for number in 0..DEFERRED_MAX {
                let (sequence, bytes, len) = deferred.pop().unwrap();
                assert_eq!((sequence.0, &bytes[..len]), (number as u64, &vec![7; number][..]));
            }
            assert!(deferred.is_empty() && deferred.pop().is_none());
        }
        assert!(!deferred.push(Sequence(1), &[0; MAX_HELD_MESSAGE + 1]), "too long");
        assert!(deferred.is_empty());
    }
}
