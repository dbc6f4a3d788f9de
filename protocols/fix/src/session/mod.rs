//! The session of FIX 4.4, for both roles: logon, heartbeats, sequence numbers, resends, logout.
//!
//! [`Session`] performs no IO and reads no clock. Bytes and time come in through `handle_*`, messages leave through the
//! [`Listener`], bytes to be sent and the next deadline leave through `output` and `poll_timeout`.
//!
//! Source: FIX 4.4, volume 2, and Deribit's "FIX API".

mod config;
mod end;
mod header;
mod listener;
mod machine;
mod messages;
mod output;
mod resend;
mod store;

pub use config::{
    CompId, GapPolicy, ResendPolicy, ResetPolicy, Role, SequenceResetPolicy, SessionConfig, SessionStats,
};
pub use end::{CloseReason, SendError};
pub use header::Header;
pub use listener::{Listener, LogonDecision, LogonRequest, Refusal};
pub use machine::Session;
pub use messages::{BusinessReject, Logout, Reject};
pub use store::{MemoryStore, NoStore, Store, Stored};
