//! Reasons why a socket could not be created.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

/// The reason why a socket could not be created. Sending and receiving report `io::Error`, or
/// [`SendSegmentsError`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// Another socket has the address: end its program, or choose another port.
    #[error("address {address} is in use: is it running already? choose another")]
    AddressInUse {
        /// The requested address.
        address: SocketAddrV4,
    },
    /// The system refuses the address: it is not an address of this machine, or its port needs a privilege.
    #[error("cannot bind {address}: {source}: choose an address of this machine and a port above 1023")]
    Bind {
        /// The requested address.
        address: SocketAddrV4,
        /// The system's error.
        source: io::Error,
    },
    /// The connection cannot be established: start the other end first, or correct the address.
    #[error("cannot connect to {address}: {source}: is the other end running there?")]
    Connect {
        /// The requested address.
        address: SocketAddrV4,
        /// The system's error.
        source: io::Error,
    },
    /// The address is not an IPv4 multicast group: choose one in 224.0.0.0/4, for local use in 239.0.0.0/8.
    #[error("{group} is not a multicast group: choose one in 239.0.0.0/8")]
    NotMulticast {
        /// The requested address.
        group: SocketAddrV4,
    },
    /// The interface cannot join the group: specify the address of a local interface.
    #[error("cannot join {group} on interface {interface}: {source}: name a local interface by its address")]
    JoinGroup {
        /// The requested group.
        group: SocketAddrV4,
        /// The requested interface.
        interface: Ipv4Addr,
        /// The system's error.
        source: io::Error,
    },
    /// A packet ring is unavailable: it needs `CAP_NET_RAW` and Linux. Receive by sockets instead.
    #[error("no packet ring ({what}): {source}: it needs CAP_NET_RAW; sockets need nothing")]
    PacketRing {
        /// The step that failed.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The system refuses a socket or a socket option, usually at the limit of open files (`ulimit -n`).
    #[error("cannot set up a socket ({what}): {source}: check the limit of open files")]
    Socket {
        /// The step that failed.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

/// The system's error for a datagram among several that were sent together.
#[derive(Debug, thiserror::Error)]
#[error("cannot send a datagram after {sent} others: {source}")]
pub struct SendSegmentsError {
    /// Number of datagrams that the network stack accepted before.
    pub sent: usize,
    /// The system's error.
    pub source: io::Error,
}

impl NetError {
    /// Returns a function for `map_err` that adds the failed step of the socket's set-up to a system error.
    pub(crate) fn socket(what: &'static str) -> impl FnOnce(io::Error) -> NetError {
        move |source| NetError::Socket { what, source }
    }
}
