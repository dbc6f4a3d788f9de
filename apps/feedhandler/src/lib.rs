//! The feed handler: reads two multicast lines, builds the books, and publishes market updates.
//!
//! [`FeedHandler`] is an agent around [`tickpath_feed`]: it owns the sockets, injects configured losses,
//! and sends every change of a book to the engines through a broadcast ring.

mod channel_handler;
mod handler;
mod lines;
pub mod live;
mod recovery_sockets;
mod senders;
mod snapshots;
mod updates;
mod warm_up_instance;

pub use handler::{FeedCounters, FeedHandler, FeedSettings, FeedView, FinalFeed};
pub use lines::{LineReader, ReadBy};
pub use senders::Senders;
pub use snapshots::{SnapshotCounters, SnapshotSources};
pub use tickpath_feed::MessageBooks;
pub use updates::FeedBooks;
