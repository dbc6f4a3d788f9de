//! What a channel asks for, and what it gets.

use tickpath_feed::{Channel, Framing, MessageBooks};
use tickpath_types::{InstrumentId, Nanos};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::outputs::Sink;

/// Counts of recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct RecoveryCounters {
    /// Requests for messages that were sent.
    pub requests: u64,
    /// Requests that were refused in so many words.
    pub refusals: u64,
    /// Packets of answers.
    pub answers: u64,
    /// Datagrams that came from somebody else than who was asked.
    pub strangers: u64,
    /// Connections to servers.
    pub connections: u64,
    /// Of these, those that ended before they had done their work.
    pub failures: u64,
    /// Snapshots, or refreshes, that were asked for.
    pub snapshot_requests: u64,
    /// Those that came whole.
    pub snapshots: u64,
}

/// The way from one protocol's channel to its servers. Never waits.
pub(super) trait Recovery<B: MessageBooks, F: Framing>: Send {
    /// Sends a request for messages that were lost.
    fn request(&mut self, now: Nanos, request: F::Request);

    /// Does a bounded amount of reading answers and snapshots, and of asking for the latter; how much.
    fn poll(&mut self, now: Nanos, channel: &mut Channel<B, F>, out: &mut Sink<'_>) -> usize;

    /// The book of an instrument is to be read anew.
    fn resync(&mut self, id: InstrumentId) {
        let _ = id;
    }

    /// What happened so far.
    fn counters(&self) -> RecoveryCounters;
}
