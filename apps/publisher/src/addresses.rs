//! Assigns service addresses one after the other.

use std::net::{Ipv4Addr, SocketAddrV4};

/// Addresses of services: consecutive ports from a first one on, or free ports chosen by the system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    ip: Ipv4Addr,
    /// Port of the next address; 0 lets the system choose free ports.
    port: u16,
}

impl Addresses {
    pub(crate) const fn from(first: SocketAddrV4) -> Addresses {
        Addresses { ip: *first.ip(), port: first.port() }
    }

    /// Returns the next address.
    pub(crate) fn next(&mut self) -> SocketAddrV4 {
        let port = self.port;
        self.port = if port == 0 { 0 } else { port.wrapping_add(1).max(1) };
        SocketAddrV4::new(self.ip, port)
    }
}
