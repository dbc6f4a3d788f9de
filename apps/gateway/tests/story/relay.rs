//! A relay on the way to the venue's FIX door, that can hold back what goes one way or the other, and cut.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the threads look.
const LOOK: Duration = Duration::from_millis(1);

#[derive(Default)]
struct Orders {
    /// What the client sends is lost.
    drops_requests: AtomicBool,
    /// What the venue sends is lost.
    drops_answers: AtomicBool,
    /// How often all connections were to be cut.
    cuts: AtomicUsize,
    is_over: AtomicBool,
    /// Bytes of the client that were lost.
    dropped: AtomicUsize,
}

/// A relay that runs until it is dropped.
pub struct Relay {
    pub address: SocketAddrV4,
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    pub fn to(venue: SocketAddrV4) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let SocketAddr::V4(address) = listener.local_addr().unwrap() else { panic!("an IPv4 address") };
        listener.set_nonblocking(true).unwrap();
        let orders = Arc::new(Orders::default());
        let own = Arc::clone(&orders);
        let thread = std::thread::spawn(move || {
            let mut threads = Vec::new();
            while !own.is_over.load(Ordering::Acquire) {
                let Ok((client, _)) = listener.accept() else {
                    std::thread::sleep(LOOK);
                    continue;
                };
                let Ok(server) = TcpStream::connect(venue) else { continue };
                let own = Arc::clone(&own);
                threads.push(std::thread::spawn(move || carry(&client, &server, &own)));
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        Relay { address, orders, thread: Some(thread) }
    }

    pub fn drop_requests(&self, is_on: bool) {
        self.orders.drops_requests.store(is_on, Ordering::Release);
    }

    pub fn drop_answers(&self, is_on: bool) {
        self.orders.drops_answers.store(is_on, Ordering::Release);
    }

    /// Bytes of the client that were lost.
    pub fn dropped(&self) -> usize {
        self.orders.dropped.load(Ordering::Acquire)
    }

    /// Cuts all connections; new ones are carried again, both ways.
    pub fn cut(&self) {
        self.orders.cuts.fetch_add(1, Ordering::AcqRel);
        self.drop_requests(false);
        self.drop_answers(false);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.orders.is_over.store(true, Ordering::Release);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Carries one connection until an end closes it, or it is cut.
fn carry(client: &TcpStream, server: &TcpStream, orders: &Orders) {
    let cuts = orders.cuts.load(Ordering::Acquire);
    for stream in [client, server] {
        stream.set_nonblocking(true).unwrap();
        stream.set_nodelay(true).unwrap();
    }
    let is_cut = || orders.cuts.load(Ordering::Acquire) != cuts || orders.is_over.load(Ordering::Acquire);
    while !is_cut() {
        let there = pass(client, server, &orders.drops_requests, &orders.dropped);
        let back = pass(server, client, &orders.drops_answers, &AtomicUsize::new(0));
        match (there, back) {
            (Some(0), Some(0)) => std::thread::sleep(LOOK),
            (Some(_), Some(_)) => {}
            _ => break,
        }
    }
    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
}

/// What has come from one end goes to the other, or nowhere; how much, none at the end. What is sent after `is_dropped` was set
/// is dropped, however long this thread was put aside meanwhile.
fn pass(
    mut from: &TcpStream,
    mut to: &TcpStream,
    is_dropped: &AtomicBool,
    dropped: &AtomicUsize,
) -> Option<usize> {
    let mut buffer = [0; 16 << 10];
    let count = match from.read(&mut buffer) {
        Ok(0) => return None,
        Ok(count) => count,
        Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(0),
        Err(_) => return None,
    };
    if is_dropped.load(Ordering::Acquire) {
        dropped.fetch_add(count, Ordering::AcqRel);
        return Some(count);
    }
    let mut rest = &buffer[..count];
    while !rest.is_empty() {
        match to.write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK),
            Err(_) => return None,
        }
    }
    Some(count)
}
