//! UDP multicast and TCP transports with kernel receive time stamps.
//!
//! The sockets transfer bytes of any protocol over IPv4. Every socket is non-blocking: "no data", "no space"
//! and "closed by the other end" are results, not errors, and a duty cycle never waits. Buffers are allocated
//! when a socket is created; sending and receiving allocate nothing. The error of an `io::Result` is the
//! system's, unless documented otherwise; a [`NetError`] also names the address or the failed step.
//!
//! ```
//! use std::net::Ipv4Addr;
//! use tickpath_net::{MulticastReceiver, MulticastSender, SendStatus, free_multicast_group};
//!
//! let group = free_multicast_group()?;
//! let mut receiver = MulticastReceiver::join(group, Ipv4Addr::LOCALHOST)?;
//! let mut sender = MulticastSender::new(group, Ipv4Addr::LOCALHOST)?;
//! assert_eq!(sender.send(b"packet")?, SendStatus::Sent);
//!
//! let mut buffer = [0; 1_500];
//! let received = loop {
//!     if let Some(received) = receiver.recv(&mut buffer)? {
//!         break received;
//!     }
//! };
//! assert_eq!(&buffer[..received.len], b"packet");
//! assert!(received.kernel_ns.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! On loopback, if both ends busy-poll on separate cores, expect 2 to 3 us one way by multicast and 3 to
//! 5 us by TCP; `cargo bench -p tickpath-net` measures this host.

#![allow(unsafe_code)] // recvmsg and recvmmsg on fixed arrays; a mapped packet ring

mod batch;
mod byte_queue;
mod endpoint;
mod error;
mod limits;
mod message;
mod multicast;
mod network;
mod packet_ring;
mod poller;
mod reconnect;
mod sockets;
mod tcp;

pub use batch::RecvBatch;
pub use byte_queue::ByteQueue;
pub use endpoint::UdpEndpoint;
pub use error::{NetError, SendSegmentsError};
pub use limits::raise_open_files;
pub use message::{Received, SendStatus};
pub use multicast::{MulticastReceiver, MulticastSender, free_multicast_group};
pub use network::{
    DatagramEndpoint, DatagramReceiver, DatagramSender, Kernel, Network, SocketPoller, StreamSocket,
};
pub use packet_ring::{PacketRing, PacketRingConfig, PacketRingCounters, RingDatagram};
pub use poller::{Interest, Poller, Ready};
pub use reconnect::{ClientState, ReconnectConfig, ReconnectingClient};
pub use sockets::keep_alive;
pub use tcp::{BufferSizes, Fill, SendOutcome, TcpAcceptor, TcpConnection};
