//! The atomic types and the `UnsafeCell` that this crate uses: the standard library's, or loom's under
//! `cfg(loom)`, so that `tests/loom.rs` can run the same code through all its interleavings.

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering, fence},
    },
};
#[cfg(not(loom))]
pub(crate) use {
    self::cell::UnsafeCell,
    std::sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering, fence},
    },
};

#[cfg(not(loom))]
mod cell {
    /// The standard cell with loom's interface, which takes each access as a closure in order to track it.
    pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(core::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }
}
