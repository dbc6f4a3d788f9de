//! A TCP proxy that loses data at a test's request.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::ports::listen;

/// Direction of bytes through a [`FaultProxy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client.
    ToServer,
    /// From the server.
    ToClient,
}

/// Selects the read at which the connection is cut: returns true for that read's bytes.
pub type BytePredicate = fn(&[u8]) -> bool;

#[derive(Debug, Default)]
struct Faults {
    drops: AtomicBool,
    dropped: AtomicUsize,
    cut_at: Mutex<Option<BytePredicate>>,
}

#[derive(Debug)]
struct Shared {
    server: Mutex<SocketAddrV4>,
    /// The sockets of both ends of all connections since the last cut.
    ends: Mutex<Vec<TcpStream>>,
    to_server: Faults,
    to_client: Faults,
    is_stopped: AtomicBool,
}

/// A proxy that forwards connections to a server until it is dropped.
#[derive(Debug)]
pub struct FaultProxy {
    /// The proxy's address.
    pub address: SocketAddrV4,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl FaultProxy {
    /// Starts a proxy in front of `server`.
    #[must_use]
    pub fn to(server: SocketAddrV4) -> FaultProxy {
        let (listener, address) = listen();
        let shared = Arc::new(Shared {
            server: Mutex::new(server),
            ends: Mutex::default(),
            to_server: Faults::default(),
            to_client: Faults::default(),
            is_stopped: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if own.is_stopped.load(Ordering::Acquire) {
                    break;
                }
                forward(client, &own);
            }
        });
        FaultProxy { address, shared, thread: Some(thread) }
    }

    fn faults(&self, direction: Direction) -> &Faults {
        self.shared.faults(direction)
    }

    /// Sets whether the bytes in one direction are dropped from now on.
    pub fn drop_bytes(&self, direction: Direction, is_on: bool) {
        self.faults(direction).drops.store(is_on, Ordering::Release);
    }

    /// Number of bytes dropped so far.
    #[must_use]
    pub fn dropped(&self, direction: Direction) -> usize {
        self.faults(direction).dropped.load(Ordering::Acquire)
    }

    /// Cuts the connection once, at the next read that `predicate` selects; the bytes of that read are lost.
    pub fn cut_at(&self, direction: Direction, predicate: BytePredicate) {
        *self.faults(direction).cut_at.lock().unwrap() = Some(predicate);
    }

    /// Cuts all connections, and forwards those that follow without dropping bytes.
    pub fn cut(&self) {
        for end in self.shared.ends.lock().unwrap().drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
        self.drop_bytes(Direction::ToServer, false);
        self.drop_bytes(Direction::ToClient, false);
    }

    /// Forwards new connections to another server, and cuts the old ones.
    pub fn redirect_to(&self, server: SocketAddrV4) {
        *self.shared.server.lock().unwrap() = server;
        self.cut();
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Release);
        // Wake the accept loop, which then ends.
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().map(JoinHandle::join);
        self.cut();
    }
}

impl Shared {
    fn faults(&self, direction: Direction) -> &Faults {
        match direction {
            Direction::ToServer => &self.to_server,
            Direction::ToClient => &self.to_client,
        }
    }
}

/// Forwards one connection with two threads, which end with it.
fn forward(client: TcpStream, shared: &Arc<Shared>) {
    let server = *shared.server.lock().unwrap();
    let Ok(server) = TcpStream::connect(server) else { return };
    for end in [&client, &server] {
        end.set_nodelay(true).unwrap();
    }
    for (from, to, direction) in
        [(&client, &server, Direction::ToServer), (&server, &client, Direction::ToClient)]
    {
        let (from, to, shared) = (from.try_clone().unwrap(), to.try_clone().unwrap(), Arc::clone(shared));
        thread::spawn(move || forward_bytes(from, to, shared.faults(direction)));
    }
    shared.ends.lock().unwrap().extend([client, server]);
}

fn forward_bytes(mut from: TcpStream, mut to: TcpStream, faults: &Faults) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let bytes = &buffer[..count];
        if faults.cut_at.lock().unwrap().take_if(|predicate| predicate(bytes)).is_some() {
            break;
        }
        // Read the flag after the bytes: those sent after the fault began are dropped, even if this thread
        // was paused.
        if faults.drops.load(Ordering::Acquire) {
            faults.dropped.fetch_add(count, Ordering::AcqRel);
        } else if to.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{connect, wait_until};

    #[test]
    fn bytes_are_forwarded_dropped_and_cut() {
        let (server, address) = listen();
        let proxy = FaultProxy::to(address);
        let mut client = connect(proxy.address);
        let (mut end, _) = server.accept().unwrap();
        let mut bytes = [0; 3];
        client.write_all(b"one").unwrap();
        end.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"one");

        proxy.drop_bytes(Direction::ToServer, true);
        client.write_all(b"lost").unwrap();
        wait_until("the loss", || proxy.dropped(Direction::ToServer) == 4);
        end.write_all(b"two").unwrap();
        client.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"two");
        proxy.cut();
        assert!(!client.read(&mut bytes).is_ok_and(|count| count > 0));

        let mut client = connect(proxy.address);
        let (mut end, _) = server.accept().unwrap();
        proxy.cut_at(Direction::ToClient, |bytes| bytes == b"end");
        end.write_all(b"end").unwrap();
        assert!(!client.read(&mut bytes).is_ok_and(|count| count > 0));
    }
}
