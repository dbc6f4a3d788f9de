//! Trusted certificates of clients, and the certificate of a server.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection};

use crate::WebError;

/// Upper bound of a PEM file, in bytes; the certificate store of a machine has some hundred thousand.
const PEM_LEN_MAX: u64 = 4 << 20;

/// The certificates that a client trusts. Create it once: reading the machine's store takes milliseconds.
#[derive(Clone, Debug)]
pub struct TlsClient(Arc<ClientConfig>);

impl TlsClient {
    /// Trusts this machine's certificate store, or the file that `SSL_CERT_FILE` names.
    ///
    /// # Errors
    /// [`WebError::NoRoots`].
    pub fn with_system_roots() -> Result<TlsClient, WebError> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            let why = found.errors.first().map_or_else(|| "none found".to_owned(), ToString::to_string);
            return Err(WebError::NoRoots { why });
        }
        Ok(TlsClient::new(roots))
    }

    /// Trusts only the certificates in a PEM file: the CA of a site, or a venue's own certificate.
    ///
    /// # Errors
    /// [`WebError::PemFile`].
    pub fn with_ca_file(path: &Path) -> Result<TlsClient, WebError> {
        let wrong =
            |why: String| WebError::PemFile { path: path.to_owned(), what: "the certificates to trust", why };
        let mut roots = RootCertStore::empty();
        let pem = read_pem(path).map_err(|error| wrong(error.to_string()))?;
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
            roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(wrong("no certificate in it".to_owned()));
        }
        Ok(TlsClient::new(roots))
    }

    fn new(roots: RootCertStore) -> TlsClient {
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider has the cipher suites of TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        TlsClient(Arc::new(config))
    }

    /// Starts a session with the host of that name.
    pub(crate) fn connect(&self, host: &str) -> Result<Connection, WebError> {
        let failed = |why: String| WebError::Tls { host: host.to_owned(), why };
        let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(error.to_string()))?;
        let session = ClientConnection::new(Arc::clone(&self.0), name);
        Ok(Connection::Client(session.map_err(|error| failed(error.to_string()))?))
    }
}

/// Reads a PEM file, which may be a pipe or a device.
fn read_pem(path: &Path) -> io::Result<Vec<u8>> {
    let mut pem = Vec::new();
    File::open(path)?.take(PEM_LEN_MAX + 1).read_to_end(&mut pem)?;
    if pem.len() as u64 > PEM_LEN_MAX {
        return Err(io::Error::other(format!("it has more than {PEM_LEN_MAX} bytes: is it the right file?")));
    }
    Ok(pem)
}

/// The certificate and key of a server.
#[derive(Clone, Debug)]
pub struct TlsServer(Arc<ServerConfig>);

impl TlsServer {
    /// Loads two PEM files: the certificate, followed by the chain to the CA, and its private key.
    ///
    /// # Errors
    /// [`WebError::PemFile`] if one of them cannot be read, or they do not match.
    pub fn from_pem_files(certificate: &Path, key: &Path) -> Result<TlsServer, WebError> {
        let wrong = |path: &Path, what, why: String| WebError::PemFile { path: path.to_owned(), what, why };
        let wrong_chain = |why| wrong(certificate, "the server's certificates", why);
        let pem = read_pem(certificate).map_err(|error| wrong_chain(error.to_string()))?;
        let chain = CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| wrong_chain(error.to_string()))?;
        if chain.is_empty() {
            return Err(wrong_chain("no certificate in it".to_owned()));
        }
        let wrong_key = |why| wrong(key, "the private key of the certificate", why);
        let pem = read_pem(key).map_err(|error| wrong_key(error.to_string()))?;
        let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| wrong_key(error.to_string()))?;
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider has the cipher suites of TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| wrong_key(error.to_string()))?;
        Ok(TlsServer(Arc::new(config)))
    }

    /// Starts a session with a client that has just connected.
    pub(crate) fn accept(&self) -> Result<Connection, rustls::Error> {
        Ok(Connection::Server(ServerConnection::new(Arc::clone(&self.0))?))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(default_provider())
}
