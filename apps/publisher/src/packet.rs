//! Parses packets of ITCH, XDP and IEX into a common form.

use std::fmt;
use std::net::SocketAddrV4;

use tickpath_iex::{Feed, Segment};
use tickpath_nasdaq::moldudp64::{self, Session};
use tickpath_nyse::DeliveryFlag;

/// Identifies a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ChannelKey {
    /// A session of ITCH in MoldUDP64, on any line.
    Itch(Session),
    /// A multicast group of NYSE XDP, whose packets do not name their channel.
    Xdp(SocketAddrV4),
    /// An IEX feed and a channel number.
    Iex(Feed, u32),
}

impl fmt::Display for ChannelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChannelKey::Itch(session) => write!(f, "ITCH session '{session}'"),
            ChannelKey::Xdp(group) => write!(f, "XDP of {group}"),
            ChannelKey::Iex(feed, channel) => write!(f, "IEX {} channel {channel}", feed.name()),
        }
    }
}

/// The purpose of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The packet carries messages.
    Messages,
    /// The packet carries no messages, only the next sequence number.
    Heartbeat,
    /// The packet ends the session.
    EndOfSession,
    /// The packet is out of band: part of a recovery, not of the channel's sequence.
    OutOfBand,
}

/// The contents of a packet's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketHead {
    pub(crate) key: ChannelKey,
    pub(crate) kind: Kind,
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// `sent_ns` of a packet that restarts the sequence numbers; `None` for any other packet.
    pub(crate) starts: Option<u64>,
    /// Session id of IEX; 0 for other protocols.
    pub(crate) session: u32,
    /// Send time by the original publisher's clock in nanoseconds; 0 if the protocol does not give it.
    pub(crate) sent_ns: u64,
}

/// Parses the header of a packet of any supported protocol; `None` for other protocols. A protocol is
/// recognised by its length fields, which must add up to the length of the packet.
pub(crate) fn read_head(payload: &[u8], dst: SocketAddrV4) -> Option<PacketHead> {
    iex(payload).or_else(|| xdp(payload, dst)).or_else(|| itch(payload))
}

fn iex(payload: &[u8]) -> Option<PacketHead> {
    let segment = Segment::parse(payload).ok()?;
    let sent_ns = segment.send_time().0;
    Some(PacketHead {
        key: ChannelKey::Iex(segment.feed()?, segment.channel()),
        kind: if segment.is_heartbeat() { Kind::Heartbeat } else { Kind::Messages },
        first: segment.sequence().0,
        count: segment.message_count().into(),
        starts: segment.is_first().then_some(sent_ns),
        session: segment.session(),
        sent_ns,
    })
}

fn xdp(payload: &[u8], dst: SocketAddrV4) -> Option<PacketHead> {
    let packet = tickpath_nyse::Packet::parse(payload).ok()?;
    let flag = packet.delivery_flag();
    let kind = match flag {
        DeliveryFlag::HEARTBEAT => Kind::Heartbeat,
        DeliveryFlag::FAILOVER | DeliveryFlag::ORIGINAL | DeliveryFlag::SEQUENCE_RESET => Kind::Messages,
        DeliveryFlag::RETRANSMISSION_ONE
        | DeliveryFlag::RETRANSMISSION_PART
        | DeliveryFlag::REFRESH_ONE
        | DeliveryFlag::REFRESH_START
        | DeliveryFlag::REFRESH_PART
        | DeliveryFlag::REFRESH_END
        | DeliveryFlag::UNAVAILABLE => Kind::OutOfBand,
        _ => return None,
    };
    let sent_ns = packet.send_time().as_nanos();
    let is_reset = packet.messages().next().is_some_and(|(_, message)| {
        message.get(2..4) == Some(&tickpath_nyse::SequenceNumberReset::TYPE.to_le_bytes())
    });
    Some(PacketHead {
        key: ChannelKey::Xdp(dst),
        kind,
        first: packet.sequence().into(),
        count: packet.message_count().into(),
        starts: (kind == Kind::Messages && is_reset).then_some(sent_ns),
        session: 0,
        sent_ns,
    })
}

fn itch(payload: &[u8]) -> Option<PacketHead> {
    let packet = moldudp64::Packet::parse(payload).ok()?;
    let kind = match packet.kind() {
        moldudp64::Kind::Messages => Kind::Messages,
        moldudp64::Kind::Heartbeat => Kind::Heartbeat,
        moldudp64::Kind::EndOfSession => Kind::EndOfSession,
    };
    // Any 20 bytes could be a heartbeat, so require a printable session name.
    if !packet.session().to_string().bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return None;
    }
    Some(PacketHead {
        key: ChannelKey::Itch(packet.session()),
        kind,
        first: packet.sequence().0,
        count: if kind == Kind::Messages { packet.message_count().into() } else { 0 },
        starts: None,
        session: 0,
        sent_ns: 0,
    })
}

/// Passes the sequence number, bytes and tag of each message of a packet to `take`. The tag is the stream
/// offset for IEX, otherwise 0. `key` is from the packet's [`PacketHead`].
pub(crate) fn for_each_message(key: &ChannelKey, payload: &[u8], mut take: impl FnMut(u64, &[u8], u64)) {
    match key {
        ChannelKey::Itch(_) => {
            let Ok(packet) = moldudp64::Packet::parse(payload) else { return };
            packet.messages().for_each(|(sequence, message)| take(sequence.0, message, 0));
        }
        ChannelKey::Xdp(_) => {
            let Ok(packet) = tickpath_nyse::Packet::parse(payload) else { return };
            packet.messages().for_each(|(sequence, message)| take(sequence.into(), message, 0));
        }
        ChannelKey::Iex(..) => {
            let Ok(segment) = Segment::parse(payload) else { return };
            let mut offset = segment.stream_offset();
            for (sequence, message) in segment.messages() {
                take(sequence.0, message, offset);
                offset += 2 + message.len() as u64;
            }
        }
    }
}
