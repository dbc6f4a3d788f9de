//! A network in memory that delays, loses, repeats, reorders, cuts and resets, all from one seed.
//!
//! Hosts have sockets: some listen, some are one end of a connection, some receive what is sent to a group, some
//! exchange datagrams. Time is an argument: what was sent arrives when [`Network::advance`] has come to its time.
//! Nothing here performs IO or reads a clock. The simulator and tests run the system on it.

mod datagrams;
mod faults;
mod socket;
mod streams;

use core::net::{Ipv4Addr, SocketAddrV4};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use tickpath_types::{Draw, Nanos};

pub use datagrams::Datagram;
pub use faults::{DatagramFaults, NetworkCounters, StreamFaults};
use socket::Socket;
pub use socket::{AddressInUse, Gone, HostId, SocketId};
pub use streams::{StreamError, StreamRead};

/// How a host's process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// The process alone: the host closes its connections, and the other ends hear of it.
    Process,
    /// The host: nobody is told, until it is back and does not know the connections any more.
    Power,
}

/// What a [watched](Network::watch_streams_of) host's connections came to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamNote {
    /// When.
    pub at: Nanos,
    /// The end of the connection that is on the other host.
    pub peer: SocketId,
    /// What.
    pub kind: StreamNoteKind,
}

/// What came to be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamNoteKind {
    /// Bytes were read.
    Read {
        /// As the reader was told, in nanoseconds of the host's clock.
        kernel_ns: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The end of the bytes, or a reset, was there to be read; or the host closed its end.
    Gone,
}

/// The network and all its hosts.
#[derive(Debug)]
pub struct Network {
    now: Nanos,
    draw: Draw,
    stream_faults: StreamFaults,
    /// By group; other datagrams have those of the unspecified address.
    datagram_faults: BTreeMap<SocketAddrV4, DatagramFaults>,
    counters: NetworkCounters,
    sockets: BTreeMap<SocketId, Socket>,
    next_socket: u32,
    next_port: u16,
    /// Times at which something arrives.
    arrivals: BinaryHeap<Reverse<Nanos>>,
    /// Pairs that cannot reach each other.
    cuts: BTreeSet<(HostId, HostId)>,
    /// Hosts without power.
    off: BTreeSet<HostId>,
    /// What is added to the time on a host's clock, from when on.
    clocks: BTreeMap<HostId, Vec<(Nanos, i64)>>,
    watched: BTreeSet<HostId>,
    /// Ends of watched hosts that will be seen to be gone.
    going: Vec<(Nanos, SocketId)>,
    notes: Vec<StreamNote>,
}

/// The place of the faults of datagrams that go to no group.
const UNICAST: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
/// Ports that are given away when none is asked for.
const FIRST_FREE_PORT: u16 = 40_000;

impl Network {
    /// A network without hosts on which nothing goes wrong.
    #[must_use]
    pub fn new(seed: u64, now: Nanos) -> Network {
        Network {
            now,
            draw: Draw::new(seed),
            stream_faults: StreamFaults::NONE,
            datagram_faults: BTreeMap::new(),
            counters: NetworkCounters::default(),
            sockets: BTreeMap::new(),
            next_socket: 1,
            next_port: FIRST_FREE_PORT,
            arrivals: BinaryHeap::new(),
            cuts: BTreeSet::new(),
            off: BTreeSet::new(),
            clocks: BTreeMap::new(),
            watched: BTreeSet::new(),
            going: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Lets time pass; it never goes back.
    pub fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        while self.arrivals.peek().is_some_and(|at| at.0 <= self.now) {
            self.arrivals.pop();
        }
        self.note_gone();
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// When the next thing arrives that has not yet.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Nanos> {
        self.arrivals.peek().map(|at| at.0)
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> &NetworkCounters {
        &self.counters
    }

    /// What goes wrong with connections from now on.
    pub fn set_stream_faults(&mut self, faults: StreamFaults) {
        self.stream_faults = faults;
    }

    /// What goes wrong with datagrams to a group from now on, or with those to no group when `None`.
    pub fn set_datagram_faults(&mut self, group: Option<SocketAddrV4>, faults: DatagramFaults) {
        self.datagram_faults.insert(group.unwrap_or(UNICAST), faults);
    }

    /// From now on two hosts cannot reach each other: datagrams are lost, what connections carry waits.
    pub fn cut(&mut self, one: HostId, other: HostId) {
        if self.cuts.insert(pair(one, other)) {
            self.counters.partitions += 1;
        }
    }

    /// From now on they can again: what connections carry arrives when it is sent again.
    pub fn heal(&mut self, one: HostId, other: HostId) {
        if self.cuts.remove(&pair(one, other)) {
            self.release_segments();
        }
    }

    /// From now on a host's clock is ahead of the time by so much, in nanoseconds.
    pub fn set_clock(&mut self, host: HostId, ahead_ns: i64) {
        self.clocks.entry(host).or_default().push((self.now, ahead_ns));
    }

    /// What a host's clock reads now.
    #[must_use]
    pub fn clock(&self, host: HostId) -> Nanos {
        Nanos(self.stamp(host, self.now))
    }

    /// What the connections of a host come to see is noted from now on.
    pub fn watch_streams_of(&mut self, host: HostId) {
        self.watched.insert(host);
    }

    /// What was noted since the last call, in order of time.
    pub fn take_notes(&mut self) -> Vec<StreamNote> {
        std::mem::take(&mut self.notes)
    }

    /// A host's process ends, and with it all its sockets.
    pub fn kill(&mut self, host: HostId, death: Death) {
        let ids = self.ids(|socket| socket.host() == host);
        match death {
            Death::Process => {
                self.counters.deaths += 1;
                ids.into_iter().for_each(|id| self.close(id));
            }
            Death::Power => {
                self.counters.power_losses += 1;
                self.off.insert(host);
                for id in ids {
                    self.note_gone_now(id);
                    self.sockets.remove(&id);
                }
            }
        }
    }

    /// A host that lost power is back. Whoever has sent something to what it was hears that it is no more.
    pub fn revive(&mut self, host: HostId) {
        if self.off.remove(&host) {
            self.reset_widows();
        }
    }

    /// Closes a socket, whatever it is; nothing when it is gone already.
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

    /// The sockets that are such, in the order of their ids.
    fn ids(&self, is_such: impl Fn(&Socket) -> bool) -> Vec<SocketId> {
        self.sockets.iter().filter(|(_, socket)| is_such(socket)).map(|(id, _)| *id).collect()
    }

    fn take_port(&mut self, address: SocketAddrV4) -> SocketAddrV4 {
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
        !self.cuts.contains(&pair(one, other)) && !self.off.contains(&one) && !self.off.contains(&other)
    }

    /// What a host's clock read at `at`.
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
