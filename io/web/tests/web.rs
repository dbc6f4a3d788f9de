//! Both ends over loopback: with each other, with other implementations, and with misbehaving peers.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::thread;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tickpath_net::{Kernel, SendOutcome};
use tickpath_test_support::{ANY_PORT, Certificates, ConnectProxy, PATIENCE, REFUSING, listen, until};
use tickpath_types::Nanos;
use tickpath_web::{
    Closed, EndCause, HttpResponse, ServerEvent, Target, TlsClient, TlsServer, WebAcceptor, WebConnection,
    WebError, WebEvent, WebLimits, WebSocketClient,
};
use tungstenite::Message;

/// The fixed time of tests without time-outs.
const NOW: Nanos = Nanos::from_secs(1);

fn acceptor(tls: Option<TlsServer>, limits: WebLimits) -> WebAcceptor {
    WebAcceptor::bind(Kernel, ANY_PORT, tls, limits).unwrap()
}

fn target(scheme: &str, host: &str, address: SocketAddrV4, tls: Option<TlsClient>) -> Target {
    let url = format!("{scheme}://{host}:{}/ws/api/v2", address.port()).parse().unwrap();
    Target { url, address, is_proxy: false, tls }
}

fn start(target: Target) -> WebSocketClient {
    WebSocketClient::start(&Kernel, NOW, target, WebLimits::client()).unwrap()
}

/// Both ends of a WebSocket.
fn pair(acceptor: &mut WebAcceptor, target: Target) -> (WebSocketClient, WebConnection) {
    let mut client = start(target);
    let mut server = None;
    until(|| {
        let is_open = client.poll_open(NOW).unwrap();
        if server.is_none() {
            server = acceptor.accept(NOW).unwrap();
        }
        let server = server.as_mut()?;
        if let Some(ServerEvent::Upgrade(request)) = server.receive(NOW) {
            assert_eq!((request.path(), request.query()), ("/ws/api/v2", ""));
            server.accept_upgrade();
        }
        (is_open && server.is_websocket()).then_some(())
    });
    (client, server.unwrap())
}

fn plain_pair(limits: WebLimits) -> (WebSocketClient, WebConnection) {
    let mut acceptor = acceptor(None, limits);
    let target = target("ws", "127.0.0.1", acceptor.local_address(), None);
    pair(&mut acceptor, target)
}

/// The next text message at the client.
fn text_at_client(client: &mut WebSocketClient, server: &mut WebConnection) -> String {
    until(|| {
        let _ = server.flush();
        match client.receive().unwrap() {
            Some(WebEvent::Text(text)) => Some(text.to_owned()),
            Some(other) => panic!("{other:?}"),
            None => None,
        }
    })
}

/// The next text message at the server.
fn text_at_server(client: &mut WebSocketClient, server: &mut WebConnection) -> String {
    until(|| {
        let _ = client.flush();
        match server.receive(NOW) {
            Some(ServerEvent::Message(WebEvent::Text(text))) => Some(text.to_owned()),
            Some(other) => panic!("{other:?}"),
            None => None,
        }
    })
}

fn end(server: &mut WebConnection, now: Nanos) -> EndCause {
    until(|| match server.receive(now) {
        Some(ServerEvent::End(cause)) => Some(cause),
        Some(other) => panic!("{other:?}"),
        None => None,
    })
}

#[test]
fn messages_go_both_ways_and_the_close_is_answered() {
    let (mut client, mut server) = plain_pair(WebLimits::server());
    assert_eq!(client.send("ping"), SendOutcome::Sent);
    assert_eq!(text_at_server(&mut client, &mut server), "ping");
    for number in 0..1_000 {
        assert_ne!(server.queue(&format!("message {number}")), SendOutcome::Closed);
    }
    assert!(server.has_pending());
    for number in 0..1_000 {
        assert_eq!(text_at_client(&mut client, &mut server), format!("message {number}"));
    }
    assert!(client.kernel_ns().is_some());
    client.close(1001, "going away");
    assert_eq!(end(&mut server, NOW), EndCause::Done);
    let closed = until(|| match client.receive().unwrap() {
        Some(WebEvent::Closed(closed)) => Some((closed.code, closed.reason.to_owned())),
        _ => None,
    });
    assert_eq!(closed, (1001, "going away".to_owned()));
    assert!(client.is_closed());
    assert_eq!(client.send("late"), SendOutcome::Closed);
}

#[test]
fn over_tls_long_messages_go_both_ways() {
    let files = Certificates::new();
    let tls = TlsServer::from_pem_files(&files.certificate, &files.key).unwrap();
    let mut acceptor = acceptor(Some(tls), WebLimits::server());
    let trust = TlsClient::with_ca_file(&files.ca).unwrap();
    let target = target("wss", "localhost", acceptor.local_address(), Some(trust));
    let (mut client, mut server) = pair(&mut acceptor, target);
    let long = "0123456789abcdef".repeat(200 << 10 >> 4);
    assert_ne!(server.send(&long), SendOutcome::Closed);
    assert_eq!(text_at_client(&mut client, &mut server), long);
    let question = &long[..60 << 10];
    assert_ne!(client.send(question), SendOutcome::Closed);
    assert_eq!(text_at_server(&mut client, &mut server), question);
    server.close(NOW, 1001, "closing time");
    until(|| match client.receive().unwrap() {
        Some(WebEvent::Closed(closed)) => {
            assert_eq!((closed.code, closed.reason), (1001, "closing time"));
            Some(())
        }
        _ => None,
    });
    assert_eq!(end(&mut server, NOW), EndCause::Done);
}

/// Returns the error of a client that cannot connect, and the cause at the server.
fn failure(acceptor: &mut WebAcceptor, target: Target) -> (WebError, EndCause) {
    let mut client = start(target);
    let mut server = None;
    let error = until(|| {
        if server.is_none() {
            server = acceptor.accept(NOW).unwrap();
        }
        match server.as_mut().and_then(|server| server.receive(NOW)) {
            Some(ServerEvent::Upgrade(_)) => {
                let response =
                    HttpResponse { status: 404, content_type: "text/plain", headers: &[], body: b"" };
                server.as_mut().unwrap().respond(NOW, &response);
            }
            Some(ServerEvent::End(_)) => panic!("before the client"),
            _ => {}
        }
        client.poll_open(NOW).err()
    });
    assert!(client.is_closed());
    drop(client);
    (error, end(server.as_mut().unwrap(), NOW))
}

#[test]
fn a_refused_upgrade_says_its_status() {
    let mut acceptor = acceptor(None, WebLimits::server());
    let target = target("ws", "127.0.0.1", acceptor.local_address(), None);
    let (error, cause) = failure(&mut acceptor, target);
    assert!(matches!(error, WebError::Refused { status: 404, .. }), "{error}");
    assert_eq!(cause, EndCause::Done);
}

#[test]
fn a_pem_file_without_an_end_is_refused() {
    let zero = std::path::Path::new("/dev/zero");
    let errors = [
        TlsClient::with_ca_file(zero).err().unwrap().to_string(),
        TlsServer::from_pem_files(zero, zero).err().unwrap().to_string(),
    ];
    for error in errors {
        assert!(error.contains("/dev/zero") && error.contains("more than 4194304 bytes"), "{error}");
    }
}

#[test]
fn certificates_that_are_not_trusted_or_for_another_name_are_refused() {
    let files = Certificates::new();
    let trust = TlsClient::with_ca_file(&files.ca).unwrap();
    let stranger = TlsClient::with_ca_file(&Certificates::new().ca).unwrap();
    for (host, trust, word) in
        [("localhost", stranger, "BadSignature"), ("127.0.0.1", trust, "not valid for name")]
    {
        let tls = TlsServer::from_pem_files(&files.certificate, &files.key).unwrap();
        let mut server = acceptor(Some(tls), WebLimits::server());
        let target = target("wss", host, server.local_address(), Some(trust));
        let mut client = start(target);
        let mut connection = None;
        let error = until(|| {
            if connection.is_none() {
                connection = server.accept(NOW).unwrap();
            }
            if let Some(connection) = &mut connection {
                connection.receive(NOW);
            }
            client.poll_open(NOW).err()
        });
        assert!(matches!(error, WebError::Tls { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn files_that_are_no_certificates_are_named() {
    let files = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "nothing").unwrap();
    let missing = folder.path().join("missing.pem");
    for path in [&empty, &missing] {
        let error = TlsClient::with_ca_file(path).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
        assert!(TlsServer::from_pem_files(path, &files.key).is_err());
        assert!(TlsServer::from_pem_files(&files.certificate, path).is_err());
    }
    let other = Certificates::new();
    let error = TlsServer::from_pem_files(&files.certificate, &other.key).unwrap_err().to_string();
    assert!(error.contains("key.pem"), "{error}");
}

#[test]
fn a_client_gives_up_in_time() {
    let (_silent, address) = listen();
    let mut client = start(target("ws", "127.0.0.1", address, None));
    until(|| (!client.poll_open(NOW).unwrap() && client.stage() == "upgrade to WebSocket").then_some(()));
    let late = NOW + WebLimits::client().connect_timeout;
    let error = client.poll_open(late).unwrap_err();
    assert!(matches!(error, WebError::Timeout { stage: "upgrade to WebSocket", .. }), "{error}");
    assert!(client.is_closed() && client.fd().is_none());
}

#[test]
fn nobody_there_and_tls_without_trust_are_errors() {
    let address = REFUSING;
    let mut client = start(target("ws", "127.0.0.1", address, None));
    let error = until(|| client.poll_open(NOW).err());
    assert!(matches!(error, WebError::Connect(_)), "{error}");
    let target = target("wss", "localhost", address, None);
    let error = WebSocketClient::start(&Kernel, NOW, target, WebLimits::client()).unwrap_err();
    assert!(matches!(error, WebError::TlsMissing { .. }), "{error}");
}

#[test]
fn a_proxy_is_asked_for_the_host_by_name() {
    let files = Certificates::new();
    let tls = TlsServer::from_pem_files(&files.certificate, &files.key).unwrap();
    let mut acceptor = acceptor(Some(tls), WebLimits::server());
    let port = acceptor.local_address().port();
    let proxy = ConnectProxy::to(acceptor.local_address());
    let trust = TlsClient::with_ca_file(&files.ca).unwrap();
    let url = format!("wss://localhost:{port}/ws/api/v2").parse().unwrap();
    let target = Target { url, address: proxy.address, is_proxy: true, tls: Some(trust) };
    let (mut client, mut server) = pair(&mut acceptor, target);
    let _ = client.send("through the proxy");
    assert_eq!(text_at_server(&mut client, &mut server), "through the proxy");
    drop((client, server));
    let expected = format!("CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n");
    assert_eq!(proxy.requests(), [expected]);
}

#[test]
fn a_proxy_that_refuses_says_so() {
    for (answer, status) in [("HTTP/1.1 403 Forbidden\r\n\r\n", 403), ("\0\0\r\n\r\n", 0)] {
        let proxy = ConnectProxy::answering(answer);
        let url = "ws://venue.example:80/".parse().unwrap();
        let mut client = start(Target { url, address: proxy.address, is_proxy: true, tls: None });
        match until(|| client.poll_open(NOW).err()) {
            WebError::Proxy { target, status: got } => {
                assert_eq!((target.as_str(), got), ("venue.example:80", status));
            }
            other => panic!("{other}"),
        }
    }
}

/// A server connection whose client is a plain TCP stream.
fn raw(acceptor: &mut WebAcceptor) -> (TcpStream, WebConnection) {
    let client = TcpStream::connect(acceptor.local_address()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    (client, until(|| acceptor.accept(NOW).unwrap()))
}

#[test]
fn http_requests_are_answered_one_after_the_other() {
    let mut acceptor = acceptor(None, WebLimits::server());
    let (mut client, mut server) = raw(&mut acceptor);
    // Two pipelined requests, and the head of a third.
    let requests = "GET /api/v2/public/get_time HTTP/1.1\r\nHost: a\r\n\r\n\
                    POST /api/v2 HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n";
    client.write_all(requests.as_bytes()).unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let body = until(|| match server.receive(NOW) {
            Some(ServerEvent::Request(request)) => {
                seen.push(format!("{} {}", request.method(), request.path()));
                Some(request.body().to_vec())
            }
            Some(other) => panic!("{other:?}"),
            None => None,
        });
        assert!(server.receive(NOW).is_none(), "nothing comes before the answer");
        server.respond(NOW, &HttpResponse::json(200, if body.is_empty() { b"[]" } else { &body }));
    }
    assert_eq!(seen, ["GET /api/v2/public/get_time", "POST /api/v2", "HEAD /"]);
    let reader = thread::spawn(move || {
        let mut answers = String::new();
        client.read_to_string(&mut answers).unwrap();
        answers
    });
    assert_eq!(end(&mut server, NOW), EndCause::Done);
    let answers = reader.join().unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: ";
    assert_eq!(answers, format!("{head}keep-alive\r\n\r\n[]{head}keep-alive\r\n\r\n{{}}{head}close\r\n\r\n"));
}

#[test]
fn a_client_that_asks_before_it_sends_a_body_is_told_to() {
    let mut acceptor = acceptor(None, WebLimits::server());
    let (mut client, mut server) = raw(&mut acceptor);
    client.write_all(b"POST / HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n").unwrap();
    let mut word = [0; 25];
    client.set_nonblocking(true).unwrap();
    until(|| {
        assert!(server.receive(NOW).is_none());
        client.read_exact(&mut word).ok()
    });
    assert_eq!(&word, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"body").unwrap();
    until(|| match server.receive(NOW) {
        Some(ServerEvent::Request(request)) => {
            assert_eq!(request.body(), b"body");
            Some(())
        }
        _ => None,
    });
}

#[test]
fn bad_requests_are_answered_and_cut_off() {
    let mut acceptor = acceptor(None, WebLimits::server());
    let long_head = format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(WebLimits::server().head_max));
    for (request, status, cause) in [
        ("no HTTP\r\n\r\n", "400 Bad Request", EndCause::BadRequest),
        ("POST / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n", "413 Content Too Large", EndCause::TooLarge),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "411 Length Required",
            EndCause::BadRequest,
        ),
        (&long_head, "431 Request Header Fields Too Large", EndCause::TooLarge),
        (
            "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            "426 Upgrade Required",
            EndCause::BadRequest,
        ),
    ] {
        let (mut client, mut server) = raw(&mut acceptor);
        client.write_all(request.as_bytes()).unwrap();
        let reader = thread::spawn(move || {
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            answer
        });
        assert_eq!(end(&mut server, NOW), cause);
        let answer = reader.join().unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{answer}");
        assert!(server.receive(NOW).is_none());
    }
}

#[test]
fn slow_clients_are_cut_off() {
    let limits = WebLimits::server();
    let late = NOW + limits.request_timeout;
    let mut acceptor = acceptor(None, limits);
    // No byte, part of a head, part of a body: further bytes do not extend the time.
    for request in ["", "GET / HT", "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{"] {
        let (mut client, mut server) = raw(&mut acceptor);
        for (place, byte) in request.bytes().enumerate() {
            client.write_all(&[byte]).unwrap();
            let now = Nanos(NOW.0 + place as u64);
            assert!(server.receive(now).is_none());
        }
        assert!(server.receive(Nanos(late.0 - 1)).is_none());
        assert_eq!(end(&mut server, late), EndCause::Slow);
    }
    // A kept connection idles too long; a second request has its own time.
    for (second, patience) in [("", limits.idle_timeout), ("G", limits.request_timeout)] {
        let (mut client, mut server) = raw(&mut acceptor);
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        until(|| server.receive(NOW).map(|_| ()));
        server.respond(NOW, &HttpResponse::json(200, b"[]"));
        assert!(server.receive(NOW).is_none());
        let then = Nanos(NOW.0 + limits.idle_timeout.0 - 1);
        let before = server.kernel_ns();
        client.write_all(second.as_bytes()).unwrap();
        if second.is_empty() {
            assert!(server.receive(then).is_none());
            assert_eq!(end(&mut server, NOW + patience), EndCause::Slow);
        } else {
            // The byte may not have arrived yet.
            let mut answer = [0; 1_000];
            assert!(client.read(&mut answer).unwrap() > 0);
            until(|| {
                assert!(server.receive(then).is_none());
                (server.kernel_ns() != before).then_some(())
            });
            assert_eq!(end(&mut server, then + patience), EndCause::Slow);
        }
    }
}

#[test]
fn a_client_that_does_not_take_its_answer_is_cut_off() {
    let limits = WebLimits::server();
    let mut acceptor = acceptor(None, limits);
    let (mut client, mut server) = raw(&mut acceptor);
    server.limit_send_buffer(4 << 10).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    until(|| server.receive(NOW).map(|_| ()));
    server.respond(NOW, &HttpResponse::json(200, &vec![b' '; 16 << 20]));
    assert!(server.receive(NOW).is_none() && server.has_pending());
    assert_eq!(end(&mut server, NOW + limits.request_timeout), EndCause::Slow);
}

#[test]
fn a_message_beyond_the_limit_ends_the_connection_and_one_at_it_does_not() {
    let limits = WebLimits { message_max: 1_000, ..WebLimits::server() };
    for (len, cause) in [(1_000, None), (1_001, Some(EndCause::TooLarge))] {
        let (mut client, mut server) = plain_pair(limits);
        let text = "x".repeat(len);
        let _ = client.send(&text);
        match cause {
            None => assert_eq!(text_at_server(&mut client, &mut server), text),
            Some(cause) => {
                assert_eq!(end(&mut server, NOW), cause);
                let code = until(|| match client.receive() {
                    Ok(Some(WebEvent::Closed(closed))) => Some(closed.code),
                    _ => None,
                });
                assert!(code == 1009 || code == Closed::BROKEN, "{code}");
            }
        }
    }
}

#[test]
fn garbage_after_the_upgrade_ends_the_connection() {
    let mut acceptor = acceptor(None, WebLimits::server());
    let upgrade = "GET / HTTP/1.1\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    // Reserved bits, an unmasked frame, a continuation without a start, a long ping, invalid text.
    let frames: [&[u8]; 5] = [
        &[0xf1, 0x80, 0, 0, 0, 0],
        &[0x81, 0x01, b'x'],
        &[0x80, 0x80, 0, 0, 0, 0],
        &[0x89, 0xfe, 0, 126, 0, 0, 0, 0],
        &[0x81, 0x81, 0, 0, 0, 0, 0xff],
    ];
    for frame in frames {
        let (mut client, mut server) = raw(&mut acceptor);
        client.write_all(upgrade.as_bytes()).unwrap();
        client.write_all(frame).unwrap();
        client.write_all(&[0; 200]).unwrap();
        until(|| matches!(server.receive(NOW), Some(ServerEvent::Upgrade(_))).then_some(()));
        server.accept_upgrade();
        assert_eq!(end(&mut server, NOW), EndCause::BadFrame, "{frame:?}");
        let mut answer = vec![0; 129];
        client.read_exact(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        // The example of RFC 6455, 1.3.
        assert!(answer.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"), "{answer}");
    }
}

#[test]
fn every_truncation_of_a_frame_waits_for_more_and_is_lost_with_the_connection() {
    let frame = [0x81, 0x85, 1, 2, 3, 4, b'h' ^ 1, b'e' ^ 2, b'l' ^ 3, b'l' ^ 4, b'o' ^ 1];
    let mut acceptor = acceptor(None, WebLimits::server());
    for len in 0..=frame.len() {
        let (mut client, mut server) = raw(&mut acceptor);
        let upgrade = "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        client.write_all(upgrade.as_bytes()).unwrap();
        client.write_all(&frame[..len]).unwrap();
        until(|| matches!(server.receive(NOW), Some(ServerEvent::Upgrade(_))).then_some(()));
        server.accept_upgrade();
        drop(client);
        let mut has_message = false;
        let cause = until(|| match server.receive(NOW) {
            Some(ServerEvent::Message(message)) => {
                assert_eq!(message, WebEvent::Text("hello"));
                has_message = true;
                None
            }
            Some(ServerEvent::End(cause)) => Some(cause),
            _ => None,
        });
        assert_eq!((cause, has_message), (EndCause::Lost, len == frame.len()));
    }
}

#[test]
fn a_client_that_never_reads_is_told_of_and_costs_a_bounded_queue() {
    let limits = WebLimits { pending_max: 64 << 10, ..WebLimits::server() };
    let (mut client, mut server) = plain_pair(limits);
    server.limit_send_buffer(4 << 10).unwrap();
    let text = "y".repeat(1_000);
    let mut sent = 0;
    until(|| match server.send(&text) {
        SendOutcome::Backpressured => Some(()),
        SendOutcome::Closed => panic!("closed"),
        _ => {
            sent += 1;
            None
        }
    });
    assert!(server.has_pending());
    // Accepted messages arrive whole; rejected ones do not arrive.
    for _ in 0..sent {
        assert_eq!(text_at_client(&mut client, &mut server), text);
    }
    until(|| (server.flush() == SendOutcome::Sent).then_some(()));
    assert_eq!(server.send("room again"), SendOutcome::Sent);
    assert_eq!(text_at_client(&mut client, &mut server), "room again");
    assert_eq!(server.send(&"z".repeat(65 << 10)), SendOutcome::Backpressured);
}

#[test]
fn a_close_that_is_not_answered_ends_in_time() {
    let (client, mut server) = plain_pair(WebLimits::server());
    server.close(NOW, 1000, "");
    assert!(server.receive(NOW).is_none());
    assert_eq!(end(&mut server, NOW + WebLimits::server().close_timeout), EndCause::Slow);
    drop(client);
}

#[test]
fn a_broken_connection_is_an_event_at_both_ends() {
    let (mut client, server) = plain_pair(WebLimits::server());
    drop(server);
    let code = until(|| match client.receive().unwrap() {
        Some(WebEvent::Closed(closed)) => Some(closed.code),
        _ => None,
    });
    assert_eq!(code, Closed::BROKEN);
    let (client, mut server) = plain_pair(WebLimits::server());
    drop(client);
    assert_eq!(end(&mut server, NOW), EndCause::Lost);
}

#[test]
fn a_blocking_client_of_another_kind_is_served() {
    let mut acceptor = acceptor(None, WebLimits::server());
    let url = format!("ws://{}/ws/api/v2", acceptor.local_address());
    let client = thread::spawn(move || {
        let (mut socket, _) = tungstenite::connect(url).unwrap();
        socket.send(Message::Ping(b"are you there"[..].into())).unwrap();
        socket.send(Message::text("question")).unwrap();
        let pong = socket.read().unwrap();
        let answer = socket.read().unwrap();
        socket.close(None).unwrap();
        while socket.read().is_ok() {}
        (pong, answer)
    });
    let mut server = until(|| acceptor.accept(NOW).unwrap());
    until(|| matches!(server.receive(NOW), Some(ServerEvent::Upgrade(_))).then_some(()));
    server.accept_upgrade();
    let question = until(|| match server.receive(NOW) {
        Some(ServerEvent::Message(WebEvent::Text(text))) => Some(text.to_owned()),
        _ => None,
    });
    assert_eq!(question, "question");
    let _ = server.send("answer");
    assert_eq!(end(&mut server, NOW), EndCause::Done);
    let (pong, answer) = client.join().unwrap();
    assert_eq!(pong, Message::Pong(b"are you there"[..].into()));
    assert_eq!(answer, Message::text("answer"));
}

#[test]
fn a_blocking_server_of_another_kind_is_talked_to() {
    let (listener, address) = listen();
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut socket = tungstenite::accept(stream).unwrap();
        let question = socket.read().unwrap();
        // In fragments, with a ping between them.
        use tungstenite::protocol::frame::Frame;
        use tungstenite::protocol::frame::coding::{Data, OpCode};
        let part = |text: &'static str, kind, is_last| {
            Message::Frame(Frame::message(text, OpCode::Data(kind), is_last))
        };
        socket.send(part("an", Data::Text, false)).unwrap();
        socket.send(Message::Ping(b"x"[..].into())).unwrap();
        socket.send(part("swer", Data::Continue, true)).unwrap();
        let pong = socket.read().unwrap();
        assert!(pong.is_pong());
        socket.close(None).unwrap();
        while socket.read().is_ok() {}
        question
    });
    let mut client = start(target("ws", "127.0.0.1", address, None));
    until(|| client.poll_open(NOW).unwrap().then_some(()));
    let _ = client.send("question");
    until(|| match client.receive().unwrap() {
        Some(WebEvent::Text(text)) => {
            assert_eq!(text, "answer");
            Some(())
        }
        _ => None,
    });
    let code = until(|| match client.receive().unwrap() {
        Some(WebEvent::Closed(closed)) => Some(closed.code),
        _ => None,
    });
    assert_eq!(code, Closed::NO_CODE);
    drop(client);
    assert_eq!(server.join().unwrap(), Message::text("question"));
}

#[test]
fn a_server_that_says_goodbye_in_tls_alone_has_left() {
    let files = Certificates::new();
    let chain = vec![CertificateDer::from_pem_file(&files.certificate).unwrap()];
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(&files.key).unwrap())
        .unwrap();
    let (listener, address) = listen();
    let (is_heard, heard) = std::sync::mpsc::channel();
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let session = ServerConnection::new(Arc::new(config)).unwrap();
        let mut socket = tungstenite::accept(StreamOwned::new(session, stream)).unwrap();
        socket.send(Message::text("one")).unwrap();
        assert_eq!(socket.read().unwrap(), Message::text("two"));
        let stream = socket.get_mut();
        stream.conn.send_close_notify();
        stream.conn.complete_io(&mut stream.sock).unwrap();
        // Keeps the socket open until the client has read the close.
        heard.recv_timeout(PATIENCE).unwrap();
    });
    let trust = TlsClient::with_ca_file(&files.ca).unwrap();
    let mut client = start(target("wss", "localhost", address, Some(trust)));
    until(|| client.poll_open(NOW).unwrap().then_some(()));
    until(|| match client.receive().unwrap() {
        Some(WebEvent::Text(text)) => {
            assert_eq!(text, "one");
            Some(())
        }
        _ => None,
    });
    // Nothing is available now, so that close_notify is the next thing to arrive.
    assert!(client.receive().unwrap().is_none());
    assert_ne!(client.send("two"), SendOutcome::Closed);
    let code = until(|| match client.receive().unwrap() {
        Some(WebEvent::Closed(closed)) => Some(closed.code),
        _ => None,
    });
    assert_eq!(code, 1006);
    is_heard.send(()).unwrap();
    server.join().unwrap();
}
