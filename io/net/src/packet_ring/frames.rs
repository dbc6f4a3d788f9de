//! A ring of frames in memory that the kernel shares with the program (`TPACKET_V2`, packet(7)).

use std::ffi::c_void;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use socket2::Socket;

/// Minimum length of a block, in bytes. The kernel allocates blocks, and a frame lies within one block.
const BLOCK_LEN: usize = 64 << 10;
/// Maximum size of the kernel's part of a frame: its header, the sender's address, alignment.
const FRAME_HEADER_LEN_MAX: usize = 96;

/// The kernel's status of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status(u32);

impl Status {
    const USER: Status = Status(libc::TP_STATUS_USER);
    /// The frame holds only the first bytes of the packet. Set by [`Frames::take`], which compares lengths.
    pub(super) const TRUNCATED: Status = Status(1 << 30);
    /// Packets were dropped since the last query of the drop count.
    pub(super) const LOSING: Status = Status(libc::TP_STATUS_LOSING);
    /// The checksum was verified, or the packet never left the machine and has none yet.
    pub(super) const CHECKED: Status = Status(libc::TP_STATUS_CSUM_VALID | libc::TP_STATUS_CSUMNOTREADY);

    /// Returns whether any bit of `other` is set.
    #[inline]
    pub(super) const fn contains(self, other: Status) -> bool {
        self.0 & other.0 != 0
    }
}

/// A mapped ring of frames. A frame belongs to the kernel until the kernel sets `TP_STATUS_USER`, then to the
/// program until the program stores `TP_STATUS_KERNEL`.
#[derive(Debug)]
pub(super) struct Frames {
    memory: NonNull<c_void>,
    memory_len: usize,
    frame_len: usize,
    count: usize,
    /// Index of the next frame.
    next: usize,
    /// True while the program owns the next frame.
    is_taken: bool,
}

// SAFETY: only this value owns the mapping, which is valid on any thread.
unsafe impl Send for Frames {}

impl Frames {
    /// Makes the kernel allocate at least `packets_max` frames for packets of `packet_len_max` bytes, and
    /// maps them.
    pub(super) fn map(socket: &Socket, packet_len_max: usize, packets_max: usize) -> io::Result<Frames> {
        let frame_len = (packet_len_max + FRAME_HEADER_LEN_MAX).next_power_of_two();
        let block_len = BLOCK_LEN.max(frame_len);
        // One frame more than the packets that may wait, because the program owns one.
        let block_count = (packets_max + 1).div_ceil(block_len / frame_len);
        let count = block_len / frame_len * block_count;
        let fits = |value: usize| u32::try_from(value).map_err(|_| io::ErrorKind::InvalidInput);
        let request = libc::tpacket_req {
            tp_block_size: fits(block_len)?,
            tp_block_nr: fits(block_count)?,
            tp_frame_size: fits(frame_len)?,
            tp_frame_nr: fits(count)?,
        };
        set_option(socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as libc::c_int))?;
        set_option(socket, libc::PACKET_TIMESTAMP, &(libc::SOF_TIMESTAMPING_SOFTWARE as libc::c_int))?;
        set_option(socket, libc::PACKET_RX_RING, &request)?;
        let memory_len = NonZeroUsize::new(block_len * block_count).expect("there is a block");
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let flags = MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE;
        // SAFETY: a new mapping of the new ring at an address of the kernel's choice replaces no memory.
        let memory = unsafe { mmap(None, memory_len, protection, flags, socket.as_fd(), 0) }?;
        Ok(Frames { memory, memory_len: memory_len.get(), frame_len, count, next: 0, is_taken: false })
    }

    /// Returns the next frame, if the kernel has filled it: its status, its receive time in nanoseconds since
    /// the Unix epoch, and the packet from its IPv4 header on. The program owns it until
    /// [`release`](Frames::release).
    #[inline]
    pub(super) fn take(&mut self) -> Option<(Status, u64, &[u8])> {
        let frame = self.frame();
        let status = Status(self.status().load(Ordering::Acquire));
        if !status.contains(Status::USER) {
            return None;
        }
        self.is_taken = true;
        // SAFETY: a frame begins with its header, at an aligned address; the kernel does not write to a frame
        // owned by the program, and the acquire above follows all its writes.
        let header = unsafe { frame.cast::<libc::tpacket2_hdr>().read() };
        let (from, len) = (usize::from(header.tp_net), header.tp_snaplen as usize);
        let status = if header.tp_snaplen < header.tp_len || from + len > self.frame_len {
            Status(status.0 | Status::TRUNCATED.0)
        } else {
            status
        };
        let len = len.min(self.frame_len.saturating_sub(from));
        // SAFETY: the bytes lie within the frame, by the line above, and do not change while `self` is
        // borrowed: only `release` returns the frame.
        let packet = unsafe { std::slice::from_raw_parts(frame.add(from.min(self.frame_len)).as_ptr(), len) };
        let kernel_ns = u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
        Some((status, kernel_ns, packet))
    }

    /// Returns the taken frame to the kernel, and advances to the next one.
    #[inline]
    pub(super) fn release(&mut self) {
        if std::mem::take(&mut self.is_taken) {
            self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = if self.next + 1 == self.count { 0 } else { self.next + 1 };
        }
    }

    #[inline]
    fn frame(&self) -> NonNull<u8> {
        // SAFETY: `next` is less than the number of frames, which all lie in the mapping.
        unsafe { self.memory.cast::<u8>().add(self.next * self.frame_len) }
    }

    #[inline]
    fn status(&self) -> &AtomicU32 {
        // SAFETY: a frame's first word is its status, which kernel and program access as a whole; the mapping
        // lives as long as `self`, and frames are aligned to more than a word.
        unsafe { AtomicU32::from_ptr(self.frame().cast::<u32>().as_ptr()) }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and nothing borrows it any more.
        let _ = unsafe { munmap(self.memory, self.memory_len) };
    }
}

/// Starts receiving IPv4 packets of an interface.
pub(super) fn bind(socket: &Socket, interface: u32) -> io::Result<()> {
    // SAFETY: a plain structure of integers, for which zero is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::sa_family_t;
    address.sll_protocol = (libc::ETH_P_IP as u16).to_be();
    address.sll_ifindex = i32::try_from(interface).map_err(|_| io::ErrorKind::InvalidInput)?;
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address lives during the call, and `len` is its length.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the number of packets dropped since the last query, and resets the count.
#[cold]
pub(super) fn take_drop_count(socket: &Socket) -> u64 {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into a structure of integers that lives during the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut len,
        )
    };
    if result == 0 { u64::from(statistics.tp_drops) } else { 0 }
}

fn set_option<T: Copy>(socket: &Socket, name: libc::c_int, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value lives during the call, and `len` is its length.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, name, std::ptr::from_ref(value).cast(), len)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
