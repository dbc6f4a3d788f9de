//! Copies of the messages to users, for authorised readers.

mod readers;
mod store;
mod streams;

pub use readers::Readers;
pub use store::{Entry, Watched};
pub use streams::{CopySource, CopyStreams, FollowRun, RewindRun};
