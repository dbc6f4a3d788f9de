//! Certificates for TLS.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// A certificate for `localhost`, as files: `certificate.pem` and `key.pem`, and `ca.pem` of the CA that signed it.
#[derive(Debug)]
pub struct Certificates {
    /// The CA's certificate, which clients must trust.
    pub ca: PathBuf,
    /// The server's certificate.
    pub certificate: PathBuf,
    /// The server's private key.
    pub key: PathBuf,
    /// Owns the folder of the files; removes them on drop.
    folder: Option<TempDir>,
}

impl Certificates {
    /// Creates new certificates in a temporary folder.
    #[must_use]
    #[allow(clippy::new_without_default)] // each is another one
    pub fn new() -> Certificates {
        let folder = tempfile::tempdir().unwrap();
        let mut written = Certificates::write(folder.path());
        written.folder = Some(folder);
        written
    }

    /// Writes new certificates to a folder.
    #[allow(clippy::must_use_candidate)] // a server may read the files by their names
    pub fn write(folder: &Path) -> Certificates {
        let (ca_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_text = ca.self_signed(&ca_key).unwrap().pem();
        let server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = server.signed_by(&key, &Issuer::new(ca, ca_key)).unwrap();
        let file = |name: &str, text: String| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        Certificates {
            ca: file("ca.pem", ca_text),
            certificate: file("certificate.pem", certificate.pem()),
            key: file("key.pem", key.serialize_pem()),
            folder: None,
        }
    }
}
