//! WebSocket and HTTP over TCP or TLS, client and server, driven by duty cycles.
//!
//! A client creates a [`WebSocketClient`]. A server takes [`WebConnection`]s from its [`WebAcceptor`]; each
//! speaks HTTP until it is upgraded to a WebSocket. There are no threads and no clocks: time is an argument,
//! nothing blocks, and [`WebLimits`] bounds every size and time that a peer controls. `tungstenite` and
//! `rustls` provide frames, handshakes, TLS and certificates; the caller interprets the messages. Messages
//! are not compressed. IPv4 only. Other protocols use a [`ByteConnection`], also by TCP or TLS.
//!
//! ```
//! use std::net::{Ipv4Addr, SocketAddrV4};
//! use tickpath_net::{Kernel, SendOutcome};
//! use tickpath_types::Nanos;
//! use tickpath_web::{ServerEvent, Target, WebAcceptor, WebEvent, WebLimits, WebSocketClient};
//!
//! let now = Nanos::from_secs(1);
//! let mut acceptor =
//!     WebAcceptor::bind(Kernel, SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0), None, WebLimits::server())?;
//! let url = format!("ws://{}/ws/api/v2", acceptor.local_address()).parse()?;
//! let target = Target { url, address: acceptor.local_address(), is_proxy: false, tls: None };
//! let mut client = WebSocketClient::start(&Kernel, now, target, WebLimits::client())?;
//! let mut server = None;
//! let mut has_sent = false;
//! loop {
//!     if client.poll_open(now)? && !has_sent {
//!         assert_eq!(client.send("hello"), SendOutcome::Sent);
//!         has_sent = true;
//!     }
//!     if server.is_none() {
//!         server = acceptor.accept(now)?;
//!     }
//!     let Some(server) = &mut server else { continue };
//!     match server.receive(now) {
//!         Some(ServerEvent::Upgrade(request)) if request.path() == "/ws/api/v2" => server.accept_upgrade(),
//!         Some(ServerEvent::Message(WebEvent::Text(text))) => {
//!             assert_eq!(text, "hello");
//!             break;
//!         }
//!         _ => {}
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod byte_client;
mod bytes;
mod channel;
mod client;
mod error;
mod http;
mod limits;
mod proxy;
mod server;
mod stream;
mod tls;
mod url;

pub use byte_client::{ByteClient, ByteTarget};
pub use bytes::{ByteAcceptor, ByteConnection};
pub use channel::{Closed, WebEvent};
pub use client::{Target, WebSocketClient};
pub use error::WebError;
pub use http::{HttpRequest, HttpResponse};
pub use limits::WebLimits;
pub use server::{EndCause, ServerEvent, WebAcceptor, WebConnection, WebCounters};
pub use tls::{TlsClient, TlsServer};
pub use url::{WebUrl, resolve};
