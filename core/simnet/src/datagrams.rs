//! Datagrams, multicast and unicast.

use core::net::SocketAddrV4;
use std::cmp::Reverse;

use tickpath_types::Nanos;

use super::socket::{AddressInUse, HostId, Inbox, Socket, SocketId};
use super::{DatagramFaults, Network, UNICAST};

/// Capacity of a socket's buffer for unread datagrams, in bytes; further datagrams are dropped.
pub(super) const INBOX_BYTES_MAX: usize = 256 << 10;

/// A received datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Time of arrival, in nanoseconds of the receiver's clock.
    pub kernel_ns: u64,
    /// Address of the sender.
    pub from: SocketAddrV4,
    /// Bytes of the datagram.
    pub bytes: Vec<u8>,
}

impl Network {
    /// Creates a socket that receives the datagrams of a multicast group.
    pub fn join(&mut self, host: HostId, group: SocketAddrV4) -> SocketId {
        self.insert(Socket::Inbox(Inbox::new(host, group, true)))
    }

    /// Creates a datagram socket at an address; port 0 takes a free port. Returns the socket and its address.
    ///
    /// # Errors
    /// [`AddressInUse`] if another socket is bound to the address.
    pub fn bind(
        &mut self,
        host: HostId,
        address: SocketAddrV4,
    ) -> Result<(SocketId, SocketAddrV4), AddressInUse> {
        let address = self.assign_port(address);
        if self.inbox_at(address).is_some() {
            return Err(AddressInUse(address));
        }
        Ok((self.insert(Socket::Inbox(Inbox::new(host, address, false))), address))
    }

    /// Sends a datagram to all members of a multicast group.
    pub fn send_to_group(&mut self, host: HostId, from: SocketAddrV4, group: SocketAddrV4, bytes: &[u8]) {
        let is_member = |socket: &Socket| matches!(socket, Socket::Inbox(inbox) if inbox.is_group && inbox.address == group);
        let members = self.ids(is_member);
        let faults = self.datagram_faults.get(&group).copied().unwrap_or(DatagramFaults::NONE);
        for member in members {
            self.deliver(host, from, member, bytes, faults);
        }
    }

    /// Sends a datagram to one address.
    pub fn send_to(&mut self, from: SocketId, to: SocketAddrV4, bytes: &[u8]) {
        let Some(Socket::Inbox(Inbox { host, address, .. })) = self.sockets.get(&from) else { return };
        let (host, address) = (*host, *address);
        let faults = self.datagram_faults.get(&UNICAST).copied().unwrap_or(DatagramFaults::NONE);
        match self.inbox_at(to) {
            Some(receiver) => self.deliver(host, address, receiver, bytes, faults),
            None => self.counters.datagrams_unreceived += 1,
        }
    }

    /// Returns the next datagram that has arrived, if any.
    pub fn receive(&mut self, id: SocketId) -> Option<Datagram> {
        let now = self.now;
        let Some(Socket::Inbox(inbox)) = self.sockets.get_mut(&id) else { return None };
        let entry = inbox.waiting.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((at, _), (from, bytes)) = entry.remove_entry();
        inbox.bytes -= bytes.len();
        let host = inbox.host;
        Some(Datagram { kernel_ns: self.stamp(host, at), from, bytes })
    }

    /// Number of datagrams to this socket that were dropped because its buffer was full.
    #[must_use]
    pub fn dropped(&self, id: SocketId) -> u32 {
        if let Some(Socket::Inbox(inbox)) = self.sockets.get(&id) { inbox.dropped } else { 0 }
    }

    pub(super) fn inbox_at(&self, address: SocketAddrV4) -> Option<SocketId> {
        let is_match = |socket: &Socket| matches!(socket, Socket::Inbox(inbox) if !inbox.is_group && inbox.address == address);
        self.sockets.iter().find(|(_, socket)| is_match(socket)).map(|(id, _)| *id)
    }

    fn deliver(
        &mut self,
        from_host: HostId,
        from: SocketAddrV4,
        to: SocketId,
        bytes: &[u8],
        faults: DatagramFaults,
    ) {
        let Some(host) = self.sockets.get(&to).map(Socket::host) else { return };
        self.counters.datagrams += 1;
        if !self.can_reach(from_host, host) {
            self.counters.datagrams_cut += 1;
            return;
        }
        if self.rng.chance_ppm(faults.loss_ppm) {
            self.counters.datagrams_lost += 1;
            return;
        }
        let mut copies = 1;
        if self.rng.chance_ppm(faults.duplicate_ppm) {
            self.counters.datagrams_duplicated += 1;
            copies = 2;
        }
        for _ in 0..copies {
            let mut delay = faults.delay_min.0 + self.rng.exponential(faults.jitter.0);
            if self.rng.chance_ppm(faults.spike_ppm) {
                self.counters.datagrams_delayed += 1;
                delay += self.rng.below(faults.spike_max.0);
            }
            self.arrive(to, Nanos(self.now.0 + delay), from, bytes);
        }
    }

    fn arrive(&mut self, to: SocketId, at: Nanos, from: SocketAddrV4, bytes: &[u8]) {
        let Some(Socket::Inbox(inbox)) = self.sockets.get_mut(&to) else { return };
        if inbox.bytes + bytes.len() > INBOX_BYTES_MAX {
            inbox.dropped += 1;
            self.counters.datagrams_overflowed += 1;
            return;
        }
        if inbox.waiting.last_key_value().is_some_and(|((latest, _), _)| *latest > at) {
            self.counters.datagrams_reordered += 1;
        }
        inbox.bytes += bytes.len();
        inbox.waiting.insert((at, inbox.next_order), (from, bytes.to_vec()));
        inbox.next_order += 1;
        self.arrivals.push(Reverse(at));
    }
}
