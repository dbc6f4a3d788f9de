//! Both ends of a gateway's local door.
//!
//! The [server](Door) listens on a Unix socket, hears who calls, lets in whom its owner admits, and has for each client a
//! ring each way in shared memory; market data goes once into a broadcast ring that all clients map for reading. The
//! [client](Client) connects, answers the gateway's pings, holds broadcast events back until they follow upon what was
//! downloaded, and connects anew when the gateway was gone.
//!
//! ```
//! use tickpath_gateway_io::{Client, ClientConfig, Door, DoorConfig, DoorEvent, monotonic};
//! use tickpath_gateway_protocol::{EventKind, Text, frame::{Password, capability}};
//! use tickpath_shm::{Folder, SegmentName};
//!
//! # let place = tempfile::tempdir()?;
//! let socket = place.path().join("deribit.sock");
//! let folder = Folder::create(&place.path().join("shm"))?;
//! let mut door = Door::open(DoorConfig::new(&socket, folder, SegmentName::new("deribit")?))?;
//!
//! let user = Text::new("alice").ok_or("too long")?;
//! let password = Password::new(b"secret").ok_or("too long")?;
//! let client = std::thread::spawn(move || -> Result<Client, tickpath_gateway_io::ConnectError> {
//!     Client::connect(ClientConfig::new(&socket, user, password))
//! });
//! let admitted = loop {
//!     if let Some(DoorEvent::Login(login)) = door.poll(monotonic()) {
//!         assert_eq!(login.hello.password.expose(), b"secret");
//!         break door.admit(login.id, capability::TRADING);
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
//! | what | bound | at it |
//! |---|---|---|
//! | clients | [`DoorConfig::clients_max`] | a further one is refused |
//! | callers who are not let in yet | [`DoorConfig::pre_login`], by process | the oldest of the process that has the most is closed |
//! | time for that | its deadline | the connection is closed |
//! | events that wait for a client | [`DoorConfig::events_max`] | the client is cut off: it is too slow |
//! | requests that wait for the gateway | [`DoorConfig::requests_max`] | the client's [`send`](Client::send) gives the request back |
//! | broadcast events | [`DoorConfig::broadcasts_max`] | the oldest is overwritten; a client that lost some is told, and asks for a download |
//! | numbers of instruments that a client follows | [`SYMBOLS_MAX`] | those beyond get no broadcast events |

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
    ClientId, Door, DoorConfig, DoorCounters, DoorEvent, Heartbeat, LeaveReason, Login, LoginId,
};
