//! Refreshes of XDP: their assembly from packets, and the symbols that wait for one.

use rustc_hash::FxHashMap;
use tickpath_nyse::Message;

use super::fields::index_of;

/// Maximum number of symbols that wait for a refresh; messages of further symbols are not kept.
const WAITING_MAX: usize = 1 << 16;
/// Maximum bytes of messages held for all waiting symbols. A message beyond it is dropped with all held
/// messages of its symbol, which then needs a newer refresh.
const HELD_BYTES_MAX: usize = 64 << 20;
/// Maximum bytes of a symbol's refresh; a longer one is dropped.
const REFRESH_BYTES_MAX: usize = 16 << 20;

/// Offset of the symbol's sequence number in messages about orders and trades.
const SYMBOL_SEQ: usize = 12;
/// Offset of the symbol's sequence number in messages whose time has seconds and nanoseconds.
const SYMBOL_SEQ_OF_FULL_TIME: usize = 16;

/// A symbol whose book is incomplete.
#[derive(Debug, Default)]
struct IncompleteSymbol {
    channel: u8,
    /// Sequence number of the channel's first message after the loss.
    since: u32,
    /// Symbol sequence number before which messages are missing: that of the first held message, or one past
    /// the last dropped message. `None` before any message.
    floor: Option<u32>,
    /// Held messages about the symbol, concatenated.
    held: Vec<u8>,
}

/// Symbols whose books are incomplete because messages were lost or preceded the capture, and their messages
/// since. A refresh that covers the loss completes the book; the held messages after it are then applied.
#[derive(Debug, Default)]
pub(super) struct IncompleteSymbols {
    by_index: FxHashMap<u32, IncompleteSymbol>,
    held_bytes: usize,
    /// Sequence number of each channel's first message after its last loss.
    since: FxHashMap<u8, u32>,
}

impl IncompleteSymbols {
    /// True while no symbol waits for a refresh.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.by_index.is_empty()
    }

    /// Handles the loss of a channel's messages before `next`: the books of `symbols` are incomplete.
    pub(super) fn handle_loss(&mut self, channel: u8, next: u32, symbols: impl Iterator<Item = u32>) {
        self.since.insert(channel, next);
        let known = self.by_index.iter().filter(|(_, waiting)| waiting.channel == channel);
        let known: Vec<u32> = known.map(|(index, _)| *index).collect();
        for index in symbols.chain(known) {
            self.remove(index);
            if self.by_index.len() < WAITING_MAX {
                self.by_index
                    .insert(index, IncompleteSymbol { channel, since: next, ..IncompleteSymbol::default() });
            }
        }
    }

    /// Removes all symbols of a channel when the channel's numbering restarts.
    pub(super) fn restart(&mut self, channel: u8) {
        self.since.remove(&channel);
        self.by_index.retain(|_, waiting| waiting.channel != channel);
        self.held_bytes = self.by_index.values().map(|waiting| waiting.held.len()).sum();
    }

    /// Removes a symbol and its held messages.
    pub(super) fn remove(&mut self, index: u32) {
        if let Some(waiting) = self.by_index.remove(&index) {
            self.held_bytes -= waiting.held.len();
        }
    }

    /// Holds a message about a symbol that waits for a refresh. A symbol that is not mapped waits from its
    /// first message on.
    #[cold]
    pub(super) fn hold(&mut self, index: u32, channel: u8, message: &[u8], is_mapped: bool) {
        let Some(sequence) = symbol_seq(message) else { return };
        if !self.by_index.contains_key(&index) {
            if is_mapped || self.by_index.len() == WAITING_MAX {
                return;
            }
            let since = self.since.get(&channel).copied().unwrap_or_default();
            self.by_index.insert(index, IncompleteSymbol { channel, since, ..IncompleteSymbol::default() });
        }
        let Some(waiting) = self.by_index.get_mut(&index) else { return };
        waiting.floor.get_or_insert(sequence);
        if self.held_bytes + message.len() > HELD_BYTES_MAX {
            self.held_bytes -= waiting.held.len();
            waiting.held = Vec::new();
            waiting.floor = Some(sequence.wrapping_add(1));
            return;
        }
        self.held_bytes += message.len();
        waiting.held.extend_from_slice(message);
    }

    /// Ends a symbol's wait if the refresh completes its book, and returns the messages held for it: none for a
    /// symbol that is neither waiting nor mapped. `None` if the book is complete already, or if the refresh ends
    /// before the channel's last loss or before the held messages begin.
    pub(super) fn take(&mut self, channel: u8, refresh: &Refresh, is_mapped: bool) -> Option<Vec<u8>> {
        let Some(waiting) = self.by_index.get(&refresh.index) else {
            let since = self.since.get(&channel).copied().unwrap_or_default();
            return (!is_mapped && is_up_to(refresh.last_seq, since)).then(Vec::new);
        };
        let covers_loss = is_up_to(refresh.last_seq, waiting.since)
            && waiting.floor.is_none_or(|floor| is_up_to(refresh.last_symbol_seq, floor));
        let waiting = covers_loss.then(|| self.by_index.remove(&refresh.index))??;
        self.held_bytes -= waiting.held.len();
        Some(waiting.held)
    }

    /// The channel that carried the messages of a waiting symbol.
    pub(super) fn channel_of(&self, index: u32) -> Option<u8> {
        self.by_index.get(&index).map(|waiting| waiting.channel)
    }
}

/// True when `first` is at most one past `last`, so that no number between them is missing; numbers wrap.
const fn is_up_to(last: u32, first: u32) -> bool {
    last.wrapping_add(1).wrapping_sub(first).cast_signed() >= 0
}

/// The symbol sequence number of a message, if its type has one.
fn symbol_seq(message: &[u8]) -> Option<u32> {
    let at = match message.get(2..4)? {
        [100..=104 | 110..=114, 0] => SYMBOL_SEQ,
        [32 | 34 | 105 | 106, 0] => SYMBOL_SEQ_OF_FULL_TIME,
        _ => return None,
    };
    message.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Splits concatenated messages, each of which begins with its length.
pub(super) fn split_messages(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let len = bytes.first_chunk().map(|len| usize::from(u16::from_le_bytes(*len)))?;
        let (message, rest) = bytes.split_at_checked(len)?;
        bytes = rest;
        Some(message)
    })
}

/// The held messages whose symbol sequence numbers follow `last`, the last one that a refresh covers.
pub(super) fn not_covered(held: &[u8], last: u32) -> impl Iterator<Item = &[u8]> {
    split_messages(held).filter(move |message| {
        symbol_seq(message).is_some_and(|sequence| sequence.wrapping_sub(last).cast_signed() > 0)
    })
}

/// The refresh of one symbol, complete or still being collected.
#[derive(Debug, Default)]
pub(super) struct Refresh {
    /// Index of the symbol.
    pub(super) index: u32,
    /// Sequence number of the last channel message that the refresh covers.
    pub(super) last_seq: u32,
    /// Symbol sequence number of the last message that the refresh covers.
    pub(super) last_symbol_seq: u32,
    /// Messages of the refresh, concatenated.
    pub(super) messages: Vec<u8>,
    /// Number of packets of the refresh.
    total: u16,
    /// Number of the refresh's next expected packet, from 1.
    next: u16,
}

impl Refresh {
    /// Adds the messages of a packet with this refresh header to `partial`; returns the refresh when it is
    /// complete. A packet that does not continue `partial` discards it.
    pub(super) fn take<'a>(
        partial: &mut Option<Refresh>,
        header: &[u8],
        messages: impl Iterator<Item = &'a [u8]>,
    ) -> Option<Refresh> {
        let Ok(Message::RefreshHeader(parsed)) = Message::parse(header) else { return None };
        let (current, total) = (parsed.current_refresh_pkt.get(), parsed.total_refresh_pkts.get());
        if let Some((last_seq, last_symbol_seq)) = parsed.covered() {
            *partial = Some(Refresh { last_seq, last_symbol_seq, total, next: 1, ..Refresh::default() });
        }
        let mut refresh =
            partial.take().filter(|refresh| (refresh.next, refresh.total) == (current, total))?;
        refresh.next = current.checked_add(1)?;
        for message in messages {
            if refresh.index == 0 {
                refresh.index = index_of(message).unwrap_or_default();
            }
            refresh.messages.extend_from_slice(message);
        }
        if current == total {
            return Some(refresh).filter(|refresh| refresh.index != 0);
        }
        *partial = Some(refresh).filter(|refresh| refresh.messages.len() <= REFRESH_BYTES_MAX);
        None
    }
}

#[cfg(test)]
mod tests {
    use tickpath_nyse::{DeleteOrder, RefreshHeader};
    use zerocopy::IntoBytes;

    use super::*;

    fn message(index: u32, sequence: u32) -> Vec<u8> {
        DeleteOrder::new(0, index, sequence, 7, 0).as_bytes().to_vec()
    }

    fn refresh(index: u32, last_seq: u32, last_symbol_seq: u32) -> Refresh {
        Refresh { index, last_seq, last_symbol_seq, ..Refresh::default() }
    }

    #[test]
    fn messages_that_a_refresh_does_not_cover_follow_it() {
        let mut incomplete = IncompleteSymbols::default();
        incomplete.handle_loss(1, 100, [5, 6].into_iter());
        for sequence in [u32::MAX, 0, 1] {
            incomplete.hold(5, 1, &message(5, sequence), true);
        }
        incomplete.hold(9, 1, &message(9, 1), true);
        assert_eq!((incomplete.channel_of(5), incomplete.channel_of(9)), (Some(1), None), "9 is whole");
        assert!(incomplete.take(1, &refresh(5, 98, 0), true).is_none(), "older than the loss");
        assert!(incomplete.take(1, &refresh(5, 99, u32::MAX - 2), true).is_none(), "misses what is not held");
        let held = incomplete.take(1, &refresh(5, 99, u32::MAX), true).unwrap();
        let left: Vec<_> = not_covered(&held, u32::MAX).collect();
        assert_eq!(left, [message(5, 0), message(5, 1)]);
        assert!(incomplete.take(1, &refresh(5, 99, u32::MAX), true).is_none(), "it is whole");
        assert_eq!(incomplete.take(1, &refresh(6, 99, 3), true), Some(Vec::new()));
        assert!(incomplete.is_empty() && incomplete.held_bytes == 0);
    }

    #[test]
    fn unmapped_symbols_wait_from_their_first_message() {
        let mut incomplete = IncompleteSymbols::default();
        incomplete.handle_loss(1, 50, std::iter::empty());
        incomplete.hold(5, 1, &message(5, 8), false);
        assert!(incomplete.take(1, &refresh(7, 48, 1), false).is_none(), "older than the capture");
        assert_eq!(incomplete.take(1, &refresh(7, 49, 1), false), Some(Vec::new()));
        // Another loss drops the held messages.
        incomplete.handle_loss(1, 60, std::iter::empty());
        assert!(incomplete.take(1, &refresh(5, 58, 8), false).is_none());
        assert_eq!(incomplete.take(1, &refresh(5, 59, 9), false), Some(Vec::new()));
        incomplete.hold(5, 1, &message(5, 8), false);
        incomplete.restart(1);
        assert!(incomplete.is_empty() && incomplete.held_bytes == 0);
    }

    #[test]
    fn beyond_the_bound_messages_are_dropped_and_a_newer_refresh_is_needed() {
        let mut incomplete =
            IncompleteSymbols { held_bytes: HELD_BYTES_MAX - 30, ..IncompleteSymbols::default() };
        incomplete.hold(5, 1, &message(5, 8), false);
        incomplete.hold(5, 1, &message(5, 9), false);
        assert_eq!(incomplete.held_bytes, HELD_BYTES_MAX - 30);
        assert!(incomplete.take(1, &refresh(5, 1, 8), false).is_none());
        assert_eq!(incomplete.take(1, &refresh(5, 1, 9), false), Some(Vec::new()));
    }

    #[test]
    fn a_refresh_of_several_packets_is_taken_in_order_only() {
        let header = |current: u16, total: u16, is_full: bool| {
            let whole = RefreshHeader::new(current, total, 9, 8);
            let mut bytes = whole.as_bytes()[..if is_full { 16 } else { 8 }].to_vec();
            bytes[0] = bytes.len() as u8;
            bytes
        };
        let order = message(5, 1);
        let mut partial = None;
        let mut take = |header: Vec<u8>| Refresh::take(&mut partial, &header, [&order[..]].into_iter());
        assert!(take(header(1, 2, true)).is_none());
        let whole = take(header(2, 2, false)).unwrap();
        assert_eq!((whole.index, whole.last_seq, whole.last_symbol_seq), (5, 9, 8));
        assert_eq!(split_messages(&whole.messages).count(), 2);
        assert!(take(header(2, 2, false)).is_none(), "without the first");
        assert!(take(header(1, 3, true)).is_none() && take(header(3, 3, false)).is_none(), "one is missing");
        assert!(take(header(1, 1, true)).is_some());
    }
}
