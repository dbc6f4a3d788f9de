//! Errors of making or using a connection.

use std::io;
use std::path::PathBuf;

use tickpath_net::NetError;

/// The reason why a connection could not be made or used, with a remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebError {
    /// Not an address of the form `wss://host[:port]/path`: correct it.
    #[error("{text:?} is no WebSocket address ({why}): write it like wss://test.deribit.com/ws/api/v2")]
    Url {
        /// The text given.
        text: String,
        /// The fault.
        why: &'static str,
    },
    /// The name has no IPv4 address: correct it, or check the name service.
    #[error("cannot find the host {host}: {source}: check the name and the name service")]
    Resolve {
        /// The name.
        host: String,
        /// The system's error.
        source: io::Error,
    },
    /// Nothing listens there, or no socket is available.
    #[error(transparent)]
    Connect(#[from] NetError),
    /// The proxy refuses: ask its operator to allow this host and port.
    #[error(
        "the proxy refuses the connection to {target} with status {status}: it has to allow CONNECT to it"
    )]
    Proxy {
        /// The requested host and port.
        target: String,
        /// Its HTTP status, or 0 if its answer was not HTTP.
        status: u16,
    },
    /// A file with certificates or a key cannot be used.
    #[error("cannot use {path}: {why}: it has to be a PEM file with {what}")]
    PemFile {
        /// The file.
        path: PathBuf,
        /// The expected content.
        what: &'static str,
        /// The fault.
        why: String,
    },
    /// The machine has no trusted certificates: install ca-certificates, or name a file.
    #[error("this machine trusts no certificates ({why}): install ca-certificates, or name a CA file")]
    NoRoots {
        /// The outcome of the search.
        why: String,
    },
    /// `wss` needs a client with trusted certificates.
    #[error("{host} is to be reached by TLS, and no certificates to trust were given")]
    TlsMissing {
        /// The host.
        host: String,
    },
    /// TLS failed: usually the certificate is not trusted, or is for another name.
    #[error("TLS with {host} failed: {why}: {}", tls_remedy(.why))]
    Tls {
        /// The peer.
        host: String,
        /// The library's message.
        why: String,
    },
    /// The peer did not answer with an upgrade: check the path.
    #[error("{host} does not upgrade to WebSocket, it answers with status {status}: check the path")]
    Refused {
        /// The peer.
        host: String,
        /// Its HTTP status.
        status: u16,
    },
    /// The peer violates the WebSocket protocol.
    #[error("{host} breaks the WebSocket protocol: {why}: {}", protocol_remedy(.why))]
    Protocol {
        /// The peer.
        host: String,
        /// The violation.
        why: String,
    },
    /// A message exceeds the limit: request less, or raise the limit.
    #[error("a message of {size} bytes came from {host}, and {max} is the limit: ask for less at once")]
    TooLong {
        /// The peer.
        host: String,
        /// Its length, in bytes.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// The connection did not open in time.
    #[error("no connection to {host} in time ({stage}): is it reachable from here, or is a proxy needed?")]
    Timeout {
        /// The peer.
        host: String,
        /// The pending step.
        stage: &'static str,
    },
    /// The connection broke.
    #[error("the connection to {host} broke: {source}: connect again")]
    Io {
        /// The peer.
        host: String,
        /// The system's error.
        source: io::Error,
    },
}

/// The remedy for a TLS failure.
fn tls_remedy(why: &str) -> &'static str {
    if why.contains("InvalidContentType") {
        "this port does not accept TLS: name one that does, or write ws:// in place of wss://"
    } else if why.contains("certificate") {
        "name a private CA by ca_file, or --ca-file FILE"
    } else {
        "is it a TLS port, and are its certificates sound?"
    }
}

/// The remedy for a peer that does not speak WebSocket.
fn protocol_remedy(why: &str) -> &'static str {
    // The first bytes of TLS are not HTTP.
    if why.contains("httparse") {
        "is it a TLS port? then write wss://"
    } else {
        "is it a venue's WebSocket address?"
    }
}
