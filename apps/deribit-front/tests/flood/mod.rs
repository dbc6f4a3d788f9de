//! Logins during a constantly replenished flood of silent connections from one address, at every endpoint.
//!
//! `cargo xtask flood-test` runs it with 2,000 connections for a minute at each endpoint and checks the login
//! times. The test itself is smaller and checks only that logins succeed.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use tickpath_net::{Interest, Poller, raise_open_files};
use tickpath_test_support::{PATIENCE, soup, wait_until};

use crate::client::start_with;
use crate::loopback::FixClient;
use crate::running::Running;

/// Source address of the silent connections.
const FLOOD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Interval between the starts of two logins.
const INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of connection ends reported per poll of the flood.
const EVENTS_MAX: usize = 256;

/// Reads a number that the full run sets in the environment.
fn given(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

/// Silent connections; one that the endpoint closes is reopened at once.
struct Flood {
    stop: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    fn start(address: SocketAddrV4, connections: usize) -> Flood {
        let (stop, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (until, count) = (Arc::clone(&stop), Arc::clone(&made));
        let thread = std::thread::spawn(move || {
            let mut poller = Poller::new(EVENTS_MAX).unwrap();
            let open = |poller: &Poller, key: usize| {
                let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
                socket.bind(&SocketAddrV4::new(FLOOD, 0).into()).unwrap();
                socket.set_nonblocking(true).unwrap();
                // The connection is made in the background; the poller reports its end.
                let _ = socket.connect(&address.into());
                poller.add(&socket, key as u64, Interest::Read).unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                socket
            };
            let mut sockets: Vec<Socket> = (0..connections).map(|key| open(&poller, key)).collect();
            while !until.load(Ordering::Relaxed) {
                let ended: Vec<usize> = poller.poll().unwrap().map(|ready| ready.key as usize).collect();
                for key in ended {
                    sockets[key] = open(&poller, key);
                }
                std::thread::yield_now();
            }
        });
        Flood { stop, made, thread: Some(thread) }
    }

    fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn connect(from: Ipv4Addr, address: SocketAddrV4) -> Option<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddrV4::new(from, 0).into()).unwrap();
    socket.connect_timeout(&address.into(), PATIENCE).ok()?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    Some(stream)
}

/// Reads until the predicate holds; returns false if the endpoint closes first.
fn hears(stream: &mut TcpStream, is_so: impl Fn(&[u8]) -> bool) -> bool {
    let (mut received, mut buffer) = (Vec::new(), [0; 4_096]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
        if is_so(&received) {
            return true;
        }
    }
}

/// Returns true when a SoupBinTCP login is accepted.
fn soup_login(from: Ipv4Addr, address: SocketAddrV4, user: &str) -> bool {
    let Some(mut stream) = connect(from, address) else { return false };
    let login = soup::login(user, "test", "", 0);
    let is_in = stream.write_all(&login).is_ok() && hears(&mut stream, |bytes| bytes.get(2) == Some(&b'A'));
    // The endpoint has released the user when it closes.
    let _ = stream.write_all(&[0, 1, b'O']);
    hears(&mut stream, |_| false);
    is_in
}

/// Returns true when JSON-RPC over HTTP issues a token.
fn http_login(from: Ipv4Addr, address: SocketAddrV4) -> bool {
    let Some(mut stream) = connect(from, address) else { return false };
    let target = "/api/v2/public/auth?grant_type=client_credentials&client_id=bert&client_secret=test";
    let request = format!("GET {target} HTTP/1.1\r\nHost: venue\r\n\r\n");
    let has_token = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("access_token");
    stream.write_all(request.as_bytes()).is_ok() && hears(&mut stream, has_token)
}

/// Returns true when a FIX Logon is accepted. Each address has a separate key, with unique timestamps.
fn fix_login(from: Ipv4Addr, address: SocketAddrV4) -> bool {
    let key = if from == FLOOD { "bert" } else { "anna" };
    let Some(stream) = connect(from, address) else { return false };
    let mut client = FixClient::over(stream, "FLOODED");
    client.log_on(key);
    client.is_open_until("the Logon", |got| got.is_up)
}

/// Logs in repeatedly during a flood.
fn attack(name: &str, address: SocketAddrV4, venue: &Running, mut login: impl FnMut(Ipv4Addr) -> bool) {
    let connections = given("FLOOD_CONNECTIONS", 200) as usize;
    let (seconds, least) = (given("FLOOD_SECONDS", 0), 20);
    let flood = Flood::start(address, connections);
    // Logins start once there are more connections than the limit.
    let what = format!("{name}: the end of connections");
    wait_until(&what, || flood.made() >= connections as u64 + 200);
    let mut times = Vec::new();
    let (mut tried_beside, mut beside) = (0, 0);
    let start = Instant::now();
    let mut refused = 0;
    while times.len() + refused < least || start.elapsed() < Duration::from_secs(seconds) {
        let begun = Instant::now();
        if login(Ipv4Addr::LOCALHOST) {
            times.push(begun.elapsed());
        } else {
            refused += 1;
        }
        tried_beside += 1;
        beside += usize::from(login(FLOOD));
        std::thread::sleep(INTERVAL.saturating_sub(begun.elapsed()));
    }
    let made = flood.made();
    drop(flood);
    times.sort_unstable();
    let at = |share: usize| times.get((times.len() * share / 100).min(times.len().saturating_sub(1)));
    let millis = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e3);
    println!(
        "flood {name}: {made} silent connections, {} of {} logins, p50 {:.2} ms, p99 {:.2} ms, from the same address {beside} \
         of {tried_beside}; {}",
        times.len(),
        times.len() + refused,
        millis(at(50)),
        millis(at(99)),
        venue.view,
    );
    assert_eq!(refused, 0, "{name}: logins from another address");
    assert!(beside > 0, "{name}: none of {tried_beside} logins from the same address");
}

#[test]
fn silent_connections_block_no_endpoint() {
    let wanted = 2 * given("FLOOD_CONNECTIONS", 200) + 1_024;
    let granted = raise_open_files(wanted).unwrap();
    assert!(granted >= wanted, "the limit of open files is {granted}: raise it by ulimit -n {wanted}");
    let folder = tempfile::tempdir().unwrap();
    let user =
        "\n[[order_entry.user]]\nname = 'FLOOD'\npassword = 'test'\nports = ['order_entry', 'drop_copy']\n";
    let venue = start_with(folder.path(), |text| {
        text.replace("[deribit]\n", "[deribit]\nfix_address = '127.0.0.1:0'\n")
            + user
            + "\n[drop_copy]\naddress = '127.0.0.1:0'\n"
    });
    let endpoints = venue.endpoints;
    for (name, address) in [
        ("order entry", Some(endpoints.order_entry)),
        ("GLIMPSE", endpoints.glimpse),
        ("drop copy", endpoints.drop_copy),
    ] {
        let address = address.unwrap();
        attack(name, address, &venue, |from| soup_login(from, address, "FLOOD"));
    }
    let address = venue.address;
    attack("Deribit HTTP", address, &venue, |from| http_login(from, address));
    let address = venue.fix_address.unwrap();
    attack("Deribit FIX", address, &venue, |from| fix_login(from, address));
    venue.stop();
}
