//! Gateway side and client side of a gateway's local client port.
//!
//! The [server](ClientPort) listens on a Unix socket, reads callers' hellos and admits those its owner accepts.
//! Each client has two rings in shared memory, one per direction. Market data is written once into a
//! broadcast ring that all clients map read-only. The [client](Client) connects, answers the gateway's pings,
//! holds broadcast events back until they follow the download, and reconnects when the gateway was down.
//!
//! ```
//! use tickpath_gateway_io::{Client, ClientConfig, ClientPort, ClientPortConfig, ClientPortEvent, monotonic};
//! use tickpath_gateway_protocol::{EventKind, Text, frame::{Password, capability}};
//! use tickpath_shm::{Folder, SegmentName};
//!
//! # let place = tempfile::tempdir()?;
//! let socket = place.path().join("deribit.sock");
//! let folder = Folder::create(&place.path().join("shm"))?;
//! let mut port = ClientPort::open(ClientPortConfig::new(&socket, folder, SegmentName::new("deribit")?))?;
//!
//! let user = Text::new("alice").ok_or("too long")?;
//! let password = Password::new(b"secret").ok_or("too long")?;
//! let client = std::thread::spawn(move || -> Result<Client, tickpath_gateway_io::ConnectError> {
//!     Client::connect(ClientConfig::new(&socket, user, password))
//! });
//! let admitted = loop {
//!     if let Some(ClientPortEvent::Login(login)) = port.poll(monotonic()) {
//!         assert_eq!(login.hello.password.expose(), b"secret");
//!         break port.admit(login.id, capability::TRADING);
//!     }
//! };
//! assert!(admitted.is_some());
//! let mut client = client.join().map_err(|_| "the client panicked")??;
//! assert_eq!(client.poll().map(|event| event.header.kind), Some(EventKind::START));
//! assert_eq!(client.poll().map(|event| event.header.kind), Some(EventKind::CONNECTED));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Bounds
//!
//! | item | limit | when reached |
//! |---|---|---|
//! | clients | [`ClientPortConfig::clients_max`] | a further one is refused |
//! | pre-login callers | [`ClientPortConfig::pre_login`], by process | evicts the oldest of the process with most |
//! | time until login | its deadline | the connection is closed |
//! | events queued for a client | [`ClientPortConfig::events_max`] | the client is too slow and is disconnected |
//! | requests queued for a gateway | [`ClientPortConfig::requests_max`] | [`send`](Client::send) fails |
//! | broadcast events | [`ClientPortConfig::broadcasts_max`] | the oldest is lost; the client requests a download |
//! | instrument numbers that a client follows | [`SYMBOLS_MAX`] | higher ones get no broadcast events |

mod client;
mod clock;
mod connection;
mod error;
mod joined;
mod server;

pub use client::{Client, ClientConfig};
pub use clock::{monotonic, unix_time};
pub use error::{ConnectError, DoorError, SendError};
pub use joined::SYMBOLS_MAX;
pub use server::{
    ClientId, ClientPort, ClientPortConfig, ClientPortEvent, DoorCounters, Heartbeat, LeaveReason, Login,
    LoginId,
};
