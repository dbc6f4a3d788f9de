//! Name lookups run beside the duty cycle.

use std::io::{Error, Read, Write};
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};
use std::time::Duration;

use tickpath_deribit::session::{SessionConfig, SessionEvent};
use tickpath_deribit_link::{Change, Link, LinkConfig, Listener, Received, Resolver, Route, Standing};
use tickpath_test_support::{Deadline, listen};
use tickpath_types::Nanos;
use tickpath_web::WebError;

#[derive(Default)]
struct Losses(Vec<String>);

impl Listener for Losses {
    fn on_event(&mut self, _at: Received, _event: SessionEvent<'_>) {}

    fn on_change(&mut self, _at: Nanos, change: Change<'_>) {
        if let Change::Lost { why, again_at } = change {
            assert!(again_at.is_some());
            self.0.push(why.to_string());
        }
    }
}

fn link(url: &str, proxy: Option<&str>, resolver: Resolver) -> Link {
    let route =
        Route { url: url.parse().unwrap(), proxy: proxy.map(|proxy| proxy.parse().unwrap()), tls: None };
    let mut link =
        Link::new(LinkConfig { resolver, ..LinkConfig::new(route, SessionConfig::new("test", "1", None)) });
    link.connect(Nanos::ZERO);
    link
}

/// Runs duty cycles until a condition holds, with the client's clock fixed at `now`.
fn work(link: &mut Link, losses: &mut Losses, now: Nanos, is_so: impl Fn(&Link, &Losses) -> bool) {
    let deadline = Deadline::start();
    while !is_so(link, losses) {
        assert!(!deadline.is_over(), "{} {:?}", link.stage(), losses.0);
        link.do_work(now, losses);
        std::thread::sleep(Duration::from_micros(100));
    }
}

#[test]
fn a_name_service_that_stands_still_holds_nothing_up() {
    static IS_OPEN: AtomicBool = AtomicBool::new(false);
    static PORT: AtomicU16 = AtomicU16::new(0);
    fn stands_still(host: &str, port: u16) -> Result<SocketAddrV4, WebError> {
        assert_eq!((host, port), ("venue.example", 443));
        while !IS_OPEN.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, PORT.load(Ordering::Acquire)))
    }

    let (listener, address) = listen();
    PORT.store(address.port(), Ordering::Release);
    let mut losses = Losses::default();
    let mut link = link("ws://venue.example:443/ws/api/v2", None, stands_still);
    // The duty cycle continues while the service hangs.
    for _ in 0..1_000 {
        link.do_work(Nanos(1), &mut losses);
    }
    assert_eq!((link.standing(), link.stage()), (Standing::Connecting, "name service"));
    // The time-out is reported, and the lookup is repeated after a pause.
    let late = Nanos::from_secs(16);
    work(&mut link, &mut losses, late, |_, losses| !losses.0.is_empty());
    assert!(losses.0[0].contains("name service") && losses.0[0].contains("venue.example"), "{:?}", losses.0);
    assert_eq!(link.stage(), "pause before the next connection");
    IS_OPEN.store(true, Ordering::Release);
    work(&mut link, &mut losses, Nanos::from_secs(17), |link, _| link.stage().contains("upgrade"));
    let mut request = [0; 512];
    let (mut stream, _) = listener.accept().unwrap();
    let len = stream.read(&mut request).unwrap();
    let request = String::from_utf8_lossy(&request[..len]).into_owned();
    assert!(
        request.starts_with("GET /ws/api/v2 HTTP/1.1\r\n") && request.contains("venue.example"),
        "{request}"
    );
    stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n").unwrap();
    work(&mut link, &mut losses, Nanos::from_secs(17), |_, losses| losses.0.len() == 2);
    assert!(losses.0[1].contains("503"), "{:?}", losses.0);
}

#[test]
fn a_host_is_found_again_where_the_service_fails() {
    static PORT: AtomicU16 = AtomicU16::new(0);
    static ASKED: AtomicU32 = AtomicU32::new(0);
    fn once(host: &str, _port: u16) -> Result<SocketAddrV4, WebError> {
        if ASKED.fetch_add(1, Ordering::Relaxed) == 1 {
            return Ok(SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, PORT.load(Ordering::Acquire)));
        }
        Err(WebError::Resolve { host: host.to_owned(), source: Error::other("the service is away") })
    }

    let (listener, address) = listen();
    PORT.store(address.port(), Ordering::Release);
    let mut losses = Losses::default();
    // With a proxy, the proxy's name is looked up.
    let mut link = link("ws://venue.example/ws", Some("proxy.example:3128"), once);
    work(&mut link, &mut losses, Nanos(1), |_, losses| losses.0.len() == 1);
    assert!(losses.0[0].contains("proxy.example") && losses.0[0].contains("away"), "{:?}", losses.0);
    for (second, lost) in [(1, 2), (3, 3)] {
        let now = Nanos::from_secs(second);
        work(&mut link, &mut losses, now, |link, _| link.stage() == "answer of the proxy");
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 19];
        work(&mut link, &mut losses, now, |_, _| true);
        link.do_work(now, &mut losses);
        stream.read_exact(&mut request).unwrap();
        assert_eq!(&request, b"CONNECT venue.examp");
        drop(stream);
        work(&mut link, &mut losses, now, |_, losses| losses.0.len() == lost);
    }
    assert_eq!(ASKED.load(Ordering::Relaxed), 3);
    assert_eq!(link.stats().losses, 3);
}

#[test]
fn an_address_needs_no_service() {
    fn never(_host: &str, _port: u16) -> Result<SocketAddrV4, WebError> {
        panic!("no number is requested");
    }
    let (_listener, address) = listen();
    let mut losses = Losses::default();
    let mut link = link(&format!("ws://{address}/ws"), None, never);
    work(&mut link, &mut losses, Nanos(1), |link, _| link.stage().contains("upgrade"));
    link.disconnect(Nanos(2), &mut losses);
    assert_eq!((link.standing(), link.stage(), losses.0.len()), (Standing::Off, "off", 0));
}
