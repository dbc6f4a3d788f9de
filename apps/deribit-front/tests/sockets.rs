//! Misbehaving clients over all kinds of sockets: TCP and TLS, WebSocket and HTTP.
#![allow(clippy::unwrap_used)]

use crate::client;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Instant;

use crate::client::{Client, PERPETUAL, now, start, start_with, start_with_tls};
use crate::loopback::FixClient;
use crate::running::Running;
use serde_json::Value;
use tickpath_deribit::messages::CancelAll;
use tickpath_deribit::method::Method;
use tickpath_deribit::sign::{HttpRequest, http_signature, write_authorization};
use tickpath_net::Kernel;
use tickpath_test_support::{realtime_ns, wait_until};
use tickpath_types::Nanos;
use tickpath_web::{
    ByteClient, ByteConnection, ByteTarget, Target, TlsClient, WebEvent, WebLimits, WebSocketClient,
};

const UPGRADE: &str = "GET /ws/api/v2 HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

const LOGIN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"public/auth","params":{"grant_type":"client_credentials","client_id":"anna","client_secret":"test"}}"#;

/// A venue reached through one kind of socket.
struct Endpoint {
    venue: Running,
    trust: Option<TlsClient>,
}

impl Endpoint {
    fn plain(folder: &Path) -> Endpoint {
        Endpoint { venue: start(folder), trust: None }.opened()
    }

    fn tls(folder: &Path) -> Endpoint {
        let (venue, trust) = start_with_tls(folder);
        Endpoint { venue, trust: Some(trust) }.opened()
    }

    /// Waits until the instruments trade.
    fn opened(self) -> Endpoint {
        let target = format!("/api/v2/public/get_instrument?instrument_name={PERPETUAL}");
        let request = format!("GET {target} HTTP/1.1\r\nConnection: close\r\n\r\n");
        wait_until("the market", || {
            let is_open = self.ask(&request).1["result"]["state"] == "open";
            if !is_open {
                std::thread::sleep(client::BETWEEN);
            }
            is_open
        });
        self
    }

    fn target(&self) -> Target {
        let address = self.venue.address;
        let scheme = if self.trust.is_some() { "wss" } else { "ws" };
        let url = format!("{scheme}://localhost:{}/ws/api/v2", address.port()).parse().unwrap();
        Target { url, address, is_proxy: false, tls: self.trust.clone() }
    }

    fn client(&self, id: &str) -> Client {
        Client::start(self.target(), id, &[])
    }

    /// Opens a WebSocket without a client session.
    fn web(&self) -> WebSocketClient {
        let mut web = WebSocketClient::start(&Kernel, now(), self.target(), WebLimits::client()).unwrap();
        wait_until("connection", || web.poll_open(now()).unwrap());
        web
    }

    /// Opens a connection for raw bytes.
    fn peer(&self) -> Peer {
        let address = self.venue.address;
        let target = ByteTarget {
            host: "localhost".to_owned(),
            port: address.port(),
            address,
            is_proxy: false,
            tls: self.trust.clone(),
        };
        let mut client = ByteClient::start(&Kernel, now(), target, Nanos::from_secs(60)).unwrap();
        let mut connection = None;
        wait_until("connection", || {
            connection = client.poll_open(now()).unwrap();
            connection.is_some()
        });
        Peer { connection: connection.unwrap(), received: Vec::new() }
    }

    /// Sends one request on a new connection; returns status and the JSON reply, if any.
    fn ask(&self, request: &str) -> (u16, Value) {
        self.peer().ask(request)
    }

    fn get(&self, target: &str, authorization: &str) -> (u16, Option<i64>) {
        let (status, reply) = self.ask(&format!("GET {target} HTTP/1.1\r\n{authorization}\r\n"));
        (status, reply["error"]["code"].as_i64())
    }
}

/// A raw byte connection.
struct Peer {
    connection: ByteConnection,
    received: Vec<u8>,
}

impl Peer {
    fn send(&mut self, mut bytes: &[u8]) {
        wait_until("room", || {
            let count = self.connection.write(bytes).unwrap();
            bytes = &bytes[count..];
            self.connection.flush().unwrap() && bytes.is_empty()
        });
    }

    /// Reads the available bytes; returns whether more may follow.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4_096];
        loop {
            match self.connection.read(&mut buffer) {
                Ok(Some(count)) => self.received.extend_from_slice(&buffer[..count]),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn ask(&mut self, request: &str) -> (u16, Value) {
        self.send(request.as_bytes());
        self.answer()
    }

    /// Waits for the next reply: status, and the body if it is JSON.
    fn answer(&mut self) -> (u16, Value) {
        let mut answer = None;
        wait_until("an answer", || {
            let is_open = self.read();
            answer = self.take_answer();
            assert!(answer.is_some() || is_open, "closed without an answer");
            answer.is_some()
        });
        answer.unwrap()
    }

    fn take_answer(&mut self) -> Option<(u16, Value)> {
        let text = std::str::from_utf8(&self.received).unwrap();
        let (head, rest) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let len: usize = head.split("Content-Length: ").nth(1)?.lines().next()?.parse().unwrap();
        let body = rest.get(..len)?;
        let value = serde_json::from_str(body).unwrap_or(Value::Null);
        let whole = head.len() + 4 + len;
        self.received.drain(..whole);
        Some((status, value))
    }

    /// Checks that the venue closes the connection without further data.
    fn ends(mut self) {
        wait_until("the end", || !self.read());
        assert_eq!(String::from_utf8(self.received).unwrap(), "");
    }
}

/// Runs a test over TCP and over TLS.
fn by_both(test: impl Fn(&Endpoint)) {
    for open in [Endpoint::plain, Endpoint::tls] {
        let folder = tempfile::tempdir().unwrap();
        let door = open(folder.path());
        test(&door);
        door.venue.stop();
    }
}

/// Returns the code of the next rejection or close.
fn code_of_next(web: &mut WebSocketClient) -> i64 {
    let mut code = None;
    wait_until("a word", || {
        code = match web.receive().unwrap() {
            Some(WebEvent::Text(text)) => {
                let reply: Value = serde_json::from_str(text).unwrap();
                Some(reply["error"]["code"].as_i64().unwrap_or(0))
            }
            Some(WebEvent::Closed(closed)) => Some(closed.code.into()),
            _ => None,
        };
        code.is_some()
    });
    code.unwrap()
}

#[test]
fn frames_that_are_long_or_deep_are_refused_and_huge_ones_end_the_connection() {
    by_both(|door| {
        let mut web = door.web();
        let request = |filler: usize| {
            let long = "x".repeat(filler);
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"public/test","params":{{"unknown":"{long}"}}}}"#)
        };
        let around = request(0).len();
        let deep = |depth: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            format!(r#"{{"id":1,"method":"public/test","params":{{"a":{open}{close}}}}}"#)
        };
        for (frame, code) in [
            (request((32 << 10) - around), 0),
            (request((32 << 10) + 1 - around), -32600),
            (request((64 << 10) - around), -32600),
            (deep(20), 0),
            (deep(100), -32600),
            (deep(15_000), -32600),
            ("[".repeat(32 << 10), -32600),
            ("{\"id\":1,\"method\":\"public/test\"".to_owned(), -32700),
            (request(0), 0),
        ] {
            let _ = web.send(&frame);
            assert_eq!(code_of_next(&mut web), code, "{} bytes: {:.60}", frame.len(), frame);
        }
        let _ = web.send(&request((64 << 10) + 1 - around));
        assert_eq!(code_of_next(&mut web), 1009);
        wait_until("the count", || door.venue.view.door.broken.read() == 1);
        // Other clients continue.
        assert_eq!(door.client("anna").order(Method::Buy, 10, "59000")["order"]["order_state"], "open");
    });
}

#[test]
fn a_client_that_never_reads_is_dropped_and_the_others_go_on() {
    by_both(|door| {
        let mut anna = door.peer();
        // Base64 of anna:test and bert:test.
        let (annas, berts) = ("YW5uYTp0ZXN0", "YmVydDp0ZXN0");
        let label = "l".repeat(64);
        let buy = |peer: &mut Peer, secret: &str| {
            let query = format!("instrument_name={PERPETUAL}&amount=10&price=59000&label={label}");
            peer.ask(&format!(
                "GET /api/v2/private/buy?{query} HTTP/1.1\r\nAuthorization: Basic {secret}\r\n\r\n"
            ))
        };
        let mut rest = |count: usize| {
            for _ in 0..count {
                let (status, reply) = buy(&mut anna, annas);
                assert_eq!(
                    (status, &reply["result"]["order"]["order_state"]),
                    (200, &"open".into()),
                    "{reply}"
                );
            }
        };
        let view = &door.venue.view;
        let ask = r#"{"jsonrpc":"2.0","id":9,"method":"private/get_open_orders","params":{}}"#;
        // More than the kernel accepts, less than the front's queue limit: the client exceeds its rate, must
        // get that error, and does not read.
        rest(12);
        let mut flooding = door.client("anna");
        for _ in 0..400 {
            let _ = flooding.web.send(ask);
        }
        wait_until("the end of who floods", || view.door.broken.read() == 1);
        assert_eq!((view.front.over_rate.read(), view.front.slow_clients.read()), (1, 0));
        // One request after the other, each with a reply of a third of a megabyte.
        rest(288);
        let mut deaf = door.client("anna");
        // A client that is silent for ten seconds is closed too, so this one connects only now.
        let mut bert = door.peer();
        let mut answered = 0;
        while view.front.slow_clients.read() == 0 {
            let before = view.front.requests.read();
            let _ = deaf.web.send(ask);
            wait_until("the answer", || {
                view.front.requests.read() > before || view.front.slow_clients.read() == 1
            });
            answered += 1;
            assert!(answered < 80, "the venue keeps {answered} answers for who does not read");
            assert_eq!(buy(&mut bert, berts).0, 200);
        }
        wait_until("the end of the deaf", || view.door.broken.read() == 2);
        assert_eq!(view.front.over_rate.read(), 1);
        for client in [&mut flooding, &mut deaf] {
            wait_until("the close", || {
                matches!(client.web.receive(), Err(_) | Ok(Some(WebEvent::Closed(_))))
            });
        }
        assert_eq!(door.client("anna").call(Method::CancelAll, &CancelAll::default()).unwrap(), 300);
    });
}

#[test]
fn who_asks_too_often_over_a_socket_is_told_so_and_counted() {
    by_both(|door| {
        let mut web = door.web();
        for _ in 0..2_000 {
            let _ = web.send(r#"{"jsonrpc":"2.0","id":1,"method":"public/get_time","params":{}}"#);
        }
        let mut codes = Vec::new();
        while codes.last() != Some(&1008) {
            codes.push(code_of_next(&mut web));
        }
        let refused = codes.split_off(codes.len() - 2);
        assert_eq!((refused, codes.iter().all(|code| *code == 0)), (vec![10_028, 1_008], true));
        assert_eq!(door.venue.view.front.over_rate.read(), 1);
        // The same address over HTTP, in parallel: a slow machine takes longer than the refill of credits.
        let mut peers: Vec<Peer> = (0..16).map(|_| door.peer()).collect();
        for peer in &mut peers {
            peer.send("GET /api/v2/public/get_time HTTP/1.1\r\n\r\n".repeat(60).as_bytes());
        }
        let rounds = (0..60).flat_map(|_| 0..16);
        let refused = rounds.map(|place| peers[place].answer()).find(|(status, _)| *status != 200);
        let refused = refused.map(|(status, reply)| (status, reply["error"]["code"].as_i64()));
        assert_eq!(refused, Some((429, Some(10_028))));
        assert!(door.venue.view.front.over_rate.read() >= 2);
        assert!(door.venue.view.to_string().contains(" over the rate,"), "{}", door.venue.view);
    });
}

#[test]
fn an_address_has_as_many_clients_as_the_file_says_and_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let few = |text: String| text.replace("[deribit]\n", "[deribit]\nmax_connections_per_address = 2\n");
    let door = Endpoint { venue: start_with(folder.path(), few), trust: None };
    // The oldest connection without a login is closed for a new one, which may log in.
    let (mut oldest, mut first, mut second) = (door.web(), door.web(), door.web());
    wait_until("the end of the oldest", || !matches!(oldest.receive(), Ok(None)));
    for web in [&mut first, &mut second] {
        let _ = web.send(LOGIN);
        assert_eq!(code_of_next(web), 0);
    }
    let (status, reply) = door.ask("GET /api/v2/public/get_time HTTP/1.1\r\n\r\n");
    assert_eq!((status, &reply["error"]["code"]), (429, &10_028.into()));
    assert_eq!(reply["error"]["data"]["reason"], "the address has as many connections as it may");
    assert_eq!(door.ask(UPGRADE).0, 429);
    wait_until("the count", || door.venue.view.door.refused.read() == 2);
    let _ = first.send("[]");
    assert_eq!(code_of_next(&mut first), -32600, "a logged-in client continues");
    // Silent connections take no client's place.
    let _silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(door.venue.address).unwrap()).collect();
    drop(second);
    wait_until("room", || door.ask("GET /api/v2/public/get_time HTTP/1.1\r\n\r\n").0 == 200);
    door.venue.stop();
    // By default the clients of this machine have no per-address limit: more than another machine may have.
    let folder = tempfile::tempdir().unwrap();
    let door = Endpoint::plain(folder.path());
    let mut many: Vec<WebSocketClient> = (0..40).map(|_| door.web()).collect();
    for web in &mut many {
        let _ = web.send("[]");
        assert_eq!(code_of_next(web), -32600);
    }
    door.venue.stop();
}

/// Upgrade and login arrive in one read: the connection is logged in, and pre-login limits do not apply.
#[test]
fn a_login_right_behind_the_upgrade_ends_the_time_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let short = |text: String| text + "\n[pre_login]\ndeadline = '1s'\n";
    let door = Endpoint { venue: start_with(folder.path(), short), trust: None };
    let mut peer = door.peer();
    let mut bytes = UPGRADE.as_bytes().to_vec();
    bytes.extend(masked(LOGIN));
    peer.send(&bytes);
    let heard = |peer: &mut Peer, text: &str| {
        wait_until(text, || {
            assert!(peer.read(), "closed");
            String::from_utf8_lossy(&peer.received).contains(text)
        });
    };
    heard(&mut peer, "access_token");
    // A later silent connection is closed at its deadline, so the deadline of the login has passed too.
    let _silent = TcpStream::connect(door.venue.address).unwrap();
    wait_until("the end of a silent one", || door.venue.view.door.evicted.read() > 0);
    assert_eq!(door.venue.view.door.evicted.read(), 1);
    peer.send(&masked(r#"{"jsonrpc":"2.0","id":2,"method":"public/get_time","params":{}}"#));
    heard(&mut peer, "\"id\":2");
    door.venue.stop();
}

/// Encodes a client frame with a zero mask.
fn masked(text: &str) -> Vec<u8> {
    let len = u16::try_from(text.len()).unwrap();
    let mut frame = match len {
        ..126 => vec![0x81, 0x80 | len as u8],
        _ => [&[0x81, 0x80 | 126], &len.to_be_bytes()[..]].concat(),
    };
    frame.extend([0; 4]);
    frame.extend(text.as_bytes());
    frame
}

#[test]
fn bad_requests_over_http_are_answered_with_their_status() {
    by_both(|door| {
        let header = |len: usize| format!("X: {}\r\n", "y".repeat(len));
        let body =
            |body: &str| format!("POST /api/v2 HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let time = r#"{"jsonrpc":"2.0","id":3,"method":"public/get_time","params":{}}"#;
        let post = |length: &str| format!("POST /api/v2 HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{time}");
        // Invalid or unsupported HTTP ends the connection.
        let broken = [
            ("garbage\r\n\r\n".to_owned(), 400),
            (format!("GET /api/v2/public/get_time HTTP/1.1\r\n{}\r\n", header(17 << 10)), 431),
            (format!("GET /api/v2/public/get_time HTTP/1.1\r\n{}\r\n", header(1).repeat(65)), 431),
            (post("many"), 400),
            (post("-1"), 400),
            (post("63\r\nContent-Length: 64"), 400),
            (post("65537"), 413),
            (
                format!(
                    "POST /api/v2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3f\r\n{time}\r\n0\r\n\r\n"
                ),
                411,
            ),
            (
                "GET /ws/api/v2 HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 8\r\n\r\n"
                    .to_owned(),
                426,
            ),
        ];
        for (request, status) in &broken {
            let mut peer = door.peer();
            assert_eq!(peer.ask(request), (*status, Value::Null), "{request:.80}");
            peer.ends();
        }
        wait_until("the counts", || door.venue.view.door.broken.read() == broken.len() as u64);
        // Rejected requests do not end the connection.
        let long =
            format!(r#"{{"id":1,"method":"public/test","params":{{"a":"{}"}}}}"#, "x".repeat(40 << 10));
        let deep = format!(r#"{{"id":1,"method":"public/test","params":{{"a":{}}}}}"#, "[".repeat(20_000));
        let get = |target: &str| format!("GET {target} HTTP/1.1\r\n\r\n");
        let mut peer = door.peer();
        for (request, status, code) in [
            (body(&long), 400, -32600),
            (body(&deep), 400, -32600),
            (body("{"), 400, -32700),
            (body("[]"), 400, -32600),
            (get("/api/v2/public/nothing"), 400, -32601),
            (get("/api/v2/public/get_order_book"), 400, -32602),
            (get("/api/v2/public/get_order_book?instrument_name=%ff%zz"), 400, -32602),
            (get("/api/v2/public/get_order_book?instrument_name=BTC-PERPETUAL&depth=%5B"), 400, -32602),
            (get("/api/v2/public/get_order_book?&&==&instrument_name"), 400, -32602),
            (get("/api/v2/private/buy?amount=10"), 401, 13_009),
            (get("/elsewhere"), 404, 13_020),
            ("DELETE /api/v2/public/get_time HTTP/1.1\r\n\r\n".to_owned(), 400, -32601),
        ] {
            let (answered, reply) = peer.ask(&request);
            assert_eq!((answered, reply["error"]["code"].as_i64()), (status, Some(code)), "{request:.80}");
        }
        // A short length leaves a rest that is no request; two requests in one segment get two replies.
        peer.send((body(time) + &get("/api/v2/public/get_time") + &post("10")).as_bytes());
        let ids: Vec<Value> = (0..2).map(|_| peer.answer().1["id"].clone()).collect();
        assert_eq!(ids, [3, 0]);
        assert_eq!(peer.answer().1["error"]["code"], -32700);
        assert_eq!(peer.answer(), (400, Value::Null));
        peer.ends();
        // An incomplete request without a continuation.
        for half in ["GET /api/v2/public/get_time HTTP/1.1\r\nHost", &post("64")] {
            let mut peer = door.peer();
            peer.send(half.as_bytes());
            peer.connection.close();
        }
        wait_until("the counts", || door.venue.view.door.broken.read() == broken.len() as u64 + 3);
    });
}

#[test]
fn who_sends_a_request_drop_by_drop_is_closed() {
    by_both(|door| {
        let (mut head, mut body) = (door.peer(), door.peer());
        head.send(b"GET /api/v2/public/get_time HTTP/1.1\r\nX: ");
        body.send(b"POST /api/v2 HTTP/1.1\r\nContent-Length: 60000\r\n\r\n");
        let mut next = Instant::now();
        let mut are_open = [true; 2];
        wait_until("the end", || {
            if Instant::now() >= next {
                next += std::time::Duration::from_millis(100);
                for peer in [&mut head, &mut body] {
                    let _ = peer.connection.write(b"x").and_then(|_| peer.connection.flush());
                }
            }
            are_open = [are_open[0] && head.read(), are_open[1] && body.read()];
            are_open == [false; 2]
        });
        // The deadline of a first request may come before that of a request's end.
        let counters = &door.venue.view.door;
        wait_until("the counts", || counters.broken.read() + counters.evicted.read() == 2);
        assert!(head.received.is_empty() && body.received.is_empty());
    });
}

#[test]
fn wrong_authorizations_are_refused_and_a_signature_is_good_on_one_connection() {
    by_both(|door| {
        let target = "/api/v2/private/get_open_orders_by_currency?currency=BTC";
        let timestamp = realtime_ns() / 1_000_000;
        let signed = |secret: &str, timestamp: u64, nonce: &str, uri: &str| {
            let request = HttpRequest { method: "GET", uri, body: b"" };
            let signature = http_signature(secret.as_bytes(), timestamp, nonce, request);
            let mut header = b"Authorization: ".to_vec();
            write_authorization("anna", timestamp, nonce, &signature, &mut header);
            String::from_utf8(header).unwrap() + "\r\n"
        };
        let good = signed("test", timestamp, "once", target);
        // Two equal calls within a millisecond have the same signature if the client's nonce is the clock.
        let mut own = door.peer();
        for _ in 0..2 {
            let (status, _) = own.ask(&format!("GET {target} HTTP/1.1\r\n{good}\r\n"));
            assert_eq!(status, 200);
        }
        let stated = |value: &str| format!("Authorization: {value}\r\n");
        for (header, outcome) in [
            (good.clone(), (401, Some(13_009))),
            (signed("guess", timestamp, "a", target), (401, Some(13_009))),
            (signed("test", timestamp - 120_000, "b", target), (401, Some(13_009))),
            (signed("test", timestamp + 120_000, "c", target), (401, Some(13_009))),
            (signed("test", timestamp, "d", "/api/v2/private/buy"), (401, Some(13_009))),
            (good.replace("id=anna", "id=absent"), (401, Some(13_004))),
            (stated("deri-hmac-sha256 id=anna"), (401, Some(13_009))),
            // Base64 of anna:test, anna:guess and anna.
            (stated("Basic YW5uYTp0ZXN0"), (200, None)),
            (stated("Basic YW5uYTpndWVzcw=="), (401, Some(13_004))),
            (stated("Basic YW5uYQ=="), (401, Some(13_009))),
            (stated("Basic !"), (401, Some(13_009))),
            (stated("Basic"), (401, Some(13_009))),
            (stated("Bearer forged"), (401, Some(13_009))),
            (stated("Digest anna"), (401, Some(13_009))),
        ] {
            assert_eq!(door.get(target, &header), outcome, "{header}");
        }
        let view = &door.venue.view;
        assert_eq!(view.front.logins_refused.read(), 13);
        // Further guesses are rejected in the end.
        let guess = stated("Basic YW5uYTpndWVzcw==");
        let over = (0..1_000).map(|_| door.get(target, &guess)).find(|outcome| outcome.0 != 401);
        assert_eq!((over, view.front.over_rate.read()), (Some((429, Some(10_028))), 1));
    });
}

#[test]
fn a_secret_waits_for_others_failures_unless_it_was_right_there_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("labels.trusted");
    let open = || {
        let fix = |text: String| text.replace("[deribit]\n", "[deribit]\nfix_address = '127.0.0.1:0'\n");
        Endpoint { venue: start_with(folder.path(), fix), trust: None }.opened()
    };
    // Base64 of anna:test and anna:wrong.
    let ask = |door: &Endpoint, secret: &str| {
        let header = format!("Authorization: Basic {secret}\r\n");
        door.get("/api/v2/private/get_positions", &header)
    };
    let (right, wrong) = ("YW5uYTp0ZXN0", "YW5uYTp3cm9uZw==");
    let door = open();
    assert_eq!(ask(&door, right), (200, None));
    door.venue.stop();
    assert!(std::fs::read_to_string(&file).unwrap().contains("\n127.0.0.1 anna\n"));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);

    let door = open();
    (0..25).for_each(|_| assert!([401, 429].contains(&ask(&door, wrong).0)));
    assert_eq!(ask(&door, right), (200, None));
    assert_eq!(door.venue.view.front.logins_delayed.read(), 0);
    door.venue.stop();

    std::fs::write(&file, "rubbish").unwrap();
    let door = open();
    let delayed = &door.venue.view.front.logins_delayed;
    while delayed.read() == 0 {
        assert_eq!(ask(&door, wrong), (401, Some(13_004)));
    }
    // Over FIX, where the client sends nothing but the Logon.
    let stream = TcpStream::connect(door.venue.fix_address.unwrap()).unwrap();
    let mut fix = FixClient::over(stream, "LATE");
    fix.log_on("anna");
    assert!(fix.is_open_until("the Logon", |got| got.is_up));
    assert_eq!(ask(&door, right), (200, None));
    door.venue.stop();
    assert!(std::fs::read_to_string(&file).unwrap().contains("\n127.0.0.1 anna\n"), "it is written again");
}
