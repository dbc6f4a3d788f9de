//! UDP multicast: one sender, many receivers, no acknowledgements.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use socket2::Socket;

use crate::batch::RecvBatch;
use crate::endpoint::UdpEndpoint;
use crate::error::NetError;
use crate::message::{Received, SendStatus, receive_datagram, would_block_if_full};
use crate::sockets;

/// Requested receive buffer in bytes, for a burst of some milliseconds at a million datagrams a second.
const RECEIVE_BUFFER: usize = 8 << 20;
/// Requested send buffer in bytes, for a similar burst.
const SEND_BUFFER: usize = 2 << 20;

/// Sends datagrams to one group.
#[derive(Debug)]
pub struct MulticastSender {
    socket: Socket,
    group: SocketAddrV4,
}

impl MulticastSender {
    /// Creates a sender to `group` through the interface with the address `interface`.
    ///
    /// Receivers on this machine get the datagrams too. Through the loopback interface they do not leave the
    /// machine (time to live 0); through others they do not leave the local network (time to live 1).
    ///
    /// # Errors
    /// [`NetError`] when `group` is not a multicast group or the interface is not one of this machine.
    pub fn new(group: SocketAddrV4, interface: Ipv4Addr) -> Result<MulticastSender, NetError> {
        check_group(group)?;
        let socket = sockets::udp()?;
        socket.set_multicast_if_v4(&interface).map_err(join_error(group, interface))?;
        let ttl = u32::from(!interface.is_loopback());
        socket.set_multicast_ttl_v4(ttl).map_err(NetError::socket("multicast time to live"))?;
        socket.set_multicast_loop_v4(true).map_err(NetError::socket("multicast loop"))?;
        sockets::size_send_buffer(&socket, SEND_BUFFER)?;
        // Connect the socket, so that the kernel caches the route instead of looking it up for each datagram.
        socket.connect(&group.into()).map_err(|source| NetError::Connect { address: group, source })?;
        Ok(MulticastSender { socket, group })
    }

    /// Sends one datagram.
    ///
    /// # Errors
    /// The system's error, e.g. for more than 65,507 bytes. A full send queue is no error but
    /// [`SendStatus::WouldBlock`].
    #[inline]
    pub fn send(&mut self, datagram: &[u8]) -> io::Result<SendStatus> {
        match self.socket.send(datagram) {
            Ok(_) => Ok(SendStatus::Sent),
            Err(error) => would_block_if_full(error),
        }
    }

    /// The destination group.
    #[must_use]
    pub fn group(&self) -> SocketAddrV4 {
        self.group
    }
}

/// Receives the datagrams of one group on one interface.
///
/// Several receivers on one machine, in one or several processes, each get every datagram. The socket is
/// bound to the group's address, so that datagrams of other groups on the same port are not delivered here.
#[derive(Debug)]
pub struct MulticastReceiver {
    socket: Socket,
    group: SocketAddrV4,
    receive_buffer: usize,
    kernel_drop_count: u32,
}

impl MulticastReceiver {
    /// Joins `group` on the interface with the address `interface`, with a receive buffer of 8 MiB if the
    /// system allows it.
    ///
    /// # Errors
    /// [`NetError`] when `group` is not a multicast group or cannot be joined there.
    pub fn join(group: SocketAddrV4, interface: Ipv4Addr) -> Result<MulticastReceiver, NetError> {
        check_group(group)?;
        let socket = sockets::udp()?;
        socket.set_reuse_address(true).map_err(NetError::socket("address reuse"))?;
        sockets::stamp_receives(&socket)?;
        sockets::count_drops(&socket)?;
        let receive_buffer = sockets::size_receive_buffer(&socket, RECEIVE_BUFFER)?;
        // Deliver only the groups that this socket joined, not those of other sockets on the machine.
        socket.set_multicast_all_v4(false).map_err(NetError::socket("multicast of own groups only"))?;
        sockets::bind(&socket, group)?;
        socket.join_multicast_v4(group.ip(), &interface).map_err(join_error(group, interface))?;
        Ok(MulticastReceiver { socket, group, receive_buffer, kernel_drop_count: 0 })
    }

    /// Receives one datagram into `buffer`; `None` when there is none.
    #[inline]
    pub fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let Some((received, control)) = receive_datagram(self.socket.as_fd(), buffer)? else {
            return Ok(None);
        };
        self.kernel_drop_count = control.drop_count.unwrap_or(self.kernel_drop_count);
        Ok(Some(received))
    }

    /// Replaces the contents of `batch` by the waiting datagrams, as many as fit; returns their number.
    #[inline]
    pub fn recv_batch(&mut self, batch: &mut RecvBatch) -> io::Result<usize> {
        let (count, drop_count) = batch.fill(self.socket.as_fd())?;
        self.kernel_drop_count = drop_count.unwrap_or(self.kernel_drop_count);
        Ok(count)
    }

    /// The joined group.
    #[must_use]
    pub fn group(&self) -> SocketAddrV4 {
        self.group
    }

    /// Size of the receive buffer in bytes, as granted by the system. The kernel limits data plus its
    /// bookkeeping to twice this size, so small datagrams fill the buffer early: on loopback each takes 768
    /// bytes or more.
    #[must_use]
    pub fn receive_buffer(&self) -> usize {
        self.receive_buffer
    }

    /// Number of datagrams that the kernel dropped because the receive buffer was full, as of the latest
    /// datagram received. Wraps at 2^32.
    #[must_use]
    pub fn kernel_drop_count(&self) -> u32 {
        self.kernel_drop_count
    }
}

impl AsFd for MulticastReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

pub(crate) fn join_error(group: SocketAddrV4, interface: Ipv4Addr) -> impl FnOnce(io::Error) -> NetError {
    move |source| NetError::JoinGroup { group, interface, source }
}

pub(crate) fn check_group(group: SocketAddrV4) -> Result<(), NetError> {
    if group.ip().is_multicast() { Ok(()) } else { Err(NetError::NotMulticast { group }) }
}

/// Returns a group and port that are unused on this machine, for concurrent tests and demonstrations.
///
/// The group is in 239.255.0.0/16, which is local, and differs from call to call within a process. The system
/// selects the free port.
///
/// # Errors
/// [`NetError`] when the system has no free port.
pub fn free_multicast_group() -> Result<SocketAddrV4, NetError> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let port = UdpEndpoint::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))?.local_address().port();
    // Odd multipliers spread processes and calls over the 65,536 groups.
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let [.., high, low] =
        process::id().wrapping_mul(40_503).wrapping_add(call.wrapping_mul(251)).to_be_bytes();
    Ok(SocketAddrV4::new(Ipv4Addr::new(239, 255, high, low), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_groups_are_local_and_differ() {
        let (first, second) = (free_multicast_group().unwrap(), free_multicast_group().unwrap());
        assert_ne!(first.ip(), second.ip());
        assert_eq!(first.ip().octets()[..2], [239, 255]);
        assert!(first.port() > 1_023);
    }
}
