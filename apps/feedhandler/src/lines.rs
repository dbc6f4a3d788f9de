//! The multicast lines of a channel, read by a packet ring or by sockets.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_agent::WaitSet;
use tickpath_feed::Line;
use tickpath_net::{DatagramReceiver, NetError, Network, PacketRing, PacketRingConfig, RecvBatch};

use crate::senders::Senders;

/// The configured method of reading packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineReader {
    /// Sockets: one system call per poll.
    #[default]
    Sockets,
    /// A packet ring: memory shared with the kernel, no system calls. Needs `CAP_NET_RAW`.
    Ring,
    /// A packet ring if the system offers one, else sockets.
    Auto,
}

/// The method by which a feed handler actually reads packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadBy {
    /// By a packet ring.
    Ring,
    /// By sockets, as configured or because there is no packet ring.
    Sockets {
        /// The reason why there is no packet ring; `None` if sockets are configured.
        because: Option<String>,
    },
}

impl fmt::Display for ReadBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadBy::Ring => f.write_str("a packet ring, without system calls"),
            ReadBy::Sockets { because: None } => f.write_str("sockets"),
            ReadBy::Sockets { because: Some(reason) } => write!(f, "sockets; {reason}"),
        }
    }
}

/// A packet that was received from a line; its payload is in the caller's buffer.
#[derive(Clone, Copy)]
pub(crate) struct LinePacket {
    pub(crate) line: Line,
    pub(crate) from: Ipv4Addr,
    pub(crate) len: usize,
    /// Kernel receive time, in nanoseconds since the Unix epoch.
    pub(crate) kernel_ns: Option<u64>,
}

/// Numbers of packets lost on this machine.
#[derive(Clone, Copy, Default)]
pub(crate) struct Drops {
    /// Packets dropped because a buffer was full.
    pub(crate) kernel: u64,
    /// Packets that were truncated, fragmented or damaged.
    pub(crate) unreadable: u64,
}

/// The receivers of one or two lines.
pub(crate) struct Lines<N: Network> {
    reader: Reader<N>,
    pub(crate) senders: Senders,
    /// Index of the receiver to poll first; the receivers take turns.
    next: usize,
    /// Datagrams that [`Lines::recv_batch`] dropped: from an unauthorised address, or of another feed.
    pub(crate) unauthorised: u64,
    /// Datagrams that were longer than the receive buffer.
    pub(crate) truncated: u64,
}

enum Reader<N: Network> {
    Ring(PacketRing),
    Sockets([Option<N::Receiver>; 2]),
}

const LINES: [Line; 2] = [Line::A, Line::B];

impl<N: Network> Lines<N> {
    /// Joins each line that has a group. Returns the lines (`None` without a group) and the reading method.
    pub(crate) fn join(
        network: &N,
        groups: [Option<SocketAddrV4>; 2],
        interface: Ipv4Addr,
        senders: Senders,
        method: LineReader,
    ) -> Result<(Option<Lines<N>>, ReadBy), NetError> {
        let joined: Vec<_> = groups.into_iter().flatten().collect();
        let mut because = None;
        let mut ring = None;
        if method != LineReader::Sockets {
            match PacketRing::join(&joined, interface, PacketRingConfig::default()) {
                Ok(joined) => ring = Some(joined),
                Err(error @ NetError::PacketRing { .. }) if method == LineReader::Auto => {
                    because = Some(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        let (reader, read_by) = match ring {
            Some(ring) => (Reader::Ring(ring), ReadBy::Ring),
            None => {
                let join = |group: SocketAddrV4| network.receiver(group, interface);
                let [a, b] = groups.map(|group| group.map(join).transpose());
                (Reader::Sockets([a?, b?]), ReadBy::Sockets { because })
            }
        };
        let lines = Lines { reader, senders, next: 0, unauthorised: 0, truncated: 0 };
        Ok(((!joined.is_empty()).then_some(lines), read_by))
    }

    /// Returns the next packet, if any.
    #[inline]
    pub(crate) fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<LinePacket>> {
        match &mut self.reader {
            Reader::Ring(ring) => Ok(ring.recv().map(|datagram| {
                let len = datagram.payload.len();
                buffer[..len].copy_from_slice(datagram.payload);
                let (line, from) = (LINES[datagram.group], datagram.from);
                LinePacket { line, from, len, kernel_ns: Some(datagram.kernel_ns) }
            })),
            Reader::Sockets(receivers) => {
                for _ in 0..receivers.len() {
                    let index = self.next;
                    self.next = 1 - index;
                    let Some(receiver) = &mut receivers[index] else { continue };
                    let Some(received) = receiver.recv(buffer)? else { continue };
                    self.truncated += u64::from(received.is_truncated);
                    let (len, kernel_ns) = (received.len, received.kernel_ns);
                    let from = *received.from.ip();
                    return Ok(Some(LinePacket { line: LINES[index], from, len, kernel_ns }));
                }
                Ok(None)
            }
        }
    }

    /// Receives pending datagrams from one socket with one call; returns their number. `take` returns false
    /// for a datagram of another feed.
    #[inline]
    pub(crate) fn recv_batch(
        &mut self,
        batch: &mut RecvBatch,
        mut take: impl FnMut(Line, &[u8]) -> bool,
    ) -> io::Result<usize> {
        let Reader::Sockets(receivers) = &mut self.reader else { return Ok(0) };
        for _ in 0..receivers.len() {
            let index = self.next;
            self.next = 1 - index;
            let Some(receiver) = &mut receivers[index] else { continue };
            let count = receiver.recv_batch(batch)?;
            if count == 0 {
                continue;
            }
            for (received, datagram) in batch.iter() {
                let is_known = self.senders.allows(*received.from.ip());
                if received.is_truncated {
                    self.truncated += 1;
                } else if !is_known || !take(LINES[index], datagram) {
                    self.unauthorised += 1;
                }
            }
            return Ok(count);
        }
        Ok(0)
    }

    /// Adds the lines' sockets to `wait`; with a packet ring, limits the sleep to a millisecond.
    pub(crate) fn wait_for(&self, wait: &mut WaitSet) {
        match &self.reader {
            Reader::Ring(_) => wait.soon(),
            Reader::Sockets(receivers) => {
                receivers.iter().flatten().for_each(|receiver| wait.descriptor(receiver.descriptor()));
            }
        }
    }

    pub(crate) fn drops(&self) -> Drops {
        match &self.reader {
            Reader::Ring(ring) => {
                let counters = ring.counters();
                let unreadable = counters.truncated + counters.fragments + counters.damaged;
                Drops { kernel: counters.kernel_drops, unreadable }
            }
            Reader::Sockets(receivers) => {
                let kernel = receivers.iter().flatten().map(|line| u64::from(line.drop_count())).sum();
                Drops { kernel, unreadable: self.truncated }
            }
        }
    }
}
