//! The whole text, and how it is asked for.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::*;

/// Every sample by its name and labels; each is behind the head of its family.
fn samples(text: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut family = String::new();
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("# TYPE ") {
            family = head.split(' ').next().unwrap().to_owned();
            assert!(
                !found.keys().any(|name: &String| name.starts_with(&format!("{family}{{"))),
                "twice: {family}"
            );
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with(&family) && name.ends_with('}'), "{line} below {family}");
            assert!(found.insert(name.to_owned(), value.parse().unwrap()).is_none(), "twice: {line}");
        }
    }
    found
}

fn sample(text: &str, name: &str, labels: &str) -> Option<u64> {
    let labels = if labels.is_empty() { String::new() } else { format!(",{labels}") };
    samples(text).get(&format!("tickpath_gateway_{name}{{gateway=\"g\"{labels}}}")).copied()
}

#[test]
fn what_was_recorded_is_told() {
    let metrics = GatewayMetrics::new("g", 2).with_fix_from(80);
    metrics.count_bytes(80, 70);
    metrics.profile(Function::ParseBook).record(700);
    metrics.profile(Function::ParseBook).record(50_000);
    metrics.round_trip(RequestKind::CREATE_ORDER).record(30_000_000);
    metrics.external(1).record(1_000_000);
    metrics.count_bytes(1, 500);
    metrics.client(1).name.set("maker");
    metrics.client(1).to_client.record(400);
    metrics.count_event(EventKind::TOP_OF_BOOK);
    metrics.count_request(RequestKind::CREATE_ORDER);
    metrics.count_refusal(ErrorCode::BANNED);
    metrics.count_exception(Exception::Book);
    metrics.set_exceptions(Exception::Doubt, 9);
    metrics.clients_connected.set(2);
    let text = metrics.render();
    for (name, labels, value) in [
        ("profile_nanoseconds_bucket", "function=\"parse_book\",le=\"500\"", 0),
        ("profile_nanoseconds_bucket", "function=\"parse_book\",le=\"1000\"", 1),
        ("profile_nanoseconds_bucket", "function=\"parse_book\",le=\"20000\"", 1),
        ("profile_nanoseconds_bucket", "function=\"parse_book\",le=\"+Inf\"", 2),
        ("profile_nanoseconds_sum", "function=\"parse_book\"", 50_700),
        ("profile_nanoseconds_count", "function=\"parse_book\"", 2),
        ("round_trip_latency_nanoseconds_count", "request=\"create_order\"", 1),
        ("external_latency_nanoseconds_sum", "connection=\"1\",transport=\"ws\"", 1_000_000),
        ("received_bytes_total", "connection=\"1\",transport=\"ws\"", 500),
        ("received_bytes_total", "connection=\"80\",transport=\"fix\"", 70),
        ("orders_by", "transport=\"fix\"", 1),
        ("heartbeat_latency_nanoseconds_bucket", "client=\"maker\",direction=\"to_client\",le=\"500\"", 1),
        ("events_total", "event=\"top_of_book\"", 1),
        ("requests_total", "request=\"create_order\"", 1),
        ("requests_total", "request=\"cancel_order\"", 0),
        ("refusals_total", "reason=\"banned\"", 1),
        ("exceptions_total", "exception=\"book_lost\"", 1),
        ("exceptions_total", "exception=\"order_in_doubt\"", 9),
        ("clients", "", 2),
    ] {
        assert_eq!(sample(&text, name, labels), Some(value), "{name}{{{labels}}} in\n{text}");
    }
    assert_eq!(sample(&text, "external_latency_nanoseconds_sum", "connection=\"0\""), None, "unused");
}

#[test]
fn numbers_that_nobody_knows_are_no_panic() {
    let metrics = GatewayMetrics::new("g", 0);
    metrics.count_event(EventKind(u16::MAX));
    metrics.count_request(RequestKind(u16::MAX));
    metrics.count_refusal(ErrorCode(u16::MAX));
    metrics.round_trip(RequestKind(999)).record(1);
    metrics.external(999).record(1);
    metrics.client(999).to_client.record(1);
    samples(&metrics.render());
}

#[test]
fn labels_are_escaped() {
    let metrics = GatewayMetrics::new("g", 1);
    metrics.client(0).name.set("a\"b\\c\nd");
    let text = metrics.render();
    assert!(text.contains("client=\"a\\\"b\\\\c\\nd\""), "{text}");
    samples(&text);
}

/// What one request is answered with: status line and body.
fn ask(address: SocketAddrV4, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

#[test]
fn it_is_asked_for_over_http() {
    let metrics = Arc::new(GatewayMetrics::new("g", 1));
    let counters = Arc::new(crate::event_log::LogCounters::default());
    counters.written.set(77);
    let sampler = event_log_sampler(counters);
    let free = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let server = MetricsServer::start(free, Arc::clone(&metrics), vec![sampler]).unwrap();
    metrics.open_orders.set(5);
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let (status, body) = ask(server.address(), &get("/metrics"));
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert_eq!(sample(&body, "open_orders", ""), Some(5));
    assert_eq!(sample(&body, "event_log_records_total", "state=\"written\""), Some(77));
    assert!(sample(&body, "process_threads", "").unwrap() > 1);
    assert_eq!(ask(server.address(), &get("/")).0, "HTTP/1.1 404 Not Found");
    let post = "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert_eq!(ask(server.address(), post).0, "HTTP/1.1 405 Method Not Allowed");
    assert!(MetricsServer::start(server.address(), metrics, vec![]).is_err(), "one address, one gateway");
}
