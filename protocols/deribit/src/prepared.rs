//! Order requests whose fixed members are encoded in advance.
//!
//! Two orders of one instrument differ in few members. [`OrderTemplate`] keeps the others as JSON text, written
//! by the encoder of [`PlaceOrder`], so a [`PreparedOrder`] has exactly its bytes. An order is then a few
//! copies of whole words, with four values written in between.
//!
//! ```
//! use tickpath_deribit::field::Field;
//! use tickpath_deribit::messages::PlaceOrder;
//! use tickpath_deribit::number::Decimal;
//! use tickpath_deribit::prepared::{PlainLabel, OrderTemplate};
//! use tickpath_deribit::text::Text;
//!
//! let (amount, price) = ("10".parse().unwrap(), "50000.5".parse().unwrap());
//! let order = PlaceOrder { label: Some(Text::new("a-1")), valid_until: Some(7), ..PlaceOrder::limit("X", amount, price) };
//! let template = OrderTemplate::new(&order, &mut Vec::new()).unwrap();
//! let (mut encoded, mut prepared) = (Vec::new(), Vec::new());
//! order.write(&mut encoded);
//! template.order(1_000_000_000, 5_000_050_000_000, &PlainLabel::new("a-1").unwrap(), 7).write(&mut prepared);
//! assert_eq!(prepared, encoded);
//! ```

use std::fmt;

use crate::digits::{UNITS_ROOM, WHOLE_ROOM, write_units, write_whole};
use crate::field::Field;
use crate::messages::PlaceOrder;
use crate::number::Decimal;
use crate::scan::{ScanError, ScanErrorKind, Scanner};
use crate::text::Text;

/// Maximum length of a label in bytes (`private/buy`).
pub const LABEL_LEN_MAX: usize = 64;
/// Number of bytes of a label that are written at once.
const WORD: usize = size_of::<u64>();
/// Maximum length of the fixed members.
const TEXT_LEN_MAX: usize = 256;
/// Number of bytes that are copied at once, whatever part of them is used.
const CHUNK: usize = 64;
/// Bound of the length of params: fixed members, amount, price, label and time. A power of two, so that the
/// remainder of a position is within the buffer without a check.
const PARAMS_LEN_BOUND: usize = 512;

const _: () = assert!(
    TEXT_LEN_MAX + 2 * UNITS_ROOM + LABEL_LEN_MAX + WHOLE_ROOM < PARAMS_LEN_BOUND && LABEL_LEN_MAX <= CHUNK
);

/// A label that JSON has as it is: printable ASCII without quotes and backslashes.
#[derive(Clone, Copy)]
pub struct PlainLabel {
    /// The text, and a word to write behind its end.
    bytes: [u8; LABEL_LEN_MAX + WORD],
    len: usize,
}

impl PlainLabel {
    /// The empty label.
    pub const EMPTY: PlainLabel = PlainLabel { bytes: [0; LABEL_LEN_MAX + WORD], len: 0 };

    /// Checks a label; `None` if it is too long, or JSON would escape one of its characters.
    #[must_use]
    pub fn new(text: &str) -> Option<PlainLabel> {
        let mut label = PlainLabel::EMPTY;
        label.push(text.bytes().all(is_plain).then_some(text)?);
        (label.len == text.len()).then_some(label)
    }

    /// The label.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).expect("labels are ASCII")
    }

    /// Appends text, cut at [`LABEL_LEN_MAX`]. The caller has checked that JSON has it as it is.
    #[inline]
    pub fn push(&mut self, text: &str) {
        debug_assert!(text.bytes().all(is_plain));
        let room = &mut self.bytes[self.len.min(LABEL_LEN_MAX)..LABEL_LEN_MAX];
        let len = text.len().min(room.len());
        room[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.len += len;
    }

    /// Appends a number to the base 36, with the digits 0 to 9 and a to z, and a dot, cut at [`LABEL_LEN_MAX`].
    #[inline]
    pub fn push_base36(&mut self, number: u64) {
        /// Bound of the numbers with seven digits, which fill a word with the dot.
        const SEVEN: u64 = 36_u64.pow(7);
        if number < SEVEN {
            let (word, len) = base36(number);
            return self.push_word(word | u64::from(b'.') << (8 * len), len + 1);
        }
        let (upper, lower) = (base36(number / SEVEN), base36(number % SEVEN));
        self.push_word(upper.0, upper.1);
        let zeros = 7 - lower.1;
        let leading = u64::from_le_bytes(*b"00000000") & ((1 << (8 * zeros)) - 1);
        self.push_word(lower.0 << (8 * zeros) | leading, 7);
        self.push_word(u64::from(b'.'), 1);
    }

    /// Appends the lowest `len` bytes of a word, the first character in the lowest byte.
    #[inline(always)]
    fn push_word(&mut self, word: u64, len: usize) {
        let at = self.len.min(LABEL_LEN_MAX);
        self.bytes[at..at + WORD].copy_from_slice(&word.to_le_bytes());
        self.len = (at + len).min(LABEL_LEN_MAX);
    }
}

/// The digits of a number to the base 36 with up to eight digits, the first in the lowest byte; and their
/// number.
#[inline(always)]
fn base36(mut number: u64) -> (u64, usize) {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let (mut word, mut len) = (0, 0);
    loop {
        word = word << 8 | u64::from(DIGITS[(number % 36) as usize]);
        (number, len) = (number / 36, len + 1);
        if number == 0 {
            return (word, len);
        }
    }
}

impl PartialEq for PlainLabel {
    fn eq(&self, other: &PlainLabel) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for PlainLabel {}

impl fmt::Debug for PlainLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

/// The fixed members of an order request (`private/buy`, `private/sell`): all but amount, price, label and
/// time limit.
#[derive(Clone)]
pub struct OrderTemplate {
    /// The text, and bytes to copy behind its end.
    text: [u8; TEXT_LEN_MAX + CHUNK],
    /// Ends of the parts before amount, price, label and time limit, and of the last part.
    ends: [u16; 5],
    has_price: bool,
}

impl OrderTemplate {
    /// Encodes the fixed members of an order, which must have an amount, a label and a time limit; their values
    /// do not matter. If it has a price, so have the orders of the template. `scratch` is a buffer, so that
    /// nothing is allocated if it has capacity for the request. `None` if a member is missing or the text is
    /// too long.
    #[must_use]
    pub fn new(order: &PlaceOrder<'_>, scratch: &mut Vec<u8>) -> Option<OrderTemplate> {
        let has_price = order.price.is_some();
        if order.amount.is_none() || order.label.is_none() || order.valid_until.is_none() {
            return None;
        }
        scratch.clear();
        PlaceOrder {
            amount: Some(Decimal::ZERO),
            price: order.price.and(Some(Decimal::ZERO)),
            label: Some(Text::new("")),
            valid_until: Some(0),
            ..order.clone()
        }
        .write(scratch);
        let mut template = OrderTemplate { text: [0; TEXT_LEN_MAX + CHUNK], ends: [0; 5], has_price };
        let (mut from, mut len) = (0, 0);
        let mut keep = |part: &[u8]| {
            template.text[..TEXT_LEN_MAX].get_mut(len..len + part.len())?.copy_from_slice(part);
            len += part.len();
            Some(len as u16)
        };
        // Each key is followed by the value 0, or by an empty label, whose quotes belong to the fixed text. A
        // name cannot contain such a key, because its quotes would be escaped.
        let keys: [(&[u8], usize); 4] =
            [(b"\"amount\":", 1), (b"\"price\":", 1), (b"\"label\":\"", 0), (b"\"valid_until\":", 1)];
        for (place, (key, value_len)) in keys.into_iter().enumerate() {
            if place == 1 && !has_price {
                template.ends[1] = template.ends[0];
                continue;
            }
            let at = scratch[from..].windows(key.len()).position(|window| window == key)?;
            let end = from + at + key.len();
            template.ends[place] = keep(&scratch[from..end])?;
            from = end + value_len;
        }
        template.ends[4] = keep(&scratch[from..])?;
        Some(template)
    }

    /// An order of this template. Amount and price are in units of 10^-8; the price counts only if the template
    /// has one. `valid_until_ms` is in milliseconds since 1970.
    #[inline]
    #[must_use]
    pub const fn order<'t>(
        &'t self,
        amount: i64,
        price: i64,
        label: &'t PlainLabel,
        valid_until_ms: u64,
    ) -> PreparedOrder<'t> {
        PreparedOrder { template: self, amount, price, label, valid_until_ms }
    }
}

impl fmt::Debug for OrderTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OrderTemplate")
            .field(&String::from_utf8_lossy(&self.text[..usize::from(self.ends[4])]))
            .finish()
    }
}

/// Params of an order request: a template and the values of one order. It is only written, never read.
#[derive(Clone, Copy, Debug)]
pub struct PreparedOrder<'t> {
    template: &'t OrderTemplate,
    amount: i64,
    price: i64,
    label: &'t PlainLabel,
    valid_until_ms: u64,
}

/// Text that is written in whole chunks: bytes behind its end are overwritten by the next part.
struct Output<'o> {
    room: &'o mut [u8; PARAMS_LEN_BOUND + CHUNK],
    len: usize,
}

impl Output<'_> {
    /// The buffer behind the text.
    #[inline(always)]
    fn rest(&mut self) -> &mut [u8; CHUNK] {
        self.room[self.len % PARAMS_LEN_BOUND..].first_chunk_mut().expect("a chunk follows each position")
    }

    #[inline(always)]
    fn part(&mut self, text: &[u8; TEXT_LEN_MAX + CHUNK], from: usize, to: usize) {
        let mut at = from;
        loop {
            *self.rest() = *text[at % TEXT_LEN_MAX..].first_chunk().expect("a chunk follows each position");
            if to - at <= CHUNK {
                break;
            }
            (at, self.len) = (at + CHUNK, self.len + CHUNK);
        }
        self.len += to - at;
    }
}

impl PreparedOrder<'_> {
    #[inline(always)]
    fn write_to(&self, room: &mut [u8; PARAMS_LEN_BOUND + CHUNK]) -> usize {
        let OrderTemplate { text, ends, has_price } = self.template;
        let [amount, price, label, time, end] = ends.map(usize::from);
        let mut out = Output { room, len: 0 };
        out.part(text, 0, amount);
        out.len += write_units(self.amount, out.rest());
        if *has_price {
            out.part(text, amount, price);
            out.len += write_units(self.price, out.rest());
        }
        out.part(text, price, label);
        *out.rest() = *self.label.bytes.first_chunk().expect("a label is at least a chunk");
        out.len += self.label.len;
        out.part(text, label, time);
        out.len += write_whole(self.valid_until_ms, out.rest());
        out.part(text, time, end);
        out.len
    }
}

impl<'a> Field<'a> for PreparedOrder<'_> {
    /// Fails: received params are read as [`PlaceOrder`].
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        Err(scanner.error_at(scanner.at(), ScanErrorKind::WrongType))
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + PARAMS_LEN_BOUND + CHUNK, 0);
        let room = out[start..].first_chunk_mut().expect("the buffer was extended by as much");
        let len = self.write_to(room);
        out.truncate(start + len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::{OrderType, TimeInForce};

    fn units(units: i64) -> Decimal {
        Decimal::new(units, 8).unwrap()
    }

    fn check(order: &PlaceOrder<'_>, amount: i64, price: i64, label: &str, valid_until: u64) {
        let template = OrderTemplate::new(order, &mut Vec::new()).unwrap();
        let real = PlaceOrder {
            amount: Some(units(amount)),
            price: order.price.and(Some(units(price))),
            label: Some(Text::new(label)),
            valid_until: Some(valid_until),
            ..order.clone()
        };
        let (mut expected, mut written) = (b"before".to_vec(), b"before".to_vec());
        real.write(&mut expected);
        let label = PlainLabel::new(label).unwrap();
        template.order(amount, price, &label, valid_until).write(&mut written);
        assert_eq!(String::from_utf8(written), String::from_utf8(expected));
    }

    fn template_order(name: &str) -> PlaceOrder<'_> {
        let limit = PlaceOrder::limit(name, Decimal::from(1), Decimal::from(2));
        PlaceOrder { label: Some(Text::new("any")), valid_until: Some(1), ..limit }
    }

    #[test]
    fn a_prepared_order_has_the_bytes_of_the_encoder() {
        let longest_name = "N".repeat(40);
        let names =
            ["X", "BTC-PERPETUAL", "BTC-25DEC26-100000-C", longest_name.as_str(), "q\"\\,\"amount\":0"];
        let labels = ["", "a", &"l".repeat(31), &"l".repeat(32), &"l".repeat(33), &"l".repeat(64)];
        for (name, label) in names.into_iter().flat_map(|name| labels.map(|label| (name, label))) {
            let limit = template_order(name);
            let market = PlaceOrder { price: None, order_type: Some(OrderType::Market), ..limit.clone() };
            let full = PlaceOrder {
                order_type: Some(OrderType::StopLimit),
                time_in_force: Some(TimeInForce::ImmediateOrCancel),
                post_only: true,
                reject_post_only: true,
                reduce_only: true,
                mmp: true,
                ..limit.clone()
            };
            for order in [limit, market, full] {
                check(&order, 1_000_000_000, 5_000_050_000_000, label, 1_795_000_000_000);
                check(&order, i64::MAX, 1, label, u64::MAX);
                check(&order, -i64::MAX, -1, label, 0);
            }
        }
    }

    #[test]
    fn an_order_without_a_variable_member_or_with_a_long_text_has_no_template() {
        let (order, long) = (template_order("X"), "N".repeat(200));
        for order in [
            PlaceOrder { amount: None, ..order.clone() },
            PlaceOrder { label: None, ..order.clone() },
            PlaceOrder { valid_until: None, ..order.clone() },
            PlaceOrder { instrument_name: Text::new(&long), ..order },
        ] {
            assert!(OrderTemplate::new(&order, &mut Vec::new()).is_none());
        }
    }

    #[test]
    fn labels_hold_plain_text_and_numbers_to_the_base_36() {
        for text in ["a\"", "a\\", "\n", "\u{7f}", "\u{e9}", &"l".repeat(65)] {
            assert_eq!(PlainLabel::new(text), None, "{text}");
        }
        let digits = |mut number: u64| {
            let mut text = String::new();
            loop {
                text.insert(0, char::from_digit((number % 36) as u32, 36).unwrap());
                number /= 36;
                if number == 0 {
                    return text;
                }
            }
        };
        let powers = (0..13).map(|power| 36_u64.pow(power)).chain([u64::MAX, 10_000_001]);
        for number in powers.flat_map(|power| [power - 1, power, power.saturating_add(35)]) {
            for start in ["", "prefix."] {
                let mut label = PlainLabel::new(start).unwrap();
                label.push_base36(number);
                assert_eq!(label.as_str(), format!("{start}{}.", digits(number)));
            }
        }
        let mut label = PlainLabel::new(&"l".repeat(60)).unwrap();
        label.push_base36(u64::MAX);
        label.push("more");
        assert_eq!(label.as_str(), format!("{}3w5e", "l".repeat(60)));
    }
}
