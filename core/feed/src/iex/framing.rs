//! Segments of IEX-TP, as far as an arbiter has to know them.

use tickpath_iex::gap_fill::{Range, Request};
use tickpath_iex::{self as iex, Header, Segment};
use tickpath_types::Sequence;
use zerocopy::FromBytes;

use crate::framing::{Framing, PacketHeader, PacketKind};

/// Longest message that can be held until its turn comes: the longest that is known has 80 bytes, and messages may grow.
pub const MAX_HELD_MESSAGE: usize = 102;

/// IEX-TP: the segments that carry TOPS, DEEP and DEEP+.
#[derive(Clone, Copy, Debug)]
pub struct IexTp;

/// What names a run of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey {
    /// Message Protocol ID.
    pub protocol_id: u16,
    /// Channel ID.
    pub channel: u32,
    /// Session ID.
    pub session: u32,
}

/// A request for one run of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapRequest {
    /// Whose messages.
    pub key: SessionKey,
    /// The first of them.
    pub first: Sequence,
    /// How many.
    pub count: u16,
}

impl GapRequest {
    /// Length of a request in bytes.
    pub const LEN: usize = Request::HEADER_LEN + size_of::<Range>();

    /// The request as it is sent.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let SessionKey { protocol_id, channel, session } = self.key;
        let last = self.first.0 + u64::from(self.count).saturating_sub(1);
        let mut room = [0; Request::LEN_MAX];
        let ranges = [Range::new(self.first.0, last)];
        let bytes = Request::encode(protocol_id, channel, session, &ranges, &mut room)
            .expect("one range is fewer than may be");
        bytes.try_into().expect("a head and one range")
    }
}

/// The messages of a segment.
#[derive(Clone, Debug)]
pub struct SegmentMessages<'a>(iex::Messages<'a>);

impl<'a> Iterator for SegmentMessages<'a> {
    type Item = &'a [u8];

    #[inline(always)]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.0.next().map(|(_, message)| message)
    }
}

impl Framing for IexTp {
    type Session = SessionKey;
    type Messages<'a> = SegmentMessages<'a>;
    type Request = GapRequest;
    type Room = [u8; MAX_HELD_MESSAGE];

    #[inline(always)]
    fn header(datagram: &[u8], _near: u64) -> Option<PacketHeader<SessionKey>> {
        let (header, _) = Header::ref_from_prefix(datagram).ok()?;
        let (first, offset) = (header.first_sequence.get(), header.stream_offset.get());
        let count = header.message_count.get();
        if header.version != Header::VERSION || first < 0 {
            return None;
        }
        first.checked_add(i64::from(count))?;
        Some(PacketHeader {
            session: SessionKey {
                protocol_id: header.protocol_id.get(),
                channel: header.channel.get(),
                session: header.session.get(),
            },
            kind: if count == 0 { PacketKind::Heartbeat } else { PacketKind::Messages },
            first: first as u64,
            count: u64::from(count),
            sent_ns: header.send_time.get().0,
            starts_anew: first == 1 && offset == 0,
        })
    }

    #[inline(always)]
    fn messages(datagram: &[u8]) -> Option<SegmentMessages<'_>> {
        Segment::parse(datagram).ok().map(|segment| SegmentMessages(segment.messages()))
    }

    #[inline]
    fn body(datagram: &[u8]) -> &[u8] {
        datagram.get(Header::LEN..).unwrap_or_default()
    }

    fn request(key: SessionKey, first: Sequence, count: u16) -> GapRequest {
        GapRequest { key, first, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arbiter, ArbiterConfig, Line, MessageListener};
    use tickpath_iex::{Feed, SegmentBuilder};
    use tickpath_types::Nanos;

    #[derive(Default)]
    struct Seen {
        numbers: Vec<u64>,
        lost: u64,
        restarts: u64,
    }

    impl MessageListener<SessionKey> for Seen {
        fn on_message(&mut self, sequence: Sequence, _: &[u8]) {
            self.numbers.push(sequence.0);
        }
        fn on_lost(&mut self, _: Sequence, count: u64) {
            self.lost += count;
        }
        fn on_restart(&mut self) {
            self.restarts += 1;
        }
    }

    fn segment(first: u64, count: usize, sent_s: u64) -> Vec<u8> {
        let id = Feed::Deep10.protocol_id();
        let mut builder = SegmentBuilder::resuming([0; 128], id, 1, 9, Sequence(first), (first - 1) * 3);
        (0..count).for_each(|_| builder.push(b"z").expect("there is room"));
        builder.finish(Nanos::from_secs(sent_s)).to_vec()
    }

    /// The lines may cut their segments differently: what counts is the number of each message.
    #[test]
    fn lines_that_cut_differently_make_one_sequence() {
        let (mut arbiter, mut seen) = (Arbiter::<IexTp>::new(ArbiterConfig::default()), Seen::default());
        let mut take = |line, bytes: &[u8]| arbiter.handle_packet(Nanos(1), line, bytes, &mut seen);
        take(Line::A, &segment(1, 2, 10));
        take(Line::B, &segment(1, 5, 10));
        take(Line::A, &segment(3, 5, 11));
        take(Line::B, &segment(9, 1, 11));
        take(Line::A, &segment(8, 2, 11));
        assert_eq!(seen.numbers, (1..=9).collect::<Vec<_>>());
        assert_eq!((seen.lost, arbiter.counters().gaps_healed_by_line), (0, 1));
    }

    #[test]
    fn a_lost_tail_is_seen_by_the_heartbeat_and_asked_for() {
        let config = ArbiterConfig { reorder_wait: Nanos(1), ..ArbiterConfig::default() };
        let (mut arbiter, mut seen) = (Arbiter::<IexTp>::new(config), Seen::default());
        arbiter.handle_packet(Nanos(1), Line::A, &segment(1, 2, 10), &mut seen);
        arbiter.handle_packet(Nanos(2), Line::A, &segment(6, 0, 11), &mut seen);
        arbiter.handle_timeout(Nanos(5), &mut seen);
        let request = arbiter.poll_request().expect("something is missing");
        let key = SessionKey { protocol_id: 0x8004, channel: 1, session: 9 };
        assert_eq!(request, GapRequest { key, first: Sequence(3), count: 3 });
        let bytes = request.to_bytes();
        let (read, len) = Request::parse_prefix(&bytes).expect("a request");
        assert_eq!((read.ranges, len), (&[Range::new(3, 5)][..], 32));
        arbiter.handle_packet(Nanos(6), Line::Recovery, &segment(3, 3, 11), &mut seen);
        assert_eq!((seen.numbers.len(), seen.lost), (5, 0));
    }

    #[test]
    fn numbers_that_start_again_under_the_same_session_are_told_from_an_old_copy() {
        let (mut arbiter, mut seen) = (Arbiter::<IexTp>::new(ArbiterConfig::default()), Seen::default());
        for bytes in [segment(1, 2, 10), segment(3, 4, 11), segment(1, 2, 10)] {
            arbiter.handle_packet(Nanos(1), Line::A, &bytes, &mut seen);
        }
        assert_eq!((seen.restarts, seen.numbers.len()), (0, 6));
        for bytes in [segment(1, 0, 20), segment(1, 2, 21)] {
            arbiter.handle_packet(Nanos(1), Line::A, &bytes, &mut seen);
        }
        assert_eq!((seen.restarts, &seen.numbers[6..]), (1, &[1, 2][..]));
    }

    #[test]
    fn what_is_no_segment_is_counted() {
        let (mut arbiter, mut seen) = (Arbiter::<IexTp>::new(ArbiterConfig::default()), Seen::default());
        let whole = segment(1, 2, 10);
        for len in 0..whole.len() {
            arbiter.handle_packet(Nanos(1), Line::A, &whole[..len], &mut seen);
        }
        assert_eq!((arbiter.counters().lines[0].malformed, seen.numbers.len()), (whole.len() as u64, 0));
    }
}
