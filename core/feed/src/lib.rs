//! Line arbitration, gap recovery and book health for multicast market data.
//!
//! [`Arbiter`] joins lines A and B and the retransmission server's answers into one gap-free sequence of
//! messages. [`BookBuilder`] turns that sequence into order-by-order books and updates, and tracks whether
//! each book can be trusted. [`SnapshotRecovery`] recovers books from snapshots when messages are lost for
//! good. Each protocol's [`RecoveryClient`] requests messages and snapshots from its servers: [`itch`],
//! [`iex`], [`xdp`]. [`LossModel`] simulates packet loss. None of these types performs IO or reads a clock.
//!
//! ```
//! use tickpath_feed::{Arbiter, ArbiterConfig, Line, MessageListener};
//! use tickpath_nasdaq::moldudp64::{PacketBuilder, Session};
//! use tickpath_types::{Nanos, Sequence};
//!
//! #[derive(Default)]
//! struct Seen(Vec<u64>);
//! impl MessageListener for Seen {
//!     fn on_message(&mut self, sequence: Sequence, _message: &[u8]) {
//!         self.0.push(sequence.0);
//!     }
//!     fn on_lost(&mut self, _first: Sequence, _count: u64) {}
//! }
//!
//! let packet = |sequence| {
//!     let mut builder = PacketBuilder::new([0; 64], Session::new("DAY1").unwrap(), Sequence(sequence));
//!     builder.push(b"message").unwrap();
//!     builder.finish().to_vec()
//! };
//! let (mut arbiter, mut seen): (Arbiter, _) = (Arbiter::new(ArbiterConfig::default()), Seen::default());
//! arbiter.handle_packet(Nanos(1), Line::A, &packet(1), &mut seen);
//! arbiter.handle_packet(Nanos(2), Line::A, &packet(3), &mut seen);
//! arbiter.handle_packet(Nanos(3), Line::B, &packet(2), &mut seen);
//! assert_eq!(seen.0, [1, 2, 3]);
//! assert_eq!(arbiter.counters().gaps_healed_by_line, 1);
//! ```

mod arbiter;
mod builder;
mod channel;
mod counters;
mod framing;
pub mod iex;
mod instruments;
pub mod itch;
mod line;
mod loss;
mod message_books;
mod numbering;
mod recovery;
mod reorder_buffer;
mod skew;
mod snapshot_recovery;
pub mod xdp;

pub use arbiter::{
    Arbiter, ArbiterConfig, JUMP_BACK_PACKETS, MessageListener, RETURN_AFTER, SESSION_CHANGE_PACKETS,
};
pub use builder::BookBuilder;
pub use channel::{Channel, ChannelConfig, ChannelCounters};
pub use counters::{ArbiterCounters, LineCounters, SKEW_BUCKETS, Skew};
pub use framing::{Framing, IexRequest, IexStream, IexTp, MoldUdp64, PacketHeader, PacketKind};
pub use instruments::{
    BuilderCounters, Change, IgnoreUpdates, InstrumentState, Instruments, OtherSymbol, UpdateListener,
};
pub use line::{Line, MAX_AHEAD};
pub use loss::{LossConfig, LossModel};
pub use message_books::MessageBooks;
pub use recovery::{
    RECOVERY_GROUPS_MAX, Recovering, RecoveryClient, RecoveryCounters, RecoveryInput, SocketCounters,
    SocketNeeds, StreamCounters, StreamProgress,
};
pub use reorder_buffer::{MAX_BUFFERED_MESSAGE, MessageStorage};
pub use snapshot_recovery::{
    SNAPSHOT_AHEAD_MAX, SnapshotOutcome, SnapshotRecovery, SnapshotRecoveryCounters, SnapshotScope,
};
