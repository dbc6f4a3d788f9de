//! How much a peer may ask for, and how long it may take.

use tickpath_types::Nanos;

/// Bounds of a connection, at either end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebLimits {
    /// Longest head of an HTTP request, in bytes. Beyond: answered with 431 and closed.
    pub head_max: usize,
    /// Longest body of an HTTP request, in bytes. Beyond: answered with 413 and closed.
    pub body_max: usize,
    /// Longest WebSocket message, in bytes, whole or in fragments. Beyond: closed with 1009.
    pub message_max: usize,
    /// Bytes that wait to be sent beside those that the kernel and TLS have (64 KiB of each). Beyond: nothing of the
    /// message is taken, and the owner decides. It is the longest message that can be sent.
    pub pending_max: usize,
    /// Bytes read from the socket by one call, so that one peer cannot keep a duty cycle. At least one message.
    pub read_max: usize,
    /// A client has so long until its connection is open: TCP, proxy, TLS and upgrade.
    pub connect_timeout: Nanos,
    /// A peer has so long for TLS and the whole first request, for each further request from its first byte, and to
    /// take an answer. Beyond: closed.
    pub request_timeout: Nanos,
    /// A connection without a request is kept so long.
    pub idle_timeout: Nanos,
    /// The other end has so long to answer a close.
    pub close_timeout: Nanos,
}

impl WebLimits {
    /// For a client of a venue: messages up to 16 MiB, since a whole list of instruments comes in one; 15 s to
    /// connect.
    #[must_use]
    pub const fn client() -> WebLimits {
        WebLimits { message_max: 16 << 20, read_max: 1 << 20, ..WebLimits::server() }
    }

    /// For a venue: what a client sends is short, what it is sent may be long.
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
