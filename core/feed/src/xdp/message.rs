//! Channels, and messages with their channel and sequence number.

/// A channel of the feed: one partition of the matching engine, with its own sequence numbers and clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Channel(pub u8);

/// A message with its channel and sequence number.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Channel that carried the message.
    pub channel: Channel,
    /// Sequence number in the channel.
    pub sequence: u32,
    /// Bytes of the message, including its header.
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
