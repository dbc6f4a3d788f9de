//! Bytes over TCP or TLS, for protocols that are neither HTTP nor WebSocket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd};

use tickpath_net::{Interest, Kernel, NetError, Network, SocketPoller, StreamSocket};

use crate::TlsServer;
use crate::stream::Stream;

/// Bytes that one call reads from the socket at most.
const READ_MAX: usize = 64 << 10;

/// Accepts connections that speak a protocol of bytes.
#[derive(Debug)]
pub struct ByteAcceptor<N: Network = Kernel> {
    socket: N::Socket,
    local_address: SocketAddrV4,
    tls: Option<TlsServer>,
}

impl<N: Network> ByteAcceptor<N> {
    /// Listens at `address`; port 0 takes a free one. With `tls` every connection has to speak it.
    ///
    /// # Errors
    /// [`NetError::AddressInUse`] when another socket listens there; [`NetError::Bind`] when it is no address of this
    /// machine.
    pub fn bind(
        network: &N,
        address: SocketAddrV4,
        tls: Option<TlsServer>,
    ) -> Result<ByteAcceptor<N>, NetError> {
        let (socket, local_address) = network.listen(address)?;
        Ok(ByteAcceptor { socket, local_address, tls })
    }

    /// The next waiting connection, if there is one.
    ///
    /// # Errors
    /// The system's, such as the limit of open files: the connection then still waits. One that was reset while it
    /// waited is skipped.
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

    /// The address listened at, with its port.
    #[must_use]
    pub fn local_address(&self) -> SocketAddrV4 {
        self.local_address
    }

    /// Has the poller watch for connections, under `key`.
    ///
    /// # Errors
    /// The system's.
    pub fn watch(&self, poller: &N::Poller, key: u64) -> io::Result<()> {
        poller.add(&self.socket, key, Interest::Read)
    }
}

/// A connection of a [`ByteAcceptor`], or that a [`ByteClient`](crate::ByteClient) made. It does not wait.
#[derive(Debug)]
pub struct ByteConnection<N: Network = Kernel> {
    stream: Stream<N::Socket>,
    peer_address: Option<SocketAddrV4>,
}

impl<N: Network> ByteConnection<N> {
    pub(crate) fn new(stream: Stream<N::Socket>) -> ByteConnection<N> {
        ByteConnection { stream, peer_address: None }
    }

    /// Where a connection that was accepted comes from; `None` for one that was made from here.
    #[must_use]
    pub const fn peer_address(&self) -> Option<SocketAddrV4> {
        self.peer_address
    }

    /// Reads once; `None` when nothing is there.
    ///
    /// # Errors
    /// The connection is over: closed, reset, or TLS was broken.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.stream.allow_reading(READ_MAX);
        match self.stream.read(buffer) {
            Ok(0) if !buffer.is_empty() => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => Ok(Some(count)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes as much of `bytes` as the connection takes now, and returns how much.
    ///
    /// # Errors
    /// The connection is over.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.stream.write(bytes) {
            Ok(count) => Ok(count),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Gives the kernel what TLS still holds; true when nothing is left.
    ///
    /// # Errors
    /// The connection is over.
    pub fn flush(&mut self) -> io::Result<bool> {
        match self.stream.flush() {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Ends the connection: the other end reads what the kernel has, and then the end.
    pub fn close(&mut self) {
        self.stream.shut_down();
    }

    /// Has the poller watch for what is received, under `key`.
    ///
    /// # Errors
    /// The system's.
    pub fn watch(&self, poller: &N::Poller, key: u64) -> io::Result<()> {
        poller.add(self.stream.socket(), key, Interest::Read)
    }

    /// Bounds the bytes that the kernel takes before the other end has received them.
    ///
    /// # Errors
    /// The system's.
    pub fn limit_send_buffer(&self, bytes: usize) -> io::Result<()> {
        self.stream.socket().limit_send_buffer(bytes)
    }
}

impl ByteConnection {
    /// The socket, to wait for together with others.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.socket().as_fd()
    }
}
