//! UDP unicast, for requests and responses.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::Socket;

use crate::error::NetError;
use crate::message::{Received, SendStatus, receive_datagram, would_block_if_full};
use crate::sockets;

/// A bound UDP socket that exchanges datagrams with any address.
#[derive(Debug)]
pub struct UdpEndpoint {
    socket: Socket,
    local_address: SocketAddrV4,
}

impl UdpEndpoint {
    /// Binds to `address`; port 0 selects a free port.
    ///
    /// # Errors
    /// [`NetError::AddressInUse`] when another socket has the address; [`NetError::Bind`] when the address is
    /// not one of this machine.
    pub fn bind(address: SocketAddrV4) -> Result<UdpEndpoint, NetError> {
        let socket = sockets::udp()?;
        sockets::stamp_receives(&socket)?;
        sockets::bind(&socket, address)?;
        let local_address = sockets::local_address(&socket)?;
        Ok(UdpEndpoint { socket, local_address })
    }

    /// Sends one datagram.
    ///
    /// # Errors
    /// The system's error. A full send queue is no error but [`SendStatus::WouldBlock`].
    pub fn send_to(&mut self, datagram: &[u8], to: SocketAddrV4) -> io::Result<SendStatus> {
        match self.socket.send_to(datagram, &to.into()) {
            Ok(_) => Ok(SendStatus::Sent),
            Err(error) => would_block_if_full(error),
        }
    }

    /// Receives one datagram into `buffer`; `None` when there is none.
    pub fn recv_from(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        Ok(receive_datagram(self.socket.as_fd(), buffer)?.map(|(received, _)| received))
    }

    /// The bound address, with the selected port.
    #[must_use]
    pub fn local_address(&self) -> SocketAddrV4 {
        self.local_address
    }
}

impl AsFd for UdpEndpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
