//! Byte connections, over TCP and over TLS.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::thread;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tickpath_net::{Kernel, Poller};
use tickpath_test_support::{ANY_PORT, Certificates, ConnectProxy, Deadline, listen, until, wait_for};
use tickpath_types::Nanos;
use tickpath_web::{ByteAcceptor, ByteClient, ByteConnection, ByteTarget, TlsClient, TlsServer, WebError};

/// Larger than the kernel's buffers.
const LEN: usize = 3 << 20;

fn bind(tls: Option<TlsServer>) -> ByteAcceptor {
    ByteAcceptor::bind(&Kernel, ANY_PORT, tls).unwrap()
}

fn tls_server(files: &Certificates) -> TlsServer {
    TlsServer::from_pem_files(&files.certificate, &files.key).unwrap()
}

/// Echoes all bytes until the peer disconnects; returns the number of bytes.
fn echo(mut acceptor: ByteAcceptor) -> usize {
    let deadline = Deadline::start();
    let mut poller = Poller::new(4).unwrap();
    acceptor.watch(&poller, 1).unwrap();
    let mut connection: ByteConnection = wait_for("a client", || {
        poller.poll().unwrap().next()?;
        acceptor.accept().unwrap()
    });
    connection.watch(&poller, 2).unwrap();
    connection.limit_send_buffer(1 << 16).unwrap();
    let (mut buffer, mut waiting, mut count) = (vec![0; 1 << 15], Vec::new(), 0);
    loop {
        assert!(!deadline.is_over(), "the other end does not leave");
        match connection.read(&mut buffer) {
            Ok(Some(len)) => {
                waiting.extend_from_slice(&buffer[..len]);
                count += len;
            }
            Ok(None) => thread::yield_now(),
            Err(_) => break,
        }
        let sent = connection.write(&waiting).unwrap_or(waiting.len());
        waiting.drain(..sent);
        let _ = connection.flush();
    }
    connection.close();
    count
}

/// Checks that the received bytes equal those sent.
fn check_pattern(sent: &[u8], received: &[u8]) {
    assert_eq!(received.len(), sent.len());
    assert!(received == sent, "the same bytes come back");
}

fn pattern() -> Vec<u8> {
    (0..LEN).map(|place| (place * 7 / 5) as u8).collect()
}

#[test]
fn bytes_come_back_over_tcp() {
    let acceptor = bind(None);
    let address = acceptor.local_address();
    let server = thread::spawn(move || echo(acceptor));
    let mut stream = TcpStream::connect(address).unwrap();
    let (sent, mut writer) = (pattern(), stream.try_clone().unwrap());
    let written = sent.clone();
    let writing = thread::spawn(move || writer.write_all(&written).unwrap());
    let mut received = vec![0; LEN];
    stream.read_exact(&mut received).unwrap();
    writing.join().unwrap();
    drop(stream);
    check_pattern(&sent, &received);
    assert_eq!(server.join().unwrap(), LEN);
}

#[test]
fn bytes_come_back_over_tls() {
    let files = Certificates::new();
    let acceptor = bind(Some(tls_server(&files)));
    let address = acceptor.local_address();
    let server = thread::spawn(move || echo(acceptor));

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&files.ca).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let session = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    let mut stream = StreamOwned::new(session, TcpStream::connect(address).unwrap());
    let sent = pattern();
    let mut received = vec![0; LEN];
    for (sent, received) in sent.chunks(10_000).zip(received.chunks_mut(10_000)) {
        stream.write_all(sent).unwrap();
        stream.read_exact(received).unwrap();
    }
    stream.conn.send_close_notify();
    let _ = stream.flush();
    drop(stream);
    check_pattern(&sent, &received);
    assert_eq!(server.join().unwrap(), LEN);
}

#[test]
fn who_speaks_no_tls_is_an_error() {
    let files = Certificates::new();
    let acceptor = bind(Some(tls_server(&files)));
    let address = acceptor.local_address();
    let server = thread::spawn(move || echo(acceptor));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"8=FIX.4.4\x019=5\x0135=A\x0110=000\x01").unwrap();
    assert_eq!(server.join().unwrap(), 0);
}

/// Connects with a clock that does not advance.
fn connect(target: ByteTarget) -> Result<ByteConnection, WebError> {
    let deadline = Deadline::start();
    let mut client = ByteClient::start(&Kernel, Nanos::ZERO, target, Nanos::from_secs(1))?;
    loop {
        assert!(!deadline.is_over(), "{}", client.stage());
        if let Some(connection) = client.poll_open(Nanos::ZERO)? {
            assert_eq!(client.stage(), "over");
            return Ok(connection);
        }
        thread::yield_now();
    }
}

#[test]
fn our_client_connects_by_tcp_by_tls_and_through_a_proxy() {
    let files = Certificates::new();
    let trust = TlsClient::with_ca_file(&files.ca).unwrap();
    for (is_tls, is_proxy) in [(false, false), (true, false), (false, true), (true, true)] {
        let tls = is_tls.then(|| tls_server(&files));
        let acceptor = bind(tls);
        let address = acceptor.local_address();
        let server = thread::spawn(move || echo(acceptor));
        let proxy = is_proxy.then(|| ConnectProxy::to(address));
        let target = ByteTarget {
            host: "localhost".to_owned(),
            port: address.port(),
            address: proxy.as_ref().map_or(address, |proxy| proxy.address),
            is_proxy,
            tls: is_tls.then(|| trust.clone()),
        };
        let mut connection = connect(target).unwrap();
        let (sent, mut received, mut buffer) = (vec![7; 100_000], Vec::new(), vec![0; 1 << 15]);
        let (mut rest, deadline) = (&sent[..], Deadline::start());
        while received.len() < sent.len() {
            assert!(!deadline.is_over(), "{} of {}", received.len(), sent.len());
            rest = &rest[connection.write(rest).unwrap()..];
            let _ = connection.flush().unwrap();
            match connection.read(&mut buffer).unwrap() {
                Some(count) => received.extend_from_slice(&buffer[..count]),
                None => thread::yield_now(),
            }
        }
        check_pattern(&sent, &received);
        connection.close();
        drop(connection);
        assert_eq!(server.join().unwrap(), sent.len());
        if let Some(proxy) = proxy {
            let asked = proxy.requests().concat();
            assert!(
                asked.starts_with(&format!("CONNECT localhost:{} HTTP/1.1\r\n", address.port())),
                "{asked}"
            );
        }
    }
}

#[test]
fn a_connection_of_bytes_that_cannot_be_says_why() {
    let files = Certificates::new();
    let trust = TlsClient::with_ca_file(&files.ca).unwrap();
    let of = |address: SocketAddrV4, host: &str| ByteTarget {
        host: host.to_owned(),
        port: address.port(),
        address,
        is_proxy: false,
        tls: Some(trust.clone()),
    };
    // A certificate for another name.
    let acceptor = bind(Some(tls_server(&files)));
    let address = acceptor.local_address();
    let server = thread::spawn(move || echo(acceptor));
    let error = connect(of(address, "elsewhere.example")).unwrap_err();
    assert!(matches!(&error, WebError::Tls { host, .. } if host == "elsewhere.example"), "{error}");
    assert_eq!(server.join().unwrap(), 0);
    // A silent server, and an address without a listener.
    let (silent, address) = listen();
    let mut client =
        ByteClient::start(&Kernel, Nanos::ZERO, of(address, "localhost"), Nanos::from_secs(1)).unwrap();
    until(|| {
        assert!(client.poll_open(Nanos::ZERO).unwrap().is_none());
        (client.stage() == "TLS handshake").then_some(())
    });
    let late = client.poll_open(Nanos::from_secs(1)).unwrap_err();
    assert!(matches!(late, WebError::Timeout { stage: "TLS handshake", .. }), "{late}");
    drop(silent);
    assert!(matches!(connect(of(address, "localhost")), Err(WebError::Connect(_))));
}
