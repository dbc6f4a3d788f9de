//! Addresses of sockets, as numbers.

use std::fmt;

/// Where a socket can be reached: an IPv4 address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The IPv4 address, its first part in the highest byte.
    pub ip: u32,
    /// The port; 0 asks for a free one.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.ip.to_be_bytes();
        write!(f, "{a}.{b}.{c}.{d}:{}", self.port)
    }
}
