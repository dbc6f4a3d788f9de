//! The transport of agents: the kernel's sockets, or a replacement with the same behaviour.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::Socket;

use crate::batch::RecvBatch;
use crate::endpoint::UdpEndpoint;
use crate::error::{NetError, SendSegmentsError};
use crate::message::{Received, SendStatus, receive_stream};
use crate::multicast::{MulticastReceiver, MulticastSender, send_each};
use crate::poller::{Interest, Poller, Ready};
use crate::sockets;

/// Maximum number of connections that wait to be accepted; the kernel does not answer further ones.
const BACKLOG: i32 = 1024;

/// A factory of sockets. An agent is generic over it, with the default [`Kernel`], so that the kernel's
/// sockets need no dynamic dispatch. A simulation implements the sockets with a simulated network, and uses
/// the same connections and buffers above them.
pub trait Network: Clone + fmt::Debug + Send + 'static {
    /// A listener, or one end of a connection.
    type Socket: StreamSocket;
    /// The poller, which reports the ready sockets.
    type Poller: SocketPoller<Self::Socket>;
    /// The sender to a multicast group.
    type Sender: DatagramSender;
    /// The receiver from a multicast group.
    type Receiver: DatagramReceiver;
    /// The endpoint that exchanges datagrams with any address.
    type Endpoint: DatagramEndpoint;

    /// Creates a socket that listens at `address`; port 0 selects a free port. Returns it with its address.
    ///
    /// # Errors
    /// As [`TcpAcceptor::bind`](crate::TcpAcceptor::bind).
    fn listen(&self, address: SocketAddrV4) -> Result<(Self::Socket, SocketAddrV4), NetError>;

    /// Begins to connect a socket to `address`; call [`StreamSocket::poll_connected`] until it is connected.
    ///
    /// # Errors
    /// [`NetError::Connect`] when the connection fails immediately.
    fn start_connecting(&self, address: SocketAddrV4) -> Result<Self::Socket, NetError>;

    /// Creates a poller, as [`Poller::new`].
    fn poller(&self, events_max: usize) -> io::Result<Self::Poller>;

    /// Creates a sender, as [`MulticastSender::new`].
    fn sender(&self, group: SocketAddrV4, interface: Ipv4Addr) -> Result<Self::Sender, NetError>;

    /// Creates a receiver, as [`MulticastReceiver::join`].
    fn receiver(&self, group: SocketAddrV4, interface: Ipv4Addr) -> Result<Self::Receiver, NetError>;

    /// Creates an endpoint, as [`UdpEndpoint::bind`].
    fn endpoint(&self, address: SocketAddrV4) -> Result<Self::Endpoint, NetError>;
}

/// A non-blocking, unbuffered stream socket. Dropping it closes it.
pub trait StreamSocket: fmt::Debug + Send + Sized {
    /// Accepts the next waiting connection. Returns it and its peer's address, if that is IPv4.
    ///
    /// # Errors
    /// The system's error; [`WouldBlock`](io::ErrorKind::WouldBlock) when no connection waits.
    fn accept(&self) -> io::Result<(Self, Option<SocketAddrV4>)>;

    /// Returns whether the connection is established.
    ///
    /// # Errors
    /// The reason why the connection failed.
    fn poll_connected(&self) -> io::Result<bool>;

    /// Reads once. Returns the number of bytes, 0 at the end of the stream, and the kernel's receive time of
    /// the last byte, in nanoseconds since the Unix epoch. `None` when there is no data.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<u64>)>>;

    /// Sends bytes. Returns the number of bytes accepted.
    ///
    /// # Errors
    /// The system's error; [`WouldBlock`](io::ErrorKind::WouldBlock) when none were accepted.
    fn send(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Shuts down one direction of the connection, or both.
    fn shutdown(&self, how: Shutdown) -> io::Result<()>;

    /// Limits the number of bytes accepted for sending that the other end has not received yet. Does nothing
    /// on a network with a fixed limit.
    fn limit_send_buffer(&self, _bytes: usize) -> io::Result<()> {
        Ok(())
    }

    /// Descriptor that is readable when there is data; `None` in a simulation.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Reports the ready sockets. Every poll reports a socket again until it is read.
pub trait SocketPoller<S>: Send {
    /// Adds a socket, whose readiness for `interest` is reported with `key`. Dropping the socket removes it.
    fn add(&self, socket: &S, key: u64, interest: Interest) -> io::Result<()>;

    /// Removes a socket.
    ///
    /// # Errors
    /// The system's error, when the socket was not added.
    fn remove(&self, socket: &S) -> io::Result<()>;

    /// Returns the sockets that are ready now.
    fn poll(&mut self) -> io::Result<impl Iterator<Item = Ready>>;

    /// Descriptor that is readable when one of the sockets is ready; `None` in a simulation.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Sends datagrams to one group.
pub trait DatagramSender: Send {
    /// As [`MulticastSender::send`].
    fn send(&mut self, datagram: &[u8]) -> io::Result<SendStatus>;

    /// As [`MulticastSender::send_segments`].
    fn send_segments(&mut self, datagrams: &[u8], segment_len: usize) -> Result<usize, SendSegmentsError> {
        send_each(datagrams, segment_len, |datagram| self.send(datagram))
    }

    /// As [`MulticastSender::can_segment`].
    fn can_segment(&self) -> bool {
        true
    }
}

/// Receives the datagrams of one group.
pub trait DatagramReceiver: Send {
    /// As [`MulticastReceiver::recv`].
    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>>;

    /// As [`MulticastReceiver::recv_batch`].
    fn recv_batch(&mut self, batch: &mut RecvBatch) -> io::Result<usize> {
        batch.fill_with(|buffer| self.recv(buffer))
    }

    /// Number of datagrams dropped because they were not read in time.
    fn drop_count(&self) -> u32;

    /// Descriptor that is readable when there is a datagram; `None` in a simulation.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Exchanges datagrams with any address.
pub trait DatagramEndpoint: Send {
    /// As [`UdpEndpoint::send_to`].
    fn send_to(&mut self, datagram: &[u8], to: SocketAddrV4) -> io::Result<SendStatus>;

    /// As [`UdpEndpoint::recv_from`].
    fn recv_from(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>>;

    /// The bound address, with its port.
    fn local_address(&self) -> SocketAddrV4;

    /// Descriptor that is readable when there is a datagram; `None` in a simulation.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// The [`Network`] that consists of the kernel's sockets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernel;

impl Network for Kernel {
    type Socket = Socket;
    type Poller = Poller;
    type Sender = MulticastSender;
    type Receiver = MulticastReceiver;
    type Endpoint = UdpEndpoint;

    fn listen(&self, address: SocketAddrV4) -> Result<(Socket, SocketAddrV4), NetError> {
        let socket = sockets::tcp()?;
        // Lets a restarted venue reuse its port despite lingering connections; two listeners cannot share it.
        socket.set_reuse_address(true).map_err(NetError::socket("address reuse"))?;
        socket.set_nonblocking(true).map_err(NetError::socket("non-blocking"))?;
        sockets::bind(&socket, address)?;
        // Connections inherit the option, so that data that arrives before `accept` is stamped too.
        sockets::stamp_receives(&socket)?;
        socket.listen(BACKLOG).map_err(|source| sockets::bind_error(address, source))?;
        let local_address = sockets::local_address(&socket)?;
        Ok((socket, local_address))
    }

    fn start_connecting(&self, address: SocketAddrV4) -> Result<Socket, NetError> {
        let socket = sockets::tcp()?;
        sockets::stamp_receives(&socket)?;
        sockets::set_up_stream(&socket).map_err(NetError::socket("non-blocking"))?;
        match socket.connect(&address.into()) {
            Ok(()) => {}
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EINTR)) => {}
            Err(source) => return Err(NetError::Connect { address, source }),
        }
        Ok(socket)
    }

    fn poller(&self, events_max: usize) -> io::Result<Poller> {
        Poller::new(events_max)
    }

    fn sender(&self, group: SocketAddrV4, interface: Ipv4Addr) -> Result<MulticastSender, NetError> {
        MulticastSender::new(group, interface)
    }

    fn receiver(&self, group: SocketAddrV4, interface: Ipv4Addr) -> Result<MulticastReceiver, NetError> {
        MulticastReceiver::join(group, interface)
    }

    fn endpoint(&self, address: SocketAddrV4) -> Result<UdpEndpoint, NetError> {
        UdpEndpoint::bind(address)
    }
}

impl StreamSocket for Socket {
    fn accept(&self) -> io::Result<(Socket, Option<SocketAddrV4>)> {
        let (socket, peer) = Socket::accept(self)?;
        let peer = peer.as_socket_ipv4();
        if peer.is_some() {
            sockets::set_up_stream(&socket)?;
        }
        Ok((socket, peer))
    }

    fn poll_connected(&self) -> io::Result<bool> {
        // Check the error first: if the connection fails between the two checks, the next call reports it.
        if let Some(error) = self.take_error()? {
            return Err(error);
        }
        match self.peer_addr() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<u64>)>> {
        let received = receive_stream(self.as_fd(), buffer)?;
        Ok(received.map(|(count, control)| (count, control.kernel_ns)))
    }

    #[inline]
    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.send_with_flags(bytes, libc::MSG_NOSIGNAL)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        Socket::shutdown(self, how)
    }

    fn limit_send_buffer(&self, bytes: usize) -> io::Result<()> {
        self.set_send_buffer_size(bytes)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

impl SocketPoller<Socket> for Poller {
    fn add(&self, socket: &Socket, key: u64, interest: Interest) -> io::Result<()> {
        Poller::add(self, socket, key, interest)
    }

    fn remove(&self, socket: &Socket) -> io::Result<()> {
        Poller::remove(self, socket)
    }

    #[inline]
    fn poll(&mut self) -> io::Result<impl Iterator<Item = Ready>> {
        Poller::poll(self)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

impl DatagramSender for MulticastSender {
    #[inline]
    fn send(&mut self, datagram: &[u8]) -> io::Result<SendStatus> {
        MulticastSender::send(self, datagram)
    }

    #[inline]
    fn send_segments(&mut self, datagrams: &[u8], segment_len: usize) -> Result<usize, SendSegmentsError> {
        MulticastSender::send_segments(self, datagrams, segment_len)
    }

    fn can_segment(&self) -> bool {
        MulticastSender::can_segment(self)
    }
}

impl DatagramReceiver for MulticastReceiver {
    #[inline]
    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        MulticastReceiver::recv(self, buffer)
    }

    #[inline]
    fn recv_batch(&mut self, batch: &mut RecvBatch) -> io::Result<usize> {
        MulticastReceiver::recv_batch(self, batch)
    }

    fn drop_count(&self) -> u32 {
        self.kernel_drop_count()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

impl DatagramEndpoint for UdpEndpoint {
    #[inline]
    fn send_to(&mut self, datagram: &[u8], to: SocketAddrV4) -> io::Result<SendStatus> {
        UdpEndpoint::send_to(self, datagram, to)
    }

    #[inline]
    fn recv_from(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        UdpEndpoint::recv_from(self, buffer)
    }

    fn local_address(&self) -> SocketAddrV4 {
        UdpEndpoint::local_address(self)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}
