//! Copies of the messages to users, for readers that may watch them.

mod readers;
mod store;
mod streams;

pub use readers::{ReaderUser, enlist, find};
pub use store::{Entry, Watched};
pub use streams::{CopySource, CopyStart, CopyStreams, FollowRun, REWIND_PATIENCE, RewindRun};
