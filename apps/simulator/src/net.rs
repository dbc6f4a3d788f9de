//! A simulated network behind the product's `Network` trait, in place of the kernel's network.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickpath_net::{
    DatagramEndpoint, DatagramReceiver, DatagramSender, Interest, NetError, Network, Ready, Received,
    SendStatus, SocketPoller, StreamSocket,
};
use tickpath_simnet::{AddressInUse, ClosedBy, Datagram, HostId, SocketId, StreamError, StreamRead};
use tickpath_types::Nanos;

use crate::Timed;

/// Records datagrams as sent, before the network's faults, and the events of tapped connections.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    /// Datagrams sent to a group: time, group, bytes.
    pub(crate) to_groups: Vec<(Nanos, SocketAddrV4, Vec<u8>)>,
    /// Datagrams that the venue's unicast endpoint sent: retransmissions.
    pub(crate) answers: Vec<Timed<Vec<u8>>>,
    /// Hosts whose connections are tapped.
    pub(crate) hosts: BTreeSet<HostId>,
    /// Events at the tapped hosts' ends of their connections, each with the socket at that end.
    pub(crate) streams: Vec<(SocketId, StreamPart)>,
}

/// An event at one end of a connection.
#[derive(Debug)]
pub(crate) enum StreamPart {
    /// The host started to connect to this address.
    Connecting(SocketAddrV4),
    /// The connection is established.
    Connected,
    /// The network accepted these bytes.
    Sent(Vec<u8>),
    /// These bytes were received.
    Received(Vec<u8>),
    /// The host closed its end; contains the side that had already closed the connection, if any.
    Closed(Option<ClosedBy>),
}

impl Wires {
    fn tap(&mut self, host: HostId, id: SocketId, part: impl FnOnce() -> StreamPart) {
        if self.tap.hosts.contains(&host) {
            self.tap.streams.push((id, part()));
        }
    }

    fn close(&mut self, host: HostId, id: SocketId) {
        let closed_by = self.network.closed_by(id);
        self.tap(host, id, || StreamPart::Closed(closed_by));
        self.network.close(id);
    }
}

/// The network of all hosts, and its tap.
#[derive(Debug)]
pub struct Wires {
    /// The network.
    pub network: tickpath_simnet::Network,
    pub(crate) tap: Tap,
    /// The host whose unicast endpoint is tapped.
    pub(crate) venue: HostId,
}

/// The simulated network as seen by one host. Clones share one network.
#[derive(Clone, Debug)]
pub struct SimNetwork {
    wires: Arc<Mutex<Wires>>,
    host: HostId,
}

impl SimNetwork {
    /// Creates the network as seen by `host`.
    #[must_use]
    pub fn new(network: tickpath_simnet::Network, host: HostId) -> SimNetwork {
        let wires = Wires { network, tap: Tap::default(), venue: host };
        SimNetwork { wires: Arc::new(Mutex::new(wires)), host }
    }

    /// Returns the same network as seen by another host.
    #[must_use]
    pub fn of(&self, host: HostId) -> SimNetwork {
        SimNetwork { wires: Arc::clone(&self.wires), host }
    }

    /// Locks and returns the network with its tap.
    pub fn wires(&self) -> MutexGuard<'_, Wires> {
        // One thread uses the network: only a run that panicked leaves a poisoned lock.
        self.wires.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a connection and returns its socket id. The caller must close it: no `SimSocket` owns it.
    pub(crate) fn connect(&self, to: SocketAddrV4) -> SocketId {
        self.wires().network.connect(self.host, to)
    }

    fn socket(&self, id: SocketId) -> SimSocket {
        SimSocket { network: self.clone(), id }
    }
}

/// A socket of a [`SimNetwork`].
#[derive(Debug)]
pub struct SimSocket {
    network: SimNetwork,
    id: SocketId,
}

impl SimSocket {
    fn wires(&self) -> MutexGuard<'_, Wires> {
        self.network.wires()
    }
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        self.wires().close(self.network.host, self.id);
    }
}

impl Network for SimNetwork {
    type Socket = SimSocket;
    type Poller = SimPoller;
    type Sender = SimSender;
    type Receiver = SimSocket;
    type Endpoint = SimEndpoint;

    fn listen(&self, address: SocketAddrV4) -> Result<(SimSocket, SocketAddrV4), NetError> {
        let (id, address) = self.wires().network.listen(self.host, address).map_err(in_use)?;
        Ok((self.socket(id), address))
    }

    fn start_connecting(&self, address: SocketAddrV4) -> Result<SimSocket, NetError> {
        let mut wires = self.wires();
        let id = wires.network.connect(self.host, address);
        wires.tap(self.host, id, || StreamPart::Connecting(address));
        drop(wires);
        Ok(self.socket(id))
    }

    fn poller(&self, events_max: usize) -> io::Result<SimPoller> {
        Ok(SimPoller { network: self.clone(), events_max, next: 0, watched: Mutex::default() })
    }

    fn sender(&self, group: SocketAddrV4, interface: Ipv4Addr) -> Result<SimSender, NetError> {
        Ok(SimSender { network: self.clone(), from: SocketAddrV4::new(interface, 0), group })
    }

    fn receiver(&self, group: SocketAddrV4, _interface: Ipv4Addr) -> Result<SimSocket, NetError> {
        let id = self.wires().network.join(self.host, group);
        Ok(self.socket(id))
    }

    fn endpoint(&self, address: SocketAddrV4) -> Result<SimEndpoint, NetError> {
        let (id, address) = self.wires().network.bind(self.host, address).map_err(in_use)?;
        Ok(SimEndpoint { socket: self.socket(id), local_address: address })
    }
}

fn in_use(AddressInUse(address): AddressInUse) -> NetError {
    NetError::AddressInUse { address }
}

fn io_error(error: StreamError) -> io::Error {
    match error {
        StreamError::Refused => io::ErrorKind::ConnectionRefused.into(),
        StreamError::Reset => io::ErrorKind::ConnectionReset.into(),
        _ => io::ErrorKind::BrokenPipe.into(),
    }
}

impl StreamSocket for SimSocket {
    fn accept(&self) -> io::Result<(SimSocket, Option<SocketAddrV4>)> {
        let accepted = self.wires().network.accept(self.id);
        let (id, peer) = accepted.ok_or(io::ErrorKind::WouldBlock)?;
        Ok((self.network.socket(id), Some(peer)))
    }

    fn poll_connected(&self) -> io::Result<bool> {
        let mut wires = self.wires();
        let is_connected = wires.network.poll_connected(self.id).map_err(io_error)?;
        if is_connected {
            wires.tap(self.network.host, self.id, || StreamPart::Connected);
        }
        Ok(is_connected)
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<u64>)>> {
        let mut wires = self.wires();
        match wires.network.read(self.id, buffer).map_err(io_error)? {
            StreamRead::Bytes { count, kernel_ns } => {
                let read = &buffer[..count];
                wires.tap(self.network.host, self.id, || StreamPart::Received(read.to_vec()));
                Ok(Some((count, Some(kernel_ns))))
            }
            StreamRead::Empty => Ok(None),
            StreamRead::End => Ok(Some((0, None))),
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut wires = self.wires();
        match wires.network.write(self.id, bytes).map_err(io_error)? {
            0 if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            count => {
                wires.tap(self.network.host, self.id, || StreamPart::Sent(bytes[..count].to_vec()));
                Ok(count)
            }
        }
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match how {
            Shutdown::Write => self.wires().network.end_sending(self.id),
            Shutdown::Read => {}
            Shutdown::Both => self.wires().close(self.network.host, self.id),
        }
        Ok(())
    }
}

/// Polls sockets in registration order, beginning after the last one that the previous poll returned.
pub struct SimPoller {
    network: SimNetwork,
    events_max: usize,
    next: usize,
    watched: Mutex<Vec<(SocketId, u64)>>,
}

impl SimPoller {
    fn watched(&self) -> MutexGuard<'_, Vec<(SocketId, u64)>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SocketPoller<SimSocket> for SimPoller {
    fn add(&self, socket: &SimSocket, key: u64, _interest: Interest) -> io::Result<()> {
        self.watched().push((socket.id, key));
        Ok(())
    }

    fn remove(&self, socket: &SimSocket) -> io::Result<()> {
        let mut watched = self.watched();
        let place = watched.iter().position(|(id, _)| *id == socket.id).ok_or(io::ErrorKind::NotFound)?;
        watched.remove(place);
        Ok(())
    }

    fn poll(&mut self) -> io::Result<impl Iterator<Item = Ready>> {
        let mut ready = Vec::new();
        let watched = self.watched();
        let wires = self.network.wires();
        let count = watched.len();
        let mut next = self.next;
        for offset in 0..count {
            let (id, key) = watched[(self.next + offset) % count];
            if wires.network.is_readable(id) {
                let is_closed = wires.network.closed_by(id).is_some();
                ready.push(Ready { key, is_readable: true, is_writable: false, is_closed });
                next = (self.next + offset + 1) % count;
                if ready.len() == self.events_max {
                    break;
                }
            }
        }
        drop((watched, wires));
        self.next = next;
        Ok(ready.into_iter())
    }
}

/// Sends datagrams to a multicast group of a [`SimNetwork`].
pub struct SimSender {
    network: SimNetwork,
    from: SocketAddrV4,
    group: SocketAddrV4,
}

impl DatagramSender for SimSender {
    fn send(&mut self, datagram: &[u8]) -> io::Result<SendStatus> {
        let mut wires = self.network.wires();
        let now = wires.network.now();
        wires.tap.to_groups.push((now, self.group, datagram.to_vec()));
        wires.network.send_to_group(self.network.host, self.from, self.group, datagram);
        Ok(SendStatus::Sent)
    }
}

impl DatagramReceiver for SimSocket {
    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let Some(datagram) = self.wires().network.receive(self.id) else { return Ok(None) };
        let Datagram { kernel_ns, from, bytes } = datagram;
        let len = bytes.len().min(buffer.len());
        buffer[..len].copy_from_slice(&bytes[..len]);
        let (kernel_ns, is_truncated) = (Some(kernel_ns), len < bytes.len());
        Ok(Some(Received { len, kernel_ns, from, is_truncated }))
    }

    fn drop_count(&self) -> u32 {
        self.wires().network.dropped(self.id)
    }
}

/// Sends and receives unicast datagrams on a [`SimNetwork`].
pub struct SimEndpoint {
    socket: SimSocket,
    local_address: SocketAddrV4,
}

impl DatagramEndpoint for SimEndpoint {
    fn send_to(&mut self, datagram: &[u8], to: SocketAddrV4) -> io::Result<SendStatus> {
        let mut wires = self.socket.wires();
        if self.socket.network.host == wires.venue {
            let now = wires.network.now();
            wires.tap.answers.push(Timed { at: now, value: datagram.to_vec() });
        }
        wires.network.send_to(self.socket.id, to, datagram);
        Ok(SendStatus::Sent)
    }

    fn recv_from(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        self.socket.recv(buffer)
    }

    fn local_address(&self) -> SocketAddrV4 {
        self.local_address
    }
}
