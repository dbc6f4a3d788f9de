//! Why a connection could not be made or used.

use std::io;
use std::path::PathBuf;

use tickpath_net::NetError;

/// Why a connection could not be made or used, with what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebError {
    /// Not an address of the form `wss://host[:port]/path`: correct it.
    #[error("{text:?} is no WebSocket address ({why}): write it like wss://test.deribit.com/ws/api/v2")]
    Url {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The name has no IPv4 address: correct it, or look after the name service.
    #[error("cannot find the host {host}: {source}: check the name and the name service")]
    Resolve {
        /// The name.
        host: String,
        /// What the system said.
        source: io::Error,
    },
    /// Nobody answers there, or no socket could be had.
    #[error(transparent)]
    Connect(#[from] NetError),
    /// The proxy refuses: ask whoever runs it for this host and port.
    #[error(
        "the proxy refuses the connection to {target} with status {status}: it has to allow CONNECT to it"
    )]
    Proxy {
        /// Host and port asked for.
        target: String,
        /// Its HTTP status, 0 where it did not speak HTTP.
        status: u16,
    },
    /// A file of certificates or a key cannot be used.
    #[error("cannot use {path}: {why}: it has to be a PEM file with {what}")]
    PemFile {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
    /// The machine has no certificates to trust: install ca-certificates, or name a file.
    #[error("this machine trusts no certificates ({why}): install ca-certificates, or name a CA file")]
    NoRoots {
        /// What was found.
        why: String,
    },
    /// `wss` needs a client made with certificates to trust.
    #[error("{host} is to be reached by TLS, and no certificates to trust were given")]
    TlsMissing {
        /// The host.
        host: String,
    },
    /// TLS failed: mostly a certificate that is not trusted, or for another name.
    #[error("TLS with {host} failed: {why}: {}", tls_remedy(.why))]
    Tls {
        /// The other end.
        host: String,
        /// What the library said.
        why: String,
    },
    /// The other end answered the upgrade with something else: check the path.
    #[error("{host} does not upgrade to WebSocket, it answers with status {status}: check the path")]
    Refused {
        /// The other end.
        host: String,
        /// Its HTTP status.
        status: u16,
    },
    /// The other end does not speak WebSocket as it should.
    #[error("{host} breaks the WebSocket protocol: {why}: {}", protocol_remedy(.why))]
    Protocol {
        /// The other end.
        host: String,
        /// What it did.
        why: String,
    },
    /// A message is longer than the limit: ask for less, or raise the limit.
    #[error("a message of {size} bytes came from {host}, and {max} is the limit: ask for less at once")]
    TooLong {
        /// The other end.
        host: String,
        /// Its length, in bytes.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// The connection did not open in time.
    #[error("no connection to {host} in time ({stage}): is it reachable from here, or is a proxy needed?")]
    Timeout {
        /// The other end.
        host: String,
        /// How far it had come.
        stage: &'static str,
    },
    /// The connection broke.
    #[error("the connection to {host} broke: {source}: connect again")]
    Io {
        /// The other end.
        host: String,
        /// What the system said.
        source: io::Error,
    },
}

/// What to do about a failure of TLS.
fn tls_remedy(why: &str) -> &'static str {
    if why.contains("InvalidContentType") {
        "nobody speaks TLS at this port: name the one that does, or write ws:// in place of wss://"
    } else if why.contains("certificate") {
        "a CA of one's own is named by ca_file, or --ca-file FILE"
    } else {
        "is it a TLS port, and are its certificates sound?"
    }
}

/// What to do where somebody does not speak WebSocket.
fn protocol_remedy(why: &str) -> &'static str {
    // The first bytes of TLS are no HTTP.
    if why.contains("httparse") {
        "is it a TLS port? then write wss://"
    } else {
        "is it a venue's WebSocket address?"
    }
}
