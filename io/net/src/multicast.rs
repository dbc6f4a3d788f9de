//! UDP multicast: one sender, many receivers, no acknowledgements.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use socket2::Socket;

use crate::batch::RecvBatch;
use crate::endpoint::UdpEndpoint;
use crate::error::{NetError, SendSegmentsError};
use crate::message::{Received, SendStatus, receive_datagram, send_segmented, would_block_if_full};
use crate::sockets;

/// Requested receive buffer in bytes, for a burst of some milliseconds at a million datagrams a second.
const RECEIVE_BUFFER: usize = 8 << 20;
/// Requested send buffer in bytes, for a similar burst.
const SEND_BUFFER: usize = 2 << 20;

/// Length of the longest UDP payload in bytes; all datagrams of one segmented send together are not longer.
pub(crate) const PAYLOAD_LEN_MAX: usize = 65_507;
/// Maximum number of datagrams of one segmented send: the kernel's `UDP_MAX_SEGMENTS`, which later kernels
/// raised to 128.
const SEGMENTS_MAX: usize = 64;

/// Sends datagrams to one group.
#[derive(Debug)]
pub struct MulticastSender {
    socket: Socket,
    group: SocketAddrV4,
    /// False if the kernel has no UDP segmentation, or has refused it for this group's route.
    can_segment: bool,
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
        let can_segment = sockets::can_segment(&socket);
        Ok(MulticastSender { socket, group, can_segment })
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

    /// Sends `datagrams`, which follow each other in the buffer: each has `segment_len` bytes, the last one
    /// possibly fewer. Returns the number of datagrams that the network stack accepted.
    ///
    /// One system call passes all of them to the kernel, which sends or delivers them one by one (UDP generic
    /// segmentation offload, GSO). More than 64 datagrams or 65,507 bytes are sent by one call for each
    /// datagram. If the kernel refuses to segment, this and all later calls do so too, and
    /// [`can_segment`](Self::can_segment) is then false.
    ///
    /// # Errors
    /// [`SendSegmentsError`] for the first datagram that failed in another way than by a full send queue.
    /// Those after it are not sent.
    ///
    /// # Panics
    /// When `segment_len` is 0.
    #[inline]
    pub fn send_segments(
        &mut self,
        datagrams: &[u8],
        segment_len: usize,
    ) -> Result<usize, SendSegmentsError> {
        let run_len_max = PAYLOAD_LEN_MAX.min(SEGMENTS_MAX * segment_len);
        let is_run = datagrams.len() > segment_len && datagrams.len() <= run_len_max;
        if self.can_segment && is_run {
            match send_segmented(self.socket.as_fd(), datagrams, segment_len as u16) {
                Ok(()) => return Ok(datagrams.len().div_ceil(segment_len)),
                Err(error) if is_segmentation_refused(&error) => self.can_segment = false,
                Err(error) => {
                    let result = would_block_if_full(error).map(|_| 0);
                    return result.map_err(|source| SendSegmentsError { sent: 0, source });
                }
            }
        }
        send_each(datagrams, segment_len, |datagram| self.send(datagram))
    }

    /// Returns false if the kernel has no UDP segmentation, or has refused it: then
    /// [`send_segments`](Self::send_segments) takes one system call per datagram.
    #[must_use]
    pub fn can_segment(&self) -> bool {
        self.can_segment
    }

    /// The destination group.
    #[must_use]
    pub fn group(&self) -> SocketAddrV4 {
        self.group
    }
}

/// Sends each of `datagrams` by a separate call; returns the number of those that the network stack accepted.
///
/// # Errors
/// As [`MulticastSender::send_segments`].
pub(crate) fn send_each(
    datagrams: &[u8],
    segment_len: usize,
    mut send: impl FnMut(&[u8]) -> io::Result<SendStatus>,
) -> Result<usize, SendSegmentsError> {
    let mut sent = 0;
    for datagram in datagrams.chunks(segment_len) {
        let status = send(datagram).map_err(|source| SendSegmentsError { sent, source })?;
        sent += usize::from(status == SendStatus::Sent);
    }
    Ok(sent)
}

/// Returns whether the kernel refused to segment: the device computes no checksums, or the segments exceed
/// the route's maximum packet length, so that IP fragments would be needed.
#[cold]
fn is_segmentation_refused(error: &io::Error) -> bool {
    let refusals = [libc::EIO, libc::EINVAL, libc::EMSGSIZE, libc::EOPNOTSUPP, libc::ENOPROTOOPT];
    error.raw_os_error().is_some_and(|code| refusals.contains(&code))
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
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn free_groups_are_local_and_differ() {
        let (first, second) = (free_multicast_group().unwrap(), free_multicast_group().unwrap());
        assert_ne!(first.ip(), second.ip());
        assert_eq!(first.ip().octets()[..2], [239, 255]);
        assert!(first.port() > 1_023);
    }

    #[test]
    fn a_refused_run_is_sent_datagram_by_datagram() {
        let group = free_multicast_group().unwrap();
        let mut receiver = MulticastReceiver::join(group, Ipv4Addr::LOCALHOST).unwrap();
        let mut sender = MulticastSender::new(group, Ipv4Addr::LOCALHOST).unwrap();
        // The kernel does not segment datagrams without checksums.
        let is_unchecked: libc::c_int = 1;
        // SAFETY: the value is an int that lives during the call, with its length.
        let result = unsafe {
            libc::setsockopt(
                sender.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_NO_CHECK,
                (&raw const is_unchecked).cast(),
                size_of_val(&is_unchecked) as libc::socklen_t,
            )
        };
        assert_eq!(result, 0);
        for _ in 0..2 {
            assert_eq!(sender.send_segments(&[1; 250], 100).unwrap(), 3);
            assert!(!sender.can_segment());
            let mut buffer = [0; 512];
            let mut lens = Vec::new();
            while let Some(received) = receiver.recv(&mut buffer).unwrap() {
                lens.push(received.len);
            }
            assert_eq!(lens, [100, 100, 50]);
        }
    }

    #[test]
    fn an_error_states_how_many_datagrams_were_sent() {
        let mut sender = MulticastSender::new(free_multicast_group().unwrap(), Ipv4Addr::LOCALHOST).unwrap();
        let bytes = vec![1; 2 * PAYLOAD_LEN_MAX + 2];
        let error = sender.send_segments(&bytes, PAYLOAD_LEN_MAX + 1).unwrap_err();
        assert_eq!((error.sent, error.source.raw_os_error()), (0, Some(libc::EMSGSIZE)));
        let mut calls = 0;
        let error = send_each(&[0; 50], 10, |_| {
            calls += 1;
            match calls {
                1 | 3 => Ok(SendStatus::Sent),
                2 => Ok(SendStatus::WouldBlock),
                _ => Err(io::Error::from_raw_os_error(libc::ENOMEM)),
            }
        })
        .unwrap_err();
        assert_eq!((error.sent, error.source.raw_os_error(), calls), (2, Some(libc::ENOMEM), 4));
    }
}
