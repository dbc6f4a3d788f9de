//! A venue whose certificate is of a CA of the site's own, through a proxy of the site's.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tickpath_gateway::admin::call;
use tickpath_gateway_protocol::{OrderStatus, Side};

use crate::running::Running;
use crate::support::{PATIENCE, PERPETUAL, TestGateway, config_text};

/// A proxy that carries what it is asked to connect to the venue, whatever host is named; it runs until it is dropped.
struct Proxy {
    address: SocketAddrV4,
    /// First lines of what it was asked.
    asked: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    fn to(venue: SocketAddrV4) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let SocketAddr::V4(address) = listener.local_addr().unwrap() else { panic!("an IPv4 address") };
        let (asked, is_over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (heads, over) = (Arc::clone(&asked), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let mut carriers = Vec::new();
            while let Ok((client, _)) = listener.accept() {
                if over.load(Ordering::Acquire) {
                    break;
                }
                let heads = Arc::clone(&heads);
                carriers.push(std::thread::spawn(move || carry(client, venue, &heads)));
            }
            carriers.into_iter().for_each(|carrier| carrier.join().unwrap());
        });
        Proxy { address, asked, is_over, thread: Some(thread) }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // The one that is accepted last.
        let _ = TcpStream::connect(self.address);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Carries one connection until both ends are closed.
fn carry(mut client: TcpStream, venue: SocketAddrV4, asked: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match client.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let first = String::from_utf8(head).unwrap().lines().next().unwrap().to_owned();
    asked.lock().unwrap().push(first);
    let Ok(server) = TcpStream::connect(venue) else { return };
    if client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").is_err() {
        return;
    }
    let (from_server, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let back = std::thread::spawn(move || pass(&from_server, &to_client));
    pass(&client, &server);
    back.join().unwrap();
}

fn pass(mut from: &TcpStream, mut to: &TcpStream) {
    // Either end may go at any time.
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

/// Writes a CA, and a certificate of it for the name `localhost` with its key.
fn write_certificates(folder: &Path) {
    let (ca_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_text = ca.self_signed(&ca_key).unwrap().pem();
    let of_venue = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = of_venue.signed_by(&key, &Issuer::new(ca, ca_key)).unwrap();
    for (name, text) in
        [("ca.pem", ca_text), ("certificate.pem", certificate.pem()), ("key.pem", key.serialize_pem())]
    {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

fn start_venue(folder: &Path) -> Running {
    write_certificates(folder);
    let tls = "tls = { certificate = 'certificate.pem', private_key = 'key.pem' }";
    Running::start(folder, |text| {
        text.replace(
            "[deribit]\n",
            &format!("[deribit]\nmatching_rate = 1000\nmatching_burst = 1000\n{tls}\n"),
        )
    })
}

/// A gateway at the venue's encrypted door that trusts a CA.
fn start_gateway(folder: &Path, venue: &Running, ca: &Path, keys: &str) -> TestGateway {
    let (text, socket) = config_text(folder, venue.address, &format!("ca_file = '{}'\n{keys}", ca.display()));
    let url = format!("wss://localhost:{}/ws", venue.address.port());
    TestGateway::of(folder, &text.replace(&format!("ws://{}/ws", venue.address), &url), socket)
}

fn trade(gateway: &TestGateway) {
    let mut trader = gateway.client("trader");
    let (account, symbol) = trader.ready(PERPETUAL);
    let id = trader.create(account, symbol, Side::BUY, "100", "59000");
    trader.wait_order(id, OrderStatus::WORKING);
    trader.cancel(account, symbol, id);
    trader.wait_order(id, OrderStatus::CANCELED);
}

#[test]
fn a_ca_of_the_sites_own_is_trusted_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let venue = start_venue(folder.path());
    let gateway = start_gateway(folder.path(), &venue, &folder.path().join("ca.pem"), "");
    trade(&gateway);
    gateway.stop();
    // A CA of somebody else: no connection comes to be, and it is said why.
    let other = tempfile::tempdir().unwrap();
    write_certificates(other.path());
    let gateway = start_gateway(other.path(), &venue, &other.path().join("ca.pem"), "");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = call(&gateway.admin_socket(), "status").unwrap();
        let losses: Vec<&str> = answer["connections"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|it| it["last_loss"].as_str())
            .collect();
        assert_eq!(answer["is_trading"], false, "{answer:#}");
        if losses.len() == 3 {
            assert!(losses.iter().all(|loss| loss.contains("ertificate")), "{losses:?}");
            break;
        }
        assert!(Instant::now() < deadline, "{answer:#}");
        std::thread::sleep(Duration::from_millis(5));
    }
    gateway.stop();
    venue.stop();
}

#[test]
fn every_connection_goes_through_the_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let venue = start_venue(folder.path());
    let proxy = Proxy::to(venue.address);
    // Where a proxy leads to by the name of this machine is not this machine: it must be meant.
    let keys = format!(
        "proxy = '{}'\n[limits]\norder_size_max = '1000'\nnotional_max = '1000'\nopen_orders_max = 9\n",
        proxy.address
    );
    let (text, socket) = config_text(
        folder.path(),
        venue.address,
        &format!("ca_file = '{}'\n{keys}", folder.path().join("ca.pem").display()),
    );
    let url = format!("wss://localhost:{}/ws", venue.address.port());
    let text = text.replace(&format!("ws://{}/ws", venue.address), &url);
    let gateway = TestGateway::of(folder.path(), &format!("production = true\n{text}"), socket);
    trade(&gateway);
    gateway.stop();
    let asked = proxy.asked();
    let expected = format!("CONNECT localhost:{} HTTP/1.1", venue.address.port());
    // Market data, and two accounts.
    assert!(asked.len() >= 3 && asked.iter().all(|head| *head == expected), "{asked:?}");
    drop(proxy);
    venue.stop();
}
