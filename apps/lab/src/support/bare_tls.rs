//! Both ends of a TLS connection over the loopback interface, without WebSocket or Deribit code.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::ops::DerefMut;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, ConnectionCommon, RootCertStore, ServerConfig, ServerConnection, SideData,
};

use super::deribit_venue::Certificates;
use super::loopback::tcp_pair;

/// One end of the connection.
pub(crate) struct BareTls<T> {
    tls: T,
    socket: TcpStream,
}

impl<T: DerefMut<Target = ConnectionCommon<D>>, D: SideData> BareTls<T> {
    /// Encrypts the bytes and passes them to the kernel.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.tls.writer().write_all(bytes)?;
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.socket)?;
        }
        Ok(())
    }

    /// Sends pending handshake data and reads available data; returns the number of bytes of plain text.
    pub(crate) fn read(&mut self) -> anyhow::Result<u64> {
        while self.tls.wants_write() && unless_blocked(self.tls.write_tls(&mut self.socket))? > 0 {}
        let mut len = 0;
        if unless_blocked(self.tls.read_tls(&mut self.socket))? > 0 {
            self.tls.process_new_packets()?;
            let mut buffer = [0; 4_096];
            loop {
                match unless_blocked(self.tls.reader().read(&mut buffer))? {
                    0 => break,
                    count => len += count as u64,
                }
            }
        }
        Ok(len)
    }

    fn is_open(&self) -> bool {
        !(self.tls.is_handshaking() || self.tls.wants_write())
    }
}

/// Opens a bare TLS connection and returns both ends.
pub(crate) fn bare_tls(
    certificates: &Certificates,
) -> anyhow::Result<(BareTls<ClientConnection>, BareTls<ServerConnection>)> {
    let provider = Arc::new(default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&certificates.ca)?)?;
    let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let chain = vec![CertificateDer::from_pem_file(&certificates.certificate)?];
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(&certificates.key)?)?;
    let [client_socket, server_socket] = tcp_pair()?;
    let tls = ClientConnection::new(Arc::new(client), ServerName::try_from("localhost")?)?;
    let mut client = BareTls { tls, socket: client_socket };
    let mut server = BareTls { tls: ServerConnection::new(Arc::new(server))?, socket: server_socket };
    while !(client.is_open() && server.is_open()) {
        client.read()?;
        server.read()?;
    }
    Ok((client, server))
}

/// Maps the error `WouldBlock` of a read or write to 0 bytes.
fn unless_blocked(done: std::io::Result<usize>) -> anyhow::Result<usize> {
    match done {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        other => Ok(other?),
    }
}
