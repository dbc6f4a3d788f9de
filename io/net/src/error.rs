//! Why a socket could not be made.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Why a socket could not be made. Sending and receiving report `io::Error`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// Another socket has the address: end the program that has it, or choose another port.
    #[error("address {address} is in use: is it running already? choose another")]
    AddressInUse {
        /// The address asked for.
        address: SocketAddrV4,
    },
    /// The system refuses the address: it is no address of this machine, or its port needs a privilege.
    #[error("cannot bind {address}: {source}: choose an address of this machine and a port above 1023")]
    Bind {
        /// The address asked for.
        address: SocketAddrV4,
        /// What the system said.
        source: io::Error,
    },
    /// Nobody answers at the address: start the other end first, or correct the address.
    #[error("cannot connect to {address}: {source}: is the other end running there?")]
    Connect {
        /// The address asked for.
        address: SocketAddrV4,
        /// What the system said.
        source: io::Error,
    },
    /// The address is no IPv4 multicast group: choose one in 224.0.0.0/4, for local use in 239.0.0.0/8.
    #[error("{group} is no multicast group: choose one in 239.0.0.0/8")]
    NotMulticast {
        /// The address asked for.
        group: SocketAddrV4,
    },
    /// The interface cannot join the group: it has to be the address of a local interface.
    #[error("cannot join {group} on interface {interface}: {source}: name a local interface by its address")]
    JoinGroup {
        /// The group asked for.
        group: SocketAddrV4,
        /// The interface asked for.
        interface: Ipv4Addr,
        /// What the system said.
        source: io::Error,
    },
    /// No packet ring here: it needs `CAP_NET_RAW` and Linux. Receive by sockets instead.
    #[error("no packet ring ({what}): {source}: it needs CAP_NET_RAW; sockets need nothing")]
    PacketRing {
        /// The step that failed.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The system refuses a socket or an option of one: mostly the limit of open files (`ulimit -n`).
    #[error("cannot set up a socket ({what}): {source}: check the limit of open files")]
    Socket {
        /// The step that failed.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl NetError {
    /// For `map_err` on a step of setting up a socket.
    pub(crate) fn socket(what: &'static str) -> impl FnOnce(io::Error) -> NetError {
        move |source| NetError::Socket { what, source }
    }
}
