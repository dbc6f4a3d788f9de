//! TCP: a non-blocking acceptor, and connections with bounded buffers.

use std::io;
use std::net::{Shutdown, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::byte_queue::ByteQueue;
use crate::error::NetError;
use crate::network::{Kernel, Network, SocketPoller, StreamSocket};
use crate::poller::Interest;
use crate::sockets;

/// Sizes of the buffers of a connection, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSizes {
    /// Capacity for received bytes that are not yet consumed: at least the longest message of the protocol.
    pub receive: usize,
    /// Capacity for bytes that the kernel has not accepted yet: at least the longest message of the protocol.
    pub pending: usize,
}

impl BufferSizes {
    /// 64 KiB for received bytes, 256 KiB for pending ones.
    pub const DEFAULT: BufferSizes = BufferSizes { receive: 64 << 10, pending: 256 << 10 };
}

impl Default for BufferSizes {
    /// [`BufferSizes::DEFAULT`].
    fn default() -> BufferSizes {
        BufferSizes::DEFAULT
    }
}

/// Accepts connections.
#[derive(Debug)]
pub struct TcpAcceptor<N: Network = Kernel> {
    network: N,
    socket: N::Socket,
    local_address: SocketAddrV4,
    buffers: BufferSizes,
    /// Buffers for future connections.
    spare: Vec<Buffers>,
}

impl TcpAcceptor {
    /// Listens at `address`; port 0 selects a free port. Connections get buffers of the given sizes.
    ///
    /// # Errors
    /// [`NetError::AddressInUse`] when another socket listens there; [`NetError::Bind`] when the address is
    /// not one of this machine.
    pub fn bind(address: SocketAddrV4, buffers: BufferSizes) -> Result<TcpAcceptor, NetError> {
        TcpAcceptor::bind_on(Kernel, address, buffers)
    }
}

impl<N: Network> TcpAcceptor<N> {
    /// As [`bind`](TcpAcceptor::bind), on any network.
    pub fn bind_on(
        network: N,
        address: SocketAddrV4,
        buffers: BufferSizes,
    ) -> Result<TcpAcceptor<N>, NetError> {
        let (socket, local_address) = network.listen(address)?;
        Ok(TcpAcceptor { network, socket, local_address, buffers, spare: Vec::new() })
    }

    /// Adds the listener to the poller, under `key`.
    pub fn watch(&self, poller: &N::Poller, key: u64) -> io::Result<()> {
        poller.add(&self.socket, key, Interest::Read)
    }

    /// Removes the listener from the poller.
    ///
    /// # Errors
    /// The system's error: the listener was not watched.
    pub fn unwatch(&self, poller: &N::Poller) -> io::Result<()> {
        poller.remove(&self.socket)
    }

    /// Descriptor that is readable when a connection waits; `None` in a simulation.
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.socket.descriptor()
    }

    /// Allocates buffers for `connections` more connections, so that [`accept`](TcpAcceptor::accept) does not
    /// allocate until all of them are in use.
    pub fn reserve(&mut self, connections: usize) {
        self.spare.extend(std::iter::repeat_with(|| Buffers::new(self.buffers)).take(connections));
    }

    /// Closes a connection and keeps its buffers for reuse.
    pub fn recycle(&mut self, connection: TcpConnection<N>) {
        let TcpConnection { socket, buffers, .. } = connection;
        drop(socket);
        self.spare.push(buffers);
    }

    /// The next waiting connection, if there is one. Allocates its buffers if none are
    /// [reserved](TcpAcceptor::reserve).
    ///
    /// # Errors
    /// The system's error, such as the limit of open files: the connection then stays in the backlog.
    /// Connections that were reset while waiting are skipped.
    pub fn accept(&mut self) -> io::Result<Option<TcpConnection<N>>> {
        use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
        match self.socket.accept() {
            Ok((socket, peer)) => {
                let Some(peer_address) = peer else { return Ok(None) };
                let mut buffers = self.spare.pop().unwrap_or_else(|| Buffers::new(self.buffers));
                buffers.clear();
                let network = self.network.clone();
                Ok(Some(TcpConnection { network, socket, peer_address, buffers, is_closed: false }))
            }
            Err(error) if matches!(error.kind(), WouldBlock | ConnectionAborted | Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The listening address, with the selected port.
    #[must_use]
    pub fn local_address(&self) -> SocketAddrV4 {
        self.local_address
    }
}

/// The result of a [`fill`](TcpConnection::fill).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Fill {
    /// New bytes follow those [received](TcpConnection::received) before.
    Bytes {
        /// Number of new bytes.
        count: usize,
        /// Time at which the last segment read entered the kernel's network stack, by `CLOCK_REALTIME` in
        /// nanoseconds since the Unix epoch. If one read takes several segments, the earlier ones arrived
        /// earlier. `None` for segments that arrived before the kernel began to stamp, a moment after the
        /// first socket of the machine requests it.
        kernel_ns: Option<u64>,
    },
    /// No new data.
    Empty,
    /// The receive buffer is full: consume first. Nothing was read.
    Full,
    /// The other end closed or reset the connection, and sending is impossible too. Bytes received before can
    /// still be consumed.
    Closed,
}

/// The result of sending bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SendOutcome {
    /// The kernel has accepted all bytes.
    Sent,
    /// Some bytes are pending: call [`flush_pending`](TcpConnection::flush_pending) until they are sent.
    Pending,
    /// The pending buffer is too full; no bytes were accepted. Wait, or close the connection.
    Backpressured,
    /// The other end closed or reset the connection; the bytes are lost.
    Closed,
}

/// A non-blocking TCP connection with fixed buffers.
///
/// Only TCP keepalive detects that the other machine disappeared, after 90 s: protocols have heartbeats to
/// detect this earlier.
#[derive(Debug)]
pub struct TcpConnection<N: Network = Kernel> {
    network: N,
    socket: N::Socket,
    peer_address: SocketAddrV4,
    buffers: Buffers,
    is_closed: bool,
}

/// Buffers of a connection, which successive connections reuse.
#[derive(Debug)]
struct Buffers {
    received: ByteQueue,
    pending: ByteQueue,
}

impl Buffers {
    fn new(sizes: BufferSizes) -> Buffers {
        Buffers { received: ByteQueue::new(sizes.receive), pending: ByteQueue::new(sizes.pending) }
    }

    fn clear(&mut self) {
        self.received.clear();
        self.pending.clear();
    }
}

impl TcpConnection {
    /// Connects to `address`, waiting up to `timeout`; later calls never wait.
    ///
    /// # Errors
    /// [`NetError::Connect`] when there is no answer in time.
    pub fn connect(
        address: SocketAddrV4,
        timeout: Duration,
        buffers: BufferSizes,
    ) -> Result<TcpConnection, NetError> {
        let socket = sockets::tcp()?;
        let failed = |source| NetError::Connect { address, source };
        sockets::stamp_receives(&socket)?;
        socket.connect_timeout(&address.into(), timeout).map_err(failed)?;
        sockets::set_up_stream(&socket).map_err(failed)?;
        let buffers = Buffers::new(buffers);
        Ok(TcpConnection { network: Kernel, socket, peer_address: address, buffers, is_closed: false })
    }
}

impl<N: Network> TcpConnection<N> {
    /// Begins to connect on any network. Continue with [`poll_connected`](TcpConnection::poll_connected).
    ///
    /// # Errors
    /// As [`start_connecting`](TcpConnection::start_connecting).
    pub fn begin_on(
        network: N,
        address: SocketAddrV4,
        buffers: BufferSizes,
    ) -> Result<TcpConnection<N>, NetError> {
        let socket = network.start_connecting(address)?;
        let buffers = Buffers::new(buffers);
        Ok(TcpConnection { network, socket, peer_address: address, buffers, is_closed: false })
    }

    /// Adds the connection to the poller, for received data, under `key`.
    pub fn watch(&self, poller: &N::Poller, key: u64) -> io::Result<()> {
        poller.add(&self.socket, key, Interest::Read)
    }

    /// Removes the connection from the poller.
    ///
    /// # Errors
    /// The system's error: the connection was not watched.
    pub fn unwatch(&self, poller: &N::Poller) -> io::Result<()> {
        poller.remove(&self.socket)
    }

    /// Descriptor that is readable when there is received data; `None` in a simulation.
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.socket.descriptor()
    }

    /// Limits the number of bytes that the kernel holds until the other end has received them. By default,
    /// megabytes can accumulate while a client does not read.
    pub fn limit_send_buffer(&self, bytes: usize) -> io::Result<()> {
        self.socket.limit_send_buffer(bytes)
    }

    /// Abandons this connection and begins another one with its buffers, which are cleared. Neither waits nor
    /// allocates. Call [`poll_connected`](TcpConnection::poll_connected) until the connection is established,
    /// and give up when that takes too long.
    ///
    /// # Errors
    /// [`NetError::Socket`], and [`NetError::Connect`] when the connection fails immediately.
    pub fn start_connecting(&mut self, address: SocketAddrV4) -> Result<(), NetError> {
        self.is_closed = true;
        self.buffers.clear();
        let socket = self.network.start_connecting(address)?;
        (self.socket, self.peer_address) = (socket, address);
        self.is_closed = false;
        Ok(())
    }

    /// True when the connection that was [begun](TcpConnection::start_connecting) is established. Before that
    /// nothing can be sent or received.
    ///
    /// # Errors
    /// [`NetError::Connect`] when the attempt has failed.
    pub fn poll_connected(&mut self) -> Result<bool, NetError> {
        self.socket.poll_connected().map_err(|source| {
            self.is_closed = true;
            NetError::Connect { address: self.peer_address, source }
        })
    }

    /// Ends the sending side: the other end reads the bytes that the kernel accepted, then the end of the
    /// stream. Pending bytes are lost. Receiving continues.
    pub fn end_sending(&mut self) {
        self.buffers.pending.clear();
        // Ignore an error: the connection is then already closed.
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Closes the connection in both directions. Pending bytes are lost; received bytes remain readable.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.buffers.pending.clear();
        // Ignore an error: the connection is then already closed.
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Reads once from the socket into the receive buffer.
    ///
    /// # Errors
    /// The system's error. A connection that the other end closed or reset is no error but [`Fill::Closed`].
    #[inline]
    pub fn fill(&mut self) -> io::Result<Fill> {
        if self.is_closed {
            return Ok(Fill::Closed);
        }
        let free_space = self.buffers.received.free_space();
        if free_space.is_empty() {
            return Ok(Fill::Full);
        }
        match self.socket.receive(free_space) {
            Ok(None) => Ok(Fill::Empty),
            Ok(Some((0, _))) => {
                self.is_closed = true;
                Ok(Fill::Closed)
            }
            Ok(Some((count, kernel_ns))) => {
                self.buffers.received.commit(count);
                Ok(Fill::Bytes { count, kernel_ns })
            }
            Err(error) if is_lost(&error) => {
                self.is_closed = true;
                Ok(Fill::Closed)
            }
            Err(error) => Err(error),
        }
    }

    /// Bytes received and not yet consumed, oldest first.
    #[inline]
    #[must_use]
    pub fn received(&self) -> &[u8] {
        self.buffers.received.bytes()
    }

    /// Removes the oldest `count` bytes received.
    ///
    /// # Panics
    /// When there are fewer.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        self.buffers.received.consume(count);
    }

    /// Maximum number of received and unconsumed bytes; a longer message is never complete.
    #[inline]
    #[must_use]
    pub fn receive_capacity(&self) -> usize {
        self.buffers.received.capacity()
    }

    /// Sends all of `bytes`, after those that are pending, or none of them.
    ///
    /// Passes bytes to the kernel at once and keeps the rest pending. If the pending buffer has no space for
    /// all of `bytes`, accepts none, so that no message is cut: the buffer must hold the longest message.
    ///
    /// # Errors
    /// The system's error. A lost connection and a full buffer are outcomes, not errors.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<SendOutcome> {
        if !self.buffers.pending.is_empty() {
            match self.flush_pending()? {
                SendOutcome::Sent => {}
                SendOutcome::Pending => return Ok(self.queue(bytes)),
                outcome => return Ok(outcome),
            }
        }
        if bytes.len() > self.buffers.pending.capacity() {
            return Ok(SendOutcome::Backpressured);
        }
        if self.is_closed {
            return Ok(SendOutcome::Closed);
        }
        match write(&self.socket, bytes)? {
            None => Ok(self.mark_closed()),
            Some(count) if count == bytes.len() => Ok(SendOutcome::Sent),
            Some(count) => Ok(self.queue(&bytes[count..])),
        }
    }

    /// Keeps all of `bytes` pending without a system call, so that one
    /// [`flush_pending`](TcpConnection::flush_pending) sends several messages.
    #[inline]
    pub fn queue(&mut self, bytes: &[u8]) -> SendOutcome {
        if self.is_closed {
            SendOutcome::Closed
        } else if self.buffers.pending.push(bytes) {
            SendOutcome::Pending
        } else {
            SendOutcome::Backpressured
        }
    }

    /// Passes pending bytes to the kernel, as many as it accepts in one call. [`SendOutcome::Sent`] when none
    /// are left.
    ///
    /// # Errors
    /// The system's error. A lost connection is an outcome, not an error.
    #[inline]
    pub fn flush_pending(&mut self) -> io::Result<SendOutcome> {
        if self.is_closed {
            return Ok(SendOutcome::Closed);
        }
        if self.buffers.pending.is_empty() {
            return Ok(SendOutcome::Sent);
        }
        match write(&self.socket, self.buffers.pending.bytes())? {
            None => Ok(self.mark_closed()),
            Some(count) => {
                self.buffers.pending.consume(count);
                Ok(if self.buffers.pending.is_empty() { SendOutcome::Sent } else { SendOutcome::Pending })
            }
        }
    }

    #[cold]
    fn mark_closed(&mut self) -> SendOutcome {
        self.is_closed = true;
        SendOutcome::Closed
    }

    /// Number of pending bytes, which the kernel has not accepted yet.
    #[inline]
    #[must_use]
    pub fn pending_len(&self) -> usize {
        self.buffers.pending.len()
    }

    /// True once this end closed the connection, or detected that the other end closed or reset it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Address of the other end.
    #[must_use]
    pub fn peer_address(&self) -> SocketAddrV4 {
        self.peer_address
    }
}

impl AsFd for TcpConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the number of bytes that the kernel accepted; `None` when the connection is lost.
fn write(socket: &impl StreamSocket, bytes: &[u8]) -> io::Result<Option<usize>> {
    use io::ErrorKind::{Interrupted, WouldBlock};
    match socket.send(bytes) {
        Ok(count) => Ok(Some(count)),
        Err(error) if matches!(error.kind(), WouldBlock | Interrupted) => Ok(Some(0)),
        Err(error) if is_lost(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether the error means that the connection is lost, which is a result and not an error.
fn is_lost(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, HostUnreachable, TimedOut};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | HostUnreachable | TimedOut)
}
