//! A number that one thread writes and others read.

use core::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread writes and any other reads, with plain loads and stores.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// The number as last written.
    #[must_use]
    #[inline]
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

/// Declares a struct of [`Counter`](crate::Counter)s, each of which may have a display name.
///
/// ```
/// tickpath_lockfree::counters! {
///     /// Counters of a publisher.
///     pub struct PublisherCounters {
///         /// Packets sent.
///         pub packets => "market_packets",
///         /// Times that the publisher was woken.
///         pub wakeups,
///     }
/// }
///
/// let counters = PublisherCounters::default();
/// counters.packets.add(2);
/// let shown: Vec<_> = counters.named().map(|(name, counter)| (name, counter.read())).collect();
/// assert_eq!(shown, [("market_packets", 2)]);
/// ```
#[macro_export]
macro_rules! counters {
    ($(#[$about:meta])* pub struct $counters:ident {
        $($(#[$meaning:meta])* pub $counter:ident $(=> $name:literal)?,)*
    }) => {
        $(#[$about])*
        #[derive(Default)]
        #[repr(align(128))] // no false sharing with data that another thread writes
        pub struct $counters {
            $($(#[$meaning])* pub $counter: $crate::Counter,)*
        }

        impl $counters {
            /// The counters that have a name, in the order of their declaration.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, &$crate::Counter)> {
                [$($(($name, &self.$counter),)?)*].into_iter()
            }
        }
    };
}
