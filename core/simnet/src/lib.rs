//! A simulated network, driven by one seed, that delays, loses, duplicates and reorders data, partitions
//! hosts, and resets connections.
//!
//! Hosts have sockets: listeners, connection ends, members of a multicast group, and datagram sockets. The
//! caller advances the time: data arrives once [`Network::advance`] reaches its arrival time. The network
//! performs no IO and reads no clock. The simulator and tests run the system on it.

mod datagrams;
mod faults;
mod socket;
mod streams;

use core::net::{Ipv4Addr, SocketAddrV4};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use tickpath_types::{Nanos, Rng};

pub use datagrams::Datagram;
pub use faults::{DatagramFaults, NetworkCounters, StreamFaults};
use socket::Socket;
pub use socket::{AddressInUse, ClosedBy, HostId, SocketId};
pub use streams::{StreamError, StreamRead};

/// Kind of failure that ends a host's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFailure {
    /// The process ends. The host closes its connections, which notifies the other ends.
    Process,
    /// The host loses power. Peers notice only when the host is back and resets their connections.
    Power,
}

/// An event on a connection of a [watched](Network::watch_streams_of) host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEvent {
    /// Time of the event.
    pub at: Nanos,
    /// Socket of the other end of the connection.
    pub peer: SocketId,
    /// Kind of event.
    pub kind: StreamEventKind,
}

/// Kind of a [`StreamEvent`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEventKind {
    /// Bytes were read.
    Read {
        /// Arrival time of the bytes as reported to the reader, in nanoseconds of the host's clock.
        kernel_ns: u64,
        /// The bytes read.
        bytes: Vec<u8>,
    },
    /// The end of the stream or a reset became readable, or the host closed its end.
    Closed,
}

/// The network and all its hosts.
#[derive(Debug)]
pub struct Network {
    now: Nanos,
    rng: Rng,
    stream_faults: StreamFaults,
    /// Faults of each multicast group; the key [`UNICAST`] has those of unicast datagrams.
    datagram_faults: BTreeMap<SocketAddrV4, DatagramFaults>,
    counters: NetworkCounters,
    sockets: BTreeMap<SocketId, Socket>,
    next_socket: u32,
    next_port: u16,
    /// Arrival times of all data in flight.
    arrivals: BinaryHeap<Reverse<Nanos>>,
    /// Pairs of hosts that cannot reach each other.
    cuts: BTreeSet<(HostId, HostId)>,
    /// Hosts without power.
    powered_off: BTreeSet<HostId>,
    /// Offsets of each host's clock in nanoseconds, each with the time from which it applies.
    clocks: BTreeMap<HostId, Vec<(Nanos, i64)>>,
    watched: BTreeSet<HostId>,
    /// Sockets to which a reset or the end of a stream is in flight, each with its arrival time.
    closing: Vec<(Nanos, SocketId)>,
    events: Vec<StreamEvent>,
}

/// Key for the faults of datagrams that are not sent to a group.
const UNICAST: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
/// First port to assign when a caller passes port 0.
const FIRST_FREE_PORT: u16 = 40_000;

impl Network {
    /// Creates a network without hosts and without faults.
    #[must_use]
    pub fn new(seed: u64, now: Nanos) -> Network {
        Network {
            now,
            rng: Rng::new(seed),
            stream_faults: StreamFaults::NONE,
            datagram_faults: BTreeMap::new(),
            counters: NetworkCounters::default(),
            sockets: BTreeMap::new(),
            next_socket: 1,
            next_port: FIRST_FREE_PORT,
            arrivals: BinaryHeap::new(),
            cuts: BTreeSet::new(),
            powered_off: BTreeSet::new(),
            clocks: BTreeMap::new(),
            watched: BTreeSet::new(),
            closing: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Advances the network's time to `now`; the time never goes back.
    pub fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        while self.arrivals.peek().is_some_and(|at| at.0 <= self.now) {
            self.arrivals.pop();
        }
        self.record_closed();
    }

    /// The network's time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Time of the next pending arrival, if any.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Nanos> {
        self.arrivals.peek().map(|at| at.0)
    }

    /// Counters of all events so far.
    #[must_use]
    pub fn counters(&self) -> &NetworkCounters {
        &self.counters
    }

    /// Sets the faults of connections from now on.
    pub fn set_stream_faults(&mut self, faults: StreamFaults) {
        self.stream_faults = faults;
    }

    /// Sets the faults of datagrams to a group from now on; `None` stands for datagrams without a group.
    pub fn set_datagram_faults(&mut self, group: Option<SocketAddrV4>, faults: DatagramFaults) {
        self.datagram_faults.insert(group.unwrap_or(UNICAST), faults);
    }

    /// Partitions two hosts until [`heal`](Network::heal): datagrams between them are lost, and data on
    /// connections waits.
    pub fn cut(&mut self, one: HostId, other: HostId) {
        if self.cuts.insert(pair(one, other)) {
            self.counters.partitions += 1;
        }
    }

    /// Ends the partition of two hosts: waiting data on connections is retransmitted.
    pub fn heal(&mut self, one: HostId, other: HostId) {
        if self.cuts.remove(&pair(one, other)) {
            self.release_segments();
        }
    }

    /// Sets the offset of a host's clock from now on, in nanoseconds ahead of the network's time.
    pub fn set_clock(&mut self, host: HostId, ahead_ns: i64) {
        self.clocks.entry(host).or_default().push((self.now, ahead_ns));
    }

    /// Current reading of a host's clock.
    #[must_use]
    pub fn clock(&self, host: HostId) -> Nanos {
        Nanos(self.stamp(host, self.now))
    }

    /// Records the events on the connections of a host from now on.
    pub fn watch_streams_of(&mut self, host: HostId) {
        self.watched.insert(host);
    }

    /// Returns the events of all watched hosts since the last call, in order of time.
    pub fn take_stream_events(&mut self) -> Vec<StreamEvent> {
        std::mem::take(&mut self.events)
    }

    /// Ends a host's process and removes all its sockets.
    pub fn kill(&mut self, host: HostId, failure: HostFailure) {
        let ids = self.ids(|socket| socket.host() == host);
        match failure {
            HostFailure::Process => {
                self.counters.deaths += 1;
                ids.into_iter().for_each(|id| self.close(id));
            }
            HostFailure::Power => {
                self.counters.power_losses += 1;
                self.powered_off.insert(host);
                for id in ids {
                    self.record_closed_now(id);
                    self.sockets.remove(&id);
                }
            }
        }
    }

    /// Restores the power of a host. Peers that have sent data on its old connections receive a reset.
    pub fn power_on(&mut self, host: HostId) {
        if self.powered_off.remove(&host) {
            self.reset_half_open();
        }
    }

    /// Closes a socket of any kind. Does nothing if it is already closed.
    pub fn close(&mut self, id: SocketId) {
        match self.sockets.get(&id) {
            Some(Socket::Listener(_)) => self.close_listener(id),
            Some(Socket::End(_)) => self.close_end(id),
            Some(Socket::Inbox(_)) => _ = self.sockets.remove(&id),
            None => {}
        }
    }

    fn insert(&mut self, socket: Socket) -> SocketId {
        let id = SocketId(self.next_socket);
        self.next_socket += 1;
        self.sockets.insert(id, socket);
        id
    }

    /// Ids of the sockets that satisfy `is_match`, in ascending order.
    fn ids(&self, is_match: impl Fn(&Socket) -> bool) -> Vec<SocketId> {
        self.sockets.iter().filter(|(_, socket)| is_match(socket)).map(|(id, _)| *id).collect()
    }

    fn assign_port(&mut self, address: SocketAddrV4) -> SocketAddrV4 {
        if address.port() != 0 {
            return address;
        }
        loop {
            self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_FREE_PORT);
            let address = SocketAddrV4::new(*address.ip(), self.next_port);
            if self.inbox_at(address).is_none() && self.listener_at(address).is_none() {
                return address;
            }
        }
    }

    fn can_reach(&self, one: HostId, other: HostId) -> bool {
        !self.cuts.contains(&pair(one, other))
            && !self.powered_off.contains(&one)
            && !self.powered_off.contains(&other)
    }

    /// Reading of a host's clock at the network time `at`.
    fn stamp(&self, host: HostId, at: Nanos) -> u64 {
        let steps = self.clocks.get(&host).map_or(&[][..], Vec::as_slice);
        let ahead = steps.iter().rev().find(|(from, _)| *from <= at).map_or(0, |(_, ahead)| *ahead);
        at.0.saturating_add_signed(ahead)
    }
}

fn pair(one: HostId, other: HostId) -> (HostId, HostId) {
    (one.min(other), one.max(other))
}

#[cfg(test)]
mod tests;
