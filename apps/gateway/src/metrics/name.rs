//! A name that one thread writes and another reads, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// Up to 32 bytes. A reader that meets a writer may see half of each name once.
#[derive(Debug, Default)]
pub struct NameCell([AtomicU64; 4]);

impl NameCell {
    /// Writes a name; what is longer is cut.
    pub fn set(&self, name: &str) {
        let mut bytes = [0; 32];
        let len = name.len().min(bytes.len());
        bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
        for (place, word) in self.0.iter().zip(bytes.as_chunks::<8>().0) {
            place.store(u64::from_le_bytes(*word), Ordering::Relaxed);
        }
    }

    /// Reads it; empty where there is none.
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
