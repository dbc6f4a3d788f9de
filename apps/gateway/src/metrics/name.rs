//! Text that one thread writes and others read without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// A name of up to 32 bytes.
pub type NameCell = TextCell<4>;

/// Text of up to eight times `WORDS` bytes. A read during a write may return a mix of old and new text.
#[derive(Debug)]
pub struct TextCell<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Default for TextCell<WORDS> {
    fn default() -> TextCell<WORDS> {
        TextCell(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl<const WORDS: usize> TextCell<WORDS> {
    /// Writes a text, truncated to the cell's length.
    pub fn set(&self, text: &str) {
        let mut rest = text.as_bytes();
        for place in &self.0 {
            let (now, later) = rest.split_at(rest.len().min(8));
            let mut word = [0; 8];
            word[..now.len()].copy_from_slice(now);
            place.store(u64::from_le_bytes(word), Ordering::Relaxed);
            rest = later;
        }
    }

    /// Reads the text; empty if none was written.
    #[must_use]
    pub fn read(&self) -> String {
        let bytes: Vec<u8> =
            self.0.iter().flat_map(|place| place.load(Ordering::Relaxed).to_le_bytes()).collect();
        let len = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        let cell = NameCell::default();
        assert_eq!(cell.read(), "");
        for name in ["maker-1", "x", &"y".repeat(32), ""] {
            cell.set(name);
            assert_eq!(cell.read(), name);
        }
        cell.set(&"z".repeat(40));
        assert_eq!(cell.read(), "z".repeat(32));
    }
}
