//! Reads the two numbers at the end of a level in one pass, because books consist mostly of these.

use tickpath_lockfree::cpu;

use super::{Decimal, digit_values, value_of_last};

/// Number of bytes read. A price, an amount and the text around them rarely exceed 20.
const WINDOW_LEN: usize = 32;
/// Maximum length of a number read here, including its point.
const NUMBER_LEN_MAX: usize = 8;

/// The price and amount at `at`, and the end of the bracket after them: `37394.0,42670.0]`. `None` if either
/// has a sign, no point or over eight characters, or another unusual form, for other readers.
///
/// All ends are located before any digit is decoded, so that the numbers do not depend on each other.
#[inline(always)]
pub(crate) fn price_amount(frame: &[u8], at: usize) -> Option<(Decimal, Decimal, usize)> {
    // Near the end of the frame, the window starts before the price.
    let window_at = at.min(frame.len().checked_sub(WINDOW_LEN)?);
    let window: &[u8; WINDOW_LEN] = frame.get(window_at..)?.first_chunk()?;
    let start = at - window_at;
    let others = cpu::non_digits(window) >> start << start;
    let without_first = |places: u64| places & places.wrapping_sub(1);
    let behind_first = without_first(others);
    let behind_comma = without_first(behind_first);
    let ends = [others, behind_first, behind_comma, without_first(behind_comma)];
    let [point, comma, second_point, end] = ends.map(|places| places.trailing_zeros() as usize);
    // The bracket is the first non-digit followed by another one: thus both points are between digits.
    let first_of_two = (others & others >> 1).trailing_zeros() as usize;
    if end >= WINDOW_LEN || first_of_two != end || point == start {
        return None;
    }
    let differs = |place: usize, from: u8| window[place % WINDOW_LEN] ^ from;
    let is_other =
        differs(point, b'.') | differs(comma, b',') | differs(second_point, b'.') | differs(end, b']');
    if is_other != 0 {
        return None;
    }
    let price = decimal(window, start, point, comma)?;
    // Most amounts are integers: the decimals are skipped.
    let is_whole = second_point + 2 == end && window[(second_point + 1) % WINDOW_LEN] == b'0';
    let amount = match is_whole {
        true => whole(window, comma + 1, second_point)?,
        false => decimal(window, comma + 1, second_point, end)?,
    };
    Some((price, amount, window_at + end + 1))
}

/// Reads the digits from `start` to `end`.
#[inline(always)]
fn whole(window: &[u8; WINDOW_LEN], start: usize, end: usize) -> Option<Decimal> {
    let word = digit_values(window.get(start..)?.first_chunk()?);
    let len = end - start;
    let is_usual = len <= NUMBER_LEN_MAX && (word & 0xff != 0 || len == 1);
    let text = word.wrapping_shl(highest(len));
    is_usual.then_some(Decimal { mantissa: value_of_last(text) as i64, scale: 0 })
}

/// Shift in bits, modulo the word size, that moves the last of `count` characters to the highest byte.
#[inline(always)]
const fn highest(count: usize) -> u32 {
    (8 * count as u32).wrapping_neg()
}

/// Reads the number from `start` to `end`: digits, with a point between two of them.
#[inline(always)]
fn decimal(window: &[u8; WINDOW_LEN], start: usize, point: usize, end: usize) -> Option<Decimal> {
    let word = digit_values(window.get(start..)?.first_chunk()?);
    let (len, places) = (end - start, end - point - 1);
    if len > NUMBER_LEN_MAX || (word & 0xff == 0 && point - start > 1) {
        return None;
    }
    // Shift the last character to the highest byte, and the digits before the point to those after it.
    let text = word.wrapping_shl(highest(len));
    let behind = u64::MAX.wrapping_shl(highest(places));
    let digits = (text << 8) ^ ((text << 8 ^ text) & behind);
    // One trailing zero is dropped; servers rarely write more.
    let dropped = usize::from(digits >> 56 == 0);
    if dropped == 1 && places > 1 {
        return None;
    }
    let mantissa = value_of_last(digits << (8 * dropped)) as i64;
    Some(Decimal { mantissa, scale: (places - dropped) as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_read_as_by_the_slow_reader_wherever_it_stands_or_not_at_all() {
        let numbers = [
            "0",
            "7",
            "950",
            "12345678",
            "123456789",
            "0.0",
            "0.5",
            "950.0",
            "950.5",
            "5042.34",
            "0.00005",
            "0.000005",
            "123456.7",
            "1234567.8",
            "5.00",
            "5.10",
            "05",
            "00.5",
            "-1",
            "-0.5",
            "1e5",
            "1.",
            ".5",
            "",
            "1.5.5",
            "12\u{e9}",
            "/",
            ":",
        ];
        let mut read_count = 0;
        for (price, amount) in numbers.iter().flat_map(|price| numbers.map(|amount| (*price, amount))) {
            for (before, closing) in
                [("", "]"), ("", ","), ("", " ]"), ("[[\"change\",", "]"), (&"9".repeat(40), "]")]
            {
                for behind in ["", "]}}}", "]}}}                         ", ",[\"new\",36809.5,254870.0]]"] {
                    let frame = format!("{before}{price},{amount}{closing}{behind}");
                    let found = price_amount(frame.as_bytes(), before.len());
                    if let Some((found_price, found_amount, end)) = found {
                        let parsed = (price.parse(), amount.parse(), &frame[end..]);
                        assert_eq!(parsed, (Ok(found_price), Ok(found_amount), behind), "{frame}");
                        assert_eq!(closing, "]", "{frame}");
                        read_count += 1;
                    }
                }
            }
        }
        assert!(read_count > 400, "{read_count}");
    }

    #[test]
    fn the_usual_levels_are_read_here() {
        let decimal = |text: &str| text.parse::<Decimal>().expect("a number");
        for (level, price, amount) in [
            ("[\"change\",37394.0,42670.0]]}}}", "37394", "42670"),
            ("[\"change\",104567.5,254870.0],[\"delete\",36809.5,0.0]", "104567.5", "254870"),
            ("[\"delete\",0.0045,0.0],[\"new\",0.004,61.6]", "0.0045", "0"),
        ] {
            // A level always lies within a frame.
            let frame = format!("{{\"type\":\"change\",\"bids\":[{level}");
            let at = frame.len() - level.len() + level.find(',').expect("a comma") + 1;
            let read = price_amount(frame.as_bytes(), at).map(|(price, amount, _)| (price, amount));
            assert_eq!(read, Some((decimal(price), decimal(amount))), "{level}");
        }
    }
}
