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
    /// Longest IP packet that is taken, in bytes; longer ones are dropped and counted.
    pub packet_len_max: usize,
    /// Packets that may wait at least; when as many do the kernel drops the next and counts it.
    pub packets_max: usize,
}

impl Default for PacketRingConfig {
    /// 16 MiB of memory: packets of two standard Ethernet frames' length, and 4 ms of a million a second.
    fn default() -> Self {
        PacketRingConfig { packet_len_max: 1_900, packets_max: 1_000 }
    }
}

/// What a [`PacketRing`] did not hand out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketRingCounters {
    /// Packets longer than the bound.
    pub truncated: u64,
    /// Fragments of datagrams longer than the network's packets; a ring does not put them together.
    pub fragments: u64,
    /// Datagrams that are damaged: a wrong length or checksum.
    pub damaged: u64,
    /// Packets that the kernel dropped because the ring was full.
    pub kernel_drops: u64,
}

/// A datagram in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingDatagram<'a> {
    /// Index of its group among those joined.
    pub group: usize,
    /// The address that sent it.
    pub from: Ipv4Addr,
    /// What it carries.
    pub payload: &'a [u8],
    /// When it entered the kernel's network stack, by `CLOCK_REALTIME` in nanoseconds since the Unix epoch.
    pub kernel_ns: u64,
}

/// Receives the datagrams of some groups on one interface, in order of their arrival, out of memory that the
/// kernel shares with the program (`PACKET_RX_RING`, packet(7)).
///
/// To look whether there is one is a read of memory, and so is to take it: no system call drives the program's
/// code out of the processor's caches, and the sender's core does the kernel's part. Needs `CAP_NET_RAW`.
/// Datagrams must come whole: what a sender on the same machine hands over in segments (UDP_SEGMENT) comes
/// unsegmented, and is dropped as truncated or as a protocol's damage. Linux only.
#[derive(Debug)]
pub struct PacketRing {
    frames: Frames,
    groups: Vec<SocketAddrV4>,
    counters: PacketRingCounters,
    socket: Socket,
    /// Keep the interface joined to the groups; bound nowhere, so that no datagram comes to them.
    _memberships: Vec<Socket>,
}

impl PacketRing {
    /// Joins `groups` on the interface with the address `interface`.
    ///
    /// # Errors
    /// [`NetError::PacketRing`] where the system does not offer one: use [`MulticastReceiver`] then.
    /// [`NetError::NotMulticast`], [`NetError::JoinGroup`].
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
        // Without a protocol nothing arrives before the filter stands.
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

    /// The next datagram, if one is there; its place goes back to the kernel with the next call. A packet that
    /// is dropped is counted, and none is given for it.
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

    /// What was not handed out so far.
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

/// Number of the interface that has an address.
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
