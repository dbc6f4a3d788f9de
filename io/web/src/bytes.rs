//! Byte streams over TCP or TLS, for protocols other than HTTP and WebSocket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd};

use tickpath_net::{Interest, Kernel, NetError, Network, SocketPoller, StreamSocket};

use crate::TlsServer;
use crate::stream::Stream;

/// Upper bound of bytes that one call reads from the socket.
const READ_MAX: usize = 64 << 10;

/// Accepts byte connections.
#[derive(Debug)]
pub struct ByteAcceptor<N: Network = Kernel> {
    socket: N::Socket,
    local_address: SocketAddrV4,
    tls: Option<TlsServer>,
}

impl<N: Network> ByteAcceptor<N> {
    /// Listens at `address`; port 0 selects a free one. With `tls` every connection must use TLS.
    ///
    /// # Errors
    /// [`NetError::AddressInUse`] if another socket listens there; [`NetError::Bind`] if this machine does
    /// not have the address.
    pub fn bind(
        network: &N,
        address: SocketAddrV4,
        tls: Option<TlsServer>,
    ) -> Result<ByteAcceptor<N>, NetError> {
        let (socket, local_address) = network.listen(address)?;
        Ok(ByteAcceptor { socket, local_address, tls })
    }

    /// Returns the next waiting connection, if any.
    ///
    /// # Errors
    /// A system error, such as the limit of open files; the connection then keeps waiting. A connection that
    /// was reset while it waited is skipped.
    pub fn accept(&mut self) -> io::Result<Option<ByteConnection<N>>> {
        use ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
        match self.socket.accept() {
            Ok((_, None)) => Ok(None),
            Ok((socket, Some(peer))) => {
                let tls = self.tls.as_ref().map(TlsServer::accept).transpose().map_err(io::Error::other)?;
                Ok(Some(ByteConnection { stream: Stream::new(socket, tls), peer_address: Some(peer) }))
            }
            Err(error) if matches!(error.kind(), WouldBlock | ConnectionAborted | Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The listening address with its port.
    #[must_use]
    pub fn local_address(&self) -> SocketAddrV4 {
        self.local_address
    }

    /// Registers the listener with the poller under `key`.
    ///
    /// # Errors
    /// A system error.
    pub fn watch(&self, poller: &N::Poller, key: u64) -> io::Result<()> {
        poller.add(&self.socket, key, Interest::Read)
    }
}

/// A connection from a [`ByteAcceptor`] or a [`ByteClient`](crate::ByteClient). It never blocks.
#[derive(Debug)]
pub struct ByteConnection<N: Network = Kernel> {
    stream: Stream<N::Socket>,
    peer_address: Option<SocketAddrV4>,
}

impl<N: Network> ByteConnection<N> {
    pub(crate) fn new(stream: Stream<N::Socket>) -> ByteConnection<N> {
        ByteConnection { stream, peer_address: None }
    }

    /// The peer's address of an accepted connection; `None` for an outgoing one.
    #[must_use]
    pub const fn peer_address(&self) -> Option<SocketAddrV4> {
        self.peer_address
    }

    /// Reads once; `None` if no bytes are available.
    ///
    /// # Errors
    /// The connection has ended: closed, reset, or a TLS error.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.stream.allow_reading(READ_MAX);
        match self.stream.read(buffer) {
            Ok(0) if !buffer.is_empty() => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => Ok(Some(count)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes as much of `bytes` as the connection accepts now, and returns the number of bytes.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.stream.write(bytes) {
            Ok(count) => Ok(count),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Passes buffered TLS bytes to the kernel; true if none are left.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn flush(&mut self) -> io::Result<bool> {
        match self.stream.flush() {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Closes the connection: the peer reads the bytes that the kernel holds, then the end of the stream.
    pub fn close(&mut self) {
        self.stream.shut_down();
    }

    /// Registers the connection with the poller for reading, under `key`.
    ///
    /// # Errors
    /// A system error.
    pub fn watch(&self, poller: &N::Poller, key: u64) -> io::Result<()> {
        poller.add(self.stream.socket(), key, Interest::Read)
    }

    /// Bounds the unacknowledged bytes that the kernel buffers.
    ///
    /// # Errors
    /// A system error.
    pub fn limit_send_buffer(&self, bytes: usize) -> io::Result<()> {
        self.stream.socket().limit_send_buffer(bytes)
    }
}

impl ByteConnection {
    /// The socket, for waiting on it together with others.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.socket().as_fd()
    }
}
