//! Plain data that is copied word by word while another thread may overwrite it.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::sync::{AtomicU64, Ordering};

/// Plain data without padding, of which every bit pattern is a value: what may be copied word by word
/// while it is being overwritten.
pub trait Payload: Copy + Send + FromBytes + IntoBytes + Immutable {}

impl<T: Copy + Send + FromBytes + IntoBytes + Immutable> Payload for T {}

const WORD: usize = size_of::<u64>();

/// Words that a payload takes, the last one filled up with zeros.
pub(crate) const fn words_of<T>() -> usize {
    size_of::<T>().div_ceil(WORD)
}

/// Stores a payload into the words that `word` gives by index, relaxed.
#[inline(always)]
pub(crate) fn store<'a, T: Payload>(item: &T, word: impl Fn(usize) -> &'a AtomicU64) {
    for (index, bytes) in item.as_bytes().chunks(WORD).enumerate() {
        let mut value = [0; WORD];
        value[..bytes.len()].copy_from_slice(bytes);
        word(index).store(u64::from_ne_bytes(value), Ordering::Relaxed);
    }
}

/// Loads a payload from the words that `word` gives by index, relaxed. While they are being overwritten
/// the copy may be torn; it is a value all the same.
#[inline(always)]
pub(crate) fn load<'a, T: Payload>(word: impl Fn(usize) -> &'a AtomicU64) -> T {
    let mut item = T::new_zeroed();
    for (index, bytes) in item.as_mut_bytes().chunks_mut(WORD).enumerate() {
        let value = word(index).load(Ordering::Relaxed).to_ne_bytes();
        bytes.copy_from_slice(&value[..bytes.len()]);
    }
    item
}
