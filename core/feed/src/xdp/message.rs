//! Channels, and messages with their position in one.

/// A channel of the feed: one partition of the matching engine, with its own numbers and clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Channel(pub u8);

/// A message of a channel and its number.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The channel.
    pub channel: Channel,
    /// Its number in the channel.
    pub sequence: u32,
    /// Its bytes with its header.
    pub bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// Creates a message from its parts.
    #[inline]
    #[must_use]
    pub const fn new(channel: Channel, sequence: u32, bytes: &'a [u8]) -> Message<'a> {
        Message { channel, sequence, bytes }
    }

    pub(super) const NONE: Message<'a> = Message { channel: Channel(0), sequence: 0, bytes: &[] };
}
