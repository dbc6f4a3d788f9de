//! Hosts, addresses and names of the simulated system.

use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_simnet::HostId;
use tickpath_types::Nanos;

pub(crate) const VENUE: HostId = HostId(0);
/// Maximum downtime of a process.
pub(crate) const DOWN_MAX: Nanos = Nanos::from_millis(150);
pub(crate) const ORDER_ENTRY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7_001);
pub(crate) const RETRANSMISSION: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7_002);
pub(crate) const LINES: [SocketAddrV4; 2] = [
    SocketAddrV4::new(Ipv4Addr::new(239, 1, 0, 1), 8_001),
    SocketAddrV4::new(Ipv4Addr::new(239, 1, 0, 2), 8_002),
];
pub(crate) const PASSWORD: &str = "secret";

pub(crate) const fn client_host(place: usize) -> HostId {
    HostId(place as u16 + 1)
}

pub(crate) const fn feed_host(place: usize) -> HostId {
    HostId(place as u16 + 100)
}

pub(crate) const fn trader_host(place: usize) -> HostId {
    HostId(place as u16 + 300)
}

pub(crate) fn user_name(place: usize) -> String {
    format!("USER{}", place + 1)
}
