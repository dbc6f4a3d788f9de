//! A way to the venue that loses what it is told to lose.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// What is lost, with the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The next message of the client: the venue never gets it.
    LoseRequest,
    /// The next message of the venue: the client never gets it.
    LoseAnswer,
}

struct Shared {
    leads_to: Mutex<SocketAddrV4>,
    fault: Mutex<Option<Fault>>,
    is_stopped: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

/// It listens until it is dropped.
pub struct Proxy {
    address: SocketAddrV4,
    shared: Arc<Shared>,
}

impl Proxy {
    pub fn start(leads_to: SocketAddrV4) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let std::net::SocketAddr::V4(address) = listener.local_addr().unwrap() else { unreachable!() };
        let shared = Arc::new(Shared {
            leads_to: Mutex::new(leads_to),
            fault: Mutex::new(None),
            is_stopped: AtomicBool::new(false),
            open: Mutex::new(Vec::new()),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if accepting.is_stopped.load(Ordering::Relaxed) {
                    break;
                }
                let leads_to = *accepting.leads_to.lock().unwrap();
                let Ok(venue) = TcpStream::connect(leads_to) else { continue };
                client.set_nodelay(true).unwrap();
                venue.set_nodelay(true).unwrap();
                for (from, to, fault) in
                    [(&client, &venue, Fault::LoseRequest), (&venue, &client, Fault::LoseAnswer)]
                {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let shared = Arc::clone(&accepting);
                    thread::spawn(move || pass(from, to, fault, &shared));
                }
                accepting.open.lock().unwrap().extend([client, venue]);
            }
        });
        Proxy { address, shared }
    }

    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    pub fn fail_once(&self, fault: Fault) {
        *self.shared.fault.lock().unwrap() = Some(fault);
    }

    /// New connections lead there, and there are no old ones any more.
    pub fn lead_to(&self, address: SocketAddrV4) {
        *self.shared.leads_to.lock().unwrap() = address;
        self.cut();
    }

    fn cut(&self) {
        for stream in self.shared.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        self.cut();
    }
}

/// SoupBinTCP's packets of data, by their type behind the length.
fn is_data(bytes: &[u8], fault: Fault) -> bool {
    bytes.get(2) == Some(if fault == Fault::LoseRequest { &b'U' } else { &b'S' })
}

fn pass(mut from: TcpStream, mut to: TcpStream, fault: Fault, shared: &Shared) {
    let mut buffer = [0; 16 * 1024];
    loop {
        let len = match from.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(len) => len,
        };
        let mut armed = shared.fault.lock().unwrap();
        if *armed == Some(fault) && is_data(&buffer[..len], fault) {
            *armed = None;
            break;
        }
        drop(armed);
        if to.write_all(&buffer[..len]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
