//! Tests of the rendered text and of the HTTP server.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::*;

/// Returns every sample by its name and labels; each must follow the head of its family.
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
    let names = ["market-1".to_owned(), "A1".to_owned()];
    let metrics = GatewayMetrics::of("g", 2, &names).with_fix_from(80);
    metrics.count_bytes(80, 70);
    metrics.parsed(0, Function::ParseBook).record(700);
    metrics.parsed(0, Function::ParseBook).record(50_000);
    metrics.profile(Function::Write).record(5);
    metrics.round_trip(RequestKind::CREATE_ORDER).record(30_000_000);
    metrics.external(1).record(1_000_000);
    metrics.count_bytes(1, 500);
    metrics.client(1).join("maker", "mia", 7, true);
    metrics.set_door(AtDoor::Malformed, 3);
    metrics.client(1).to_client.record(400);
    metrics.count_event(EventKind::TOP_OF_BOOK);
    metrics.count_request(RequestKind::CREATE_ORDER);
    metrics.count_refusal(ErrorCode::BANNED);
    metrics.count_exception(Exception::Book);
    metrics.set_exceptions(Exception::Doubt, 9);
    metrics.clients_connected.set(2);
    let text = metrics.render();
    for (name, labels, value) in [
        ("profile_nanoseconds_bucket", "function=\"parse_book\",connection=\"market-1\",le=\"500\"", 0),
        ("profile_nanoseconds_bucket", "function=\"parse_book\",connection=\"market-1\",le=\"1000\"", 1),
        ("profile_nanoseconds_bucket", "function=\"parse_book\",connection=\"market-1\",le=\"20000\"", 1),
        ("profile_nanoseconds_bucket", "function=\"parse_book\",connection=\"market-1\",le=\"+Inf\"", 2),
        ("profile_nanoseconds_sum", "function=\"parse_book\",connection=\"market-1\"", 50_700),
        ("profile_nanoseconds_count", "function=\"parse_book\",connection=\"market-1\"", 2),
        ("round_trip_latency_nanoseconds_count", "request=\"create_order\"", 1),
        ("external_latency_nanoseconds_sum", "connection=\"A1\",transport=\"ws\"", 1_000_000),
        ("received_bytes_total", "connection=\"A1\",transport=\"ws\"", 500),
        ("received_bytes_total", "connection=\"80\",transport=\"fix\"", 70),
        ("orders_by", "transport=\"fix\"", 1),
        (
            "heartbeat_latency_nanoseconds_bucket",
            "client=\"maker\",number=\"7\",user=\"mia\",direction=\"to_client\",le=\"500\"",
            1,
        ),
        ("profile_nanoseconds_count", "function=\"write\"", 1),
        ("door_total", "what=\"malformed\"", 3),
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
    assert_eq!(sample(&text, "external_latency_nanoseconds_sum", "connection=\"market-1\""), None, "unused");
}

#[test]
fn clients_of_one_name_are_told_apart_and_begin_with_nothing() {
    let metrics = GatewayMetrics::new("g", 2);
    metrics.client(0).join("trader", "u", 1, true);
    metrics.client(1).join("trader", "u", 2, false);
    metrics.client(0).to_client.record(100);
    metrics.client(1).to_client.record(100);
    metrics.client(1).to_client.record(100);
    let labels =
        |number: u32| format!("client=\"trader\",number=\"{number}\",user=\"u\",direction=\"to_client\"");
    let count =
        |number: u32| sample(&metrics.render(), "heartbeat_latency_nanoseconds_count", &labels(number));
    assert_eq!((count(1), count(2)), (Some(1), Some(2)));
    metrics.client(1).leave();
    assert_eq!((count(1), count(2)), (Some(1), None));
    // A client that takes a freed slot inherits none of its values.
    metrics.client(1).join("trader", "u", 3, true);
    assert_eq!((count(2), count(3)), (None, Some(0)));
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

/// Sends one request; returns status line and body.
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

/// Kind of every metric family of a gateway, by its name without the common prefix.
fn families() -> BTreeMap<String, String> {
    let metrics = GatewayMetrics::new("g", 1);
    let mut text = MetricsText::new("g");
    metrics.write(&mut text);
    event_log_sampler(Arc::default())(&mut text);
    crate::view::view_sampler(Arc::default())(&mut text);
    super::process::write(&mut text);
    let text = text.finish();
    let heads = text.lines().filter_map(|line| line.strip_prefix("# TYPE tickpath_gateway_"));
    heads
        .map(|head| head.split_once(' ').map(|(name, kind)| (name.to_owned(), kind.to_owned())).unwrap())
        .collect()
}

/// Reads a file of the repository.
fn repository(path: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the metrics that a text names; for histograms the family.
fn named<'t>(text: &'t str, families: &BTreeMap<String, String>) -> Vec<&'t str> {
    let names = text.split("tickpath_gateway_").skip(1).map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        &rest[..end]
    });
    let family = |name: &'t str| {
        ["_bucket", "_sum", "_count"]
            .iter()
            .filter_map(|suffix| name.strip_suffix(suffix))
            .find(|family| families.get(*family).is_some_and(|kind| kind == "histogram"))
            .unwrap_or(name)
    };
    names.map(family).collect()
}

#[test]
fn dashboard_alerts_and_document_name_only_metrics_that_exist() {
    let families = families();
    for (path, least) in [
        ("docs/monitoring/grafana-gateway.json", 20),
        ("docs/monitoring/gateway-alerts.yml", 6),
        ("docs/gateway-metrics.md", 10),
        ("docs/host.md", 0),
    ] {
        let text = repository(path);
        let names = named(&text, &families);
        assert!(names.len() >= least, "{path} names {} metrics", names.len());
        for name in names.iter().filter(|name| !name.is_empty()) {
            assert!(families.contains_key(*name), "{path}: there is no metric tickpath_gateway_{name}");
        }
    }
    let dashboard: serde_json::Value =
        serde_json::from_str(&repository("docs/monitoring/grafana-gateway.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.iter().all(|panel| panel["targets"][0]["expr"].is_string()), "{dashboard:#}");
}

#[test]
fn every_metric_stands_in_the_document() {
    let document = repository("docs/gateway-metrics.md");
    for (family, kind) in families() {
        assert!(
            document.contains(&format!("`{family}`")),
            "docs/gateway-metrics.md lacks {family}, a {kind}"
        );
    }
    for what in AtDoor::ALL {
        assert!(document.contains(&format!("`{}`", what.name())), "docs/gateway-metrics.md: {what:?}");
    }
}
