//! Addresses of the loopback interface.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};

use crate::wait::PATIENCE;

/// Any free port of the loopback interface; the bound socket reports its number.
pub const ANY_PORT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

/// An address that refuses connections. No test listens on its privileged port, while a port above 1023 that
/// was free a moment ago may be in use by another test.
pub const REFUSING: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);

/// Returns a listener at a free port, and its address.
#[must_use]
pub fn listen() -> (TcpListener, SocketAddrV4) {
    let listener = TcpListener::bind(ANY_PORT).unwrap();
    match listener.local_addr().unwrap() {
        SocketAddr::V4(address) => (listener, address),
        SocketAddr::V6(address) => unreachable!("an IPv4 address was bound, and it is {address}"),
    }
}

/// Returns a [listener](listen) whose `accept` does not block.
#[must_use]
pub fn listen_nonblocking() -> (TcpListener, SocketAddrV4) {
    let (listener, address) = listen();
    listener.set_nonblocking(true).unwrap();
    (listener, address)
}

/// Opens a connection whose reads block for at most [`PATIENCE`].
#[must_use]
pub fn connect(address: impl ToSocketAddrs) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Opens a UDP socket at a free port, whose reads block for at most [`PATIENCE`].
#[must_use]
pub fn udp_socket() -> UdpSocket {
    let socket = UdpSocket::bind(ANY_PORT).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}
