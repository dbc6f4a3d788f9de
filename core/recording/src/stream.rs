//! Reassembly of TCP streams from captured segments.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Segment;

/// Maximum bytes of one stream held behind a gap; beyond this the gap counts as lost.
pub const STREAM_HELD_MAX: usize = 1 << 20;
/// Maximum distance of a segment from the next expected byte; more distant ones are of another connection.
const DISTANCE_MAX: u32 = 1 << 30;

/// Counters of a stream's segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamCounters {
    /// Number of segments with payload.
    pub segments: u64,
    /// Number of bytes that were received again.
    pub retransmitted_bytes: u64,
    /// Number of segments that arrived before their predecessors.
    pub out_of_order: u64,
    /// Number of gaps that were never filled: the capture missed segments.
    pub holes: u64,
    /// Number of bytes missing in `holes`.
    pub lost_bytes: u64,
    /// Number of times that another connection with the same ports began.
    pub restarts: u64,
}

/// The output of a [`StreamReader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamData<'a> {
    /// The next bytes of the stream.
    Bytes(&'a [u8]),
    /// A discontinuity: bytes are missing, or a new connection began.
    Broken,
}

/// Reassembles one direction of a TCP connection: outputs its bytes in order, each once.
///
/// The reader holds up to [`STREAM_HELD_MAX`] bytes behind a gap. Beyond that, or when the stream ends, it
/// counts the gap as lost and outputs the held bytes.
///
/// ```
/// use tickpath_recording::{Segment, StreamData, StreamReader};
///
/// let segment = |sequence| Segment { sequence, is_syn: false, is_fin: false, is_reset: false };
/// let (mut stream, mut text) = (StreamReader::default(), Vec::new());
/// for (sequence, payload) in [(10, b"one "), (18, b"end "), (14, b"two "), (14, b"two ")] {
///     stream.handle_segment(&segment(sequence), payload, &mut |data| {
///         if let StreamData::Bytes(bytes) = data {
///             text.extend_from_slice(bytes);
///         }
///     });
/// }
/// assert_eq!(text, b"one two end ");
/// assert_eq!((stream.counters().out_of_order, stream.counters().retransmitted_bytes), (1, 4));
/// ```
#[derive(Debug, Default)]
pub struct StreamReader {
    /// Sequence number of the next expected byte, extended beyond 2^32; `None` before the first segment.
    next: Option<u64>,
    /// Payloads behind a gap, by the extended sequence number of their first byte.
    held: BTreeMap<u64, Vec<u8>>,
    held_len: usize,
    counters: StreamCounters,
}

impl StreamReader {
    /// The counters so far.
    #[must_use]
    pub const fn counters(&self) -> &StreamCounters {
        &self.counters
    }

    /// Handles a segment; outputs the bytes that are now next in sequence, including bytes held before.
    pub fn handle_segment(
        &mut self,
        segment: &Segment,
        payload: &[u8],
        out: &mut impl FnMut(StreamData<'_>),
    ) {
        let sequence = segment.sequence.wrapping_add(u32::from(segment.is_syn));
        if segment.is_syn {
            self.begin(sequence, out);
        }
        if !payload.is_empty() {
            self.counters.segments += 1;
            let next = *self.next.get_or_insert(u64::from(sequence));
            let first = unwrap_sequence(next, sequence);
            if first.abs_diff(next) > u64::from(DISTANCE_MAX) {
                // Another connection uses the same ports, and its beginning was not captured.
                self.begin(sequence, out);
            }
            self.take(payload, sequence, out);
        }
        if segment.is_fin || segment.is_reset {
            self.finish(out);
        }
    }

    /// Outputs the data held behind gaps; the gaps count as lost.
    pub fn finish(&mut self, out: &mut impl FnMut(StreamData<'_>)) {
        while !self.held.is_empty() {
            self.skip_gap(out);
        }
    }

    /// Begins a connection whose first byte has number `sequence`; a repeated SYN changes nothing.
    fn begin(&mut self, sequence: u32, out: &mut impl FnMut(StreamData<'_>)) {
        let begin = u64::from(sequence);
        if self.next.is_some_and(|next| next == begin && self.held.is_empty()) {
            return;
        }
        self.finish(out);
        if self.next.replace(begin).is_some() {
            self.counters.restarts += 1;
            out(StreamData::Broken);
        }
    }

    fn take(&mut self, payload: &[u8], sequence: u32, out: &mut impl FnMut(StreamData<'_>)) {
        let next = self.next.unwrap_or_default();
        let first = unwrap_sequence(next, sequence);
        if first > next {
            self.counters.out_of_order += 1;
            self.hold(first, payload);
            while self.held_len > STREAM_HELD_MAX {
                self.skip_gap(out);
            }
            return;
        }
        self.output(first, payload, out);
        self.output_held(out);
    }

    fn hold(&mut self, first: u64, payload: &[u8]) {
        let held = self.held.entry(first).or_default();
        if held.len() >= payload.len() {
            self.counters.retransmitted_bytes += payload.len() as u64;
            return;
        }
        self.counters.retransmitted_bytes += held.len() as u64;
        self.held_len += payload.len() - held.len();
        payload.clone_into(held);
    }

    /// Outputs the part of `bytes` that is new. `first` is the extended sequence number of `bytes[0]`, at
    /// most the number of the next byte.
    fn output(&mut self, first: u64, bytes: &[u8], out: &mut impl FnMut(StreamData<'_>)) {
        let next = self.next.unwrap_or(first);
        let known = usize::try_from(next - first).unwrap_or(usize::MAX).min(bytes.len());
        self.counters.retransmitted_bytes += known as u64;
        if known < bytes.len() {
            self.next = Some(next + (bytes.len() - known) as u64);
            out(StreamData::Bytes(&bytes[known..]));
        }
    }

    fn output_held(&mut self, out: &mut impl FnMut(StreamData<'_>)) {
        while let Some(entry) = self.held.first_entry() {
            if *entry.key() > self.next.unwrap_or_default() {
                break;
            }
            let (first, bytes) = entry.remove_entry();
            self.held_len -= bytes.len();
            self.output(first, &bytes, out);
        }
    }

    fn skip_gap(&mut self, out: &mut impl FnMut(StreamData<'_>)) {
        let (Some(next), Some((&first, _))) = (self.next, self.held.first_key_value()) else { return };
        self.counters.holes += 1;
        self.counters.lost_bytes += first - next;
        self.next = Some(first);
        out(StreamData::Broken);
        self.output_held(out);
    }
}

/// Extends a wrapping 32-bit sequence number to the position nearest to `near`.
fn unwrap_sequence(near: u64, sequence: u32) -> u64 {
    let distance = sequence.wrapping_sub(near as u32).cast_signed();
    near.saturating_add_signed(i64::from(distance))
}

#[cfg(test)]
mod tests {
    use tickpath_types::Rng;

    use super::*;

    fn segment(sequence: u32) -> Segment {
        Segment { sequence, is_syn: false, is_fin: false, is_reset: false }
    }

    fn collect(stream: &mut StreamReader, segment: &Segment, payload: &[u8], text: &mut Vec<u8>) {
        stream.handle_segment(segment, payload, &mut |data| match data {
            StreamData::Bytes(bytes) => text.extend_from_slice(bytes),
            StreamData::Broken => text.push(b'|'),
        });
    }

    #[test]
    fn any_order_and_any_duplicates_give_the_same_bytes_when_numbers_wrap() {
        let mut rng = Rng::new(1);
        let mut random = |below: usize| rng.below(below as u64) as usize;
        let whole: Vec<u8> = (0..2_000).map(|n| b'a' + (n % 26) as u8).collect();
        let start = u32::MAX - 700;
        for _ in 0..200 {
            let mut parts = Vec::new();
            let mut at = 0;
            while at < whole.len() {
                let len = (1 + random(60)).min(whole.len() - at);
                parts.push((at, len));
                if random(4) == 0 {
                    parts.push((at, len));
                }
                at += len;
            }
            for index in 1..parts.len() {
                let other = index.saturating_sub(random(8)).max(1);
                parts.swap(index, other);
            }
            let (mut stream, mut text) = (StreamReader::default(), Vec::new());
            for (at, len) in parts {
                let sequence = start.wrapping_add(at as u32);
                collect(&mut stream, &segment(sequence), &whole[at..at + len], &mut text);
            }
            assert_eq!(text, whole);
            assert_eq!(stream.counters().holes, 0);
        }
    }

    #[test]
    fn a_gap_is_skipped_at_the_bound_and_at_the_end() {
        let (mut stream, mut text) = (StreamReader::default(), Vec::new());
        collect(&mut stream, &segment(0), b"ab", &mut text);
        let piece = vec![b'x'; 1 << 16];
        let count = STREAM_HELD_MAX / piece.len();
        for index in 0..count {
            collect(&mut stream, &segment((5 + index * piece.len()) as u32), &piece, &mut text);
        }
        assert_eq!((text.len(), stream.counters().holes), (2, 0));
        let next = (5 + count * piece.len()) as u32;
        collect(&mut stream, &segment(next), b"y", &mut text);
        assert_eq!((stream.counters().holes, stream.counters().lost_bytes), (1, 3));
        assert_eq!((text.len(), &text[..4]), (2 + 1 + STREAM_HELD_MAX + 1, &b"ab|x"[..]));
        let fin = Segment { is_fin: true, ..segment(next + 10) };
        collect(&mut stream, &fin, b"z", &mut text);
        assert!(text.ends_with(b"y|z"));
    }

    #[test]
    fn another_connection_of_the_same_ports_restarts_the_stream() {
        let (mut stream, mut text) = (StreamReader::default(), Vec::new());
        let syn = |sequence| Segment { is_syn: true, ..segment(sequence) };
        for (segment, payload) in [
            (syn(99), &b""[..]),
            (syn(99), b""),
            (segment(100), b"ab"),
            (syn(4_000_000_000), b""),
            (segment(4_000_000_001), b"cd"),
            (segment(2_000_000_000), b"ef"),
        ] {
            collect(&mut stream, &segment, payload, &mut text);
        }
        assert_eq!(text, b"ab|cd|ef");
        assert_eq!(stream.counters().restarts, 2);
    }
}
