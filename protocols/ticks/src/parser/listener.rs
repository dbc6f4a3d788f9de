//! The listener that receives a parser's messages.

use crate::message::{EndOfStream, Heartbeat, Hello, Refused, Skipped, Subscribed, SymbolDefinition, Tick};

/// Missing messages, detected by the sequence numbers of a later message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Instrument id of the symbol with the gap; 0 for a gap in the session's sequence numbers.
    pub instrument: u16,
    /// The expected sequence number: of the symbol, or of the session if `instrument` is 0.
    pub expected: u64,
    /// The received sequence number: of the symbol, or of the session if `instrument` is 0.
    pub found: u64,
    /// Number of missing messages.
    pub lost: u64,
}

/// Receives a parser's messages, in the order of the stream.
pub trait TickListener {
    /// Handles consecutive ticks, each with a valid checksum and a new sequence number.
    fn on_ticks(&mut self, ticks: &[Tick]);
    /// Handles the server's hello.
    fn on_hello(&mut self, _: &Hello) {}
    /// Handles the definition of a symbol: its name and attributes.
    fn on_symbol(&mut self, _: &SymbolDefinition) {}
    /// Handles a heartbeat.
    fn on_heartbeat(&mut self, _: &Heartbeat) {}
    /// Handles the acceptance of the subscription; the definitions of its symbols follow.
    fn on_subscribed(&mut self, _: &Subscribed) {}
    /// Handles the server's refusal of a request, or of this client.
    fn on_refused(&mut self, _: &Refused) {}
    /// Handles the server's report that it omitted messages.
    fn on_skipped(&mut self, _: &Skipped) {}
    /// Handles the last message of the stream.
    fn on_end_of_stream(&mut self, _: &EndOfStream) {}
    /// Handles a gap: messages are missing before the message of the next call.
    fn on_gap(&mut self, _: Gap) {}
    /// Handles the detection of damaged data; the parser skips bytes until the next valid message.
    fn on_corrupt(&mut self) {}
    /// Handles a complete message of an unlisted type.
    fn on_unknown(&mut self, _: &[u8]) {}
}
