//! CRC-32C of records, with the CPU's instruction if available.
//!
//! A record has about a hundred bytes, and the data after its checksum starts 4 bytes past a multiple of 8.
//! On such data a generic implementation spends more than half of its time finding word boundaries and
//! checking whether the length suffices for computing three parts in parallel.

#![allow(unsafe_code)] // calls a function that uses the instruction

/// Length, in bytes, from which computing three parts in parallel is faster than one pass.
const LONG: usize = 1024;

/// Returns the CRC-32C (Castagnoli) of `bytes`, continued from `seed`.
#[inline]
pub(crate) fn checksum(seed: u32, bytes: &[u8]) -> u32 {
    let short = if bytes.len() < LONG { by_instruction(seed, bytes) } else { None };
    short.unwrap_or_else(|| by_crate(seed, bytes))
}

/// Computes the checksum of long data, or without the instruction.
#[cold]
fn by_crate(seed: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(seed, bytes)
}

/// Computes the checksum with the CPU's instruction; `None` when the CPU has none.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn by_instruction(seed: u32, bytes: &[u8]) -> Option<u32> {
    if !is_x86_feature_detected!("sse4.2") {
        return None;
    }
    // SAFETY: the CPU has the instruction, as just checked.
    Some(unsafe { by_words(seed, bytes) })
}

#[cfg(any(miri, not(target_arch = "x86_64")))]
fn by_instruction(_: u32, _: &[u8]) -> Option<u32> {
    None
}

/// Computes the checksum from the first four bytes, then eight bytes at a time, then single bytes.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "sse4.2")]
fn by_words(seed: u32, bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};

    /// Number of words of 8 bytes in the record of an order, after its checksum and length.
    const ORDER_WORDS: usize = 12;
    /// The same for a cancel. Nearly all records of a venue's log are of these two lengths.
    const CANCEL_WORDS: usize = 7;

    let add = |crc: u64, word: &[u8; 8]| _mm_crc32_u64(crc, u64::from_le_bytes(*word));
    let mut crc = !seed;
    let mut rest = bytes;
    if let Some((first, others)) = bytes.split_first_chunk::<4>() {
        crc = _mm_crc32_u32(crc, u32::from_le_bytes(*first));
        rest = others;
    }
    let (words, tail) = rest.as_chunks::<8>();
    let mut wide = u64::from(crc);
    // Of known length, so without a loop.
    if let Ok(words) = <&[_; ORDER_WORDS]>::try_from(words) {
        wide = words.iter().fold(wide, add);
    } else if let Ok(words) = <&[_; CANCEL_WORDS]>::try_from(words) {
        wide = words.iter().fold(wide, add);
    } else {
        wide = words.iter().fold(wide, add);
    }
    !tail.iter().fold(wide as u32, |crc, byte| _mm_crc32_u8(crc, *byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_matches_the_crates_checksum() {
        assert_eq!(checksum(0, b"123456789"), 0xe306_9283, "the check value of CRC-32C");
        let bytes: Vec<u8> = (0..LONG + 20).map(|at| (at * 37 + at / 256) as u8).collect();
        for len in (0..300).chain(LONG - 10..LONG + 20) {
            for (from, seed) in [(0, 0), (1, 0x1234_5678), (4, u32::MAX), (7, 1)] {
                let bytes = &bytes[from.min(len)..len];
                assert_eq!(checksum(seed, bytes), crc32c::crc32c_append(seed, bytes), "{len} {from}");
            }
        }
    }
}
