//! Multicast without system calls: a ring of packets that the kernel writes and this program reads.

mod datagram;
mod filter;
mod frames;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;
use socket2::{Domain, Socket, Type};

use crate::error::NetError;
use crate::multicast::{check_group, join_error};
use crate::sockets;

use datagram::{Datagram, Reject};
use frames::{Frames, Status};

/// Bounds of a [`PacketRing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRingConfig {
    /// Maximum length of an IP packet in bytes; longer ones are dropped and counted.
    pub packet_len_max: usize,
    /// Minimum number of packets that the ring can hold; when it is full, the kernel drops further packets.
    pub packets_max: usize,
}

impl Default for PacketRingConfig {
    /// A ring of 2 MiB for packets of up to 1,900 bytes. It holds 1 ms of packets at a million a second.
    fn default() -> Self {
        PacketRingConfig { packet_len_max: 1_900, packets_max: 1_000 }
    }
}

/// Numbers of packets that a [`PacketRing`] dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketRingCounters {
    /// Packets too long for a frame of the ring.
    pub truncated: u64,
    /// First fragments of fragmented datagrams: a ring does not reassemble datagrams.
    pub fragments: u64,
    /// Damaged datagrams: a wrong length or checksum.
    pub damaged: u64,
    /// Packets that the kernel dropped because the ring was full.
    pub kernel_drops: u64,
}

/// A datagram in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingDatagram<'a> {
    /// Index of the datagram's group among the joined groups.
    pub group: usize,
    /// Address of the sender.
    pub from: Ipv4Addr,
    /// The payload.
    pub payload: &'a [u8],
    /// Receive time in the kernel's network stack, by `CLOCK_REALTIME` in nanoseconds since the Unix epoch.
    pub kernel_ns: u64,
}

/// Receives the datagrams of some groups on one interface, in order of arrival, from memory that the kernel
/// shares with the program (`PACKET_RX_RING`, packet(7)).
///
/// Checking for a datagram and taking it are only memory reads: no system call evicts the program's code from
/// the processor's caches; on loopback, the kernel's work runs on the sender's core. Needs `CAP_NET_RAW`.
/// Segments that a sender on the same machine sends at once (UDP_SEGMENT) arrive as one packet: the ring
/// drops it if it is too long, and otherwise returns it as one datagram. Linux only.
#[derive(Debug)]
pub struct PacketRing {
    frames: Frames,
    groups: Vec<SocketAddrV4>,
    counters: PacketRingCounters,
    socket: Socket,
    /// Sockets that keep the interface joined to the groups; unbound, so that they receive no datagrams.
    _memberships: Vec<Socket>,
}

impl PacketRing {
    /// Joins `groups` on the interface with the address `interface`.
    ///
    /// # Errors
    /// [`NetError::PacketRing`] if the system offers no packet ring: then use [`MulticastReceiver`].
    /// [`NetError::NotMulticast`] or [`NetError::JoinGroup`] if a group cannot be joined.
    ///
    /// [`MulticastReceiver`]: crate::MulticastReceiver
    pub fn join(
        groups: &[SocketAddrV4],
        interface: Ipv4Addr,
        config: PacketRingConfig,
    ) -> Result<PacketRing, NetError> {
        groups.iter().try_for_each(|group| check_group(*group))?;
        let refused = |what| move |source| NetError::PacketRing { what, source };
        let index = interface_index(interface).map_err(refused("interface"))?;
        // The socket has no protocol yet, so that nothing arrives before the filter is set.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, None).map_err(refused("socket"))?;
        socket.attach_filter(&filter::accepting(groups)).map_err(refused("filter"))?;
        let frames =
            Frames::map(&socket, config.packet_len_max, config.packets_max).map_err(refused("memory"))?;
        frames::bind(&socket, index).map_err(refused("bind"))?;
        let memberships = groups.iter().map(|group| join(*group, interface)).collect::<Result<_, _>>()?;
        Ok(PacketRing {
            frames,
            groups: groups.to_vec(),
            counters: PacketRingCounters::default(),
            socket,
            _memberships: memberships,
        })
    }

    /// Returns the next datagram, if any. Its frame returns to the kernel with the next call. If the next
    /// packet must be dropped, counts it and returns `None`.
    #[inline]
    pub fn recv(&mut self) -> Option<RingDatagram<'_>> {
        self.frames.release();
        let (status, kernel_ns, packet) = self.frames.take()?;
        let counters = &mut self.counters;
        if status.contains(Status::LOSING) {
            counters.kernel_drops += frames::take_drop_count(&self.socket);
        }
        if status.contains(Status::TRUNCATED) {
            counters.truncated += 1;
            return None;
        }
        let datagram = Datagram::parse(packet, status.contains(Status::CHECKED));
        let datagram = datagram.inspect_err(|reject| match reject {
            Reject::Fragment => counters.fragments += 1,
            Reject::Damaged => counters.damaged += 1,
        });
        let Datagram { from, to, payload } = datagram.ok()?;
        let group = self.groups.iter().position(|group| *group == to)?;
        Some(RingDatagram { group, from, payload, kernel_ns })
    }

    /// Counters of the dropped packets so far.
    #[must_use]
    pub fn counters(&self) -> &PacketRingCounters {
        &self.counters
    }
}

fn join(group: SocketAddrV4, interface: Ipv4Addr) -> Result<Socket, NetError> {
    let socket = sockets::udp()?;
    socket.join_multicast_v4(group.ip(), &interface).map_err(join_error(group, interface))?;
    Ok(socket)
}

/// Returns the index of the interface with an address.
fn interface_index(address: Ipv4Addr) -> io::Result<u32> {
    let has_address = |found: &nix::ifaddrs::InterfaceAddress| {
        let found = found.address.as_ref().and_then(|address| address.as_sockaddr_in());
        found.is_some_and(|found| found.ip() == address)
    };
    let found = getifaddrs()?.find(has_address);
    let found =
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no interface has this address"))?;
    Ok(if_nametoindex(found.interface_name.as_str())?)
}
