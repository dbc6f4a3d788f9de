//! Layout of a segment: header, records, and the distinction between its end and damage.
//!
//! All integers are little-endian. Version 2, the one that this program writes:
//!
//! | offset | bytes | segment header |
//! |---|---|---|
//! | 0 | 8 | `TPJOURNL` |
//! | 8 | 2 | version, 2 |
//! | 10 | 2 | length of this header, 64 |
//! | 12 | 1 | policy, see [`Policy`] |
//! | 13 | 3 | zero |
//! | 16 | 16 | name of the session, padded with spaces |
//! | 32 | 8 | sequence of the first record |
//! | 40 | 8 | synced sequence: the last one on the disk at the start of the segment |
//! | 48 | 8 | length of the file |
//! | 56 | 4 | zero |
//! | 60 | 4 | CRC-32C of the 60 bytes before |
//!
//! | offset | bytes | record |
//! |---|---|---|
//! | 0 | 4 | CRC-32C of all that follows including the padding, continued from the segment header's |
//! | 4 | 4 | length of the payload, at least 1 |
//! | 8 | 8 | sequence |
//! | 16 | 8 | synced sequence: the last one on the disk when this record was appended |
//! | 24 | | payload, padded with zeroes to a multiple of 8 |
//!
//! Version 1 has a segment header of 48 bytes (no policy; first sequence at 32, four zero bytes, CRC at 44)
//! and record headers of 16 bytes (no synced sequence). Its record CRCs do not continue the header's.
//!
//! A file has its full length from the start, filled with zeroes. Eight zero bytes in place of a record
//! therefore mark the end, because a payload is never empty. The synced sequence in a record distinguishes a
//! torn tail from damage: records that a later record reports as synced must be there.

use tickpath_faults::failpoint;
use tickpath_types::Sequence;

use crate::checksum::checksum;
use crate::header::{self, chunk, u16_at, u32_at, u64_at};
use crate::{HeaderDamage, Policy, RecordDamage, SessionName};

/// Magic bytes of a segment.
const MAGIC: [u8; 8] = *b"TPJOURNL";
/// Version that this program writes.
const VERSION: u16 = 2;
/// Length of the version 2 header.
pub(crate) const HEADER_LEN: usize = 64;
/// Length of the version 1 header.
const HEADER_LEN_1: usize = 48;
/// Length of a version 2 record header.
pub(crate) const RECORD_HEADER_LEN: usize = 24;
/// Length of a version 1 record header.
const RECORD_HEADER_LEN_1: usize = 16;
/// Alignment of records in bytes, a power of two.
const ALIGNMENT: usize = 8;

/// Maximum payload length in any segment, in bytes.
pub const PAYLOAD_LEN_MAX: usize = 64 * 1024;
/// Maximum record length, including the record header.
pub(crate) const RECORD_LEN_MAX: usize = RECORD_HEADER_LEN + PAYLOAD_LEN_MAX;

/// The header fields of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Layout version of the segment, 1 or 2.
    pub version: u16,
    /// Name of the session that the log belongs to.
    pub session: SessionName,
    /// Failures that an acknowledged record survives; [`Policy::Group`] in version 1, which has no policy.
    pub policy: Policy,
    /// Sequence of the first record.
    pub first_sequence: Sequence,
    /// Last sequence that was on the disk at the start of the segment.
    pub synced: Sequence,
    /// Preallocated length of the file, in bytes; 0 in version 1, which does not record it.
    pub segment_len: u64,
}

/// Layout of the records in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Length of the segment header, which the first record follows.
    pub(crate) header_len: usize,
    record_header_len: usize,
    /// Initial value of the records' checksums.
    seed: u32,
}

/// A decoded record header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawRecord {
    pub(crate) sequence: Sequence,
    pub(crate) synced: Sequence,
    /// Offset of the payload from the start of the record.
    pub(crate) payload_from: usize,
    pub(crate) payload_to: usize,
    /// Distance from the start of this record to the next one.
    pub(crate) len: usize,
}

/// Result of parsing the bytes at the position of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Record(RawRecord),
    /// Zeroes, which mark the end of the segment's records.
    End,
    /// The bytes are incomplete: this many are needed.
    Short(usize),
    Damaged(RecordDamage),
}

impl SegmentHeader {
    /// Encodes the header in the current version.
    pub(crate) fn encode(&self, out: &mut [u8; HEADER_LEN]) -> Layout {
        *out = header::begin(MAGIC, VERSION);
        out[12] = self.policy.code();
        out[16..32].copy_from_slice(&self.session.bytes());
        out[32..40].copy_from_slice(&self.first_sequence.0.to_le_bytes());
        out[40..48].copy_from_slice(&self.synced.0.to_le_bytes());
        out[48..56].copy_from_slice(&self.segment_len.to_le_bytes());
        let seed = header::write_checksum(out);
        Layout { header_len: HEADER_LEN, record_header_len: RECORD_HEADER_LEN, seed }
    }

    /// Decodes the header of a segment, version 1 or 2, from the start of `bytes`.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(SegmentHeader, Layout), HeaderDamage> {
        if bytes.len() < HEADER_LEN_1 || !bytes.starts_with(&MAGIC) {
            return Err(HeaderDamage::Magic);
        }
        let version = u16_at(bytes, 8);
        let (header_len, record_header_len) = match version {
            1 => (HEADER_LEN_1, RECORD_HEADER_LEN_1),
            2 => (HEADER_LEN, RECORD_HEADER_LEN),
            _ if is_either_version_damaged(bytes) => return Err(HeaderDamage::Checksum),
            _ => return Err(HeaderDamage::Version { version }),
        };
        let bytes = bytes.get(..header_len).ok_or(HeaderDamage::Magic)?;
        let seed = header::valid_checksum(bytes).ok_or(HeaderDamage::Checksum)?;
        let first_sequence = Sequence(u64_at(bytes, 32));
        let is_1 = version == 1;
        let policy = if is_1 { Some(Policy::Group) } else { Policy::from_code(bytes[12]) };
        let zeroes = if is_1 { [&bytes[12..16], &bytes[40..44]] } else { [&bytes[13..16], &bytes[56..60]] };
        if u16_at(bytes, 10) as usize != header_len
            || zeroes.concat().iter().any(|byte| *byte != 0)
            || first_sequence == Sequence(0)
        {
            return Err(HeaderDamage::Field);
        }
        let header = SegmentHeader {
            version,
            session: SessionName::from_bytes(chunk(bytes, 16)),
            policy: policy.ok_or(HeaderDamage::Field)?,
            first_sequence,
            synced: Sequence(if is_1 { first_sequence.0 - 1 } else { u64_at(bytes, 40) }),
            segment_len: if is_1 { 0 } else { u64_at(bytes, 48) },
        };
        Ok((header, Layout { header_len, record_header_len, seed: if is_1 { 0 } else { seed } }))
    }
}

/// Returns whether only the version is damaged: the checksum is right for version 1 or 2.
fn is_either_version_damaged(bytes: &[u8]) -> bool {
    [(1_u16, HEADER_LEN_1), (2, HEADER_LEN)].into_iter().any(|(version, len)| {
        let Some(bytes) = bytes.get(..len) else { return false };
        let repaired = [&bytes[..8], &version.to_le_bytes(), &bytes[10..len - 4]].concat();
        crc32c::crc32c(&repaired) == u32_at(bytes, len - 4)
    })
}

impl Layout {
    /// Returns whether each record has a synced sequence: true in version 2.
    #[inline]
    const fn has_synced(&self) -> bool {
        self.record_header_len == RECORD_HEADER_LEN
    }

    /// Fills in the header and the padding of a record whose payload of `payload_len` bytes is already at its
    /// place in `out`. Returns the record's length. Supports version 2 only.
    #[inline]
    pub(crate) fn finish_record(
        &self,
        out: &mut [u8],
        payload_len: usize,
        sequence: Sequence,
        synced: Sequence,
    ) -> usize {
        debug_assert!(synced < sequence, "a record says which of those before it were synced");
        let len = record_len(payload_len);
        let record = &mut out[..len];
        // The padding is the end of the last word. Filling so few bytes would be a call.
        let padding = len - RECORD_HEADER_LEN - payload_len;
        let last = record.last_chunk_mut::<8>().expect("a record has more than a word");
        *last = (u64::from_le_bytes(*last) & (u64::MAX >> (8 * padding))).to_le_bytes();
        record[4..8].copy_from_slice(&(payload_len as u32).to_le_bytes());
        record[8..16].copy_from_slice(&sequence.0.to_le_bytes());
        record[16..24].copy_from_slice(&synced.0.to_le_bytes());
        let checksum = checksum(self.seed, &record[4..]);
        record[..4].copy_from_slice(&checksum.to_le_bytes());
        len
    }

    /// Returns the record at the start of `bytes`, if it is complete and valid.
    #[inline(always)]
    pub(crate) fn record(&self, bytes: &[u8]) -> Option<RawRecord> {
        // Records of both versions have at least as many bytes as this header.
        let start = bytes.first_chunk::<RECORD_HEADER_LEN>()?;
        let payload_len = u32_at(start, 4) as usize;
        // A length of zero wraps around, and is rejected too.
        if payload_len.wrapping_sub(1) >= PAYLOAD_LEN_MAX {
            return None;
        }
        let payload_to = self.record_header_len + payload_len;
        let len = aligned(payload_to);
        let is_valid = checksum(self.seed, bytes.get(4..len)?) == u32_at(start, 0);
        failpoint!(ChecksumIgnored: is_valid = true);
        if !is_valid {
            return None;
        }
        let sequence = Sequence(u64_at(start, 8));
        let synced = match self.has_synced() {
            true => Sequence(u64_at(start, 16)),
            // Version 1 has no synced sequence: treat all earlier records as synced.
            false => Sequence(sequence.0.saturating_sub(1)),
        };
        Some(RawRecord { sequence, synced, payload_from: self.record_header_len, payload_to, len })
    }

    /// Parses the start of `bytes`: a record, the end of the records, or damage.
    #[inline]
    pub(crate) fn parse(&self, bytes: &[u8]) -> Parsed {
        match self.record(bytes) {
            Some(record) => Parsed::Record(record),
            None => self.parse_other(bytes),
        }
    }

    /// Parses the start of `bytes` if it is not a complete and valid record.
    #[cold]
    fn parse_other(&self, bytes: &[u8]) -> Parsed {
        let Some(start) = bytes.first_chunk::<8>() else {
            return Parsed::Short(8);
        };
        if *start == [0; 8] {
            return Parsed::End;
        }
        let payload_len = u32_at(start, 4) as usize;
        if payload_len == 0 || payload_len > PAYLOAD_LEN_MAX {
            return Parsed::Damaged(RecordDamage::Length);
        }
        let len = aligned(self.record_header_len + payload_len);
        if bytes.len() < len { Parsed::Short(len) } else { Parsed::Damaged(RecordDamage::Checksum) }
    }
}

/// Returns the length of a record with this payload length, including its header and padding.
#[inline]
pub(crate) const fn record_len(payload_len: usize) -> usize {
    aligned(RECORD_HEADER_LEN + payload_len)
}

/// Returns `len` rounded up to a multiple of the alignment.
#[inline]
const fn aligned(len: usize) -> usize {
    (len + ALIGNMENT - 1) & !(ALIGNMENT - 1)
}
