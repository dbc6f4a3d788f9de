//! Bounds of the sizes and times that a peer controls.

use tickpath_types::Nanos;

/// Bounds of a connection, at either end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebLimits {
    /// Longest head of an HTTP request, in bytes. A longer one is answered with 431, then closed.
    pub head_max: usize,
    /// Longest body of an HTTP request, in bytes. A longer one is answered with 413, then closed.
    pub body_max: usize,
    /// Longest WebSocket message, in bytes, whole or in fragments. A longer one is closed with 1009.
    pub message_max: usize,
    /// Bytes that wait to be sent, in addition to those in the kernel and in TLS (64 KiB each). Beyond it a
    /// message is rejected whole, and the owner decides. It also bounds the length of a sent message.
    pub pending_max: usize,
    /// Bytes that one call reads from the socket, to bound its share of a duty cycle. At least one message.
    pub read_max: usize,
    /// Time for a client's connection to open: TCP, proxy, TLS and upgrade.
    pub connect_timeout: Nanos,
    /// Time for TLS and the whole first request, for each further request from its first byte, and for the
    /// peer to receive an answer. The connection is closed after it.
    pub request_timeout: Nanos,
    /// Time that a connection without a request is kept.
    pub idle_timeout: Nanos,
    /// Time for the peer to answer a close.
    pub close_timeout: Nanos,
}

impl WebLimits {
    /// Limits of a client of a venue: messages up to 16 MiB, since a whole list of instruments arrives in
    /// one; 15 s to connect.
    #[must_use]
    pub const fn client() -> WebLimits {
        WebLimits { message_max: 16 << 20, read_max: 1 << 20, ..WebLimits::server() }
    }

    /// Limits of a venue: received messages are short, sent ones may be long.
    #[must_use]
    pub const fn server() -> WebLimits {
        WebLimits {
            head_max: 16 << 10,
            body_max: 64 << 10,
            message_max: 64 << 10,
            pending_max: 4 << 20,
            read_max: 128 << 10,
            connect_timeout: Nanos::from_secs(15),
            request_timeout: Nanos::from_secs(10),
            idle_timeout: Nanos::from_secs(60),
            close_timeout: Nanos::from_secs(2),
        }
    }
}
