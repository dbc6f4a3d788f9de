//! MoldUDP64 1.00: numbered messages in UDP datagrams, and requests for lost messages.
//!
//! ```
//! use tickpath_nasdaq::moldudp64::{Packet, PacketBuilder, Session};
//! use tickpath_types::Sequence;
//!
//! let session = Session::new("SESSION001").unwrap();
//! let mut builder = PacketBuilder::new([0; 64], session, Sequence(5));
//! builder.push(b"abc").unwrap();
//! builder.push(b"d").unwrap();
//! let datagram = builder.finish();
//!
//! let packet = Packet::parse(datagram).unwrap();
//! assert_eq!(packet.next_sequence(), Sequence(7));
//! assert_eq!(packet.messages().last(), Some((Sequence(6), &b"d"[..])));
//! ```

mod builder;
mod header;
mod packet;
mod request;

pub use builder::{PacketBuilder, PushError};
pub use header::Header;
pub use packet::{Kind, Messages, Packet};
pub use request::Request;

pub use crate::session::Session;

/// Length of the header of every packet, in bytes.
pub const HEADER_LEN: usize = size_of::<Header>();
/// Length in bytes of the prefix of each message, which states the message's length.
pub const BLOCK_PREFIX_LEN: usize = 2;
/// Default maximum length of a publisher's datagram, in bytes. It fits an Ethernet MTU of 1500 and leaves
/// space for tunnel headers.
pub const DATAGRAM_LEN_MAX: usize = 1400;
/// Maximum number of messages of one packet: the next higher count marks the end of the session.
pub const MESSAGE_COUNT_MAX: u16 = END_OF_SESSION - 1;
/// Value of a header's message count that marks the end of the session.
pub const END_OF_SESSION: u16 = 0xffff;
