//! An in-memory network: passes one peer's bytes to one server connection piece by piece until it ends.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4};
use std::sync::Mutex;

use tickpath_net::{
    Interest, MulticastReceiver, MulticastSender, NetError, Network, Ready, SocketPoller, StreamSocket,
    UdpEndpoint,
};
use tickpath_types::Nanos;
use tickpath_web::{HttpResponse, ServerEvent, WebAcceptor, WebLimits};

/// Upper bound of calls until a connection must have ended.
const CALLS_MAX: usize = 2_000;
const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4_000);

/// A socket that returns the bytes of one peer in pieces.
#[derive(Debug)]
pub struct Socket {
    bytes: Mutex<VecDeque<u8>>,
    piece: usize,
}

impl Socket {
    fn new(bytes: Vec<u8>) -> Socket {
        let piece = 1 + bytes.len() % 7 * 40;
        Socket { bytes: Mutex::new(bytes.into()), piece }
    }
}

thread_local! {
    /// The bytes of this thread's next peer; a listening socket accepts it.
    static NEXT: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

impl StreamSocket for Socket {
    fn accept(&self) -> io::Result<(Self, Option<SocketAddrV4>)> {
        let bytes = NEXT.take().ok_or(io::ErrorKind::WouldBlock)?;
        Ok((Socket::new(bytes), Some(PEER)))
    }

    fn poll_connected(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<u64>)>> {
        let mut bytes = self.bytes.lock().unwrap();
        let count = buffer.len().min(self.piece).min(bytes.len());
        for (place, byte) in buffer.iter_mut().zip(bytes.drain(..count)) {
            *place = byte;
        }
        Ok(Some((count, None)))
    }

    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn shutdown(&self, _: Shutdown) -> io::Result<()> {
        Ok(())
    }
}

/// A poller that reports nothing; the test polls each socket.
pub struct NoPoller;

impl<S> SocketPoller<S> for NoPoller {
    fn add(&self, _: &S, _: u64, _: Interest) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, _: &S) -> io::Result<()> {
        Ok(())
    }

    fn poll(&mut self) -> io::Result<impl Iterator<Item = Ready>> {
        Ok(std::iter::empty())
    }
}

/// The in-memory network.
#[derive(Clone, Debug)]
pub struct Memory;

impl Network for Memory {
    type Socket = Socket;
    type Poller = NoPoller;
    type Sender = MulticastSender;
    type Receiver = MulticastReceiver;
    type Endpoint = UdpEndpoint;

    fn listen(&self, address: SocketAddrV4) -> Result<(Socket, SocketAddrV4), NetError> {
        Ok((Socket::new(Vec::new()), address))
    }

    fn start_connecting(&self, address: SocketAddrV4) -> Result<Socket, NetError> {
        self.listen(address).map(|(socket, _)| socket)
    }

    fn poller(&self, _: usize) -> io::Result<NoPoller> {
        Ok(NoPoller)
    }

    fn sender(&self, _: SocketAddrV4, _: Ipv4Addr) -> Result<MulticastSender, NetError> {
        unreachable!("streams alone")
    }

    fn receiver(&self, _: SocketAddrV4, _: Ipv4Addr) -> Result<MulticastReceiver, NetError> {
        unreachable!("streams alone")
    }

    fn endpoint(&self, _: SocketAddrV4) -> Result<UdpEndpoint, NetError> {
        unreachable!("streams alone")
    }
}

/// Valid inputs of a peer, to be mutated.
pub fn seeds() -> Vec<Vec<u8>> {
    let upgrade = "GET /ws/api/v2?a=b HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let frames: [&[u8]; 5] = [
        &[0x81, 0x85, 1, 2, 3, 4, b'h' ^ 1, b'e' ^ 2, b'l' ^ 3, b'l' ^ 4, b'o' ^ 1],
        &[0x01, 0x81, 0, 0, 0, 0, b'a', 0x89, 0x80, 0, 0, 0, 0, 0x80, 0x81, 0, 0, 0, 0, b'b'],
        &[0x82, 0xfe, 0, 126, 0, 0, 0, 0],
        &[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8],
        &[0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0],
    ];
    let mut seeds: Vec<Vec<u8>> = frames.iter().map(|frame| [upgrade.as_bytes(), frame].concat()).collect();
    seeds.push(frames[..4].concat());
    for request in [
        "GET /api/v2/public/get_time?x=%41+b&&y=%zz HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.0\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\nbodyHEAD / HTTP/1.1\r\nConnection: close\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        seeds.push(request.as_bytes().to_vec());
    }
    seeds
}

/// A server on the in-memory network.
pub fn acceptor() -> WebAcceptor<Memory> {
    let home = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
    WebAcceptor::bind(Memory, home, None, WebLimits::server()).unwrap()
}

/// Runs a connection until it ends; returns the number of its events.
pub fn carry(acceptor: &mut WebAcceptor<Memory>, bytes: Vec<u8>) -> usize {
    let limits = WebLimits::server();
    NEXT.set(Some(bytes));
    let mut now = Nanos::from_secs(1);
    let mut connection = acceptor.accept(now).unwrap().unwrap();
    let mut events = 0;
    for call in 0..CALLS_MAX {
        let mut answer = 0;
        match connection.receive(now) {
            Some(ServerEvent::End(_)) => {
                assert!(connection.receive(now).is_none() && !connection.is_websocket());
                return events;
            }
            Some(ServerEvent::Request(request)) => {
                assert!(request.body().len() <= limits.body_max);
                let _ = (request.query_pairs().count(), request.headers().count(), request.method());
                answer = 1;
            }
            Some(ServerEvent::Upgrade(request)) => {
                assert_eq!(request.header("sec-websocket-version"), Some("13"));
                answer = 2;
            }
            Some(ServerEvent::Message(_)) => {}
            None => {
                now = Nanos(now.0 + 1_000_000);
                continue;
            }
        }
        events += 1;
        match answer {
            1 => connection.respond(now, &HttpResponse::json(200, b"{}")),
            2 if call % 3 == 0 => connection.respond(now, &HttpResponse::json(404, b"")),
            2 => connection.accept_upgrade(),
            _ => {}
        }
    }
    panic!("the connection does not end");
}
