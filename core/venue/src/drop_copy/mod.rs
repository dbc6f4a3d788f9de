//! Copies of the messages to users, for readers that may watch them.

mod readers;
mod store;

pub use readers::{ReaderUser, enlist, find};
pub use store::{CopyStore, Entry, Place, Watched, count};
