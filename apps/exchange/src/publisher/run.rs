//! A run of packets: datagrams that are sent together.

use tickpath_nasdaq::moldudp64::DATAGRAM_LEN_MAX;
use tickpath_net::{DatagramSender, SendStatus};

/// Maximum number of packets in a run. The first packet of a run waits until the others are encoded.
pub(super) const PACKETS_PER_RUN_MAX: usize = 4;
/// Maximum length of a run of packets of the default maximum length, in bytes.
pub(super) const DEFAULT_RUN_LEN_MAX: usize = PACKETS_PER_RUN_MAX * DATAGRAM_LEN_MAX;
/// Maximum length of a run in bytes: the longest UDP payload, because the kernel gets a run as one payload.
const RUN_LEN_MAX: usize = 65_507;

/// Packets that follow each other in a buffer and are sent by one call. All have the same length, except the
/// last one, which may be shorter.
///
/// The kernel splits a run into datagrams by the length of the first packet. So no packet may be longer than
/// the first, and the first shorter packet ends the run.
pub(super) struct Run {
    buffer: Box<[u8]>,
    packet_len_max: usize,
    packets_max: usize,
    packet_count: usize,
    /// Length of the first packet.
    packet_len: usize,
    len: usize,
}

impl Run {
    /// A run of up to `packets_max` packets, each of at most `packet_len_max` bytes; of fewer packets if all
    /// together would be longer than a UDP payload.
    pub(super) fn new(packet_len_max: usize, packets_max: usize) -> Run {
        let packets_max = packets_max.min(RUN_LEN_MAX / packet_len_max).max(1);
        let buffer = vec![1; packets_max * packet_len_max].into_boxed_slice();
        Run { buffer, packet_len_max, packets_max, packet_count: 0, packet_len: 0, len: 0 }
    }

    /// From now on, limits each run to one packet.
    pub(super) fn limit_to_one_packet(&mut self) {
        self.packets_max = 1;
    }

    pub(super) fn clear(&mut self) {
        (self.packet_count, self.packet_len, self.len) = (0, 0, 0);
    }

    /// Returns the buffer of the next packet, with its maximum length; `None` if the run takes no more.
    #[inline]
    pub(super) fn next_packet(&mut self) -> Option<&mut [u8]> {
        let is_ended =
            self.packet_count == self.packets_max || self.len < self.packet_count * self.packet_len;
        let len_max = if self.packet_count == 0 { self.packet_len_max } else { self.packet_len };
        (!is_ended).then(|| &mut self.buffer[self.len..][..len_max])
    }

    /// Adds the packet of this length, written to the buffer of [`next_packet`](Self::next_packet).
    #[inline]
    pub(super) fn add(&mut self, len: usize) {
        if self.packet_count == 0 {
            self.packet_len = len;
        }
        debug_assert!(len > 0 && len <= self.packet_len, "a later packet is not longer than the first");
        self.len += len;
        self.packet_count += 1;
    }

    #[inline]
    pub(super) fn packet_count(&self) -> usize {
        self.packet_count
    }

    #[inline]
    pub(super) fn datagrams(&self) -> Datagrams<'_> {
        Datagrams { bytes: &self.buffer[..self.len], len: self.packet_len }
    }
}

/// Datagrams that follow each other: each has `len` bytes, the last one possibly fewer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagrams<'a> {
    pub(super) bytes: &'a [u8],
    /// Length of the first datagram, more than 0.
    pub(super) len: usize,
}

impl Datagrams<'_> {
    /// One datagram, which is not empty.
    pub(super) fn one(datagram: &[u8]) -> Datagrams<'_> {
        Datagrams { bytes: datagram, len: datagram.len() }
    }

    #[inline]
    pub(super) fn count(self) -> usize {
        self.bytes.len().div_ceil(self.len)
    }
}

/// Sends datagrams on a line; returns the number of those not sent. If neither line sends a datagram,
/// receivers request its messages again.
#[inline]
pub(super) fn unsent_count(line: &mut impl DatagramSender, datagrams: Datagrams<'_>) -> u64 {
    let Datagrams { bytes, len } = datagrams;
    if bytes.len() == len {
        return u64::from(!matches!(line.send(bytes), Ok(SendStatus::Sent)));
    }
    let sent = line.send_segments(bytes, len).unwrap_or_else(|error| error.sent);
    (datagrams.count() - sent) as u64
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn lens(run: &Run) -> Vec<usize> {
        let Datagrams { bytes, len } = run.datagrams();
        bytes.chunks(len).map(<[u8]>::len).collect()
    }

    /// Adds a packet; returns its maximum length, or `None` if the run takes no more.
    fn add(run: &mut Run, len: usize) -> Option<usize> {
        let len_max = run.next_packet()?.len();
        run.add(len);
        Some(len_max)
    }

    #[test]
    fn a_shorter_packet_ends_the_run_and_no_packet_exceeds_the_first() {
        let mut run = Run::new(100, 4);
        assert_eq!(
            (add(&mut run, 90), add(&mut run, 90), add(&mut run, 70)),
            (Some(100), Some(90), Some(90))
        );
        assert_eq!((add(&mut run, 1), lens(&run)), (None, vec![90, 90, 70]));
        run.clear();
        for _ in 0..4 {
            assert!(add(&mut run, 100).is_some());
        }
        assert_eq!((add(&mut run, 1), lens(&run)), (None, vec![100; 4]));
        assert_eq!((run.packet_count(), run.datagrams().count()), (4, 4));
        run.limit_to_one_packet();
        run.clear();
        assert_eq!((add(&mut run, 30), add(&mut run, 30), lens(&run)), (Some(100), None, vec![30]));
    }

    #[test]
    fn a_run_is_not_longer_than_a_payload() {
        for (packet_len_max, packets_max) in [(65_507, 1), (32_754, 1), (32_753, 2), (16_376, 4), (84, 4)] {
            let mut run = Run::new(packet_len_max, 4);
            let count = std::iter::from_fn(|| add(&mut run, packet_len_max)).count();
            assert_eq!((count, run.datagrams().count()), (packets_max, packets_max), "{packet_len_max}");
            assert!(run.datagrams().bytes.len() <= RUN_LEN_MAX);
        }
        assert_eq!(Datagrams::one(b"heartbeat").count(), 1);
    }

    /// Fails to send datagrams that begin with `!`.
    struct Failing;

    impl DatagramSender for Failing {
        fn send(&mut self, datagram: &[u8]) -> io::Result<SendStatus> {
            if datagram[0] == b'!' { Err(io::ErrorKind::Other.into()) } else { Ok(SendStatus::Sent) }
        }
    }

    #[test]
    fn datagrams_sent_before_an_error_are_not_counted_as_unsent() {
        for (bytes, unsent) in [(b"aabbc", 0), (b"aabb!", 1), (b"aa!bc", 2), (b"!abbc", 3)] {
            assert_eq!(unsent_count(&mut Failing, Datagrams { bytes, len: 2 }), unsent);
        }
        assert_eq!(unsent_count(&mut Failing, Datagrams::one(b"!")), 1);
    }
}
