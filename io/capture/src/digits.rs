//! Decimal digits in text, eight bytes at a time and without a branch for each.

/// Bytes that are taken at once.
pub(crate) const WORD_LEN: usize = 8;

const ZEROS: u64 = u64::from_ne_bytes([b'0'; WORD_LEN]);
const LOW_BITS: u64 = u64::from_ne_bytes([0x7f; WORD_LEN]);
/// Lifts a byte of 10 to 127, but none below, into its highest bit.
const ABOVE_NINE: u64 = u64::from_ne_bytes([0x80 - 10; WORD_LEN]);
/// Times this, the highest bits of eight bytes become the bits of the highest byte.
const GATHER: u64 = 0x0002_0408_1020_4081;

/// One bit for each byte of up to eight words, the first one lowest: set where it is no digit.
#[inline]
pub(crate) fn others(words: &[[u8; WORD_LEN]]) -> u64 {
    words.iter().rev().fold(0, |places, word| {
        let values = u64::from_le_bytes(*word) ^ ZEROS;
        let high_bits = (values & LOW_BITS).wrapping_add(ABOVE_NINE) | values;
        places << 8 | (high_bits & !LOW_BITS).wrapping_mul(GATHER) >> 56
    })
}

/// The number that the first `len` bytes are, up to eight digits; 0 when there are none.
#[inline]
pub(crate) const fn number(word: [u8; WORD_LEN], len: u32) -> u64 {
    of_eight((u64::from_le_bytes(word) ^ ZEROS).unbounded_shl(64_u32.saturating_sub(8 * len)))
}

/// The number that the first `len` bytes are with zeros behind them up to eight digits.
#[inline]
pub(crate) const fn decimals(word: [u8; WORD_LEN], len: u32) -> u64 {
    of_eight((u64::from_le_bytes(word) ^ ZEROS) & !u64::MAX.unbounded_shl(8 * len))
}

/// Neighbours are joined three times: into pairs, into fours, into all eight.
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

    #[test]
    fn every_byte_but_ten_is_another() {
        for byte in 0..=u8::MAX {
            for place in 0..16 {
                let mut text = *b"9876543201234567";
                text[place] = byte;
                let expected = u64::from(!byte.is_ascii_digit()) << place;
                assert_eq!(others(text.as_chunks().0), expected, "{byte} at {place}");
            }
        }
        for marks in 0..=u64::from(u8::MAX) {
            let word = std::array::from_fn(|place| if marks >> place & 1 == 1 { b'\xff' } else { b'9' });
            assert_eq!(others(&[word]), marks);
        }
        assert_eq!(others(b"\xff,\xff,\xff,\xff,\x80/:0\x000\xaf9".as_chunks().0), 0b0101_0111_1111_1111);
    }
}
