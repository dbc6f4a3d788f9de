//! Protocols of market data, told by what is in a packet.

use std::fmt;
use std::str::FromStr;

use tickpath_iex::Segment;
use tickpath_nasdaq::itch50::message_len;
use tickpath_nasdaq::{moldudp64, soupbintcp};

use crate::message::is_end_of_snapshot;

/// A protocol of market data in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// Nasdaq TotalView-ITCH 5.0, in MoldUDP64 or SoupBinTCP.
    Itch,
    /// TOPS, DEEP and DEEP+ in IEX-TP.
    Iex,
    /// The Integrated Feed of NYSE's markets, XDP.
    Xdp,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Protocol; 3] = [Protocol::Itch, Protocol::Iex, Protocol::Xdp];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Itch => "itch",
            Protocol::Iex => "iex",
            Protocol::Xdp => "xdp",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a protocol that can be replayed: write {}", names())]
pub struct ParseProtocolError {
    text: String,
}

fn names() -> String {
    Protocol::ALL.map(Protocol::name).join(", ")
}

impl FromStr for Protocol {
    type Err = ParseProtocolError;

    fn from_str(text: &str) -> Result<Protocol, ParseProtocolError> {
        let found = Protocol::ALL.into_iter().find(|protocol| protocol.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| ParseProtocolError { text: text.to_owned() })
    }
}

/// What a datagram must be of: a packet with messages that only one protocol has. `None` for anything else, and for
/// packets without messages, which say nothing.
///
/// A protocol that was asked for is believed: any packet with messages that can be its is.
pub(super) fn of_datagram(payload: &[u8], asked: Option<Protocol>) -> Option<Protocol> {
    let may_be = |protocol| asked.is_none_or(|asked| asked == protocol);
    if may_be(Protocol::Iex) && is_iex(payload) {
        Some(Protocol::Iex)
    } else if may_be(Protocol::Xdp) && is_xdp(payload, asked.is_some()) {
        Some(Protocol::Xdp)
    } else if may_be(Protocol::Itch) && is_mold(payload, asked.is_some()) {
        Some(Protocol::Itch)
    } else {
        None
    }
}

/// A packet of a known purpose whose messages have known types; any with messages when it is `asked` for.
fn is_xdp(payload: &[u8], is_asked: bool) -> bool {
    let Ok(packet) = tickpath_nyse::Packet::parse(payload) else { return false };
    let is_known = |message: &[u8]| {
        let message_type = message.get(2..4).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        message_type.is_some_and(|message_type| tickpath_nyse::message_len(message_type).is_some())
    };
    let is_typical = || {
        packet.delivery_flag().meaning().is_some() && packet.messages().all(|(_, message)| is_known(message))
    };
    packet.message_count() > 0 && (is_asked || is_typical())
}

/// A segment of a feed that is known. Its header says so much that one without messages is enough.
fn is_iex(payload: &[u8]) -> bool {
    Segment::parse(payload).is_ok_and(|segment| segment.feed().is_some())
}

/// A MoldUDP64 packet whose messages are ITCH's; any when it is `asked` for.
fn is_mold(payload: &[u8], is_asked: bool) -> bool {
    let Ok(packet) = moldudp64::Packet::parse(payload) else { return false };
    packet.message_count() > 0 && (is_asked || packet.messages().all(|(_, message)| is_itch(message)))
}

/// As long as its type says.
fn is_itch(message: &[u8]) -> bool {
    is_end_of_snapshot(message)
        || message.first().is_some_and(|message_type| message_len(*message_type) == Some(message.len()))
}

/// Whether a message may be part of an instrument's snapshot: directory, state, auction and orders.
pub(super) fn is_of_snapshot(message: &[u8]) -> bool {
    matches!(message.first(), Some(b'R' | b'H' | b'J' | b'I' | b'A'))
}

/// True when some bytes of a TCP stream begin with SoupBinTCP packets of a server that sends ITCH: a login that is
/// accepted and then, or at once, ITCH messages; any sequenced data when ITCH is `asked` for.
pub(super) fn is_soup_of_itch(bytes: &[u8], is_asked: bool) -> bool {
    let mut rest = bytes;
    while let Ok(Some((packet, len))) = soupbintcp::next_packet(rest) {
        match packet {
            soupbintcp::Packet::SequencedData(message) => return is_asked || is_itch(message),
            soupbintcp::Packet::LoginAccepted(_)
            | soupbintcp::Packet::ServerHeartbeat
            | soupbintcp::Packet::Debug(_) => rest = &rest[len..],
            _ => return false,
        }
    }
    false
}
