//! The listener that a parser gives messages to.

use crate::message::{EndOfStream, Heartbeat, Hello, Refused, Skipped, Subscribed, SymbolDefinition, Tick};

/// Messages are missing before one that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The symbol whose messages are missing; 0 where the numbers of the session tell it.
    pub instrument: u16,
    /// The number that was expected: a sequence, or a symbol sequence.
    pub expected: u64,
    /// The number that came.
    pub found: u64,
    /// Number of missing messages.
    pub lost: u64,
}

/// Takes messages, in the order of the stream.
pub trait TickListener {
    /// Ticks that follow each other, each with a good checksum and a new number.
    fn on_ticks(&mut self, ticks: &[Tick]);
    /// The first message of the stream.
    fn on_hello(&mut self, _: &Hello) {}
    /// Name and terms of a symbol.
    fn on_symbol(&mut self, _: &SymbolDefinition) {}
    /// A sign of life.
    fn on_heartbeat(&mut self, _: &Heartbeat) {}
    /// The subscription is granted; its symbols follow.
    fn on_subscribed(&mut self, _: &Subscribed) {}
    /// A request, or this client, is refused.
    fn on_refused(&mut self, _: &Refused) {}
    /// The server left messages out.
    fn on_skipped(&mut self, _: &Skipped) {}
    /// The last message.
    fn on_end_of_stream(&mut self, _: &EndOfStream) {}
    /// Messages are missing before what is given out next.
    fn on_gap(&mut self, _: Gap) {}
    /// A message was damaged and is not given out.
    fn on_corrupt(&mut self) {}
    /// A message of a type that is not listed, whole.
    fn on_unknown(&mut self, _: &[u8]) {}
}
