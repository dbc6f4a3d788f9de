//! SoupBinTCP 3.00 and 4.1: a numbered stream of messages over TCP that can resume on a new connection.
//!
//! [`next_packet`] finds the packets in received bytes and [`Packet::encode`] writes them. [`ClientSession`]
//! and [`ServerSession`] are the two sides of one connection; they own no socket and read no clock. Received
//! bytes enter through `handle_bytes`, which returns one event at a time. `poll_transmit` returns control
//! packets to send, and `encode_message` (client: `frame_message_with`) frames application messages. Call
//! `handle_timeout` and `poll_transmit` repeatedly as time passes.
//!
//! ```
//! use tickpath_nasdaq::soupbintcp::{
//!     ClientEvent, ClientSession, LoginRequest, ServerEvent, ServerSession, Session,
//! };
//! use tickpath_types::{Nanos, Sequence};
//!
//! let now = Nanos::from_secs(1);
//! let mut client = ClientSession::new(LoginRequest::new("TRADER", "secret").unwrap(), now);
//! let mut server = ServerSession::new(now);
//! let mut wire = [0; 128];
//!
//! let len = client.poll_transmit(now, &mut wire);
//! let (event, used) = server.handle_bytes(now, &wire[..len]).unwrap().unwrap();
//! assert_eq!(used, len);
//! let ServerEvent::LoginRequest(login) = event else { panic!("a login comes first") };
//! assert!(login.username.matches("trader") && login.password.matches("secret"));
//! server.accept(Session::new("DAY1").unwrap(), Sequence(1));
//!
//! let len = server.poll_transmit(now, &mut wire);
//! let accepted = client.handle_bytes(now, &wire[..len]).unwrap().unwrap().0;
//! assert!(matches!(accepted, ClientEvent::LoginAccepted { next_sequence: Sequence(1), .. }));
//!
//! let (len, sequence) = server.encode_message(now, &mut wire, b"hello").unwrap();
//! assert_eq!(sequence, Sequence(1));
//! let message = client.handle_bytes(now, &wire[..len]).unwrap().unwrap().0;
//! assert_eq!(message, ClientEvent::Message { sequence: Sequence(1), message: b"hello" });
//! ```

mod client;
mod endpoint;
mod frame;
mod login;
mod packet;
mod server;

pub use client::{ClientEvent, ClientSession};
pub use endpoint::SessionError;
pub(crate) use frame::parse_ascii_number;
pub use frame::{FrameError, next_packet, packet_len};
pub use login::{LoginAccepted, LoginRejectReason, LoginRequest, Password, Username};
pub(crate) use packet::ascii_number;
pub use packet::{BufferTooShort, Packet, SendError};
pub use server::{ServerEvent, ServerSession};

pub use crate::session::Session;

use tickpath_types::Nanos;

/// Length in bytes of a packet's header: the length field and the type.
pub const HEADER_LEN: usize = 3;
/// Maximum length of a payload, in bytes: the length field counts the type byte too.
pub const PAYLOAD_LEN_MAX: usize = u16::MAX as usize - 1;
/// Length in bytes of the longest control packet, a login of edition 4.1. `poll_transmit` needs a buffer of
/// this length.
pub const CONTROL_LEN_MAX: usize = 54;

/// A side sends a heartbeat once this much time has passed since its last packet.
pub const HEARTBEAT_INTERVAL: Nanos = Nanos::from_secs(1);
/// Duration of the other side's silence after which a connection ends.
pub const PEER_TIMEOUT: Nanos = Nanos::from_secs(15);
/// Maximum time from the start of a connection to a completed login.
pub const LOGIN_TIMEOUT: Nanos = Nanos::from_secs(30);
/// Shortest client timeout (edition 4.1) that a server grants; it raises a shorter request to this value.
pub const PEER_TIMEOUT_MIN: Nanos = Nanos::from_secs(2);
/// Longest client timeout (edition 4.1) that a server grants; it lowers a longer request to this value.
pub const PEER_TIMEOUT_MAX: Nanos = Nanos::from_secs(60);
