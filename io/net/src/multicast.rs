//! UDP multicast: one sender, many receivers, nothing acknowledged.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use socket2::Socket;

use crate::batch::RecvBatch;
use crate::endpoint::UdpEndpoint;
use crate::error::NetError;
use crate::message::{Received, SendStatus, receive_datagram, send_segmented, would_block_if_full};
use crate::sockets::{self, BufferGrant};

/// Receive buffer asked for unless stated otherwise: a burst of some milliseconds at a million datagrams
/// a second.
const RECEIVE_BUFFER_DEFAULT: usize = 8 << 20;
/// Send buffer asked for: segmented sends of 64 KiB need several of them.
const SEND_BUFFER: usize = 2 << 20;
/// Datagrams of one segmented send; the limit of older kernels.
const SEGMENTS_MAX: usize = 64;
/// Bytes of one segmented send: the longest UDP payload.
const SEGMENTED_LEN_MAX: usize = 65_507;

/// Sends datagrams to one group.
#[derive(Debug)]
pub struct MulticastSender {
    socket: Socket,
    group: SocketAddrV4,
    send_buffer: BufferGrant,
    can_segment: bool,
    would_block_count: u64,
}

impl MulticastSender {
    /// A sender to `group` through the interface with the address `interface`.
    ///
    /// Receivers on this machine get the datagrams too. Through the loopback interface nothing leaves the
    /// machine (time to live 0); through others nothing leaves the local network (time to live 1).
    ///
    /// # Errors
    /// [`NetError`] when `group` is no multicast group or the interface is not one of this machine.
    pub fn new(group: SocketAddrV4, interface: Ipv4Addr) -> Result<MulticastSender, NetError> {
        check_group(group)?;
        let socket = sockets::udp()?;
        socket.set_multicast_if_v4(&interface).map_err(|source| NetError::JoinGroup {
            group,
            interface,
            source,
        })?;
        let ttl = u32::from(!interface.is_loopback());
        socket.set_multicast_ttl_v4(ttl).map_err(NetError::socket("multicast time to live"))?;
        socket.set_multicast_loop_v4(true).map_err(NetError::socket("multicast loop"))?;
        let send_buffer = sockets::size_send_buffer(&socket, SEND_BUFFER)?;
        // Connected, so that the kernel keeps the route instead of looking it up for each datagram.
        socket.connect(&group.into()).map_err(|source| NetError::Connect { address: group, source })?;
        Ok(MulticastSender { socket, group, send_buffer, can_segment: true, would_block_count: 0 })
    }

    /// Sends one datagram.
    ///
    /// # Errors
    /// The system's, such as a datagram longer than 65,507 bytes; a full queue is a result.
    #[inline]
    pub fn send(&mut self, datagram: &[u8]) -> io::Result<SendStatus> {
        let status = match self.socket.send(datagram) {
            Ok(_) => SendStatus::Sent,
            Err(error) => would_block_if_full(error)?,
        };
        self.would_block_count += u64::from(status == SendStatus::WouldBlock);
        Ok(status)
    }

    /// Sends `buffer` as datagrams of `segment_len` bytes, the last one shorter where it does not divide, and
    /// returns how many were sent. Fewer than all only when a queue was full; the rest may be tried again.
    ///
    /// Up to 64 datagrams cost about one system call and one way through the stack (UDP_SEGMENT); where the
    /// kernel refuses that, one each.
    ///
    /// # Errors
    /// The system's, such as segments too long for a datagram.
    ///
    /// # Panics
    /// When `segment_len` is 0.
    pub fn send_segments(&mut self, buffer: &[u8], segment_len: u16) -> io::Result<usize> {
        let segment_len_usize = usize::from(segment_len);
        let per_call = (SEGMENTED_LEN_MAX / segment_len_usize).clamp(1, SEGMENTS_MAX);
        let mut sent_count = 0;
        for run in buffer.chunks(per_call * segment_len_usize) {
            let run_count = run.len().div_ceil(segment_len_usize);
            let sent = if self.can_segment && run_count > 1 {
                self.send_run(run, segment_len)?
            } else {
                self.send_one_by_one(run, segment_len)?
            };
            sent_count += sent;
            if sent < run_count {
                break;
            }
        }
        Ok(sent_count)
    }

    fn send_run(&mut self, run: &[u8], segment_len: u16) -> io::Result<usize> {
        match send_segmented(self.socket.as_fd(), run, segment_len) {
            Ok(SendStatus::Sent) => Ok(run.len().div_ceil(usize::from(segment_len))),
            Ok(SendStatus::WouldBlock) => {
                self.would_block_count += 1;
                Ok(0)
            }
            Err(error) if is_segmentation_refused(&error) => {
                self.can_segment = false;
                self.send_one_by_one(run, segment_len)
            }
            Err(error) => Err(error),
        }
    }

    fn send_one_by_one(&mut self, run: &[u8], segment_len: u16) -> io::Result<usize> {
        for (index, segment) in run.chunks(usize::from(segment_len)).enumerate() {
            if self.send(segment)? == SendStatus::WouldBlock {
                return Ok(index);
            }
        }
        Ok(run.len().div_ceil(usize::from(segment_len)))
    }

    /// The group sent to.
    #[must_use]
    pub fn group(&self) -> SocketAddrV4 {
        self.group
    }

    /// The send buffer, for reports.
    #[must_use]
    pub fn send_buffer(&self) -> BufferGrant {
        self.send_buffer
    }

    /// Whether [`send_segments`](MulticastSender::send_segments) sends many datagrams by one call; false
    /// once the kernel has refused it.
    #[must_use]
    pub fn can_segment(&self) -> bool {
        self.can_segment
    }

    /// Sends that found a queue full.
    #[must_use]
    pub fn would_block_count(&self) -> u64 {
        self.would_block_count
    }
}

/// The kernel or the device does not do UDP segmentation, or not of this length.
fn is_segmentation_refused(error: &io::Error) -> bool {
    let refusals = [libc::EINVAL, libc::EIO, libc::EOPNOTSUPP, libc::ENOPROTOOPT, libc::EMSGSIZE];
    error.raw_os_error().is_some_and(|code| refusals.contains(&code))
}

/// Receives the datagrams of one group on one interface.
///
/// Several receivers on one machine, in one process or many, each get every datagram. Bound to the group's
/// address, so that another group on the same port is not delivered here.
#[derive(Debug)]
pub struct MulticastReceiver {
    socket: Socket,
    group: SocketAddrV4,
    receive_buffer: BufferGrant,
    kernel_drop_count: u32,
}

impl MulticastReceiver {
    /// Joins `group` on the interface with the address `interface`, with a receive buffer of 8 MiB where the
    /// system allows it.
    ///
    /// # Errors
    /// [`NetError`] when `group` is no multicast group or cannot be joined there.
    pub fn join(group: SocketAddrV4, interface: Ipv4Addr) -> Result<MulticastReceiver, NetError> {
        MulticastReceiver::join_with_buffer(group, interface, RECEIVE_BUFFER_DEFAULT)
    }

    /// As [`join`](MulticastReceiver::join), with a receive buffer of the given size in bytes where the system
    /// allows it; see [`receive_buffer`](MulticastReceiver::receive_buffer).
    ///
    /// # Errors
    /// As [`join`](MulticastReceiver::join).
    pub fn join_with_buffer(
        group: SocketAddrV4,
        interface: Ipv4Addr,
        receive_buffer: usize,
    ) -> Result<MulticastReceiver, NetError> {
        check_group(group)?;
        let socket = sockets::udp()?;
        socket.set_reuse_address(true).map_err(NetError::socket("address reuse"))?;
        sockets::stamp_receives(&socket)?;
        sockets::count_drops(&socket)?;
        let receive_buffer = sockets::size_receive_buffer(&socket, receive_buffer)?;
        // Only what this socket joined, not what others on the machine did.
        socket.set_multicast_all_v4(false).map_err(NetError::socket("multicast of own groups only"))?;
        sockets::bind(&socket, group)?;
        socket.join_multicast_v4(group.ip(), &interface).map_err(|source| NetError::JoinGroup {
            group,
            interface,
            source,
        })?;
        Ok(MulticastReceiver { socket, group, receive_buffer, kernel_drop_count: 0 })
    }

    /// Receives one datagram into `buffer`; nothing when none waits.
    ///
    /// # Errors
    /// The system's.
    #[inline]
    pub fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let Some((received, control)) = receive_datagram(self.socket.as_fd(), buffer)? else {
            return Ok(None);
        };
        self.kernel_drop_count = control.drop_count.unwrap_or(self.kernel_drop_count);
        Ok(Some(received))
    }

    /// Replaces the contents of `batch` by the datagrams that wait, as many as fit; returns how many.
    ///
    /// # Errors
    /// The system's.
    #[inline]
    pub fn recv_batch(&mut self, batch: &mut RecvBatch) -> io::Result<usize> {
        let (count, drop_count) = batch.fill(self.socket.as_fd())?;
        self.kernel_drop_count = drop_count.unwrap_or(self.kernel_drop_count);
        Ok(count)
    }

    /// The group joined.
    #[must_use]
    pub fn group(&self) -> SocketAddrV4 {
        self.group
    }

    /// The receive buffer as given; say so once when it [is short](BufferGrant::is_short).
    #[must_use]
    pub fn receive_buffer(&self) -> BufferGrant {
        self.receive_buffer
    }

    /// Datagrams that the kernel dropped because the receive buffer was full, as of the latest datagram
    /// received. Wraps at 2^32.
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

pub(crate) fn check_group(group: SocketAddrV4) -> Result<(), NetError> {
    if group.ip().is_multicast() { Ok(()) } else { Err(NetError::NotMulticast { group }) }
}

/// A group and port that nothing on this machine uses, for tests and demonstrations that run side by side.
///
/// The group is in 239.255.0.0/16, which stays local; it differs from call to call within a process, and the
/// port is one that the system found free.
///
/// # Errors
/// [`NetError`] when the system gives no port.
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

    /// The kernel refuses to segment what it does not checksum.
    fn forgo_checksums(socket: &Socket) {
        let on: libc::c_int = 1;
        // SAFETY: the value is an int that lives during the call, with its length.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_NO_CHECK,
                (&raw const on).cast(),
                size_of_val(&on) as libc::socklen_t,
            )
        };
        assert_eq!(result, 0);
    }

    #[test]
    fn where_the_kernel_refuses_to_segment_datagrams_go_one_by_one() {
        let group = free_multicast_group().unwrap();
        let mut receiver = MulticastReceiver::join(group, Ipv4Addr::LOCALHOST).unwrap();
        let mut sender = MulticastSender::new(group, Ipv4Addr::LOCALHOST).unwrap();
        forgo_checksums(&sender.socket);
        for _ in 0..2 {
            assert_eq!(sender.send_segments(&[1; 250], 100).unwrap(), 3);
            assert!(!sender.can_segment());
            let mut lens = [0; 3];
            for len in &mut lens {
                *len = loop {
                    if let Some(received) = receiver.recv(&mut [0; 200]).unwrap() {
                        break received.len;
                    }
                };
            }
            assert_eq!(lens, [100, 100, 50]);
        }
    }

    #[test]
    fn free_groups_are_local_and_differ() {
        let (first, second) = (free_multicast_group().unwrap(), free_multicast_group().unwrap());
        assert_ne!(first.ip(), second.ip());
        assert_eq!(first.ip().octets()[..2], [239, 255]);
        assert!(first.port() > 1_023);
    }
}
