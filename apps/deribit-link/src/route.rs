//! The route to a venue.

use std::fmt;
use std::str::FromStr;

use tickpath_web::{TlsClient, WebUrl};

/// An HTTP proxy, used with CONNECT; written `host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Its name or IPv4 address.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// An invalid proxy text: write it as `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("proxy {text:?}: write it as host:port")]
pub struct ProxyError {
    text: String,
}

impl FromStr for Proxy {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Proxy, ProxyError> {
        let parts = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        match parts {
            Some((host, port)) if !host.is_empty() && port != 0 => Ok(Proxy { host: host.to_owned(), port }),
            _ => Err(ProxyError { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The address of a venue and the route to it.
#[derive(Clone, Debug)]
pub struct Route {
    /// The venue's WebSocket.
    pub url: WebUrl,
    /// The proxy, if any.
    pub proxy: Option<Proxy>,
    /// The trusted certificates; required for `wss`.
    pub tls: Option<TlsClient>,
}

impl Route {
    /// A route without a proxy.
    #[must_use]
    pub fn direct(url: WebUrl, tls: Option<TlsClient>) -> Route {
        Route { url, proxy: None, tls }
    }

    /// The host and port to look up: the proxy's, or the venue's.
    pub(crate) fn first_hop(&self) -> (&str, u16) {
        match &self.proxy {
            Some(proxy) => (&proxy.host, proxy.port),
            None => (self.url.host(), self.url.port()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_a_host_and_a_port() {
        let proxy: Proxy = "proxy.example:3128".parse().unwrap();
        assert_eq!((proxy.host.as_str(), proxy.port), ("proxy.example", 3128));
        assert_eq!(proxy.to_string(), "proxy.example:3128");
        for text in ["", "proxy", "proxy:", ":1", "proxy:0", "proxy:70000", "http://proxy"] {
            assert!(text.parse::<Proxy>().unwrap_err().to_string().contains("host:port"), "{text}");
        }
    }
}
