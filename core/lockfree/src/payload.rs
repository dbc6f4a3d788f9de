//! Plain data that is copied word by word while another thread may overwrite it.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::sync::{AtomicU64, Ordering};

/// Plain data without padding, for which every bit pattern is valid: it may be copied word by word while it
/// is being overwritten.
pub trait Payload: Copy + Send + FromBytes + IntoBytes + Immutable {}

impl<T: Copy + Send + FromBytes + IntoBytes + Immutable> Payload for T {}

const WORD: usize = size_of::<u64>();

/// Number of words of a payload, the last one padded with zeros.
pub(crate) const fn words_of<T>() -> usize {
    size_of::<T>().div_ceil(WORD)
}

/// Stores a payload into words by relaxed stores. `word` returns the word at an index.
#[inline(always)]
pub(crate) fn store<'a, T: Payload>(item: &T, word: impl Fn(usize) -> &'a AtomicU64) {
    // Whole words have a separate loop, because a copy of variable length would be a function call.
    let (words, rest) = item.as_bytes().as_chunks::<WORD>();
    for (index, bytes) in words.iter().enumerate() {
        word(index).store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
    if !rest.is_empty() {
        let mut value = [0; WORD];
        value[..rest.len()].copy_from_slice(rest);
        word(words.len()).store(u64::from_ne_bytes(value), Ordering::Relaxed);
    }
}

/// Loads a payload from words by relaxed loads. `word` returns the word at an index. While the words are
/// being overwritten the copy may be torn, but is still a valid value.
#[inline(always)]
pub(crate) fn load<'a, T: Payload>(word: impl Fn(usize) -> &'a AtomicU64) -> T {
    let mut item = T::new_zeroed();
    let (words, rest) = item.as_mut_bytes().as_chunks_mut::<WORD>();
    for (index, bytes) in words.iter_mut().enumerate() {
        *bytes = word(index).load(Ordering::Relaxed).to_ne_bytes();
    }
    if !rest.is_empty() {
        let value = word(words.len()).load(Ordering::Relaxed).to_ne_bytes();
        rest.copy_from_slice(&value[..rest.len()]);
    }
    item
}
