//! Connections of bytes, over TCP and over TLS.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tickpath_net::{Kernel, Poller};
use tickpath_web::{ByteAcceptor, ByteConnection, TlsServer};

const PATIENCE: Duration = Duration::from_secs(60);
/// More than the kernel takes at once.
const LEN: usize = 3 << 20;

fn bind(tls: Option<TlsServer>) -> ByteAcceptor {
    ByteAcceptor::bind(&Kernel, SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0), tls).unwrap()
}

/// Sends back what comes, until the other end leaves; returns how many bytes that were.
fn echo(mut acceptor: ByteAcceptor) -> usize {
    let deadline = Instant::now() + PATIENCE;
    let mut poller = Poller::new(4).unwrap();
    acceptor.watch(&poller, 1).unwrap();
    let mut connection: ByteConnection = loop {
        assert!(Instant::now() < deadline, "nobody connects");
        if poller.poll().unwrap().next().is_some()
            && let Some(connection) = acceptor.accept().unwrap()
        {
            break connection;
        }
        thread::yield_now();
    };
    connection.watch(&poller, 2).unwrap();
    connection.limit_send_buffer(1 << 16).unwrap();
    let (mut buffer, mut waiting, mut count) = (vec![0; 1 << 15], Vec::new(), 0);
    loop {
        assert!(Instant::now() < deadline, "the other end does not leave");
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

/// Writes a pattern while another thread reads it back.
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
    let folder = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let (chain, private) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    std::fs::write(&chain, certificate.pem()).unwrap();
    std::fs::write(&private, key.serialize_pem()).unwrap();
    let acceptor = bind(Some(TlsServer::from_pem_files(&chain, &private).unwrap()));
    let address = acceptor.local_address();
    let server = thread::spawn(move || echo(acceptor));

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificate.der().to_vec())).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
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
    let folder = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let (chain, private) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    std::fs::write(&chain, certificate.pem()).unwrap();
    std::fs::write(&private, key.serialize_pem()).unwrap();
    let acceptor = bind(Some(TlsServer::from_pem_files(&chain, &private).unwrap()));
    let address = acceptor.local_address();
    let server = thread::spawn(move || echo(acceptor));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"8=FIX.4.4\x019=5\x0135=A\x0110=000\x01").unwrap();
    assert_eq!(server.join().unwrap(), 0);
}
