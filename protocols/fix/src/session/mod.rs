//! FIX 4.4 sessions for both roles: logon, heartbeats, sequence numbers, resends, logout.
//!
//! [`Session`] performs no IO and reads no clock. Bytes and time enter through `handle_*`, messages leave
//! through the [`Listener`]. Bytes to send and the next deadline are in `output` and `poll_timeout`.
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
