//! The message stream of a channel, and segments that resend its messages.

use tickpath_iex::{Feed, SegmentBuilder};
use tickpath_types::{Nanos, Sequence};

use crate::store::Store;

/// Maximum length in bytes of a gap fill segment, over UDP or TCP.
pub(super) const SEGMENT_LEN: usize = 1_400;

/// The fields of the channel that every answer carries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub(super) feed: Feed,
    pub(super) channel: u32,
    pub(super) session: u32,
    /// Send time of the newest segment, by the original publisher's clock.
    pub(super) sent: Nanos,
}

/// Writes the stored messages of `first..end` that fit into a segment in `buffer`; returns their number and
/// the segment.
pub(super) fn write_segment<'a>(
    stream: &Stream,
    store: &Store,
    first: u64,
    end: u64,
    buffer: &'a mut [u8],
) -> (u64, &'a [u8]) {
    let offset = offset_of(store, first);
    let Stream { feed, channel, session, sent } = *stream;
    let mut count = 0;
    let id = feed.protocol_id();
    let mut builder = SegmentBuilder::resuming(&mut *buffer, id, channel, session, Sequence(first), offset);
    for sequence in first..end {
        match store.message(sequence) {
            Some((message, _)) if builder.push(message).is_ok() => count += 1,
            _ => break,
        }
    }
    let len = builder.finish(sent).len();
    (count, &buffer[..len])
}

/// Stream offset of a message that is stored or directly follows a stored message; otherwise 0.
fn offset_of(store: &Store, sequence: u64) -> u64 {
    let behind = |sequence: u64| {
        let (message, offset) = store.message(sequence.checked_sub(1)?)?;
        Some(offset + 2 + message.len() as u64)
    };
    store.message(sequence).map(|(_, offset)| offset).or_else(|| behind(sequence)).unwrap_or(0)
}
