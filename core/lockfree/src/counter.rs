//! A number that one thread counts and others read.

use core::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread writes and any other reads: a plain store and a plain load.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// The number as last written.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds to the number. Only the one writer may call this: load and store are two steps.
    #[inline]
    pub fn add(&self, more: u64) {
        self.set(self.read() + more);
    }

    /// Writes the number. Only the one writer may call this.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Writes the number if it is greater. Only the one writer may call this.
    #[inline]
    pub fn raise_to(&self, value: u64) {
        if value > self.read() {
            self.set(value);
        }
    }
}
