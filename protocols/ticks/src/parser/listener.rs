//! The listener that receives a parser's messages.

use crate::message::{EndOfStream, Heartbeat, Hello, Refused, Skipped, Subscribed, SymbolDefinition, Tick};

/// A gap before a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The symbol with missing messages; 0 if the session's sequence numbers show the gap.
    pub instrument: u16,
    /// The expected number: a sequence number, or a symbol sequence number.
    pub expected: u64,
    /// The received number, of the same kind.
    pub found: u64,
    /// Number of missing messages.
    pub lost: u64,
}

/// Receives messages, in the order of the stream.
pub trait TickListener {
    /// Consecutive ticks, each with a valid checksum and a new sequence number.
    fn on_ticks(&mut self, ticks: &[Tick]);
    /// The first message of the stream.
    fn on_hello(&mut self, _: &Hello) {}
    /// Name and attributes of a symbol.
    fn on_symbol(&mut self, _: &SymbolDefinition) {}
    /// A heartbeat.
    fn on_heartbeat(&mut self, _: &Heartbeat) {}
    /// The subscription is accepted; its symbols follow.
    fn on_subscribed(&mut self, _: &Subscribed) {}
    /// A request, or this client, is refused.
    fn on_refused(&mut self, _: &Refused) {}
    /// The server omitted messages.
    fn on_skipped(&mut self, _: &Skipped) {}
    /// The last message of the stream.
    fn on_end_of_stream(&mut self, _: &EndOfStream) {}
    /// Messages are missing before the message of the next call.
    fn on_gap(&mut self, _: Gap) {}
    /// A damaged message was dropped.
    fn on_corrupt(&mut self) {}
    /// A complete message of an unlisted type.
    fn on_unknown(&mut self, _: &[u8]) {}
}
