//! Addresses of WebSocket endpoints.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4, ToSocketAddrs};
use std::str::FromStr;

use tungstenite::http::Uri;

use crate::WebError;

/// `ws://host[:port]/path` or `wss://host[:port]/path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebUrl {
    uri: Uri,
    host: String,
    port: u16,
    is_tls: bool,
}

impl WebUrl {
    /// Whether the scheme is `wss` (TLS).
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The name or IPv4 address.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; the default is 443 for `wss` and 80 for `ws`.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the host is `localhost` or an address of 127.0.0.0/8.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
    }

    /// Returns its IPv4 address. A name is looked up by the system's name service, which can take seconds: do
    /// not call this in a duty cycle. A numeric address needs no lookup.
    ///
    /// # Errors
    /// [`WebError::Resolve`].
    pub fn resolve(&self) -> Result<SocketAddrV4, WebError> {
        resolve(&self.host, self.port)
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }
}

/// Does the same as [`WebUrl::resolve`], for a name and a port.
///
/// # Errors
/// [`WebError::Resolve`].
pub fn resolve(host: &str, port: u16) -> Result<SocketAddrV4, WebError> {
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Ok(SocketAddrV4::new(address, port));
    }
    let failed = |source| WebError::Resolve { host: host.to_owned(), source };
    let mut addresses = (host, port).to_socket_addrs().map_err(failed)?;
    let found = addresses.find_map(|address| match address {
        std::net::SocketAddr::V4(address) => Some(address),
        std::net::SocketAddr::V6(_) => None,
    });
    found.ok_or_else(|| failed(std::io::Error::other("it has no IPv4 address")))
}

impl FromStr for WebUrl {
    type Err = WebError;

    fn from_str(text: &str) -> Result<WebUrl, WebError> {
        let wrong = |why| WebError::Url { text: text.to_owned(), why };
        let uri: Uri = text.parse().map_err(|_| wrong("not of the form scheme://host/path"))?;
        let is_tls = match uri.scheme_str() {
            Some("ws") => false,
            Some("wss") => true,
            _ => return Err(wrong("it begins with neither ws:// nor wss://")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("no user or password belongs there"));
        }
        let host = authority.host().to_owned();
        if host.is_empty() || host.starts_with('[') {
            return Err(wrong("the host has to be a name or an IPv4 address"));
        }
        let given_port = authority.as_str().len() > host.len();
        let port = match authority.port_u16() {
            Some(0) => return Err(wrong("port 0 is no port")),
            Some(port) => port,
            None if given_port => return Err(wrong("the port is no number up to 65535")),
            None if is_tls => 443,
            None => 80,
        };
        Ok(WebUrl { uri, host, port, is_tls })
    }
}

impl fmt::Display for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_url_says_is_found() {
        let url: WebUrl = "wss://test.deribit.com/ws/api/v2".parse().unwrap();
        assert_eq!((url.host(), url.port(), url.is_tls()), ("test.deribit.com", 443, true));
        assert_eq!(url.to_string(), "wss://test.deribit.com/ws/api/v2");
        assert!(!url.is_loopback());
        let url: WebUrl = "ws://127.0.0.1:9001".parse().unwrap();
        assert_eq!((url.host(), url.port(), url.is_tls()), ("127.0.0.1", 9_001, false));
        assert!(url.is_loopback());
        assert_eq!(url.resolve().unwrap(), "127.0.0.1:9001".parse().unwrap());
        assert!("ws://localhost/".parse::<WebUrl>().unwrap().is_loopback());
    }

    #[test]
    fn what_is_no_url_is_said() {
        for (text, why) in [
            ("", "scheme"),
            ("test.deribit.com", "neither"),
            ("http://a/", "neither"),
            ("wss://user:secret@a/", "password"),
            ("ws://[::1]:80/", "IPv4"),
            ("ws://a:0/", "port 0"),
            ("ws://a:70000/", "port"),
        ] {
            let error = text.parse::<WebUrl>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
