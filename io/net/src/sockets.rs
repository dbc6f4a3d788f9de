//! Creation of sockets, shared by the UDP and TCP types.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::AsFd;

use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::NetError;

/// Creates a non-blocking UDP socket.
pub(crate) fn udp() -> Result<Socket, NetError> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))
        .map_err(NetError::socket("UDP socket"))?;
    socket.set_nonblocking(true).map_err(NetError::socket("non-blocking"))?;
    Ok(socket)
}

/// Creates a TCP socket. It is blocking, so that it can still be connected with a timeout.
pub(crate) fn tcp() -> Result<Socket, NetError> {
    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).map_err(NetError::socket("TCP socket"))
}

/// Makes a connection's socket non-blocking, disables Nagle's algorithm and enables keepalive.
pub(crate) fn set_up_stream(socket: &Socket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    keep_alive(socket)
}

/// TCP keepalive: silence before the first probe, interval of probes, and number of unanswered probes before
/// a reset. A disappeared peer is detected after 90 s, unless a protocol's heartbeat detects it earlier.
const KEEPALIVE_IDLE_S: u32 = 60;
const KEEPALIVE_INTERVAL_S: u32 = 10;
const KEEPALIVE_PROBES: u32 = 3;

/// Enables TCP keepalive: a probe after 60 s of silence, and a reset after 3 unanswered probes, 10 s apart.
///
/// # Errors
/// The socket is not a TCP socket.
pub fn keep_alive(socket: &impl AsFd) -> io::Result<()> {
    setsockopt(socket, sockopt::KeepAlive, &true)?;
    setsockopt(socket, sockopt::TcpKeepIdle, &KEEPALIVE_IDLE_S)?;
    setsockopt(socket, sockopt::TcpKeepInterval, &KEEPALIVE_INTERVAL_S)?;
    Ok(setsockopt(socket, sockopt::TcpKeepCount, &KEEPALIVE_PROBES)?)
}

pub(crate) fn bind(socket: &Socket, address: SocketAddrV4) -> Result<(), NetError> {
    socket.bind(&address.into()).map_err(|source| bind_error(address, source))
}

pub(crate) fn bind_error(address: SocketAddrV4, source: io::Error) -> NetError {
    match source.kind() {
        io::ErrorKind::AddrInUse => NetError::AddressInUse { address },
        _ => NetError::Bind { address, source },
    }
}

/// Makes the kernel stamp each received packet with `CLOCK_REALTIME` as it enters the network stack.
pub(crate) fn stamp_receives(socket: &Socket) -> Result<(), NetError> {
    setsockopt(socket, sockopt::ReceiveTimestampns, &true)
        .map_err(io::Error::from)
        .map_err(NetError::socket("receive time stamps"))
}

/// Makes the kernel report the number of datagrams dropped because the receive buffer was full.
pub(crate) fn count_drops(socket: &Socket) -> Result<(), NetError> {
    setsockopt(socket, sockopt::RxqOvfl, &1)
        .map_err(io::Error::from)
        .map_err(NetError::socket("drop counter"))
}

/// Returns whether the kernel has UDP segmentation. A kernel without it (before Linux 4.18) would ignore the
/// segment length of a send, and send all segments as one datagram.
pub(crate) fn can_segment(socket: &Socket) -> bool {
    getsockopt(socket, sockopt::UdpGsoSegment).is_ok()
}

/// Requests a receive buffer, beyond the system's limit where permitted; returns the granted size in bytes.
pub(crate) fn size_receive_buffer(socket: &Socket, requested: usize) -> Result<usize, NetError> {
    if setsockopt(socket, sockopt::RcvBufForce, &requested).is_err() {
        socket.set_recv_buffer_size(requested).map_err(NetError::socket("receive buffer size"))?;
    }
    let doubled = getsockopt(socket, sockopt::RcvBuf).map_err(io::Error::from);
    Ok(doubled.map_err(NetError::socket("receive buffer size"))? / 2)
}

/// Requests a send buffer, beyond the system's limit where permitted.
pub(crate) fn size_send_buffer(socket: &Socket, requested: usize) -> Result<(), NetError> {
    match setsockopt(socket, sockopt::SndBufForce, &requested) {
        Ok(()) => Ok(()),
        Err(_) => socket.set_send_buffer_size(requested).map_err(NetError::socket("send buffer size")),
    }
}

/// Returns the address that a socket is bound to; needed if port 0 was requested.
pub(crate) fn local_address(socket: &Socket) -> Result<SocketAddrV4, NetError> {
    let address = socket.local_addr().map_err(NetError::socket("local address"))?;
    address.as_socket_ipv4().ok_or_else(|| NetError::Socket {
        what: "local address",
        source: io::Error::new(io::ErrorKind::Unsupported, "not an IPv4 address"),
    })
}
