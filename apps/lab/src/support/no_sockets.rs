//! A network without sockets: no connection and no datagram arrives, and sent datagrams are copied to memory.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4};
use std::sync::Arc;

use tickpath_lockfree::Counter;
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, END_OF_SESSION};
use tickpath_net::{
    DatagramEndpoint, DatagramReceiver, DatagramSender, Interest, NetError, Network, Ready, Received,
    SendStatus, SocketPoller, StreamSocket,
};

/// Number of datagrams that a line's memory holds; later ones overwrite the oldest.
const DATAGRAMS: usize = 256;
/// Position of the message count, big-endian, in the header of a MoldUDP64 packet.
const MESSAGE_COUNT: std::ops::Range<usize> = 18..20;

/// A network that consists of memory only.
#[derive(Clone, Debug, Default)]
pub(crate) struct NoSockets {
    /// Number of market data messages sent on both lines together, by the headers of their packets.
    pub(crate) messages: Arc<Counter>,
}

/// A listener without connections, and the type of its connections.
#[derive(Debug)]
pub(crate) struct Listener;

/// A poller whose sockets are never ready.
pub(crate) struct NeverReady;

/// A line of market data in memory.
pub(crate) struct MemoryLine {
    datagrams: Box<[[u8; DATAGRAM_LEN_MAX]]>,
    next: usize,
    messages: Arc<Counter>,
}

/// A receiver, or an endpoint, to which no datagram is sent.
pub(crate) struct Silent(SocketAddrV4);

impl Network for NoSockets {
    type Socket = Listener;
    type Poller = NeverReady;
    type Sender = MemoryLine;
    type Receiver = Silent;
    type Endpoint = Silent;

    fn listen(&self, address: SocketAddrV4) -> Result<(Listener, SocketAddrV4), NetError> {
        Ok((Listener, address))
    }

    fn start_connecting(&self, address: SocketAddrV4) -> Result<Listener, NetError> {
        Err(NetError::Connect { address, source: ErrorKind::ConnectionRefused.into() })
    }

    fn poller(&self, _events_max: usize) -> io::Result<NeverReady> {
        Ok(NeverReady)
    }

    fn sender(&self, _group: SocketAddrV4, _interface: Ipv4Addr) -> Result<MemoryLine, NetError> {
        let datagrams = vec![[1; DATAGRAM_LEN_MAX]; DATAGRAMS].into_boxed_slice();
        Ok(MemoryLine { datagrams, next: 0, messages: Arc::clone(&self.messages) })
    }

    fn receiver(&self, group: SocketAddrV4, _interface: Ipv4Addr) -> Result<Silent, NetError> {
        Ok(Silent(group))
    }

    fn endpoint(&self, address: SocketAddrV4) -> Result<Silent, NetError> {
        Ok(Silent(address))
    }
}

impl StreamSocket for Listener {
    fn accept(&self) -> io::Result<(Listener, Option<SocketAddrV4>)> {
        Err(ErrorKind::WouldBlock.into())
    }

    fn poll_connected(&self) -> io::Result<bool> {
        Ok(false)
    }

    fn receive(&self, _buffer: &mut [u8]) -> io::Result<Option<(usize, Option<u64>)>> {
        Ok(None)
    }

    fn send(&self, _bytes: &[u8]) -> io::Result<usize> {
        Err(ErrorKind::WouldBlock.into())
    }

    fn shutdown(&self, _how: Shutdown) -> io::Result<()> {
        Ok(())
    }
}

impl SocketPoller<Listener> for NeverReady {
    fn add(&self, _socket: &Listener, _key: u64, _interest: Interest) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, _socket: &Listener) -> io::Result<()> {
        Ok(())
    }

    fn poll(&mut self) -> io::Result<impl Iterator<Item = Ready>> {
        Ok(std::iter::empty())
    }
}

impl DatagramSender for MemoryLine {
    fn send(&mut self, datagram: &[u8]) -> io::Result<SendStatus> {
        let (Some(place), Some(count)) =
            (self.datagrams[self.next].get_mut(..datagram.len()), datagram.get(MESSAGE_COUNT))
        else {
            return Err(ErrorKind::InvalidInput.into());
        };
        place.copy_from_slice(datagram);
        self.next = (self.next + 1) % DATAGRAMS;
        match u16::from_be_bytes([count[0], count[1]]) {
            END_OF_SESSION => {}
            count => self.messages.add(count.into()),
        }
        Ok(SendStatus::Sent)
    }
}

impl DatagramReceiver for Silent {
    fn recv(&mut self, _buffer: &mut [u8]) -> io::Result<Option<Received>> {
        Ok(None)
    }

    fn drop_count(&self) -> u32 {
        0
    }
}

impl DatagramEndpoint for Silent {
    fn send_to(&mut self, _datagram: &[u8], _to: SocketAddrV4) -> io::Result<SendStatus> {
        Ok(SendStatus::Sent)
    }

    fn recv_from(&mut self, _buffer: &mut [u8]) -> io::Result<Option<Received>> {
        Ok(None)
    }

    fn local_address(&self) -> SocketAddrV4 {
        self.0
    }
}
