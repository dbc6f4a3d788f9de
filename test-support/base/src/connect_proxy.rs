//! An HTTP CONNECT proxy, as used in company networks.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::ports::listen;

/// A proxy that forwards every connection to one address, independent of the CONNECT request. Once dropped,
/// it accepts no more connections, but forwards the open ones until they end.
#[derive(Debug)]
pub struct ConnectProxy {
    /// The proxy's address.
    pub address: SocketAddrV4,
    requests: Arc<Mutex<Vec<String>>>,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ConnectProxy {
    /// Starts a proxy in front of `server`.
    #[must_use]
    pub fn to(server: SocketAddrV4) -> ConnectProxy {
        ConnectProxy::start("HTTP/1.1 200 Connection established\r\n\r\n", Some(server))
    }

    /// Starts a proxy that gives every request the same answer and forwards nothing.
    #[must_use]
    pub fn answering(answer: &'static str) -> ConnectProxy {
        ConnectProxy::start(answer, None)
    }

    fn start(answer: &'static str, server: Option<SocketAddrV4>) -> ConnectProxy {
        let (listener, address) = listen();
        let (requests, is_stopped) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (read, stopped) = (Arc::clone(&requests), Arc::clone(&is_stopped));
        let thread = thread::spawn(move || {
            let mut forwarders = Vec::new();
            while let Ok((client, _)) = listener.accept() {
                if stopped.load(Ordering::Acquire) {
                    break;
                }
                let requests = Arc::clone(&read);
                forwarders.push(thread::spawn(move || serve(client, answer, server, &requests)));
            }
            forwarders.into_iter().for_each(|forwarder| forwarder.join().unwrap());
        });
        ConnectProxy { address, requests, is_stopped, thread: Some(thread) }
    }

    /// Returns the heads of the requests so far, each with its empty line.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for ConnectProxy {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Release);
        // Wake the accept loop, which then ends.
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn serve(mut client: TcpStream, answer: &str, server: Option<SocketAddrV4>, requests: &Mutex<Vec<String>>) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(1) = client.read(&mut byte) else { return };
        head.push(byte[0]);
    }
    requests.lock().unwrap().push(String::from_utf8(head).unwrap());
    let server = server.map(TcpStream::connect).transpose();
    if client.write_all(answer.as_bytes()).is_err() {
        return;
    }
    let Ok(Some(server)) = server else { return };
    thread::scope(|scope| {
        scope.spawn(|| forward_bytes(&server, &client));
        forward_bytes(&client, &server);
    });
}

/// Forwards the bytes of one direction until either end closes.
fn forward_bytes(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
