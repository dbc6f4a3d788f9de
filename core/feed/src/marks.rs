//! When and how the latest packets came first.

use tickpath_types::Nanos;
use xxhash_rust::xxh3::xxh3_64;

use crate::Line;
use crate::framing::PacketHeader;

/// Packets that are remembered: a line that is further behind than so many packets has its skew not counted.
const MARKS: usize = 1 << MARKS_LOG2;
const MARKS_LOG2: u32 = 8;
/// Spreads the numbers of first messages, which come at distances that repeat.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Copy)]
struct Mark {
    /// 0 when there is none.
    first: u64,
    count: u32,
    line: Line,
    at: Nanos,
    hash: u64,
}

/// What a second copy of a packet says beside the first.
pub(crate) struct SecondCopy {
    /// How much later it came.
    pub(crate) behind: Nanos,
    /// Its bytes are others.
    pub(crate) differs: bool,
}

/// The latest packets of lines A and B by the number of their first message.
pub(crate) struct Marks {
    marks: Box<[Mark; MARKS]>,
    hashes: bool,
}

impl Marks {
    pub(crate) fn new(hashes: bool) -> Marks {
        let none = Mark { first: 0, count: 0, line: Line::A, at: Nanos::ZERO, hash: 0 };
        Marks { marks: Box::new([none; MARKS]), hashes }
    }

    pub(crate) fn clear(&mut self) {
        self.marks.iter_mut().for_each(|mark| mark.first = 0);
    }

    /// Notes a packet with something new in it.
    #[inline(always)]
    pub(crate) fn note<S>(&mut self, now: Nanos, line: Line, header: &PacketHeader<S>, body: &[u8]) {
        let hash = if self.hashes { xxh3_64(body) } else { 0 };
        let mark = &mut self.marks[place(header.first)];
        if mark.first == header.first {
            // The other line's copy came while both wait for what is missing before them.
            return;
        }
        *mark = Mark { first: header.first, count: header.count as u32, line, at: now, hash };
    }

    /// Compares a packet that the other line has brought already, if it is remembered.
    #[inline(always)]
    pub(crate) fn compare<S>(
        &mut self,
        now: Nanos,
        line: Line,
        header: &PacketHeader<S>,
        body: &[u8],
    ) -> Option<SecondCopy> {
        let mark = &mut self.marks[place(header.first)];
        if mark.first != header.first || u64::from(mark.count) != header.count || mark.line == line {
            return None;
        }
        mark.first = 0;
        Some(SecondCopy { behind: now.since(mark.at), differs: self.hashes && mark.hash != xxh3_64(body) })
    }
}

#[inline(always)]
fn place(first: u64) -> usize {
    (first.wrapping_mul(SPREAD) >> (u64::BITS - MARKS_LOG2)) as usize
}
