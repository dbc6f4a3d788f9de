//! The two multicast lines, read by a packet ring or by sockets.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_agent::WaitSet;
use tickpath_feed::Line;
use tickpath_net::{DatagramReceiver, NetError, Network, PacketRing, PacketRingConfig};

/// How packets are to be read off an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineReader {
    /// Sockets: a system call for each look.
    #[default]
    Sockets,
    /// A packet ring: memory shared with the kernel, no system calls. Needs `CAP_NET_RAW`.
    Ring,
    /// A packet ring where the system offers one, else sockets.
    Auto,
}

/// How the packets of a feed handler are read indeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadBy {
    /// By a packet ring.
    Ring,
    /// By sockets, as asked for, or because there is no packet ring.
    Sockets {
        /// Why there is none.
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

/// A packet of a line, in the buffer that it was read into.
#[derive(Clone, Copy)]
pub(crate) struct LinePacket {
    pub(crate) line: Line,
    pub(crate) from: Ipv4Addr,
    pub(crate) len: usize,
    /// When the kernel received it, in nanoseconds since the Unix epoch.
    pub(crate) kernel_ns: Option<u64>,
}

/// Packets that were lost on this machine.
#[derive(Clone, Copy, Default)]
pub(crate) struct Drops {
    /// There was no room for them.
    pub(crate) kernel: u64,
    /// They were cut short, fragmented or damaged.
    pub(crate) unreadable: u64,
}

/// Reads packets of lines A and B, one at a time.
pub(crate) enum Lines<N: Network> {
    Ring(PacketRing),
    Sockets {
        receivers: [N::Receiver; 2],
        /// Which to look at first: they take turns.
        next: usize,
        truncated: u64,
    },
}

const LINES: [Line; 2] = [Line::A, Line::B];

impl<N: Network> Lines<N> {
    pub(crate) fn join(
        network: &N,
        groups: [SocketAddrV4; 2],
        interface: Ipv4Addr,
        reader: LineReader,
    ) -> Result<(Lines<N>, ReadBy), NetError> {
        let mut read_by = ReadBy::Sockets { because: None };
        if reader != LineReader::Sockets {
            match PacketRing::join(&groups, interface, PacketRingConfig::default()) {
                Ok(ring) => return Ok((Lines::Ring(ring), ReadBy::Ring)),
                Err(error @ NetError::PacketRing { .. }) if reader == LineReader::Auto => {
                    read_by = ReadBy::Sockets { because: Some(error.to_string()) };
                }
                Err(error) => return Err(error),
            }
        }
        let [a, b] = groups.map(|group| network.receiver(group, interface));
        Ok((Lines::Sockets { receivers: [a?, b?], next: 0, truncated: 0 }, read_by))
    }

    /// Reads the next packet, if there is one.
    #[inline]
    pub(crate) fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<LinePacket>> {
        match self {
            Lines::Ring(ring) => Ok(ring.recv().map(|datagram| {
                let len = datagram.payload.len();
                buffer[..len].copy_from_slice(datagram.payload);
                LinePacket {
                    line: LINES[datagram.group],
                    from: datagram.from,
                    len,
                    kernel_ns: Some(datagram.kernel_ns),
                }
            })),
            Lines::Sockets { receivers, next, truncated } => {
                for _ in 0..receivers.len() {
                    let index = *next;
                    *next = 1 - index;
                    let Some(received) = receivers[index].recv(buffer)? else { continue };
                    *truncated += u64::from(received.is_truncated);
                    let (len, kernel_ns) = (received.len, received.kernel_ns);
                    let from = *received.from.ip();
                    return Ok(Some(LinePacket { line: LINES[index], from, len, kernel_ns }));
                }
                Ok(None)
            }
        }
    }

    /// Says what it waits for.
    pub(crate) fn wait_for(&self, wait: &mut WaitSet) {
        match self {
            Lines::Ring(_) => wait.soon(),
            Lines::Sockets { receivers, .. } => {
                receivers.iter().for_each(|line| wait.descriptor(line.descriptor()));
            }
        }
    }

    pub(crate) fn drops(&self) -> Drops {
        match self {
            Lines::Ring(ring) => {
                let counters = ring.counters();
                let unreadable = counters.truncated + counters.fragments + counters.damaged;
                Drops { kernel: counters.kernel_drops, unreadable }
            }
            Lines::Sockets { receivers, truncated, .. } => {
                let kernel = receivers.iter().map(|line| u64::from(line.drop_count())).sum();
                Drops { kernel, unreadable: *truncated }
            }
        }
    }
}
