//! Conversion of message fields to numbers, from which tools compute checksums of decoded messages.

use zerocopy::byteorder::{ByteOrder, I64, U16, U32, U64};
use zerocopy::{Immutable, IntoBytes};

/// Converts a field of at most 8 bytes to a number; equal fields, and only those, give equal numbers.
pub trait Bits {
    /// Returns the field as a number.
    fn bits(&self) -> u64;
}

macro_rules! bits_of_integers {
    ($( $integer:ident, )+) => { $(
        impl<O: ByteOrder> Bits for $integer<O> {
            #[inline]
            fn bits(&self) -> u64 {
                self.get() as u64
            }
        }
    )+ };
}

bits_of_integers! { U16, U32, U64, I64, }

/// Returns a field's bytes as one little-endian number; a field of more than 8 bytes is hashed into 8.
#[inline(always)]
pub fn le_bits<T: IntoBytes + Immutable + ?Sized>(field: &T) -> u64 {
    let (words, rest) = field.as_bytes().as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().fold(u64::from_le_bytes(last), |sum, word| sum.rotate_left(29) ^ u64::from_le_bytes(*word))
}
