//! The capacity of a ring.

/// Largest capacity of a ring, in items.
const CAPACITY_MAX: usize = 1 << 30;

/// Rounds the capacity of a ring up to a power of two, at least 1.
///
/// # Panics
/// If `capacity` exceeds [`CAPACITY_MAX`].
pub(crate) fn ring_capacity(capacity: usize) -> usize {
    assert!(capacity <= CAPACITY_MAX, "a ring of {capacity} items exceeds the maximum of {CAPACITY_MAX}");
    capacity.next_power_of_two()
}
