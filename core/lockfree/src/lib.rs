//! Bounded lock-free rings, a cell for the latest value and instructions of the CPU: prefetch, pause,
//! time stamp, comparison of bytes, checksum.
//!
//! | module | description | when full or contended |
//! |---|---|---|
//! | [`spsc`] | one producer, one consumer, lowest latency | push returns the item |
//! | [`records`] | one producer, one consumer, cheapest push, published in batches | push drops and counts |
//! | [`broadcast`] | one producer, many consumers | overwrites the oldest message; reports the loss |
//! | [`seqlock`] | one writer, many readers of the latest value | overwrites; a read during a write fails |
//! | [`table`] | as [`seqlock`], many values, a cache line each | overwrites; a read during a write fails |
//! | [`shared_spsc`] | one producer, one consumer, in mutually untrusted processes | push returns the item |
//! | [`wake`] | wakes a sleeping thread when there is work for it | |
//!
//! [`broadcast`], [`table`] and [`shared_spsc`] may lie in the caller's memory ([`SharedLines`]).
//!
//! [`cpu`] and [`crc32c`] wrap the instructions, [`vectors`] runs loops with the CPU's widest vectors,
//! [`CachePadded`] keeps a value on separate cache lines, and a [`Counter`] is a number that one thread
//! writes and any other reads.
//!
//! Memory that the caller does not provide is allocated and touched at creation. Afterwards nothing
//! allocates, blocks or makes a system call, except to wake a sleeping consumer ([`wake`]). Capacities of
//! rings are rounded up to a power of two.
//!
//! ```
//! use tickpath_lockfree::{Full, spsc};
//!
//! let (mut producer, mut consumer) = spsc::channel(2);
//! assert_eq!(producer.try_push("enter"), Ok(()));
//! assert_eq!(producer.try_push("cancel"), Ok(()));
//! assert_eq!(producer.try_push("replace"), Err(Full("replace")));
//! assert_eq!(consumer.try_pop(), Some("enter"));
//! assert_eq!(producer.try_push("replace"), Ok(()));
//! ```
#![allow(unsafe_code)]

pub mod broadcast;
mod cache_padded;
mod capacity;
mod counter;
pub mod cpu;
pub mod crc32c;
mod debug;
mod full;
mod lines;
mod payload;
pub mod records;
pub mod seqlock;
pub mod shared_spsc;
mod slot_ring;
pub mod spsc;
mod sync;
pub mod table;
pub mod vectors;
pub mod wake;

pub use cache_padded::CachePadded;
pub use counter::Counter;
pub use full::Full;
pub use lines::{LINE_LEN, Line, SharedLines, WrongMemory};
pub use payload::Payload;
