//! A proxy to the venue that breaks connections with a reset instead of an orderly end.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::libc::linger;
use nix::sys::socket::{setsockopt, sockopt};
use tickpath_test_support::listen_nonblocking;

/// A proxy for one connection.
pub struct Cable {
    pub address: SocketAddrV4,
    breaks: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Cable {
    /// Starts a proxy to the address of a WebSocket URL.
    pub fn to(url: &str) -> Cable {
        let venue = url.trim_start_matches("ws://").split('/').next().unwrap().to_owned();
        let (listener, address) = listen_nonblocking();
        let (breaks, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let flags = (Arc::clone(&breaks), Arc::clone(&is_over));
        let thread = thread::spawn(move || carry(&listener, &venue, &flags.0, &flags.1));
        Cable { address, breaks, is_over, thread: Some(thread) }
    }

    /// Breaks the connection with the client's next data.
    pub fn break_next(&self) {
        self.breaks.store(true, Ordering::Relaxed);
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

fn carry(listener: &TcpListener, venue: &str, breaks: &AtomicBool, is_over: &AtomicBool) {
    let mut ends: Option<(TcpStream, TcpStream)> = None;
    let mut buffer = [0; 4096];
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(1));
        let Some((client, venue)) = &mut ends else {
            let Ok((client, _)) = listener.accept() else { continue };
            let venue = TcpStream::connect(venue).unwrap();
            client.set_nonblocking(true).unwrap();
            venue.set_nonblocking(true).unwrap();
            ends = Some((client, venue));
            continue;
        };
        let Some(said) = read(client, &mut buffer) else { return };
        if said > 0 && breaks.load(Ordering::Relaxed) {
            // With a linger time of zero, a close resets the connection.
            setsockopt(client, sockopt::Linger, &linger { l_onoff: 1, l_linger: 0 }).unwrap();
            return;
        }
        venue.write_all(&buffer[..said]).unwrap();
        let Some(heard) = read(venue, &mut buffer) else { return };
        client.write_all(&buffer[..heard]).unwrap();
    }
}

/// Reads the available bytes; `None` once the peer has disconnected.
fn read(end: &mut TcpStream, buffer: &mut [u8]) -> Option<usize> {
    match end.read(buffer) {
        Ok(0) => None,
        Ok(count) => Some(count),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Some(0),
        Err(_) => None,
    }
}
