//! Receives data and control messages with `recvmsg` into fixed arrays, and parses the control messages.

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Metadata of a received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes written to the buffer.
    pub len: usize,
    /// Time at which the datagram entered the kernel's network stack, by `CLOCK_REALTIME` in nanoseconds
    /// since the Unix epoch. The kernel begins to stamp a moment after the first socket of the machine
    /// requests it; for a datagram that arrived before, this is the time of reading.
    pub kernel_ns: Option<u64>,
    /// Address of the sender.
    pub from: SocketAddrV4,
    /// True when the datagram was longer than the buffer; the rest is lost.
    pub is_truncated: bool,
}

/// The result of sending a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SendStatus {
    /// Accepted by the network stack.
    Sent,
    /// Not sent: the socket's or the device's queue is full. Sending again later may succeed.
    WouldBlock,
}

/// Length of the buffer for one receive's control messages: time stamp (32 bytes) and drop count (24 bytes).
pub(crate) const CONTROL_LEN: usize = 64;
/// Length of the header of a control message.
const CONTROL_HEADER_LEN: usize = size_of::<libc::cmsghdr>();

const _: () = assert!(CONTROL_HEADER_LEN == 16 && size_of::<libc::timespec>() == 16);

/// A buffer for control messages, aligned as the kernel requires.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct ControlBuffer([u8; CONTROL_LEN]);

impl ControlBuffer {
    pub(crate) const EMPTY: ControlBuffer = ControlBuffer([0; CONTROL_LEN]);
}

/// Information in the control messages of one receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Control {
    /// Receive time, nanoseconds since the Unix epoch.
    pub(crate) kernel_ns: Option<u64>,
    /// Datagrams dropped on the socket so far; `None` while there were none.
    pub(crate) drop_count: Option<u32>,
}

impl Control {
    /// Parses the control buffer that the kernel wrote for a received `header`.
    #[inline]
    #[allow(clippy::unnecessary_cast)] // the length is a `socklen_t` with musl
    pub(crate) fn of(header: &libc::msghdr, buffer: &ControlBuffer) -> Control {
        Control::parse(&buffer.0[..(header.msg_controllen as usize).min(CONTROL_LEN)])
    }

    /// Parses control messages in the kernel's layout: length, level, type, data; each aligned to a word.
    fn parse(mut bytes: &[u8]) -> Control {
        let mut control = Control::default();
        while let Some((len, level, kind)) = control_header(bytes) {
            let data = bytes.get(CONTROL_HEADER_LEN..len).unwrap_or_default();
            match (level, kind) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => control.kernel_ns = timespec_ns(data),
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    control.drop_count = data.first_chunk().map(|count| u32::from_ne_bytes(*count));
                }
                _ => {}
            }
            bytes = bytes.get(len.next_multiple_of(size_of::<usize>())..).unwrap_or_default();
        }
        control
    }
}

/// Returns the length (header included), level and type of the first control message.
fn control_header(bytes: &[u8]) -> Option<(usize, i32, i32)> {
    let len = usize::from_ne_bytes(*bytes.get(..CONTROL_HEADER_LEN)?.first_chunk()?);
    let level = i32::from_ne_bytes(*bytes.get(size_of::<usize>()..)?.first_chunk()?);
    let kind = i32::from_ne_bytes(*bytes.get(size_of::<usize>() + 4..)?.first_chunk()?);
    (CONTROL_HEADER_LEN..=bytes.len()).contains(&len).then_some((len, level, kind))
}

fn timespec_ns(data: &[u8]) -> Option<u64> {
    let seconds = i64::from_ne_bytes(*data.first_chunk()?);
    let nanos = i64::from_ne_bytes(*data.get(8..)?.first_chunk()?);
    let nanos_since_epoch = seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?;
    u64::try_from(nanos_since_epoch).ok().filter(|ns| *ns > 0)
}

/// Receives one datagram with its source and control messages; `None` when there is none.
#[inline]
pub(crate) fn receive_datagram(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> io::Result<Option<(Received, Control)>> {
    let mut source = MaybeUninit::<libc::sockaddr_in>::zeroed();
    let message = receive(fd, buffer, Some(&mut source))?;
    Ok(message.map(|message| {
        let received = Received {
            len: message.len,
            kernel_ns: message.control.kernel_ns,
            // SAFETY: zeroed bytes are a valid `sockaddr_in`, however much of it the kernel has overwritten.
            from: socket_address(unsafe { source.assume_init_ref() }),
            is_truncated: message.flags & libc::MSG_TRUNC != 0,
        };
        (received, message.control)
    }))
}

/// Receives bytes of a stream with their control messages. `None` when no bytes wait; 0 bytes at the
/// stream's end.
#[inline]
pub(crate) fn receive_stream(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Option<(usize, Control)>> {
    Ok(receive(fd, buffer, None)?.map(|message| (message.len, message.control)))
}

struct Message {
    len: usize,
    flags: i32,
    control: Control,
}

#[inline]
fn receive(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
    source: Option<&mut MaybeUninit<libc::sockaddr_in>>,
) -> io::Result<Option<Message>> {
    let mut control = ControlBuffer::EMPTY;
    let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut header = empty_header();
    if let Some(source) = source {
        header.msg_name = source.as_mut_ptr().cast();
        header.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    }
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_LEN as _;
    // SAFETY: every pointer in the header points to memory that lives until the call returns, with its
    // length: the buffer borrowed for the call, and locals.
    let len = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) };
    if len < 0 {
        return none_if_would_block();
    }
    let control = Control::of(&header, &control);
    Ok(Some(Message { len: len as usize, flags: header.msg_flags, control }))
}

/// A control message with the length of the segments of one send (`UDP_SEGMENT`, udp(7)).
#[repr(C, align(8))]
struct SegmentLen {
    /// Length of header and data, without padding.
    len: usize,
    level: libc::c_int,
    kind: libc::c_int,
    segment_len: u16,
    _padding: [u8; 6],
}

const _: () = assert!(size_of::<SegmentLen>() == CONTROL_HEADER_LEN + size_of::<usize>());

/// Sends `bytes` on a connected socket as datagrams of `segment_len` bytes, the last one possibly shorter. The
/// kernel accepts all or none of them.
pub(crate) fn send_segmented(fd: BorrowedFd<'_>, bytes: &[u8], segment_len: u16) -> io::Result<()> {
    let mut control = SegmentLen {
        len: CONTROL_HEADER_LEN + size_of::<u16>(),
        level: libc::SOL_UDP,
        kind: libc::UDP_SEGMENT,
        segment_len,
        _padding: [0; 6],
    };
    let mut vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut header = empty_header();
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = (&raw mut control).cast();
    header.msg_controllen = size_of::<SegmentLen>() as _;
    // SAFETY: every pointer in the header points to memory that lives until the call returns, with its
    // length: the bytes borrowed for the call, which the kernel only reads, and locals.
    let sent = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Maps the error of a full queue to [`SendStatus::WouldBlock`].
pub(crate) fn would_block_if_full(error: io::Error) -> io::Result<SendStatus> {
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::ENOBUFS) => Ok(SendStatus::WouldBlock),
        _ => Err(error),
    }
}

/// Returns `None` if the last receive failed because of no data or an interruption, else the system's error.
pub(crate) fn none_if_would_block<T>() -> io::Result<Option<T>> {
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EINTR) => Ok(None),
        _ => Err(error),
    }
}

pub(crate) fn socket_address(address: &libc::sockaddr_in) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)), u16::from_be(address.sin_port))
}

pub(crate) fn empty_header() -> libc::msghdr {
    // SAFETY: null pointers and zero lengths are valid values of each field of `msghdr`.
    unsafe { mem::zeroed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control_message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let mut bytes = (CONTROL_HEADER_LEN + data.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn both() -> Vec<u8> {
        let time = [1_700_000_000_i64.to_ne_bytes(), 123_456_789_i64.to_ne_bytes()].concat();
        let drops = control_message(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &7_u32.to_ne_bytes());
        let other = control_message(libc::SOL_SOCKET, 9_999, &[1, 2, 3]);
        let time = control_message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &time);
        [drops, other, time].concat()
    }

    #[test]
    fn control_messages_are_found_in_any_order_among_others() {
        let control = Control::parse(&both());
        assert_eq!(control, Control { kernel_ns: Some(1_700_000_000_123_456_789), drop_count: Some(7) });
        assert_eq!(Control::parse(&[]), Control::default());
    }

    #[test]
    fn a_truncation_loses_messages_and_nothing_else() {
        let bytes = both();
        for len in 0..bytes.len() {
            let control = Control::parse(&bytes[..len]);
            assert_eq!(control.kernel_ns, None, "{len}");
        }
        assert_eq!(Control::parse(&[0; CONTROL_LEN]), Control::default());
        assert_eq!(Control::parse(&[0xFF; CONTROL_LEN]), Control::default());
    }
}
