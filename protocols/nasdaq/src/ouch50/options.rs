//! The optional fields that may follow the fixed part of a message.
//!
//! Source: Nasdaq OUCH 5.0, "Optional Appendage": `u16 total length`, then elements
//! `u8 length | u8 tag | value`; the length counts the tag and the value.

use std::fmt;

use zerocopy::byteorder::big_endian::{I32, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::soupbintcp::BufferTooShort;
use crate::wire::Alpha;

const TOTAL_LEN: usize = 2;
const ELEMENT_HEADER_LEN: usize = 2;
/// Total length of the options that this venue offers: minimum quantity, maximum displayed quantity and
/// expire time (6 bytes each) and post-only (3 bytes).
pub(super) const OPTIONS_LEN_MAX: usize = 3 * 6 + 3;

/// The reason why the bytes after a message's fixed part are not a list of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The total length is incomplete, or is absent although the message type requires it.
    #[error("the length of the options is missing")]
    Missing,
    /// The total length differs from the number of bytes that follow.
    #[error("options of {expected} bytes are announced and {len} follow")]
    WrongTotal {
        /// The stated total length in bytes.
        expected: usize,
        /// Number of bytes after the total length.
        len: usize,
    },
    /// An element has no tag, or is longer than the remaining bytes.
    #[error("the option at offset {offset} does not fit the options")]
    BadElement {
        /// Offset of the element from the first element, in bytes.
        offset: usize,
    },
    /// The length of an element's value is wrong for its tag.
    #[error("option {tag} has a value of {expected} bytes and this has {len}")]
    WrongLength {
        /// The tag of the element.
        tag: u8,
        /// Length that the tag requires, in bytes.
        expected: usize,
        /// Length of the element's value, in bytes.
        len: usize,
    },
}

/// Rule for a message type: whether a list of options, possibly empty, follows the fixed part.
///
/// The edition of 2025 appends an empty list to messages that had none in 2023; both forms are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Always,
    Maybe,
    /// Like `Maybe`, but the AIQ strategy byte of the 2025 edition may precede the list.
    AfterStrategy,
}

/// Declares the options: tag, name, type of the value, and the value's wire type.
macro_rules! tags {
    ($( $(#[$doc:meta])* $tag:literal $name:ident($value:ty: $wire:ty), )*) => {
        /// One option of a message.
        ///
        /// Source: Nasdaq OUCH 5.0, "Optional Fields"; prices have 4 implied decimals.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum TagValue<'a> {
            $( $(#[$doc])* $name($value), )*
            /// An option with an unlisted tag.
            Unknown {
                /// The tag of the option.
                tag: u8,
                /// The value.
                value: &'a [u8],
            },
        }

        impl<'a> TagValue<'a> {
            /// Returns the tag of the option.
            #[must_use]
            pub const fn tag(&self) -> u8 {
                match self {
                    $( TagValue::$name(_) => $tag, )*
                    TagValue::Unknown { tag, .. } => *tag,
                }
            }

            fn value_len(&self) -> usize {
                match self {
                    $( TagValue::$name(_) => size_of::<$wire>(), )*
                    TagValue::Unknown { value, .. } => value.len(),
                }
            }

            fn read(tag: u8, value: &'a [u8]) -> Result<Self, OptionsError> {
                match tag {
                    $( $tag => match <$wire>::read_from_bytes(value) {
                        Ok(value) => Ok(TagValue::$name(value.into())),
                        Err(_) => {
                            Err(OptionsError::WrongLength { tag, expected: size_of::<$wire>(), len: value.len() })
                        }
                    }, )*
                    _ => Ok(TagValue::Unknown { tag, value }),
                }
            }

            fn write_value(&self, out: &mut [u8]) {
                match self {
                    $( TagValue::$name(value) => out.copy_from_slice(<$wire>::from(*value).as_bytes()), )*
                    TagValue::Unknown { value, .. } => out.copy_from_slice(value),
                }
            }
        }
    };
}

tags! {
    /// A second order reference; in an Order Restated of this venue, the order's new reference.
    1 SecondaryOrderRef(u64: U64),
    /// The firm that the order is for.
    2 Firm(Alpha<4>: Alpha<4>),
    /// Minimum quantity to trade on entry: if less would trade, nothing trades.
    3 MinQty(u32: U32),
    /// `R` for a retail order, else `N`.
    4 CustomerType(u8: u8),
    /// Maximum displayed quantity.
    5 MaxFloor(u32: U32),
    /// Kind of price: `L` limit, `P` market peg, `M` midpoint peg, `R` primary peg, `Q` market maker peg,
    /// `m` midpoint.
    6 PriceType(u8: u8),
    /// Offset of the order's price from the price to which it is pegged.
    7 PegOffset(i32: I32),
    /// Discretion price: the hidden limit price of a discretionary order.
    9 DiscretionPrice(u64: U64),
    /// Kind of the discretion price, with the codes of [`TagValue::PriceType`].
    10 DiscretionPriceType(u8: u8),
    /// Offset of the discretion price from the price to which it is pegged.
    11 DiscretionPegOffset(i32: I32),
    /// `P`: the order is cancelled if it would trade on entry; `N`: it may trade.
    12 PostOnly(u8: u8),
    /// Width of the range, in shares, from which the displayed quantity is drawn at random.
    13 RandomReserves(u32: U32),
    /// Permitted routing of the order.
    14 Route(Alpha<4>: Alpha<4>),
    /// Expire time, in seconds since midnight.
    15 ExpireTime(u32: U32),
    /// `Y`: the order trades with hidden interest that would otherwise lock it.
    16 TradeNow(u8: u8),
    /// Handling instructions for the venue.
    17 HandleInst(u8: u8),
    /// Code for the order's share of the quantity at the best price.
    18 BboWeight(u8: u8),
    /// Price from which the order is repriced.
    19 ReferencePrice(u64: U64),
    /// The kind of [`TagValue::ReferencePrice`].
    20 ReferencePriceType(u8: u8),
    /// Displayed quantity.
    22 DisplayQty(u32: U32),
    /// Displayed price.
    23 DisplayPrice(u64: U64),
    /// The client's identifier of a group of orders.
    24 GroupId(u16: U16),
    /// `Y`: shares were located for a short sale.
    25 SharesLocated(u8: u8),
    /// Broker that located the shares.
    26 LocateBroker(Alpha<4>: Alpha<4>),
    /// Side and short sale marking, as a `SideMarking` code.
    27 Side(u8: u8),
    /// Index of the number space to which the message's UserRefNum belongs.
    28 UserRefIndex(u8: u8),
    /// The owner's self-trade prevention rule.
    29 AiqStrategy(u8: u8),
    /// The group of orders that the self-trade prevention rule treats as one owner's.
    30 AiqGroup(u16: U16),
}

/// The options of a message, fully checked; empty when it has none.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Options<'a> {
    elements: &'a [u8],
    aiq_strategy: Option<u8>,
}

impl<'a> Options<'a> {
    /// Parses and checks `rest`, all bytes after a message's fixed part.
    #[inline]
    pub(super) fn parse(rest: &'a [u8], presence: Presence) -> Result<Self, OptionsError> {
        if let (Presence::AfterStrategy, Some((&strategy, rest))) = (presence, rest.split_first()) {
            let options = Options::parse(rest, Presence::Maybe)?;
            return Ok(Options { aiq_strategy: Some(strategy), ..options });
        }
        let Some((total, elements)) = rest.split_first_chunk::<TOTAL_LEN>() else {
            return match (presence, rest.len()) {
                (Presence::Maybe | Presence::AfterStrategy, 0) => Ok(Options::default()),
                _ => Err(OptionsError::Missing),
            };
        };
        let expected = usize::from(u16::from_be_bytes(*total));
        if expected != elements.len() {
            return Err(OptionsError::WrongTotal { expected, len: elements.len() });
        }
        let mut left = elements;
        while !left.is_empty() {
            let offset = elements.len() - left.len();
            let (tag, value, after) = split_element(left).ok_or(OptionsError::BadElement { offset })?;
            TagValue::read(tag, value)?;
            left = after;
        }
        Ok(Options { elements, aiq_strategy: None })
    }

    /// Returns the options in message order.
    pub fn iter(&self) -> impl Iterator<Item = TagValue<'a>> + use<'a> {
        let mut left = self.elements;
        std::iter::from_fn(move || {
            let (tag, value, after) = split_element(left)?;
            left = after;
            TagValue::read(tag, value).ok()
        })
    }

    /// Returns the code of the self-trade prevention rule in an [`AiqCanceled`](super::AiqCanceled) of the
    /// 2025 edition; `None` in any other message.
    #[must_use]
    pub const fn aiq_strategy(&self) -> Option<u8> {
        self.aiq_strategy
    }

    /// Returns true when there are no options.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Returns the tag and value of the first element, and the elements after it; `None` if the first element
/// is incomplete.
fn split_element(elements: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&len, rest) = elements.split_first()?;
    let (element, after) = rest.split_at_checked(usize::from(len))?;
    let (&tag, value) = element.split_first()?;
    Some((tag, value, after))
}

/// Writes a message, the length of its options and the options at the start of `out`; returns the number of
/// bytes written. For a message type without options, send its `as_bytes` instead.
///
/// # Errors
/// [`BufferTooShort`] if `out` is too short, and always if an unknown option's value exceeds 254 bytes or the
/// options exceed 65535 bytes.
#[inline]
pub fn encode_with_options<M: IntoBytes + Immutable>(
    message: &M,
    options: &[TagValue<'_>],
    out: &mut [u8],
) -> Result<usize, BufferTooShort> {
    let total: usize = options.iter().map(|option| ELEMENT_HEADER_LEN + option.value_len()).sum();
    let needed = size_of::<M>() + TOTAL_LEN + total;
    let too_short = BufferTooShort { needed, len: out.len() };
    let fits = options.iter().all(|option| option.value_len() < usize::from(u8::MAX));
    if !fits || total > usize::from(u16::MAX) {
        return Err(too_short);
    }
    let out = out.get_mut(..needed).ok_or(too_short)?;
    let (fixed, rest) = out.split_at_mut(size_of::<M>());
    fixed.copy_from_slice(message.as_bytes());
    let (total_field, mut left) = rest.split_at_mut(TOTAL_LEN);
    total_field.copy_from_slice(&(total as u16).to_be_bytes());
    for option in options {
        let (element, after) = left.split_at_mut(ELEMENT_HEADER_LEN + option.value_len());
        element[0] = 1 + option.value_len() as u8;
        element[1] = option.tag();
        option.write_value(&mut element[ELEMENT_HEADER_LEN..]);
        left = after;
    }
    Ok(needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_count_their_tag() {
        let rest = [0, 9, 5, 3, 0, 0, 0, 50, 2, 12, b'P'];
        let options = Options::parse(&rest, Presence::Always).unwrap();
        let values: Vec<_> = options.iter().collect();
        assert_eq!(values, [TagValue::MinQty(50), TagValue::PostOnly(b'P')]);
        let mut out = [0; 16];
        let len = encode_with_options(b"!", &values, &mut out).unwrap();
        assert_eq!(out[..len], [&b"!"[..], &rest].concat());
    }

    #[test]
    fn an_absent_list_is_an_error_only_where_there_must_be_one() {
        assert!(Options::parse(&[], Presence::Maybe).unwrap().is_empty());
        assert!(Options::parse(&[0, 0], Presence::Maybe).unwrap().is_empty());
        assert_eq!(Options::parse(&[], Presence::Always), Err(OptionsError::Missing));
        assert_eq!(Options::parse(&[0], Presence::Maybe), Err(OptionsError::Missing));
    }

    #[test]
    fn damaged_lists_are_refused_whole() {
        let parse = |bytes: &'static [u8]| Options::parse(bytes, Presence::Always).unwrap_err();
        assert_eq!(parse(&[0, 3, 2, 12]), OptionsError::WrongTotal { expected: 3, len: 2 });
        assert_eq!(parse(&[0, 1, 0]), OptionsError::BadElement { offset: 0 });
        assert_eq!(parse(&[0, 4, 2, 12, b'P', 9]), OptionsError::BadElement { offset: 3 });
        assert_eq!(parse(&[0, 3, 2, 3, 1]), OptionsError::WrongLength { tag: 3, expected: 4, len: 1 });
    }

    #[test]
    fn tags_that_are_not_listed_are_kept() {
        let options = Options::parse(&[0, 4, 3, 200, 7, 8], Presence::Maybe).unwrap();
        assert_eq!(options.iter().next(), Some(TagValue::Unknown { tag: 200, value: &[7, 8] }));
        let long = [0; 255];
        let too_long = TagValue::Unknown { tag: 200, value: &long };
        assert!(encode_with_options(b"!", &[too_long], &mut [0; 512]).is_err());
        let longest = TagValue::Unknown { tag: 200, value: &long[1..] };
        assert!(encode_with_options(b"!", &[longest], &mut [0; 512]).is_ok());
    }
}
