//! The properties of `tickpath-web`'s server: for any bytes, a connection ends, and no request body is longer
//! than its bound.

#[allow(clippy::unwrap_used)]
#[path = "../../io/web/tests/memory/mod.rs"]
pub(crate) mod memory;

/// Checks all bytes of one connection: requests over HTTP, or the upgrade and frames of a WebSocket.
pub fn web(data: &[u8]) {
    memory::carry(&mut memory::acceptor(), data.to_vec());
}
