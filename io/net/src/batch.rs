//! A batch of datagrams, received by one system call.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::message::{
    CONTROL_LEN, Control, ControlBuffer, Received, empty_header, none_if_would_block, socket_address,
};

/// Buffers for a batch of datagrams, filled by `recvmmsg`.
///
/// Everything is allocated at creation. The headers that the kernel reads point into the other arrays, which
/// are never resized.
pub struct RecvBatch {
    data: Vec<u8>,
    datagram_len_max: usize,
    sources: Vec<libc::sockaddr_in>,
    controls: Vec<ControlBuffer>,
    _vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    received: Vec<Received>,
}

// SAFETY: the pointers in the headers and I/O vectors point to memory that the batch owns and that moves
// with it between threads; nothing is shared.
unsafe impl Send for RecvBatch {}

impl RecvBatch {
    /// Creates buffers for `datagrams_max` datagrams of up to `datagram_len_max` bytes each.
    ///
    /// # Panics
    /// When `datagrams_max` or `datagram_len_max` is zero.
    #[must_use]
    pub fn new(datagrams_max: usize, datagram_len_max: usize) -> RecvBatch {
        assert!(datagrams_max > 0 && datagram_len_max > 0, "a batch needs room for a datagram");
        let mut data = vec![0; datagrams_max * datagram_len_max];
        // SAFETY: all bytes zero is a valid `sockaddr_in`.
        let mut sources = vec![unsafe { std::mem::zeroed::<libc::sockaddr_in>() }; datagrams_max];
        let mut controls = vec![ControlBuffer::EMPTY; datagrams_max];
        let (data_start, sources_start, controls_start) =
            (data.as_mut_ptr(), sources.as_mut_ptr(), controls.as_mut_ptr());
        let mut vectors: Vec<_> = (0..datagrams_max)
            .map(|index| libc::iovec {
                iov_base: data_start.wrapping_add(index * datagram_len_max).cast(),
                iov_len: datagram_len_max,
            })
            .collect();
        let vectors_start = vectors.as_mut_ptr();
        let header = |index| {
            let mut header = empty_header();
            header.msg_name = sources_start.wrapping_add(index).cast();
            header.msg_iov = vectors_start.wrapping_add(index);
            header.msg_iovlen = 1;
            header.msg_control = controls_start.wrapping_add(index).cast();
            libc::mmsghdr { msg_hdr: header, msg_len: 0 }
        };
        let mut headers: Vec<_> = (0..datagrams_max).map(header).collect();
        headers.iter_mut().for_each(offer_whole_buffers);
        let received = Vec::with_capacity(datagrams_max);
        RecvBatch { data, datagram_len_max, sources, controls, _vectors: vectors, headers, received }
    }

    /// Maximum number of datagrams.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.headers.len()
    }

    /// Returns the datagrams of the latest receive, in order of arrival.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Received, &[u8])> {
        let slots = self.data.chunks_exact(self.datagram_len_max);
        self.received.iter().zip(slots).map(|(received, slot)| (received, &slot[..received.len]))
    }

    /// Replaces the batch by the datagrams waiting on the socket. Returns their number, and the kernel's drop
    /// count if it was reported.
    pub(crate) fn fill(&mut self, fd: BorrowedFd<'_>) -> io::Result<(usize, Option<u32>)> {
        // The previous call shortened the lengths in the first `used` headers only.
        let used = self.received.len();
        self.headers[..used].iter_mut().for_each(offer_whole_buffers);
        self.received.clear();
        // SAFETY: each header points to separate address, data and control buffers within vectors that `self`
        // owns and never resizes, with their lengths; `self` is borrowed mutably during the call.
        let count = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            return Ok(none_if_would_block()?.unwrap_or((0, None)));
        }
        Ok((count as usize, self.collect(count as usize)))
    }

    /// Replaces the batch by the datagrams that `receive` writes into the buffer passed to it, until it
    /// returns `None` or the batch is full. Returns their number.
    pub(crate) fn fill_with(
        &mut self,
        mut receive: impl FnMut(&mut [u8]) -> io::Result<Option<Received>>,
    ) -> io::Result<usize> {
        self.received.clear();
        for buffer in self.data.chunks_exact_mut(self.datagram_len_max) {
            let Some(received) = receive(buffer)? else { break };
            self.received.push(received);
        }
        Ok(self.received.len())
    }

    /// Adds the metadata of the first `count` datagrams; returns the latest drop count.
    fn collect(&mut self, count: usize) -> Option<u32> {
        let mut drop_count = None;
        let slots = self.headers.iter().zip(&self.sources).zip(&self.controls).take(count);
        for ((header, source), control) in slots {
            let control = Control::of(&header.msg_hdr, control);
            drop_count = control.drop_count.or(drop_count);
            self.received.push(Received {
                len: (header.msg_len as usize).min(self.datagram_len_max),
                kernel_ns: control.kernel_ns,
                from: socket_address(source),
                is_truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            });
        }
        drop_count
    }
}

/// Resets a header's lengths to those of the whole address buffer and the whole control buffer.
fn offer_whole_buffers(header: &mut libc::mmsghdr) {
    header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    header.msg_hdr.msg_controllen = CONTROL_LEN as _;
}
