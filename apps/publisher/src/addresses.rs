//! The addresses that are given out, one after the other.

use std::net::{Ipv4Addr, SocketAddrV4};

/// Addresses of services: consecutive ports from a first one on, or ports that the system finds free.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    ip: Ipv4Addr,
    /// 0 for free ones.
    port: u16,
}

impl Addresses {
    pub(crate) const fn from(first: SocketAddrV4) -> Addresses {
        Addresses { ip: *first.ip(), port: first.port() }
    }

    /// The next one.
    pub(crate) fn next(&mut self) -> SocketAddrV4 {
        let port = self.port;
        self.port = if port == 0 { 0 } else { port.wrapping_add(1).max(1) };
        SocketAddrV4::new(self.ip, port)
    }
}
