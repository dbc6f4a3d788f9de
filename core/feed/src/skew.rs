//! Skew tracker: compares the arrival times and contents of a packet's copies on lines A and B.

use tickpath_types::Nanos;
use xxhash_rust::xxh3::xxh3_64;

use crate::Line;
use crate::framing::PacketHeader;

/// Number of packets remembered. Duplicates of older packets are not compared.
const TRACKED_PACKETS: usize = 1 << TRACKED_PACKETS_LOG2;
const TRACKED_PACKETS_LOG2: u32 = 8;
/// Hash multiplier: spreads the packets' first sequence numbers over the slots, even if they are equidistant.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Copy)]
struct TrackedPacket {
    /// Sequence number of the first message; 0 in an empty slot.
    first: u64,
    count: u32,
    line: Line,
    at: Nanos,
    hash: u64,
}

/// Result of comparing a duplicate packet with the first copy.
pub(crate) struct Duplicate {
    /// Delay of the duplicate after the first copy.
    pub(crate) behind: Nanos,
    /// True if the bytes of the two copies differ.
    pub(crate) differs: bool,
}

/// The latest packets of lines A and B, in a hash table keyed by the sequence number of the first message.
pub(crate) struct SkewTracker {
    packets: Box<[TrackedPacket; TRACKED_PACKETS]>,
    hashes: bool,
}

impl SkewTracker {
    pub(crate) fn new(hashes: bool) -> SkewTracker {
        let none = TrackedPacket { first: 0, count: 0, line: Line::A, at: Nanos::ZERO, hash: 0 };
        SkewTracker { packets: Box::new([none; TRACKED_PACKETS]), hashes }
    }

    pub(crate) fn clear(&mut self) {
        self.packets.iter_mut().for_each(|packet| packet.first = 0);
    }

    /// Records a packet with new messages; keeps an earlier record of the same first message.
    #[inline(always)]
    pub(crate) fn note<S>(&mut self, now: Nanos, line: Line, header: &PacketHeader<S>, body: &[u8]) {
        let hash = if self.hashes { xxh3_64(body) } else { 0 };
        let packet = &mut self.packets[place(header.first)];
        if packet.first == header.first {
            // A duplicate arrived while the first copy still waits for an earlier gap to be filled.
            return;
        }
        *packet = TrackedPacket { first: header.first, count: header.count as u32, line, at: now, hash };
    }

    /// Compares a packet with the other line's copy, if the tracker still has its record.
    #[inline(always)]
    pub(crate) fn compare<S>(
        &mut self,
        now: Nanos,
        line: Line,
        header: &PacketHeader<S>,
        body: &[u8],
    ) -> Option<Duplicate> {
        let packet = &mut self.packets[place(header.first)];
        if packet.first != header.first || u64::from(packet.count) != header.count || packet.line == line {
            return None;
        }
        packet.first = 0;
        Some(Duplicate { behind: now.since(packet.at), differs: self.hashes && packet.hash != xxh3_64(body) })
    }
}

#[inline(always)]
fn place(first: u64) -> usize {
    (first.wrapping_mul(SPREAD) >> (u64::BITS - TRACKED_PACKETS_LOG2)) as usize
}
