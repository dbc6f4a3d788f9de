//! CRC-32C of records, by the CPU's instruction where it has one.
//!
//! A record has about a hundred bytes, and what follows its checksum begins half a word before a multiple of eight. More
//! than half of what an implementation for any length does with that is to find out where words begin, and whether there
//! are enough of them to compute three parts at a time.

#![allow(unsafe_code)] // a call of a function that uses the instruction

/// From this length on it pays to compute three parts at a time and to put them together.
const LONG: usize = 1024;

/// CRC-32C (Castagnoli) of `bytes`, continued from `seed`.
#[inline]
pub(crate) fn checksum(seed: u32, bytes: &[u8]) -> u32 {
    let short = if bytes.len() < LONG { by_instruction(seed, bytes) } else { None };
    short.unwrap_or_else(|| crc32c::crc32c_append(seed, bytes))
}

/// `None` where the CPU has no instruction for it.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn by_instruction(seed: u32, bytes: &[u8]) -> Option<u32> {
    if !is_x86_feature_detected!("sse4.2") {
        return None;
    }
    // SAFETY: the CPU has the instruction: it was asked just now.
    Some(unsafe { by_words(seed, bytes) })
}

#[cfg(any(miri, not(target_arch = "x86_64")))]
fn by_instruction(_: u32, _: &[u8]) -> Option<u32> {
    None
}

/// Four bytes, then eight at a time, then what is left.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "sse4.2")]
fn by_words(seed: u32, bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};

    let mut crc = !seed;
    let mut rest = bytes;
    if let Some((first, others)) = bytes.split_first_chunk::<4>() {
        crc = _mm_crc32_u32(crc, u32::from_le_bytes(*first));
        rest = others;
    }
    let (words, tail) = rest.as_chunks::<8>();
    let wide = words.iter().fold(u64::from(crc), |crc, word| _mm_crc32_u64(crc, u64::from_le_bytes(*word)));
    !tail.iter().fold(wide as u32, |crc, byte| _mm_crc32_u8(crc, *byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_gives_the_checksum_of_the_crate() {
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
