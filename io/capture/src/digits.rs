//! Parses decimal digits of text, eight bytes at a time and without a branch for each digit.

/// Number of bytes processed at once.
pub(crate) const WORD_LEN: usize = 8;

const ZEROS: u64 = u64::from_ne_bytes([b'0'; WORD_LEN]);

/// The number in the first `len` bytes, up to eight digits; 0 when there are none.
#[inline]
pub(crate) const fn number(word: [u8; WORD_LEN], len: u32) -> u64 {
    of_eight((u64::from_le_bytes(word) ^ ZEROS).unbounded_shl(64_u32.saturating_sub(8 * len)))
}

/// The number in the first `len` bytes, padded with zeros on the right to eight digits.
#[inline]
pub(crate) const fn decimals(word: [u8; WORD_LEN], len: u32) -> u64 {
    of_eight((u64::from_le_bytes(word) ^ ZEROS) & !u64::MAX.unbounded_shl(8 * len))
}

/// The number that eight digit values form: combines them into pairs, fours, and finally all eight.
#[inline]
const fn of_eight(values: u64) -> u64 {
    let pairs = values.wrapping_mul((10 << 8) + 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul((100 << 16) + 1) >> 16 & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul((10_000 << 32) + 1) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_become_numbers() {
        for (text, len, expected, expected_decimals) in [
            (*b"12345678", 8, 12_345_678, 12_345_678),
            (*b"99999999", 8, 99_999_999, 99_999_999),
            (*b"00000001", 8, 1, 1),
            (*b"017,1,22", 3, 17, 1_700_000),
            (*b"7\xff\xff\xff1234", 1, 7, 70_000_000),
            (*b"-1234567", 0, 0, 0),
        ] {
            assert_eq!((number(text, len), decimals(text, len)), (expected, expected_decimals), "{text:?}");
        }
    }
}
