//! Bounded lock-free rings, a cell for the latest value and instructions of the CPU: prefetch, pause,
//! time stamp, comparison of bytes, checksum.
//!
//! | module | what it is | at its bound |
//! |---|---|---|
//! | [`spsc`] | one producer, one consumer, lowest latency | push gives the item back |
//! | [`records`] | one producer, one consumer, cheapest push, published in batches | push drops and counts |
//! | [`broadcast`] | one producer, many consumers | the oldest message is overwritten, a consumer learns how many it lost |
//! | [`seqlock`] | one writer, any readers of the latest value | the older value is overwritten, a reader that meets a write is told so |
//! | [`table`] | one writer, any readers of the latest values of many things, one cache line each | the older value is overwritten, a reader that meets a write is told so |
//! | [`shared_spsc`] | one producer, one consumer, in processes that do not trust each other | push gives the item back |
//! | [`wake`] | wakes a thread that sleeps until it is given something | |
//!
//! [`broadcast`], [`table`] and [`shared_spsc`] may lie in memory given from outside, such as a mapping that processes share ([`SharedLines`]).
//!
//! [`cpu`] and [`crc32c`] wrap the instructions, [`vectors`] runs loops with the widest vectors that the CPU has, [`CachePadded`] keeps a value on cache lines that no other shares, and a [`Counter`] is a
//! number that one thread writes and any other reads.
//!
//! All other memory is allocated and touched when a ring or cell is created; nothing allocates, blocks or
//! makes a system call afterwards, except to wake a consumer that sleeps ([`wake`]). Capacities of rings are rounded up to a power of two.
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
