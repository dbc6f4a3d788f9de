//! Support code shared by the tests of many crates. Use this crate only as a dev-dependency.
//!
//! ```
//! use std::net::TcpStream;
//!
//! use tickpath_test_support::{listen, wait_for};
//!
//! let (listener, address) = listen();
//! let _client = TcpStream::connect(address)?;
//! listener.set_nonblocking(true)?;
//! wait_for("the client", || listener.accept().ok());
//! # Ok::<(), std::io::Error>(())
//! ```
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)] // a failed step of a test is a failed test

pub mod allocations;
#[cfg(feature = "certificates")]
mod certificates;
mod clock;
mod connect_proxy;
mod fault_proxy;
mod instruments;
mod market;
mod ports;
mod process;
mod recorded;
pub mod soup;
mod wait;

#[cfg(feature = "certificates")]
pub use certificates::Certificates;
pub use clock::realtime_ns;
pub use connect_proxy::ConnectProxy;
pub use fault_proxy::{BytePredicate, Direction, FaultProxy};
pub use instruments::{instrument, instruments};
pub use market::quote;
pub use ports::{ANY_PORT, REFUSING, connect, listen, listen_nonblocking, udp_socket};
pub use process::{ProcessOutput, Running, Signal, this_test};
pub use recorded::recorded;
pub use wait::{Deadline, PATIENCE, until, wait_for, wait_until};
