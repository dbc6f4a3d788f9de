//! Digits of whole and fixed-point numbers, written eight at a time.

/// Number of bytes that [`write_whole`] needs: up to 20 digits, written eight at a time.
pub(crate) const WHOLE_ROOM: usize = 24;
/// Number of bytes that [`write_units`] needs: sign, whole part, point, and eight decimals.
pub(crate) const UNITS_ROOM: usize = 40;

/// 10^8, the bound of eight digits.
const EIGHT: u64 = 100_000_000;
const ZEROS: u64 = u64::from_le_bytes(*b"00000000");

/// The values of the eight digits of a number below 10^8, the first digit in the lowest byte.
#[inline(always)]
const fn digits_of(number: u64) -> u64 {
    // Two lanes of four digits, then four lanes of two, then eight of one. Each division by a power of ten is
    // a multiplication by its reciprocal, exact in the lane's range.
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((twos - tens * 10) << 8)
}

/// Writes eight digits, including leading zeros.
#[inline(always)]
fn write_eight<const N: usize>(number: u64, room: &mut [u8; N], at: usize) {
    room[at..at + 8].copy_from_slice(&(digits_of(number) | ZEROS).to_le_bytes());
}

/// Writes a number below 10^8 without leading zeros at the start of the room; returns its length.
#[inline(always)]
fn write_first<const N: usize>(number: u64, room: &mut [u8; N]) -> usize {
    let digits = digits_of(number);
    // The last digit of 0 is not a leading zero.
    let zeros = (digits.trailing_zeros() / 8).min(7);
    room[..8].copy_from_slice(&((digits | ZEROS) >> (8 * zeros)).to_le_bytes());
    8 - zeros as usize
}

/// Writes a whole number at the start of the room, which has at least [`WHOLE_ROOM`] bytes; returns its
/// length. Bytes behind it are overwritten.
#[inline(always)]
pub(crate) fn write_whole<const N: usize>(number: u64, room: &mut [u8; N]) -> usize {
    const { assert!(N >= WHOLE_ROOM) };
    if number < EIGHT {
        return write_first(number, room);
    }
    let (upper, last) = (number / EIGHT, number % EIGHT);
    let mut len = if upper < EIGHT {
        write_first(upper, room)
    } else {
        let len = write_first(upper / EIGHT, room);
        write_eight(upper % EIGHT, room, len);
        len + 8
    };
    write_eight(last, room, len);
    len += 8;
    len
}

/// Writes a number of units of 10^-8 at the start of the room, without trailing zeros; returns its length.
/// Bytes behind it are overwritten.
#[inline(always)]
pub(crate) fn write_units<const N: usize>(units: i64, room: &mut [u8; N]) -> usize {
    const { assert!(N >= UNITS_ROOM) };
    if units < 0 {
        let len = write_unsigned_units(units.unsigned_abs(), room);
        room.copy_within(..len, 1);
        room[0] = b'-';
        return len + 1;
    }
    write_unsigned_units(units as u64, room)
}

#[inline(always)]
fn write_unsigned_units<const N: usize>(units: u64, room: &mut [u8; N]) -> usize {
    let (whole, fraction) = (units / EIGHT, units % EIGHT);
    let len = write_whole(whole, room);
    if fraction == 0 {
        return len;
    }
    let digits = digits_of(fraction);
    room[len] = b'.';
    room[len + 1..len + 9].copy_from_slice(&(digits | ZEROS).to_le_bytes());
    len + 9 - digits.leading_zeros() as usize / 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Decimal;

    fn whole(number: u64) -> String {
        let mut room = [b'x'; WHOLE_ROOM];
        let len = write_whole(number, &mut room);
        String::from_utf8(room[..len].to_vec()).unwrap()
    }

    fn units(units: i64) -> String {
        let mut room = [b'x'; UNITS_ROOM];
        let len = write_units(units, &mut room);
        String::from_utf8(room[..len].to_vec()).unwrap()
    }

    #[test]
    fn whole_numbers_have_the_digits_of_the_standard_library() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        for number in powers.flat_map(|power| [power - 1, power, power + 1, power.saturating_mul(7)]) {
            assert_eq!(whole(number), number.to_string());
        }
        for number in [u64::MAX, u64::MAX - 1, 99_999_999, 100_000_000, 9_999_999_999_999_999] {
            assert_eq!(whole(number), number.to_string());
        }
        let mut number = 1_u64;
        for _ in 0..20_000 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            for shift in [0, 20, 37, 38, 50] {
                assert_eq!(whole(number >> shift), (number >> shift).to_string());
            }
        }
    }

    #[test]
    fn every_group_of_four_digits_is_exact() {
        for number in 0..10_000 {
            assert_eq!(
                whole(number * 10_000 + 9_999 - number),
                (number * 10_000 + 9_999 - number).to_string()
            );
        }
    }

    #[test]
    fn units_have_the_text_of_the_decimal() {
        let mut number = 1_i64;
        let random = std::iter::repeat_with(|| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            number
        });
        let shifted =
            random.take(20_000).flat_map(|number| [number, number >> 20, number >> 40, number >> 60]);
        let round =
            (0..19).flat_map(|power| [10_i64.pow(power), -(10_i64.pow(power)), 3 * 10_i64.pow(power / 2)]);
        for number in shifted.chain(round).chain([0, 5_000_050_000_000, i64::MAX, -i64::MAX]) {
            let mut text = Vec::new();
            Decimal::new(number, 8).unwrap().write(&mut text);
            assert_eq!(units(number), String::from_utf8(text).unwrap(), "{number}");
        }
        assert_eq!(units(i64::MIN), "-92233720368.54775808");
    }
}
