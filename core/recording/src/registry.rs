//! The registry of the protocols whose messages come in packets.

use std::str::FromStr;

use crate::captures::PacketFormat;
use crate::listener::Listener;
use crate::protocol_name::Protocol;
use crate::protocols::{iex, itch, xdp};

/// All packet protocols, one line each. A packet that fits two protocols belongs to the later one.
///
/// To add a protocol, implement [`PacketProtocol`](crate::captures::PacketProtocol) and add a line here.
pub(crate) const fn formats<L: Listener>() -> [PacketFormat<L>; 3] {
    [itch::packets(), iex::packets(), xdp::packets()]
}

impl Protocol {
    /// All protocols.
    pub fn all() -> impl Iterator<Item = Protocol> {
        formats::<()>().into_iter().map(|format| format.protocol)
    }
}

/// Parse error: the text is not the name of a protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a protocol that can be replayed: write {}", names())]
pub struct ParseProtocolError {
    text: String,
}

fn names() -> String {
    Protocol::all().map(Protocol::name).collect::<Vec<_>>().join(", ")
}

impl FromStr for Protocol {
    type Err = ParseProtocolError;

    fn from_str(text: &str) -> std::result::Result<Protocol, ParseProtocolError> {
        let found = Protocol::all().find(|protocol| protocol.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| ParseProtocolError { text: text.to_owned() })
    }
}
